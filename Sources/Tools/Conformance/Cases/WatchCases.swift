import Model
import Wire

/// What holds of every frame. An exchange in which everything changes is carried out, and judged
/// is what all cases have seen.
extension Conformance {
    static let watchCases: [ConformanceCase] = [
        .must(
            "sync.versions", "an object's newer entry has the higher version, whatever it is",
            [
                "SYN-1: MUST be the same for all devices of the user", "SYN-5", "MSG-32",
                "MSG-34: MUST take the place of the message in every feed",
            ], run: busy
        ).watching(.feed),
        .must(
            "sync.head", "head, `to` and `more` fit each other, and the head never goes back",
            ["SYN-11: MUST come from one consistent snapshot", "SYN-12"], run: busy
        ).watching(.head),
        .must(
            "sync.reset-from-start", "a reset begins at 0 and is never pushed between DELTAs",
            [
                "SYN-24: This DELTA MUST start from `seq` 0",
                "SYN-24: the pages after it MUST NOT carry `reset`",
            ], run: busy
        ).watching(.reset),
        .must(
            "sync.unread-everywhere",
            "every DELTA without more, asked for or not, names what its feed comes to",
            ["SYN-27: MUST name in `unread`"], run: busy
        ).watching(.unread),
        .must(
            "messaging.floor-everywhere", "every DELTA names the highest number taken",
            ["MSG-12: MUST be the highest number taken"], run: busy
        ).watching(.floor),
        .must(
            "history.as-the-feed", "what a PAGE or a snapshot holds is what the feed gave",
            ["HIS-1", "HIS-7: PAGE MUST hold that message", "HIS-17"], run: busy
        ).watching(.history),
    ]

    /// Changes of every kind, told to a device unasked, to one that peeks, and to one that comes
    /// when all is over and reads in small pages.
    private static func busy(_ t: Trial) throws {
        let (anna, ben, conversation) = try t.pair(features: ["live"])
        let beside = try t.device(of: ben.user)
        try settingUp("a conversation with changes") {
            for device in [ben, beside] { _ = try device.createConversation(with: []) }
            for text in ["one", "two", "three"] { try anna.say(text, in: conversation) }
            try ben.say("back", in: conversation)
            try ben.pump(until: "messages") { $0.messages(in: conversation).count == 4 }
            try beside.syncToHead()
            try ben.peer.send(
                .ack(
                    Ack(
                        applied: ben.applied,
                        reads: [ReadReceipt(conversation: conversation, through: 1)])))
            try ben.pump(until: "the read mark") { $0.readMark(of: conversation) != nil }
            try change(anna, ben, conversation, t)
            try anna.say("last", in: conversation)
            try ben.pump(until: "the last message") {
                $0.texts(in: conversation).contains("last")
            }
        }
        try settingUp("looks") {
            if !t.lacks("SYN-12") {
                for bytes in [0, 1] as [UInt32] {
                    var frame = beside.syncFrame
                    frame.mode = .peek
                    frame.pageBytes = bytes
                    _ = try beside.syncAnswer(frame)
                }
            }
            try beside.syncToHead()
            let fresh = try t.device(of: ben.user, isSynced: false)
            var hasMore = true
            while hasMore {
                var frame = fresh.syncFrame
                frame.pageBytes = 400
                let delta = try fresh.syncAnswer(frame)
                fresh.apply(delta)
                hasMore = delta.more
            }
            if !t.lacks("history") { try look(fresh, conversation) }
        }
    }

    /// What the server knows of changes beside messages, each of them twice.
    private static func change(
        _ anna: Device, _ ben: Device, _ conversation: ConversationID, _ t: Trial
    ) throws {
        let carl = t.user("carl")
        for round in [true, false] {
            if !t.lacks("MSG-25") {
                try does(
                    anna, "metadata",
                    .changeMetadata(
                        ChangeMetadata(
                            conversation: conversation,
                            changes: [MetadataChange(path: ["theme"], value: "\(round)")])))
            }
            if !t.lacks("MSG-26") {
                try does(
                    ben, "mute",
                    .muteConversation(
                        MuteConversation(
                            conversation: conversation, muted: round, forMs: 3_600_000)))
                try ben.say("muted: \(round)", in: conversation)
            }
            if !t.lacks("MSG-27") {
                try does(ben, "block", .blockUser(BlockUser(user: carl, blocked: round)))
            }
        }
        try does(
            anna, "add",
            .addParticipants(AddParticipants(conversation: conversation, users: [carl])))
        if !t.lacks("MSG-30") {
            try does(
                anna, "remove",
                .removeParticipants(RemoveParticipants(conversation: conversation, users: [carl])))
        }
        guard !t.lacks("MSG-33"), !t.lacks("MSG-34"), !t.lacks("MSG-35") else { return }
        for push in [nil, PushText(title: "t", body: "again")] {
            let message = try anna.say("edited", in: conversation)
            try does(
                anna, "edit",
                .editMessage(EditMessage(message: message, parts: [text("new")], push: push)))
        }
        for isForEveryone in [true, false] {
            let message = try anna.say("deleted", in: conversation)
            try ben.pump(until: "the message") { $0.arrivals(of: message) > 0 }
            try does(
                isForEveryone ? anna : ben, "delete",
                .deleteMessage(DeleteMessage(message: message, forEveryone: isForEveryone)))
        }
    }

    /// Reads beside the feed.
    private static func look(_ device: Device, _ conversation: ConversationID) throws {
        for body in [Fetch(conversation: conversation), Fetch(object: conversation.bytes)] {
            let request = device.request()
            try device.peer.send(.fetch(body), request: request)
            try device.peer.expect(.page, request: request)
        }
        let request = device.request()
        try device.peer.send(.snapshot(SnapshotFrame()), request: request)
        try device.peer.expect(.snapshotPage, request: request)
    }
}
