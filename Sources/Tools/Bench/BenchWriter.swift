import EventLoop
import Feed
import MemoryStore
import Model
import SQLiteStore
import StoreService
import WorkingSet

/// A store whose clock can be set ahead: what is due later is due now.
final class ClockedStore: Store {
    private let engine: any Store
    var ahead: Milliseconds = 0

    init(_ engine: any Store) { self.engine = engine }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try engine.write(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try engine.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try engine.reader() }

    var isSoleWriter: Bool { engine.isSoleWriter }

    func now() -> Timestamp { Timestamp(milliseconds: BenchClock.wall() / 1_000_000 + ahead) }

    func checkpoint() throws(StoreError) { try engine.checkpoint() }
    var isCheckpointDue: Bool { engine.isCheckpointDue }
    var isJournalFull: Bool { engine.isJournalFull }
    func journalTurn() throws(StoreError) -> JournalTurn { try engine.journalTurn() }
    func journalMoved() throws(StoreError) { try engine.journalMoved() }
    func close() { engine.close() }
}

/// What one transaction, one checkpoint or one page cost.
struct BenchSample {
    /// In the transaction.
    var requests = 1
    /// Nanoseconds until all requests were carried out, and from there to the answer.
    var held: UInt64 = 0
    var commit: UInt64 = 0
    /// The processor time of the transaction and its commit together.
    var processor: UInt64 = 0
    var rows = RowCount()
    /// `nil`: the store counts none.
    var statements: UInt64?
    var journal: UInt64?
}

/// The writer's own way to the store: a group of requests is one transaction, on disk when it
/// returns, and where the journal has grown by its step it is moved on a thread beside.
final class BenchWriter {
    let store: ClockedStore
    /// What is known of the store from one transaction to the next, as the server's writer does.
    private let known = WorkingSet(carrying: StoreServiceLimits().carriedBytes)
    private let file: SQLiteStore?
    private let distant: DistantEngine?
    private let mover: JournalMover
    /// Opens when the move has been run that is on its way; `nil`: none is.
    private var moved: Latch?
    /// What moving the journal cost between transactions.
    private(set) var checkpoints: [BenchSample] = []

    init(_ engine: BenchEngine) throws {
        mover = try JournalMover()
        switch engine {
        case .file(let path):
            let made = try SQLiteStore(path: path, tables: Schema.tables)
            file = made
            store = ClockedStore(made)
        case .memory, .distant:
            file = nil
            store = ClockedStore(MemoryStore(tables: Schema.tables))
        }
        if case .distant = engine {
            distant = DistantEngine(store, lockRanks: Schema.lockRanks)
        } else {
            distant = nil
        }
    }

    func commit(
        _ requests: [StoreRequest]
    ) throws -> (outcomes: [Result<StoreOutcome, StoreError>], sample: BenchSample) {
        let before = file?.effort
        let processor = BenchClock.processor()
        let begun = BenchClock.monotonic()
        var applied = begun
        let carriedOn: any Store = distant ?? store
        let outcomes = try carriedOn.commit(requests, through: known) { _ in
            applied = BenchClock.monotonic()
        }
        let ended = BenchClock.monotonic()
        var sample = BenchSample(requests: requests.count)
        sample.held = applied - begun
        sample.commit = ended - applied
        sample.processor = BenchClock.processor() - processor
        for case .success(let outcome) in outcomes { sample.rows += outcome.rows }
        if let before, let after = file?.effort {
            sample.statements = after.statements - before.statements
            sample.journal = after.journalBytes - before.journalBytes
        }
        try moveJournal()
        return (outcomes, sample)
    }

    private func moveJournal() throws {
        if let moved {
            guard moved.wait(seconds: 0) else { return }
            self.moved = nil
            try checkpoint { () throws(StoreError) in try store.journalMoved() }
        }
        switch try store.journalTurn() {
        case .nothing: break
        case .checkpoint: try checkpoint { () throws(StoreError) in try store.checkpoint() }
        case .move(let move):
            let moved = Latch()
            self.moved = moved
            mover.run(move) { moved.arrive() }
        }
    }

    private func checkpoint(_ body: () throws(StoreError) -> Void) throws {
        var sample = BenchSample()
        let processor = BenchClock.processor()
        let begun = BenchClock.monotonic()
        try body()
        sample.held = BenchClock.monotonic() - begun
        sample.processor = BenchClock.processor() - processor
        checkpoints.append(sample)
    }

    func close() {
        mover.stop()
        store.close()
    }

    /// Writes many rows at once, which nobody measures.
    func fill(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try store.write(body)
        known.forgetAll()
        if moved == nil, store.isCheckpointDue { try store.checkpoint() }
    }

    func read<Value>(
        _ body: (any StoreSnapshot) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        var value: Value?
        try store.read { snapshot throws(StoreError) in value = try body(snapshot) }
        guard let value else { preconditionFailure("a read that read nothing") }
        return value
    }
}
