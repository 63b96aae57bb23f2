import EventLoop
import Failpoints
import Feed
import Glibc
import Model
import Wake
import WorkingSet

/// The writer: everything that changes the store happens on its thread and its connection.
/// Loop-confined.
final class StoreWriter {
    let loop: Loop
    let store: any Store
    /// What is known of the store from one transaction to the next.
    let rows: WorkingSet
    let shared: SharedByWriters
    let role: WriterRole
    var limits: StoreServiceLimits { shared.limits }
    var health: StoreHealth { shared.health }
    private var duties: [Duty] = []
    private var timer: LoopTimer?
    private var isTurnAsked = false
    /// When the journal is moved if nobody writes then; `nil`: nothing was written since.
    var checkpointDue: UInt64?
    private var inbox: Mailbox<WriteJob>?
    private var rests: Mailbox<ReaderRest>?
    private var nudges: Mailbox<WriterNudge>?
    /// What is written down last; `nil`: nothing.
    private let farewell: StoreRequest?
    /// When the reader last held no snapshot because it was asked.
    var restedAt: UInt64?
    /// The thread that moves the journal, from the first time on.
    var mover: JournalMover?
    /// A part of the journal is being moved there.
    var isJournalMoving = false
    /// Readers that hold no snapshot and wait for the checkpoint that follows.
    var restingReaders: [ReaderRest] = []
    private var movedInbox: Mailbox<Void>?
    /// An administration is committed that the directory does not show yet.
    var areAppsStale = false
    /// What was taken from the mailbox and waits for its transaction: apps take turns.
    private var queue = FairQueue<AppID?, WriteJob>()
    private var isServiceAsked = false
    /// Requests that met another node's, in the order in which they are tried again.
    private var met: [WriteJob] = []
    private var metTimer: LoopTimer?
    /// When requests that wait for company are carried out without it; `nil`: none wait.
    private var aloneAt: UInt64?
    /// The transaction whose commit is on its way.
    var ahead: AheadCommit?
    /// Requests whose commit was not waited for and failed. They are carried out once more, with a
    /// commit that is waited for.
    var undone: [WriteJob] = []
    private(set) var rest = StoreRest(aliveAt: SystemClock.monotonicMilliseconds())
    /// The most requests that the next transaction may find room for.
    private var expected = Int.max

    private struct Duty {
        let duty: StoreDuty
        var due: UInt64
    }

    /// From the first commit after a checkpoint to the next one, in milliseconds, so that single
    /// commits share it; under load the store's own limit on its journal decides.
    static let checkpointDelay: UInt64 = 500

    /// Requests that wait for company are company enough when there are this many.
    private static let company = 64

    /// Nudges that may wait.
    private static let nudgesMax = 256

    /// Milliseconds for which a request that met another node's is carried out again.
    private static let meetingTime: UInt64 = 2_000
    /// Milliseconds to the next time, at most.
    private static let meetingPauseMax: UInt64 = 50
    /// Until then, by the monotonic clock, what passes over (`StoreRequest.passesOver`) waits for
    /// no row that others hold.
    var hurriesUntil: UInt64 = 0
    /// The last transaction was of one request that has met another node's.
    private var wasApart = false
    /// The first ones of `met`, so many, are to be tried now.
    private var metDue = 0
    /// The timer brings all of `met` back.
    private var isMetPaused = false

    /// Milliseconds from one rest of the reader to the next, at least.
    static let restInterval: UInt64 = 1_000

    /// Milliseconds from the start to the first turn of a duty, at most.
    private static let firstTurn: UInt64 = 1_000

    init(
        loop: Loop, store: any Store, shared: SharedByWriters, role: WriterRole
    ) throws(StoreError) {
        self.loop = loop
        self.store = store
        self.shared = shared
        self.role = role
        rows = WorkingSet(carrying: shared.limits.carriedBytes)
        if case .first(let duties, let farewell) = role {
            self.farewell = farewell
            // The first turns come soon: a server that never runs for long has its duties done too.
            self.duties = duties.map { duty in
                Duty(duty: duty, due: loop.now + min(duty.interval, Self.firstTurn))
            }
        } else {
            farewell = nil
        }
        // Held by the mailbox until the loop ends.
        inbox = Mailbox(loop: loop, limit: limits.waitingRequests) { jobs in self.received(jobs) }
        rests = Mailbox(loop: loop, limit: nil) { rests in self.readerRests(rests) }
        nudges = Mailbox(loop: loop, limit: Self.nudgesMax) { self.nudged($0) }
        movedInbox = Mailbox(loop: loop, limit: 1) { _ in self.journalMoved() }
        timer = loop.timer { [unowned self] in self.turn() }
        metTimer = loop.timer { [unowned self] in self.meetAgain() }
        if role.number == 0 { try refreshApps() }
        armTimer()
    }

