import Model
import Wake

// Why a device was pushed to, or was not: derived from the rows that decided it (design: wake
// record). Kept for it are only refusals and, while its row stands, what an alert was made for.

/// A message or an announcement, as far as pushes look at it.
private struct Told {
    let message: MessageID
    let conversation: ConversationID
    let kind: EntryKind
    let position: UInt64
    let sender: String
    let sentAt: Timestamp
    let hasPushText: Bool
    let urgency: Urgency
    let isDeleted: Bool
    /// It has a time of its own.
    let isTimed: Bool
    let trace: TraceContext?

    init(_ record: MessageRecord) {
        message = record.message
        conversation = record.conversation
        kind = .message
        position = record.position
        sender = record.sender
        sentAt = record.sentAt
        hasPushText = record.hasPushText
        urgency = record.urgency
        isDeleted = record.deletedAt != nil
        isTimed = record.timing.moment != nil
        trace = record.trace
    }

    init(_ record: AnnouncementRecord) {
        message = record.announcement
        conversation = .none
        kind = .announcement
        position = 0
        sender = ""
        sentAt = record.sentAt
        hasPushText = record.hasPushText
        urgency = record.urgency
        isDeleted = record.deletedAt != nil
        isTimed = record.timing.moment != nil
        trace = PushOptions.trace(of: record.pushOptions)
    }
}

extension PageReader {
    /// `nil`: there is no such message or announcement.
    func explain(
        _ query: ExplainQuery, of app: AppID, _ limits: RuleLimits
    ) throws(StoreError) -> Explanation? {
        let key: [ColumnValue] = [.app(app), .identifier(query.message)]
        let told: Told
        if let message = try snapshot.record(MessageRecord.self, key) {
            told = Told(message)
        } else if let made = try snapshot.record(AnnouncementRecord.self, key) {
            told = Told(made)
        } else {
            return nil
        }
        var users: [UserID] = []
        if let user = query.user {
            users = [user]
        } else if told.kind == .message {
            users = try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    prefix: [.app(app), .identifier(told.conversation)],
                    limit: ExplainQuery.usersMax + 1)
            ).map(\.user)
        }
        var subjects: [ExplainSubject] = []
        for user in users.prefix(ExplainQuery.usersMax) {
            subjects += try explain(told, to: user, query.device, of: app)
        }
        return Explanation(
            message: query.message, conversation: told.kind == .message ? told.conversation : nil,
            sentAt: told.sentAt, urgency: told.urgency, subjects: subjects,
            isCut: users.count > ExplainQuery.usersMax, trace: told.trace)
    }

    private func explain(
        _ told: Told, to user: UserID, _ device: DeviceID?, of app: AppID
    ) throws(StoreError) -> [ExplainSubject] {
        var steps = try steps(told, user, app)
        let entry = try entry(of: told, user, app)
        let isDecided = steps.contains { $0.reason != .passive && $0.reason != .read }
        guard let entry, !isDecided || steps.contains(where: { $0.reason == .deleted }) else {
            return [ExplainSubject(user: user, steps: steps)]
        }
        let known = try snapshot.records(
            DeviceRecord.self, Scan(prefix: [.app(app), .user(user)], limit: 100)
        ).filter { $0.expiresAt == nil && (device == nil || $0.device == device) }
        if known.isEmpty { steps.append(ExplainStep(.noDevice)) }
        var subjects = steps.isEmpty ? [] : [ExplainSubject(user: user, steps: steps)]
        for device in known {
            subjects.append(
                ExplainSubject(
                    user: user, device: device.device,
                    steps: try explain(told, entry, on: device)))
        }
        return subjects
    }

    private func entry(
        of told: Told, _ user: UserID, _ app: AppID
    ) throws(StoreError) -> EntryRecord? {
        for kind in told.isDeleted ? [.tombstone, told.kind] : [told.kind] {
            let found = try snapshot.entry(
                of: kind, app, user, told.conversation, object: told.message.bytes,
                position: told.position)
            if let found { return found }
        }
        return nil
    }

    /// What holds for all devices of a user.
    private func steps(
        _ told: Told, _ user: UserID, _ app: AppID
    ) throws(StoreError) -> [ExplainStep] {
        if try snapshot.record(AppRecord.self, [.app(app)])?.isSuspended ?? false {
            return [ExplainStep(.appSuspended)]
        }
        if try snapshot.record(UserRecord.self, [.app(app), .user(user)])?.isSuspended ?? false {
            return [ExplainStep(.userSuspended)]
        }
        let refusal = try snapshot.record(
            RefusalRecord.self, [.app(app), .user(user), .identifier(told.message)])
        if let refusal {
            let reason: ExplainReason =
                switch refusal.reason {
                case .muted: .muted
                case .readAlready: .readAlready
                case .senderBlocked: .senderBlocked
                }
            return [ExplainStep(at: refusal.refusedAt, reason)]
        }
        guard let entry = try entry(of: told, user, app) else {
            guard try isOnItsWay(told, user, app) else { return [ExplainStep(.notRecipient)] }
            // An announcement that was taken back does not come any more.
            let isOver = told.kind == .announcement && told.isDeleted
            return [ExplainStep(isOver ? .deleted : .onItsWay)]
        }
        if told.kind == .message, UserID(told.sender) == user { return [ExplainStep(.ownMessage)] }
        if told.isDeleted { return [ExplainStep(.deleted)] }
        if told.urgency == .passive { return [ExplainStep(at: told.sentAt, .passive)] }
        if !told.hasPushText { return [ExplainStep(at: told.sentAt, .noPushText)] }
        let isRead =
            told.kind == .message
            ? try snapshot.readPositions(app, user, told.conversation).contains(told.position)
            : entry.version > 1
        return isRead ? [ExplainStep(.read)] : []
    }

    private func isOnItsWay(
        _ told: Told, _ user: UserID, _ app: AppID
    ) throws(StoreError) -> Bool {
        if told.kind == .announcement {
            let batches = try snapshot.records(
                AnnouncementBatchRecord.self, Scan(prefix: [.app(app)], limit: 1_000))
            return batches.contains {
                $0.announcement == told.message
                    && $0.users.split(separator: "\n").contains { $0.isExactly(user.name) }
            }
        }
        let member = try snapshot.record(
            ParticipantRecord.self,
            [.app(app), .identifier(told.conversation), .user(user)])
        guard let member, member.leftRevision == nil, member.joinedPosition < told.position else {
            return false
        }
        let jobs = try snapshot.records(
            FanOutRecord.self,
            Scan(prefix: [.app(app), .identifier(told.conversation)], limit: 1_000))
        return jobs.contains { $0.object == told.message.bytes && UserID($0.cursor) < user }
    }
}

