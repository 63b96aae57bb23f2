import Crypto
import Wire

extension Conformance {
    static let framingCases = headerCases + limitCases + bodyCases + vectorCases

    /// A connection that has its CHALLENGE gets these bytes and must close with the code.
    private static func closes(
        _ trial: Trial, _ bytes: [UInt8], _ code: Code, _ what: String
    ) throws {
        let (peer, _) = try trial.challenged(nil, trial.delivery)
        try peer.send(bytes: bytes)
        do {
            try peer.expectClose(code)
        } catch CaseEnd.failed(let reason) {
            throw CaseEnd.failed("\(what): \(reason)")
        }
    }

    // MARK: - The header

    private static let headerCases: [ConformanceCase] = [
        .must(
            "framing.pieces", "a whole session runs whatever the pieces are that its bytes come in",
            ["FRM-1: MUST take them in pieces of any size"], bytes: true
        ) { t in
            let device = Device(
                trial: t, user: t.user("anna"), id: t.newID(), role: .app)
            device.delivery = t.delivery
            try device.logIn()
            try device.syncToHead()
            let conversation = try device.createConversation(with: [])
            try device.say("in pieces", in: conversation)
            try device.syncToHead()
            try requireEqual(
                device.replica.texts(in: conversation), ["in pieces"], "the own message")
            try device.peer.expectAlive()
        },
        .must(
            "framing.empty-body", "a frame without a body is taken",
            ["FRM-3: a receiver MUST take that"], bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            try peer.send(bytes: RawFrame.ping(7).bytes)
            try peer.expect(.pong, request: 7)
        },
        .must(
            "framing.many-in-one", "frames directly behind one another are all taken, in order",
            ["FRM-1"], bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            for request in 1...12 as ClosedRange<UInt16> {
                try peer.send(bytes: RawFrame.ping(request).bytes)
            }
            for request in 1...12 as ClosedRange<UInt16> {
                try peer.expect(.pong, request: request)
            }
        },
        .must(
            "framing.flags", "each flag that version 1 does not use closes with 5004",
            ["FRM-6: receiver that finds one set MUST close the connection with 5004"],
            bytes: true
        ) { t in
            for flag in [2, 8, 16, 32, 64, 128] as [UInt8] {
                try closes(
                    t, RawFrame.ping(1).with { $0.flags = flag }.bytes, .protocolViolation,
                    "flag \(flag)")
            }
        },
        .must(
            "framing.reserved-byte", "a reserved byte other than 0 closes with 5004",
            ["FRM-7: receiver that finds another value MUST close the connection with 5004"],
            bytes: true
        ) { t in
            for value in [1, 0x80, 0xFF] as [UInt8] {
                try closes(
                    t, RawFrame.ping(1).with { $0.reserved = value }.bytes, .protocolViolation,
                    "reserved byte \(value)")
            }
        },
        .must(
            "framing.unknown-ignorable", "frames of unknown types with IGNORABLE are stepped over",
            ["FRM-8: MUST step over a frame whose type it does not know if IGNORABLE is set"],
            bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            for (index, type) in ([0x05, 0x4F, 0x50, 0x7F, 0x80, 0xFF] as [UInt8]).enumerated() {
                // No body of this protocol: it must not be looked at.
                let body = [UInt8](repeating: 0xFF, count: index * 33)
                try peer.send(
                    bytes: RawFrame(type, body: body).with {
                        $0.flags = FrameFlags.ignorable.rawValue
                        $0.request = 9
                    }.bytes)
                try peer.send(bytes: RawFrame.ping(UInt16(100 + index)).bytes)
                try peer.expect(.pong, request: UInt16(100 + index))
            }
        },
        .must(
            "framing.ignorable-checked",
            "flags, reserved byte and length of a frame to ignore are checked all the same",
            [
                "FRM-13: MUST close the connection with 4001, also if the frame would be",
                "FRM-8: MUST be checked as for any frame",
            ],
            bytes: true
        ) { t in
            let ignorable = RawFrame(0x4F).with { $0.flags = FrameFlags.ignorable.rawValue }
            try closes(
                t, ignorable.with { $0.flags |= 8 }.bytes, .protocolViolation, "another flag")
            try closes(
                t, ignorable.with { $0.reserved = 1 }.bytes, .protocolViolation, "reserved byte")
            try closes(
                t, ignorable.with { $0.length = 16_385 }.bytes, .tooLarge, "length 16,385")
        },
        .must(
            "framing.known-ignorable", "on a known type IGNORABLE changes nothing",
            ["FRM-8: IGNORABLE MUST change nothing"],
            bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            try peer.send(
                bytes: RawFrame.ping(3).with { $0.flags = FrameFlags.ignorable.rawValue }.bytes)
            try peer.expect(.pong, request: 3)
        },
        .must(
            "framing.unknown-type", "an unknown type without IGNORABLE closes with 4008",
            ["FRM-9: MUST close the connection with 4008"], bytes: true
        ) { t in
            for type in [0x00, 0x05, 0x4F, 0x50, 0x80, 0xFF] as [UInt8] {
                try closes(t, RawFrame(type).bytes, .unknownFrame, "type \(type)")
            }
        },
        .must(
            "framing.fault-order", "flags, reserved byte, type, length: the first fault decides",
            ["FRM-11: MUST check a header as soon as its 8 bytes are there"], bytes: true
        ) { t in
            let all = RawFrame(0x4F).with {
                $0.flags = 2
                $0.reserved = 1
                $0.length = 0xFF_FFFF
            }
            try closes(t, all.bytes, .protocolViolation, "everything wrong")
            try closes(
                t, all.with { $0.flags = 0 }.bytes, .protocolViolation,
                "reserved byte before type")
            try closes(
                t,
                all.with {
                    $0.flags = 0
                    $0.reserved = 0
                }.bytes, .unknownFrame, "type before length")
        },
        .must(
            "framing.header-alone", "a faulty header is refused before anything of its body came",
            ["FRM-11: before it takes anything of the body"], bytes: true
        ) { t in
            try closes(
                t, RawFrame(.hello).with { $0.length = 0xFF_FFFF }.bytes, .tooLarge,
                "a length of 16 MiB")
            let peer = try t.connect(t.delivery)
            try peer.send(bytes: RawFrame(.hello).with { $0.length = 16_385 }.bytes)
            try peer.expectClose(.tooLarge)
        },
        .must(
            "framing.nothing-after-a-fault",
            "frames before a fault count, what follows it is not taken",
            [
                "FRM-12: MUST take nothing that follows it",
                "FRM-12: with the code, and MUST close",
            ], bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            try peer.send(bytes: RawFrame.ping(1).bytes)
            try peer.send(bytes: RawFrame.ping(2).with { $0.reserved = 9 }.bytes)
            try peer.sendAnyway(bytes: RawFrame.ping(3).bytes)
            try peer.expect(.pong, request: 1)
            try peer.expectClose(.protocolViolation)
        },
        .must(
            "framing.request-numbers",
            "an answer carries its request's number, from 1 to 65,535, and 0 is no request",
            [
                "CON-6: PING MUST be answered by PONG with the same request number",
                "FRM-10: frames that answer it MUST carry the same number",
            ],
            bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            for request in [1, 0x00FF, 0xFF00, 0xFFFF, 0] as [UInt16] {
                try peer.send(.ping(Ping(nextMs: 60_000)), request: request)
                try peer.expect(.pong, request: request)
            }
        },
        .must(
            "framing.server-headers", "the server's own frames keep the rules of the header",
            [
                "FRM-5", "FRM-6: sender MUST leave flags 2 and 8 to 128 at 0",
                "FRM-7: sender MUST set the reserved byte to 0",
            ]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") {
                try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { $0.texts(in: conversation) == ["one"] }
            }
            try anna.peer.send(.ping(Ping()), request: 9)
            try anna.peer.expect(.pong)
            try anna.peer.send(.ack(Ack(applied: 1 << 40)), request: 10)
            _ = try settingUp("an ERROR") { try anna.peer.expect(.error) }
            try anna.peer.send(.authenticate(Authenticate(identityToken: "")))
            _ = try settingUp("a CLOSE") { try anna.peer.expect(.close) }
            for device in [anna, ben] {
                let anomalies = device.peer.anomalies
                try require(anomalies.isEmpty, anomalies.joined(separator: "; "))
            }
        },
        .should(
            "framing.canonical", "the server writes its bodies as short as possible",
            ["FRM-30: SHOULD write the canonical form"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") {
                try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { $0.texts(in: conversation) == ["one"] }
            }
            let loose = anna.peer.loose + ben.peer.loose
            try require(loose == 0, "\(loose) frames are longer than they need be")
        },
        .must(
            "framing.half-a-frame", "a frame that the connection's end cuts has no effect",
            ["FRM-17: the half frame MUST be dropped"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let number = anna.nextNumber
            let whole = Frame(
                .mutate(
                    Mutation(
                        number: number,
                        operation: .createConversation(
                            CreateConversation(conversation: t.newID())))), request: 77
            ).encoded
            try anna.peer.send(bytes: whole.dropLast())
            try anna.peer.expectNothing(for: .milliseconds(200))
            anna.peer.cut()
            try anna.reconnect()
            try require(
                anna.welcome.mutationFloor < number, "mutation \(number) was taken: half a frame")
            let log = anna.replica.log.count
            try anna.syncToHead()
            try requireEqual(anna.replica.log.count, log, "entries")
        },
    ]