    var mailbox: Mailbox<WriteJob> {
        guard let inbox else { preconditionFailure("the mailbox is made in init") }
        return inbox
    }

    /// Where the reader says that it holds no snapshot.
    var restMailbox: Mailbox<ReaderRest> {
        guard let rests else { preconditionFailure("the mailbox is made in init") }
        return rests
    }

    /// Where it is asked to say at once how its node stands.
    var nudgeMailbox: Mailbox<WriterNudge> {
        guard let nudges else { preconditionFailure("the mailbox is made in init") }
        return nudges
    }

    /// Where the mover says that it is done.
    var movedMailbox: Mailbox<Void> {
        guard let movedInbox else { preconditionFailure("the mailbox is made in init") }
        return movedInbox
    }

    /// A nudge that finds no room is none too few: the duties have their turns all the same.
    private func nudged(_ nudges: [WriterNudge]) {
        for nudge in nudges {
            switch nudge {
            case .beat:
                for index in duties.indices {
                    if case .beat = duties[index].duty.request { duties[index].due = loop.now }
                }
            case .follow(let work): follow(work)
            }
        }
        askTurn()
    }

    func follow(_ work: BackgroundWork) {
        for index in duties.indices where !duties[index].duty.follows.isDisjoint(with: work) {
            duties[index].due = min(duties[index].due, loop.now)
        }
    }

    deinit {
        mover?.stop()
        settleLast()
        // The next start finds that the process was there.
        wakeUp()
        // A store that does not answer would hold up the end.
        if let farewell, health.isWritable {
            _ = try? store.commit([farewell], through: rows, zones: shared.zones)
        }
        store.close()
    }

    private func received(_ jobs: [WriteJob]) {
        for (index, job) in jobs.enumerated() {
            guard queue.count + met.count < limits.waitingRequests else {
                let full = StoreError.conflict("the store's queue is full")
                for refused in jobs[index...] {
                    refused.replies.post(
                        StoreReply(ticket: refused.ticket, result: .failed(full)))
                }
                break
            }
            queue.append(job, of: job.request.app)
        }
        if isServiceAsked { return }
        if queue.count < Self.company, jobs.allSatisfy(\.request.waitsForCompany) {
            if aloneAt == nil {
                aloneAt = loop.now + limits.acknowledgementPatience
                armTimer()
            }
            settle()
            let waiting = queue.count
            health.record(lane: role.number) { $0.queuedRequests = waiting }
        } else {
            serve()
        }
    }

    /// One transaction. If more waits, what comes meanwhile is looked at first, so that an app
    /// that asks for much does not make the others wait for all of it.
    private func serve() {
        isServiceAsked = false
        aloneAt = nil
        let jobs = nextJobs()
        if !jobs.isEmpty {
            rest.askedAt = loop.now
            wakeUp()
            let left = queue.count
            health.record(lane: role.number) { $0.queuedRequests = left }
            let done = carryOutAhead(jobs) ?? carryOut(jobs)
            // Of many that wait, those that the rows leave no room for stay where they are.
            expected = max(8, 2 * done)
            putBack(jobs[done...])
            moveJournal()
        }
        if queue.isEmpty { settleSoon() }
        let (waiting, again) = (queue.count, met.count)
        health.record(lane: role.number) { $0.queuedRequests = waiting + again }
        if waiting > 0 || metDue > 0 { askService() }
        pauseMet()
        askTurn()
    }

    /// What is carried out together now. A request that has met another node's is carried out by
    /// itself from then on, in turns with the others, who would wait with it each time.
    private func nextJobs() -> [WriteJob] {
        giveUpMet()
        if metDue > 0, !wasApart || queue.isEmpty {
            metDue -= 1
            wasApart = true
            return [met.removeFirst()]
        }
        wasApart = false
        return queue.take(min(limits.requestsPerCommit, expected))
    }

