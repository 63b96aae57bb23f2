import Feed
import MemoryStore
import Model
import PostgresPeer
import PostgresStore

/// A schema of a real PostgreSQL server. A commit that fails really does: what was sent is rolled
/// back or committed, or the server ends the connection with the transaction in it.
final class PostgresDisk: SimulatedDisk {
    private let peer: PostgresPeer
    /// The role, by which the server knows this disk's connections; each machine has a schema.
    private let name: String
    private var machines = 0
    private var database: FailingDatabase
    private var lossesBefore = 0

    var store: any Store { database }
    var clock: Timestamp {
        get { database.clock }
        set { database.clock = newValue }
    }
    var fault: Fault? {
        get { database.fault }
        set { database.fault = newValue }
    }
    /// How many connections were lost with a transaction in them.
    var losses: Int { lossesBefore + database.losses }

    /// - Parameter name: Of no other one on the server.
    init(_ name: String) throws {
        self.name = name
        peer = try PostgresPeer.shared()
        try peer.carryOut("CREATE ROLE \(name) LOGIN SUPERUSER")
        database = try FailingDatabase(peer, role: name, schema: "\(name)_0")
    }

    func open() throws {
        let clock = clock
        leave()
        database = try FailingDatabase(peer, role: name, schema: "\(name)_\(machines)")
        database.clock = clock
    }

    func restore(_ backup: MemoryStore) throws {
        machines += 1
        try open()
        try backup.read { snapshot throws(StoreError) in
            for table in Schema.tables {
                let rows = try snapshot.rows(table, Scan(limit: 1_000_000))
                try database.write { transaction throws(StoreError) in
                    for row in rows { try transaction.put(table, row) }
                }
            }
        }
    }

    /// Closes the connection, and takes away what is on the server.
    func drop() throws {
        leave()
        let schemas = (0...machines).map { "\(name)_\($0)" }.joined(separator: ", ")
        try peer.carryOut("DROP SCHEMA \(schemas) CASCADE; DROP ROLE \(name)")
    }

    private func leave() {
        lossesBefore += database.losses
        database.close()
    }
}

extension PostgresPeer {
    fileprivate func carryOut(_ sql: String) throws {
        let problem = try psql(sql)
        if !problem.isEmpty { throw Violation(problem) }
    }
}

/// The product's store as one process has it open, going by the world's clock.
private final class FailingDatabase: DistantStore {
    private let peer: PostgresPeer
    private let role: String
    private let base: PostgresStore
    var clock = Timestamp(milliseconds: 0)
    var fault: SimulatedDisk.Fault?
    private(set) var losses = 0

    init(_ peer: PostgresPeer, role: String, schema: String) throws {
        self.peer = peer
        self.role = role
        var options = PostgresOptions(
            address: "host=\(peer.folder) user=\(role) dbname=postgres")
        options.schema = schema
        base = try PostgresStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks, options: options)
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try writeFetching { transaction throws(StoreError) in try body(transaction) }
    }

    /// As in memory, a fault meets the first body that comes to its end.
    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        var met: SimulatedDisk.Fault?
        do throws(StoreError) {
            try base.writeFetching { transaction throws(StoreError) in
                try body(transaction)
                (met, fault) = (fault, nil)
                switch met {
                case nil, .lostAfterCommit: break
                case .full: throw .full("an injected fault")
                case .conflict: throw .conflict("an injected fault")
                case .lostBeforeCommit: try endConnection()
                }
            }
        } catch {
            guard met == .lostBeforeCommit else { throw error }
            // The store has found out that nothing was committed, and says that the same may be
            // tried again. The server of the simulation hears what one hears who cannot know.
            // Were the store to say that it was committed, the server would believe it.
            losses += 1
            throw .unavailable("an injected fault: \(error)")
        }
        if met == .lostAfterCommit { throw .unavailable("an injected fault") }
    }

    private func endConnection() throws(StoreError) {
        do {
            try peer.carryOut(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    + "WHERE usename = '\(role)'")
        } catch {
            throw .unavailable("no connection was ended: \(error)")
        }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try base.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    func now() -> Timestamp { clock }
    func checkpoint() throws(StoreError) { try base.checkpoint() }
    func close() { base.close() }
}
