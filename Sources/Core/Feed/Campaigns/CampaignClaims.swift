import Model
import Wake

/// The part of a claim that is campaigns': behind everything that devices are owed themselves,
/// in streams of its own.
struct CampaignClaims {
    private let request: ClaimPushes
    private let transaction: any StoreTransaction
    private let now: Timestamp
    private var rooms: [CredentialKey: PushRoom]
    private var campaigns: [CampaignProgressRecord] = []
    private(set) var jobs: [PushJob] = []
    private(set) var isMore = false
    private(set) var blocked: [PushLane] = []
    private(set) var nextDue: Timestamp?
    private(set) var effects = WakeEffects()
    /// What it has come to for the campaign whose turn it is; `nil`: nothing.
    private var result: Result?
    private var sendings: [CampaignKey: Sending] = [:]
    /// What it has come to for pushes that cannot be read.
    private var takenOut: [CampaignKey: Result] = [:]
    /// One a push, those that are left.
    private var ids: ArraySlice<WakeID> = []

    /// What a claim comes to for one campaign, for its counts.
    private struct Result {
        var claimed = 0
        var leftOut: [CampaignOmission: UInt64] = [:]
        /// The number of devices left out that belong to the canary share.
        var canaryLeftOut: UInt64 = 0

        mutating func leaveOut(isCanary: Bool, _ omission: CampaignOmission) {
            leftOut[omission, default: 0] += 1
            if isCanary { canaryLeftOut += 1 }
        }
    }

    /// What all rows of a campaign share, read and decoded once a claim.
    private struct Sending {
        let campaign: CampaignRecord
        let app: AppRecord
        let options: PushOptions
        var audience: CampaignAudience
    }

    /// A row that is due, and what it may be sent with.
    private struct Due {
        let push: CampaignPushRecord
        let campaign: CampaignKey
        let credential: CredentialKey
    }

    /// Campaigns, and queues of one campaign, looked at in one claim.
    private static let campaignsMax = 64
    private static let queuesMax = 64
    /// No push waits longer for its moment; the longest is a quarter of an hour.
    private static let horizon: Milliseconds = 3_600_000

    init(
        _ request: ClaimPushes, in transaction: any StoreTransaction, now: Timestamp
    ) throws(StoreError) {
        self.request = request
        self.transaction = transaction
        self.now = now
        rooms = [:]
        let found = try Self.campaigns(request, in: transaction)
        campaigns = found.records
        for (row, detail) in found.others {
            try standStill(
                Array(row.prefix(CampaignProgressRecord.table.keyCount)), "campaign: \(detail)")
        }
    }

    /// Where there are more than one claim looks at, each begins at another moment between the
    /// oldest and the newest: none is behind the others for ever.
    private static func campaigns(
        _ request: ClaimPushes, in transaction: any StoreTransaction
    ) throws(StoreError) -> ReadableRows<CampaignProgressRecord> {
        let (table, index) = (CampaignProgressRecord.table, "campaign_sending")
        func since(_ row: [ColumnValue]?) -> Timestamp? {
            guard let row, case .integer(let time) = table.value(of: "sending_since", in: row)
            else { return nil }
            return Timestamp(milliseconds: UInt64(max(0, time)))
        }
        let first = try transaction.rows(table, Scan(index: index, limit: campaignsMax))
        guard first.count == campaignsMax,
            let newest = since(
                try transaction.rows(table, Scan(index: index, descending: true, limit: 1)).first),
            let oldest = since(first.first)
        else { return ReadableRows(first) }
        let chance = (request.ids.first?.low ?? 0) >> 1
        let start = oldest + chance % (newest.since(oldest) + 1)
        let found = try transaction.rows(
            table, Scan(index: index, after: [.timestamp(start)], limit: campaignsMax))
        guard found.count < campaignsMax else { return ReadableRows(found) }
        return ReadableRows(
            found
                + (try transaction.rows(
                    table,
                    Scan(
                        index: index, through: [.timestamp(start)],
                        limit: campaignsMax - found.count))))
    }

