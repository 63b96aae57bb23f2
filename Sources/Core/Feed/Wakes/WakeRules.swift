import Model
import Wake
import Wire

/// What happens to wakes, alerts and badges when something else happens. Each runs inside the
/// transaction of the change itself: a device that is behind is found again from rows alone.
///
/// Callers hold the user's row, which orders everything that touches a device's push state.
struct WakeRules {
    let transaction: any StoreTransaction
    let now: Timestamp

    /// Read marks of a conversation that follow each other in the feed by less are of one sitting:
    /// a device that missed one has most likely missed all.
    private static let fallsTogether: UInt64 = 64
    /// Devices of one user read at a time.
    static let devicesMax = 128
    /// So much is neither an outage nor a clock that was set.
    static let gapTolerance: Milliseconds = 5_000

    /// An entry was appended to a user's feed. Only a visible one matters: every device without
    /// a session that counts is owed a wake, or an alert if it is unreachable.
    func feedGrew(
        _ entry: EntryRecord, urgency: Urgency = .normal
    ) throws(StoreError) -> WakeEffects {
        guard entry.isVisible, let message = MessageID(entry.object) else { return WakeEffects() }
        let change = VisibleChange(
            seq: entry.seq, conversation: entry.conversation, message: message)
        // With one that counts the record is the session's row, but for what is urgent.
        return try onDevices(of: entry.app, entry.user, connected: urgency == .urgent) {
            step throws(StoreError) in
            try step.perform(
                step.machine.changed(change, urgency: urgency, now: now), entry: entry)
            return true
        }
    }

    /// An entry was appended whose alert has a time of its own: every device gets its row now, and
    /// nothing else before that time.
    func timedCame(
        _ entry: EntryRecord, _ told: TimedAlert, zones: any ZoneClock
    ) throws(StoreError) -> WakeEffects {
        try onDevices(of: entry.app, entry.user) { step throws(StoreError) in
            try step.keepAlert(
                entry, until: told.moment(on: step.device, zones: zones), isUrgent: told.isUrgent)
            return true
        }
    }

    /// An entry came that a device without a session would like to know of, and no more.
    ///
    /// - Parameters:
    ///   - change: the message that came, or that was read or deleted, at the change's own place.
    ///   - shownFrom: only devices that have applied this much may be showing what it is about; 0:
    ///     it is new to all of them. Asked for the first device without a session.
    func usefulCame(
        _ app: AppID, _ user: UserID, _ change: VisibleChange,
        shownFrom: @autoclosure () throws(StoreError) -> UInt64 = 0
    ) throws(StoreError) -> WakeEffects {
        var known: UInt64?
        return try onDevices(of: app, user, connected: false) { step throws(StoreError) in
            if known == nil { known = try shownFrom() }
            let through = known ?? 0
            guard step.device.applied >= through else { return false }
            // A badge push wakes the app as well.
            if through > 0, step.row.badgeDue != nil { return false }
            step.machine.usefulCame(change, now: now)
            return true
        }
    }

    /// The app's `applied` was told: by ACK, by SYNC, or at the session's end. Cancels exactly
    /// what it covers. An extension's ranges are not told here: they cancel nothing.
    ///
    /// - Parameters:
    ///   - device: with the new `applied`. The caller writes it afterwards.
    ///   - completesSync: an ACK reached the `to` of a page without `more`.
    func applied(
        _ device: inout DeviceRecord, ranges: [InclusiveRange] = [], completesSync: Bool
    ) throws(StoreError) -> WakeEffects {
        try device.store(ranges)
        // Nearly every ACK ends here: nothing is owed to a device that is connected.
        if !device.isUnreachable, !device.wasAlerted,
            try transaction.row(WakeRecord.table, key: device.wakeKey, lock: .none) == nil
        {
            return WakeEffects()
        }
        var step = try WakeStep(device, in: transaction, now: now)
        try step.coverAlerts(through: device.applied)
        try step.coverAlerts(in: ranges.merged)
        try step.perform(
            step.machine.synced(
                applied: device.applied, isComplete: completesSync, now: now))
        try step.save(keepsDevice: false)
        device = step.device
        return step.effects
    }

