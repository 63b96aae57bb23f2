/// What went wrong with the store: the world's fault, never a rule's.
public enum StoreError: Error, Equatable, Sendable {
    /// No space is left, or writing failed: nothing was committed. Callers answer 507 / 1004.
    case full(String)
    /// Another transaction was in the way (deadlock, serialization): the same again may succeed.
    case conflict(String)
    /// The store cannot be used: it is closed, corrupt, of another version, or its connection is
    /// lost. Whether an open transaction was committed is unknown.
    case unavailable(String)
    /// A row did not have the form its table says.
    case corrupt(String)
}

/// Which rows a scan takes, and in which order.
///
/// The order is total and the same in every engine: null before every value, integers by value,
/// texts by their UTF-8 bytes, blobs by their bytes, a shorter one before a longer one it begins.
/// Text is never compared by Unicode equivalence.
public struct Scan: Hashable, Sendable {
    /// The name of one of the table's indexes; `nil`: its key.
    public var index: String?
    /// Equal to the first columns of the index's order; may hold nulls.
    public var prefix: [ColumnValue]
    /// Exclusive lower bound on the next columns of the order after the prefix, compared column
    /// by column (a shorter bound compares its columns only: `[5]` leaves out every row with 5).
    /// A bound is not empty, holds no null, and its columns are never null in the index: not
    /// optional, or the index's `presentColumn`.
    public var after: [ColumnValue]?
    /// Inclusive upper bound of the same kind (`[5]` takes every row with 5).
    public var through: [ColumnValue]?
    /// Gives the rows between the bounds from the last to the first. It does not exchange the
    /// bounds: `after` stays the lower one.
    public var descending: Bool
    /// The most rows given; 0 or less gives none.
    public var limit: Int
    public var lock: RowLock

    public init(
        index: String? = nil, prefix: [ColumnValue] = [], after: [ColumnValue]? = nil,
        through: [ColumnValue]? = nil, descending: Bool = false, limit: Int,
        lock: RowLock = .none
    ) {
        self.index = index
        self.prefix = prefix
        self.after = after
        self.through = through
        self.descending = descending
        self.limit = limit
        self.lock = lock
    }
}

/// Whether rows read are held until the transaction ends. An engine with a single writer may
/// ignore it; the order in which a transaction waits for rows is the rules' to keep (for the
/// server's tables: `Schema`).
///
/// A lock of one key holds the key, also while no row is there: nobody else locks it or inserts
/// the row. A scan holds the rows that it gives, and no place between them.
public enum RowLock: Hashable, Sendable {
    case none
    /// Wait for the row. An engine that finds that it would wait for ever, or does not wait at
    /// all, throws `.conflict`.
    case wait
    /// Leave out rows that another transaction holds.
    case skip
    /// Wait for the row, which others may hold in the same way: nobody writes it meanwhile.
    case share
}

/// A consistent view of the store. Valid only inside the `body` it was handed to.
///
/// A key, row or scan that does not fit its table (`Table.problem(...)`) is a fault of the
/// calling code: engines stop with a precondition, they do not throw. A snapshot of `read`
/// takes no locks: `lock` is `.none` there.
public protocol StoreSnapshot: AnyObject {
    /// The row with this key, all columns in the table's order; `nil` if there is none.
    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    /// Rows in order.
    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]]
}

/// An open transaction: what `StoreSnapshot` reads plus row writes. It sees its own writes.
/// No rule lives behind it: who gets what is decided by the callers in Core.
///
/// Where there are other writers, each read shows what they have committed until then. So who
/// writes keeps to two rules, which engines need not check (`MemoryStore` does):
///
/// - The transaction holds the guard of each row that it writes or deletes (`Table.rowGuard`).
/// - Whatever it writes over, or deletes because of what stood there, it has read since it held
///   the guard: what was read before may have become something else.
public protocol StoreTransaction: StoreSnapshot {
    /// Waits for the key as `row` with `.wait` does, whatever is there.
    func hold(_ table: Table, key: [ColumnValue]) throws(StoreError)
    /// Inserts the row, or replaces the one with the same key, which this transaction has read.
    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError)
    /// Writes a row under a key that has none: the transaction found that it has none, or the key
    /// cannot have been used. If there is one all the same, the engine throws `.conflict`, at the
    /// latest when the transaction is committed.
    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError)
    /// Writes a row that this transaction has read, of which these columns, ascending, none of
    /// them the key's, differ from what it read. An engine that finds no such row throws
    /// `.conflict`.
    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError)
    /// Deletes the row with this key, if there is one.
    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError)
    /// Runs `body`; if it throws, everything it wrote is undone and the error thrown on.
    /// The transaction itself goes on unless the error is `.unavailable` or `.full`: after one
    /// of these every further call, and `write` itself, throws it again, even if `body`'s caller
    /// caught it. Savepoints nest.
    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError)
    /// Runs `body`, whose locks are a sequence of their own in the lock order, also inside another:
    /// what that took is no part of it. Nothing is undone if it throws.
    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError)
}

extension StoreTransaction {
    public func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        _ = try row(table, key: key, lock: .wait)
    }
    public func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try put(table, row)
    }
    public func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try put(table, row)
    }
}

