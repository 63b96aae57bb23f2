import Model
import Wake
import Wire

// Campaigns go through their app's devices with a cursor, some devices a step, and queue a few
// more than can be sent at once: so the audience is the one of the moment, a pause or a cancel
// finds little to take back, and a million devices are never in one transaction.
extension Work {
    /// How long a campaign with enough in its queue, or with its last pushes under way, waits
    /// until it looks again; claims and answers let it look sooner.
    private static let idleDelay: Milliseconds = 2_000
    /// How long one that waits for an hour sleeps: somebody may come whose clock is earlier.
    private static let hourDelay: Milliseconds = 10 * 60_000
    /// Devices read at a time: what a turn leaves of them is read again in the next.
    private static let devicesAtOnce = 64
    /// How many pushes of a queue are counted to see whether it is full.
    private static let countedAtOnce = 256

    func advanceCampaigns(devices: Int) throws(RuleFailure) -> StoreAnswer {
        var budget = max(1, devices)
        var count = 0
        let table = CampaignProgressRecord.table
        let due = try rows(
            table,
            Scan(
                index: "campaign_by_due", through: [.timestamp(now)],
                limit: limits.campaignsAtOnce))
        for row in due where budget > 0 && (count == 0 || !isSpent) {
            let key = Array(row.prefix(table.keyCount))
            var isUnreadable = false
            let done = try stepPassingOver { () throws(RuleFailure) in
                try self.advance(key, budget)
            } unreadable: { detail in
                self.notePassedOver(AppID(row[0].words), "campaign: \(detail)")
                isUnreadable = true
            }
            if isUnreadable { try putOffCampaign(key) }
            guard let work = done else { continue }
            budget -= work
            count += work
        }
        return .progressed(count: count, more: count > 0)
    }

    /// Something of the campaign cannot be read: it is looked at again later, and the campaigns
    /// behind it need not wait for it.
    private func putOffCampaign(_ key: [ColumnValue]) throws(RuleFailure) {
        let table = CampaignProgressRecord.table
        _ = try stepPassingOver { () throws(RuleFailure) in
            let known = try self.stored(
                try self.transaction.row(table, key: key, lock: .wait))
            if let row = known {
                let again = ColumnValue.timestamp(self.now + Self.unreadablePause)
                // Nor does a claim look at it until it can be read.
                try self.stored(
                    try self.transaction.put(
                        table,
                        table.row(
                            table.row(row, with: again, as: "due"), with: .null,
                            as: "sending_since")))
            }
        }
    }

    /// - Returns: how many rows were looked at or written; 0: nothing changed.
    private func advance(_ key: [ColumnValue], _ budget: Int) throws(RuleFailure) -> Int {
        let users = try lockUsers(key, budget)
        try putClocksRight(key, budget, users)
        guard
            var progress = try record(CampaignProgressRecord.self, key, lock: .wait),
            let due = progress.due, due <= now
        else { return 0 }
        guard let campaign = try record(CampaignRecord.self, key) else {
            try delete(CampaignProgressRecord.self, key)
            return 1
        }
        let before = progress
        var work = 0
        if progress.hold != .cancelled, !progress.isOver,
            campaign.plan.startsAt + CampaignPlan.lifetime <= now
        {
            if let until = try stored(try WakeRules.endsWait(in: transaction, now: now)) {
                // By a clock that may be ahead: it neither ends nor begins meanwhile.
                progress.due = until
                try put(progress)
                return 0
            }
            progress.hold(.cancelled, "it was not over 30 days after its start", now: now)
            work = 1
        }
        var rest: Timestamp?
        if progress.hold == .cancelled {
            work += try takeBack(&progress, campaign, budget, users)
        } else if progress.hold == .none {
            rest = try stored(try transaction.campaignRest(of: progress.app, now: now))
            if rest == nil { work += try goOn(&progress, campaign, budget, users) }
        }
        progress.settle(campaign.plan, now: now, rest: rest)
        if progress != before { try put(progress) }
        return work
    }

