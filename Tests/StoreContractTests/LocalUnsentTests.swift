import Model
import Testing
import Wire

@testable import SyncClient

/// Which messages a device takes back on its own, on both engines.
@Suite struct LocalUnsentTests {
    private let room = ConversationID(high: 1, low: 1)
    private let first = MessageID(high: 2, low: 1)
    private let second = MessageID(high: 2, low: 2)
    private let now = Timestamp(milliseconds: 1)

    private func send(_ message: MessageID) -> Mutation.Operation {
        .sendMessage(SendMessage(conversation: room, message: message, parts: []))
    }

    private func edit(_ message: MessageID) -> Mutation.Operation {
        .editMessage(EditMessage(message: message, parts: []))
    }

    private func waiting(_ local: TableLocalStore) throws -> [UInt64] {
        try local.mutations(after: 0, limit: 9, now: now).map(\.number)
    }

    @Test("what has not left goes with its edits, and its deletion is done", arguments: engines)
    func withdrawn(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            for operation in [send(first), send(second), edit(first), edit(second)] {
                _ = try local.enqueue(operation, at: now)
            }
            let results = try local.withdraw(first)
            let gone = Code.gone.rawValue
            #expect(results?.map(\.number) == [1, 3, 5])
            #expect(results?.map(\.code) == [gone, gone, 0])
            #expect(try waiting(local) == [2, 4])
            #expect(try local.result(of: 3)?.code == gone)
            #expect(try local.result(of: 5) == MutationResult(number: 5))
            // The numbers go on, and it is taken once.
            #expect(try local.load().lastMutation == 5)
            #expect(try local.withdraw(first) == nil)
        }
    }

    @Test("what may have left stays, whatever number it has by now", arguments: engines)
    func left(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            _ = try local.enqueue(send(first), at: now)
            try local.markSent(through: 1)
            _ = try local.enqueue(send(second), at: now)
            #expect(try local.withdraw(first) == nil)
            try local.renumberMutations(from: 1, above: 10)
            #expect(try local.withdraw(first) == nil && local.withdraw(second) == nil)
            #expect(try waiting(local) == [11, 12])
            // It leaves as it is queued.
            let third = MessageID(high: 2, low: 3)
            _ = try local.enqueue(send(third), at: now, leaves: true)
            #expect(try local.withdraw(third) == nil)
            // An edit alone is of a message that others have.
            let fourth = MessageID(high: 2, low: 4)
            _ = try local.enqueue(edit(fourth), at: now)
            #expect(try local.withdraw(fourth) == nil)
        }
    }

    @Test("that something left is not forgotten for what left before it", arguments: engines)
    func leftBefore(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            for message in [first, second] { _ = try local.enqueue(send(message), at: now) }
            try local.markSent(through: 2)
            try local.markSent(through: 1)
            #expect(try local.withdraw(second) == nil)
            #expect(try waiting(local) == [1, 2])
        }
    }

    @Test("of what an older program queued nobody knows, and the feed knows", arguments: engines)
    func unknown(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            _ = try local.enqueue(send(first), at: now)
            try store.write { transaction throws(StoreError) in
                try transaction.delete(
                    LocalStateRecord.self, [.text(TableLocalStore.Fact.sent)])
            }
            #expect(try local.withdraw(first) == nil)
            _ = try local.enqueue(send(second), at: now)
            #expect(try local.withdraw(first) == nil)
            #expect(try local.withdraw(second)?.map(\.number) == [2, 3])
            _ = try local.enqueue(send(second), at: now)
            let entry = Entry(
                seq: 1, conversation: room, object: second.bytes, version: 1,
                body: .message(MessageState(position: 1)))
            _ = try local.apply(
                LocalChange(entries: [entry], to: Cursor(epoch: Epoch(high: 1, low: 0), seq: 1)))
            #expect(try local.withdraw(second) == nil)
        }
    }
}
