import Model
import Wire

extension Conformance {
    /// The SYNC_REQUESTs and DELTAs among frames.
    private static func told(_ frames: [ReceivedFrame]) -> [String] {
        frames.compactMap { frame in
            switch frame.body {
            case .syncRequest, .delta: frame.summary
            default: nil
            }
        }
    }

    /// SYNC_REQUEST comes, and no DELTA.
    private static func onlyAsked(_ device: Device, at time: String) throws {
        try device.peer.expect(.syncRequest)
        let frames = device.peer.passed + (try device.peer.frames(during: quiet))
        try requireEqual(told(frames), [], "told beside SYNC_REQUEST \(time)")
    }

    /// How long to wait for something that must not come.
    private static let quiet = Duration.milliseconds(400)

    // MARK: - Being told

    static let toldCases: [ConformanceCase] = [
        .must(
            "sync.request", "a change brings SYNC_REQUEST with the head and the kind", ["SYN-17"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") { try anna.say("one", in: conversation) }
            let asked = try ben.peer.expect(.syncRequest)
            try require(asked.head > ben.applied, "head \(asked.head) is not above \(ben.applied)")
            try require(asked.kinds & 1 << 2 != 0, "kinds \(asked.kinds) name no message")
            try ben.syncToHead()
            try require(ben.applied >= asked.head, "the feed ends below the head asked for")
            try requireEqual(ben.replica.texts(in: conversation), ["one"], "messages")
        },
        .must(
            "sync.request-once", "no second SYNC_REQUEST while one is unanswered",
            ["SYN-18: MUST NOT have more than one SYNC_REQUEST unanswered on a connection"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            // Another device of the same user shows when the news has gone round.
            let beside = try t.device(of: ben.user)
            try settingUp("a message") { try anna.say("0", in: conversation) }
            try ben.peer.expect(.syncRequest)
            try settingUp("more messages") {
                for number in 1...4 { try anna.say("\(number)", in: conversation) }
                try beside.pump(until: "messages") { $0.messages(in: conversation).count == 5 }
            }
            // Neither PING nor an ACK below the head is an answer.
            try ben.peer.expectAlive()
            try ben.acknowledge()
            let frames = ben.peer.passed + (try ben.peer.frames(during: quiet))
            try requireEqual(told(frames), [], "told again")
        },
        .must(
            "sync.request-follows", "what came meanwhile is asked for as soon as one is answered",
            ["SYN-17", "SYN-18: the next SYNC_REQUEST MUST follow at once"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let beside = try t.device(of: ben.user)
            try settingUp("a message") { try anna.say("0", in: conversation) }
            let first = try ben.peer.expect(.syncRequest)
            try settingUp("more messages") {
                for number in 1...4 { try anna.say("\(number)", in: conversation) }
                try beside.pump(until: "messages") { $0.messages(in: conversation).count == 5 }
            }
            // An answer by ACK: the head asked for is held already.
            try ben.peer.send(.ack(Ack(applied: first.head)))
            let second = try ben.peer.expect(.syncRequest)
            try require(second.head > first.head, "the same head is asked for again")
        },
        .must(
            "sync.live", "with `live` a DELTA comes unasked, from where the last one ended",
            ["SYN-20: Its `from` MUST be the `to` of the DELTA before"]
        ) { t in
            let (anna, ben, conversation) = try t.pair(features: ["live"])
            for number in 1...5 {
                try settingUp("a message") { try anna.say("\(number)", in: conversation) }
            }
            let before = ben.cursor
            var end = before
            ben.peer.passed = []
            while ben.replica.messages(in: conversation).count < 5 {
                let delta = try ben.peer.expect(.delta, request: 0)
                try requireEqual(delta.from, end, "from")
                end = delta.to
                ben.apply(delta)
            }
            try ben.acknowledge()
            try require(ben.gaps.isEmpty, ben.gaps.joined(separator: "; "))
            try requireEqual(
                ben.replica.texts(in: conversation), (1...5).map { "\($0)" }, "messages")
        },
        .must(
            "sync.live-after-sync", "before a SYNC of this connection nothing is pushed",
            ["SYN-20"]
        ) { t in
            let (anna, ben, conversation) = try t.pair(features: ["live"])
            try settingUp("again") { try ben.reconnect() }
            try settingUp("a message") { try anna.say("one", in: conversation) }
            for frame in try ben.peer.frames(during: quiet) {
                if case .delta = frame.body { throw CaseEnd.failed("\(frame.summary) came") }
            }
            try ben.syncToHead()
            try requireEqual(ben.replica.texts(in: conversation), ["one"], "messages")
        },
        .must(
            "sync.live-window", "above the window nothing is pushed until the client acknowledges",
            ["SYN-20", "SYN-14"], seconds: 60
        ) { t in
            let (anna, ben, conversation) = try t.pair(features: ["live"])
            let window = Int(ben.welcome.limits?.windowBytes ?? 0)
            let size = Int(min(ben.welcome.limits?.messageBytes ?? 0, 60_000)) - 200
            guard window > 0, size > 0, window / size < 40 else {
                throw CaseEnd.skipped("a window of \(window) bytes is too much to fill")
            }
            let count = window / size + 4
            try settingUp("messages") {
                let text = String(repeating: "w", count: size)
                for _ in 0..<count {
                    let result = try anna.mutate(
                        .sendMessage(
                            SendMessage(
                                conversation: conversation, message: t.newID(),
                                parts: [Part(mimeType: "text/plain", content: Array(text.utf8))])))
                    try requireEqual(result.code, 0, "send message")
                }
            }
            var sizes: [Int] = []
            for frame in ben.peer.passed + (try ben.peer.frames(during: .seconds(1))) {
                guard case .delta(let delta) = frame.body else { continue }
                sizes.append(frame.bytes.count)
                ben.apply(delta)
            }
            let beforeLast = sizes.dropLast().reduce(0, +)
            try require(
                beforeLast < window, "\(sizes.reduce(0, +)) bytes unacknowledged in \(sizes)")
            try require(
                ben.replica.messages(in: conversation).count < count, "everything was pushed")
            try ben.acknowledge()
            try ben.pump(until: "the rest") { $0.messages(in: conversation).count == count }
        },
        .must(
            "sync.hint-in-background",
            "in the background there is SYNC_REQUEST only, also with "
                + "`live`", ["CON-1", "SYN-21: the server MUST send SYNC_REQUEST only"]
        ) { t in
            let (anna, ben, conversation) = try t.pair(features: ["live"])
            let state = AppState(phase: .background, remainingMs: 60_000)
            try ben.peer.send(.appState(state))
            try ben.peer.expectAlive()
            ben.peer.passed = []
            try settingUp("a message") { try anna.say("one", in: conversation) }
            try onlyAsked(ben, at: "in the background")
            // The same if HELLO says it.
            ben.appState = state
            try settingUp("again") {
                try ben.reconnect()
                try ben.syncToHead()
                ben.peer.passed = []
                try anna.say("two", in: conversation)
            }
            try onlyAsked(ben, at: "after a HELLO from the background")
        },
        .must(
            "sync.dormant", "an inactive app's connection gets SYNC_REQUEST all the same",
            ["SYN-22: MUST still get SYNC_REQUEST"]
        ) { t in
            let (anna, ben, conversation) = try t.pair(features: ["live"])
            try ben.peer.send(.appState(AppState(phase: .inactive)))
            try ben.peer.expectAlive()
            ben.peer.passed = []
            try settingUp("a message") { try anna.say("one", in: conversation) }
            try onlyAsked(ben, at: "while inactive")
        },
        .must(
            "sync.unanswered", "who was told and shows no life gets PING after 10 s, then 1003",
            ["SYN-23: the server MUST send PING"], seconds: 60, timer: true
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") { try anna.say("one", in: conversation) }
            try ben.peer.expect(.syncRequest)
            guard let ping = try ben.peer.next(within: .seconds(25)) else {
                throw CaseEnd.failed("no PING in 25 s")
            }
            guard case .frame(let frame) = ping, case .ping = frame.body else {
                throw CaseEnd.failed("PING was expected")
            }
            guard let close = try ben.peer.next(within: .seconds(20)) else {
                throw CaseEnd.failed("no CLOSE in 20 s after PING")
            }
            guard case .frame(let end) = close, case .close(let body) = end.body else {
                throw CaseEnd.failed("CLOSE was expected")
            }
            try requireEqual(body.code, Code.timeout.rawValue, "CLOSE")
        },
    ]

    // MARK: - Resets

    static let resetCases: [ConformanceCase] = [
        .must(
            "sync.no-cursor", "without a cursor the feed comes from its start, with a reset",
            ["SYN-7: MUST then answer with `reset`", "SYN-24: This DELTA MUST start from `seq` 0"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try settingUp("a conversation") { _ = try anna.createConversation(with: []) }
            let delta = try anna.syncAnswer(SyncFrame(mode: .advance))
            try requireEqual(delta.reset?.reason, .noCursor, "reason")
            try requireEqual(delta.from?.seq, 0, "from")
            try requireEqual(delta.from?.epoch, anna.welcome.epoch, "epoch")
            try require(!delta.entries.isEmpty, "no entries")
        },
        .must(
            "sync.other-epoch",
            "a cursor of another epoch: reset, from the start, in the epoch in "
                + "force", ["SYN-24: This DELTA MUST start from `seq` 0"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try settingUp("a conversation") { _ = try anna.createConversation(with: []) }
            let delta = try anna.syncAnswer(
                SyncFrame(cursor: Cursor(epoch: t.newID(), seq: 1), applied: 1))
            try requireEqual(delta.reset?.reason, .epochChanged, "reason")
            try requireEqual(delta.from?.seq, 0, "from")
            try requireEqual(delta.from?.epoch, anna.welcome.epoch, "epoch")
        },
        .must(
            "sync.other-epoch-mutations",
            "mutations of a device that does not know the epoch are refused for a time",
            ["SYN-33: MUST be refused with 1001; their numbers are not taken"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try settingUp("a conversation") { _ = try anna.createConversation(with: []) }
            let number = anna.nextNumber
            anna.nextNumber += 3
            func made(_ offset: UInt64) -> Mutation {
                Mutation(number: number + offset, operation: create(t.newID()))
            }
            var frame = SyncFrame(cursor: Cursor(epoch: t.newID(), seq: 1), applied: 1)
            frame.mutations = [made(0)]
            let delta = try anna.syncAnswer(frame)
            let refused = Code.unavailable.rawValue
            try requireEqual(delta.results.map(\.code), [refused], "inside the SYNC")
            try requireEqual(try anna.mutate(made(1)).code, refused, "before an ACK")
            try require(delta.mutationFloor < number, "a number was taken")
            anna.apply(delta)
            try settingUp("a SYNC in the epoch in force") { try anna.syncToHead() }
            // No number was taken: each does what it says now, and none holds another back.
            for offset in 0...2 as ClosedRange<UInt64> {
                try requireEqual(try anna.mutate(made(offset)).code, 0, "after it")
            }
        },
        .must(
            "sync.reset-once", "the pages after a reset carry none",
            ["SYN-24: the pages after it MUST NOT carry `reset`"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try settingUp("conversations") {
                for _ in 0..<5 { _ = try anna.createConversation(with: [t.user("ben")]) }
            }
            let other = try t.device(of: anna.user, isSynced: false)
            var resets: [Bool] = []
            var delta = Delta(more: true)
            while delta.more {
                var frame = other.syncFrame
                frame.pageBytes = 200
                delta = try other.syncAnswer(frame)
                other.apply(delta)
                resets.append(delta.reset != nil)
            }
            try require(resets.count > 2, "15 entries came in \(resets.count) pages of 200 bytes")
            try require(resets[0], "no reset on the first page")
            try require(!resets.dropFirst().contains(true), "a reset on a later page")
        },
        .must(
            "sync.cursor-ahead",
            "a cursor above the head draws a new epoch, and the user's other "
                + "connections are closed with 3001",
            [
                "SYN-24: the server MUST draw a new epoch", "SYN-24: MUST be closed with 3001",
            ]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(of: anna.user)
            guard let cursor = anna.cursor else { throw CaseEnd.inconclusive("no cursor") }
            let ahead = Cursor(epoch: cursor.epoch, seq: cursor.seq + 1_000)
            let delta = try anna.syncAnswer(SyncFrame(cursor: ahead, applied: ahead.seq))
            try requireEqual(delta.reset?.reason, .cursorAhead, "reason")
            try requireEqual(delta.from?.seq, 0, "from")
            try require(delta.from?.epoch != cursor.epoch, "the epoch is the same")
            try beside.peer.send(.sync(beside.syncFrame), request: 77)
            try beside.peer.expectClose(.epochChanged)
            try settingUp("again") { try beside.reconnect() }
            let other = try beside.syncAnswer()
            try requireEqual(other.reset?.reason, .epochChanged, "reason on the other device")
            try requireEqual(other.to?.epoch, delta.to?.epoch, "epoch on the other device")
        },
    ]

    /// What the server holds the device's `applied` for: a peek without a cursor is from there.
    static func appliedKnown(of device: Device) throws -> UInt64? {
        try device.syncAnswer(SyncFrame(mode: .peek)).from?.seq
    }

    // MARK: - Peeks

    static let peekCases: [ConformanceCase] = [
        .must(
            "sync.peek", "a peek gives the newest first and moves no cursor",
            ["SYN-12: `to` MUST equal `from`: the cursor stays, `applied` is not taken"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                for number in 1...3 { try anna.say("\(number)", in: conversation) }
                _ = try ben.peer.expect(.syncRequest)
            }
            var frame = ben.syncFrame
            frame.mode = .peek
            let peeked = try ben.syncAnswer(frame)
            try requireEqual(peeked.to, peeked.from, "to")
            try requireEqual(peeked.from, ben.cursor, "from")
            let seqs = peeked.entries.map(\.seq)
            try requireEqual(seqs, seqs.sorted(by: >), "order")
            try require(seqs.count >= 3, "\(seqs.count) entries of 3 messages")
            // It is the cursor that counts, and what a peek says of `applied` does not.
            frame.cursor = ben.cursor.map { Cursor(epoch: $0.epoch, seq: 1) }
            frame.applied = peeked.head
            let whole = try ben.syncAnswer(frame)
            try requireEqual(whole.from, frame.cursor, "from of a peek from an older cursor")
            try require(whole.entries.count > seqs.count, "nothing above the older cursor")
            try requireEqual(try appliedKnown(of: ben), ben.applied, "applied after the peek")
            let first = seqs.last ?? 0
            try ben.peer.send(
                .ack(
                    Ack(
                        applied: ben.applied,
                        ranges: [InclusiveRange(first: first, last: peeked.head)])))
            try ben.syncToHead()
            try require(ben.gaps.isEmpty, ben.gaps.joined(separator: "; "))
            try requireEqual(
                ben.replica.texts(in: conversation), ["1", "2", "3"],
                "messages when the cursor passes them")
        },
        .must(
            "sync.peek-more", "a small peek gives the newest and says that there is more",
            ["SYN-12"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                for number in 1...4 { try anna.say("\(number)", in: conversation) }
                _ = try ben.peer.expect(.syncRequest)
            }
            var frame = ben.syncFrame
            frame.mode = .peek
            frame.pageBytes = 1
            let peeked = try ben.syncAnswer(frame)
            try requireEqual(peeked.entries.count, 1, "entries")
            try requireEqual(peeked.more, true, "more")
            guard case .message(let message) = peeked.entries.first?.body else {
                throw CaseEnd.failed("no message came")
            }
            try requireEqual(message.position, 4, "position")
        },
        .must(
            "sync.peek-only-looks", "a peek with mutations or read receipts is refused with 4003",
            ["SYN-12: A peek MUST NOT carry mutations or read receipts"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            var frame = anna.syncFrame
            frame.mode = .peek
            frame.reads = [ReadReceipt(conversation: t.newID(), through: 1)]
            try anna.peer.send(.sync(frame), request: 71)
            try anna.peer.expectError(.forbidden, request: 71)
            frame.reads = []
            frame.mutations = [
                Mutation(
                    number: 1,
                    operation: .createConversation(CreateConversation(conversation: t.newID())))
            ]
            try anna.peer.send(.sync(frame), request: 72)
            try anna.peer.expectError(.forbidden, request: 72)
        },
        .must(
            "sync.peek-no-reset", "a peek is never answered with a reset",
            ["SYN-12: a peek MUST NOT be answered with a reset"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            for cursor in [nil, Cursor(epoch: t.newID(), seq: 5)] {
                let peeked = try anna.syncAnswer(SyncFrame(cursor: cursor, mode: .peek))
                try require(peeked.reset == nil, "reset")
            }
        },
        .must(
            "sync.extension-peeks", "an extension peeks, and the app's cursor stays where it is",
            ["SYN-12", "SES-17"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let beside = try t.device(
                of: ben.user, id: ben.id, role: .extension, isSynced: false)
            try settingUp("a message") { try anna.say("one", in: conversation) }
            let peeked = try beside.syncAnswer(
                SyncFrame(cursor: ben.cursor, applied: ben.applied, mode: .peek))
            let messages = peeked.entries.compactMap { entry in
                if case .message(let message) = entry.body { message.position } else { nil }
            }
            try requireEqual(messages, [1], "positions of messages")
            try beside.peer.send(
                .ack(
                    Ack(
                        applied: peeked.head,
                        ranges: [
                            InclusiveRange(first: peeked.entries.last?.seq ?? 1, last: peeked.head)
                        ])))
            try beside.peer.expectAlive()
            try settingUp("again") { try ben.reconnect() }
            let delta = try ben.syncAnswer()
            try requireEqual(delta.from, ben.cursor, "from")
            try requireEqual(delta.entries.count, 1, "entries for the app")
        },
    ]
}
