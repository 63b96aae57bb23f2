import Model
import Wire

/// What counts as unread (SYN-27).
extension Conformance {
    private static func settled(_ device: Device, _ texts: [String], _ id: ConversationID) throws {
        try device.pump(until: "the messages") {
            $0.texts(in: id).suffix(texts.count) == texts[...]
        }
        try device.syncToHead()
    }

    static let unreadCases: [ConformanceCase] = [
        .must(
            "sync.unread-own", "neither own messages nor those without push text are unread",
            ["SYN-27"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                try anna.say("one", in: conversation)
                try ben.say("own", in: conversation)
                try does(
                    anna, "send",
                    .sendMessage(
                        SendMessage(
                            conversation: conversation, message: t.newID(),
                            parts: [
                                Part(mimeType: "text/plain", content: Array("silent".utf8))
                            ])))
            }
            try settled(ben, ["one", "own", "silent"], conversation)
            try requireEqual(ben.unread, 1, "unread")
        },
        .must(
            "sync.unread-left",
            "of a conversation that was left nothing is unread, and after coming back what came "
                + "since",
            ["SYN-27", "MSG-30", "MSG-32"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                for text in ["one", "two"] { try anna.say(text, in: conversation) }
                try settled(ben, ["one", "two"], conversation)
            }
            try requireEqual(ben.unread, 2, "unread before")
            try does(
                anna, "remove",
                .removeParticipants(
                    RemoveParticipants(conversation: conversation, users: [ben.user])))
            try ben.pump(until: "the removal") { removed($0, ben.user) }
            try ben.syncToHead()
            try requireEqual(ben.unread, 0, "unread after the removal")
            try settingUp("coming back") {
                try does(
                    anna, "add",
                    .addParticipants(
                        AddParticipants(conversation: conversation, users: [ben.user])))
                try anna.say("three", in: conversation)
            }
            try settled(ben, ["three"], conversation)
            try requireEqual(ben.unread, 1, "unread after coming back")
        },
        .must(
            "sync.unread-muted",
            "while a conversation is muted nothing of it is counted, and afterwards everything",
            ["SYN-27", "MSG-26"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            func mute(_ isMuted: Bool) throws {
                try does(
                    ben, "mute",
                    .muteConversation(
                        MuteConversation(conversation: conversation, muted: isMuted)))
            }
            try settingUp("messages") {
                try anna.say("one", in: conversation)
                try mute(true)
                try anna.say("two", in: conversation)
            }
            try settled(ben, ["one", "two"], conversation)
            try requireEqual(ben.unread, 0, "unread while muted")
            try mute(false)
            try ben.syncToHead()
            try requireEqual(ben.unread, 2, "unread afterwards")
        },
        .must(
            "sync.unread-blocked",
            "a block takes nothing back, and what it kept away never counts",
            ["SYN-27", "MSG-27"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            func block(_ isBlocked: Bool) throws {
                try does(
                    ben, "block", .blockUser(BlockUser(user: anna.user, blocked: isBlocked)))
            }
            try settingUp("messages") {
                try anna.say("before", in: conversation)
                try settled(ben, ["before"], conversation)
                try block(true)
                try anna.say("kept away", in: conversation)
                try block(false)
                try anna.say("after", in: conversation)
            }
            try settled(ben, ["before", "after"], conversation)
            try requireEqual(ben.unread, 2, "unread")
            var frame = ben.syncFrame
            frame.reads = [ReadReceipt(conversation: conversation, through: 1)]
            ben.apply(try ben.syncAnswer(frame))
            try requireEqual(ben.unread, 1, "unread after reading the first")
        },
    ]
}
