import Feed
import MemoryStore
import Model

/// What a simulated server leaves behind when it is killed: its store, which fails when it is told
/// to. Time is the world's.
protocol SimulatedDisk: AnyObject {
    typealias Fault = MemoryStore.CommitFault

    /// As the process that ran last has it open: whoever judges looks through it as well.
    var store: any Store { get }
    var clock: Timestamp { get set }
    /// What happens to the next commit.
    var fault: Fault? { get set }

    /// A process begins. The one before may have been killed, and closed nothing.
    func open() throws
    /// The machine is another one, and holds what was backed up.
    func restore(_ backup: MemoryStore) throws
}

extension SimulatedDisk {
    /// A copy of every row.
    func backUp() throws -> MemoryStore {
        try store.copied(Schema.tables, Schema.lockRanks, clock: clock)
    }
}

/// The store of the simulations: no round trips, and locks and guards that are checked.
final class MemoryDisk: SimulatedDisk {
    private var memory = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)

    var store: any Store { memory }
    var clock: Timestamp {
        get { memory.clock }
        set { memory.clock = newValue }
    }
    var fault: Fault? {
        get { memory.faults.first ?? nil }
        set { memory.faults = newValue.map { [$0] } ?? [] }
    }

    func open() { memory.isSoleWriter = true }

    func restore(_ backup: MemoryStore) throws {
        let clock = clock
        memory = try backup.copied(Schema.tables, Schema.lockRanks, clock: clock)
    }
}

extension Store {
    /// Another store, in memory, with what is in this one.
    func copied(
        _ tables: [Table], _ lockRanks: [String: Int] = [:], clock: Timestamp
    ) throws -> MemoryStore {
        let copy = MemoryStore(tables: tables, lockRanks: lockRanks, clock: clock)
        try read { snapshot throws(StoreError) in
            for table in tables {
                let rows = try snapshot.rows(table, Scan(limit: 1_000_000))
                try copy.arrange { transaction throws(StoreError) in
                    for row in rows { try transaction.put(table, row) }
                }
            }
        }
        return copy
    }
}
