public import EventLoop
import Failpoints
public import Feed
public import Model
public import Wake

/// The limits of the store's queues.
public struct StoreServiceLimits: Equatable, Sendable {
    /// Requests that may wait for a writer; above it they are answered `.unavailable` at once.
    public var waitingRequests = 65_536
    /// Queries that may wait for the reader.
    public var waitingQueries = 65_536
    /// Writers beside the first, where the store takes several: at least one.
    public var lanes = 1
    /// Requests in one transaction. More would only make the first of them wait longer.
    public var requestsPerCommit = 512
    /// Rows read and written after which a transaction begins no further request: what bounds how
    /// long the writer is held.
    public var rowsPerCommit = 3_072
    /// The same for duties, most of whose rows are not in memory yet.
    public var rowsPerTurn = 1_024
    /// Milliseconds that an ACK waits for another request to share its transaction with; 64 ACKs
    /// do not wait.
    public var acknowledgementPatience: UInt64 = 10
    /// Queries answered from one snapshot, and rows after which no further one is begun.
    public var queriesPerSnapshot = 64
    public var rowsPerSnapshot = 4_096
    /// Milliseconds: the writer rests where nothing is due for so long. What is due sooner is
    /// waited for awake, so that a crash finds a fresh `alive_at` while wakes have their graces.
    public var shortestRest: UInt64 = 300_000
    /// Bytes of rows that the writer keeps in memory from one transaction to the next, about.
    public var carriedBytes = 128 << 20
    /// Milliseconds, from its beginning, in which a group that another node undid is divided:
    /// three deadlocks fit, each found after a second. Three waits for a lock do not: each part may
    /// wait as long as the whole, and the node has to say meanwhile that it is there.
    public var divisionTime: UInt64 = 4_000

    public init() {}
}

/// The store behind its threads: one writer with group commit, or several lanes of them where the
/// engine is a round trip away, and one reader beside it.
///
/// Group commit clocks itself: what arrives while a transaction is being committed is the next
/// transaction. An answer leaves only after the commit that holds its effect has returned.
public final class StoreService: Sendable {
    private let writerThreads: [LoopThread]
    private let readerThread: LoopThread
    private let writes: WriterDoor
    private let reads: Mailbox<ReadJob>
    private let nudges: Mailbox<WriterNudge>
    public let health: StoreHealth
    public let apps: AppDirectory
    /// Others may write to the store, too.
    public let isShared: Bool

    private init(
        writerThreads: [LoopThread], readerThread: LoopThread, writes: WriterDoor,
        reads: Mailbox<ReadJob>, nudges: Mailbox<WriterNudge>, health: StoreHealth,
        apps: AppDirectory, isShared: Bool
    ) {
        self.nudges = nudges
        self.isShared = isShared
        self.writerThreads = writerThreads
        self.readerThread = readerThread
        self.writes = writes
        self.reads = reads
        self.health = health
        self.apps = apps
    }

