import Feed
import Foundation
import Model
import PostgresPeer
import Testing

/// The simulation on a real PostgreSQL server. Everything is judged as in memory, and a seed must
/// lead the same life on both, fault by fault, to the same rows.
///
/// One seed: ROUSE_SEED=N; more of them: ROUSE_POSTGRES_SIMULATIONS=100, each then with as long a
/// storm as in memory.
@Suite(.serialized, .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresSimulationTests {
    /// Ones whose servers are restored from a backup.
    private static let fixed: [UInt64] = [4, 10]

    private static let mustReach = [
        "the server killed", "a commit fails: full", "a commit fails: conflict",
        "a commit fails: lostBeforeCommit", "a commit fails: lostAfterCommit",
        "the server restored", "a feed read whole", "messages compared", "unread compared",
        "a silent push", "a alert push", "a demotion", "a recovery", "a notification judged",
        "a digest compared",
    ]

    @Test func promisesHoldOnPostgreSQL() throws {
        let environment = ProcessInfo.processInfo.environment
        var seeds = Self.fixed
        var stormy: Milliseconds = 60_000
        let count = environment["ROUSE_POSTGRES_SIMULATIONS"].flatMap(Int.init)
        if let seed = environment["ROUSE_SEED"].flatMap(UInt64.init) {
            (seeds, stormy) = ([seed], 180_000)
        } else if let count {
            seeds += (0..<count).map { _ in UInt64.random(in: 1_000...UInt64(UInt32.max)) }
            stormy = 180_000
        }
        var reached = Reached()
        var (steps, losses) = (0, 0)
        for seed in seeds {
            let disk = try PostgresDisk("simulation_\(seed)")
            let simulation = try Simulation(seed: seed, stormy: stormy, disk: disk)
            do {
                try simulation.run()
                try Self.compare(simulation, on: disk)
            } catch {
                Issue.record("ROUSE_SEED=\(seed) on PostgreSQL: \(error)")
            }
            steps += simulation.clock.steps
            losses += disk.losses
            reached.add(simulation.reached)
            try disk.drop()
        }
        print("simulated \(seeds) on PostgreSQL, \(steps) steps, \(losses) connections lost")
        guard seeds.count > 1 else { return }
        #expect(losses > 0)
        for name in Self.mustReach where reached[name] == 0 {
            Issue.record("never reached: \(name)")
        }
    }

    /// The same seed in memory came to the same.
    private static func compare(_ simulation: Simulation, on disk: PostgresDisk) throws {
        let memory = MemoryDisk()
        let other = try Simulation(seed: simulation.seed, stormy: simulation.stormy, disk: memory)
        try other.run()
        #expect(simulation.clock.steps == other.clock.steps)
        #expect(simulation.reached.counts == other.reached.counts)
        for table in Schema.tables {
            let rows = try [disk.store, memory.store].map { store throws in
                var rows: [[ColumnValue]] = []
                try store.read { snapshot throws(StoreError) in
                    rows = try snapshot.rows(table, Scan(limit: 1_000_000))
                }
                return rows
            }
            let isSame = rows[0] == rows[1]
            #expect(isSame, "\(table.name): \(rows[0].count), \(rows[1].count) rows")
        }
    }
}