    /// The app's session row was written.
    ///
    /// - Parameters:
    ///   - device: written by the caller afterwards.
    ///   - wake: the push that HELLO says has caused it.
    /// - Returns: whether the device had a wake or alert row: its `applied` is persisted at once.
    func sessionOpened(
        _ device: inout DeviceRecord, wake: WakeID?
    ) throws(StoreError) -> (hadRow: Bool, effects: WakeEffects) {
        var step = try WakeStep(device, in: transaction, now: now)
        try step.perform(step.machine.connected(cause: wake, now: now))
        if let wake { try step.attribute(wake) }
        try step.save(keepsDevice: false)
        device = step.device
        return (step.hadRow, step.effects)
    }

    /// A session that did not count does again: a socket of the app survived.
    func sessionCounts(_ device: DeviceRecord) throws(StoreError) {
        var step = try WakeStep(device, in: transaction, now: now)
        guard step.hadRow else { return }
        try step.perform(step.machine.connected(now: now))
        try step.save(keepsDevice: false)
    }

    /// A read mark of the user moved; it is written already. Alerts of what was read are
    /// cancelled everywhere, icons that show too much are owed a badge push, and an app that may
    /// be showing what was read would like to know.
    ///
    /// - Parameters:
    ///   - before: what was read before.
    ///   - head: of the user's feed, the mark's entry included.
    ///   - device: on which it was read.
    func readElsewhere(
        _ mark: ReadMarkRecord, before: PositionSet, head: UInt64, on device: DeviceID
    ) throws(StoreError) -> WakeEffects {
        let (app, user, conversation) = (mark.app, mark.user, mark.conversation)
        let read = try transaction.readPositions(app, user, conversation)
        let isLess = try transaction.recountUnread(app, user, conversation, now: now)
        if isLess {
            // For a device whose session ends before it heard of it.
            var mark = mark
            let isOneOfMany = mark.fellAt.map { head - $0 < Self.fallsTogether } ?? false
            let from = before.through
            mark.fellFrom = isOneOfMany ? min(mark.fellFrom ?? from, from) : from
            (mark.fellAt, mark.fellBy) = (head, device)
            try transaction.put(mark)
        }
        var effects = try takeBack(app, user) { step throws(StoreError) in
            try step.cancelAlerts(of: conversation, read: read)
        }
        guard isLess,
            let newest = try transaction.newest(
                app, user, conversation, through: read.ranges.last?.last ?? read.through)
        else { return effects }
        var change = newest.visibleChange
        change.seq = head
        // A device that lacks the newest of them may be showing the oldest.
        effects += try usefulCame(
            app, user, change,
            shownFrom: try transaction.oldestToBeRead(
                app, user, conversation, after: before.through,
                where: { read.contains($0) && !before.contains($0) }
            )?.firstSeq ?? newest.firstSeq)
        return effects
    }

    /// An entry of a message was superseded by a newer state, or one of an announcement by its
    /// tombstone. A device that has the message is owed nothing by it; for one that lacks it, the
    /// visible entry stands higher now.
    func entryReplaced(
        _ older: EntryRecord, by entry: EntryRecord
    ) throws(StoreError) -> WakeEffects {
        guard let message = MessageID(older.object) else { return WakeEffects() }
        if older.kind == .announcement {
            return try announcementGone(older, message, by: entry)
        }
        // The message may have come without a push and been given one by an edit: unread since,
        // though no entry of it was ever visible.
        let isUnreadNoMore = older.unreadPosition != nil && entry.unreadPosition == nil
        guard
            entry.isVisible || entry.kind != .tombstone && !older.isVisible && !isUnreadNoMore
        else {
            var effects = try takeBack(older.app, older.user) { step throws(StoreError) in
                try step.cancelAlert(of: message)
            }
            let read = try transaction.readPositions(older.app, older.user, older.conversation)
            // Deleted, or without a text for alerts now: the app may be showing it.
            if entry.unreadPosition == nil, !read.contains(older.position),
                try isShown(older)
            {
                var change = older.visibleChange
                change.seq = entry.seq
                effects += try usefulCame(entry.app, entry.user, change, shownFrom: older.firstSeq)
            }
            return effects
        }
        guard entry.isVisible else {
            for device in try Self.devices(entry.app, entry.user, in: transaction)
            where device.pushToken != nil {
                try moveTimedAlert(to: entry, of: message, on: device)
            }
            return WakeEffects()
        }
        return try onDevices(of: entry.app, entry.user) { step throws(StoreError) in
            try step.moveAlert(from: older, to: entry, of: message)
            return true
        }
    }

