import EventLoop
import Failpoints
import Feed
import Glibc
import Model
import Wake
import WorkingSet

/// The writer: everything that changes the store, and every checkpoint, happens on its thread
/// and its connection. Loop-confined.
final class StoreWriter {
    private let loop: Loop
    private let store: any Store
    /// What is known of the store from one transaction to the next.
    private let rows: WorkingSet
    private let shared: SharedByWriters
    private let role: WriterRole
    private var limits: StoreServiceLimits { shared.limits }
    private var health: StoreHealth { shared.health }
    private var duties: [Duty] = []
    private var timer: LoopTimer?
    private var isTurnAsked = false
    /// When the journal is moved if nobody writes then; `nil`: nothing was written since.
    private var checkpointDue: UInt64?
    private var inbox: Mailbox<WriteJob>?
    private var rests: Mailbox<ReaderRest>?
    private var nudges: Mailbox<WriterNudge>?
    /// What is written down last; `nil`: nothing.
    private let farewell: StoreRequest?
    /// When the reader last held no snapshot because it was asked.
    private var restedAt: UInt64?
    /// An administration is committed that the directory does not show yet.
    private var areAppsStale = false
    /// What was taken from the mailbox and waits for its transaction: apps take turns.
    private var queue = FairQueue<AppID?, WriteJob>()
    private var isServiceAsked = false
    /// Requests that met another node's, until the timer brings them back.
    private var met: [WriteJob] = []
    private var metTimer: LoopTimer?
    /// When requests that wait for company are carried out without it; `nil`: none wait.
    private var aloneAt: UInt64?
    private var rest = StoreRest(aliveAt: SystemClock.monotonicMilliseconds())
    /// The most requests that the next transaction may find room for.
    private var expected = Int.max

    private struct Duty {
        let duty: StoreDuty
        var due: UInt64
    }

    /// From the first commit after a checkpoint to the next one, in milliseconds, so that single
    /// commits share it; under load the store's own limit on its journal decides.
    private static let checkpointDelay: UInt64 = 500

    /// Requests that wait for company are company enough when there are this many.
    private static let company = 64

    /// Nudges that may wait.
    private static let nudgesMax = 256

    /// Milliseconds for which a request that met another node's is carried out again.
    private static let meetingTime: UInt64 = 2_000
    /// Milliseconds to the next time, at most.
    private static let meetingPauseMax: UInt64 = 50

    /// Milliseconds from one rest of the reader to the next, at least.
    private static let restInterval: UInt64 = 1_000

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

    private func follow(_ work: BackgroundWork) {
        for index in duties.indices where !duties[index].duty.follows.isDisjoint(with: work) {
            duties[index].due = min(duties[index].due, loop.now)
        }
    }

    deinit {
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
        let jobs = queue.take(min(limits.requestsPerCommit, expected))
        if !jobs.isEmpty {
            rest.askedAt = loop.now
            wakeUp()
            let (requests, left) = (jobs.map(\.request), queue.count)
            health.record(lane: role.number) { $0.queuedRequests = left }
            let done = commit(requests, budget: limits.rowsPerCommit) { first, results in
                self.answer(jobs[first...], results)
            }.count
            // Of many that wait, those that the rows leave no room for stay where they are.
            expected = max(8, 2 * done)
            queue.putBack(jobs[done...].map { (item: $0, owner: $0.request.app) })
            moveJournal()
        }
        let (waiting, again) = (queue.count, met.count)
        health.record(lane: role.number) { $0.queuedRequests = waiting + again }
        if waiting > 0 {
            isServiceAsked = true
            loop.nextTurn { [weak self] in self?.serve() }
        }
        askTurn()
    }

