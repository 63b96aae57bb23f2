import Model
import Wake

// What an app's devices know together of how long a wake takes: one row of `meta` an app.
//
// It changes about once in `AppLatencies.interval`, whatever the number of devices and nodes, and
// nobody waits for it: who finds it held by another lets its sample go. So it needs no place in
// the order of locks. Only the very first sample of an app makes the row; where two make it at
// once, one of them stands.

extension MetaRecord {
    /// With the app's name behind it: its `AppLatencies`; `number` is when the newest was taken.
    static let latenciesPrefix = "latencies/"
}

extension StoreSnapshot {
    /// The grace for a device that has learned none of its own; `nil`: it needs no other, or
    /// nothing is known.
    func appGrace(
        _ app: AppID, _ policy: WakePolicy, for habit: WakeHabit
    ) throws(StoreError) -> Milliseconds? {
        guard policy.adaptive.graceQuantile > 0, habit.graceSource(policy) != .device else {
            return nil
        }
        return try latencies(of: app)?.grace(policy)
    }

    fileprivate func latencies(
        of app: AppID, lock: RowLock = .none
    ) throws(StoreError) -> AppLatencies? {
        let name = MetaRecord.latenciesPrefix + app.name
        return try record(MetaRecord.self, [.text(name)], lock: lock).map {
            AppLatencies(
                encoded: $0.bytes, takenAt: Timestamp(milliseconds: $0.number))
        }
    }
}

extension StoreTransaction {
    /// A wake of one of the app's devices brought its app.
    func keepLatency(
        _ latency: Milliseconds, of wake: WakeID, _ app: AppID, now: Timestamp
    ) throws(StoreError) {
        var latencies = AppLatencies()
        if let known = try self.latencies(of: app) {
            guard known.isSampled(wake), let held = try self.latencies(of: app, lock: .skip)
            else { return }
            latencies = held
        }
        latencies.came(after: latency, now: now)
        try keepHint(
            MetaRecord(
                name: MetaRecord.latenciesPrefix + app.name,
                number: latencies.takenAt.milliseconds, bytes: latencies.encoded))
    }
}