    /// Something of a campaign cannot be read: no claim looks at it again until its next look has
    /// read it.
    private mutating func standStill(_ key: [ColumnValue], _ detail: String) throws(StoreError) {
        let table = CampaignProgressRecord.table
        effects.passedOver(AppID(key[0].words), UserID(""), detail)
        let again = now + ClaimedPushes.unreadablePause
        _ = try transaction.passingOver { () throws(StoreError) in
            guard let row = try transaction.row(table, key: key, lock: .wait) else { return }
            try transaction.put(
                table,
                table.row(
                    table.row(row, with: .null, as: "sending_since"), with: .timestamp(again),
                    as: "due"))
        } unreadable: { _ in
        }
    }

    var isEmpty: Bool { campaigns.isEmpty }

    /// Of so many streams, those kept for campaigns whatever the devices are owed.
    func reserve(of streams: Int) -> Int {
        campaigns.isEmpty ? 0 : min(ClaimPushes.reserve, streams / 8)
    }

    var depth: PushQueueDepth? {
        let waiting = campaigns.reduce(UInt64(0)) { $0 + $1.counts.waiting }
        guard waiting > 0, let oldest = campaigns.compactMap(\.sendingSince).min() else {
            return nil
        }
        return PushQueueDepth(
            lane: .campaign, count: min(Int(clamping: waiting), ClaimedPushes.depthMax),
            oldest: oldest)
    }

    /// - Parameters:
    ///   - rooms: what the pushes before left.
    ///   - ids: one a push.
    mutating func claim(
        rooms: [CredentialKey: PushRoom], ids: ArraySlice<WakeID>
    ) throws(StoreError) {
        guard !campaigns.isEmpty, !ids.isEmpty else { return }
        (self.rooms, self.ids) = (rooms, ids)
        var rest = try dueRows(atMost: ids.count)[...]
        var (looked, held) = (0, 0)
        while let campaign = rest.first?.campaign {
            let rows = rest.prefix { $0.campaign == campaign }
            rest = rest.dropFirst(rows.count)
            let done = try claim(rows, of: campaign)
            looked += done.looked
            held += done.held
        }
        // What others hold is no reason to come again at once.
        if held > 0, held == looked { isMore = false }
        for campaign in takenOut.keys.sorted(by: { SortKey($0.columns) < SortKey($1.columns) }) {
            _ = try claim([], of: campaign)
        }
    }

    /// Pushes of one campaign, which stand or fall with its counts: while another transaction holds
    /// these, its pushes are due as before, and nobody else's wait for them. The counts come last,
    /// so that they are held for as short a time as can be.
    ///
    /// - Returns: how many rows were looked at, and of how many others hold something.
    private mutating func claim(
        _ rows: ArraySlice<Due>, of campaign: CampaignKey
    ) throws(StoreError) -> (looked: Int, held: Int) {
        var (looked, held) = (0, 0)
        let before = self
        result = takenOut.removeValue(forKey: campaign)
        var problem: String?
        let isCounted = try transaction.passingOver { () throws(StoreError) in
            for row in rows.sorted(by: { $0.push.precedes($1.push) }) {
                guard let id = ids.first else { break }
                // The pushes left are due as before; one goes on in any case.
                guard jobs.isEmpty || !transaction.isSpent else {
                    isMore = true
                    break
                }
                looked += 1
                if try !claimUnlessHeld(row, id) { held += 1 }
            }
            try writeDown(campaign)
        } unreadable: {
            problem = $0
        }
        guard isCounted else {
            self = before
            if let problem { effects.passedOver(campaign.app, UserID(""), problem) }
            comeAgain(at: now + ClaimedPushes.heldPause)
            return (looked, looked)
        }
        result = nil
        return (looked, held)
    }

    /// - Returns: `false`: another transaction holds something of it.
    private mutating func claimUnlessHeld(
        _ row: Due, _ id: WakeID
    ) throws(StoreError) -> Bool {
        var isClaimed = false
        var problem: String?
        let isDone = try transaction.passingOver { () throws(StoreError) in
            // The savepoint is inside another, and its locks are a sequence all the same.
            try transaction.lockSequence { () throws(StoreError) in
                let user = try transaction.record(
                    UserRecord.self, [.app(row.push.app), .user(row.push.user)], lock: .wait)
                isClaimed = try claim(row, isKnown: user != nil, id)
            }
        } unreadable: {
            problem = $0
        }
        if let problem {
            effects.passedOver(row.push.app, row.push.user, problem)
            return try leaveOutUnreadable(row.push)
        }
        if !isDone { comeAgain(at: now + ClaimedPushes.heldPause) }
        if isClaimed, isDone { ids = ids.dropFirst() }
        return isDone
    }