// MARK: One device

extension PageReader {
    private func explain(
        _ told: Told, _ entry: EntryRecord, on device: DeviceRecord
    ) throws(StoreError) -> [ExplainStep] {
        let alert = try snapshot.record(
            AlertRecord.self, device.wakeKey + [.identifier(told.message)])
        let row = try snapshot.record(WakeRecord.self, device.wakeKey)
        var steps = try pushes(of: told, entry, on: device, alert)
        let isRefused = steps.contains { $0.reason == .alertRejected }
        if let alert { steps += try alertSteps(alert, row, isRefused: isRefused) }
        steps.sort { ($0.at ?? .distantFuture) < ($1.at ?? .distantFuture) }
        if entry.seq <= device.applied {
            return steps + [ExplainStep(.applied)]
        }
        let stored = try device.stored()
        if alert?.phase == .covered || stored.contains(entry.seq) {
            return steps + [ExplainStep(.appliedAhead)]
        }
        return steps + (try presently(told, entry, device, alert, row, isTold: !steps.isEmpty))
    }

    /// What holds now for a device that lacks the message.
    private func presently(
        _ told: Told, _ entry: EntryRecord, _ device: DeviceRecord, _ alert: AlertRecord?,
        _ row: WakeRecord?, isTold: Bool
    ) throws(StoreError) -> [ExplainStep] {
        let session = try snapshot.record(
            SessionRecord.self, device.wakeKey + [.unsigned(RoleKind.app.rawValue)])
        if let session, session.counts(now: now) {
            return [
                session.expectedUntil.map { ExplainStep(.sessionExpected, until: $0) }
                    ?? ExplainStep(at: session.openedAt, .session)
            ]
        }
        if device.pushToken == nil { return [ExplainStep(.tokenless)] }
        let credentials = try snapshot.records(
            PushCredentialRecord.self,
            Scan(
                prefix: [.app(device.app), .unsigned(device.pushEnvironment.rawValue)], limit: 64))
        if !credentials.contains(where: {
            $0.hasTopic(device.pushTopic)
        }) {
            return [ExplainStep(.noCredential)]
        }
        if try WakeRules.isPresumedGone(device, in: snapshot, now: now) {
            return [ExplainStep(at: device.lastSeenAt, .presumedGone)]
        }
        if let row, row.phase != .none, row.target >= entry.seq {
            switch row.phase {
            case .none: break
            case .due: return [ExplainStep(.wakeDue, until: toCome(row.due))]
            case .sending: return [ExplainStep(.wakeSending, push: row.wake)]
            case .waiting:
                return [ExplainStep(.wakeWaiting, until: row.graceUntil, push: row.wake)]
            }
        }
        return isTold || alert != nil ? [] : [ExplainStep(.nothingOwed)]
    }

