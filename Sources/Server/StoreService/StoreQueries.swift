import EventLoop
import Feed
import Model

/// The reader: answers queries over a connection of its own, beside the writer. Loop-confined.
///
/// A snapshot is given back after a few queries, for as long as one is held the journal cannot be
/// emptied; what is not read by then waits for the next one, in turns of apps and users. A query
/// that would read many rows is carried out in parts, each from the snapshot of its turn.
final class StoreQueries {
    private let loop: Loop
    private let reader: any StoreReader
    private let limits: StoreServiceLimits
    private let health: StoreHealth
    /// Where the writer hears that no snapshot is held.
    private let writer: Mailbox<ReaderRest>
    private let pause: ReaderPause
    private let onUnreadable: @Sendable ([UnreadableRow]) -> Void
    private var inbox: Mailbox<ReadJob>?
    private var goesOn: Mailbox<ReaderRest>?
    private var queue = FairQueueOfUsers<ReadJob>()
    /// Taken, in their order, but not begun: the snapshot before was used up.
    private var next: [ReadJob] = []
    private var isServiceAsked = false
    private var isResting = false
    private var retryTimer: LoopTimer?

    /// Milliseconds until a reader that failed tries again, though nobody asks: a node that is not
    /// ready is asked nothing more.
    private static let retryInterval: UInt64 = 1_000

    init(
        _ reader: any StoreReader, on loop: Loop, limits: StoreServiceLimits,
        health: StoreHealth, pause: ReaderPause, writer: Mailbox<ReaderRest>,
        onUnreadable: @escaping @Sendable ([UnreadableRow]) -> Void
    ) {
        self.reader = reader
        self.loop = loop
        self.limits = limits
        self.health = health
        self.pause = pause
        self.writer = writer
        self.onUnreadable = onUnreadable
        // Both mailboxes hold this object until the loop ends.
        inbox = Mailbox(loop: loop, limit: limits.waitingQueries) { jobs in self.received(jobs) }
        goesOn = Mailbox(loop: loop, limit: nil) { _ in
            self.isResting = false
            self.serve()
        }
        retryTimer = loop.timer { [unowned self] in self.retry() }
    }

    var mailbox: Mailbox<ReadJob> {
        guard let inbox else { preconditionFailure("the mailbox is made in init") }
        return inbox
    }

    private func received(_ jobs: [ReadJob]) {
        for job in jobs {
            if queue.count < limits.waitingQueries {
                queue.append(job, of: job.query.owner)
            } else {
                job.answer(.failed(.conflict("the store's queue is full")))
            }
        }
        if !isServiceAsked && !isResting { serve() }
    }

    private func serve() {
        isServiceAsked = false
        if pause.isAsked, let goesOn {
            // The writer answers, after a checkpoint that meets no snapshot of ours.
            isResting = writer.post(ReaderRest(goesOn: goesOn))
            if isResting { return }
        }
        next += queue.take(limits.queriesPerSnapshot - next.count)
        readNext()
        let waiting = queue.count + next.count
        health.record { $0.queuedQueries = waiting }
        if waiting > 0 {
            isServiceAsked = true
            // What comes meanwhile is looked at first.
            loop.nextTurn { [weak self] in self?.serve() }
        }
    }

    /// Reads from one snapshot until it is used up.
    private func readNext() {
        guard !next.isEmpty else { return }
        var begun = 0
        var rows = 0
        var failure: StoreError?
        do throws(StoreError) {
            try readSnapshot { snapshot throws(StoreError) in
                let counted = CountedSnapshot(snapshot)
                let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
                while begun < next.count, counted.rows < limits.rowsPerSnapshot {
                    let job = next[begun]
                    begun += 1
                    read(job, in: counted, now: now)
                }
                rows = counted.rows
            }
        } catch {
            failure = error
        }
        if let failure, begun == 0 {
            for job in next { job.answer(.failed(failure)) }
            begun = next.count
        }
        next.removeFirst(begun)
        health.record { counts in
            counts.snapshots += 1
            counts.queries += UInt64(begun)
            counts.rowsRead += UInt64(rows)
        }
    }

    private func readSnapshot(
        _ body: (any StoreSnapshot) throws(StoreError) -> Void
    ) throws(StoreError) {
        do throws(StoreError) {
            try health.reading { () throws(StoreError) in try reader.read(body) }
        } catch {
            if case .unavailable = error {
                retryTimer?.start(afterMilliseconds: Self.retryInterval)
            }
            throw error
        }
    }

    private func retry() {
        // The writer lets it go on soon; then somebody reads.
        guard !isResting else { return }
        try? readSnapshot { _ in }
    }

    private func read(_ job: ReadJob, in snapshot: any StoreSnapshot, now: Timestamp) {
        var unreadable: [UnreadableRow] = []
        defer { onUnreadable(unreadable) }
        do throws(StoreError) {
            let part = try Rules.readPart(job.query, in: snapshot, now: now) {
                unreadable.append($0)
            }
            switch part {
            case .whole(let reading): job.answer(.read(reading))
            case .rest(let query):
                let rest = ReadJob(ticket: job.ticket, query: query, replies: job.replies)
                queue.append(rest, of: query.owner)
            }
        } catch {
            job.answer(.failed(error))
        }
    }
}

extension ReadJob {
    fileprivate func answer(_ result: StoreResult) {
        replies.post(StoreReply(ticket: ticket, result: result))
    }
}

/// A snapshot, and how many rows were looked for or found in it.
final class CountedSnapshot: StoreSnapshot {
    private let inner: any StoreSnapshot
    private(set) var rows = 0

    init(_ inner: any StoreSnapshot) { self.inner = inner }

    func row(
        _ table: Table, key: [ColumnValue], lock: RowLock
    ) throws(StoreError) -> [ColumnValue]? {
        rows += 1
        return try inner.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let found = try inner.rows(table, scan)
        rows += max(1, found.count)
        return found
    }
}

/// How the writer asks the reader for a moment without a snapshot, when the journal is full. From
/// any thread.
final class ReaderPause: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var isWanted = false

    var isAsked: Bool { lock.withLock { isWanted } }

    func ask(_ isWanted: Bool) { lock.withLock { self.isWanted = isWanted } }
}

/// The reader holds no snapshot, and takes none until the writer posts this back.
struct ReaderRest: Sendable {
    let goesOn: Mailbox<ReaderRest>
}
