import Model
import Wake

// While an app is suspended its campaigns rest: none of their pushes may leave, so nothing of them
// is read or written but at a look once in a while. Resuming the app lets them go on at once.

extension StoreSnapshot {
    /// When a campaign whose app is suspended is looked at again. Resuming the app ends the rest; a
    /// node of an older version that resumes it does not, so it is not longer.
    private static var restDelay: Milliseconds { 15 * 60_000 }

    /// Until when the campaigns of an app rest; `nil`: the app is not suspended.
    func campaignRest(of app: AppID, now: Timestamp) throws(StoreError) -> Timestamp? {
        guard let app = try record(AppRecord.self, [.app(app)]), app.isSuspended else { return nil }
        return now + Self.restDelay
    }
}

extension Work {
    /// The app is suspended no more: what rested goes on. One that cannot be read is told when its
    /// next look comes.
    func resumeCampaigns(of app: AppID) throws(RuleFailure) {
        let table = CampaignProgressRecord.table
        let found = try rows(
            table, Scan(prefix: [.app(app)], limit: limits.listRows, lock: .wait))
        for row in found {
            guard var progress = try? CampaignProgressRecord(row: row), progress.hold == .none,
                !progress.isOver
            else { continue }
            let before = progress
            var plan: CampaignPlan?
            do throws(RuleFailure) {
                plan = try record(CampaignRecord.self, progress.key.columns)?.plan
            } catch {
                guard case .store(.corrupt) = error else { throw error }
            }
            guard let plan else { continue }
            progress.due = now
            progress.settle(plan, now: now)
            if progress != before { try put(progress) }
        }
    }
}
