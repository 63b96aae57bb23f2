import Model
import SyncClient
import Testing
import Wire

/// What a device owes its user: kept with the entries, so that a process that is killed before it
/// has told leaves word to the next. On both engines.
@Suite struct OwedTests {
    static let room = ConversationID(high: 1, low: 1)

    private func withLocal(
        _ engine: EngineFactory, _ body: (any Store, TableLocalStore) throws -> Void
    ) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store, keepsOwed: true)
            try local.saveSession(token: [1], user: "anna")
            try body(store, local)
        }
    }

    private func message(
        _ number: UInt64, sender: String = "ben", alerted: Bool = false, hasText: Bool = true
    ) -> Entry {
        Entry(
            seq: number, conversation: Self.room, object: object(number).bytes, version: number,
            alerted: alerted,
            body: .message(
                MessageState(
                    position: number, sender: sender,
                    push: hasText ? PushText(title: "Ben", body: "\(number)") : nil)))
    }

    private func edited(_ number: UInt64, at seq: UInt64) -> Entry {
        var entry = message(number)
        (entry.seq, entry.version) = (seq, seq + 100)
        guard case .message(var state) = entry.body else { return entry }
        state.editedMs = seq
        entry.body = .message(state)
        return entry
    }

    private func object(_ number: UInt64) -> MessageID { MessageID(high: 2, low: number) }

    private func change(_ entries: [Entry], history: UInt64? = nil) -> LocalChange {
        let seq = entries.map(\.seq).max() ?? 0
        return LocalChange(
            entries: entries, to: Cursor(epoch: Epoch(high: 1, low: 0), seq: seq),
            historyThrough: history)
    }

    private func owed(_ local: TableLocalStore) throws -> [UInt64] {
        try local.owed().map(\.object.low)
    }

    @Test("what is applied is owed until it is settled, whatever process asks", arguments: engines)
    func whatIsAppliedIsOwedUntilItIsSettled(_ engine: EngineFactory) throws {
        try withLocal(engine) { store, local in
            _ = try local.apply(change([message(1), message(2), message(3)]))
            let next = TableLocalStore(store: store, keepsOwed: true)
            #expect(try next.owed().map(\.entry) == [message(1), message(2), message(3)])
            #expect(try next.owed().allSatisfy { $0.conversation == Self.room })
            try next.settle([object(2)])
            #expect(try owed(next) == [1, 3])
            // The same page again is news to nobody.
            _ = try next.apply(change([message(1), message(2), message(3)]))
            #expect(try owed(next) == [1, 3])
            try next.settle([object(1), object(3), object(9)])
            #expect(try next.owed().isEmpty)
        }
    }

    @Test("owed is what is news: of others, with a text, not alerted, not history")
    func onlyNewsIsOwed() throws {
        for engine in engines {
            try withLocal(engine) { _, local in
                _ = try local.apply(change([message(1), message(2)], history: 5))
                #expect(try local.owed().isEmpty)
                _ = try local.apply(
                    change([
                        message(5), message(6, sender: "anna"), message(7, alerted: true),
                        message(8, hasText: false), message(9),
                        Entry(
                            seq: 10, object: object(10).bytes, version: 1,
                            body: .announcement(
                                AnnouncementState(push: PushText(title: "", body: "sale")))),
                    ]))
                #expect(try owed(local) == [9, 10])
                #expect(try local.owed().last?.conversation == nil)
            }
        }
    }

    @Test("a peek owes too, and the feed behind it owes nothing twice", arguments: engines)
    func aPeekOwesToo(_ engine: EngineFactory) throws {
        try withLocal(engine) { _, local in
            _ = try local.applyHistory(HistoryChange(entries: [message(4)]))
            try local.settle([object(4)])
            _ = try local.apply(change([message(3), message(4)]))
            #expect(try owed(local) == [3])
        }
    }

    @Test("an edit of what was told is told by what stands alone", arguments: engines)
    func anEditOfWhatWasTold(_ engine: EngineFactory) throws {
        try withLocal(engine) { _, local in
            _ = try local.apply(change([message(1), message(2), message(3, hasText: false)]))
            try local.settle([object(1)])
            _ = try local.apply(
                change([edited(1, at: 4), edited(2, at: 5), edited(3, at: 6), edited(7, at: 7)]))
            // The second is owed still, the third has its first text, the last came with the edit.
            #expect(try owed(local) == [1, 2, 3, 7])
            #expect(try local.owed().map(\.wasAlerted) == [true, false, false, false])
            try local.settle([object(2)])
            _ = try local.applyHistory(HistoryChange(entries: [edited(2, at: 8)]))
            #expect(try local.owed().last?.wasAlerted == true)
        }
    }

    @Test("another user is owed nothing of the first, and the oldest of many go")
    func anotherUser() throws {
        for engine in engines {
            try withLocal(engine) { _, local in
                _ = try local.apply(change((1...600).map { message($0) }))
                #expect(try owed(local) == Array(89...600))
                try local.saveSession(token: [1], user: "kim")
                #expect(try local.owed().isEmpty)
            }
        }
    }

    @Test("a store that was not asked to keeps nothing of it", arguments: engines)
    func onlyIfAsked(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            _ = try TableLocalStore(store: store).apply(change([message(1)]))
            #expect(try TableLocalStore(store: store, keepsOwed: true).owed().isEmpty)
        }
    }
}
