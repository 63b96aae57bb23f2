import Model
import Wake

// Time: `alive_at` is written every 2 s. Where it jumps by more than 5 s beside that, we were
// away, or the store's clock was set: wakes that waited then are due again, for the woken app
// had its 30 s while nobody answered. A shorter absence, which only the start of a process
// shows, makes deadlines later by as much.

extension WakeRules {
    static let aliveName = MetaRecord.aliveName
    static let gapName = "wake_gap"
    /// Waiting wakes made due again in one step.
    static let gapStep = 500
    /// The number of these devices looked at before it is asked what is left of the turn.
    private static let gapAtOnce = 16
    /// Entries looked at for one that was not alerted.
    private static let pendingLook = 16
    static let setBackName = "clock_set_back"

    /// Every 2 s.
    func keepAlive() throws(StoreError) -> WakeEffects {
        let effects = try noticeGap().effects
        try transaction.savepoint { () throws(StoreError) in
            _ = try transaction.record(MetaRecord.self, [.text(Self.aliveName)], lock: .wait)
            try transaction.put(MetaRecord(name: Self.aliveName, number: now.milliseconds))
        }
        return effects
    }

    /// Start of a process: what other boots had in flight is not waited for unless their node is
    /// there, and the time since the last `alive_at` counts as a gap if it is one. What cannot be
    /// read of a device keeps no process from its start.
    ///
    /// - Parameter nodes: those that are there.
    func started(boot: BootID, besides nodes: [BootID]) throws(StoreError) -> WakeEffects {
        var effects = WakeEffects()
        if let lastAlive = try moment(Self.aliveName) { effects += try extendGraces(lastAlive) }
        effects += try keepAlive()
        // Further ones wait for the end of their leases.
        let rows = try transaction.readable(
            WakeRecord.self, Scan(index: "wake_by_owner", limit: Self.gapStep))
        effects.passedOver(rows)
        let others = rows.records.filter { row in
            row.owner != boot && !nodes.contains { $0 == row.owner }
        }
        effects += try onEachDevice(of: others) { step throws(StoreError) in
            if let owner = step.row.owner, owner != boot, !nodes.contains(owner) {
                step.machine.ownerGone(now: now)
            }
        }
        return effects
    }

    /// A node is gone: what it had in flight is not waited for. Of more than a turn takes the rest
    /// waits for the end of its leases.
    func nodeGone(_ boot: BootID) throws(StoreError) {
        let scan = Scan(
            index: "wake_by_owner", prefix: [.identifier(boot)], limit: Self.mendedAtOnce)
        _ = try onDevices(of: scan) { step throws(StoreError) in
            if step.row.owner == boot { step.machine.ownerGone(now: now) }
        }
    }

    /// Looks at `alive_at` and, after a gap, makes waiting wakes due again, before anything is
    /// claimed or any grace is taken for over.
    ///
    /// - Returns: also whether the rest of that waits for what other transactions hold.
    func noticeGap() throws(StoreError) -> (effects: WakeEffects, isHeldUp: Bool) {
        if let last = try moment(Self.aliveName), isGap(since: last) {
            try transaction.savepoint { () throws(StoreError) in try openGap() }
        }
        let isHeldUp = try mendSetBack()
        let closed = try closeGap()
        return (closed.effects, isHeldUp || closed.isHeldUp)
    }

    private func isSetBack(since last: Timestamp) -> Bool {
        now + Self.gapTolerance < last + Self.aliveInterval
    }

    private func isGap(since last: Timestamp) -> Bool {
        now.since(last) > Self.aliveInterval + Self.gapTolerance || isSetBack(since: last)
    }

    /// Another node may have noticed the outage, and noted it, before this lock was taken.
    private func openGap() throws(StoreError) {
        let alive = try transaction.record(MetaRecord.self, [.text(Self.aliveName)], lock: .wait)
        guard let alive else { return }
        let last = Timestamp(milliseconds: alive.number)
        guard isGap(since: last) else { return }
        for name in [Self.setBackName, Self.outageName, Self.gapName] {
            _ = try transaction.record(MetaRecord.self, [.text(name)], lock: .wait)
        }
        // What was accepted up to here may have come to a closed door.
        try transaction.put(MetaRecord(name: Self.gapName, number: max(now, last).milliseconds))
        try transaction.put(MetaRecord(name: Self.aliveName, number: now.milliseconds))
        if isSetBack(since: last) {
            // The end of an outage would lie ahead, and was perhaps none.
            try transaction.delete(MetaRecord.self, [.text(Self.outageName)])
            try transaction.put(MetaRecord(name: Self.setBackName, number: now.milliseconds))
        } else {
            try transaction.put(MetaRecord(name: Self.outageName, number: now.milliseconds))
        }
    }

