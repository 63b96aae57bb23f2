public import Model
public import Wake
public import WorkingSet

extension Store {
    /// Carries out the requests in one transaction and commits it. Nothing of it may be told to
    /// anybody before this returns.
    ///
    /// - Parameters:
    ///   - rows: what this store's only committer knows of it from one call to the next; `nil`:
    ///     nothing. Of a `DistantStore` nothing is.
    ///   - budget: when the requests carried out so far have read or written this many rows, the
    ///     next is left for another transaction; the first is always carried out.
    ///   - zones: for what is told at a time of the device's own clock.
    ///   - waits: whether they wait for rows that other transactions hold; of a `DistantStore`.
    ///   - applied: called when all are carried out and written, and nothing is committed; more
    ///     than once if the transaction is tried again.
    /// - Returns: for each request, in order, as far as the budget went, its outcome, or why
    ///   nothing of it alone was carried out (`.conflict`: the same again may succeed; `.corrupt`).
    /// - Throws: when nothing was committed (`.full`, `.conflict` after several tries), or it is
    ///   unknown whether it was (`.unavailable`).
    public func commit(
        _ requests: [StoreRequest], through rows: WorkingSet? = nil,
        budget: Int = .max, limits: RuleLimits = RuleLimits(), zones: any ZoneClock = OnlyUTC(),
        waits: Bool = true, applied: ([Result<StoreOutcome, StoreError>]) -> Void = { _ in }
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        let rows = rows ?? WorkingSet(carrying: 0)
        var group = GroupCommit(requests)
        (group.budget, group.limits, group.zones) = (budget, limits, zones)
        group.waits = waits
        var attempt = 1
        while true {
            do throws(StoreError) {
                return try commitOnce(group, rows, applied)
            } catch {
                guard case .conflict = error, attempt < limits.attempts else { throw error }
                attempt += 1
            }
        }
    }

    private func commitOnce(
        _ group: GroupCommit, _ rows: WorkingSet,
        _ applied: ([Result<StoreOutcome, StoreError>]) -> Void
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        if let distant = self as? any DistantStore { return try distant.commit(group, applied) }
        var results: [Result<StoreOutcome, StoreError>] = []
        func carryOut(in transaction: any StoreTransaction) throws(StoreError) {
            results = []
            var spent = 0
            for request in group.requests where spent < group.budget {
                do throws(StoreError) {
                    try rows.run { () throws(StoreError) in
                        let outcome = try Rules.execute(
                            request, in: transaction, now: self.now(), limits: group.limits,
                            zones: group.zones)
                        spent += outcome.rows.total
                        results.append(.success(outcome))
                    }
                } catch {
                    switch error {
                    case .conflict, .corrupt: results.append(.failure(error))
                    case .full, .unavailable: throw error
                    }
                }
            }
        }
        try rows.write(in: self, beforeCommit: { applied(results) }, carryOut)
        return results
    }
}