    /// Something of the device cannot be read: nobody waits for its push.
    private mutating func leaveOutUnreadable(
        _ found: CampaignPushRecord
    ) throws(StoreError) -> Bool {
        var isLeftOut = false
        let isDone = try transaction.passingOver { () throws(StoreError) in
            try transaction.lockSequence { () throws(StoreError) in
                try transaction.lockUser(found.app, found.user)
                guard var push = try transaction.again(found), push.due != nil else { return }
                push.settle(.leftOut, CampaignOmission.changed.name, now: now)
                try transaction.put(push)
                isLeftOut = true
            }
        } unreadable: { _ in
        }
        if isDone, isLeftOut { leaveOut(found, .changed) }
        if !isDone { comeAgain(at: now + ClaimedPushes.heldPause) }
        return isDone
    }

    // MARK: Which rows

    private mutating func dueRows(atMost most: Int) throws(StoreError) -> [Due] {
        var rows: [Due] = []
        // The first to be served is another one each time.
        let start = Int(truncatingIfNeeded: (request.ids.first?.low ?? 0) >> 1) % campaigns.count
        for turn in campaigns.indices {
            let progress = campaigns[(start + turn) % campaigns.count]
            guard let sending = try readSending(progress) else { continue }
            let campaign = sending.campaign
            let allowance = progress.allowance(campaign.plan.rate, now: now)
            guard allowance > 0 else {
                comeAgain(at: nextSlice)
                continue
            }
            let share = (most - rows.count + campaigns.count - turn - 1) / (campaigns.count - turn)
            let taken = try dueRows(of: campaign, atMost: min(share, allowance))
            rows += taken
            if !taken.isEmpty || takenOut[campaign.key] != nil {
                sendings[campaign.key] = sending
            }
            if taken.count == allowance {
                comeAgain(at: nextSlice)
            } else if taken.count == share {
                isMore = true
            }
        }
        return rows
    }

    /// `nil`: nothing of the campaign leaves now.
    private mutating func readSending(
        _ progress: CampaignProgressRecord
    ) throws(StoreError) -> Sending? {
        let app: AppRecord
        do throws(StoreError) {
            guard let found = try transaction.record(AppRecord.self, [.app(progress.app)]),
                !found.isSuspended
            else { return nil }
            app = found
        } catch {
            guard case .corrupt(let detail) = error else { throw error }
            effects.passedOver(progress.app, UserID(""), detail)
            return nil
        }
        do throws(StoreError) {
            guard
                let campaign = try transaction.record(
                    CampaignRecord.self, progress.key.columns)
            else { return nil }
            return Sending(
                campaign: campaign, app: app, options: try campaign.decodedOptions(),
                audience: CampaignAudience(
                    of: app, try campaign.decodedFilter(), in: transaction, now: now))
        } catch {
            guard case .corrupt(let detail) = error else { throw error }
            try standStill(progress.key.columns, "campaign: \(detail)")
            return nil
        }
    }

    private var nextSlice: Timestamp {
        let slice = CampaignProgressRecord.slice
        return Timestamp(milliseconds: (now.milliseconds / slice + 1) * slice)
    }

    private mutating func comeAgain(at time: Timestamp) { nextDue = min(nextDue ?? time, time) }