    /// Whether a phone may be showing the message: also one whose alert has a time of its own, of
    /// which no entry is visible, unless the user has muted the conversation.
    private func isShown(_ entry: EntryRecord) throws(StoreError) -> Bool {
        if entry.isVisible { return true }
        guard entry.unreadPosition != nil else { return false }
        let member = try transaction.record(
            ParticipantRecord.self,
            [.app(entry.app), .identifier(entry.conversation), .user(entry.user)])
        return member.map { $0.mutedUntil <= now } ?? false
    }

    /// An entry of a message went, and the user is told nothing.
    func entryWithdrawn(_ entry: EntryRecord) throws(StoreError) -> WakeEffects {
        guard let message = MessageID(entry.object) else { return WakeEffects() }
        return try takeBack(entry.app, entry.user) { step throws(StoreError) in
            try step.cancelAlert(of: message)
        }
    }

    /// Nothing is visible of a message whose alert has a time of its own; its row alone moves.
    private func moveTimedAlert(
        to entry: EntryRecord, of message: MessageID, on device: DeviceRecord
    ) throws(StoreError) {
        let key = device.wakeKey + [.identifier(message)]
        guard var alert = try transaction.record(AlertRecord.self, key) else { return }
        alert.seq = entry.seq
        try transaction.put(alert)
    }

    /// The user's messages of a conversation are deleted up to `clearedPosition`, or all of them
    /// with the conversation.
    func cleared(_ member: ParticipantRecord) throws(StoreError) -> WakeEffects {
        let conversation = try transaction.record(
            ConversationRecord.self, [.app(member.app), .identifier(member.conversation)])
        let through = conversation?.deletedAt == nil ? member.clearedPosition : .max >> 1
        guard let all = PositionSet(through: through, rangeBytes: []) else {
            return WakeEffects()
        }
        let isLess = try transaction.recountUnread(
            member.app, member.user, member.conversation, now: now)
        var effects = try takeBack(member.app, member.user) { step throws(StoreError) in
            try step.cancelAlerts(of: member.conversation, read: all)
        }
        if isLess {
            effects += try shownIsOver(member.app, member.user, member.conversation)
        }
        return effects
    }