    /// A request that has met others for long is not tried again: of many such requests each try
    /// would keep the others waiting.
    private func giveUpMet() {
        guard !met.isEmpty else { return }
        let now = SystemClock.monotonicMilliseconds()
        metDue = met[..<metDue].count { mayMeet($0, now) }
        for job in met where !mayMeet(job, now) {
            let busy = StoreError.conflict("others hold what it needs")
            job.replies.post(StoreReply(ticket: job.ticket, result: .failed(busy)))
        }
        met.removeAll { !mayMeet($0, now) }
    }

    private func mayMeet(_ job: WriteJob, _ now: UInt64) -> Bool {
        now < (job.meeting?.since ?? now) + Self.meetingTime
    }

    func askService() {
        guard !isServiceAsked else { return }
        isServiceAsked = true
        loop.nextTurn { [weak self] in self?.serve() }
    }

    func putBack(_ jobs: ArraySlice<WriteJob>) {
        queue.putBack(jobs.map { (item: $0, owner: $0.request.app) })
    }

    /// Carries out and answers as many of them as there is room for.
    ///
    /// - Returns: their number.
    func carryOut(_ jobs: [WriteJob]) -> Int {
        commit(jobs.map(\.request), budget: limits.rowsPerCommit) { first, results in
            self.answer(jobs[first...], results)
        }.count
    }

    /// Answers those that are done; those that met another node's wait a moment, while others are
    /// carried out.
    func answer(_ jobs: ArraySlice<WriteJob>, _ results: [StoreResult]) {
        let now = SystemClock.monotonicMilliseconds()
        var answered: (requests: [StoreRequest], results: [StoreResult]) = ([], [])
        for (job, result) in zip(jobs, results) {
            if !store.isSoleWriter, case .failed(.conflict) = result,
                mayMeet(job, now)
            {
                meet(job, now)
                continue
            }
            job.replies.post(StoreReply(ticket: job.ticket, result: result))
            answered.requests.append(job.request)
            answered.results.append(result)
        }
        Failpoint.hit(.answered, answered.requests, answered.results)
    }

    private func meet(_ job: WriteJob, _ now: UInt64) {
        var job = job
        job.meeting =
            job.meeting.map { WriteJob.Meeting(since: $0.since, times: $0.times + 1) }
            ?? WriteJob.Meeting(since: now)
        met.append(job)
        pauseMet()
    }

    /// Two nodes that met do not meet again in the same moment.
    private func pauseMet() {
        guard metDue == 0, !isMetPaused, let first = met.first?.meeting else { return }
        isMetPaused = true
        // The commit took its time: the pause begins now.
        loop.updateNow()
        let longest = min(UInt64(4 * first.times), Self.meetingPauseMax)
        metTimer?.start(afterMilliseconds: UInt64.random(in: 1...longest))
    }

    private func meetAgain() {
        isMetPaused = false
        metDue = met.count
        if !isServiceAsked { serve() }
    }

    func askTurn() {
        guard !isTurnAsked else { return }
        isTurnAsked = true
        loop.nextTurn { [weak self] in
            self?.isTurnAsked = false
            self?.turn()
        }
    }

    /// Does what is due, one transaction a turn, so that requests get between. What has waited
    /// longest comes first; what the transaction has no room for waits for the next turn.
    private func turn() {
        loop.updateNow()
        let now = loop.now
        if let aloneAt, aloneAt <= now, !isServiceAsked { serve() }
        if let until = rest.until {
            guard until <= now || rest.hasClockMoved(now, wall: store.now()) else {
                return armTimer()
            }
            wakeUp()
        }
        let changes = rest.changes
        let due = duties.indices.filter { duties[$0].due <= now }
            .sorted { (duties[$0].due, $0) < (duties[$1].due, $1) }
        let beats = due.filter { if case .beat = duties[$0].duty.request { true } else { false } }
        if !due.isEmpty {
            // That the node is there comes first and by itself: rows that somebody else holds,
            // which another duty waits for, must not cost it its lease.
            let others = due.filter { !beats.contains($0) }
            for together in [beats, others] where !together.isEmpty {
                carryOut(duties: together, now, since: changes)
            }
            moveJournal()
        } else if let checkpointDue, checkpointDue <= now, mailbox.count == 0, queue.isEmpty {
            checkpoint()
        }
        // Other nodes' changes of apps are in force here with the next beat.
        if !beats.isEmpty {
            areAppsStale = true
            health.note(
                clock: store.now(),
                machine: Timestamp(milliseconds: SystemClock.wallMilliseconds()))
        }
        _ = refreshStaleApps()
        if duties.contains(where: { $0.due <= now }) { askTurn() }
        lieDown()
        armTimer()
    }

