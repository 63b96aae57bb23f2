import Failpoints
import Model

/// Moves a part of the journal into the database on another thread, over a connection of its own,
/// while the store's connection appends to the journal.
///
/// SQLite 3.7.0 to 3.51.2 can corrupt the file when the journal begins anew while another
/// connection's checkpoint runs (sqlite.org/wal.html, "WAL-reset bug"). Here it cannot begin anew
/// meanwhile. It only does with a transaction that finds at its beginning that every page is
/// moved, and a snapshot that is held until the checkpoint has returned keeps it from moving more
/// than `pages` pages, while the journal holds more than these from before it starts.
///
/// Used by the store's thread, but from `taken` to `ended`, between which `run` is called.
final class SideCheckpoint: JournalMove, @unchecked Sendable {
    // @unchecked: the thread that runs it gets it from the store's, and gives it back to that.

    private enum State {
        case idle
        /// The snapshot is held, and the journal may not hold more yet.
        case held
        case taken
    }

    /// The store's connection, whose journal it is.
    let writer: Connection
    /// Moves nothing and holds the snapshot.
    private let holder: Connection
    let mover: Connection
    private let syncs: Bool
    private var state = State.idle
    /// Pages in the journal when the snapshot was taken.
    private(set) var pages = 0
    private var outcome: Result<Int, StoreError>?

    init(beside writer: Connection, options: SQLiteOptions) throws(StoreError) {
        self.writer = writer
        syncs = options.syncs
        holder = try Connection(path: writer.path, mode: .reader, busyTimeout: 0)
        mover = try Connection(path: writer.path, mode: .mover, busyTimeout: 0)
        _ = try mover.texts("PRAGMA synchronous = \(options.syncs ? "FULL" : "OFF")")
        _ = try mover.texts("PRAGMA wal_autocheckpoint = 0")
        // Only what has read something knows that there is a journal.
        _ = try mover.texts(Self.anyRead)
    }

    private static let anyRead = "SELECT 1 FROM sqlite_schema LIMIT 1"

    var isHeld: Bool { state == .held }
    var isTaken: Bool { state == .taken }
    /// Why it is not used again.
    var distrust: Failure? { holder.distrust ?? mover.distrust }
    /// What it moved may not be on the disk.
    var isUnsynced: Bool { mover.isUnsynced }

    /// Fixes what can be moved: what the journal holds now.
    func hold() throws(StoreError) {
        precondition(state == .idle, "a snapshot is held already")
        try holder.execute("BEGIN")
        do throws(StoreError) {
            // BEGIN alone takes no snapshot: the first read does.
            _ = try holder.texts(Self.anyRead)
        } catch {
            letGo()
            throw error
        }
        pages = writer.journalPages
        state = .held
    }

    /// Gives the snapshot back, and moves nothing.
    func release() {
        guard state == .held else { return }
        letGo()
        state = .idle
    }

    private func letGo() {
        if holder.isInTransaction { try? holder.execute("ROLLBACK") }
        // It must not be held on, whatever went wrong; then the next turn cannot hold one and
        // makes a new object.
        if holder.isInTransaction { holder.close() }
    }

    /// From here on it belongs to whoever runs it.
    func taken() {
        precondition(state == .held && writer.journalPages > pages, "nothing lies above the move")
        outcome = nil
        state = .taken
    }

    func run() {
        Failpoint.hit(.checkpointBegun)
        do throws(StoreError) {
            outcome = .success(try mover.checkpoint(.passive, syncs: syncs).pages)
        } catch {
            outcome = .failure(error)
        }
        Failpoint.hit(.checkpointDone)
        letGo()
    }

    /// It belongs to the store again.
    ///
    /// - Returns: pages of the journal, from the first, that are in the database now.
    func ended() throws(StoreError) -> Int {
        precondition(state == .taken, "a move that was not taken has ended")
        state = .idle
        guard let outcome else { preconditionFailure("a move ended that was not run") }
        return try outcome.get()
    }

    func close() {
        holder.close()
        mover.close()
    }
}
