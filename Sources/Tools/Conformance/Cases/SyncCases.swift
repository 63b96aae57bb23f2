import Crypto
import Model
import Wire

extension Conformance {
    static let syncCases = feedCases + toldCases + resetCases + peekCases + unreadCases

    /// A user with conversations and messages in the feed, the newest last.
    private static func stocked(
        _ t: Trial, conversations: Int = 2, messages: Int = 6, bytes: Int = 100
    ) throws -> (Device, [ConversationID]) {
        let anna = try t.device(of: t.user("anna"))
        return try settingUp("a feed") {
            var made: [ConversationID] = []
            for _ in 0..<conversations {
                made.append(try anna.createConversation(with: [t.user("ben")]))
            }
            for number in 0..<messages {
                let text = "\(number) " + String(repeating: "x", count: bytes)
                try anna.say(text, in: made[number % conversations])
            }
            try anna.syncToHead()
            return (anna, made)
        }
    }

    // MARK: - The feed

    private static let feedCases: [ConformanceCase] = [
        .must(
            "sync.order",
            "the feed rises; a conversation comes before what is in it, messages in "
                + "the order of their positions",
            ["SYN-1", "SYN-4: The entry of a conversation MUST come before"]
        ) { t in
            let (anna, conversations) = try stocked(t)
            let other = try t.device(of: anna.user, isSynced: false)
            try other.syncToHead()
            try require(
                other.replica.violations.isEmpty,
                other.replica.violations.joined(separator: "; "))
            for conversation in conversations {
                let positions = other.replica.messages(in: conversation).map(\.position)
                try requireEqual(positions, [1, 2, 3], "positions")
            }
        },
        .must(
            "sync.complete", "a page after the other brings every entry once", ["SYN-10", "SYN-13"]
        ) { t in
            let (anna, conversations) = try stocked(t, messages: 8, bytes: 700)
            let other = try t.device(of: anna.user, isSynced: false)
            var pages = 0
            while true {
                var frame = other.syncFrame
                frame.pageBytes = 1_500
                let delta = try other.syncAnswer(frame)
                other.apply(delta)
                pages += 1
                guard delta.more else { break }
                try require(pages < 100, "100 pages and no end")
            }
            try require(other.gaps.isEmpty, other.gaps.joined(separator: "; "))
            for conversation in conversations {
                try requireEqual(
                    other.replica.texts(in: conversation), anna.replica.texts(in: conversation),
                    "messages")
            }
            let seqs = other.replica.log.map(\.seq)
            try requireEqual(Set(seqs).count, seqs.count, "different entries")
        },
        .must(
            "sync.same-feed", "all devices of a user get the same entries",
            ["SYN-1: MUST be the same for all devices of the user"]
        ) { t in
            let (anna, _) = try stocked(t)
            let first = try t.device(of: anna.user)
            let second = try t.device(of: anna.user)
            try requireEqual(first.replica.log, second.replica.log, "entries")
            try requireEqual(first.cursor, second.cursor, "cursor")
            try require(!first.replica.log.isEmpty, "the feed is empty")
        },
        .must(
            "sync.one-entry", "an object that changes has one entry, the newest",
            ["SYN-2: There MUST be one entry per object", "MSG-25"]
        ) { t in
            let (anna, conversations) = try stocked(t, conversations: 1, messages: 1)
            for value in ["one", "two", "three"] {
                let result = try anna.mutate(
                    .changeMetadata(
                        ChangeMetadata(
                            conversation: conversations[0],
                            changes: [MetadataChange(path: ["theme"], value: value)])))
                try requireEqual(result.code, 0, "change metadata")
            }
            let other = try t.device(of: anna.user)
            let found = other.replica.log.filter {
                if case .metadata = $0.body { true } else { false }
            }
            try requireEqual(found.count, 1, "entries of the metadata")
        },
        .must(
            "sync.answer", "a SYNC gets one DELTA with its number, from its cursor to the head",
            ["SYN-10: MUST answer a SYNC with one DELTA with the same request number", "SYN-9"],
            bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            let old = anna.cursor
            try settingUp("a conversation") { _ = try anna.createConversation(with: []) }
            try anna.peer.send(.sync(anna.syncFrame), request: 900)
            let delta = try anna.peer.expect(.delta, request: 900)
            try require(delta.reset == nil, "reset")
            try requireEqual(delta.from, old, "from")
            try requireEqual(delta.more, false, "more")
            try requireEqual(delta.to?.seq, delta.head, "to without more")
            try require(delta.entries.count >= 2, "entries are missing")
            try anna.peer.expectAlive()
        },
        .must(
            "sync.snapshot", "`to` is the last entry's number if there is more, else the head",
            [
                "SYN-11: MUST come from one consistent snapshot",
                "SYN-11: `to` MUST be `head` if `more` is not set",
            ]
        ) { t in
            let (anna, _) = try stocked(t, messages: 8, bytes: 700)
            let other = try t.device(of: anna.user, isSynced: false)
            var hadMore = false
            while true {
                var frame = other.syncFrame
                frame.pageBytes = 1_500
                let delta = try other.syncAnswer(frame)
                other.apply(delta)
                let last = delta.entries.last?.seq ?? 0
                if delta.more {
                    hadMore = true
                    try requireEqual(delta.to?.seq, last, "to with more")
                } else {
                    try requireEqual(delta.to?.seq, delta.head, "to without more")
                    try require(last <= delta.head, "an entry above the head")
                    break
                }
            }
            try require(hadMore, "8 messages of 700 bytes in a page of 1,500")
        },
        .must(
            "sync.page-bytes", "`page_bytes` bounds the entries; one comes even if it is larger",
            [
                "SYN-9: MUST bound the bytes of the DELTA's entries",
                "SYN-9: and MUST send one entry",
            ]
        ) { t in
            let (anna, _) = try stocked(t, messages: 6, bytes: 900)
            for bound in [1, 2_000] as [UInt32] {
                let other = try t.device(of: anna.user, isSynced: false)
                var delta = Delta(more: true)
                while delta.more {
                    var frame = other.syncFrame
                    frame.pageBytes = bound
                    delta = try other.syncAnswer(frame)
                    other.apply(delta)
                    let bytes = delta.entries.reduce(0) { $0 + $1.encoded.count }
                    try require(
                        delta.entries.count == 1 || bytes <= Int(bound) || delta.entries.isEmpty,
                        "\(bytes) bytes in \(delta.entries.count) entries, asked for \(bound)")
                }
                try require(other.gaps.isEmpty, other.gaps.joined(separator: "; "))
                try requireEqual(other.cursor, anna.cursor, "cursor at the end")
            }
            // One byte less than the next two take.
            let full = anna.replica.log
            let sizes = full.map { $0.encoded.count }
            for place in 1..<(full.count - 1) {
                let bound = sizes[place] + sizes[place + 1] - 1
                let cursor = anna.cursor.map { Cursor(epoch: $0.epoch, seq: full[place - 1].seq) }
                let delta = try anna.syncAnswer(
                    SyncFrame(cursor: cursor, applied: 1, pageBytes: UInt32(bound)))
                let bytes = delta.entries.reduce(0) { $0 + $1.encoded.count }
                try require(
                    delta.entries.count == 1 || bytes <= bound,
                    "\(bytes) bytes in \(delta.entries.count) entries, asked for \(bound)")
            }
        },
        .must(
            "sync.one-open", "a SYNC while another is unanswered is refused with 4006",
            ["SYN-10: MUST NOT send a SYNC while another, or HELLO's, is unanswered"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            // Mutations keep the first one from being answered before the second is read.
            var first = anna.syncFrame
            first.mutations = (1...20).map { number in
                Mutation(
                    number: number,
                    operation: .createConversation(
                        CreateConversation(conversation: t.newID())))
            }
            try anna.peer.send(.sync(first), request: 901)
            try anna.peer.send(.sync(anna.syncFrame), request: 902)
            var hasAnswer = false
            var second: ReceivedFrame?
            while !hasAnswer || second == nil {
                guard let arrival = try anna.peer.next(), case .frame(let frame) = arrival else {
                    throw CaseEnd.failed("a SYNC was not answered")
                }
                if frame.request == 902 { second = frame }
                if case .delta = frame.body, frame.request == 901 { hasAnswer = true }
            }
            switch second?.body {
            case .error(let error): try requireEqual(error.code, Code.limit.rawValue, "ERROR")
            // It was answered before the second one was read.
            case .delta where hasAnswer: break
            default: throw CaseEnd.failed("the second SYNC got \(second?.summary ?? "nothing")")
            }
        },
        .must(
            "sync.restored", "a device with an older cursor than it acknowledged is believed",
            ["SYN-16: MUST be taken at its word: after SYNC its `applied` is the lower"]
        ) { t in
            let (anna, _) = try stocked(t)
            let full = anna.replica.log
            guard full.count > 3, let newest = anna.cursor else {
                throw CaseEnd.inconclusive("a feed of \(full.count) entries")
            }
            try settingUp("again") { try anna.reconnect() }
            let old = Cursor(epoch: newest.epoch, seq: full[1].seq)
            let delta = try anna.syncAnswer(SyncFrame(cursor: old, applied: old.seq))
            try require(delta.reset == nil, "reset")
            try requireEqual(delta.from, old, "from")
            try requireEqual(delta.entries.map(\.seq), full.dropFirst(2).map(\.seq), "entries")
            if t.lacks("SYN-12") { return }
            try requireEqual(try appliedKnown(of: anna), old.seq, "applied")
            // The lower of both, and nothing after a reset.
            _ = try anna.syncAnswer(SyncFrame(cursor: newest, applied: full[0].seq))
            try requireEqual(try appliedKnown(of: anna), full[0].seq, "applied below the cursor")
            _ = try anna.syncAnswer(SyncFrame())
            try requireEqual(try appliedKnown(of: anna), 0, "applied after a reset")
        },
        .must(
            "sync.nothing-again", "what was acknowledged does not come again", ["SYN-8", "SYN-10"]
        ) { t in
            let (anna, conversations) = try stocked(t)
            try settingUp("again") { try anna.reconnect() }
            let nothing = try anna.syncAnswer()
            try requireEqual(nothing.entries.count, 0, "entries")
            try settingUp("one more") { try anna.say("new", in: conversations[0]) }
            let one = try anna.syncAnswer()
            try require(
                one.entries.allSatisfy { $0.seq > anna.applied },
                "an entry at or below \(anna.applied)")
            try requireEqual(one.entries.count, 1, "entries")
        },
        .must(
            "sync.ack-ahead", "an ACK above the feed's end is refused with 3003",
            ["SYN-15: MUST be refused with ERROR 3003", "FRM-10"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try anna.peer.send(.ack(Ack(applied: anna.head + 1_000)), request: 31)
            try anna.peer.expectError(.ackAhead, request: 31)
            try anna.peer.send(
                .ack(
                    Ack(
                        applied: anna.applied,
                        ranges: [InclusiveRange(first: 1, last: anna.head + 1_000)])),
                request: 32)
            try anna.peer.expectError(.ackAhead, request: 32)
            try anna.peer.expectAlive()
        },
        .must(
            "sync.ack-older-connection", "an ACK may name a DELTA of the older connection",
            ["SYN-15"]
        ) { t in
            let (anna, _) = try stocked(t)
            let other = try t.device(of: anna.user, isSynced: false)
            while try other.sync().more {}
            try settingUp("again") { try other.reconnect() }
            try other.acknowledge()
            for frame in try other.peer.frames(during: .milliseconds(300)) {
                if case .error = frame.body { throw CaseEnd.failed("\(frame.summary) came") }
            }
            try other.peer.expectAlive()
        },
        .must(
            "sync.unread", "a DELTA without more says how much is unread",
            ["SYN-27: MUST name in `unread`"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                for text in ["one", "two"] { try anna.say(text, in: conversation) }
                try ben.pump(until: "messages") { $0.messages(in: conversation).count == 2 }
                try ben.syncToHead()
            }
            try requireEqual(ben.unread, 2, "unread")
            try ben.peer.send(
                .ack(
                    Ack(
                        applied: ben.applied,
                        reads: [ReadReceipt(conversation: conversation, through: 1)])))
            try ben.pump(until: "the read mark") {
                $0.readMark(of: conversation)?.through == 1
            }
            try ben.syncToHead()
            try requireEqual(ben.unread, 1, "unread")
        },
    ]
}
