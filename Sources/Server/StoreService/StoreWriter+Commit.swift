import EventLoop
import Failpoints
import Feed
import Model
import WorkingSet

// What the writer's transactions are, and what follows from them.
extension StoreWriter {
    /// One transaction. Others hear of it before those who asked: a hint that comes early finds
    /// the change committed, a hint that comes late could find its reader gone.
    ///
    /// - Parameters:
    ///   - divides: When the larger group was begun that these are a part of.
    ///   - first: The place in it of the first of these.
    ///   - answer: Called with results as soon as they may be told, and the place of the first.
    /// - Returns: results of the first requests; the transaction had no room for the others.
    @discardableResult
    func commit(
        _ requests: [StoreRequest], budget: Int, divides: UInt64? = nil, first: Int = 0,
        answer: (Int, [StoreResult]) -> Void = { _, _ in }
    ) -> [StoreResult] {
        let started = SystemClock.monotonicMilliseconds()
        let hurries = started < hurriesUntil
        let isFirstPassing = requests.first?.passesOver
        if hurries, let cut = requests.firstIndex(where: { $0.passesOver != isFirstPassing }) {
            let done = commit(
                Array(requests[..<cut]), budget: budget, divides: divides, first: first,
                answer: answer)
            guard done.count == cut else { return done }
            return done
                + commit(
                    Array(requests[cut...]), budget: budget, divides: divides, first: first + cut,
                    answer: answer)
        }
        let waits = !hurries || !requests.allSatisfy(\.passesOver)
        var place: UInt64?
        func leave() {
            if let place { shared.order?.leave(place) }
            place = nil
        }
        do throws(StoreError) {
            Failpoint.hit(.begun, requests)
            let outcomes = try health.waiting(lane: role.number) { () throws(StoreError) in
                try store.commit(
                    requests, through: rows, budget: budget, limits: ruleLimits,
                    zones: shared.zones, waits: waits
                ) {
                    leave()
                    place = shared.order?.enter()
                    Failpoint.hit(.applied, Array(requests[..<$0.count]), $0)
                }
            }
            defer { leave() }
            if let place { shared.order?.await(place) }
            let results = committed(Array(requests[..<outcomes.count]), outcomes, started)
            answer(first, results)
            return results
        } catch {
            leave()
            let began = divides ?? started
            if waits, !hurries, case .conflict = error, role.number == 0, !store.isSoleWriter,
                requests.contains(where: \.passesOver)
            {
                hurriesUntil = SystemClock.monotonicMilliseconds() + Self.hurryTime
                health.record(lane: role.number) { $0.failedCommits += 1 }
                return commit(
                    requests, budget: budget, divides: divides, first: first, answer: answer)
            }
            // A sole writer meets nobody: of its group one request contradicts what is stored, and
            // the others need not fail with it.
            if case .conflict = error, requests.count > 1, !isOver(division: began) {
                health.record(lane: role.number) { $0.failedCommits += 1 }
                return commitHalves(
                    requests, budget: budget, since: began, first: first, answer: answer)
            }
            let results = refused(requests, error)
            answer(first, results)
            return results
        }
    }

    /// How long what passes over waits for no row after a transaction with some of it has waited in
    /// vain: whoever holds the row may do so for long, and each turn would wait for it again, with
    /// all that is in it. Other requests wait as ever, in transactions of their own.
    private static let hurryTime: UInt64 = 10_000

    /// A transaction that meets another node's may wait for a row. Where there are other nodes it
    /// is tried once: a group is divided then, and one request waits until others had their turn.
    var ruleLimits: RuleLimits {
        var rules = RuleLimits()
        if !store.isSoleWriter { rules.attempts = 1 }
        return rules
    }

    /// What those are told whose transaction was not committed.
    func refused(_ requests: [StoreRequest], _ error: StoreError) -> [StoreResult] {
        let isSole = store.isSoleWriter
        health.noteFailure(error)
        health.record(lane: role.number) { counts in
            counts.failedCommits += 1
            if case .full = error { counts.refusedForSpace += UInt64(requests.count) }
            // That it met another node's says nothing of the store.
            if case .conflict = error, !isSole { return }
            counts.failure = error
        }
        return requests.map { _ in StoreResult.failed(error) }
    }

    /// What follows from a transaction that is committed.
    func committed(
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
    /// nothing; and where a message does not fit any more, a small write may. So a full file is
    /// trusted again after a write and the checkpoint that follows it, and a full database, of
    /// which no checkpoint tells, when it has refused nobody for a while. `keepAlive` always
    /// writes: nobody has to publish for it to be found out. But in a database it may be written
    /// where a message may not, as by a role without a right: then it proves something when
    /// nothing has failed for a while.
    private func isSound(
        after requests: [StoreRequest], _ outcomes: [Result<StoreOutcome, StoreError>]
    ) -> Bool {
        guard let failure = health.failure else { return true }
        let hasWritten = zip(requests, outcomes).contains { request, outcome in
            guard case .success(let outcome) = outcome else { return false }
            if case .keepAlive = request { return health.hasNotFailed || store.isSoleWriter }
            return !outcome.effects.changes.all.isEmpty
        }
        guard hasWritten, case .full = failure else { return hasWritten }
        guard store.isSoleWriter else { return health.hasHadSpace }
        return !isJournalMoving && (try? store.checkpoint()) != nil
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
    func refreshStaleApps() -> StoreError? {
        guard areAppsStale else { return nil }
        do throws(StoreError) {
            try refreshApps()
            areAppsStale = false
            return nil
        } catch {
            return .unavailable("committed, but not in force yet: \(error)")
        }
    }

    func refreshApps() throws(StoreError) {
        let now = store.now()
        var reading: StoreReading?
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(.apps, in: snapshot, now: now)
        }
        if case .apps(let all) = reading { shared.apps.replace(all) }
    }
}
