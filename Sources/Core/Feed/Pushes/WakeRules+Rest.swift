import Model
import Wake

// A server that has nothing to do writes nothing, not even `alive_at`: it rests. What looks like an
// outage to that row afterwards was none.

extension WakeRules {
    /// The process was there for so long since `alive_at` was written, by a clock that nobody sets.
    /// If the store's clock has gone on as far, the row does, too; if not, that one was set or the
    /// machine was asleep, which the next turn notices by the row.
    static func rested(
        _ elapsed: Milliseconds, in transaction: any StoreTransaction, now: Timestamp
    ) throws(StoreError) {
        try transaction.savepoint { () throws(StoreError) in
            let key: [ColumnValue] = [.text(aliveName)]
            guard let alive = try transaction.record(MetaRecord.self, key, lock: .wait) else {
                return
            }
            let (expected, isOver) = alive.number.addingReportingOverflow(elapsed)
            guard !isOver, now.milliseconds <= expected + gapTolerance,
                expected <= now.milliseconds + gapTolerance
            else { return }
            try transaction.put(MetaRecord(name: aliveName, number: now.milliseconds))
        }
    }

    /// Whether an outage, or a clock that was set back, is being worked off.
    static func isMending(in snapshot: any StoreSnapshot) throws(StoreError) -> Bool {
        for name in [gapName, setBackName]
        where try snapshot.record(MetaRecord.self, [.text(name)]) != nil {
            return true
        }
        return false
    }
}