    /// - Parameter changes: How often something was written before this turn.
    private func carryOut(duties together: [Int], _ now: UInt64, since changes: UInt64) {
        let results = commit(
            together.map { duties[$0].duty.request }, budget: limits.rowsPerTurn)
        for (index, result) in zip(together, results) {
            if let failure = result.corruption {
                let kind = duties[index].duty.request.kind
                shared.onUnreadable([UnreadableRow(inDuty: kind, detail: failure)])
            }
            var next = now + duties[index].duty.interval
            if case .committed(let outcome) = result,
                case .progressed(_, more: true) = outcome.answer
            {
                next = now
            } else if case .committed = result, rest.changes == changes {
                rest.foundNothing(index)
            }
            duties[index].due = next
        }
    }

    // MARK: Resting

    /// Rests if nobody has anything to do.
    private func lieDown() {
        guard store.isSoleWriter, health.isWritable, !areAppsStale, queue.isEmpty,
            !isJournalMoving,
            mailbox.count == 0, aloneAt == nil, !isTurnAsked,
            loop.now >= rest.askedAt + StoreRest.patience,
            // Only where somebody says that the process is there can it be known afterwards.
            duties.contains(where: \.duty.request.saysAlive),
            rest.areQuiet(duties.map(\.duty))
        else { return }
        let now = store.now()
        var next: Timestamp?
        var isUnfinished = true
        do throws(StoreError) {
            try store.read { snapshot throws(StoreError) in
                isUnfinished = try Rules.isUnfinished(in: snapshot)
                next = try Rules.nextDue(in: snapshot, now: now)
            }
        } catch {
            return
        }
        guard !isUnfinished else { return }
        let wait = next.map { $0 > now ? $0.since(now) : 0 } ?? .max
        guard wait >= limits.shortestRest else { return }
        if checkpointDue != nil { checkpoint() }
        // Whether the store works again, the duties find out.
        guard health.isWritable else { return }
        rest.begin(
            at: loop.now, wall: store.now(), until: loop.now + min(wait, StoreRest.longest))
    }

    /// The first transaction after a rest says that the process was there.
    func wakeUp() {
        guard rest.until != nil else { return }
        rest.end()
        let elapsed = SystemClock.monotonicMilliseconds() - rest.aliveAt
        commit([.rested(elapsed)], budget: limits.rowsPerTurn)
    }

    /// - Parameter started: When the transaction began.
    func noteChanges(
        _ requests: [StoreRequest], _ outcomes: [Result<StoreOutcome, StoreError>],
        _ started: UInt64
    ) {
        var hasChanged = false
        for (request, outcome) in zip(requests, outcomes) {
            guard case .success(let outcome) = outcome else { continue }
            if request.saysAlive { rest.aliveAt = started }
            // Its own row changes nothing for anybody.
            hasChanged = hasChanged || outcome.rows.written > (request.saysAlive ? 1 : 0)
        }
        guard hasChanged else { return }
        rest.changed()
        health.record(lane: role.number) { $0.changes += 1 }
    }

    private func armTimer() {
        let next = rest.until.map { min($0, loop.now + StoreRest.look) } ?? duties.map(\.due).min()
        var wait = next.map { $0 > loop.now ? $0 - loop.now : 0 }
        if areAppsStale { wait = min(wait ?? .max, Self.checkpointDelay) }
        for due in [checkpointDue, aloneAt] {
            guard let due else { continue }
            wait = min(wait ?? .max, due > loop.now ? due - loop.now : 0)
        }
        guard let wait else { return }
        timer?.start(afterMilliseconds: max(wait, 1))
    }
}

extension StoreResult {
    /// What could not be read, where that stopped it, whole or on its way.
    fileprivate var corruption: String? {
        switch self {
        case .failed(.corrupt(let detail)): detail
        case .committed(let outcome):
            if case .failed(.corrupt(let detail)) = outcome.answer { detail } else { nil }
        case .failed, .read: nil
        }
    }
}