    private mutating func dueRows(
        of campaign: CampaignRecord, atMost most: Int
    ) throws(StoreError) -> [Due] {
        var rows: [Due] = []
        let prefix: [ColumnValue] = [.app(campaign.app), .identifier(campaign.campaign)]
        var last: [ColumnValue]?
        for _ in 0..<Self.queuesMax where rows.count < most {
            let next = try transaction.rows(
                CampaignPushRecord.table,
                Scan(index: "campaign_push_queued", prefix: prefix, after: last, limit: 1)
            ).first.map { CampaignPushRow($0) }
            guard let next else { break }
            guard let first = next.record else {
                last = next.place
                try takeOut(next, of: campaign.key)
                continue
            }
            guard let due = first.due else { break }
            let queue: [ColumnValue] = [
                .unsigned(first.lane.rawValue), .unsigned(first.environment), .text(first.topic),
            ]
            last = queue
            if due > now + Self.horizon { try setBack(prefix + queue) }
            guard due <= now else {
                comeAgain(at: due)
                continue
            }
            guard let credential = try credential(for: first) else { continue }
            let free = rooms[credential]?.free(first.lane, first.topic) ?? .max
            let limit = min(free, most - rows.count)
            var found: [CampaignPushRecord] = []
            if limit > 0 {
                let all = try transaction.rows(
                    CampaignPushRecord.table,
                    Scan(
                        index: "campaign_push_queued", prefix: prefix + queue,
                        through: [.timestamp(now)], limit: limit)
                ).map { CampaignPushRow($0) }
                for push in all where push.record == nil { try takeOut(push, of: campaign.key) }
                found = all.compactMap(\.record)
            }
            if rooms[credential] != nil {
                rooms[credential]?.take(found.count, first.lane, first.topic)
                // No stream is left: it goes on when one is free.
                if found.count == free, rooms[credential]?.isOpen(first.topic) ?? true {
                    blocked.append(PushLane(credential, first.lane))
                }
            }
            rows += found.map { Due(push: $0, campaign: campaign.key, credential: credential) }
        }
        return rows
    }

    /// What is kept of a push cannot be read: its device is told to be none of the audience any
    /// more, and the others do not wait.
    private mutating func takeOut(
        _ found: CampaignPushRow, of campaign: CampaignKey
    ) throws(StoreError) {
        let table = CampaignPushRecord.table
        effects.passedOver(found.app, found.user, found.problem ?? "")
        var isOut = false
        let isDone = try transaction.passingOver { () throws(StoreError) in
            try transaction.hold(UserRecord.table, key: Array(found.key.prefix(2)))
            guard let row = try transaction.row(table, key: found.key, lock: .none),
                row == found.row
            else { return }
            try transaction.put(
                table, found.settled(.leftOut, CampaignOmission.changed.name, now: now))
            isOut = true
        } unreadable: { _ in
        }
        if isOut {
            takenOut[campaign, default: Result()].leaveOut(isCanary: found.isCanary, .changed)
        }
        if isDone { isMore = true } else { comeAgain(at: now + ClaimedPushes.heldPause) }
    }

    /// Nothing waits so long for its moment: the store's clock was set back.
    private mutating func setBack(_ queue: [ColumnValue]) throws(StoreError) {
        let rows = try transaction.readable(
            CampaignPushRecord.self,
            Scan(index: "campaign_push_queued", prefix: queue, limit: ClaimPushes.rowsMax)
        ).records
        for found in rows.sorted(by: { $0.precedes($1) }) {
            var problem: String?
            let isDone = try transaction.passingOver { () throws(StoreError) in
                try transaction.lockUser(found.app, found.user)
                guard var row = try transaction.again(found), row.due ?? now > now else { return }
                row.due = now
                try transaction.put(row)
            } unreadable: {
                problem = $0
            }
            if let problem { effects.passedOver(found.app, found.user, problem) }
            if isDone { isMore = true } else { comeAgain(at: now + ClaimedPushes.heldPause) }
        }
    }

    /// One with room before one without; `nil`: none names the topic.
    private mutating func credential(
        for push: CampaignPushRecord
    ) throws(StoreError) -> CredentialKey? {
        let (readable, problem) = try transaction.pushCredentials(of: push.app, push.environment)
        if let problem { effects.passedOver(push.app, UserID(""), problem) }
        let all = readable.filter { $0.hasTopic(push.topic) }.map { CredentialKey($0) }
        return all.first { (rooms[$0]?.free(push.lane, push.topic) ?? .max) > 0 } ?? all.first
    }

    // MARK: One row