    /// The users whose devices are next, locked: a device's pushes are protected by its user's row.
    /// This happens before the campaign is locked, for users are locked before campaigns.
    private func lockUsers(
        _ key: [ColumnValue], _ budget: Int
    ) throws(RuleFailure) -> Set<UserID> {
        guard let progress = try record(CampaignProgressRecord.self, key),
            let due = progress.due, due <= now,
            let campaign = try record(CampaignRecord.self, key)
        else { return [] }
        let limit = min(budget, Self.devicesAtOnce)
        var users: Set<UserID> = []
        if progress.hold == .cancelled {
            users = Set(try queuedRows(progress, limit: limit).map(\.user))
            if users.isEmpty { users = Set(try lostFlights(of: progress).map(\.user)) }
        } else if progress.hold != .none {
            return []
        } else if try stored(try transaction.campaignRest(of: progress.app, now: now)) != nil {
            return []
        } else if progress.isPassDone {
            users = Set(try lostFlights(of: progress).map(\.user))
        } else if progress.stage == .canary || progress.stage == .main, !progress.isPassDone {
            var next = progress
            guard try isTurn(&next, campaign.plan) else { return [] }
            users = Set(try devices(after: next, limit: limit, campaign.plan).map(\.user))
        }
        for user in users.sorted() { try lockUser(progress.app, user) }
        return users
    }

    private func goOn(
        _ progress: inout CampaignProgressRecord, _ campaign: CampaignRecord, _ budget: Int,
        _ users: Set<UserID>
    ) throws(RuleFailure) -> Int {
        let plan = campaign.plan
        switch progress.stage {
        case .finished: return 0
        case .scheduled:
            let first = try nextTurn(after: nil, progress.app, plan)
            let moment = plan.moment(onClock: first?.clock ?? CampaignPlan.offsetUTC)
            guard moment <= now else {
                progress.due = min(moment, now + Self.hourDelay)
                return 0
            }
            progress.begin(plan.canaryShare > 0 ? .canary : .main, now: now)
            return 1
        case .review:
            guard var until = progress.reviewUntil else { return 0 }
            // Of a clock that was ahead: it waits for as long as ever from now.
            until = min(until, now + (plan.canaryWait ?? 0))
            progress.reviewUntil = until
            guard until <= now else { return 0 }
            let (refused, accepted) = (
                progress.counts.canaryRefused, progress.counts.canaryAccepted
            )
            // Few: half of what would stop it; nothing does where nothing is to.
            guard
                plan.stopPercent == 0
                    || refused * 200 <= plan.stopPercent * (refused + accepted)
            else {
                progress.hold(
                    .stopped,
                    "\(refused) of \(refused + accepted) pushes to the canary share "
                        + "were rejected, the last with \(progress.lastReason)", now: now)
                effects.wakes.campaignsStopped += 1
                return 1
            }
            progress.begin(.main, now: now)
            return 1
        case .canary, .main:
            if progress.isPassDone { return try endPass(&progress, campaign, users) }
            return try queueMore(&progress, campaign, budget, users)
        }
    }

    /// Puts more devices into the queue.
    private func queueMore(
        _ progress: inout CampaignProgressRecord, _ campaign: CampaignRecord, _ budget: Int,
        _ users: Set<UserID>
    ) throws(RuleFailure) -> Int {
        if progress.counts.waiting >= UInt64(limits.campaignQueue) {
            // Rows that went with their users are not told to the count. It is put right when
            // few are left, and not before: more are not counted for it at each look.
            let few = min(limits.campaignQueue, Self.countedAtOnce)
            let found = try queued(progress, limit: few)
            if found < few { progress.counts.lose(waitingDownTo: UInt64(found)) }
        }
        let room = limits.campaignQueue - Int(clamping: progress.counts.waiting)
        guard room > 0 else {
            progress.due = now + Self.idleDelay
            return 0
        }
        guard try isTurn(&progress, campaign.plan) else { return 0 }
        let limit = min(budget, room, Self.devicesAtOnce)
        let found = try devices(after: progress, limit: limit, campaign.plan)
        // Up to the first one whose turn is later: the next step puts it right.
        let isLocal = campaign.plan.isLocal
        var devices = found.prefix { device in
            // Other devices came in between: the next step locks their users.
            guard users.contains(device.user) else { return false }
            guard isLocal, let turn = progress.turn, !turn.isEarly, let record = device.record
            else { return true }
            return campaign.plan.clock(of: record, zones) >= turn.clock
        }
        guard let app = try record(AppRecord.self, [.app(progress.app)]) else { return 0 }
        let counted = progress.counts
        var audience = CampaignAudience(
            of: app, try stored(try campaign.decodedFilter()), in: transaction, now: now)
        for (index, device) in devices.enumerated() {
            // The cursor stays where the turn ends.
            if index > 0, isSpent {
                devices = devices.prefix(index)
                break
            }
            if isLocal, let turn = progress.turn, let record = device.record,
                !turn.takes(clock: campaign.plan.clock(of: record, zones))
            {
                continue
            }
            try consider(device, &audience, campaign, &progress)
        }
        if progress.counts.waiting > counted.waiting { effects.background.insert(.pushes) }
        if let last = devices.last {
            progress.cursorUser = last.user
            progress.cursorDevice = last.device
        }
        if devices.count == found.count, found.count < limit {
            if isLocal {
                progress.isOffsetDone = true
            } else {
                progress.isPassDone = true
            }
        }
        progress.due = now
        return max(1, devices.count)
    }