/// A durable set of tables. One contract, several engines (StoreContractTests).
///
/// - A transaction is atomic and isolated: as if transactions ran one after another on the rows
///   they locked.
/// - `write` returns only after everything is on disk; an error means nothing was committed,
///   except `.unavailable`, after which it is unknown.
/// - One object of this kind is used by one thread; `reader()` gives another thread its own.
public protocol Store: AnyObject {
    /// Runs `body` in one transaction and commits it. If `body` throws, nothing is written and
    /// its error is thrown on. Neither `write` nor `read` of this object is called inside `body`.
    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError)
    /// Runs `body` on one consistent snapshot that holds everything committed before the call.
    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError)
    /// A second view of the same store for another thread, for reading only.
    func reader() throws(StoreError) -> any StoreReader
    /// Nobody else writes while this object is open: what one of its transactions has read is
    /// still so in the next.
    var isSoleWriter: Bool { get }
    /// The engine has met damage in what it reads, and nothing helps but another store: what it
    /// throws is `.unavailable` all the same.
    var isDamaged: Bool { get }
    /// What writing has cost so far.
    var effort: StoreEffort { get }
    /// The store's clock: milliseconds since 1970.
    func now() -> Timestamp
    /// Moves committed data out of the journal where the engine has one; cheap when there is
    /// nothing to do. Called when the store is idle, and at the latest every few seconds.
    func checkpoint() throws(StoreError)
    /// The journal has grown by so much since the last checkpoint that the next one should not
    /// wait until the store is idle; between two transactions is soon enough.
    var isCheckpointDue: Bool { get }
    /// The journal is larger than it should be. After a checkpoint it begins anew, unless somebody
    /// holds a snapshot at that moment.
    var isJournalFull: Bool { get }
    /// What is to be done about the journal now, by whoever has another thread to do it on. Asked
    /// after each transaction.
    func journalTurn() throws(StoreError) -> JournalTurn
    /// The move that `journalTurn` gave has been run, successfully or not.
    func journalMoved() throws(StoreError)
    /// A move that `journalTurn` gave has ended by then, or never begins.
    func close()
}

extension Store {
    public var isSoleWriter: Bool { false }
    public var isDamaged: Bool { false }
    public var effort: StoreEffort { StoreEffort() }
    public var isCheckpointDue: Bool { false }
    public var isJournalFull: Bool { false }
    public func journalTurn() throws(StoreError) -> JournalTurn {
        isCheckpointDue ? .checkpoint : .nothing
    }
    public func journalMoved() throws(StoreError) {}
}

/// What opening a store is going to make of it.
public enum StoreUpgrade: Equatable, Sendable {
    /// It has no tables yet: it is a new one.
    case create
    /// An older program has made it: it is brought from that schema to this program's.
    case migrate(from: Int, to: Int)
}

/// What is to be done about a store's journal.
public enum JournalTurn {
    /// Nothing, or not yet.
    case nothing
    /// A checkpoint, which holds the store's thread.
    case checkpoint
    /// This, on another thread; then `Store.journalMoved`. Until then there is no other turn.
    case move(any JournalMove)
}

/// A part of the journal that can be moved into the database while the store writes on.
public protocol JournalMove: AnyObject, Sendable {
    /// Moves it. On any thread, once.
    func run()
}

/// What an engine's writes have cost it since it was opened; 0 where it does not count.
public struct StoreEffort: Equatable, Sendable {
    /// Statements, those that begin and end transactions among them.
    public var statements: UInt64
    /// Bytes written to the journal.
    public var journalBytes: UInt64
    /// How often an answer of another process was waited for.
    public var roundTrips: UInt64
    /// Bytes that the journal holds now.
    public var journalSize: Int

    public init(
        statements: UInt64 = 0, journalBytes: UInt64 = 0, roundTrips: UInt64 = 0,
        journalSize: Int = 0
    ) {
        self.statements = statements
        self.journalBytes = journalBytes
        self.roundTrips = roundTrips
        self.journalSize = journalSize
    }

    /// What both have cost.
    public static func + (one: StoreEffort, other: StoreEffort) -> StoreEffort {
        StoreEffort(
            statements: one.statements + other.statements,
            journalBytes: one.journalBytes + other.journalBytes,
            roundTrips: one.roundTrips + other.roundTrips,
            journalSize: one.journalSize + other.journalSize)
    }
}

/// Reads the same store beside its writer, on a thread of its own.
public protocol StoreReader: AnyObject {
    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError)
    func close()
}

extension StoreError: CustomStringConvertible {
    /// Which of them it is, for a metric.
    public var kind: String {
        switch self {
        case .full: "full"
        case .conflict: "conflict"
        case .unavailable: "unavailable"
        case .corrupt: "corrupt"
        }
    }

    /// What happened, without which of them it is.
    public var words: String {
        switch self {
        case .full(let words), .conflict(let words), .unavailable(let words),
            .corrupt(let words):
            words
        }
    }

    /// For people.
    public var description: String {
        let what =
            switch self {
            case .full: "the store cannot be written"
            case .conflict: "the store is busy"
            case .unavailable: "the store cannot be used"
            case .corrupt: "the store holds what cannot be read"
            }
        return words.isEmpty ? what : "\(what): \(words)"
    }
}