    /// Deletes a value of `meta` if it is still what its work was done for.
    func finish(_ name: String, _ number: UInt64) throws(StoreError) {
        try transaction.savepoint { () throws(StoreError) in
            let key: [ColumnValue] = [.text(name)]
            let known = try transaction.record(MetaRecord.self, key, lock: .wait)
            if known?.number == number { try transaction.delete(MetaRecord.self, key) }
        }
    }

    func moment(_ name: String) throws(StoreError) -> Timestamp? {
        try transaction.record(MetaRecord.self, [.text(name)])
            .map { Timestamp(milliseconds: $0.number) }
    }

    /// Graces that ran while the process was not there; a gap is treated after this.
    private func extendGraces(_ lastAlive: Timestamp) throws(StoreError) -> WakeEffects {
        var effects = WakeEffects()
        guard now.since(lastAlive) <= Self.aliveInterval + Self.gapTolerance else { return effects }
        let rows = try transaction.readable(
            WakeRecord.self, Scan(index: "wake_by_waiting", limit: Self.gapStep))
        guard rows.count < Self.gapStep else {
            // Too many to look at before anybody is served: they are treated as after a gap.
            try transaction.savepoint { () throws(StoreError) in
                _ = try transaction.record(MetaRecord.self, [.text(Self.gapName)], lock: .wait)
                try transaction.put(MetaRecord(name: Self.gapName, number: now.milliseconds))
            }
            return effects
        }
        effects.passedOver(rows)
        effects += try onEachDevice(of: rows.records) { step throws(StoreError) in
            step.machine.serviceStarted(lastAlive: lastAlive, now: now)
        }
        return effects
    }

    /// Until when an accepted wake may have met a gap; `nil`: no gap is open.
    private func gap() throws(StoreError) -> Timestamp? { try moment(Self.gapName) }

    private func closeGap() throws(StoreError) -> (effects: WakeEffects, isHeldUp: Bool) {
        var effects = WakeEffects()
        guard let until = try gap() else { return (effects, false) }
        var left = Self.gapStep
        // The other half of the turn is for the sweep that notices the gap.
        while left == Self.gapStep || left > 0 && !transaction.hasSpent(1, of: 2) {
            let limit = min(left, Self.gapAtOnce)
            let scan = Scan(index: "wake_by_waiting", through: [.timestamp(until)], limit: limit)
            let (turn, found) = try onDevices(of: scan) { step throws(StoreError) in
                // Due since the outage: it leaves at the rate of what an outage held up.
                try step.perform(step.machine.serviceWasAway(now: min(until, now)))
            }
            effects += found
            left -= turn.looked
            if turn.isWhole, turn.looked < limit {
                try finish(Self.gapName, until.milliseconds)
                break
            }
            // Others hold all that is left.
            if turn.held == turn.looked { return (effects, true) }
        }
        return (effects, false)
    }

    // MARK: Each second

    /// Sessions whose device did not come back, graces and leases that ended, and alerts past
    /// their retention; at most `rows` of each, and no more than the turn allows, but one of each.
    ///
    /// - Returns: how many rows were looked at, and whether there may be more at once.
    func sweep(
        rows most: Int
    ) throws(StoreError) -> (count: Int, more: Bool, effects: WakeEffects) {
        var (effects, isHeldUp) = try noticeGap()
        var count = 0
        var more = false
        for part in [sweepSessions, sweepDeadlines, expireAlerts, releaseAlerts] as [Sweep] {
            let (turn, found) = try part(most)
            effects += found
            count += turn.looked
            more = more || turn.hasMore
        }
        // What follows from a gap, or from a clock set back, goes on at once, too.
        if !more, !isHeldUp { more = try Self.isMending(in: transaction) }
        return (count, more, effects)
    }

    private typealias Swept = (turn: SweptRows, effects: WakeEffects)
    private typealias Sweep = (_ most: Int) throws(StoreError) -> Swept

    /// A scan of what is due by `now`.
    private func due(_ index: String, prefix: [ColumnValue] = [], _ most: Int) -> Scan {
        Scan(index: index, prefix: prefix, through: [.timestamp(now)], limit: most)
    }