    /// Answers those that are done; those that met another node's wait a moment, while others are
    /// carried out.
    private func answer(_ jobs: ArraySlice<WriteJob>, _ results: [StoreResult]) {
        let now = SystemClock.monotonicMilliseconds()
        var answered: (requests: [StoreRequest], results: [StoreResult]) = ([], [])
        for (job, result) in zip(jobs, results) {
            if !store.isSoleWriter, case .failed(.conflict) = result,
                now < (job.meeting?.since ?? now) + Self.meetingTime
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
        guard met.count == 1, let meeting = job.meeting else { return }
        // The commit took its time: the pause begins now.
        loop.updateNow()
        // Two nodes that met do not meet again in the same moment.
        let longest = min(UInt64(4 * meeting.times), Self.meetingPauseMax)
        metTimer?.start(afterMilliseconds: UInt64.random(in: 1...longest))
    }

    private func meetAgain() {
        queue.putBack(met.map { (item: $0, owner: $0.request.app) })
        met = []
        if !isServiceAsked { serve() }
    }

    /// One transaction. Others hear of it before those who asked: a hint that comes early finds
    /// the change committed, a hint that comes late could find its reader gone.
    ///
    /// - Parameters:
    ///   - divides: When the larger group was begun that these are a part of.
    ///   - first: The place in it of the first of these.
    ///   - answer: Called with results as soon as they may be told, and the place of the first.
    /// - Returns: results of the first requests; the transaction had no room for the others.
    @discardableResult
    private func commit(
        _ requests: [StoreRequest], budget: Int, divides: UInt64? = nil, first: Int = 0,
        answer: (Int, [StoreResult]) -> Void = { _, _ in }
    ) -> [StoreResult] {
        let started = SystemClock.monotonicMilliseconds()
        var place: UInt64?
        func leave() {
            if let place { shared.order?.leave(place) }
            place = nil
        }
        do throws(StoreError) {
            Failpoint.hit(.begun, requests)
            var rules = RuleLimits()
            // What was tried as a whole and met another node's is tried once in each part.
            if divides != nil { rules.attempts = 1 }
            let outcomes = try store.commit(
                requests, through: rows, budget: budget, limits: rules, zones: shared.zones
            ) {
                leave()
                place = shared.order?.enter()
                Failpoint.hit(.applied, Array(requests[..<$0.count]), $0)
            }
            defer { leave() }
            if let place { shared.order?.await(place) }
            let results = committed(Array(requests[..<outcomes.count]), outcomes, started)
            answer(first, results)
            return results
        } catch {
            leave()
            let began = divides ?? started
            if case .conflict = error, !store.isSoleWriter, requests.count > 1,
                !isOver(division: began)
            {
                health.record(lane: role.number) { $0.failedCommits += 1 }
                return commitHalves(
                    requests, budget: budget, since: began, first: first, answer: answer)
            }
            let isSole = store.isSoleWriter
            health.record(lane: role.number) { counts in
                counts.failedCommits += 1
                if case .full = error { counts.refusedForSpace += UInt64(requests.count) }
                // That it met another node's says nothing of the store.
                if case .conflict = error, !isSole { return }
                counts.failure = error
            }
            let results = requests.map { _ in StoreResult.failed(error) }
            answer(first, results)
            return results
        }
    }

    /// What follows from a transaction that is committed.
    private func committed(
        _ requests: [StoreRequest], _ outcomes: [Result<StoreOutcome, StoreError>],
        _ started: UInt64
    ) -> [StoreResult] {
        Failpoint.hit(.committed, requests, outcomes)
        let elapsed = SystemClock.monotonicMilliseconds() - started
        let isSound = isSound(after: requests, outcomes)
        let (effort, known, knownBytes) = (store.effort, rows.effort, rows.bytes)
        health.record(lane: role.number) { counts in
            counts.effort = effort
            counts.knownReads = known.answered
            counts.engineReads = known.reads + known.scans
            counts.knownBytes = knownBytes
            counts.longestCommit = max(counts.longestCommit, elapsed)
            counts.commits += 1
            counts.requests += UInt64(outcomes.count)
            counts.commitMilliseconds += elapsed
            counts.largestCommit = max(counts.largestCommit, UInt64(outcomes.count))
            for case .success(let outcome) in outcomes {
                counts.rows += outcome.rows
                counts.largestRequestRows = max(counts.largestRequestRows, outcome.rows.total)
            }
            if isSound { counts.failure = nil }
        }
        noteChanges(requests, outcomes, started)
        if checkpointDue == nil { checkpointDue = loop.now + Self.checkpointDelay }
        if requests.contains(where: \.changesApps) { areAppsStale = true }
        let failure = refreshStaleApps()
        tell(outcomes)
        Failpoint.hit(.told, requests, outcomes)
        return zip(requests, outcomes).map { request, outcome in
            // It stands, but is not told as done before it is in force here.
            if let failure, request.changesApps { return .failed(failure) }
            return switch outcome {
            case .success(let outcome): .committed(outcome)
            case .failure(let error): .failed(error)
            }
        }
    }

    /// One of the requests meets another node's in a way that undoes the whole transaction: the
    /// others need not wait for it.
    ///
    /// - Parameter since: When the whole was begun.
    private func commitHalves(
        _ requests: [StoreRequest], budget: Int, since: UInt64, first place: Int,
        answer: (Int, [StoreResult]) -> Void
    ) -> [StoreResult] {
        let middle = requests.count / 2
        let first = commit(
            Array(requests[..<middle]), budget: budget, divides: since, first: place,
            answer: answer)
        // Where the first have no room, the others have none.
        guard first.count == middle else { return first }
        let others = Array(requests[middle...])
        guard isOver(division: since) else {
            return first
                + commit(
                    others, budget: budget, divides: since, first: place + middle, answer: answer)
        }
        let failed = others.map { _ in
            StoreResult.failed(.conflict("the others took too long"))
        }
        answer(place + middle, failed)
        return first + failed
    }

    private func isOver(division since: UInt64) -> Bool {
        SystemClock.monotonicMilliseconds() >= since + limits.divisionTime
    }

    /// Whether writing works after this transaction. Many transactions write nothing and prove
    /// nothing; and where a message does not fit any more, a small write may. So a full store is
    /// trusted again after a write and the checkpoint that follows it. `keepAlive` always writes:
    /// nobody has to publish for it to be found out.
    private func isSound(
        after requests: [StoreRequest], _ outcomes: [Result<StoreOutcome, StoreError>]
    ) -> Bool {
        guard let failure = health.failure else { return true }
        let hasWritten = zip(requests, outcomes).contains { request, outcome in
            guard case .success(let outcome) = outcome else { return false }
            if case .keepAlive = request { return true }
            return !outcome.effects.changes.all.isEmpty
        }
        guard hasWritten, case .full = failure else { return hasWritten }
        return (try? store.checkpoint()) != nil
    }

    private func tell(_ outcomes: [Result<StoreOutcome, StoreError>]) {
        var effects = Effects()
        for case .success(let outcome) in outcomes { effects.join(outcome.effects) }
        effects.changes.finish()
        shared.onUnreadable(effects.unreadable)
        switch role {
        case .first: follow(effects.background)
        case .lane(_, let first):
            // The gateway claims pushes; all else is the duties'.
            let work = effects.background.subtracting(.pushes)
            if !work.isEmpty { first.post(.follow(work)) }
        }
        if !effects.isEmpty { shared.onCommit(effects) }
    }

    /// Brings the directory up to what is committed; what went wrong, if it could not: it is
    /// tried again with every commit and every turn.
    private func refreshStaleApps() -> StoreError? {
        guard areAppsStale else { return nil }
        do throws(StoreError) {
            try refreshApps()
            areAppsStale = false
            return nil
        } catch {
            return .unavailable("committed, but not in force yet: \(error)")
        }
    }

    private func refreshApps() throws(StoreError) {
        let now = store.now()
        var reading: StoreReading?
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(.apps, in: snapshot, now: now)
        }
        if case .apps(let all) = reading { shared.apps.replace(all) }
    }

