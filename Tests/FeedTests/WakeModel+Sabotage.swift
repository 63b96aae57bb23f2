import Feed
import MemoryStore
import Model
import Wake
import Wire

/// One rule taken away, by undoing what it wrote: the checks must notice.
enum Sabotage: String, CaseIterable {
    // What is owed.

    /// A session that expires leaves no wake behind.
    case sweepWritesNoWake
    /// A publish writes no wake.
    case publishWritesNoWake
    /// A deletion is not carried out.
    case deletionIsForgotten
    /// What is owed of a message stays where the message stood before an edit.
    case editIsForgotten
    /// After part of a sync the icon is taken to show what it was last sent.
    case iconIsTakenForKnown
    /// A read elsewhere owes no badge.
    case badgeIsForgotten
    /// What is unread is counted wrongly.
    case unreadIsMiscounted
    /// The row of an alert with a time of its own is lost.
    case timedAlertIsLost
    /// An alert with a time of its own leaves before it.
    case timedAlertIsEarly

    // When it may leave.

    /// Spent tokens are forgotten.
    case budgetIsForgotten
    /// A push that never left costs a token.
    case refundIsForgotten
    /// An alert that never left is part of the burst.
    case burstIsNotRefunded
    /// A claim does not look at sessions.
    case claimSeesNoSession
    /// A claim does not look at suspended users.
    case claimSeesNoSuspension
    /// Alerts leave before the wake.
    case alertsOvertakeTheWake
    /// Background refresh is taken to be on.
    case refreshIsTakenForOn
    /// APNs asks to leave a device alone, and it is not.
    case restIsForgotten
    /// ... and so are the other devices.
    case allRestForOne
    /// A new token rests for what was asked for the old.
    case newTokenRests

    // What came of it.

    /// A sent alert's row is not kept.
    case alertIsForgotten
    /// A push in flight does not hold its device.
    case flightIsForgotten
    /// A campaign's push is not written down.
    case campaignIsForgotten
    /// HELLO is not remembered by the wake that waits for it.
    case helloIsForgotten
    /// A no-show for nothing to see demotes.
    case usefulNoShowDemotes
    /// A token that APNs calls dead is kept.
    case deadTokenIsKept
    /// A token that is called dead is dropped, though the device has come with it since.
    case presentedTokenIsDropped
    /// The token of the last login is not kept.
    case oldTokenIsKept
    /// What was sent to the old token counts as being on the new one's screen.
    case oldTokensAlertCounts

    // Time.

    /// The gap in `alive_at` is not seen.
    case gapIsNotSeen
    /// A clock that was set back is not seen.
    case setBackIsNotSeen

    /// What it takes is rare: it does not happen in a life before this one.
    var firstSeed: Int {
        switch self {
        case .badgeIsForgotten, .budgetIsForgotten: 3
        case .publishWritesNoWake, .usefulNoShowDemotes: 4
        case .helloIsForgotten, .presentedTokenIsDropped: 6
        case .burstIsNotRefunded: 7
        case .deletionIsForgotten: 8
        case .gapIsNotSeen: 15
        case .oldTokensAlertCounts: 23
        // In busy lives.
        case .editIsForgotten: 1_000
        // In slow ones.
        case .iconIsTakenForKnown: 2_000
        default: 1
        }
    }
}

extension Sabotage {
    /// The rows before and after need not be looked at for others.
    fileprivate func concerns(_ request: StoreRequest) -> Bool {
        // A badge that one request forgets the next one owes again.
        if self == .badgeIsForgotten { return true }
        return switch request {
        case .sweepWakes: self == .sweepWritesNoWake
        case .change(_, .publish, _):
            [.publishWritesNoWake, .unreadIsMiscounted, .timedAlertIsLost, .timedAlertIsEarly]
                .contains(self)
        case .change(_, .deleteMessage, _): self == .deletionIsForgotten
        case .change(_, .editMessage, _), .mutate: self == .editIsForgotten
        case .acknowledge, .openSession:
            [
                .badgeIsForgotten, .helloIsForgotten, .iconIsTakenForKnown, .newTokenRests,
                .oldTokenIsKept,
            ].contains(self)
        case .claimPushes:
            [
                .claimSeesNoSession, .claimSeesNoSuspension, .refreshIsTakenForOn,
                .alertsOvertakeTheWake, .usefulNoShowDemotes, .budgetIsForgotten,
                .flightIsForgotten,
            ].contains(self)
        case .finishPush: true
        case .start: self == .gapIsNotSeen
        case .keepAlive: self == .setBackIsNotSeen
        default: false
        }
    }
}