    /// - Returns: whether it came to a push.
    private mutating func claim(
        _ due: Due, isKnown: Bool, _ id: WakeID
    ) throws(StoreError) -> Bool {
        guard let sending = sendings[due.campaign] else {
            preconditionFailure("a row of a campaign that was not read: \(due)")
        }
        // Another node may have sent the campaign, or taken it back, before this lock was taken.
        guard var push = try transaction.again(due.push), let moment = push.due, moment <= now
        else {
            return false
        }
        guard isKnown,
            let device = try transaction.record(
                DeviceRecord.self, [.app(push.app), .user(push.user), .identifier(push.device)],
                lock: .wait)
        else {
            try transaction.delete(CampaignPushRecord.self, push.key)
            leaveOut(push, .changed)
            return false
        }
        if let omission = try omission(due.campaign, device) {
            push.settle(.leftOut, omission.name, now: now)
            try transaction.put(push)
            leaveOut(push, omission)
            return false
        }
        var placed = push
        placed.place(device)
        guard placed == push else {
            // Another token by now, or APNs has accepted it since: into its queue.
            try transaction.put(placed)
            isMore = true
            return false
        }
        var step = try WakeStep(device, in: transaction, now: now)
        let wait = step.machine.campaignWait(now: now)
        guard wait == nil else {
            push.due = wait
            try transaction.put(push)
            if let wait { comeAgain(at: wait) }
            return false
        }
        let claim = Claim(owner: request.boot, id: id)
        try step.perform(step.machine.claimCampaign(push.campaign, claim: claim, now: now))
        guard step.sends == .campaign, let lease = step.row.lease else {
            preconditionFailure("a device with a token takes a push: \(step.row)")
        }
        push.phase = .sending
        push.due = nil
        push.sendingSince = now
        push.attempts += 1
        try transaction.put(push)
        try step.save()
        effects += step.effects
        result = result ?? Result()
        result?.claimed += 1
        let (campaign, app, options) = (sending.campaign, sending.app, sending.options)
        let expiration = campaign.plan.expiration ?? app.alertExpiration
        // APNs stores one notification: a campaign's must take the place neither of an alert's nor
        // of the badge push that takes alerts off the screen.
        let isStored =
            step.row.alertsOpen == 0 && !step.machine.wasAlerted && expiration > 0
        let request = PushRequest.campaign(
            options.shown(
                title: campaign.pushTitle, body: campaign.pushBody, locale: device.locale,
                otherwise: app.locale),
            options: options, of: campaign.campaign, wake: id,
            expires: isStored ? now + expiration : nil,
            to: PushRequest.Destination(token: device.pushToken ?? [], topic: device.pushTopic))
        jobs.append(
            PushJob(
                key: PushJobKey(
                    app: device.app, user: device.user, device: device.device,
                    owner: self.request.boot, attempt: step.row.attempt),
                kind: .campaign, lane: push.lane, credential: due.credential,
                request: request, lease: lease))
        return true
    }

    private mutating func omission(
        _ campaign: CampaignKey, _ device: DeviceRecord
    ) throws(StoreError) -> CampaignOmission? {
        switch try sendings[campaign]?.audience.verdict(on: device) {
        case .takes: nil
        case nil: .tokenless
        case .outside: .changed
        case .leftOut(let omission): omission
        }
    }

    // MARK: Counts

    private mutating func leaveOut(_ push: CampaignPushRecord, _ omission: CampaignOmission) {
        result = result ?? Result()
        result?.leaveOut(isCanary: push.isCanary, omission)
    }

    private func writeDown(_ campaign: CampaignKey) throws(StoreError) {
        guard let result, let sending = sendings[campaign],
            var progress = try transaction.record(
                CampaignProgressRecord.self, campaign.columns, lock: .wait)
        else { return }
        let claimed = UInt64(result.claimed)
        progress.counts.waiting -= min(progress.counts.waiting, claimed)
        progress.counts.flying += claimed
        for omission in CampaignOmission.allCases {
            progress.counts.leaveOut(result.leftOut[omission] ?? 0, omission)
        }
        progress.counts.canary -= min(progress.counts.canary, result.canaryLeftOut)
        progress.take(result.claimed, sending.campaign.plan.rate, now: now)
        progress.due = now
        progress.settle(sending.campaign.plan, now: now)
        try transaction.put(progress)
    }
}
