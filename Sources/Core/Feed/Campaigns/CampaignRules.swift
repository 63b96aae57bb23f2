public import Model
import Wake
public import Wire

// What an app's backend does with its campaigns, and with tags.
extension Work {
    func carryOut(campaigns request: CampaignRequest) throws(RuleFailure) -> StoreAnswer {
        switch request {
        case .create(let new, let idempotency):
            return try once(new.app, idempotency) { () throws(RuleFailure) in
                .campaign(try self.create(new))
            }
        case .control(let app, let id, let control, let idempotency):
            return try once(app, idempotency) { () throws(RuleFailure) in
                .campaignState(id, try self.control(app, id, control))
            }
        case .tag(let change, let idempotency):
            return try once(change.app, idempotency) { () throws(RuleFailure) in
                try self.tag(change)
                return .done
            }
        case .advance(let devices): return try advanceCampaigns(devices: devices)
        }
    }

    private func create(_ new: NewCampaign) throws(RuleFailure) -> CampaignRecord {
        try check(new)
        let key: [ColumnValue] = [.app(new.app), .identifier(new.campaign)]
        _ = try record(CampaignProgressRecord.self, key, lock: .wait)
        try require(record(CampaignRecord.self, key) == nil, .idInUse, "the campaign exists")
        try checkKind(of: new.options, in: new.app)
        let known = try records(
            CampaignProgressRecord.self, Scan(prefix: [.app(new.app)], limit: limits.listRows))
        try require(
            known.count < limits.listRows, .limit,
            "an app has at most \(limits.listRows) campaigns; those that are over go after "
                + "90 days")
        try require(
            known.count(where: { !$0.isOver }) < limits.campaigns, .limit,
            "an app has at most \(limits.campaigns) campaigns that are not over; "
                + "cancel one, or wait for its end")
        let made = CampaignRecord(
            app: new.app, campaign: new.campaign, name: new.name, pushTitle: new.title,
            pushBody: new.body, pushOptions: new.options.encoded, filter: new.filter.encoded,
            createdAt: now, plan: new.plan)
        try put(made)
        try put(
            CampaignProgressRecord(
                app: new.app, campaign: new.campaign,
                due: max(now, new.plan.moment(onClock: CampaignTurn.clockMax)), now: now))
        effects.background.insert(.campaigns)
        return made
    }

    /// The same for a dry run.
    private func check(_ new: NewCampaign) throws(RuleFailure) {
        if let (code, detail) = new.refusal(now: now) { throw .refused(code, detail) }
    }

    private func progress(
        _ app: AppID, _ campaign: CampaignID
    ) throws(RuleFailure) -> CampaignProgressRecord {
        let key: [ColumnValue] = [.app(app), .identifier(campaign)]
        guard let progress = try record(CampaignProgressRecord.self, key, lock: .wait) else {
            throw .refused(.notFound, "no such campaign")
        }
        return progress
    }

    private func control(
        _ app: AppID, _ campaign: CampaignID, _ control: CampaignControl
    ) throws(RuleFailure) -> CampaignState {
        var progress = try progress(app, campaign)
        guard let made = try record(CampaignRecord.self, progress.key.columns) else {
            throw .refused(.notFound, "no such campaign")
        }
        let before = progress
        switch (control, progress.state) {
        case (.cancel, .cancelled), (.pause, .paused): break
        case (_, .finished), (_, .cancelled):
            throw .refused(
                .conflict, "the campaign is \(progress.state.rawValue): make another one")
        case (.pause, _): progress.hold(.paused, now: now)
        case (.cancel, _): progress.hold(.cancelled, now: now)
        case (.resume, .paused), (.resume, .stopped):
            let isLookedAt = progress.hold == .stopped && progress.stage == .review
            progress.hold(.none, now: now)
            if isLookedAt { progress.begin(.main, now: now) }
            progress.trend = RejectionTrend()
        case (.resume, .review): progress.begin(.main, now: now)
        case (.resume, _): break
        }
        let rest = try stored(try transaction.campaignRest(of: app, now: now))
        progress.settle(made.plan, now: now, rest: rest)
        if progress != before { try put(progress) }
        effects.background.formUnion([.campaigns, .pushes])
        return progress.state
    }

    private func tag(_ change: ChangeTags) throws(RuleFailure) {
        for tag in change.add + change.remove where !CampaignFilter.isTag(tag) {
            throw .refused(
                .malformed,
                "a tag has 1 to \(CampaignFilter.tagBytesMax) ASCII letters, digits, . _ : -")
        }
        let key: [ColumnValue] = [.app(change.app), .user(change.user)]
        // Locked: the count below is of all of them.
        guard let user = try record(UserRecord.self, key, lock: .wait),
            user.deletingSince == nil
        else { throw .refused(.notFound, "no such user") }
        if let device = change.device {
            let known = try record(DeviceRecord.self, key + [.identifier(device)])
            guard let known, known.expiresAt == nil else {
                throw .refused(.notFound, "no such device of this user")
            }
        }
        let owner = change.device ?? .zero
        for tag in change.remove {
            let row = key + [.identifier(owner), .text(tag)]
            if try record(TagRecord.self, row) != nil { try delete(TagRecord.self, row) }
        }
        for tag in change.add {
            let row = key + [.identifier(owner), .text(tag)]
            if try record(TagRecord.self, row) != nil { continue }
            try insert(
                TagRecord(
                    app: change.app, user: change.user, device: owner, tag: tag, taggedAt: now))
        }
        let all = try records(
            TagRecord.self, Scan(prefix: key + [.identifier(owner)], limit: limits.tags + 1))
        try require(all.count <= limits.tags, .limit, "more than \(limits.tags) tags; remove some")
    }

