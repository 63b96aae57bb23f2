import Model
import Wire

extension Conformance {
    private static func edit(
        _ message: MessageID, _ words: String, push: PushText? = nil, base: UInt64 = 0
    ) -> Mutation.Operation {
        .editMessage(
            EditMessage(message: message, parts: [text(words)], push: push, baseVersion: base))
    }

    private static func delete(_ message: MessageID, everyone: Bool) -> Mutation.Operation {
        .deleteMessage(DeleteMessage(message: message, forEveryone: everyone))
    }

    private static func tombstone(_ replica: Replica, of object: [UInt8]) -> TombstoneState? {
        replica.log.reversed().lazy.compactMap { entry in
            if case .tombstone(let state) = entry.body, entry.object == object {
                state
            } else {
                nil
            }
        }.first
    }

    static func removed(_ replica: Replica, _ user: String) -> Bool {
        replica.log.contains { entry in
            if case .participant(let state) = entry.body {
                state.removed && state.user == user
            } else {
                false
            }
        }
    }

    private static func remove(
        _ users: [String], from conversation: ConversationID
    ) -> Mutation.Operation {
        .removeParticipants(RemoveParticipants(conversation: conversation, users: users))
    }

    private static func add(
        _ users: [String], to conversation: ConversationID
    ) -> Mutation.Operation {
        .addParticipants(AddParticipants(conversation: conversation, users: users))
    }

    // MARK: - Removals, edits, deletions

