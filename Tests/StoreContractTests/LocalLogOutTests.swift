import Model
import Testing
import Wire

@testable import SyncClient

/// What a device keeps of a logout over the ends of its processes, on both engines.
@Suite struct LocalLogOutTests {
    private let now = Timestamp(milliseconds: 5)

    @Test("a logout counts as sent when that was noted, until its result", arguments: engines)
    func marked(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            _ = try local.enqueue(.sendMessage(SendMessage()), at: now)
            let number = try local.enqueue(.forgetDevice(ForgetDevice()), at: now)
            #expect(try !local.load().hasSentLogout)
            // Of no logout.
            try local.markLogoutSent(number + 1)
            #expect(try !local.load().hasSentLogout)
            try local.markLogoutSent(number)
            #expect(try TableLocalStore(store: store).load().hasSentLogout)
            #expect(try local.mutations(after: 1, limit: 9, now: now).map(\.isLogout) == [true])
            try local.saveResults([MutationResult(number: number)])
            #expect(try !local.load().hasSentLogout)
        }
    }

    @Test("it keeps its mark under another number", arguments: engines)
    func renumbered(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            for _ in 0..<2 { _ = try local.enqueue(.forgetDevice(ForgetDevice()), at: now) }
            try local.markLogoutSent(2)
            try local.renumberMutations(from: 2, above: 7)
            #expect(try local.load().hasSentLogout)
            try local.saveResults([MutationResult(number: 8)])
            #expect(try !local.load().hasSentLogout)
        }
    }

    @Test("what an older version has queued may have been sent", arguments: engines)
    func older(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            func queued(_ operation: Mutation.Operation, as number: UInt64) throws {
                let mutation = Mutation(number: number, operation: operation)
                try store.write { transaction throws(StoreError) in
                    try transaction.put(
                        LocalMutationRecord(
                            number: number, queuedAt: now, mutation: mutation.encoded,
                            wasSent: nil))
                }
            }
            try queued(.sendMessage(SendMessage()), as: 1)
            #expect(try !local.load().hasSentLogout)
            try queued(.forgetDevice(ForgetDevice()), as: 2)
            #expect(try local.load().hasSentLogout)
        }
    }
}