    // MARK: Clocks that have changed

    /// Where the start is local, the devices that are next and whose clock has been set back
    /// since they told their offset get the right offset, and with it the later turn. This
    /// happens before the campaign is locked, for devices are locked before campaigns.
    private func putClocksRight(
        _ key: [ColumnValue], _ budget: Int, _ users: Set<UserID>
    ) throws(RuleFailure) {
        guard let progress = try record(CampaignProgressRecord.self, key),
            let due = progress.due, due <= now, progress.hold == .none,
            let turn = progress.turn, !turn.isEarly, !progress.isOffsetDone,
            let campaign = try record(CampaignRecord.self, key)
        else { return }
        let limit = min(budget, Self.devicesAtOnce)
        let next = try devices(after: progress, limit: limit, campaign.plan)
        for device in next.compactMap(\.record) {
            let clock = campaign.plan.clock(of: device, zones)
            guard clock < turn.clock, users.contains(device.user),
                var known = try record(
                    DeviceRecord.self,
                    [.app(device.app), .user(device.user), .identifier(device.device)], lock: .wait)
            else { continue }
            known.utcOffset = clock
            try put(known)
        }
    }

    /// One that cannot be read, or whose user cannot, is told and gets nothing.
    private func consider(
        _ next: NextDevice, _ audience: inout CampaignAudience, _ campaign: CampaignRecord,
        _ progress: inout CampaignProgressRecord
    ) throws(RuleFailure) {
        let counted = progress.counts
        do throws(StoreError) {
            switch next.found {
            case .readable(let device):
                return try consider(device, &audience, campaign, &progress)
            case .unreadable(let detail): throw .corrupt(detail)
            }
        } catch {
            guard case .corrupt(let detail) = error else { throw .store(error) }
            // What is wrong with the app's own is no device's.
            if let device = next.record { try stored(try audience.requireCredentials(of: device)) }
            progress.counts = counted
            let isCanary = campaign.plan.isCanary(next.device, of: campaign.campaign)
            if progress.stage == .canary, !isCanary { return }
            if progress.stage == .canary || !isCanary { progress.counts.seen += 1 }
            notePassedOver(progress.app, of: next.user, "campaign: \(detail)")
        }
    }

    private func consider(
        _ device: DeviceRecord, _ audience: inout CampaignAudience, _ campaign: CampaignRecord,
        _ progress: inout CampaignProgressRecord
    ) throws(StoreError) {
        let isCanary = campaign.plan.isCanary(device.device, of: campaign.campaign)
        if progress.stage == .canary, !isCanary { return }
        let row = CampaignPushRecord(
            device, of: campaign.campaign, isCanary: progress.stage == .canary, now: now)
        let known = try transaction.record(CampaignPushRecord.self, row.key)
        // Both passes come by the devices of the share that goes first, but for those that
        // joined after its pass. Their omissions are counted anew in the second.
        let joined = progress.startedAt.map { device.createdAt > $0 } ?? false
        if progress.stage == .canary || !isCanary || (known == nil && joined) {
            progress.counts.seen += 1
        }
        // One a device, whatever came before.
        if let known {
            if isCanary, known.phase == .leftOut,
                let omission = CampaignOmission(name: known.reason), omission != .changed
            {
                progress.counts[omission] += 1
            }
            return
        }
        switch try audience.verdict(on: device) {
        case nil, .outside: return
        case .takes:
            progress.counts.audience += 1
            progress.counts.waiting += 1
            if row.isCanary { progress.counts.canary += 1 }
            try transaction.put(row)
        case .leftOut(let omission):
            progress.counts[omission] += 1
        }
    }

