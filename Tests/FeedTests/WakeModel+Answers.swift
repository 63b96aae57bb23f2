import Feed
import MemoryStore
import Model
import Wake
import Wire

// What an answer of APNs made of the rows, undone.

extension WakeModel {
    func forgetAnswer(_ finish: FinishPush, _ before: Rows) throws {
        let key = finish.key
        let devices = try world.all(DeviceRecord.self)
        guard let device = devices.first(where: { $0.device == key.device }),
            let old = before.devices.first(where: { $0.device == key.device })
        else { return }
        let wakes = try world.all(WakeRecord.self)
        let row = wakes.first { $0.device == key.device }
        let oldRow = before.wakes.first { $0.device == key.device }
        switch sabotage {
        case .refundIsForgotten where old.lastSilentAt.count > device.lastSilentAt.count:
            try change(device) { $0.lastSilentAt = old.lastSilentAt }
        case .deadTokenIsKept where device.pushToken == nil && old.pushToken != nil:
            try put([old])
        case .presentedTokenIsDropped where finish.reply.isBurial && device.pushToken != nil:
            try change(device) {
                $0.pushToken = nil
                $0.tokenGeneration += 1
            }
        case .oldTokensAlertCounts
        where oldRow?.flight == .alert && oldRow?.flightGeneration != device.tokenGeneration
            && finish.reply == Pushes.accepted:
            try change(device) { $0.wasAlerted = true }
        case .alertIsForgotten:
            try delete(try world.all(AlertRecord.self).filter { $0.phase == .sent })
        case .campaignIsForgotten: try forgetCampaign()
        case .burstIsNotRefunded:
            guard var row, let oldRow, row.alertBurst < oldRow.alertBurst else { return }
            row.alertBurst = oldRow.alertBurst
            try put([row])
        case .restIsForgotten where finish.reply.asksForRest:
            guard var row else { return }
            row.notBefore = Timestamp(milliseconds: 0)
            row.wakeNotBefore = row.notBefore
            try put([row])
        case .allRestForOne where finish.reply.asksForRest:
            for var other in wakes where other.device != key.device {
                other.notBefore = row?.notBefore ?? other.notBefore
                try put([other])
            }
        default: break
        }
    }

    private func change(
        _ device: DeviceRecord, _ body: (inout DeviceRecord) -> Void
    ) throws {
        var device = device
        body(&device)
        try put([device])
    }

    private func forgetCampaign() throws {
        for var push in try world.all(CampaignPushRecord.self) where push.phase == .sent {
            push.phase = .queued
            push.due = now
            push.settledAt = nil
            try put([push])
        }
    }
}

extension PushReply {
    fileprivate var isBurial: Bool {
        if case .answered(410, _, _, _) = self { true } else { false }
    }

    fileprivate var asksForRest: Bool {
        if case .answered(429, _, _, _) = self { true } else { false }
    }
}
