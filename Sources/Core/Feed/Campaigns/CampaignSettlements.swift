import Model
import Wake

// What the answers to a campaign's pushes come to.

extension WakeStep {
    /// Claims of one push that may have reached APNs; then it is given up.
    private static let attemptsMax: UInt64 = 8

    /// The machine has fenced it: the answer is to the newest claim of the device.
    mutating func settle(
        _ campaign: CampaignID, _ settlement: CampaignSettlement
    ) throws(StoreError) {
        let key = device.wakeKey + [.identifier(campaign)]
        guard var push = try transaction.record(CampaignPushRecord.self, key),
            push.phase == .sending
        else { return }
        var event = CampaignEvent(
            app: device.app, campaign: campaign, kind: .accepted, isCanary: push.isCanary)
        if case .answered(let status, let reason, let timestamp, _) = reply, status != 200 {
            push.status = status
            push.reason = String(reason.prefix(64))
            let isRejection =
                switch PushAnswer(
                    status: status, reason: reason, timestamp: timestamp, failures: 0)
                {
                case .accepted, .retryLater: settlement == .refused
                case .deadToken, .pauseCredential, .pauseTopic, .ourBug: true
                }
            if isRejection {
                event.rejection = CampaignEvent.Rejection(status: status, reason: push.reason)
            }
        }
        switch settlement {
        case .sent:
            (push.status, push.reason) = (0, "")
            // Only a push of the probe lane had an id of ours.
            push.push = answeredID ?? row.flightWake
            push.settle(.sent, now: now)
        case .queuedAgain(let due):
            if reply == .notSent { push.attempts -= min(1, push.attempts) }
            if push.attempts >= Self.attemptsMax {
                event.kind = .refused
                push.settle(.refused, now: now)
            } else {
                event.kind = .again
                push.phase = .queued
                push.due = due
                push.sendingSince = nil
            }
        case .refused:
            event.kind = .refused
            push.settle(.refused, now: now)
        }
        try transaction.put(push)
        effects.campaigns.append(event)
    }
}

extension WakeRules {
    /// Counts what came of pushes of campaigns, and stops a campaign that is rejected. The last
    /// thing of a step: rows of campaigns are waited for after all others.
    static func writeDown(
        _ effects: inout WakeEffects, in transaction: any StoreTransaction, now: Timestamp
    ) throws(StoreError) {
        var keys: [CampaignKey] = []
        for event in effects.campaigns where !keys.contains(event.key) { keys.append(event.key) }
        keys.sort { SortKey($0.columns) < SortKey($1.columns) }
        for key in keys {
            guard
                var progress = try transaction.record(
                    CampaignProgressRecord.self, key.columns, lock: .wait),
                let campaign = try transaction.record(CampaignRecord.self, key.columns)
            else { continue }
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
            progress.settle(now: now)
            try transaction.put(progress)
        }
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
