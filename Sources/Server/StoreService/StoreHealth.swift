import EventLoop
public import Feed
public import Model

/// Whether the store can be written and read, and what it did: read by `/readyz` and `/metrics`.
public final class StoreHealth: Sendable {
    public struct Counts: Equatable, Sendable {
        public var commits: UInt64 = 0
        public var requests: UInt64 = 0
        public var failedCommits: UInt64 = 0
        /// Transactions that wrote something besides that the process is there.
        public var changes: UInt64 = 0
        public var refusedForSpace: UInt64 = 0
        /// What the requests read and wrote, and the most of one: nothing else is done while it
        /// lasts.
        public var rows = RowCount()
        public var largestRequestRows = 0
        /// Milliseconds spent in commits, and in the longest of them.
        public var commitMilliseconds: UInt64 = 0
        public var longestCommit: UInt64 = 0
        /// What the engine did for them; reads and scans answered from memory, and by the engine;
        /// and the bytes in memory.
        public var effort = StoreEffort()
        public var knownReads: UInt64 = 0
        public var engineReads: UInt64 = 0
        public var knownBytes = 0
        public var largestCommit: UInt64 = 0
        /// Requests taken from the mailbox that wait for their transaction.
        public var queuedRequests = 0
        /// Rows passed over, or set aside, because they cannot be read.
        public var unreadableRows: UInt64 = 0
        /// Snapshots taken by the reader, and what was answered from them.
        public var snapshots: UInt64 = 0
        public var queries: UInt64 = 0
        public var rowsRead: UInt64 = 0
        /// Queries taken from the mailbox that wait for their snapshot.
        public var queuedQueries = 0
        /// Moments without a snapshot that the writer asked for.
        public var readerRests: UInt64 = 0
        /// Why the last write failed; `nil` while writing works.
        public var failure: StoreError?

        public init() {}
    }

    private let lock = Lock()
    /// By writer, for what they know of themselves are totals; the first also has the reader's.
    private nonisolated(unsafe) var guarded = [Counts()]
    private nonisolated(unsafe) var lastFailure: StoreError?
    /// By writer, since when it waits for the engine.
    private nonisolated(unsafe) var waits: [Int: UInt64] = [:]
    /// Since when the reader waits for the engine, or fails; `nil`: it does not.
    private nonisolated(unsafe) var readingSince: UInt64?
    private nonisolated(unsafe) var lastReadingFailure: StoreError?
    private nonisolated(unsafe) var refusedForSpaceAt: UInt64?
    private nonisolated(unsafe) var failedAt: UInt64?
    private nonisolated(unsafe) var news = StoreNews.Pace()
    private nonisolated(unsafe) var ahead: Int64 = 0
    private nonisolated(unsafe) var isClockOff = false
    private let onNews: @Sendable (StoreNews) -> Void
    /// Milliseconds, of a clock that is never set.
    private let clock: @Sendable () -> UInt64

    /// Milliseconds after which an engine that says nothing is taken for one that fails: a disk or
    /// a database that hangs. It is more than any transaction takes, and little, so that a balancer
    /// soon sends no more devices here.
    static let patience: UInt64 = 5_000
    /// Milliseconds for which a shared store that had no space is not trusted again: small rows
    /// that are written over fit where a message does not.
    static let doubt: UInt64 = 10_000
    /// Milliseconds without a failure after which a write that a node makes by itself shows that a
    /// shared store works again: short, for all nodes have lost it together.
    static let recovery: UInt64 = 3_000
    /// Milliseconds by which this machine's clock may differ from the store's: less than any
    /// receiver of a webhook or issuer of an identity token allows.
    static let clockTolerance: UInt64 = 5_000

    init(
        clock: @escaping @Sendable () -> UInt64 = { SystemClock.monotonicMilliseconds() },
        onNews: @escaping @Sendable (StoreNews) -> Void = { _ in }
    ) {
        self.clock = clock
        self.onNews = onNews
    }

    /// From any thread.
    public var counts: Counts {
        lock.withLock {
            var sum = guarded.dropFirst().reduce(guarded[0]) { $0 + $1 }
            sum.failure = lastFailure
            return sum
        }
    }
    public var isWritable: Bool { failure == nil }
    /// Why the store cannot be written: what the last transaction failed with, or that one has not
    /// ended for long.
    public var failure: StoreError? {
        lock.withLock {
            if let lastFailure { return lastFailure }
            let now = clock()
            guard let since = waits.values.min(), now >= since + Self.patience else { return nil }
            return .unavailable("it has not answered for \((now - since) / 1_000) s")
        }
    }

    /// A writer that waits for the engine, from before until after it: `failure` tells of one that
    /// does not come back.
    func waiting<Value>(
        lane: Int, _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        lock.withLock { waits[lane] = clock() }
        defer { lock.withLock { waits[lane] = nil } }
        return try body()
    }

    /// Why the store cannot be read: what reading has failed with, or that a snapshot has not
    /// ended, for long. A connection that is lost and made anew is no failure.
    public var readingFailure: StoreError? { lock.withLock { readingFailure(now: clock()) } }

    /// Under `lock`.
    private func readingFailure(now: UInt64) -> StoreError? {
        guard let since = readingSince, now >= since + Self.patience else { return nil }
        let why = lastReadingFailure?.words ?? "it has not ended for \((now - since) / 1_000) s"
        return .unavailable("reading: \(why)")
    }