    /// A restored store does not know what was sent after the backup: what was not over waits
    /// until somebody says that it may go on.
    func pauseCampaigns() throws(RuleFailure) {
        var last: CampaignProgressRecord?
        while true {
            let found = try records(
                CampaignProgressRecord.self,
                Scan(
                    after: last.map { [.app($0.app), .identifier($0.campaign)] },
                    limit: limits.listRows, lock: .wait))
            for var progress in found where !progress.isOver && progress.hold == .none {
                progress.hold(
                    .paused,
                    "the store was restored from a backup: pushes that left after it "
                        + "are not known, and resuming sends them again", now: now)
                if let made = try record(CampaignRecord.self, progress.key.columns) {
                    progress.settle(made.plan, now: now)
                }
                try put(progress)
            }
            guard found.count == limits.listRows else { return }
            last = found.last
        }
    }
}

extension NewCampaign {
    /// Why it cannot be made or counted; `nil`: it can.
    public func refusal(now: Timestamp) -> (Code, String)? {
        if let problem = filter.problem { return (.malformed, problem) }
        if let problem = plan.problem(now: now) {
            // The plan has one start, of either kind.
            let isOfStart = plan.isLocal && problem.hasPrefix("start:")
            return (.malformed, isOfStart ? "local_" + problem : problem)
        }
        guard !title.isEmpty || !body.isEmpty || options.hasKeyText else {
            return (.missingField, "push: neither a title nor a body")
        }
        guard options.timing == AlertTiming() else {
            return (
                .malformed,
                "push: the times of a campaign stand beside it: start or local_start, and "
                    + "expiration_seconds"
            )
        }
        guard title.utf8.count + body.utf8.count <= PushOptions.textBytesMax else {
            return (.tooLarge, "push: more than \(PushOptions.textBytesMax) bytes of text")
        }
        guard let (code, reason) = options.refusal(title: title, body: body) else { return nil }
        return (code, reason.hasPrefix("push") ? reason : "push: \(reason)")
    }
}

extension CampaignProgressRecord {
    mutating func hold(_ hold: CampaignHold, _ reason: String = "", now: Timestamp) {
        self.hold = hold
        self.reason = reason
        since = now
        // Not at the end for which a held one waits.
        due = now
    }

    mutating func begin(_ stage: CampaignStage, now: Timestamp) {
        if stage == .main { counts.lookAgain() }
        self.stage = stage
        reason = ""
        since = now
        startedAt = startedAt ?? now
        reviewUntil = nil
        turn = nil
        isOffsetDone = false
        isPassDone = false
        cursorUser = UserID("")
        cursorDevice = .zero
        due = now
    }

    /// Derives `due` and `sendingSince` after what counts for them has changed.
    ///
    /// - Parameter rest: until when it rests while its app is suspended; `nil`: the app is not.
    mutating func settle(_ plan: CampaignPlan, now: Timestamp, rest: Timestamp? = nil) {
        let isSending = hold == .none && counts.waiting > 0 && rest == nil
        sendingSince = isSending ? sendingSince ?? now : nil
        // It ends then, whoever holds it.
        let end = plan.startsAt + CampaignPlan.lifetime
        switch (hold, stage) {
        case (.paused, _), (.stopped, _): due = end
        case (.cancelled, _): due = finishedAt == nil ? due ?? now : nil
        case (.none, .finished): due = nil
        case (.none, .review): due = min(reviewUntil.map { max($0, rest ?? $0) } ?? end, end)
        case (.none, _): due = rest.map { min($0, end) } ?? due ?? now
        }
    }

    /// Parts of a second between which a campaign's rate is shared out: what is under way when a
    /// server is killed is sent again, and a second's worth at its start would be.
    private static let slicesPerSecond: UInt64 = 10
    static let slice: Milliseconds = 1_000 / slicesPerSecond

    /// How many may have been claimed of a second by the end of a slice of it.
    private static func share(_ rate: UInt64, throughSlice slice: UInt64) -> UInt64 {
        rate * (slice + 1) / slicesPerSecond
    }

    private static func slice(_ now: Timestamp) -> UInt64 {
        now.milliseconds % 1_000 / Self.slice
    }

    /// What was claimed of this second; slices that were missed count as taken, but for one.
    private func taken(_ rate: UInt64, now: Timestamp) -> UInt64 {
        let second = now.milliseconds / 1_000
        let slice = Self.slice(now)
        let missed = slice < 2 ? 0 : Self.share(rate, throughSlice: slice - 2)
        return max(meterSecond == second ? meterCount : 0, missed)
    }

    /// How many may be claimed now.
    func allowance(_ rate: UInt64, now: Timestamp) -> Int {
        let share = Self.share(rate, throughSlice: Self.slice(now))
        return Int(clamping: share - min(share, taken(rate, now: now)))
    }

    mutating func take(_ count: Int, _ rate: UInt64, now: Timestamp) {
        meterCount = taken(rate, now: now) + UInt64(max(0, count))
        meterSecond = now.milliseconds / 1_000
    }
}
