import Model
import Wake

extension WakeStep {
    /// Claims of one push that may have reached APNs; then it is given up.
    private static let attemptsMax: UInt64 = 8

    /// The machine has fenced it: the answer is to the newest claim of the device.
    mutating func settle(
        _ campaign: CampaignID, _ settlement: CampaignSettlement
    ) throws(StoreError) {
        let key = device.wakeKey + [.identifier(campaign)]
        let found: CampaignPushRecord?
        do throws(StoreError) {
            found = try transaction.record(CampaignPushRecord.self, key)
        } catch {
            // The campaign gives it up; the device's own pushes do not wait for that.
            guard case .corrupt(let detail) = error else { throw error }
            return effects.passedOver(device.app, device.user, "campaign: \(detail)")
        }
        guard var push = found, push.phase == .sending else { return }
        var event = CampaignEvent(
            app: device.app, campaign: campaign, kind: .accepted, isCanary: push.isCanary)
        if case .answered(let status, let reason, let timestamp, _) = reply, status != 200 {
            push.status = status
            push.reason = String(reason.prefix(64))
            let isRejection =
                switch PushAnswer(
                    status: status, reason: reason, timestamp: timestamp)
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
            // Nor is a lease that ended a try of the push: no reply is told of it.
            if reply == .notSent || reply == nil { push.attempts -= min(1, push.attempts) }
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