    /// The row that was the record of a device with a session goes: if it is behind, a wake is
    /// written in its place.
    private func sweepSessions(_ most: Int) throws(StoreError) -> Swept {
        try SweptRows.sweep(due("session_by_expected", most), in: transaction) {
            (session: SessionRecord) throws(StoreError) in try expire(session)
        }
    }

    private func expire(_ found: SessionRecord) throws(StoreError) -> WakeEffects {
        try transaction.lockUser(found.app, found.user)
        // The device may have come back before this lock was taken.
        guard let session = try transaction.again(found),
            let until = session.expectedUntil, until <= now
        else { return WakeEffects() }
        try transaction.delete(SessionRecord.self, session.rowKey)
        guard session.role == .app,
            var device = try transaction.record(
                DeviceRecord.self,
                [.app(session.app), .user(session.user), .identifier(session.device)],
                lock: .wait)
        else { return WakeEffects() }
        device.withoutSessionSince = now
        try transaction.put(device)
        var step = try WakeStep(device, in: transaction, now: now)
        let unread = try transaction.unread(device.app, device.user, now: now)
        let change = try newestPending(of: device)
        try step.perform(
            step.machine.sessionExpired(behind: change, unread: unread, now: now))
        // A badge push wakes the app as well.
        if change == nil, step.row.badgeDue == nil,
            let useful = try newestUseful(of: device)
        {
            step.machine.usefulCame(useful, now: now)
        }
        try step.save()
        return step.effects
    }

    /// A row that cannot be read is no reason to end no session any more.
    private func newestUseful(of device: DeviceRecord) throws(StoreError) -> VisibleChange? {
        do throws(StoreError) {
            return try transaction.usefulPending(device, now: now)
        } catch {
            guard case .corrupt = error else { throw error }
            return nil
        }
    }

    private func newestPending(of device: DeviceRecord) throws(StoreError) -> VisibleChange? {
        let pending = try transaction.pending(device, atMost: Self.pendingLook, now: now)
        for entry in pending.entries {
            guard let message = MessageID(entry.object) else { continue }
            // An urgent one was alerted beside the session.
            let key = device.wakeKey + [.identifier(message)]
            if try transaction.record(AlertRecord.self, key)?.isUrgent ?? false { continue }
            return VisibleChange(
                seq: entry.seq, conversation: entry.conversation, message: message)
        }
        guard pending.isCut || pending.entries.count == Self.pendingLook,
            let user = try transaction.record(
                UserRecord.self, [.app(device.app), .user(device.user)])
        else { return nil }
        return try transaction.newestChange(of: user)
    }

    private func sweepDeadlines(_ most: Int) throws(StoreError) -> Swept {
        let gap = try gap()
        return try onDevices(of: due("wake_by_deadline", most)) { step throws(StoreError) in
            try step.perform(step.machine.leaseEnded(now: now))
            step.machine.urgentTurnCame(now: now)
            if let gap, let since = step.row.waitingSince, since <= gap {
                try step.perform(step.machine.serviceWasAway(now: now))
            } else if let until = step.row.graceUntil, until <= now {
                if try isShutOut(step.device) {
                    return try step.perform(step.machine.serviceWasAway(now: now))
                }
                // Only what was found: nobody is given up for what may be there.
                let pending = try transaction.pending(step.device, atMost: 1, now: now)
                try step.perform(
                    step.machine.graceEnded(isBehind: !pending.entries.isEmpty, now: now))
            }
        }
    }

    /// The device would not be let in if it came.
    private func isShutOut(_ device: DeviceRecord) throws(StoreError) -> Bool {
        let user = try transaction.record(UserRecord.self, [.app(device.app), .user(device.user)])
        if user?.isSuspended ?? false { return true }
        return try transaction.record(AppRecord.self, [.app(device.app)])?.isSuspended ?? false
    }

    /// The user is let in again: a device that was woken meanwhile may have come and been turned
    /// away.
    func resumed(_ app: AppID, _ user: UserID) throws(StoreError) -> WakeEffects {
        try onDevices(of: app, user) { step throws(StoreError) in
            guard step.hadRow else { return false }
            try step.perform(step.machine.serviceWasAway(now: now))
            step.machine.resumed(now: now)
            return true
        }
    }

