import Foundation
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
    private let schema: String
    private var transactions = 0

    init() throws {
        let number = Self.schemas.withLock { number in
            number += 1
            return number
        }
        schema = "mirror_\(number)"
        store = try MirrorStore(schema: schema)
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

    /// Another node's store of the same rows.
    func another() throws -> MirrorStore { try MirrorStore(schema: schema) }

    /// Every row of the table, in order.
    func rows(_ table: Table) throws(StoreError) -> [[ColumnValue]] {
        try store.allRows(table)
    }

    /// Compares all rows with those of the store.
    func compare(with memory: any Store) throws {
        #expect(transactions > 0, "nothing was asked for")
        for table in Schema.tables {
            let all = [try rows(table), try memory.allRows(table)]
            #expect(all[0] == all[1], "\(table.name): \(all[0].count), \(all[1].count) rows")
        }
    }
}

extension Store {
    /// In the order of their keys.
    func allRows(_ table: Table) throws(StoreError) -> [[ColumnValue]] {
        var rows: [[ColumnValue]] = []
        try read { snapshot throws(StoreError) in
            rows = try snapshot.rows(table, Scan(limit: 1_000_000))
        }
        return rows
    }
}

/// A database that goes by the world's clock.
final class MirrorStore: DistantStore, FrontedStore {
    private let base: PostgresStore
    var fronted: any Store { base }
    var clock = Timestamp(milliseconds: 0)

    /// - Parameter tables: those of an earlier schema are as an earlier program made them.
    init(schema: String, tables: [Table] = Schema.tables) throws {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        base = try PostgresStore(tables: tables, lockRanks: Schema.lockRanks, options: options)
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write(body)
    }

    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try base.writeFetching(body)
    }

    func now() -> Timestamp { clock }
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

    /// Two nodes at once, as two threads with a connection each: what they are asked for goes by
    /// the seed, how they meet does not. `ROUSE_PAIR_SEED` repeats a seed, and
    /// `ROUSE_NODE_MEETINGS` runs so many.
    @Test func nothingBreaksBetweenTwoNodes() throws {
        let environment = ProcessInfo.processInfo.environment
        let only = environment["ROUSE_PAIR_SEED"].flatMap(UInt64.init)
        let count = environment["ROUSE_NODE_MEETINGS"].flatMap(UInt64.init) ?? 3
        var all = PairSchedule.Meetings()
        var steps = 0
        for seed in 4_000..<4_000 + count where only ?? seed == seed {
            try World.$isMirrored.withValue(true) {
                let schedule = try PairSchedule(seed: seed)
                let met = try schedule.runOnNodes(rounds: 60)
                if let report = schedule.report(steps: 12) {
                    Issue.record("ROUSE_PAIR_SEED=\(seed): \(report)")
                }
                try schedule.state.world.compareMirror()
                all.add(met)
                steps += schedule.steps
            }
        }
        print(
            """
            \(count) seeds, \(steps) steps: \(all.count) meetings of two nodes, \(all.overlaps) \
            at once, \(all.operations) operations, \(all.conflicts) carried out again, \
            \(all.sent) messages
            """)
        // How many is the machine's.
        #expect(all.overlaps > 0)
        // Locks are taken in one order, or not waited for.
        let problem = try PostgresPeer.shared().psql(
            """
            DO $$ BEGIN IF (SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres') > 0
            THEN RAISE EXCEPTION 'two transactions waited for each other'; END IF; END $$
            """)
        #expect(problem == "")
    }
}
