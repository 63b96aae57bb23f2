import Model
import Testing
import Wire

@testable import SyncClient

/// HIS-38, HIS-39: who is to see what a device sends again to a server that was restored.
@Suite struct LocalAudienceTests {
    private let one = LocalHistoryTests()
    private let room = LocalHistoryTests.room
    private let time = Timestamp(milliseconds: 5_000)
    private let week: Milliseconds = 7 * 86_400_000

    private func member(
        _ user: String, version: UInt64 = 1, joined: UInt64 = 0, removed: Bool = false,
        room: ConversationID = LocalHistoryTests.room
    ) -> Entry {
        Entry(
            seq: 1, conversation: room, version: version,
            body: .participant(
                ParticipantState(user: user, joinedPosition: joined, removed: removed)))
    }

    private func mine(
        _ position: UInt64, room: ConversationID = LocalHistoryTests.room
    ) -> Entry { one.message(position, sender: "anna", sent: 2_000 + position, room: room) }

    private func restore(
        _ page: [Entry], from: UInt64 = 1, participants: Bool = true, _ local: TableLocalStore
    ) throws {
        let change = one.snapshot(page, from: from, participants: participants, since: 1_000)
        _ = try local.applySnapshot(change, at: time)
    }

    private func waiting(_ local: TableLocalStore) throws -> [UInt64] {
        try local.mutations(after: 0, limit: .max, now: time).compactMap {
            if case .sendMessage(let send) = $0.operation { send.message?.low } else { nil }
        }
    }

    private func made(_ local: TableLocalStore) throws -> [CreateConversation] {
        try local.mutations(after: 0, limit: .max, now: time).compactMap {
            if case .createConversation(let create) = $0.operation { create } else { nil }
        }
    }

    private func withheld(
        _ local: TableLocalStore, because why: Refusal = .audienceChanged
    ) throws -> [UInt64] {
        let refused = try local.refusedMessages()
        #expect(refused.allSatisfy { $0.delivery == .refused(why) })
        return refused.map(\.id.low)
    }