    // MARK: - Limits

    private static let limitCases: [ConformanceCase] = [
        .must(
            "framing.body-before-welcome", "before WELCOME 16,384 bytes are taken and one more not",
            [
                "FRM-13: MUST close the connection with 4001",
                "SES-6: MUST NOT be longer than 16 KiB",
            ], bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            let largest = RawFrame(.ping, body: Field.padding(toLength: 16_384)).with {
                $0.request = 5
            }
            try peer.send(bytes: largest.bytes)
            try peer.expect(.pong, request: 5)
            try peer.send(bytes: RawFrame(.ping).with { $0.length = 16_385 }.bytes)
            try peer.expectClose(.tooLarge)
        },
        .must(
            "framing.body-after-welcome", "after WELCOME the limit it names holds",
            ["FRM-13: MUST close the connection with 4001"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false, delivery: t.delivery)
            let told = Int(anna.welcome.limits?.bodyBytes ?? 0)
            let limit = told == 0 ? 262_144 : max(16_384, min(262_144, told))
            let largest = RawFrame(.ping, body: Field.padding(toLength: limit)).with {
                $0.request = 5
            }
            try anna.peer.send(bytes: largest.bytes)
            try anna.peer.expect(.pong, request: 5)
            try anna.peer.send(bytes: RawFrame(.ping).with { $0.length = limit + 1 }.bytes)
            try anna.peer.expectClose(.tooLarge)
        },
        .must(
            "framing.elements-before-welcome", "before WELCOME 1,024 elements are taken, 1,025 not",
            ["FRM-15: MUST close the connection with 4006"], bytes: true
        ) { t in
            let empty = Field.bytes(8, [])
            func hello(_ count: Int) -> [UInt8] {
                let body =
                    t.hello(t.newID()).encoded + (0..<count).flatMap { _ in empty }
                return RawFrame(.hello, body: body).with { $0.request = 1 }.bytes
            }
            let taken = try t.connect(t.delivery)
            try taken.send(bytes: hello(1024))
            try taken.expect(.challenge)
            let refused = try t.connect(t.delivery)
            try refused.send(bytes: hello(1025))
            try refused.expectClose(.limit)
        },
        .must(
            "framing.elements-after-welcome", "after WELCOME 8,193 elements in a frame close it",
            ["FRM-15: MUST close the connection with 4006"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let empty = Field.bytes(3, [])
            func ack(_ count: Int) -> [UInt8] {
                RawFrame(.ack, body: (0..<count).flatMap { _ in empty }).bytes
            }
            // More receipts than an ACK may hold (MSG-17), but a frame.
            try anna.peer.send(bytes: ack(8_192))
            try anna.peer.expectError(.limit, request: 0)
            try anna.peer.expectAlive()
            try anna.peer.send(bytes: ack(8_193))
            try anna.peer.expectClose(.limit)
        },
    ]
}
