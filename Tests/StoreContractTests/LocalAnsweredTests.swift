import Model
import Testing
import Wire

@testable import SyncClient

/// What is shown of an edit that the server has answered and the feed has not told of, or has told
/// of before.
@Suite struct LocalAnsweredTests {
    private let one = LocalHistoryTests()
    private let room = LocalHistoryTests.room
    private let time = Timestamp(milliseconds: 5_000)
    private let id = MessageID(high: 1, low: 1)

    private func part(_ text: String) -> Part {
        Part(mimeType: "text/plain", content: Array(text.utf8))
    }

    private func entry(_ version: UInt64, _ text: String) -> Entry {
        Entry(
            seq: version, conversation: room, object: id.bytes, version: version,
            body: .message(MessageState(position: 1, sender: "anna", parts: [part(text)])))
    }

    private func edit(
        _ text: String, from version: UInt64, _ local: TableLocalStore
    ) throws -> UInt64 {
        try local.enqueue(
            .editMessage(
                EditMessage(message: id, parts: [part(text)], baseVersion: version)), at: time)
    }

    private func answer(_ number: UInt64, _ local: TableLocalStore) throws {
        try local.saveResults([MutationResult(number: number)])
    }

    private func shown(_ local: TableLocalStore) throws -> String {
        let row = try local.messageWindow(of: room, newest: 9, sent: []).rows.first
        return row.map { "\($0.text) \($0.version)" } ?? "nothing"
    }

    /// The connection ended before the answer; another device has edited the message since.
    @Test(
        "a newer edit that comes before the answer to an older one stays",
        arguments: [2, 0] as [UInt64],
        engines)
    func overtaken(_ base: UInt64, _ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(2, "A")], local)
            let number = try edit("B", from: base, local)
            #expect(try shown(local) == "B 0")
            try one.feed([entry(4, "C")], local)
            try answer(number, local)
            #expect(try shown(local) == "C 4")
            var list = ConversationList()
            try list.reload(from: local, sent: [])
            #expect(list.rows.first?.last?.text == "C")
        }
    }

    @Test(
        "so it does in a snapshot, and in the next process", arguments: [2, 0] as [UInt64],
        engines)
    func overtakenElsewhere(_ base: UInt64, _ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let first = TableLocalStore(store: store)
            try first.saveSession(token: [1], user: "anna")
            try one.feed([one.state(), entry(2, "A")], first)
            let number = try edit("B", from: base, first)
            let page = [one.state(), one.member("anna"), entry(4, "C")]
            _ = try first.applySnapshot(one.snapshot(page, from: 1, since: 1_000), at: time)
            let waiting = try first.mutations(after: 0, limit: 9, now: time)
            let second = TableLocalStore(store: store)
            try answer(waiting.first?.number ?? number, second)
            #expect(try shown(second) == "C 4")
        }
    }

    @Test(
        "until the feed tells of an answered edit, what was before it does not come back",
        arguments: [2, 0] as [UInt64],
        engines)
    func untold(_ base: UInt64, _ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(2, "A")], local)
            try answer(try edit("B", from: base, local), local)
            #expect(try shown(local) == "B 0")
            try one.feed([entry(3, "B")], local)
            #expect(try shown(local) == "B 3")
            try one.feed([entry(4, "C")], local)
            #expect(try shown(local) == "C 4")
        }
    }

    @Test(
        "a page that was read before the edit does not take it off the screen", arguments: engines)
    func older(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(2, "A")], local)
            try answer(try edit("C", from: 3, local), local)
            try one.feed([entry(3, "B")], local)
            #expect(try shown(local) == "C 0")
            try one.feed([entry(4, "C")], local)
            #expect(try shown(local) == "C 4")
        }
    }

    @Test("the feed tells of the first edit before the second is answered", arguments: engines)
    func second(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(2, "A")], local)
            let numbers = [try edit("B", from: 2, local), try edit("C", from: 0, local)]
            try answer(numbers[0], local)
            try one.feed([entry(3, "B")], local)
            try answer(numbers[1], local)
            #expect(try shown(local) == "C 0")
            try one.feed([entry(4, "C")], local)
            #expect(try shown(local) == "C 4")
        }
    }

    @Test(
        "an edit after one that the feed has told of is shown until it is told of",
        arguments: engines)
    func afterwards(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(1, "A")], local)
            for (version, text) in [(UInt64(2), "B"), (3, "C"), (4, "D")] {
                try answer(try edit(text, from: 0, local), local)
                #expect(try shown(local) == "\(text) 0")
                try one.feed([entry(version, text)], local)
                #expect(try shown(local) == "\(text) \(version)")
            }
        }
    }

    @Test("a message edited before the feed told of it", arguments: [true, false], engines)
    func pending(_ isTold: Bool, _ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state()], local)
            let send = SendMessage(conversation: room, message: id, parts: [part("A")])
            let sent = try local.enqueue(.sendMessage(send), at: time)
            let number = try edit("B", from: 0, local)
            try local.saveResults([MutationResult(number: sent, position: 1)])
            if isTold { try one.feed([entry(1, "A")], local) }
            try answer(number, local)
            #expect(try shown(local) == "B 0")
            try one.feed([entry(2, "B")], local)
            #expect(try shown(local) == "B 2")
        }
    }

    @Test("a deletion that is told of before it is answered stays one", arguments: engines)
    func deleted(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), entry(2, "A")], local)
            let deletion = DeleteMessage(message: id, forEveryone: true)
            let number = try local.enqueue(.deleteMessage(deletion), at: time)
            let gone = Entry(
                seq: 3, conversation: room, object: id.bytes, version: 3,
                body: .tombstone(TombstoneState(position: 1, forEveryone: true, by: "anna")))
            try one.feed([gone], local)
            try answer(number, local)
            #expect(try shown(local) == "nothing")
        }
    }

    /// MSG-12: its result is gone, and the server tells where it stands.
    @Test("a message that was taken too long ago was not refused", arguments: engines)
    func takenLongAgo(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state()], local)
            func say(_ low: UInt64) throws -> UInt64 {
                try local.enqueue(
                    .sendMessage(
                        SendMessage(
                            conversation: room, message: MessageID(high: 1, low: low),
                            parts: [part("x")])), at: time)
            }
            let gone = Code.resultGone.rawValue
            let taken = MutationResult(number: try say(7), code: gone, position: 4)
            try local.saveResults([taken, MutationResult(number: try say(8), code: gone)])
            #expect(try local.refusedMessages().map(\.id.low) == [8])
            let rows = try local.messageWindow(of: room, newest: 9, sent: []).rows
            #expect(rows.first { $0.id.low == 7 }?.delivery == .accepted)
        }
    }
}
