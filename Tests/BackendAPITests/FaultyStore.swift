import EventLoop
import Model

/// What a store is told to do wrong. From any thread.
final class Faults: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var writeFailure: StoreError?
    private nonisolated(unsafe) var nextFailure: StoreError?
    private nonisolated(unsafe) var readFailure: StoreError?
    private nonisolated(unsafe) var gate: (entered: Latch, open: Latch)?
    private nonisolated(unsafe) var reads = 0

    /// Queries so far.
    var readCount: Int { lock.withLock { reads } }

    /// Every write fails so, from now on; `nil`: none.
    func failWrites(_ error: StoreError?) { lock.withLock { writeFailure = error } }
    /// The next write fails so; those behind it do not.
    func failNextWrite(_ error: StoreError) { lock.withLock { nextFailure = error } }
    /// Every query fails so, from now on; `nil`: none.
    func failReads(_ error: StoreError?) { lock.withLock { readFailure = error } }

    /// Holds the next write until `open` is opened.
    func holdNextWrite() -> (entered: Latch, open: Latch) {
        let made = (entered: Latch(), open: Latch())
        lock.withLock { gate = made }
        return made
    }

    fileprivate func beforeWrite() throws(StoreError) {
        let held = lock.withLock {
            let held = gate
            gate = nil
            return held
        }
        if let held {
            held.entered.arrive()
            held.open.wait()
        }
        let failure = lock.withLock {
            let failure = nextFailure ?? writeFailure
            nextFailure = nil
            return failure
        }
        if let failure { throw failure }
    }

    fileprivate func beforeRead() throws(StoreError) {
        let failure = lock.withLock {
            reads += 1
            return readFailure
        }
        if let failure { throw failure }
    }
}

/// A store that does as it is told, in front of a real one.
final class FaultyStore: Store {
    private let inner: any Store
    private let faults: Faults

    init(_ inner: any Store, _ faults: Faults) {
        self.inner = inner
        self.faults = faults
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try faults.beforeWrite()
        try inner.write(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader {
        FaultyReader(try inner.reader(), faults)
    }

    func now() -> Timestamp { inner.now() }
    func checkpoint() throws(StoreError) { try inner.checkpoint() }
    func close() { inner.close() }
}

final class FaultyReader: StoreReader {
    private let inner: any StoreReader
    private let faults: Faults

    init(_ inner: any StoreReader, _ faults: Faults) {
        self.inner = inner
        self.faults = faults
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try faults.beforeRead()
        try inner.read(body)
    }

    func close() { inner.close() }
}
