import Model
import Wire

extension Conformance {
    // MARK: - Receipts

    /// A conversation with so many messages of Anna's, which both have.
    private static func told(
        _ t: Trial, messages: Int
    ) throws -> (Device, Device, ConversationID) {
        let (anna, ben, conversation) = try t.pair()
        try settingUp("messages") {
            for number in 1...messages { try anna.say("\(number)", in: conversation) }
            for device in [anna, ben] {
                try device.pump(until: "messages") {
                    $0.messages(in: conversation).count == messages
                }
            }
        }
        return (anna, ben, conversation)
    }

    private static func read(
        _ conversation: ConversationID, through: UInt64, ranges: [InclusiveRange] = []
    ) -> ReadReceipt {
        ReadReceipt(conversation: conversation, through: through, ranges: ranges)
    }

    static let receiptCases: [ConformanceCase] = [
        .must(
            "messaging.delivered", "delivered follows from `applied`",
            ["MSG-16", "MSG-21: MUST get a receipt entry"]
        ) { t in
            let (anna, ben, conversation) = try told(t, messages: 2)
            try anna.poll(until: "the receipt") {
                ($0.receipt(of: ben.user, in: conversation)?.deliveredThrough ?? 0) >= 2
            }
            try requireEqual(
                anna.replica.receipt(of: ben.user, in: conversation)?.readThrough, 0,
                "read through")
        },
        .must(
            "messaging.read",
            "a read receipt brings a read mark to the own devices and a receipt "
                + "to the author",
            ["MSG-17", "MSG-20: MUST get a read mark entry", "MSG-21: MUST get a receipt entry"],
            bytes: true
        ) { t in
            let (anna, ben, conversation) = try told(t, messages: 3)
            let beside = try t.device(of: ben.user)
            try ben.peer.send(
                .ack(Ack(applied: ben.applied, reads: [read(conversation, through: 2)])))
            for device in [ben, beside] {
                try device.pump(until: "the read mark") {
                    $0.readMark(of: conversation)?.through == 2
                }
            }
            try anna.poll(until: "the receipt") {
                $0.receipt(of: ben.user, in: conversation)?.readThrough == 2
            }
        },
        .must(
            "messaging.receipt-rate", "of one reader an author gets one receipt entry in 2 s",
            ["MSG-21: MUST get a receipt entry, at most one per conversation and reader in 2 s"],
            seconds: 60
        ) { t in
            let (anna, ben, conversation) = try told(t, messages: 60)
            // When each version came at the latest, and when it was not there yet.
            var comings: [(after: Moment, before: Moment)] = []
            var absent = ContinuousClock.now
            for position in 1...60 as ClosedRange<UInt64> where comings.count < 3 {
                try ben.peer.send(
                    .ack(Ack(applied: ben.applied, reads: [read(conversation, through: position)])))
                _ = try ben.peer.frames(during: .milliseconds(100))
                let asked = ContinuousClock.now
                let delta = try anna.sync()
                let isHere = delta.entries.contains { entry in
                    guard case .receipt(let state) = entry.body else { return false }
                    return state.user == ben.user
                }
                if isHere { comings.append((absent, .now)) }
                absent = asked
            }
            guard comings.count > 1 else { throw CaseEnd.failed("60 read, and no second receipt") }
            for (first, second) in zip(comings, comings.dropFirst()) {
                let time = first.after.duration(to: second.before)
                try require(time >= .milliseconds(1_900), "two receipts within \(time)")
            }
        },
        .must(
            "messaging.read-in-sync",
            "a read receipt inside a SYNC is taken before the feed is read",
            ["MSG-17", "MSG-19", "SYN-9: which MUST be taken before the feed is read"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 2)
            var frame = ben.syncFrame
            frame.reads = [read(conversation, through: 2)]
            ben.apply(try ben.syncAnswer(frame))
            try requireEqual(ben.replica.readMark(of: conversation)?.through, 2, "read mark")
        },
        .must(
            "messaging.read-other-epoch",
            "read receipts beside a cursor of another epoch are not taken",
            ["SYN-32: or above the head MUST NOT be taken"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 2)
            let elsewhere = SyncFrame(
                cursor: Cursor(epoch: t.newID(), seq: 1), applied: 1,
                reads: [read(conversation, through: 2)])
            // That it is a reset is `sync.other-epoch`'s.
            _ = try ben.syncAnswer(elsewhere)
            ben.apply(try ben.syncAnswer())
            let through = ben.replica.readMark(of: conversation)?.through ?? 0
            try requireEqual(through, 0, "read mark")
        },
        .must(
            "messaging.read-rises", "read only rises: an older receipt changes nothing",
            ["MSG-18: Both MUST only rise"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 4)
            for through in [3, 1] as [UInt64] {
                var frame = ben.syncFrame
                frame.reads = [read(conversation, through: through)]
                ben.apply(try ben.syncAnswer(frame))
                try requireEqual(
                    ben.replica.readMark(of: conversation)?.through, 3, "read mark")
            }
            let other = try t.device(of: ben.user)
            try requireEqual(other.replica.readMark(of: conversation)?.through, 3, "read mark")
        },
        .must(
            "messaging.read-ranges", "single messages read above the mark are a union of ranges",
            ["MSG-17", "MSG-18"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 8)
            for ranges in [
                [InclusiveRange(first: 5, last: 6)], [InclusiveRange(first: 3, last: 3)],
                [InclusiveRange(first: 6, last: 7)],
            ] {
                var frame = ben.syncFrame
                frame.reads = [read(conversation, through: 1, ranges: ranges)]
                ben.apply(try ben.syncAnswer(frame))
            }
            let mark = ben.replica.readMark(of: conversation)
            try requireEqual(mark?.through, 1, "through")
            try requireEqual(
                mark?.ranges,
                [InclusiveRange(first: 3, last: 3), InclusiveRange(first: 5, last: 7)], "ranges")
            // What closes the gap raises the mark.
            var frame = ben.syncFrame
            frame.reads = [read(conversation, through: 2)]
            ben.apply(try ben.syncAnswer(frame))
            let closed = ben.replica.readMark(of: conversation)
            try require(
                closed?.through == 3 || closed?.ranges.first?.first == 3,
                "position 3 is no longer read")
        },
        .must(
            "messaging.read-beyond", "positions that do not exist yet are left out",
            ["MSG-17: Positions that do not exist yet MUST be left out"]
        ) { t in
            let (anna, ben, conversation) = try told(t, messages: 2)
            var frame = ben.syncFrame
            frame.reads = [read(conversation, through: 1_000)]
            ben.apply(try ben.syncAnswer(frame))
            try requireEqual(ben.replica.readMark(of: conversation)?.through, 2, "read mark")
            try settingUp("one more") {
                try anna.say("unread", in: conversation)
                try ben.pump(until: "the message") { $0.messages(in: conversation).count == 3 }
                try ben.syncToHead()
            }
            try requireEqual(ben.unread, 1, "unread")
        },
        .must(
            "messaging.read-out-of-reach",
            "a receipt for a conversation out of reach is passed over",
            ["CON-13", "MSG-17: conversations out of reach MUST be passed over"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 1)
            let (_, _, foreign) = try t.pair()
            var frame = ben.syncFrame
            frame.reads = [
                read(t.newID(), through: 1), read(foreign, through: 1),
                read(conversation, through: 1),
            ]
            ben.apply(try ben.syncAnswer(frame))
            try requireEqual(ben.replica.readMark(of: conversation)?.through, 1, "read mark")
        },
        .must(
            "messaging.read-limits", "more than 256 receipts, or ranges in one: ERROR 4006",
            ["MSG-17: MUST be refused with ERROR 4006"]
        ) { t in
            let (_, ben, conversation) = try told(t, messages: 1)
            let many = (0..<257).map { _ in read(t.newID(), through: 1) }
            try ben.peer.send(.ack(Ack(applied: ben.applied, reads: many)), request: 81)
            try ben.peer.expectError(.limit, request: 81)
            let ranges = (1...257 as ClosedRange<UInt64>).map {
                InclusiveRange(first: 2 * $0, last: 2 * $0)
            }
            try ben.peer.send(
                .ack(
                    Ack(
                        applied: ben.applied,
                        reads: [read(conversation, through: 0, ranges: ranges)])), request: 82)
            try ben.peer.expectError(.limit, request: 82)
            var frame = ben.syncFrame
            frame.reads = many
            try ben.peer.send(.sync(frame), request: 83)
            try ben.peer.expectError(.limit, request: 83)
            try ben.peer.expectAlive()
        },
        .must(
            "messaging.receipts-off", "with `receipts_off` no receipt comes, and read is kept",
            ["MSG-28: receipt entries MUST NOT be written"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let ben = try t.device(of: t.user("ben"))
            let conversation: ConversationID = t.newID()
            try settingUp("a conversation") {
                try does(
                    anna, "create",
                    .createConversation(
                        CreateConversation(
                            conversation: conversation, participants: [ben.user],
                            receiptsOff: true)))
                try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            }
            var frame = ben.syncFrame
            frame.reads = [read(conversation, through: 1)]
            ben.apply(try ben.syncAnswer(frame))
            try requireEqual(ben.replica.readMark(of: conversation)?.through, 1, "read mark")
            // Receipts may take 2 s (MSG-21).
            _ = try anna.peer.frames(during: .milliseconds(2_600))
            try anna.syncToHead()
            try require(
                anna.replica.receipt(of: ben.user, in: conversation) == nil, "a receipt came")
        },
    ]
}
