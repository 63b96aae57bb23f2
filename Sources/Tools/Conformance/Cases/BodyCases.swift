import Crypto
import Model
import Wire

extension Conformance {
    /// HELLO as fields, to be put together otherwise than a codec would.
    private static func helloFields(_ t: Trial, _ device: DeviceID) -> [[UInt8]] {
        [
            Field.number(1, 1), Field.number(2, 1), Field.text(3, t.app),
            Field.bytes(4, device.bytes), Field.number(5, 1), Field.text(6, "conform"),
        ]
    }

    private static func sendHello(_ peer: Peer, _ fields: [[UInt8]]) throws {
        try peer.send(
            bytes: RawFrame(.hello, body: fields.flatMap { $0 }).with { $0.request = 1 }.bytes)
    }

    static let bodyCases: [ConformanceCase] = [
        .must(
            "framing.unknown-fields", "unknown fields of every wire type are stepped over",
            ["FRM-21: MUST step over fields it does not know"], bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            var hello = helloFields(t, t.newID())
            hello.insert(Field.unknown, at: 2)
            hello.append(Field.bytes(10, Field.number(1, 1) + Field.unknown))
            try sendHello(peer, hello)
            try peer.expect(.challenge, request: 1)
        },
        .must(
            "framing.other-wire-type", "a known field under another wire type is stepped over",
            ["FRM-21: and over fields whose wire type is not the one"], bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            // version_min as bytes, app as a number, role as 8 bytes, device as 4 bytes.
            let others = [
                Field.bytes(1, [9]), Field.number(3, 5),
                Field.key(5, 1) + [9, 9, 9, 9, 9, 9, 9, 9],
                Field.key(4, 5) + [1, 2, 3, 4],
            ]
            try sendHello(peer, helloFields(t, t.newID()) + others)
            try peer.expect(.challenge, request: 1)
        },
        .must(
            "framing.long-varints", "numbers in more bytes than they need are taken",
            ["FRM-23: than its value needs MUST be taken"],
            bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            var hello = helloFields(t, t.newID())
            hello[0] = Field.key(1, 0) + Field.longVarint(1, bytes: 10)
            let app = Array(t.app.utf8)
            hello[2] =
                Field.longVarint(3 << 3 | 2, bytes: 5)
                + Field.longVarint(UInt64(app.count), bytes: 5) + app
            try sendHello(peer, hello)
            try peer.expect(.challenge, request: 1)
        },
        .must(
            "framing.last-value", "of a field that occurs twice the last value counts",
            ["FRM-24: the last value MUST count"],
            bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            let wrong = [
                Field.number(1, 7), Field.text(3, "no such app"), Field.number(5, 0),
                Field.bytes(4, [UInt8](repeating: 1, count: 16)),
            ]
            let device: DeviceID = t.newID()
            try sendHello(peer, wrong + helloFields(t, device))
            let challenge = try peer.expect(.challenge, request: 1)
            let user = t.user("anna")
            let token = try t.issuer.token(user: user, nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            let welcome = try peer.expect(.welcome, request: 1)
            try requireEqual(welcome.user, user, "user")
        },
        .must(
            "framing.low-32-bits", "of a 32-bit field the lower 32 bits count",
            ["FRM-24: the lower 32 bits MUST count"],
            bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            var hello = helloFields(t, t.newID())
            hello[0] = Field.number(1, 1 << 32 | 1)
            hello[1] = Field.number(2, 5 << 40 | 1)
            try sendHello(peer, hello)
            try peer.expect(.challenge, request: 1)
        },
        .must(
            "framing.merged-messages", "a message field that occurs twice is merged",
            ["FRM-29", "FRM-25: MUST be merged into earlier ones"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try settingUp("something in the feed") {
                _ = try anna.createConversation(with: [])
                try anna.syncToHead()
            }
            let cursor = anna.cursor
            let body =
                Field.bytes(1, Field.bytes(1, cursor?.epoch.bytes ?? []))
                + Field.number(4, 1) + Field.bytes(1, Field.number(2, anna.applied))
                + Field.number(2, anna.applied)
            try anna.peer.send(
                bytes: RawFrame(.sync, body: body).with { $0.request = 40 }.bytes)
            let delta = try anna.peer.expect(.delta, request: 40)
            try require(delta.reset == nil, "the cursor was not read: reset")
            try requireEqual(delta.from, cursor, "from")
        },
        .must(
            "framing.oneof", "of a oneof the last member counts",
            ["FRM-25: the last member MUST count"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            let (first, second): (ConversationID, ConversationID) = (t.newID(), t.newID())
            let send = Field.bytes(1, first.bytes) + Field.bytes(2, first.bytes)
            let create = Field.bytes(1, second.bytes)
            let body =
                Field.number(1, anna.nextNumber) + Field.bytes(12, send)
                + Field.bytes(10, create)
            try anna.peer.send(
                bytes: RawFrame(.mutate, body: body).with { $0.request = 41 }.bytes)
            let result = try anna.peer.expect(.mutationResult, request: 41)
            try requireEqual(result.code, 0, "create conversation")
            try requireEqual(result.object, second.bytes, "object")
        },
        .must(
            "framing.unknown-enum", "an enum value it does not know counts as 0",
            ["SES-2", "FRM-27: MUST count as 0"], bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            let phase = Field.bytes(10, Field.number(1, 99) + Field.number(3, 77))
            try sendHello(peer, helloFields(t, t.newID()) + [phase])
            try peer.expect(.challenge, request: 1)
            // A role that nobody knows is no role.
            let other = try t.connect(t.delivery)
            var hello = helloFields(t, t.newID())
            hello[4] = Field.number(5, 99)
            try sendHello(other, hello)
            try other.expectClose(.missingField)
        },
        .must(
            "framing.any-order", "fields in any order and written defaults are taken",
            ["FRM-30: a receiver MUST take both", "FRM-31"], bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            let defaults = [
                Field.bytes(9, []), Field.text(7, ""), Field.bytes(13, []),
            ]
            try sendHello(peer, (helloFields(t, t.newID()) + defaults).reversed())
            try peer.expect(.challenge, request: 1)
        },
        .must(
            "framing.bad-utf8", "text that is not UTF-8 closes with 4000",
            [
                "FRM-20: MUST be answered with CLOSE 4000",
                "FRM-26: MUST be valid UTF-8; each occurrence MUST be checked",
            ],
            bytes: true
        ) { t in
            for bad in [
                [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF5, 0x80, 0x80, 0x80],
            ]
                as [[UInt8]]
            {
                let peer = try t.connect(t.delivery)
                try sendHello(peer, [Field.bytes(3, bad)] + helloFields(t, t.newID()))
                try peer.expectClose(.malformed)
            }
        },
        .must(
            "framing.id-length", "an id of another length than 16 closes with 4000",
            ["FRM-20", "FRM-28: These fields MUST have 16 bytes"], bytes: true
        ) { t in
            for count in [1, 15, 17, 32] {
                let peer = try t.connect(t.delivery)
                let id = [UInt8](repeating: 3, count: count)
                try sendHello(peer, [Field.bytes(4, id)] + helloFields(t, t.newID()))
                try peer.expectClose(.malformed)
            }
        },
        .must(
            "framing.cursor-without-epoch", "a cursor without an epoch closes with 4000",
            ["FRM-29: A `Cursor` MUST have an epoch"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false, delivery: t.delivery)
            let body = Field.bytes(1, Field.number(2, 5))
            try anna.peer.send(
                bytes: RawFrame(.sync, body: body).with { $0.request = 40 }.bytes)
            try anna.peer.expectClose(.malformed)
        },
    ]

    // MARK: - Vectors

    /// When a frame of this type may be sent, so that its bytes are judged and not its place.
    private enum Place { case first, challenged, open, never }

    private static func place(of stream: [UInt8]) -> Place {
        guard stream.count >= 4, let type = FrameType(rawValue: stream[3]) else {
            return .challenged
        }
        // Header faults come before any question of place.
        if stream.count == 8 { return .challenged }
        switch type {
        case .hello: return .first
        case .ping, .pong, .close: return .challenged
        case .authenticate: return .never
        case .sync, .ack, .mutate, .appState, .fetch, .snapshot, .signal, .digest: return .open
        default: return .never
        }
    }

    static let vectorCases: [ConformanceCase] = [
        .must(
            "framing.invalid-vectors", "each invalid stream of the vectors closes with its code",
            [
                "FRM-29", "FRM-15", "FRM-44: every invalid stream to its code",
                "FRM-20: MUST be answered with CLOSE 4000", "FRM-22: MUST be refused as malformed",
                "FRM-23: A varint MUST have at most 10 bytes",
                "FRM-26: MUST be valid UTF-8; each occurrence MUST be checked",
                "FRM-28: These fields MUST have 16 bytes",
            ], bytes: true, seconds: 60
        ) { t in
            guard let vectors = t.server.vectors else { throw CaseEnd.skipped("no vectors given") }
            for vector in vectors.invalid {
                guard let bytes = Hex.decode(vector.stream), let code = Code(rawValue: vector.code)
                else { throw CaseEnd.inconclusive("vector `\(vector.name)` cannot be read") }
                // Limits before WELCOME cannot be shown with a frame that comes after it.
                if vector.rule == "FRM-15" { continue }
                let peer: Peer
                switch place(of: bytes) {
                case .first: peer = try t.connect()
                case .challenged: peer = try t.challenged(nil, t.delivery).0
                case .open:
                    peer = try t.device(
                        of: t.user("anna"), isSynced: false, delivery: t.delivery
                    ).peer
                case .never: continue
                }
                try peer.send(bytes: bytes)
                do {
                    try peer.expectClose(code)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("vector `\(vector.name)`: \(reason)")
                }
            }
        },
        .must(
            "framing.stream-vectors", "each PING of the valid streams of the vectors is answered",
            ["FRM-1", "FRM-44: every stream to its frames"], bytes: true, seconds: 60
        ) { t in
            guard let vectors = t.server.vectors else { throw CaseEnd.skipped("no vectors given") }
            for vector in vectors.streams {
                guard let bytes = Hex.decode(vector.stream) else {
                    throw CaseEnd.inconclusive("vector `\(vector.name)` cannot be read")
                }
                let (peer, _) = try t.challenged(nil, t.delivery)
                try peer.send(bytes: bytes)
                for frame in vector.frames.compactMap(Hex.decode) where frame.count >= 8 {
                    guard frame[3] == FrameType.ping.rawValue else { continue }
                    do {
                        try peer.expect(.pong, request: UInt16(frame[6]) << 8 | UInt16(frame[7]))
                    } catch CaseEnd.failed(let reason) {
                        throw CaseEnd.failed("vector `\(vector.name)`: \(reason)")
                    }
                }
            }
        },
    ]
}
