import EventLoop
import Model

/// A store that a test can hold up, or let fail, at the places it names.
final class GatedStore: Store {
    struct Gates: Sendable {
        /// Where a write, and a reader's snapshot, waits once it is armed.
        let write = Gate()
        let read = Gate()
        /// Where a move of the journal waits.
        let move = Gate()
        /// While set, reads of the writer's own fail.
        let failing = Flag()
        /// While set, the reader's fail, and where it waits before it tries.
        let readerFails = Flag()
        let readTried = Gate()
        /// While set, checkpoints do.
        let checkpointFails = Flag()
        /// Checkpoints that were asked for.
        let checkpoints = Count()
    }

    struct Gate: Sendable {
        let isArmed = Flag()
        let reached = Latch()
        let opened = Latch()
    }

    final class Count: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var count = 0

        var value: Int { lock.withLock { count } }
        func add() { lock.withLock { count += 1 } }
    }

    final class Flag: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var isSet = false

        var value: Bool {
            get { lock.withLock { isSet } }
            set { lock.withLock { isSet = newValue } }
        }
    }

    private let inner: any Store
    private let gates: Gates

    init(_ inner: any Store, _ gates: Gates) {
        self.inner = inner
        self.gates = gates
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        gates.write.pass()
        try inner.write(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        if gates.failing.value { throw .unavailable("a read failed, as the test wants it") }
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader {
        GatedReader(inner: try inner.reader(), gates: gates)
    }

    var effort: StoreEffort { inner.effort }
    var isSoleWriter: Bool { inner.isSoleWriter }
    func now() -> Timestamp { inner.now() }
    func checkpoint() throws(StoreError) {
        gates.checkpoints.add()
        if gates.checkpointFails.value { throw .unavailable("the disk is sick") }
        try inner.checkpoint()
    }

    var isCheckpointDue: Bool { inner.isCheckpointDue }
    var isJournalFull: Bool { inner.isJournalFull }

    func journalTurn() throws(StoreError) -> JournalTurn {
        let turn = try inner.journalTurn()
        guard case .move(let move) = turn else { return turn }
        return .move(GatedMove(inner: move, gate: gates.move))
    }

    func journalMoved() throws(StoreError) { try inner.journalMoved() }
    func close() { inner.close() }
}

extension GatedStore.Gate {
    func pass() {
        guard isArmed.value else { return }
        reached.arrive()
        opened.wait()
    }
}

private final class GatedMove: JournalMove {
    private let inner: any JournalMove
    private let gate: GatedStore.Gate

    init(inner: any JournalMove, gate: GatedStore.Gate) {
        self.inner = inner
        self.gate = gate
    }

    func run() {
        gate.pass()
        inner.run()
    }
}

/// Waits inside its first snapshot.
private final class GatedReader: StoreReader {
    private let inner: any StoreReader
    private let gates: GatedStore.Gates

    init(inner: any StoreReader, gates: GatedStore.Gates) {
        self.inner = inner
        self.gates = gates
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        gates.readTried.pass()
        if gates.readerFails.value { throw .unavailable("no connection, as the test wants it") }
        try inner.read { snapshot throws(StoreError) in
            gates.read.pass()
            try body(snapshot)
        }
    }

    func close() { inner.close() }
}
