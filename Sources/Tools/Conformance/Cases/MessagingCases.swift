import Model
import Wire

extension Conformance {
    static let messagingCases = mutationCases + conversationCases + receiptCases + changeCases

    // MARK: - Conversations and messages

    private static let conversationCases: [ConformanceCase] = [
        .must(
            "messaging.positions",
            "messages of a conversation are numbered from 1 without gaps, "
                + "the same for everyone",
            ["MSG-2: A message MUST get the next position", "MSG-5: own messages MUST come back"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            for number in 1...3 {
                try anna.say("a\(number)", in: conversation)
                try ben.say("b\(number)", in: conversation)
            }
            for device in [anna, ben] {
                try device.pump(until: "messages") { $0.messages(in: conversation).count == 6 }
                let found = device.replica.messages(in: conversation)
                try requireEqual(found.map(\.position), [1, 2, 3, 4, 5, 6], "positions")
                try requireEqual(
                    device.replica.texts(in: conversation), ["a1", "b1", "a2", "b2", "a3", "b3"],
                    "messages of \(device.user)")
                try requireEqual(
                    found.map(\.sender), [anna, ben, anna, ben, anna, ben].map(\.user), "senders")
            }
        },
        .must(
            "messaging.content", "a message comes with its parts, sender and push text as sent",
            ["MSG-3"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let parts = [
                text("größer"), Part(mimeType: "application/octet-stream", content: [0, 255, 10]),
                Part(
                    mimeType: "image/png",
                    reference: PartReference(
                        url: "https://example.com/x.png", size: 5,
                        digest: [UInt8](repeating: 9, count: 32))),
            ]
            let push = PushText(title: "title", body: "body")
            try does(anna, "send", send(parts, to: conversation, t.newID(), push: push))
            try ben.pump(until: "the message") { $0.messages(in: conversation).count == 1 }
            let message = ben.replica.messages(in: conversation)[0]
            try requireEqual(message.parts, parts, "parts")
            try requireEqual(message.push, push, "push")
            try requireEqual(message.sender, anna.user, "sender")
            try require(message.sentMs > 1_600_000_000_000, "no time")
        },
        .must(
            "messaging.joined", "who is added sees the messages after that, and none before",
            ["MSG-4: MUST NOT see others"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let carl = try t.device(of: t.user("carl"))
            try settingUp("a message") { try anna.say("before", in: conversation) }
            try does(
                anna, "add participants",
                .addParticipants(
                    AddParticipants(conversation: conversation, users: [carl.user])))
            try settingUp("a message") { try anna.say("after", in: conversation) }
            try carl.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            try carl.syncToHead()
            try requireEqual(carl.replica.texts(in: conversation), ["after"], "messages")
            try requireEqual(
                carl.replica.participants(of: conversation),
                [anna.user, ben.user, carl.user].sorted(), "participants")
        },
        .must(
            "messaging.stranger", "nothing of a conversation comes to who does not take part",
            ["MSG-15", "CON-13: An error MUST NOT tell whether"]
        ) { t in
            let carl = try t.device(of: t.user("carl"))
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") {
                try anna.say("for ben", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            }
            let delta = try carl.syncAnswer()
            try requireEqual(delta.entries.count, 0, "entries")
            let other = try t.device(of: carl.user, isSynced: false)
            try other.syncToHead()
            try requireEqual(other.replica.log.count, 0, "entries from the start")
        },
        .must(
            "messaging.unknown-alike",
            "a conversation out of reach is refused as one that is not "
                + "there", ["CON-13", "MSG-15: MUST be refused with 4004 in both cases"]
        ) { t in
            let carl = try t.device(of: t.user("carl"))
            let (_, _, conversation) = try t.pair()
            for id in [conversation, t.newID()] {
                try refuses(carl, "send", .notFound, send([text("x")], to: id, t.newID()))
                try refuses(
                    carl, "add", .notFound,
                    .addParticipants(AddParticipants(conversation: id, users: [carl.user])))
                if t.lacks("MSG-25") { continue }
                try refuses(
                    carl, "metadata", .notFound,
                    .changeMetadata(
                        ChangeMetadata(
                            conversation: id,
                            changes: [MetadataChange(path: ["a"], value: "b")])))
            }
        },
        .must(
            "messaging.id-in-use",
            "an id in use is refused: with 3010 to who sees the object, with "
                + "4003 to others", ["MSG-15: MUST be refused with 3010"]
        ) { t in
            let carl = try t.device(of: t.user("carl"))
            let (anna, ben, conversation) = try t.pair()
            try refuses(anna, "create again", .idInUse, create(conversation))
            try refuses(ben, "create by a participant", .idInUse, create(conversation))
            try refuses(carl, "create by a stranger", .forbidden, create(conversation))
            let message = try settingUp("a message") { try anna.say("one", in: conversation) }
            try refuses(
                ben, "send again", .idInUse, send([text("x")], to: conversation, message))
            let own = try settingUp("carl's conversation") {
                try carl.createConversation(with: [])
            }
            try refuses(
                carl, "send by a stranger", .forbidden, send([text("x")], to: own, message))
        },
        .must(
            "messaging.published", "what the backend publishes comes like any message", ["MSG-2"]
        ) { t in
            let publisher = try t.publisher()
            let (anna, ben, conversation) = try t.pair()
            try publisher.publish("from the backend", sender: anna.user, to: conversation)
            for device in [anna, ben] {
                try device.pump(until: "the message") {
                    $0.texts(in: conversation) == ["from the backend"]
                }
                try requireEqual(
                    device.replica.messages(in: conversation)[0].sender, anna.user, "sender")
            }
        },
        .must(
            "messaging.reference", "a reference is checked in its form", ["MSG-23", "MSG-22"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            func part(_ url: String, _ size: UInt64, _ digest: Int) -> [Part] {
                [
                    Part(
                        mimeType: "image/png",
                        reference: PartReference(
                            url: url, size: size, digest: [UInt8](repeating: 1, count: digest)))
                ]
            }
            let good = "https://example.com/a"
            try does(anna, "a reference", send(part(good, 1, 32), to: conversation, t.newID()))
            for (what, parts, code) in [
                ("digest of 31 bytes", part(good, 1, 31), Code.malformed),
                ("a space", part("https://a b", 1, 32), .malformed),
                ("no url", part("", 1, 32), .missingField),
                ("no size", part(good, 0, 32), .missingField),
                (
                    "url of 2,049 bytes",
                    part("https://" + String(repeating: "u", count: 2_041), 1, 32), .tooLarge
                ),
            ] {
                try refuses(anna, what, code, send(parts, to: conversation, t.newID()))
            }
        },
        .must(
            "messaging.distinct",
            "a second distinct conversation of the same participants is the "
                + "first", ["MSG-24: MUST get code 0 with the id of the first"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let ben = try t.device(of: t.user("ben"))
            let (one, two): (ConversationID, ConversationID) = (t.newID(), t.newID())
            func distinct(_ id: ConversationID, _ other: Device) -> Mutation.Operation {
                .createConversation(
                    CreateConversation(
                        conversation: id, participants: [other.user], distinct: true))
            }
            let first = try does(anna, "create", distinct(one, ben))
            try requireEqual(first.object, one.bytes, "object")
            let second = try does(ben, "create again", distinct(two, anna))
            try requireEqual(second.object, one.bytes, "object of the second")
            // What still comes under the id it chose goes to the same conversation.
            try does(ben, "send", send([text("hello")], to: two, t.newID()))
            try anna.pump(until: "the message") { $0.texts(in: one) == ["hello"] }
            let state = anna.replica.conversation(one)
            try requireEqual(state?.distinct, true, "distinct")
            try requireEqual(state?.creator, anna.user, "creator")
            try refuses(
                anna, "add", .conflict,
                .addParticipants(AddParticipants(conversation: one, users: [t.user("carl")])))
        },
        .must(
            "messaging.distinct-again",
            "a distinct conversation that its user deleted comes back when it is made again",
            ["MSG-24: MUST come back to them as its next message would bring it"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let ben = try t.device(of: t.user("ben"))
            func distinct(_ other: Device) -> Mutation.Operation {
                .createConversation(
                    CreateConversation(
                        conversation: t.newID(), participants: [other.user], distinct: true))
            }
            func version(_ room: ConversationID) -> UInt64 {
                ben.replica.entries(of: room).compactMap { entry in
                    if case .conversationState = entry.body { entry.version } else { nil }
                }.max() ?? 0
            }
            let room = try settingUp("a conversation that ben deletes") {
                let made = try does(anna, "create", distinct(ben))
                guard let room = ConversationID(made.object) else {
                    throw CaseEnd.failed("no id")
                }
                try anna.say("hello", in: room)
                try ben.pump(until: "the message") { $0.texts(in: room) == ["hello"] }
                try does(
                    ben, "delete", .deleteConversation(DeleteConversation(conversation: room)))
                try ben.syncToHead()
                return room
            }
            let before = version(room)
            let again = try does(ben, "create again", distinct(anna))
            try requireEqual(again.object, room.bytes, "object")
            try ben.syncToHead()
            try require(version(room) > before, "the conversation did not come again")
            let fresh = try t.device(of: ben.user)
            try require(fresh.replica.knows(room), "a new device does not know it")
            try requireEqual(fresh.replica.texts(in: room), [], "messages on a new device")
        },
        .must(
            "messaging.metadata",
            "metadata is changed by key paths, all or none, and everybody "
                + "gets the whole",
            [
                "MSG-25: MUST carry its changes out in order, all or none",
                "MSG-25: MUST be refused with 3012 unless the metadata",
            ]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            func change(_ changes: [MetadataChange], base: UInt64 = 0) -> Mutation.Operation {
                .changeMetadata(
                    ChangeMetadata(
                        conversation: conversation, changes: changes, baseVersion: base))
            }
            func values(_ device: Device) -> [MetadataValue]? {
                device.replica.entries(of: conversation).compactMap { entry in
                    if case .metadata(let state) = entry.body { state.values } else { nil }
                }.last
            }
            try does(
                anna, "set",
                change([
                    MetadataChange(path: ["theme", "colour"], value: "red"),
                    MetadataChange(path: ["name"], value: "us"),
                ]))
            try ben.wait(until: "two values") { values($0)?.count == 2 }
            try does(ben, "remove", change([MetadataChange(path: ["theme"], removed: true)]))
            try anna.wait(until: "one value") {
                values($0) == [MetadataValue(path: ["name"], value: "us")]
            }
            // A value below a value replaces it.
            try does(anna, "below", change([MetadataChange(path: ["name", "de"], value: "wir")]))
            try ben.wait(until: "the newer") {
                values($0) == [MetadataValue(path: ["name", "de"], value: "wir")]
            }
            try refuses(
                anna, "an old version", .versionConflict,
                change([MetadataChange(path: ["x"], value: "y")], base: 1))
            try refuses(
                anna, "9 keys", .limit,
                change([MetadataChange(path: (1...9).map { "\($0)" }, value: "y")]))
            try refuses(
                anna, "a value of 2,049 bytes", .tooLarge,
                change([
                    MetadataChange(path: ["good"], value: "y"),
                    MetadataChange(path: ["x"], value: String(repeating: "v", count: 2_049)),
                ]))
            try settingUp("sync") { try anna.syncToHead() }
            try requireEqual(
                values(anna), [MetadataValue(path: ["name", "de"], value: "wir")],
                "values after the refusals")
        },
        .must(
            "messaging.mute", "muting is told to the own devices only, with its end if it has one",
            ["MSG-26: MUST get a `ConversationSettings` entry"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let beside = try t.device(of: ben.user)
            try does(
                ben, "mute",
                .muteConversation(MuteConversation(conversation: conversation, muted: true)))
            try beside.pump(until: "the settings") { replica in
                replica.entries(of: conversation).contains {
                    if case .conversationSettings(let state) = $0.body {
                        state.muted
                    } else {
                        false
                    }
                }
            }
            try settingUp("a message") { try anna.say("quiet", in: conversation) }
            try beside.pump(until: "the message") { $0.texts(in: conversation) == ["quiet"] }
            try beside.syncToHead()
            try requireEqual(beside.unread, 0, "unread")
            try anna.syncToHead()
            let found = anna.replica.entries(of: conversation).contains {
                if case .conversationSettings = $0.body { true } else { false }
            }
            try require(!found, "the settings came to another user")
            let hour: UInt64 = 3_600_000
            try does(
                ben, "mute for an hour",
                .muteConversation(
                    MuteConversation(conversation: conversation, muted: true, forMs: hour)))
            let least = ben.welcome.serverTimeMs + hour
            try beside.pump(until: "the end of the mute") { replica in
                replica.entries(of: conversation).contains {
                    guard case .conversationSettings(let state) = $0.body else { return false }
                    return state.muted && (least...least + hour / 4).contains(state.mutedUntilMs)
                }
            }
        },
        .must(
            "messaging.block",
            "a blocked user's messages do not come, and the sender notices "
                + "nothing",
            ["MSG-27: MUST NOT come into the blocker's feed", "MSG-27: MUST get a `Block` entry"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            let beside = try t.device(of: ben.user)
            try does(ben, "block", .blockUser(BlockUser(user: anna.user, blocked: true)))
            try beside.pump(until: "the block") { replica in
                replica.log.contains { entry in
                    if case .block(let state) = entry.body {
                        state.user == anna.user && state.blocked
                    } else {
                        false
                    }
                }
            }
            try settingUp("a message") { try anna.say("blocked", in: conversation) }
            try refuses(anna, "create", .forbidden, create(t.newID(), [ben.user]))
            try does(ben, "unblock", .blockUser(BlockUser(user: anna.user, blocked: false)))
            try settingUp("a message") { try anna.say("later", in: conversation) }
            try ben.pump(until: "the later message") { !$0.messages(in: conversation).isEmpty }
            try ben.syncToHead()
            try requireEqual(ben.replica.texts(in: conversation), ["later"], "messages")
            try requireEqual(
                ben.replica.messages(in: conversation).map(\.position), [2], "positions")
        },
    ]
}
