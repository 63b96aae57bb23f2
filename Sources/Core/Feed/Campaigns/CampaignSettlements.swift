import Model
import Wake

// What the answers to a campaign's pushes come to.

extension WakeRules {
    /// Counts what came of pushes of campaigns, and stops a campaign that is rejected. The last
    /// thing of a step: rows of campaigns are waited for after all others.
    func writeDown(_ effects: inout WakeEffects) throws(StoreError) {
        var keys: [CampaignKey] = []
        for event in effects.campaigns where !keys.contains(event.key) { keys.append(event.key) }
        keys.sort { SortKey($0.columns) < SortKey($1.columns) }
        for key in keys {
            do throws(StoreError) {
                try writeDown(key, &effects)
            } catch {
                // The answer is taken down all the same. What it was does not come into the counts,
                // which are put right when the campaign comes to its end.
                guard case .corrupt(let detail) = error else { throw error }
                effects.passedOver(key.app, UserID(""), "campaign: \(detail)")
            }
        }
    }

    private func writeDown(
        _ key: CampaignKey, _ effects: inout WakeEffects
    ) throws(StoreError) {
        guard
            var progress = try transaction.record(
                CampaignProgressRecord.self, key.columns, lock: .wait),
            let campaign = try transaction.record(CampaignRecord.self, key.columns)
        else { return }
        for event in effects.campaigns where event.key == key { progress.count(event) }
        let isGoing = progress.stage == .canary || progress.stage == .main
        if progress.hold == .none, isGoing,
            progress.trend.isJump(percent: campaign.plan.stopPercent)
        {
            progress.hold(
                .stopped,
                "\(progress.trend.rejections) of its last "
                    + "\(progress.trend.answers) answers rejected the push, the newest with "
                    + "\(progress.lastStatus) \(progress.lastReason); mend the cause, then "
                    + "resume or cancel it", now: now)
            effects.campaignsStopped += 1
        }
        let isLast = progress.counts.flying == 0 && progress.isPassDone
        if isLast || progress.hold == .cancelled { progress.due = now }
        progress.settle(
            campaign.plan, now: now,
            rest: try transaction.campaignRest(of: key.app, now: now))
        try transaction.put(progress)
    }
}

extension CampaignEvent {
    fileprivate var key: CampaignKey { CampaignKey(app: app, campaign: campaign) }
}

extension CampaignProgressRecord {
    fileprivate mutating func count(_ event: CampaignEvent) {
        counts.flying -= min(1, counts.flying)
        switch event.kind {
        case .accepted:
            counts.accepted += 1
            if event.isCanary { counts.canaryAccepted += 1 }
        case .refused:
            counts.refused += 1
            if event.isCanary { counts.canaryRefused += 1 }
        case .again: counts.waiting += 1
        }
        if let rejection = event.rejection {
            trend.add(isRejected: true)
            lastStatus = rejection.status
            lastReason = rejection.reason
        } else if event.kind == .accepted {
            trend.add(isRejected: false)
        }
    }
}