extension WakeModel {
    func ask(_ request: StoreRequest) throws -> StoreAnswer {
        guard let sabotage, sabotage.concerns(request) else { return try world.ask(request) }
        let before = try Rows(world)
        let restore = try prepare(request, before)
        let answer = try world.ask(request)
        try restore()
        try undo(after: request, before)
        return answer
    }

    /// What stood there before the request.
    struct Rows {
        let wakes: [WakeRecord]
        let devices: [DeviceRecord]
        let alerts: [AlertRecord]

        init(_ world: World) throws {
            wakes = try world.all(WakeRecord.self)
            devices = try world.all(DeviceRecord.self)
            alerts = try world.all(AlertRecord.self)
        }

        func wake(like row: WakeRecord) -> WakeRecord? {
            wakes.first { $0.device == row.device }
        }
    }

    func put<R: Record>(_ rows: [R]) throws {
        try world.tamper { transaction throws(StoreError) in
            for row in rows { try transaction.put(row) }
        }
    }

    func delete<R: Record>(_ rows: [R]) throws {
        try world.tamper { transaction throws(StoreError) in
            for row in rows {
                try transaction.delete(R.self, Array(row.row.prefix(R.table.keyCount)))
            }
        }
    }

    /// Hides rows from a request; gives back what shows them again.
    private func prepare(_ request: StoreRequest, _ before: Rows) throws -> () throws -> Void {
        switch (sabotage, request) {
        case (.gapIsNotSeen, .start), (.setBackIsNotSeen, .keepAlive):
            let name = "alive_at"
            let alive = try world.record(MetaRecord.self, [.text(name)])?.number ?? 0
            if sabotage == .gapIsNotSeen || alive > now.milliseconds {
                try put([MetaRecord(name: name, number: now.milliseconds)])
            }
        case (.claimSeesNoSession, .claimPushes):
            let hidden = try world.all(SessionRecord.self)
            try delete(hidden)
            return { try self.put(hidden) }
        case (.claimSeesNoSuspension, .claimPushes):
            let hidden = try world.all(UserRecord.self).filter(\.isSuspended)
            try put(
                hidden.map {
                    var user = $0
                    user.isSuspended = false
                    return user
                })
            return { try self.put(hidden) }
        case (.refreshIsTakenForOn, .claimPushes):
            let hidden = before.devices.filter { $0.backgroundRefresh == .off }
            try put(hidden.map { Self.refreshing($0, .on) })
            return {
                let now = try self.world.all(DeviceRecord.self)
                let changed = now.filter { row in hidden.contains { $0.device == row.device } }
                try self.put(changed.map { Self.refreshing($0, .off) })
            }
        case (.alertsOvertakeTheWake, .claimPushes): return try hideWakes(before)
        default: break
        }
        return {}
    }

    private static func refreshing(_ device: DeviceRecord, _ kind: SettingKind) -> DeviceRecord {
        var device = device
        device.backgroundRefresh = kind
        return device
    }

    private func hideWakes(_ before: Rows) throws -> () throws -> Void {
        let hidden = before.wakes.filter {
            $0.phase == .due && $0.alertsQueued > 0 && $0.flight == nil
                && max($0.wakeDue, $0.wakeNotBefore, $0.notBefore) <= now
        }
        try put(
            hidden.map {
                var row = $0
                row.phase = .none
                row.due = now
                row.alertDue = min(row.alertDue, now)
                return row
            })
        return {
            for row in try self.world.all(WakeRecord.self) where row.phase == .none {
                guard let old = hidden.first(where: { $0.device == row.device }) else { continue }
                var again = row
                again.phase = .due
                again.wakeDue = old.wakeDue
                again.wakeNotBefore = old.wakeNotBefore
                again.target = old.target
                again.visibleTarget = old.visibleTarget
                if again.flight == nil { again.due = old.due }
                try self.put([again])
            }
        }
    }

    private func undo(after request: StoreRequest, _ before: Rows) throws {
        if sabotage == .badgeIsForgotten { return try forgetStanding(request, before) }
        switch request {
        case .sweepWakes, .change(_, .publish, _): try forgetOwed(request, before)
        case .change(_, .deleteMessage(let id?), _) where sabotage == .deletionIsForgotten:
            try undelete(id, before)
        case .change(_, .editMessage, _), .mutate: try stayBelow(before)
        case .acknowledge, .openSession: try forgetStanding(request, before)
        case .claimPushes: try forgetClaim()
        // An alert without an answer leaves the icon unknown, too.
        case .finishPush where sabotage == .iconIsTakenForKnown:
            try forgetStanding(request, before)
        case .finishPush(let finish): try forgetAnswer(finish, before)
        default: break
        }
    }

