public import Model
public import Wake

/// Everything the server decides about its tables: who gets which entries, what supersedes what,
/// which jobs arise. Pure: a store only executes reads and row writes.
public enum Rules {
    /// Carries out one request on an open transaction.
    ///
    /// It runs in savepoints of its own (a request with mutations in several): a refusal leaves
    /// nothing of its step. Nothing may be told to anybody before the transaction is committed.
    ///
    /// - Returns: the outcome. Where a later one of several steps met a conflict or a row that
    ///   cannot be read, the answer is `.failed`: what the steps before it did stands, and others
    ///   are told of it.
    /// - Throws: `.full` and `.unavailable`: the transaction cannot go on. `.conflict`,
    ///   `.corrupt`: nothing of this request was carried out; the others of the transaction stand.
    public static func execute(
        _ request: StoreRequest, in transaction: any StoreTransaction, now: Timestamp,
        limits: RuleLimits = RuleLimits(), zones: any ZoneClock = OnlyUTC()
    ) throws(StoreError) -> StoreOutcome {
        let metered = MeteredTransaction(transaction, turn: limits.rowsPerTurn)
        let work = Work(metered, now: now, limits: limits, zones: zones)
        do throws(RuleFailure) {
            return work.outcome(try work.carryOut(request), of: request)
        } catch {
            switch error {
            case .answer(let answer): return work.outcome(answer, of: request)
            case .store(let error):
                switch error {
                case .conflict where work.finishedSteps > 0, .corrupt where work.finishedSteps > 0:
                    return work.outcome(.failed(error), of: request)
                case .conflict, .corrupt, .full, .unavailable: throw error
                }
            }
        }
    }

    /// Answers a query from one snapshot.
    ///
    /// - Parameter passingOver: called for each row that cannot be read and is left out.
    public static func read(
        _ query: StoreQuery, in snapshot: any StoreSnapshot, now: Timestamp,
        limits: RuleLimits = RuleLimits(),
        passingOver: @escaping (UnreadableRow) -> Void = { _ in }
    ) throws(StoreError) -> StoreReading {
        var query = query
        while true {
            switch try readPart(
                query, in: snapshot, now: now, limits: limits, passingOver: passingOver)
            {
            case .whole(let reading): return reading
            case .rest(let rest): query = rest
            }
        }
    }

    /// Answers a query, or a part of one that looks at many rows: others get between. Each part
    /// may be read from a later snapshot than the one before.
    public static func readPart(
        _ query: StoreQuery, in snapshot: any StoreSnapshot, now: Timestamp,
        limits: RuleLimits = RuleLimits(),
        passingOver: @escaping (UnreadableRow) -> Void = { _ in }
    ) throws(StoreError) -> PartialReading {
        let reader = PageReader(snapshot: snapshot, now: now, passingOver: passingOver)
        if case .history(.digest(let app, let user, let frame, let progress)) = query {
            return try reader.digest(frame, app, user, progress, limits)
        }
        return .whole(try reader.answer(query, limits: limits))
    }
}

extension Work {
    fileprivate func outcome(_ answer: StoreAnswer, of request: StoreRequest) -> StoreOutcome {
        let rows = transaction.count
        assert(
            request.isWithinCeiling(rows, limits: limits),
            "\(request.kind): \(rows.read) rows read, \(rows.written) written")
        noteUnread()
        return StoreOutcome(answer: answer, effects: effects, rows: rows)
    }

    /// Each request takes one step or several: what a step wrote stands, whatever becomes of those
    /// behind it.
    fileprivate func carryOut(_ request: StoreRequest) throws(RuleFailure) -> StoreAnswer {
        switch request {
        case .openSession(let request): try openSession(request)
        case .sync(let request): try sync(request)
        case .mutate(let request): try mutate(request)
        case .acknowledge(let request): try inOneStep(try acknowledge(request))
        case .changeAppState(let request): try inOneStep(try changeAppState(request))
        case .endSession(let request): try inOneStep(try endSession(request))
        case .abandonSession(let request): try inOneStep(try abandonSession(request))
        case .reauthenticate(let request): try inOneStep(try reauthenticate(request))
        case .change(let app, let change, let idempotency):
            try once(app, idempotency) { () throws(RuleFailure) in
                try self.carryOut(change, in: app, by: .backend)
            }
        case .administer(let request): try inOneStep(try administer(request))
        case .webhooks(let request): try inOneStep(try carryOut(webhooks: request))
        case .schedules(let request): try carryOut(schedules: request)
        case .campaigns(let request): try carryOut(campaigns: request)
        case .continueFanOut(let recipients): try continueFanOut(recipients: recipients)
        case .continueDeletions(let rows): try continueDeletions(rows: rows)
        case .coalesceReceipts(let users): try coalesceReceipts(users: users)
        case .enforceRetention(let rows): try enforceRetention(rows: rows)
        case .start(let boot, let half): try start(boot: boot, epochHalf: half)
        case .restore(let half): try inOneStep(try restore(epochHalf: half))
        case .claimPushes(let request): try claimPushes(request)
        case .finishPush(let request): try inOneStep(try finishPush(request))
        case .keepProviderToken(let request): try inOneStep(try keepProviderToken(request))
        case .keepTicketKeys(let drawn): try inOneStep(try keepTicketKeys(drawn))
        case .sweepWakes(let rows): try sweepWakes(rows: rows)
        case .keepAlive: try keepAlive()
        case .rested(let elapsed): try rested(elapsed)
        case .beat(let node): try beat(node)
        case .order(let wish): try inOneStep(try order(wish))
        }
    }

    private func inOneStep(
        _ body: @autoclosure () throws(RuleFailure) -> StoreAnswer
    ) throws(RuleFailure) -> StoreAnswer {
        try step { () throws(RuleFailure) in try body() }
    }
}
