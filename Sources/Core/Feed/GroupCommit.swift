public import Model
public import Wake
import WorkingSet

/// Requests carried out in one transaction of an engine that is a round trip away, as if one after
/// the other.
///
/// What the requests are expected to read is fetched first (`ReadPlan`). Then they run in order.
/// One that misses something is unwound, and with it waits everything behind it, for that may
/// depend on what it writes: the others run on only to find out what they miss, so that one fetch
/// gets it for all of them.
struct GroupCommit {
    let requests: [StoreRequest]
    var plan = ReadPlan.expected
    /// Rows after which the next request is left for another transaction.
    var budget = Int.max
    var limits = RuleLimits()
    var zones: any ZoneClock = OnlyUTC()
    /// Whether they wait for rows that others hold.
    var waits = true

    /// Behind each 64 requests the engine is sent what they have written, so that it carries it out
    /// while the next requests run. With a smaller number the same writes take more statements.
    private static let sendStep = 64
    /// One request is unwound at most so often: then it reads one row after the other.
    private static let unwindingsMax = 4

    /// Outcomes in the order of the requests, as far as the budget went.
    private(set) var results: [Result<StoreOutcome, StoreError>] = []
    private var spent = 0
    /// Requests that missed nothing when they last ran behind one that waits.
    private var isReady: Set<Int> = []
    private var unwindings = 0

    init(_ requests: [StoreRequest]) { self.requests = requests }

    mutating func carryOut(
        in rows: FetchedRows, now: () -> Timestamp
    ) throws(StoreError) {
        if !waits { rows.waitForNothing() }
        try fetchExpected(rows, now())
        while results.count < requests.count, spent < budget {
            if try carryOutKnown(in: rows, now: now) { return }
            try rows.fetchMissing()
            unwindings += 1
            if unwindings < Self.unwindingsMax { continue }
            rows.fetchesInPlace = true
            _ = try carryOutNext(in: rows, now: now())
            rows.fetchesInPlace = false
        }
    }

    /// - Returns: whether nothing is missing.
    private mutating func carryOutKnown(
        in rows: FetchedRows, now: () -> Timestamp
    ) throws(StoreError) -> Bool {
        while results.count < requests.count, spent < budget {
            if try carryOutNext(in: rows, now: now()) { continue }
            try lookAhead(in: rows, now: now())
            return false
        }
        return true
    }

    /// What the requests behind the one that waits miss, as far as the budget may go.
    private mutating func lookAhead(
        in rows: FetchedRows, now: Timestamp
    ) throws(StoreError) {
        var looked = spent
        for later in requests.indices.dropFirst(results.count + 1) where looked < budget {
            if isReady.contains(later) { continue }
            guard let result = try run(later, in: rows, now: now, isKept: false) else { continue }
            isReady.insert(later)
            if case .success(let outcome) = result { looked += outcome.rows.total }
        }
    }

    /// - Returns: `false`: it was unwound.
    private mutating func carryOutNext(
        in rows: FetchedRows, now: Timestamp
    ) throws(StoreError) -> Bool {
        guard let result = try run(results.count, in: rows, now: now, isKept: true) else {
            return false
        }
        if case .success(let outcome) = result { spent += outcome.rows.total }
        results.append(result)
        unwindings = 0
        if results.count % Self.sendStep == 0 { try rows.flush(isSent: true) }
        return true
    }

    /// - Returns: `nil`: it was unwound.
    private func run(
        _ number: Int, in rows: FetchedRows, now: Timestamp, isKept: Bool
    ) throws(StoreError) -> Result<StoreOutcome, StoreError>? {
        var result: Result<StoreOutcome, StoreError>?
        let isDone = try rows.run(isKept: isKept) { () throws(StoreError) in
            do throws(StoreError) {
                // Its own savepoints stand: of one that fails behind them nothing is to be left.
                try rows.savepoint { () throws(StoreError) in
                    result = .success(
                        try Rules.execute(
                            requests[number], in: rows, now: now, limits: limits, zones: zones))
                }
            } catch {
                switch error {
                case .conflict, .corrupt: result = .failure(error)
                case .full, .unavailable: throw error
                }
            }
        }
        return isDone ? result : nil
    }

    private func fetchExpected(
        _ rows: FetchedRows, _ now: Timestamp
    ) throws(StoreError) {
        guard plan.rounds > 0 else { return }
        let hints = ReadHints(rows, now: now, limits: limits)
        for request in requests {
            hints.following(.request(request)) { plan.hint(.request(request), hints) }
        }
        for round in 1...plan.rounds {
            if rows.missing.isEmpty { return }
            try rows.fetchMissing()
            if round == plan.rounds { return }
            for expected in hints.beginRound() {
                hints.following(expected) { plan.hint(expected, hints) }
            }
        }
    }
}

extension DistantStore {
    /// As `commit` says, once.
    func commit(
        _ group: GroupCommit, _ applied: ([Result<StoreOutcome, StoreError>]) -> Void
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        var results: [Result<StoreOutcome, StoreError>] = []
        try writeFetching { (transaction: any FetchingTransaction) throws(StoreError) in
            results = try self.carryOut(group, in: transaction)
            applied(results)
        }
        return results
    }

    /// As `commit` says, once, but returns when the commit is on its way.
    ///
    /// - Parameter ended: As `writeAhead` says, with the outcomes. Nothing of them may be told to
    ///   anybody before it is called without an error.
    /// - Returns: the number of requests that were carried out, as far as the budget went.
    public func commitAhead(
        _ requests: [StoreRequest], budget: Int = .max, limits: RuleLimits = RuleLimits(),
        zones: any ZoneClock = OnlyUTC(),
        applied: ([Result<StoreOutcome, StoreError>]) -> Void = { _ in },
        ended: @escaping ([Result<StoreOutcome, StoreError>], StoreError?) -> Void
    ) throws(StoreError) -> Int {
        var group = GroupCommit(requests)
        (group.budget, group.limits, group.zones) = (budget, limits, zones)
        var outcomes: [Result<StoreOutcome, StoreError>] = []
        try writeAhead { (transaction: any FetchingTransaction) throws(StoreError) in
            outcomes = try self.carryOut(group, in: transaction)
            applied(outcomes)
        } ended: {
            ended(outcomes, $0)
        }
        return outcomes.count
    }

    private func carryOut(
        _ group: GroupCommit, in transaction: any FetchingTransaction
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        var group = group
        let rows = FetchedRows(transaction) { Schema.guarded($0).rowGuard }
        try group.carryOut(in: rows, now: now)
        try rows.flush()
        return group.results
    }
}
