import Model
import Wake

// The devices that a campaign comes by, in order, those too that cannot be read: these get nothing,
// and keep no other from getting it.

/// A device that is next.
struct NextDevice {
    let user: UserID
    let device: DeviceID
    let found: Found

    enum Found {
        case readable(DeviceRecord)
        /// What is wrong with its row.
        case unreadable(String)
    }

    init(row: [ColumnValue]) {
        user = UserID(row[1].words)
        do throws(StoreError) {
            let record = try DeviceRecord(row: row)
            device = record.device
            found = .readable(record)
        } catch {
            // One whose id is none either is passed with what else its user has.
            var id: DeviceID?
            if case .blob(let bytes) = row[2] { id = DeviceID(bytes) }
            device = id ?? DeviceID(high: .max, low: .max)
            found = .unreadable(error.words)
        }
    }

    var record: DeviceRecord? {
        if case .readable(let record) = found { record } else { nil }
    }
}

/// The row of one push of a campaign, be it readable or not.
struct CampaignPushRow {
    let row: [ColumnValue]
    /// `nil`: it cannot be read.
    let record: CampaignPushRecord?
    /// What is wrong with it.
    let problem: String?

    init(_ row: [ColumnValue]) {
        self.row = row
        do throws(StoreError) {
            record = try CampaignPushRecord(row: row)
            problem = nil
        } catch {
            record = nil
            problem = error.words
        }
    }

    var app: AppID { AppID(row[0].words) }
    var user: UserID { UserID(row[1].words) }
    var key: [ColumnValue] { Array(row.prefix(CampaignPushRecord.table.keyCount)) }
    /// Its place among those of its campaign that wait.
    var place: [ColumnValue] {
        ["lane", "environment", "topic", "due", "user", "device"].map {
            CampaignPushRecord.table.value(of: $0, in: row)
        }
    }
    var isCanary: Bool {
        CampaignPushRecord.table.value(of: "is_canary", in: row) == .integer(1)
    }

    /// The row as it is when nothing more is to come of it.
    func settled(
        _ phase: CampaignPushPhase, _ reason: String = "", now: Timestamp
    ) -> [ColumnValue] {
        if var push = record {
            push.settle(phase, reason, now: now)
            return push.row
        }
        var settled = row
        for (column, value) in [
            ("phase", .unsigned(phase.rawValue)), ("due", .null), ("sending_since", .null),
            ("settled_at", .timestamp(now)), ("reason", .text(reason)),
        ] as [(String, ColumnValue)] {
            settled = CampaignPushRecord.table.row(settled, with: value, as: column)
        }
        return settled
    }
}

extension Work {
    /// No push is under way for so long.
    private static let flightMax: Milliseconds = 600_000
    /// Pushes under way that are looked at together.
    private static let flightsAtOnce = 64

    func devices(
        after progress: CampaignProgressRecord, limit: Int, _ plan: CampaignPlan
    ) throws(RuleFailure) -> [NextDevice] {
        let after: [ColumnValue]? =
            progress.cursorUser.name.isEmpty
            ? nil : [.user(progress.cursorUser), .identifier(progress.cursorDevice)]
        var prefix: [ColumnValue] = [.app(progress.app)]
        if plan.isLocal { prefix.append(.unsigned(progress.turn?.offset ?? 0)) }
        return try rows(
            DeviceRecord.table,
            Scan(
                index: plan.isLocal ? "device_by_offset" : nil, prefix: prefix, after: after,
                limit: limit)
        ).map { NextDevice(row: $0) }
    }

    /// The highest offset below `bound` that a device has told; `nil`: there is none.
    func offset(below bound: UInt64, _ app: AppID) throws(StoreError) -> UInt64? {
        let table = DeviceRecord.table
        guard bound > 1,
            let place = table.columns.firstIndex(where: { $0.name.isExactly("utc_offset") }),
            let row = try transaction.rows(
                table,
                Scan(
                    index: "device_by_offset", prefix: [.app(app)], after: [.unsigned(0)],
                    through: [.unsigned(bound - 1)], descending: true, limit: 1)
            ).first,
            case .integer(let offset) = row[place]
        else { return nil }
        return UInt64(max(0, offset))
    }

    /// Pushes of a campaign that count as under way, and whose answer nobody can take down: what is
    /// kept of them, or of the device, cannot be read.
    func lostFlights(
        of progress: CampaignProgressRecord
    ) throws(RuleFailure) -> [CampaignPushRow] {
        guard now.milliseconds > Self.flightMax else { return [] }
        let found = try rows(
            CampaignPushRecord.table,
            Scan(
                index: "campaign_push_sending",
                prefix: [.app(progress.app), .identifier(progress.campaign)],
                through: [.timestamp(now - Self.flightMax)], limit: Self.flightsAtOnce)
        ).map { CampaignPushRow($0) }
        var lost: [CampaignPushRow] = []
        for push in found where try !canBeAnswered(push) { lost.append(push) }
        return lost
    }

    private func canBeAnswered(_ found: CampaignPushRow) throws(RuleFailure) -> Bool {
        guard let push = found.record else { return false }
        let key: [ColumnValue] = [.app(push.app), .user(push.user), .identifier(push.device)]
        do throws(RuleFailure) {
            _ = try record(UserRecord.self, Array(key.prefix(2)))
            _ = try record(DeviceRecord.self, key)
            _ = try record(WakeRecord.self, key)
            return true
        } catch {
            guard case .store(.corrupt) = error else { throw error }
            return false
        }
    }

    /// They are not waited for: their devices are none of the audience any more.
    func giveUp(
        _ lost: [CampaignPushRow], of progress: inout CampaignProgressRecord
    ) throws(RuleFailure) {
        for push in lost {
            let settled = push.settled(.leftOut, CampaignOmission.changed.name, now: now)
            try stored(try transaction.put(CampaignPushRecord.table, settled))
            progress.counts.flying -= min(1, progress.counts.flying)
            progress.counts.waiting += 1
            progress.counts.leaveOut(1, .changed)
            if push.isCanary { progress.counts.canary -= min(1, progress.counts.canary) }
        }
    }
}