    static let changeCases: [ConformanceCase] = [
        .must(
            "messaging.removed", "a removed user gets the removal last, and nothing after it",
            [
                "MSG-30: it is the last change of the conversation that MUST come to the removed",
                "MSG-31: MUST NOT show such a user what was changed after it",
            ]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let message = try settingUp("a message") {
                let message = try anna.say("before", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
                return message
            }
            try does(anna, "remove", remove([ben.user], from: conversation))
            try ben.pump(until: "the removal") { removed($0, ben.user) }
            try settingUp("what comes after") {
                try anna.say("after", in: conversation)
                try does(anna, "edit", edit(message, "changed"))
                _ = try anna.createConversation(with: [ben.user])
            }
            // The next conversation shows that the news has gone round.
            try ben.pump(until: "another conversation") { replica in
                replica.objects.values.contains { entry in
                    if case .conversationState = entry.body {
                        entry.conversation != conversation
                    } else {
                        false
                    }
                }
            }
            try requireEqual(ben.replica.texts(in: conversation), ["before"], "messages")
            try refuses(ben, "send", .notFound, send([text("x")], to: conversation, t.newID()))
            try anna.pump(until: "the removal") { removed($0, ben.user) }
        },
        .must(
            "messaging.removed-late", "a removed user who syncs later gets nothing changed since",
            ["MSG-31: MUST NOT show such a user what was changed after it"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let other = try t.device(of: ben.user, isSynced: false)
            let message = try settingUp("a message") { try anna.say("before", in: conversation) }
            try settingUp("removal and edit") {
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
                try does(anna, "remove", remove([ben.user], from: conversation))
                try does(anna, "edit", edit(message, "secret"))
                try anna.say("also secret", in: conversation)
                try ben.pump(until: "the removal") { removed($0, ben.user) }
            }
            try other.syncToHead()
            let texts = other.replica.texts(in: conversation)
            try require(
                texts.allSatisfy { $0 == "before" }, "messages: \(texts.joined(separator: ", "))")
        },
        .must(
            "messaging.left", "naming oneself is leaving; a user passed over is no fault",
            ["MSG-30: who does not take part MUST be passed over"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try does(ben, "leave", remove([ben.user, t.user("nobody")], from: conversation))
            try anna.pump(until: "the removal") { removed($0, ben.user) }
            try ben.pump(until: "the removal") { removed($0, ben.user) }
        },
        .must(
            "messaging.added-again", "who is added again sees what comes from then on", ["MSG-32"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("removal") {
                try does(anna, "remove", remove([ben.user], from: conversation))
                try ben.pump(until: "the removal") { removed($0, ben.user) }
                try anna.say("between", in: conversation)
            }
            // Refused for a time while a change from before is on its way.
            var result = MutationResult(code: Code.rateLimited.rawValue)
            for _ in 0..<20 where result.code == Code.rateLimited.rawValue {
                result = try anna.mutate(
                    .addParticipants(
                        AddParticipants(conversation: conversation, users: [ben.user])))
                if result.code == Code.rateLimited.rawValue {
                    anna.nextNumber -= 1
                    _ = try anna.peer.frames(during: .milliseconds(200))
                }
            }
            try requireEqual(result.code, 0, "add again")
            try settingUp("a message") { try anna.say("again", in: conversation) }
            try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            try requireEqual(ben.replica.texts(in: conversation), ["again"], "messages")
        },
        .must(
            "messaging.large", "participants of a large conversation are not told of each other",
            ["MSG-38: others' MUST NOT come for them"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("257 participants") {
                try anna.createConversation(with: (1...256).map { t.user("member\($0)") })
            }
            let late = [t.user("late1"), t.user("late2")]
            try does(anna, "add", add(late, to: conversation))
            try does(anna, "remove", remove([late[1]], from: conversation))
            // The message shows that what was before it has come.
            try anna.say("after", in: conversation)
            try anna.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            try requireEqual(
                anna.replica.conversation(conversation)?.participants, 258, "participants")
            try requireEqual(
                anna.replica.participants(of: conversation), [anna.user], "Participant entries")
        },
        .must(
            "messaging.edited", "an edit replaces the message for whoever got it, one version on",
            [
                "MSG-33: MUST replace parts and push text",
                "MSG-33: MUST be refused with 3012 unless the message",
            ]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let message = try settingUp("a message") {
                let message = try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
                return message
            }
            let version = ben.replica.log.last { $0.object == message.bytes }?.version ?? 0
            try refuses(ben, "edit by another", .forbidden, edit(message, "x"))
            try refuses(
                anna, "edit of an old version", .versionConflict,
                edit(message, "x", base: version + 7))
            var edits: UInt64 = 0
            for push in [PushText(title: "new", body: "text"), nil] {
                edits += 1
                let words = "edit \(edits)"
                try does(anna, "edit", edit(message, words, push: push, base: version + edits - 1))
                for device in [anna, ben] {
                    try device.pump(until: "the edit") { $0.texts(in: conversation) == [words] }
                    let entry = device.replica.log.last { $0.object == message.bytes }
                    try requireEqual(entry?.version, version + edits, "version")
                    guard case .message(let state) = entry?.body else { continue }
                    try require(state.editedMs > 0, "no edited_ms")
                    try requireEqual(state.position, 1, "position")
                    try requireEqual(state.push, push, "push text")
                }
            }
        },
        .must(
            "messaging.deleted", "deleting for everyone puts a tombstone in every feed",
            [
                "MSG-34: MUST take the place of the message in every feed",
                "MSG-34: Editing it MUST be refused with 4005",
            ]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let message = try settingUp("a message") {
                let message = try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
                return message
            }
            try refuses(ben, "delete by another", .forbidden, delete(message, everyone: true))
            try does(anna, "delete", delete(message, everyone: true))
            for device in [anna, ben] {
                try device.pump(until: "the tombstone") {
                    tombstone($0, of: message.bytes)?.forEveryone == true
                }
            }
            let fresh = try t.device(of: ben.user)
            try requireEqual(
                fresh.replica.messages(in: conversation).count, 0, "messages on a new device")
            try refuses(anna, "edit", .gone, edit(message, "x"))
            try does(anna, "delete again", delete(message, everyone: true))
        },
        .must(
            "messaging.deleted-for-me", "deleting for oneself reaches the own devices only",
            ["MSG-35: later changes of the message MUST NOT come"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let beside = try t.device(of: ben.user)
            let message = try settingUp("a message") {
                let message = try anna.say("one", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
                return message
            }
            try does(ben, "delete", delete(message, everyone: false))
            for device in [ben, beside] {
                try device.pump(until: "the tombstone") {
                    tombstone($0, of: message.bytes) != nil
                }
            }
            try anna.syncToHead()
            try require(
                tombstone(anna.replica, of: message.bytes) == nil, "the author got a tombstone")
            // Later changes of it do not come.
            try does(anna, "edit", edit(message, "two"))
            try settingUp("one more") { try anna.say("next", in: conversation) }
            try beside.pump(until: "the next message") {
                $0.texts(in: conversation).contains("next")
            }
            try require(
                !beside.replica.texts(in: conversation).contains("two"), "the edit came")
        },
        .must(
            "messaging.emptied", "deleting a conversation for oneself ends its messages up to now",
            ["MSG-36"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("messages") {
                for number in 1...2 { try anna.say("\(number)", in: conversation) }
                try ben.pump(until: "messages") { $0.messages(in: conversation).count == 2 }
            }
            let before = ben.replica.log.last { entry in
                if case .conversationState = entry.body {
                    entry.conversation == conversation
                } else {
                    false
                }
            }
            try does(
                ben, "delete",
                .deleteConversation(DeleteConversation(conversation: conversation)))
            try ben.pump(until: "the tombstone") { replica in
                tombstone(replica, of: conversation.bytes)?.position == 2
            }
            try settingUp("a message") { try anna.say("3", in: conversation) }
            try ben.pump(until: "the message") { $0.texts(in: conversation).contains("3") }
            let after = ben.replica.log.last { entry in
                if case .conversationState = entry.body {
                    entry.conversation == conversation
                } else {
                    false
                }
            }
            try require(
                (after?.version ?? 0) > (before?.version ?? 0),
                "the conversation did not come again")
            let fresh = try t.device(of: ben.user)
            try requireEqual(
                fresh.replica.texts(in: conversation), ["3"], "messages on a new device")
        },
        .must(
            "messaging.ended", "deleting a conversation for everyone ends it",
            ["MSG-37: Operations on it MUST be refused with 4005"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let end = Mutation.Operation.deleteConversation(
                DeleteConversation(conversation: conversation, forEveryone: true))
            try refuses(ben, "delete by another", .forbidden, end)
            try does(anna, "delete", end)
            for device in [anna, ben] {
                try device.pump(until: "the tombstone") {
                    tombstone($0, of: conversation.bytes)?.forEveryone == true
                }
            }
            try refuses(ben, "send", .gone, send([text("x")], to: conversation, t.newID()))
            let carl = try t.device(of: t.user("carl"))
            try refuses(carl, "send", .notFound, send([text("x")], to: conversation, t.newID()))
        },
    ]
}