    /// After the last device of a pass: waits for the answers to what is under way.
    private func endPass(
        _ progress: inout CampaignProgressRecord, _ campaign: CampaignRecord,
        _ users: Set<UserID>
    ) throws(RuleFailure) -> Int {
        try giveUp(
            try lostFlights(of: progress).filter { users.contains($0.user) }, of: &progress)
        guard try queued(progress, limit: 1) == 0, try flying(progress) == 0 else {
            progress.due = now + Self.idleDelay
            return 0
        }
        progress.counts.loseAll(isCanary: progress.stage == .canary)
        if progress.stage == .main {
            try finish(&progress, campaign)
        } else {
            let counts = progress.counts
            progress.stage = .review
            progress.since = now
            if counts.canaryAccepted + counts.canaryRefused == 0 {
                // Nothing was learnt: it is a person who lets everybody be told, not the clock.
                progress.reason =
                    "no device of the canary share got it, so nothing is known of the push: look "
                    + "at the audience and the share, then resume or cancel it"
            } else {
                progress.reviewUntil = campaign.plan.canaryWait.map { now + $0 }
            }
        }
        return 1
    }

    private func finish(
        _ progress: inout CampaignProgressRecord, _ campaign: CampaignRecord
    ) throws(RuleFailure) {
        if progress.hold == .none {
            progress.stage = .finished
            progress.since = now
        }
        progress.finishedAt = now
        progress.due = nil
        progress.expiresAt = now + CampaignPushRecord.lifetime
        var campaign = campaign
        campaign.expiresAt = progress.expiresAt
        try put(campaign)
    }

    /// Of a cancelled campaign: what waits goes.
    private func takeBack(
        _ progress: inout CampaignProgressRecord, _ campaign: CampaignRecord, _ budget: Int,
        _ users: Set<UserID>
    ) throws(RuleFailure) -> Int {
        let found = try queuedRows(progress, limit: min(budget, Self.devicesAtOnce))
        let rows = found.filter { users.contains($0.user) }
        for push in rows {
            try stored(
                try transaction.put(
                    CampaignPushRecord.table, push.settled(.cancelled, now: now)))
        }
        progress.counts.cancelled += UInt64(rows.count)
        progress.counts.waiting -= min(progress.counts.waiting, UInt64(rows.count))
        progress.due = now
        if found.isEmpty {
            try giveUp(
                try lostFlights(of: progress).filter { users.contains($0.user) }, of: &progress)
            if try flying(progress) == 0 {
                progress.counts.loseAll(isCanary: progress.stage == .canary)
                try finish(&progress, campaign)
                return 1
            }
            progress.due = now + Self.idleDelay
        }
        return found.count
    }

    // MARK: Devices in order

    private func queued(
        _ progress: CampaignProgressRecord, limit: Int
    ) throws(RuleFailure) -> Int {
        try queuedRows(progress, limit: limit).count
    }

    private func queuedRows(
        _ progress: CampaignProgressRecord, limit: Int
    ) throws(RuleFailure) -> [CampaignPushRow] {
        try rows(
            CampaignPushRecord.table,
            Scan(
                index: "campaign_push_queued",
                prefix: [.app(progress.app), .identifier(progress.campaign)], limit: limit)
        ).map { CampaignPushRow($0) }
    }

    private func flying(_ progress: CampaignProgressRecord) throws(RuleFailure) -> Int {
        try rows(
            CampaignPushRecord.table,
            Scan(
                index: "campaign_push_sending",
                prefix: [.app(progress.app), .identifier(progress.campaign)], limit: 1)
        ).count
    }

    /// Of a local start: whether the clocks of the devices that are next show it. Always else.
    private func isTurn(
        _ progress: inout CampaignProgressRecord, _ plan: CampaignPlan
    ) throws(RuleFailure) -> Bool {
        guard plan.isLocal, progress.turn == nil || progress.isOffsetDone else { return true }
        guard let next = try nextTurn(after: progress.turn, progress.app, plan) else {
            progress.isPassDone = true
            progress.due = now
            return false
        }
        let moment = plan.moment(onClock: next.clock)
        guard moment <= now else {
            progress.due = min(moment, now + Self.hourDelay)
            return false
        }
        progress.turn = next
        progress.isOffsetDone = false
        progress.cursorUser = UserID("")
        progress.cursorDevice = .zero
        return true
    }

    private func nextTurn(
        after turn: CampaignTurn?, _ app: AppID, _ plan: CampaignPlan
    ) throws(RuleFailure) -> CampaignTurn? {
        guard plan.isLocal else { return nil }
        return try stored(
            try CampaignTurn.next(after: turn) { bound throws(StoreError) in
                try offset(below: bound, app)
            })
    }
}

extension CampaignPlan {
    /// What a device's clock is ahead of UTC when it shows the start, as an offset.
    fileprivate func clock(of device: DeviceRecord, _ zones: any ZoneClock) -> UInt64 {
        let clock = clock(zone: device.timeZone, told: device.utcOffset, zones: zones)
        return clock == 0 ? Self.offsetUTC : clock
    }
}
