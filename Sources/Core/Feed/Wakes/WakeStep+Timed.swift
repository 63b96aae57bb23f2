import Model
import Wake

/// What a publish says of an alert that has a time of its own.
struct TimedAlert {
    let moment: AlertTiming.Moment
    let isUrgent: Bool
    /// A time of day is the first at or after it.
    let publishedAt: Timestamp

    func moment(on device: DeviceRecord, zones: any ZoneClock) -> Timestamp {
        switch moment {
        case .at(let time): time
        case .local(let local):
            local.instant(
                zone: device.timeZone, offset: device.utcOffset, published: publishedAt,
                zones: zones)
        }
    }
}

// Alerts with a time of their own: a row that is inert until then.
extension WakeStep {
    /// Writes the row in the transaction of the publish. A time that has passed is now.
    mutating func keepAlert(
        _ entry: EntryRecord, until moment: Timestamp, isUrgent: Bool
    ) throws(StoreError) {
        guard let message = MessageID(entry.object),
            try transaction.record(AlertRecord.self, alertKey(message)) == nil
        else { return }
        var alert = makeAlert(entry, message, .delayed)
        alert.number = try makeRoom()
        alert.openPosition = entry.position
        alert.isUrgent = isUrgent
        alert.cause = .timed
        alert.moment = moment
        alert.expiresAt = alert.expiresAt + moment.since(now)
        try transaction.put(alert)
        if moment <= now { _ = try release(message) }
    }

    /// The time has come: it waits with the others, if anybody still wants it.
    ///
    /// - Returns: whether it does.
    mutating func release(_ message: MessageID) throws(StoreError) -> Bool {
        guard var alert = try transaction.record(AlertRecord.self, alertKey(message)),
            alert.phase == .delayed
        else { return false }
        guard machine.tokenGeneration != nil, let content = try content(of: alert),
            !(try transaction.isSettled(alert, now: nil)), try isWanted(alert)
        else {
            alert.phase = .cancelled
            alert.openPosition = nil
            try transaction.put(alert)
            return false
        }
        // By a clock that may be ahead it waits with those whose time has come.
        if content.isPast(alert, now: now),
            try WakeRules.endsWait(in: transaction, now: now) == nil
        {
            alert.phase = .expired
            alert.openPosition = nil
            try transaction.put(alert)
            return false
        }
        alert.phase = .queued
        alert.queuedAt = now
        try transaction.put(alert)
        alertCame(isUrgent: alert.isUrgent, due: now)
        return true
    }

    /// Whether what its publish asked about is still so: hours may lie between.
    private func isWanted(_ alert: AlertRecord) throws(StoreError) -> Bool {
        guard alert.conversation != .none else { return true }
        let member = try transaction.record(
            ParticipantRecord.self,
            [.app(alert.app), .identifier(alert.conversation), .user(alert.user)])
        guard let member, member.leftRevision == nil, member.clearedPosition < alert.position
        else { return false }
        if now < member.mutedUntil {
            let refusal = RefusalRecord(
                app: alert.app, user: alert.user, message: alert.message, reason: .muted,
                refusedAt: now)
            _ = try transaction.again(refusal)
            try transaction.put(refusal)
            return false
        }
        return try !isOfBlocked(alert)
    }

    /// The user has blocked who wrote the message, perhaps since it came.
    func isOfBlocked(_ alert: AlertRecord) throws(StoreError) -> Bool {
        guard alert.conversation != .none,
            let user = try transaction.record(
                UserRecord.self, [.app(alert.app), .user(alert.user)]),
            !user.blocksNobody,
            let message = try transaction.record(
                MessageRecord.self, [.app(alert.app), .identifier(alert.message)]),
            !message.sender.isEmpty
        else { return false }
        let block = try transaction.record(
            BlockRecord.self,
            [.app(alert.app), .user(alert.user), .user(UserID(message.sender))])
        return block?.isBlocked ?? false
    }
}