    /// The reader's turn at the engine. One that fails takes further turns by itself, so that it is
    /// known when reading works again though nobody asks.
    func reading(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        lock.withLock { readingSince = readingSince ?? clock() }
        do throws(StoreError) {
            try body()
            noteReading(nil)
        } catch {
            // Any other error is an answer of the engine.
            if case .unavailable = error { noteReading(error) } else { noteReading(nil) }
            throw error
        }
    }

    private func noteReading(_ failure: StoreError?) {
        let fresh: StoreNews? = lock.withLock {
            if failure == nil { readingSince = nil }
            lastReadingFailure = failure
            return freshNews()
        }
        if let fresh { onNews(fresh) }
    }

    /// What is to be told now. Under `lock`.
    private func freshNews() -> StoreNews? {
        guard lastFailure != nil || lastReadingFailure != nil || news.isFailing else { return nil }
        let now = clock()
        return news.next(lastFailure ?? readingFailure(now: now), now: now)
    }

    /// Milliseconds by which this machine's clock was ahead of the store's when it was last looked
    /// at; negative: behind.
    public var clockAhead: Int64 { lock.withLock { ahead } }

    func note(clock store: Timestamp, machine: Timestamp) {
        let fresh: StoreNews? = lock.withLock {
            ahead =
                machine > store
                ? Int64(clamping: machine.since(store)) : -Int64(clamping: store.since(machine))
            // A clock that moves about the bound is told once.
            let bound = isClockOff ? Self.clockTolerance / 2 : Self.clockTolerance
            guard (ahead.magnitude > bound) != isClockOff else { return nil }
            isClockOff.toggle()
            return isClockOff ? .clockOff(ahead: ahead) : .clockInStep
        }
        if let fresh { onNews(fresh) }
    }

    /// A transaction failed. That it met another node's says nothing of the store.
    func noteFailure(_ error: StoreError) {
        if case .conflict = error { return }
        lock.withLock { failedAt = clock() }
    }

    /// Whether no transaction has failed for a while.
    var hasNotFailed: Bool {
        lock.withLock { failedAt.map { clock() >= $0 + Self.recovery } ?? true }
    }

    /// Whether nobody was refused for lack of space for a while.
    var hasHadSpace: Bool {
        lock.withLock { refusedForSpaceAt.map { clock() >= $0 + Self.doubt } ?? true }
    }

    /// - Parameter lane: The writer's number; 0: the first.
    func record(lane: Int = 0, _ change: (inout Counts) -> Void) {
        let fresh: StoreNews? = lock.withLock {
            while guarded.count <= lane { guarded.append(Counts()) }
            guarded[lane].failure = lastFailure
            let refused = guarded[lane].refusedForSpace
            change(&guarded[lane])
            lastFailure = guarded[lane].failure
            if case .full? = lastFailure, guarded[lane].refusedForSpace != refused {
                refusedForSpaceAt = clock()
            }
            return freshNews()
        }
        if let fresh { onNews(fresh) }
    }
}

/// What whoever looks after the server is to know of the store.
public enum StoreNews: Equatable, Sendable {
    /// Writing or reading fails, or the journal cannot be moved.
    case failed(StoreError)
    case works
    /// This machine's clock is so many milliseconds ahead of the store's; negative: behind.
    case clockOff(ahead: Int64)
    case clockInStep

    /// A store may fail and work in turns, as where commits succeed and the journal cannot be
    /// moved: it is told from time to time.
    struct Pace {
        /// Milliseconds from one failure that is told to the next.
        static let interval: UInt64 = 10_000
        /// What was told last; `nil`: that it works.
        private var told: StoreError?
        private var failedAt: UInt64?

        var isFailing: Bool { told != nil }

        mutating func next(_ failure: StoreError?, now: UInt64) -> StoreNews? {
            guard let failure else {
                defer { told = nil }
                return isFailing ? .works : nil
            }
            // Another reason than the one that was told is told, too.
            if failure == told { return nil }
            if let failedAt, now < failedAt + Self.interval { return nil }
            (told, failedAt) = (failure, now)
            return .failed(failure)
        }
    }
}

extension StoreHealth.Counts {
    fileprivate static func + (one: Self, other: Self) -> Self {
        var sum = one
        sum.commits += other.commits
        sum.requests += other.requests
        sum.failedCommits += other.failedCommits
        sum.changes += other.changes
        sum.refusedForSpace += other.refusedForSpace
        sum.rows += other.rows
        sum.largestRequestRows = max(one.largestRequestRows, other.largestRequestRows)
        sum.commitMilliseconds += other.commitMilliseconds
        sum.longestCommit = max(one.longestCommit, other.longestCommit)
        sum.effort = one.effort + other.effort
        sum.knownReads += other.knownReads
        sum.engineReads += other.engineReads
        sum.knownBytes += other.knownBytes
        sum.largestCommit = max(one.largestCommit, other.largestCommit)
        sum.queuedRequests += other.queuedRequests
        sum.unreadableRows += other.unreadableRows
        sum.snapshots += other.snapshots
        sum.queries += other.queries
        sum.rowsRead += other.rowsRead
        sum.queuedQueries += other.queuedQueries
        sum.readerRests += other.readerRests
        return sum
    }
}