    /// Silent pushes that were sent for the message, or for something newer while it was missing,
    /// and its own alerts that were refused, or of which no row is left to say that they were sent.
    private func pushes(
        of told: Told, _ entry: EntryRecord, on device: DeviceRecord, _ alert: AlertRecord?
    ) throws(StoreError) -> [ExplainStep] {
        let all = try snapshot.records(
            WakeHistoryRecord.self,
            Scan(
                index: "wake_history_by_time", prefix: device.wakeKey,
                after: [.timestamp(told.sentAt - 1)], limit: 64))
        var steps: [ExplainStep] = []
        var isOver = false
        for push in all {
            if push.kind == .alert, push.message == told.message {
                steps += alertSteps(push, of: told, alert)
            }
            guard push.kind == .silent, push.seq >= entry.firstSeq, !isOver else { continue }
            steps.append(
                ExplainStep(
                    at: push.sentAt, push.outcome.explained, push: push.wake,
                    status: push.status, answer: push.reason))
            // Silent pushes that came after it are another message's.
            isOver = push.outcome == .synced || push.outcome == .superseded
        }
        return steps
    }

    /// What the history says of an alert for the message. Its own row goes when the device has
    /// the message, and with it what it was made for; that an urgent one was made at once follows
    /// from the message.
    private func alertSteps(
        _ push: WakeHistoryRecord, of told: Told, _ alert: AlertRecord?
    ) -> [ExplainStep] {
        if push.outcome == .rejected {
            return [
                ExplainStep(
                    at: push.sentAt, .alertRejected, push: push.wake, status: push.status,
                    answer: push.reason)
            ]
        }
        guard let accepted = push.acceptedAt, alert?.phase != .sent else { return [] }
        var steps: [ExplainStep] = []
        if alert == nil, told.urgency == .urgent, !told.isTimed {
            steps.append(ExplainStep(at: push.queuedAt, .alertUrgent))
        }
        return steps + [ExplainStep(at: accepted, .alertSent, push: push.wake)]
    }

    /// What has passed is no moment to wait for: it is due.
    private func toCome(_ time: Timestamp?) -> Timestamp? { time.flatMap { $0 > now ? $0 : nil } }

    /// - Parameter isRefused: APNs has refused it, which says why it is over.
    private func alertSteps(
        _ alert: AlertRecord, _ row: WakeRecord?, isRefused: Bool
    ) throws(StoreError) -> [ExplainStep] {
        var steps: [ExplainStep] = []
        if let cause = alert.cause.explained {
            steps.append(ExplainStep(at: alert.queuedAt, cause))
        }
        switch alert.phase {
        case .queued:
            var step = ExplainStep(
                .alertQueued, until: toCome(row?.alertMoment(isUrgent: alert.isUrgent)))
            // What APNs said when it put the alert off.
            if let push = alert.push,
                let past = try snapshot.record(
                    WakeHistoryRecord.self,
                    [
                        .app(alert.app), .user(alert.user), .identifier(alert.device),
                        .identifier(push),
                    ])
            {
                (step.push, step.status, step.answer) = (push, past.status, past.reason)
            }
            steps.append(step)
        case .sending: steps.append(ExplainStep(.alertSending, push: alert.push))
        case .sent:
            let isOwn = alert.isOwnPush
            steps.append(
                ExplainStep(
                    at: alert.sentAt, isOwn ? .alertSent : .alertSentWithNewer,
                    push: alert.push))
        case .counted: steps.append(ExplainStep(.alertCounted))
        case .cancelled: if !isRefused { steps.append(ExplainStep(.alertCancelled)) }
        case .delayed: steps.append(ExplainStep(.alertDelayed, until: alert.moment))
        case .expired: steps.append(ExplainStep(.alertExpired))
        case .covered: break
        }
        return steps
    }
}

extension Timestamp {
    fileprivate static let distantFuture = Timestamp(milliseconds: .max)
}

extension AlertCause {
    fileprivate var explained: ExplainReason? {
        switch self {
        case .unknown: nil
        case .urgent: .alertUrgent
        case .unreachable: .alertUnreachable
        case .refreshOff: .alertRefreshOff
        case .gone: .alertGone
        case .noBudget: .alertNoBudget
        case .missed: .alertMissed
        case .notSynced: .alertNotSynced
        case .wakeRejected: .alertWakeRejected
        case .timed: .alertTimed
        case .doubted: .alertDoubted
        }
    }
}

extension WakeOutcome {
    fileprivate var explained: ExplainReason {
        switch self {
        case .pending, .accepted: .wakePending
        case .synced: .wakeSynced
        case .connectedNotSynced: .wakeNotSynced
        case .late: .wakeLate
        case .superseded: .wakeSuperseded
        case .expired: .wakeExpired
        case .rejected: .wakeRejected
        case .noShow: .wakeNoShow
        }
    }
}