    @Test("who joined late is sent nothing of before again", arguments: engines)
    func joinedLate(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), one.state(new, creator: "anna", created: 1_500),
                    member("anna", room: new), member("carl", room: new), mine(1, room: new),
                    one.message(2, sender: "carl", room: new),
                    member("ben", joined: 2, room: new), mine(3, room: new),
                ], local)
            try restore([one.state()], local)
            #expect(try made(local).map(\.participants) == [["ben", "carl"]])
            #expect(try waiting(local) == [3])
            #expect(try withheld(local) == [1])
            // Its user wants it all the same.
            let text = MessageReference(
                conversation: new, message: MessageID(high: new.low, low: 1))
            var other = text
            other.conversation = room
            #expect(try !local.discard(other), "it is of another conversation")
            #expect(try local.resend(text, at: time) != nil)
            #expect(try waiting(local) == [3, 1])
            #expect(try withheld(local).isEmpty)
        }
    }

    @Test("nor is who was removed, where the server has lost that", arguments: engines)
    func removed(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), member("anna"), member("carl"),
                    member("ben", version: 2, removed: true), mine(3), mine(4),
                ], local)
            let send = SendMessage(
                conversation: room, message: MessageID(high: 1, low: 5),
                parts: [Part(mimeType: "a/b", content: [1])])
            _ = try local.enqueue(.sendMessage(send), at: time)
            try restore([one.state(), member("anna"), member("carl"), member("ben")], local)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [3, 4, 5], "what had not left was not for him either")
        }
    }

    @Test("all are sent again what all saw", arguments: engines)
    func seen(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed(
                [one.state(), member("anna"), member("carl"), member("ben", joined: 2)]
                    + [2, 3].map { mine($0) }, local)
            // Whoever takes part no more sees nothing; that he did is nothing to the others.
            try restore([one.state(), member("anna"), member("ben")], local)
            #expect(try waiting(local) == [3])
            #expect(try withheld(local) == [2])
        }
    }

    @Test("where it is not known who takes part nothing is sent by itself", arguments: engines)
    func unknown(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            let page = [one.state(), member("anna")]
            // Not now.
            try one.feed(page + [mine(3), mine(4)], local)
            try restore(page, from: 4, participants: false, local)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [4], "of one below nobody knows that it is lost")
            #expect(try one.positions(local) == [3])
            // Not before, as that page told.
            try one.feed([mine(6)], local)
            try restore(page, from: 5, local)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [4, 6])
            // Now both; of what is left of an earlier page that is not so.
            try one.feed([mine(7)], local)
            try restore(page, from: 5, local)
            #expect(try waiting(local) == [7])
            #expect(try withheld(local) == [4, 6])
            // A FETCH finds that the server lacks it, or that it does not.
            _ = try local.applyHistory(
                HistoryChange(
                    entries: [],
                    complete: CompleteRange(conversation: room, first: 1, last: 4)))
            #expect(try withheld(local) == [4, 6, 3])
            _ = try local.applyHistory(HistoryChange(entries: [mine(3)]))
            #expect(try withheld(local) == [4, 6])
        }
    }

    @Test("nor is anything to a large conversation", arguments: engines)
    func large(_ engine: EngineFactory) throws {
        let state = Entry(
            seq: 1, conversation: room, object: room.bytes, version: 2,
            body: .conversationState(ConversationState(createdMs: 0, participants: 300)))
        try one.withLocal(engine) { local in
            try one.feed([state, member("anna"), mine(3)], local)
            try restore([state, member("anna")], local)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [3])
        }
    }

    @Test("a conversation is made again with all its members", arguments: engines)
    func members(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            let gone = (0..<600).map { member("a\($0)", version: 2, removed: true, room: new) }
            let here = (0..<200).map { member("b\($0)", room: new) }
            try one.feed(
                [one.state(new, creator: "anna", created: 1_500), member("anna", room: new)] + gone
                    + here + [mine(1, room: new)], local)
            try restore([one.state()], local)
            let names = try made(local).map { Set($0.participants) }
            #expect(names == [Set((0..<200).map { "b\($0)" })])
            #expect(try waiting(local) == [1])
        }
    }

    @Test("by nobody who does not know them all: its messages wait for it", arguments: engines)
    func membersUnknown(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        let state = one.state(new, creator: "anna", created: 1_500)
        try one.withLocal(engine) { local in
            // A new phone: of many participants the page tells the user alone.
            let page = one.snapshot(
                [state, member("anna", room: new)], from: 1, room: new, participants: false)
            _ = try local.applySnapshot(page, at: time)
            try one.feed([mine(1, room: new)], local)
            try restore([one.state()], local)
            #expect(try made(local).isEmpty)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local).isEmpty)
            try one.feed([state, member("anna", room: new)], local)
            _ = try local.sendAwaited(at: time)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [1])
        }
    }

    /// What anna holds of a conversation of ben's that the server has lost.
    private func loseAnothers(
        _ new: ConversationID, pending: Bool = false, _ local: TableLocalStore
    ) throws {
        try one.feed(
            [
                one.state(), one.state(new, creator: "ben", created: 1_500),
                member("anna", room: new), member("ben", room: new),
                member("carl", joined: 1, room: new), mine(1, room: new), mine(2, room: new),
            ], local)
        if pending {
            let send = SendMessage(
                conversation: new, message: MessageID(high: new.low, low: 3),
                parts: [Part(mimeType: "a/b", content: [1])])
            _ = try local.enqueue(.sendMessage(send), at: time)
        }
        try restore([one.state()], local)
        #expect(try waiting(local).isEmpty)
        #expect(try local.refusedMessages().isEmpty)
        #expect(try local.sendAwaited(at: time + (week - 1)) == nil)
    }

    @Test("messages wait until their conversation is made again", arguments: engines)
    func awaited(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try loseAnothers(new, pending: true, local)
            let state = one.state(new, creator: "ben", created: 4_000)
            try one.feed([state, member("anna", removed: true, room: new)], local)
            #expect(try local.sendAwaited(at: time) == nil)
            try one.feed(
                [member("anna", version: 2, room: new), member("ben", room: new)], local)
            let last = try #require(try local.sendAwaited(at: time))
            #expect(try waiting(local) == [1, 2, 3])
            let first = MessageID(high: new.low, low: 1)
            #expect(try local.withdraw(first) == nil, "it had left once")
            #expect(try local.load().lastMutation == last)
            #expect(try withheld(local).isEmpty)
            #expect(try local.sendAwaited(at: time + week) == nil, "it is over")
        }
    }

    @Test("and are then sent to those only who saw them", arguments: engines)
    func awaitedByOthers(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try loseAnothers(new, pending: true, local)
            try one.feed(
                [one.state(new, creator: "ben", created: 4_000)]
                    + ["anna", "ben", "carl"].map { member($0, room: new) }, local)
            _ = try local.sendAwaited(at: time)
            #expect(try waiting(local) == [2, 3])
            #expect(try withheld(local) == [1])
        }
    }

    @Test("of what is lost twice it is known who saw it, and since when", arguments: engines)
    func lostTwice(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        func lose(_ local: TableLocalStore) throws {
            try loseAnothers(new, local)
            // It comes, does not say who takes part, and is lost once more.
            try one.feed(
                [one.state(new, creator: "ben", created: 4_000), mine(4, room: new)], local)
            let change = one.snapshot([one.state()], from: 1, since: 1_000)
            _ = try local.applySnapshot(change, at: time + 1_000)
        }
        try one.withLocal(engine) { local in
            try lose(local)
            try one.feed(
                [one.state(new, creator: "ben", created: 4_500)]
                    + ["anna", "ben", "carl"].map { member($0, room: new) }, local)
            _ = try local.sendAwaited(at: time)
            #expect(try waiting(local) == [2, 4])
            #expect(try withheld(local) == [1])
        }
        try one.withLocal(engine) { local in
            try lose(local)
            #expect(try local.sendAwaited(at: time + week) != nil)
            #expect(
                try withheld(local, because: Refusal(code: Code.notFound.rawValue)) == [1, 2, 4])
        }
    }

    @Test("one from before the time that may be lost is not made again", arguments: engines)
    func oldConversation(_ engine: EngineFactory) throws {
        let old = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), one.state(old, creator: "anna", created: 500),
                    member("anna", room: old), member("carl", room: old), mine(1, room: old),
                ], local)
            try restore([one.state()], local)
            #expect(try made(local).isEmpty)
            #expect(try waiting(local).isEmpty)
        }
    }

    @Test("what waits to be changed of them is done on the device", arguments: engines)
    func awaitedChanges(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        let (deleted, edited) = (MessageID(high: 2, low: 1), MessageID(high: 2, low: 2))
        let people = ["anna", "ben"].map { member($0, room: new) }
        try one.withLocal(engine) { local in
            try one.feed(
                [one.state(), one.state(new, creator: "ben", created: 1_500)] + people
                    + [mine(1, room: new), mine(2, room: new)], local)
            _ = try local.enqueue(
                .deleteMessage(DeleteMessage(message: deleted, forEveryone: true)), at: time)
            _ = try local.enqueue(
                .editMessage(
                    EditMessage(message: edited, parts: [Part(mimeType: "a/b", content: [9])])),
                at: time)
            try restore([one.state()], local)
            #expect(try local.mutations(after: 0, limit: .max, now: time).isEmpty)
            try one.feed([one.state(new, creator: "ben", created: 4_000)] + people, local)
            _ = try local.sendAwaited(at: time)
            let sent = try local.mutations(after: 0, limit: .max, now: time).map(\.operation)
            guard case .sendMessage(let send) = sent.first else {
                Issue.record("\(sent)")
                return
            }
            #expect(sent.count == 1 && send.message == edited)
            #expect(send.parts.first?.content == [9])
            #expect(try local.refusedMessages().isEmpty)
        }
    }

    @Test("or to nobody, if others take part", arguments: engines)
    func awaitedByStrangers(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try loseAnothers(new, pending: true, local)
            try one.feed(
                [one.state(new, creator: "ben", created: 4_000)]
                    + ["anna", "ben", "kim"].map { member($0, room: new) }, local)
            _ = try local.sendAwaited(at: time)
            #expect(try waiting(local).isEmpty)
            #expect(try withheld(local) == [1, 2, 3])
        }
    }

    @Test("after a week they are refused", arguments: engines)
    func awaitedInVain(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try loseAnothers(ConversationID(high: 1, low: 2), pending: true, local)
            #expect(try local.sendAwaited(at: time + week) != nil)
            #expect(try waiting(local).isEmpty)
            #expect(
                try withheld(local, because: Refusal(code: Code.notFound.rawValue)) == [1, 2, 3])
        }
    }

    @Test("another device of the user may have been earlier", arguments: engines)
    func awaitedTwice(_ engine: EngineFactory) throws {
        let new = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try loseAnothers(new, local)
            try one.feed(
                [
                    one.state(new, creator: "ben", created: 4_000), member("anna", room: new),
                    mine(1, room: new),
                ], local)
            _ = try local.sendAwaited(at: time)
            #expect(try waiting(local) == [2])
            #expect(try local.refusedMessages().isEmpty)
        }
    }

    @Test("blocks that the server has lost are made again before all else", arguments: engines)
    func blocks(_ engine: EngineFactory) throws {
        func block(_ user: String, _ blocked: Bool = true) -> Entry {
            Entry(
                seq: 1, version: 1, body: .block(BlockState(user: user, blocked: blocked)))
        }
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), member("anna"), mine(3), block("kim"), block("leo"),
                    block("max", false),
                ], local)
            var change = one.snapshot(
                [one.state(), member("anna")], from: 1, next: [7], since: 1_000)
            change.page.entries = [block("leo")]
            _ = try local.applySnapshot(change, at: time)
            let first = try local.mutations(after: 0, limit: 1, now: time).first
            #expect(first?.operation == .blockUser(BlockUser(user: "kim", blocked: true)))
            #expect(try waiting(local) == [3])
            var last = one.snapshot([], from: 1, isFirst: false, since: 1_000)
            last.page.conversations = []
            _ = try local.applySnapshot(last, at: time)
            #expect(try local.mutations(after: 0, limit: 9, now: time).count == 2)
        }
    }

    @Test(
        "a block that was made again after the backup is made again, and no newer end is undone",
        arguments: engines)
    func blockedAgain(_ engine: EngineFactory) throws {
        func block(_ user: String, _ blocked: Bool, version: UInt64) -> Entry {
            Entry(
                seq: 1, version: version,
                body: .block(BlockState(user: user, blocked: blocked)))
        }
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), member("anna"), block("kim", true, version: 3),
                    block("leo", true, version: 1),
                ], local)
            var change = one.snapshot(
                [one.state(), member("anna")], from: 1, next: [7], since: 1_000)
            change.page.entries = [
                block("kim", false, version: 2), block("leo", false, version: 2),
            ]
            _ = try local.applySnapshot(change, at: time)
            #expect(
                try local.mutations(after: 0, limit: 9, now: time).map(\.operation)
                    == [.blockUser(BlockUser(user: "kim", blocked: true))])
        }
    }

    @Test("a text that the server refused outlives those that are kept back", arguments: engines)
    func refusedOutlive(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), member("anna"), member("carl"),
                    member("ben", version: 2, removed: true),
                ] + (1...100).map { mine($0) }, local)
            for low in 1_001...1_200 as ClosedRange<UInt64> {
                let send = SendMessage(
                    conversation: room, message: MessageID(high: 1, low: low),
                    parts: [Part(mimeType: "a/b", content: [1])])
                let number = try local.enqueue(.sendMessage(send), at: time)
                try local.saveResults([
                    MutationResult(number: number, code: Code.forbidden.rawValue)
                ])
            }
            try restore([one.state(), member("anna"), member("carl"), member("ben")], local)
            let kept = try local.refusedMessages()
            let refused = kept.filter {
                $0.delivery == .refused(Refusal(code: Code.forbidden.rawValue))
            }
            #expect(kept.count == 256 && refused.count == 200, "it is nowhere else")
            let last = kept.filter { $0.delivery == .refused(.audienceChanged) }.map(\.id.low)
            #expect(last == Array(45...100), "of the others the newest")
        }
    }

    @Test(
        "what was sent to a conversation that the user has left is not waited with",
        arguments: engines)
    func leftMeanwhile(_ engine: EngineFactory) throws {
        let other = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try one.feed([one.state(), member("anna"), member("ben")], local)
            let send = SendMessage(
                conversation: room, message: MessageID(high: 1, low: 9),
                parts: [Part(mimeType: "a/b", content: [1])])
            let number = try local.enqueue(.sendMessage(send), at: time)
            // Accepted, and the feed has not told of it.
            try local.saveResults([MutationResult(number: number, position: 9)])
            try one.feed([member("anna", version: 2, removed: true)], local)
            let page = [one.state(other), member("anna", room: other)]
            _ = try local.applySnapshot(
                one.snapshot(page, from: 1, room: other, since: 1_000), at: time)
            #expect(try waiting(local).isEmpty)
            #expect(try local.sendAwaited(at: time + week) == nil)
            #expect(try local.refusedMessages().isEmpty, "HIS-21: it is left out")
        }
    }
}