    /// Opens the store on its own thread and starts serving. `boot` names this run; `epochHalf`
    /// (63 bits of chance) becomes the store's if it has none yet. `node` says that this run is
    /// one of several on the store, and that it is over is the last that is written down: `nil`,
    /// all others are over. `onCommit` is called on a writer's thread after each commit that others
    /// must hear of, of one commit at a time; it must only post. `zones` is asked on these threads.
    /// `onUnreadable` is called on all threads with the rows that were passed over because they
    /// cannot be read; they are counted in `health`. `onNews` is called on the writers' threads
    /// when writing fails, and when it works again.
    ///
    /// - Parameter openLane: opens the same store once more, for one of `limits.lanes` writers
    ///   beside the first, which has then only the duties and what is nobody's. Of an engine that
    ///   takes several writers; `nil`: one writer does everything.
    public static func start(
        limits: StoreServiceLimits = StoreServiceLimits(), duties: [StoreDuty], boot: BootID,
        epochHalf: UInt64, node: NodeBeat? = nil, zones: any ZoneClock = OnlyUTC(),
        open: @escaping @Sendable () throws -> any Store,
        openLane: (@Sendable () throws -> any Store)? = nil,
        onCommit: @escaping @Sendable (Effects) -> Void,
        onUnreadable: @escaping @Sendable ([UnreadableRow]) -> Void = { _ in },
        onNews: @escaping @Sendable (StoreNews) -> Void = { _ in }
    ) throws -> StoreService {
        let health = StoreHealth(onNews: onNews)
        let apps = AppDirectory()
        let report: @Sendable ([UnreadableRow]) -> Void = { rows in
            guard !rows.isEmpty else { return }
            health.record { $0.unreadableRows += UInt64(rows.count) }
            onUnreadable(rows)
        }
        let pause = ReaderPause()
        let shared = SharedByWriters(
            limits: limits, health: health, apps: apps, pause: pause, zones: zones,
            order: openLane == nil ? nil : Turns(), onCommit: onCommit, onUnreadable: report)
        let (writerThread, opened) = try LoopThread.startReturning(name: "store") { loop in
            let store = try open()
            // Before anybody is served: the epoch exists, and sessions of an earlier process
            // are being waited for.
            let start =
                (node.map { [.beat($0)] } ?? [])
                + [StoreRequest.start(boot: boot, epochHalf: epochHalf)]
            let outcomes = try store.commit(start) { Failpoint.hit(.applied, start, $0) }
            for outcome in outcomes { _ = try outcome.get() }
            Failpoint.hit(.committed, start, outcomes)
            var last = node
            last?.phase = .over
            let writer = try StoreWriter(
                loop: loop, store: store, shared: shared,
                role: .first(duties: duties, farewell: last.map { .beat($0) }))
            return OpenedStore(
                writes: writer.mailbox, rests: writer.restMailbox, nudges: writer.nudgeMailbox,
                isShared: !store.isSoleWriter,
                reader: HandedOver(try store.reader()))
        }
        var threads = [writerThread]
        do {
            var lanes: [Mailbox<WriteJob>] = []
            if let openLane {
                for number in 1...limits.lanes {
                    let (thread, writes) = try LoopThread.startReturning(name: "store-\(number)") {
                        try StoreWriter(
                            loop: $0, store: try openLane(), shared: shared,
                            role: .lane(number, first: opened.nudges)
                        ).mailbox
                    }
                    threads.append(thread)
                    lanes.append(writes)
                }
            }
            let (readerThread, reads) = try LoopThread.startReturning(name: "store-read") { loop in
                StoreQueries(
                    opened.reader.value, on: loop, limits: limits, health: health, pause: pause,
                    writer: opened.rests, onUnreadable: report
                ).mailbox
            }
            return StoreService(
                writerThreads: threads, readerThread: readerThread,
                writes: WriterDoor(first: opened.writes, lanes: lanes), reads: reads,
                nudges: opened.nudges, health: health, apps: apps, isShared: opened.isShared)
        } catch {
            Self.end(threads)
            throw error
        }
    }

    /// The first comes last: it says that the node is over.
    private static func end(_ writers: [LoopThread]) {
        for thread in writers.reversed() {
            thread.stop()
            thread.join()
        }
    }

    /// A door to the store for one loop; answers arrive on that loop.
    public func client(
        on loop: Loop, receive: @escaping (StoreReply) -> Void
    ) -> StoreClient {
        StoreClient(loop: loop, writes: writes, reads: reads, receive: receive)
    }

    /// How often something was written; `nil`: others write to the store, too. Who asked and found
    /// nothing finds nothing as long as it is the same and no time has come. From any thread.
    public var changes: UInt64? { isShared ? nil : health.counts.changes }

    /// How many requests wait for the writer. From any thread; for metrics.
    public var waitingRequests: Int { writes.count + health.counts.queuedRequests }

    /// How many queries wait for the reader. From any thread; for metrics.
    public var waitingQueries: Int { reads.count + health.counts.queuedQueries }

    /// Has the node say at once how it stands, and find out how the others do. From any thread.
    public func beatNow() { nudges.post(.beat) }

    /// Finishes the transaction at hand and closes the store. Requests that still wait are
    /// dropped without an answer: nothing of them was acknowledged.
    public func stop() {
        readerThread.stop()
        readerThread.join()
        Self.end(writerThreads)
    }
}

/// Something the writer does by itself, besides what it is asked.
public struct StoreDuty: Sendable {
    public var name: String
    /// Made anew each time.
    public var request: StoreRequest { make() }
    private let make: @Sendable () -> StoreRequest
    /// Milliseconds from one turn to the next.
    public var interval: UInt64 { pace() }
    private let pace: @Sendable () -> UInt64
    /// Also run soon after a commit that left work of these kinds.
    public var follows: BackgroundWork

    public init(
        name: String, request: @autoclosure @escaping @Sendable () -> StoreRequest,
        interval: @autoclosure @escaping @Sendable () -> UInt64, follows: BackgroundWork = []
    ) {
        self.name = name
        make = request
        pace = interval
        self.follows = follows
    }
}

private struct OpenedStore: Sendable {
    let writes: Mailbox<WriteJob>
    let rests: Mailbox<ReaderRest>
    let nudges: Mailbox<WriterNudge>
    let isShared: Bool
    let reader: HandedOver<any StoreReader>
}

/// A value made on one thread and from then on used by another only.
private struct HandedOver<Value>: @unchecked Sendable {
    // @unchecked: the maker does not keep it; LoopThread's start orders the hand-over.
    let value: Value

    init(_ value: Value) { self.value = value }
}
