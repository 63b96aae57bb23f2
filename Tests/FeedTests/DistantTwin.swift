import Foundation
import MemoryStore
import Model
import Testing
import Wake
import WorkingSet

@testable import Feed

/// Carries out requests a second time, on a copy of the store that is a round trip away, has other
/// writers and whose every first read misses, and compares what is answered and what is stored.
///
/// The copy holds the rules to the whole contract: the order of locks, the guard of each row that
/// is written, and that nothing is written over as it was before its guard was locked.
final class DistantTwin {
    /// The first transactions of each world are compared, and of the later ones one of so many.
    /// `ROUSE_DISTANT=1` compares all.
    static let every =
        ProcessInfo.processInfo.environment["ROUSE_DISTANT"].flatMap(Int.init) ?? 16
    private static let first = 24

    /// `.max`: none is compared.
    var every = DistantTwin.every
    /// `nil`: in turn what is expected, nothing, and lies.
    var plan: ReadPlan?
    /// Told of the reads of each fetch.
    var onFetch: ([Read]) -> Void = { _ in }
    private var transactions = 0
    private var compared = 0
    private var earlier: StoreRequest?

    /// - Parameter commit: commits the requests on the store it is given.
    func commit(
        _ requests: [StoreRequest], on engine: any Store, over memory: MemoryStore,
        limits: RuleLimits, zones: any ZoneClock,
        _ commit: (any Store) throws(StoreError) -> [Result<StoreOutcome, StoreError>]
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        transactions += 1
        guard transactions % every == 0 || every < .max && transactions <= Self.first,
            engine is MemoryStore || engine is WatchedStore,
            memory.outage == nil
        else { return try commit(engine) }
        let kinds = requests.map(\.kind).joined(separator: ", ")
        let copy = memory.copy()
        copy.breach = { Issue.record("\(kinds), far away: \($0)") }
        let far = WrittenRows(copy)
        var group = GroupCommit(requests)
        (group.limits, group.zones, group.plan) = (limits, zones, plan ?? nextPlan())
        let distant = DistantEngine(far, lockRanks: Schema.lockRanks)
        distant.onFetch = { self.onFetch($0) }
        let results = try distant.commit(group) { _ in }
        earlier = requests.first
        let near = WrittenRows(engine)
        let expected = try commit(near)
        #expect(results == expected, "\(kinds), far away")
        for place in far.places.union(near.places) {
            let there = try place.row(in: copy)
            let here = try place.row(in: memory)
            #expect(there == here, "\(kinds), far away: \(place.table.name)\(place.key)")
        }
        return expected
    }

    private func nextPlan() -> ReadPlan {
        compared += 1
        return switch compared % 3 {
        case 0: .expected
        case 1: .none
        default: lies()
        }
    }

    /// Expects what another request read, reads before their locks the rows that requests lock,
    /// and locks rows that nobody needs.
    private func lies() -> ReadPlan {
        let earlier = earlier
        return ReadPlan(rounds: 3) { expected, hints in
            guard case .request = expected else {
                return ReadPlan.expected.hint(expected, hints)
            }
            for table in [ConversationRecord.table, UserRecord.table, DeviceRecord.table] {
                hints.ask(table, Scan(descending: true, limit: 7))
                hints.ask(table, Scan(limit: 2))
            }
            hints.ask(EntryRecord.self, Scan(index: "entry_by_object", limit: 5))
            hints.ask(ParticipantRecord.self, Scan(limit: 5))
            hints.ask(UserRecord.self, [.app(World.app), .text("nobody")], lock: .wait)
            if let earlier { ReadPlan.expected.hint(.request(earlier), hints) }
        }
    }
}

/// Notes which rows transactions write.
private final class WrittenRows: Store {
    struct Place: Hashable {
        let table: Table
        let key: [ColumnValue]

        func row(in store: MemoryStore) throws(StoreError) -> [ColumnValue]? {
            var found: [ColumnValue]?
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.row(self.table, key: self.key, lock: .none)
            }
            return found
        }
    }

    private let base: any Store
    private(set) var places: Set<Place> = []

    init(_ base: any Store) { self.base = base }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write { transaction throws(StoreError) in
            try body(Transaction(transaction, of: self))
        }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try base.read(body)
    }

    var isSoleWriter: Bool { base.isSoleWriter }
    func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    func now() -> Timestamp { base.now() }
    func checkpoint() throws(StoreError) { try base.checkpoint() }
    func close() { base.close() }

    private final class Transaction: StoreTransaction {
        let base: any StoreTransaction
        let store: WrittenRows

        init(_ base: any StoreTransaction, of store: WrittenRows) {
            self.base = base
            self.store = store
        }

        private func note(_ table: Table, _ key: some Sequence<ColumnValue>) {
            store.places.insert(Place(table: table, key: Array(key)))
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        { try base.row(table, key: key, lock: lock) }

        func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
            try base.rows(table, scan)
        }

        func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            try base.hold(table, key: key)
        }

        func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            note(table, row[..<table.keyCount])
            try base.put(table, row)
        }

        func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            note(table, row[..<table.keyCount])
            try base.insert(table, row)
        }

        func update(
            _ table: Table, _ row: [ColumnValue], columns: [Int]
        ) throws(StoreError) {
            note(table, row[..<table.keyCount])
            try base.update(table, row, columns: columns)
        }

        func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            note(table, key)
            try base.delete(table, key: key)
        }

        func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.savepoint(body)
        }

        func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.lockSequence(body)
        }
    }
}
