import Model
import PostgresPeer
import PostgresStore
import Synchronization
import Testing
import Wake
import Wire

@testable import Feed

/// Carries out what a world is asked for a second time, on a real PostgreSQL server, and compares
/// what is answered, and at the end every row.
final class PostgresMirror {
    private static let schemas = Mutex(0)

    private let store: MirrorStore
    private var transactions = 0

    init() throws {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        let number = Self.schemas.withLock { number in
            number += 1
            return number
        }
        options.schema = "mirror_\(number)"
        store = MirrorStore(
            try PostgresStore(
                tables: Schema.tables, lockRanks: Schema.lockRanks, options: options))
    }

    deinit { store.close() }

    func commit(
        _ requests: [StoreRequest], at now: Timestamp, limits: RuleLimits, zones: any ZoneClock,
        expecting expected: [Result<StoreOutcome, StoreError>]
    ) throws(StoreError) {
        store.clock = now
        var group = GroupCommit(requests)
        (group.limits, group.zones) = (limits, zones)
        let results = try store.commit(group) { _ in }
        transactions += 1
        let kinds = requests.map(\.kind).joined(separator: ", ")
        #expect(results == expected, "\(kinds), in PostgreSQL")
    }

    /// Writes rows behind the rules' back, as in the world's store.
    func tamper(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try store.write(body)
    }

    /// Compares all rows with those of the store.
    func compare(with memory: any Store) throws {
        #expect(transactions > 0, "nothing was asked for")
        for table in Schema.tables {
            let all = try [store as any Store, memory].map { store throws in
                var rows: [[ColumnValue]] = []
                try store.read { snapshot throws(StoreError) in
                    rows = try snapshot.rows(table, Scan(limit: 1_000_000))
                }
                return rows
            }
            #expect(all[0] == all[1], "\(table.name): \(all[0].count), \(all[1].count) rows")
        }
    }
}

/// A database that goes by the world's clock.
private final class MirrorStore: DistantStore {
    private let base: PostgresStore
    var clock = Timestamp(milliseconds: 0)

    init(_ base: PostgresStore) { self.base = base }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write(body)
    }

    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try base.writeFetching(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try base.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    func now() -> Timestamp { clock }
    func checkpoint() throws(StoreError) { try base.checkpoint() }
    func close() { base.close() }
}

/// The schedules of the other suites, with a database beside the world's store: fewer of them, for
/// each request is some round trips.
@Suite(
    .serialized, .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresScheduleTests {
    @Test("operations in any order", arguments: [3_000, 3_001] as [UInt64])
    func anyOrder(_ seed: UInt64) throws {
        try World.$isMirrored.withValue(true) {
            let schedule = try PairSchedule(seed: seed)
            try schedule.run(steps: 250)
            if let report = schedule.report(steps: 12) { Issue.record("seed \(seed): \(report)") }
            try schedule.state.world.compareMirror()
        }
    }

    @Test("numbers of unread messages", arguments: [40, 41] as [UInt64])
    func unread(_ seed: UInt64) throws {
        try World.$isMirrored.withValue(true) {
            let schedule = try UnreadSchedule(seed: seed, nil)
            try schedule.run(steps: 80)
            #expect(schedule.finding == nil)
            try schedule.world.compareMirror()
        }
    }

    @Test("lives of waking", arguments: [60, 61] as [UInt64])
    func waking(_ seed: UInt64) throws {
        try World.$isMirrored.withValue(true) {
            let model = try WakeModel(seed: seed)
            try model.run(steps: 250)
            #expect(model.violations == [])
            try model.world.compareMirror()
        }
    }
}
