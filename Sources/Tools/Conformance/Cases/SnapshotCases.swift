import Model
import Wire

/// What is in a snapshot (HIS-17).
extension Conformance {
    static let snapshotContentCases: [ConformanceCase] = [
        .must(
            "history.snapshot-content",
            "a snapshot gives all that the feed gave: state, messages, counts, blocks, "
                + "announcements",
            ["HIS-17", "HIS-24: MUST hold its `Tombstone` at its position", "HIS-16"]
        ) { t in
            let ben = try settingUp("conversations of all kinds") { try furnished(t) }
            for (messages, pageBytes) in [(3, 0), (100, 0), (100, 1)] as [(UInt32, UInt32)] {
                let reader = Device(trial: t, user: ben.user, id: t.newID(), role: .app)
                reader.features = ["snapshot"]
                try settingUp("login") { try reader.logIn() }
                let pages = try pages(
                    reader, SnapshotFrame(messages: messages, pageBytes: pageBytes))
                let reading = SnapshotReading(
                    pages, messages: Int(messages), hasRoom: pageBytes == 0, user: ben.user,
                    log: ben.replica.log)
                let differences = reading.differences
                try require(
                    differences.isEmpty,
                    "\(messages) messages asked for: \(differences.joined(separator: "; "))")
                try requireEqual(pages.last?.start, ben.cursor, "start")
                try requireEqual(
                    pages.flatMap(\.conversations).compactMap(\.conversation), order(ben.replica),
                    "conversations by activity")
                reader.cursor = pages.last?.start
                let delta = try reader.syncAnswer()
                try requireEqual(delta.entries.count, 0, "entries above the start")
                try requireEqual(delta.unread, pages.last?.unread, "unread above the start")
            }
        }
    ]

    private static func pages(_ device: Device, _ asked: SnapshotFrame) throws -> [SnapshotPage] {
        var asked = asked
        var pages: [SnapshotPage] = []
        repeat {
            let request = device.request()
            try device.peer.send(.snapshot(asked), request: request)
            pages.append(try device.peer.expect(.snapshotPage, request: request))
            asked.continuation = pages.last?.continuation ?? []
            try require(pages.count < 20, "20 pages and no end")
        } while !asked.continuation.isEmpty
        return pages
    }

    /// Conversations by their newest message, the newest first.
    private static func order(_ replica: Replica) -> [ConversationID] {
        var order: [ConversationID] = []
        for entry in replica.log.sorted(by: { $0.seq > $1.seq }) {
            guard case .message(let message) = entry.body, message.editedMs == 0,
                let conversation = entry.conversation, !order.contains(conversation)
            else { continue }
            order.append(conversation)
        }
        return order
    }

    /// A user with one of everything that a snapshot holds, whose device has followed the feed.
    private static func furnished(_ t: Trial) throws -> Device {
        let (anna, ben, first) = try t.pair()
        let second = try anna.createConversation(with: [ben.user, t.user("carl")])
        for number in 1...6 { try anna.say("\(number)", in: first) }
        try ben.say("mine", in: first)
        for number in 1...2 { try anna.say("\(number)", in: second) }
        try ben.pump(until: "messages") {
            $0.messages(in: first).count == 7 && $0.messages(in: second).count == 2
        }
        let messages = ben.replica.entries(of: first).filter { entry in
            if case .message = entry.body { true } else { false }
        }
        if !t.lacks("MSG-25") {
            for conversation in [first, second] {
                try does(
                    anna, "metadata",
                    .changeMetadata(
                        ChangeMetadata(
                            conversation: conversation,
                            changes: [MetadataChange(path: ["name"], value: "x")])))
            }
        }
        if !t.lacks("MSG-26") {
            try does(
                ben, "mute",
                .muteConversation(MuteConversation(conversation: second, muted: true)))
        }
        if !t.lacks("MSG-27") {
            try does(
                ben, "block", .blockUser(BlockUser(user: t.user("eve"), blocked: true)))
        }
        if !t.lacks("MSG-34"), !t.lacks("MSG-35") {
            for (place, isForEveryone) in [(1, false), (4, true)] {
                try does(
                    isForEveryone ? anna : ben, "delete",
                    .deleteMessage(
                        DeleteMessage(
                            message: MessageID(messages[place].object),
                            forEveryone: isForEveryone)))
            }
        }
        if t.server.credentials.publish?.api != nil, !t.lacks("MSG-50") {
            try t.backend().call(
                "POST", "/v1/announcements",
                "{\"id\":\"\(t.newID() as MessageID)\",\"users\":[\(TokenDraft.quoted(ben.user))],"
                    + "\"parts\":[{\"mime_type\":\"text/plain\",\"text\":\"news\"}]}")
        }
        try read(anna, ben, first, t)
        return ben
    }

    /// Ben reads some of Anna's messages, Anna reads Ben's, and Ben hears of it all.
    private static func read(
        _ anna: Device, _ ben: Device, _ conversation: ConversationID, _ t: Trial
    ) throws {
        var frame = ben.syncFrame
        frame.reads = [
            ReadReceipt(
                conversation: conversation, through: 1,
                ranges: [InclusiveRange(first: 3, last: 3)])
        ]
        ben.apply(try ben.syncAnswer(frame))
        try anna.syncToHead()
        try anna.peer.send(
            .ack(
                Ack(
                    applied: anna.applied,
                    reads: [ReadReceipt(conversation: conversation, through: 7)])))
        // Others' changes come in their own time: metadata twice, a tombstone, an announcement.
        var wanted: [FeedObject.Kind: Int] = [:]
        if !t.lacks("MSG-25") { wanted[.metadata] = 2 }
        if t.server.credentials.publish?.api != nil, !t.lacks("MSG-50") {
            wanted[.announcement] = 1
        }
        let tombstones = t.lacks("MSG-34") || t.lacks("MSG-35") ? 0 : 2
        try ben.poll(until: "the receipt and all else") { replica in
            let entries = replica.objects.values
            let deleted = entries.count { entry in
                if case .tombstone = entry.body { true } else { false }
            }
            return replica.receipt(of: anna.user, in: conversation)?.readThrough == 7
                && deleted == tombstones
                && wanted.allSatisfy { kind, count in
                    entries.count { FeedObject($0).kind == kind } == count
                }
        }
    }
}