    private func forgetOwed(_ request: StoreRequest, _ before: Rows) throws {
        switch (sabotage, request) {
        case (.sweepWritesNoWake, .sweepWakes), (.publishWritesNoWake, .change(_, .publish, _)):
            for row in try world.all(WakeRecord.self) where row.phase == .due {
                let old = before.wake(like: row)
                guard old.map({ $0.phase == .none }) ?? true else { continue }
                if let old { try put([old]) } else { try delete([row]) }
            }
        case (.unreadIsMiscounted, .change(_, .publish, _)):
            for var row in try world.unread() where row.unread == 3 {
                row.unread = 4
                try put([row])
            }
        case (.timedAlertIsLost, .change(_, .publish, _)):
            try delete(try world.all(AlertRecord.self).filter { $0.phase == .delayed })
        case (.timedAlertIsEarly, .change(_, .publish, _)):
            for var alert in try world.all(AlertRecord.self) where alert.phase == .delayed {
                alert.moment = alert.moment.map { $0 - min(60_000, $0.milliseconds) }
                try put([alert])
            }
        default: break
        }
    }

    private func undelete(_ id: MessageID, _ before: Rows) throws {
        guard
            var message = try world.record(
                MessageRecord.self, [.app(World.app), .identifier(id)])
        else { return }
        message.deletedAt = nil
        message.pushBody = "gone"
        try put([message])
        try put(before.alerts.filter { $0.message == id })
        try put(before.wakes)
    }

    /// Rows of alerts and wakes that an edit moved up the feed are put back.
    private func stayBelow(_ before: Rows) throws {
        let known = Set(before.alerts.map { wakeAlert($0) })
        let now = try world.all(AlertRecord.self)
        try delete(now.filter { $0.phase == .covered && !known.contains(wakeAlert($0)) })
        for var alert in now {
            guard let old = before.alerts.first(where: { wakeAlert($0) == wakeAlert(alert) })
            else { continue }
            alert.seq = old.seq
            try put([alert])
        }
        for var row in try world.all(WakeRecord.self) {
            guard let old = before.wake(like: row) else { continue }
            row.target = old.target
            row.visibleTarget = old.visibleTarget
            try put([row])
        }
    }

    private func wakeAlert(_ alert: AlertRecord) -> [ColumnValue] {
        [.identifier(alert.device), .identifier(alert.message)]
    }

    private func forgetStanding(_ request: StoreRequest, _ before: Rows) throws {
        let after = try world.all(WakeRecord.self)
        switch (sabotage, request) {
        case (.iconIsTakenForKnown, _):
            for var row in after where row.badgeShown == WakePolicy.badgeUnknown {
                guard let old = before.wake(like: row) else { continue }
                row.badgeShown = old.badgeShown
                try put([row])
            }
        case (.badgeIsForgotten, _):
            for var row in after where row.badgeDue != nil {
                count("badge forgotten")
                row.badgeDue = nil
                try put([row])
            }
        case (.helloIsForgotten, _):
            for var row in after where row.phase == .waiting && row.connectedAt != nil {
                let grace = row.waitingSince.map { $0 + policy.grace }
                row.connectedAt = nil
                row.graceUntil = grace
                row.deadline = grace
                try put([row])
            }
        case (.newTokenRests, .openSession):
            for var row in after {
                guard let old = before.wake(like: row), old.notBefore > row.notBefore else {
                    continue
                }
                row.notBefore = old.notBefore
                row.due = row.due.map { max($0, old.notBefore) }
                try put([row])
            }
        case (.oldTokenIsKept, .openSession(let opening)):
            guard let old = before.devices.first(where: { $0.device == opening.device }),
                let token = old.pushToken
            else { return }
            for var device in try world.all(DeviceRecord.self)
            where device.device == opening.device {
                device.pushToken = token
                try put([device])
            }
        default: break
        }
    }

    private func forgetClaim() throws {
        switch sabotage {
        case .usefulNoShowDemotes:
            for var row in try world.all(WakeRecord.self) where row.isUsefulOnly {
                row.isUsefulOnly = false
                try put([row])
            }
        case .budgetIsForgotten:
            for var device in try world.all(DeviceRecord.self) {
                device.lastSilentAt = []
                try put([device])
            }
        case .flightIsForgotten:
            for var row in try world.all(WakeRecord.self) where row.flight != nil {
                row.flight = nil
                row.lease = nil
                row.owner = nil
                if row.phase == .sending { row.phase = .due }
                row.due = now
                row.deadline = nil
                try put([row])
            }
        default: break
        }
    }
}