    private func expireAlerts(_ most: Int) throws(StoreError) -> Swept {
        if try Self.endsWait(in: transaction, now: now) != nil {
            return (SweptRows(atMost: most), WakeEffects())
        }
        return try SweptRows.sweep(
            due("alert_by_expiry", most), in: transaction, orInTie: { $0.seq < $1.seq },
            carryOut: { (alert: AlertRecord) throws(StoreError) in
                try expire(alert)
                return WakeEffects()
            })
    }

    private func expire(_ found: AlertRecord) throws(StoreError) {
        try transaction.lockUser(found.app, found.user)
        // It may have been sent, read or given more time before this lock was taken.
        guard let alert = try transaction.again(found), alert.expiresAt <= now else { return }
        try transaction.delete(AlertRecord.self, alert.rowKey)
        guard
            let device = try transaction.record(
                DeviceRecord.self,
                [.app(alert.app), .user(alert.user), .identifier(alert.device)], lock: .wait)
        else { return }
        var step = try WakeStep(device, in: transaction, now: now)
        step.closeAlert(alert)
        try step.save()
    }

    /// Alerts whose time has come join the others that wait to leave.
    private func releaseAlerts(_ most: Int) throws(StoreError) -> Swept {
        let delayed = due(
            "alert_by_moment", prefix: [.unsigned(AlertPhase.delayed.rawValue)], most)
        return try SweptRows.sweep(
            delayed, in: transaction, orInTie: { $0.seq < $1.seq },
            carryOut: { (alert: AlertRecord) throws(StoreError) in try release(alert) })
    }

    private func release(_ found: AlertRecord) throws(StoreError) -> WakeEffects {
        try transaction.lockUser(found.app, found.user)
        guard let alert = try transaction.again(found) else { return WakeEffects() }
        guard
            let device = try transaction.record(
                DeviceRecord.self,
                [.app(alert.app), .user(alert.user), .identifier(alert.device)], lock: .wait)
        else {
            try transaction.delete(AlertRecord.self, alert.rowKey)
            return WakeEffects()
        }
        var step = try WakeStep(device, in: transaction, now: now)
        let isReleased = try step.release(alert.message)
        try step.save()
        var effects = step.effects
        if isReleased { effects.released += 1 }
        return effects
    }

    // MARK: One device

    private func device(of row: WakeRecord) throws(StoreError) -> DeviceRecord? {
        let device = try transaction.record(
            DeviceRecord.self, [.app(row.app), .user(row.user), .identifier(row.device)],
            lock: .wait)
        if device == nil, let row = try transaction.again(row) {
            try transaction.delete(WakeRecord.self, row.rowKey)
        }
        return device
    }

    /// Runs `body` on the device of each row that `scan` gives, in the lock order; of one and those
    /// that the turn allows. A row of which another transaction holds something is passed over.
    func onDevices(
        of scan: Scan, _ body: (inout WakeStep) throws(StoreError) -> Void
    ) throws(StoreError) -> (turn: SweptRows, effects: WakeEffects) {
        try SweptRows.sweep(scan, in: transaction) { (row: WakeRecord) throws(StoreError) in
            try onDevice(of: row, body)
        }
    }

    /// The same for all of them at the start of a process: none is passed over but one that cannot
    /// be read.
    private func onEachDevice(
        of rows: [WakeRecord], _ body: (inout WakeStep) throws(StoreError) -> Void
    ) throws(StoreError) -> WakeEffects {
        var effects = WakeEffects()
        for row in rows.sorted(by: { $0.precedes($1) }) {
            do throws(StoreError) {
                try transaction.savepoint { () throws(StoreError) in
                    _ = try onDevice(of: row, body)
                }
            } catch {
                guard case .corrupt(let detail) = error else { throw error }
                effects.passedOver(row.app, row.user, detail)
            }
        }
        return effects
    }

    /// The caller holds a savepoint.
    func onDevice(
        of row: WakeRecord, _ body: (inout WakeStep) throws(StoreError) -> Void
    ) throws(StoreError) -> WakeEffects {
        _ = try transaction.record(
            UserRecord.self, [.app(row.app), .user(row.user)], lock: .wait)
        guard let device = try device(of: row) else { return WakeEffects() }
        var step = try WakeStep(device, in: transaction, now: now)
        try body(&step)
        try step.save()
        var effects = step.effects
        // What becomes of a campaign's push stands or falls with the campaign's counts.
        try writeDown(&effects)
        return effects
    }
}