    private func askTurn() {
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
        // Other nodes' changes of apps are in force here with the next beat.
        let beats = due.contains { if case .beat = duties[$0].duty.request { true } else { false } }
        if !due.isEmpty {
            let results = commit(
                due.map { duties[$0].duty.request }, budget: limits.rowsPerTurn)
            for (index, result) in zip(due, results) {
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
            moveJournal()
        } else if let checkpointDue, checkpointDue <= now, mailbox.count == 0, queue.isEmpty {
            checkpoint()
        }
        if beats { areAppsStale = true }
        _ = refreshStaleApps()
        if duties.contains(where: { $0.due <= now }) { askTurn() }
        lieDown()
        armTimer()
    }

    // MARK: Resting

    /// Rests if nobody has anything to do.
    private func lieDown() {
        guard store.isSoleWriter, health.isWritable, !areAppsStale, queue.isEmpty,
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
    private func wakeUp() {
        guard rest.until != nil else { return }
        rest.end()
        let elapsed = SystemClock.monotonicMilliseconds() - rest.aliveAt
        commit([.rested(elapsed)], budget: limits.rowsPerTurn)
    }

    /// - Parameter started: When the transaction began.
    private func noteChanges(
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

    // MARK: The journal

    /// After the answers, where a transaction left the journal large.
    private func moveJournal() {
        if store.isCheckpointDue { checkpoint() }
    }

    private func readerRests(_ rests: [ReaderRest]) {
        restedAt = loop.now
        checkpoint()
        health.record(lane: role.number) { $0.readerRests += 1 }
        for rest in rests { rest.goesOn.post(rest) }
        if !health.isWritable, rest.until != nil {
            wakeUp()
            askTurn()
        }
    }

    /// A reader that takes one snapshot after the other could keep a full journal from ever being
    /// emptied: it is asked for a moment without one, and nobody waits for it. Where that does not
    /// help, for a backup holds a snapshot, it is not asked again at once.
    private func checkpoint() {
        checkpointDue = nil
        do throws(StoreError) {
            try store.checkpoint()
        } catch {
            health.record(lane: role.number) { $0.failure = error }
        }
        let hasRested = restedAt.map { loop.now < $0 + Self.restInterval } ?? false
        shared.pause.ask(store.isJournalFull && !hasRested)
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