    /// The icon shows nothing of the conversation now: the user left it, or has muted it. Alerts of
    /// it are cancelled, and are none of the others that a later one counts; icons that show too
    /// much are owed a badge push, and an app that may be showing a message of the conversation
    /// would like to know.
    func unreadFell(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> WakeEffects {
        var effects = try takeBack(app, user) { step throws(StoreError) in
            try step.cancelAlerts(of: conversation)
        }
        effects += try shownIsOver(app, user, conversation)
        return effects
    }

    /// The user hears of the conversation again: an alert that the mute has cancelled before the
    /// alert left waits anew, if its message still counts and the device still lacks it.
    func unmuted(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> WakeEffects {
        try onDevices(of: app, user, connected: false) { step throws(StoreError) in
            // Its row may have gone with the alert that the mute cancelled.
            try step.queueCancelled(of: conversation)
            return true
        }
    }

    /// The newest entry of the feed ends what a phone may be showing of the conversation: each
    /// device that has the oldest of its messages that were unread would like to know.
    private func shownIsOver(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> WakeEffects {
        guard
            let newest = try transaction.newestToBeRead(app, user, conversation),
            let row = try transaction.record(UserRecord.self, [.app(app), .user(user)])
        else { return WakeEffects() }
        var change = newest.visibleChange
        change.seq = row.head
        let read = try transaction.readPositions(app, user, conversation)
        return try usefulCame(
            app, user, change,
            shownFrom: try transaction.oldestToBeRead(
                app, user, conversation, after: read.through, where: { !read.contains($0) }
            )?.firstSeq ?? newest.firstSeq)
    }

    /// Messages are nothing to alert of any more, and what is unread was counted: cancels with
    /// `cancel`, and icons that show too much are owed a badge push.
    private func takeBack(
        _ app: AppID, _ user: UserID, _ cancel: (inout WakeStep) throws(StoreError) -> Void
    ) throws(StoreError) -> WakeEffects {
        var unread: UInt64?
        return try onDevices(of: app, user) { step throws(StoreError) in
            // One that waits for its time is cancelled where nothing else is known.
            try cancel(&step)
            guard step.hadRow else { return false }
            if unread == nil { unread = try transaction.unread(app, user, now: now) }
            step.machine.badgeMayBeWrong(unread: unread ?? 0, now: now)
            return true
        }
    }

    /// The user has read an announcement on one device: the others alert of it no more, and those
    /// that may be showing it would like to know.
    ///
    /// - Parameters:
    ///   - place: the `seq` of its entry before it was read.
    ///   - head: the `seq` of its entry now.
    func announcementRead(
        _ app: AppID, _ user: UserID, _ announcement: MessageID, from place: UInt64, head: UInt64
    ) throws(StoreError) -> WakeEffects {
        var effects = try cancelAlerts(of: announcement, app, user)
        let change = VisibleChange(seq: head, conversation: .none, message: announcement)
        effects += try usefulCame(app, user, change, shownFrom: place)
        return effects
    }

    /// An announcement was taken back: devices alert of it no more, and those that may be showing
    /// it would like to know. What was read is shown by none.
    private func announcementGone(
        _ older: EntryRecord, _ announcement: MessageID, by entry: EntryRecord
    ) throws(StoreError) -> WakeEffects {
        var effects = try cancelAlerts(of: announcement, entry.app, entry.user)
        let key: [ColumnValue] = [.app(entry.app), .identifier(announcement)]
        guard older.version == 1,
            try transaction.record(AnnouncementRecord.self, key)?.mayBeShown ?? false
        else { return effects }
        effects += try usefulCame(
            entry.app, entry.user, entry.visibleChange, shownFrom: older.firstSeq)
        return effects
    }

    private func cancelAlerts(
        of announcement: MessageID, _ app: AppID, _ user: UserID
    ) throws(StoreError) -> WakeEffects {
        try onDevices(of: app, user) { step throws(StoreError) in
            try step.cancelAlert(of: announcement)
            return step.hadRow
        }
    }

    /// HELLO presented a token: it lives on this device now, and on no other of the app and
    /// environment. Device rows of other users are locked by the caller, in order, beforehand.
    ///
    /// - Parameter device: written by the caller afterwards.
    /// - Returns: the devices that had the token before.
    func registerToken(
        _ device: inout DeviceRecord, token: [UInt8], environment: PushEnvironmentKind,
        topic: String
    ) throws(StoreError) -> [DetachedDevice] {
        var detached: [DetachedDevice] = []
        let holders = try transaction.records(
            DeviceRecord.self,
            Scan(
                index: "device_by_token",
                prefix: [.app(device.app), .unsigned(environment.rawValue), .blob(token)],
                limit: Self.devicesMax))
        for var holder in holders
        where holder.user != device.user || holder.device != device.device {
            try detachToken(&holder)
            try transaction.put(holder)
            detached.append(DetachedDevice(holder))
        }
        let isSame =
            device.pushToken == token && device.pushEnvironment == environment
            && device.pushTopic.isExactly(topic)
        device.tokenConfirmedAt = now
        if isSame { return detached }
        let isFirst = device.pushToken == nil
        device.pushToken = token
        device.pushEnvironment = environment
        device.pushTopic = topic
        device.tokenGeneration += 1
        var step = try WakeStep(device, in: transaction, now: now)
        if isFirst { try step.dropAlerts(atMost: AlertRoom.closedMax) }
        try step.perform(
            step.machine.tokenRegistered(generation: device.tokenGeneration, now: now))
        try step.save(keepsDevice: false)
        device = step.device
        return detached
    }

    /// The device has no token any more; nothing is owed to it until it has one.
    ///
    /// - Parameter device: written by the caller afterwards.
    func detachToken(_ device: inout DeviceRecord) throws(StoreError) {
        guard device.pushToken != nil else { return }
        device.pushToken = nil
        device.tokenConfirmedAt = nil
        device.tokenGeneration += 1
        var step = try WakeStep(device, in: transaction, now: now)
        try step.perform(step.machine.tokenDetached(now: now))
        try step.save(keepsDevice: false)
        device = step.device
    }

    // MARK: Devices

    /// Takes a step on each device of the user that has a push token, and writes what came of it if
    /// `act` says that it is to be.
    ///
    /// - Parameter connected: whether also on those whose session counts.
    func onDevices(
        of app: AppID, _ user: UserID, connected: Bool = true,
        _ act: (inout WakeStep) throws(StoreError) -> Bool
    ) throws(StoreError) -> WakeEffects {
        var effects = WakeEffects()
        for device in try Self.devices(app, user, in: transaction) where device.pushToken != nil {
            if !connected, try transaction.isSessionCounted(of: device, now: now) { continue }
            var step = try WakeStep(device, in: transaction, now: now)
            guard try act(&step) else { continue }
            try step.save()
            effects += step.effects
        }
        return effects
    }

    // MARK: Reading

    /// The app's policy with the grace and the budget of this device, and where that grace is from.
    static func policy(
        of device: DeviceRecord, in snapshot: any StoreSnapshot
    ) throws(StoreError) -> (WakePolicy, GraceSource) {
        let app = try snapshot.record(AppRecord.self, [.app(device.app)])
        var policy = app.map { WakePolicy($0) } ?? WakePolicy()
        let habit = WakeHabit(encoded: device.wakeHabit)
        let shared = try snapshot.appGrace(device.app, policy, for: habit)
        let source = habit.graceSource(policy, app: shared)
        (policy.grace, policy.silentBudget) = (
            habit.grace(policy, app: shared), habit.silentBudget(policy)
        )
        return (policy, source)
    }

    /// Whether the device is presumed gone: it has not been heard of for as long as its app's
    /// policy says. Campaigns leave it out.
    static func isPresumedGone(
        _ device: DeviceRecord, in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> Bool {
        guard let app = try snapshot.record(AppRecord.self, [.app(device.app)]),
            app.adaptive.goneAfter > 0, device.lastSeenAt + app.adaptive.goneAfter <= now
        else { return false }
        return try !snapshot.isSessionCounted(of: device, now: now)
    }

    /// How the device can be reached now.
    static func state(
        of device: DeviceRecord, in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> ReachabilityState {
        if try snapshot.isSessionCounted(of: device, now: now) { return .online }
        if device.pushToken == nil { return .tokenless }
        if device.isUnreachable { return .unreachable }
        let row = try snapshot.record(WakeRecord.self, device.wakeKey)
        return row?.phase == .waiting ? .waking : .wakeable
    }

    /// The device's newest pushes, newest first.
    static func wakes(
        of device: DeviceRecord, limit: Int, in snapshot: any StoreSnapshot
    ) throws(StoreError) -> [WakeHistoryRecord] {
        try snapshot.records(
            WakeHistoryRecord.self,
            Scan(
                index: "wake_history_by_time", prefix: device.wakeKey, descending: true,
                limit: limit))
    }

    /// All of them, the forgotten ones too: their number is bounded at login, and what a bound
    /// here left out would not be woken.
    static func devices(
        _ app: AppID, _ user: UserID, in snapshot: any StoreSnapshot
    ) throws(StoreError) -> [DeviceRecord] {
        var all: [DeviceRecord] = []
        while true {
            let found = try snapshot.records(
                DeviceRecord.self,
                Scan(
                    prefix: [.app(app), .user(user)],
                    after: all.last.map { [.identifier($0.device)] }, limit: devicesMax))
            all += found
            if found.count < devicesMax { return all }
        }
    }
}

extension Work {
    var wakeRules: WakeRules { WakeRules(transaction: transaction, now: now) }

    /// Others are told of it once it is durable.
    func noteWakes(
        _ wakes: @autoclosure () throws(StoreError) -> WakeEffects
    ) throws(RuleFailure) {
        effects.note(try stored(try wakes()))
    }
}
