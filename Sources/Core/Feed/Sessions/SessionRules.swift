import Model
import Wake
import Wire

extension Work {
    /// OPEN: session row, tokens, switches, push token and what the inline SYNC tells, in one
    /// step; then its mutations, each in its own.
    func openSession(_ request: OpenSession) throws(RuleFailure) -> StoreAnswer {
        var (opened, reset) = try step { () throws(RuleFailure) in try self.open(request) }
        let after = opened.sync.resetAfter
        let mutations = request.sync?.mutations ?? []
        let results =
            reset.isOfAnotherHistory
            ? mutations.map { refusedForNow($0) } : try mutateAll(mutations, opened.session)
        opened.sync = try standing(
            of: opened.session, results: results, reset: reset,
            hadPushRows: opened.sync.hadPushRows)
        opened.sync.resetAfter = after
        return .opened(opened)
    }

    private func open(
        _ request: OpenSession
    ) throws(RuleFailure) -> (OpenedSession, ResetReason?) {
        // Who suspends or removes the app meanwhile waits, and finds the session.
        guard let app = try record(AppRecord.self, [.app(request.app)], lock: .share) else {
            throw .refused(.tokenInvalid, "unknown app")
        }
        try require(!app.isSuspended, .suspended, "the app is suspended")
        var (user, presented) = try admit(request)
        let environment: PushEnvironmentKind? =
            if let push = request.push { try acceptedEnvironment(push, of: app.app) } else { nil }
        try lockNames(of: request)
        let concerned = try concernedDevices(request, user, environment)
        for other in Set(concerned.map(\.user)).sorted() { try lockUser(app.app, other) }
        var feed = try openFeed(app.app, user)
        try refuseLate(request, user)
        if presented != nil { presented = try admit(request).1 }
        let givenUp = try devicesGivenUp(for: request, user).map { DeviceKey($0) }
        try require(feed.user.deletingSince == nil, .unavailable, "the user is being deleted")
        try require(!feed.user.isSuspended, .suspended, "the user is suspended")
        if feed.user.epochHalf == 0 { feed.user.epochHalf = request.freshEpochHalf & .halfMask }
        var device = try takeDevice(
            request, user, environment, concerned.union(givenUp), givenUp: givenUp)
        device.sessionGeneration += 1
        let session = SessionKey(
            app: app.app, user: user, device: request.device, role: request.role,
            generation: device.sessionGeneration)
        try endSessionRow(device, request.role, code: .superseded)
        try rotateTokens(
            of: session, presented: presented, newHash: request.newTokenHash,
            lifetime: app.sessionTokenLifetime)
        var reset: ResetReason?
        if let sync = request.sync {
            reset = try take(
                sync, of: session, freshEpochHalf: request.freshEpochHalf, &feed, &device)
        }
        if request.role == .app {
            describe(request, &device)
            // A new session sends every unanswered mutation again, in order (MSG-14).
            device.refusedMutation = 0
            device.withoutSessionSince = nil
        }
        device.lastSeenAt = now
        try put(device)
        try close(feed)
        let hadPushRows = try openedWake(request, &device)
        try put(
            SessionRecord(
                app: app.app, user: user, device: request.device, role: request.role,
                boot: request.boot, generation: session.generation, openedAt: now,
                dormantAt: request.dormantAfter.map { now + $0 }, hadPushRows: hadPushRows,
                connectedAt: request.connectedAt & .halfMask))
        var standing = SyncedSession(epoch: try epoch(of: feed.user), feed, device)
        standing.hadPushRows = hadPushRows
        standing.resetAfter = try pace(reset, of: app.app)
        let opened = OpenedSession(
            session: session, sync: standing,
            tokenLifetime: app.sessionTokenLifetime, isPushTokenHeld: device.pushToken != nil,
            isPushRefused: request.push != nil && environment == nil)
        return (opened, reset)
    }

    /// Two logins on one device, or with one push token, come one after the other, whoever the
    /// users are: each finds whom the other has let in.
    private func lockNames(of request: OpenSession) throws(RuleFailure) {
        for name in Self.lockedNames(of: request) { try lockUser(request.app, name) }
    }

    /// Keys of users whose names, with a control character, are nobody's, and which are below all
    /// names.
    static func lockedNames(of request: OpenSession) -> [UserID] {
        let device = UserID("\u{1}\(request.device)")
        guard let push = request.push else { return [device] }
        let token = push.token.map { String($0, radix: 16) }.joined(separator: " ")
        return [device, UserID("\u{2}\(token)")]
    }

    /// SES-15: the HELLO of a process that is gone may be read after that of its successor.
    private func refuseLate(_ request: OpenSession, _ user: UserID) throws(RuleFailure) {
        let newest = try record(
            SessionRecord.self,
            [
                .app(request.app), .user(user), .identifier(request.device),
                .unsigned(request.role.rawValue),
            ])
        if let newest, newest.boot == request.boot, newest.expectedUntil == nil,
            newest.connectedAt > request.connectedAt & .halfMask
        {
            throw .refused(.superseded, "a connection that came later is logged in")
        }
    }

    /// Tells the device's wake that the app has connected.
    ///
    /// - Returns: whether it had push rows; an extension's session changes none.
    private func openedWake(
        _ request: OpenSession, _ device: inout DeviceRecord
    ) throws(RuleFailure) -> Bool {
        guard request.role == .app else { return false }
        var opened = device
        let (hadRow, wakes) = try stored(
            try wakeRules.sessionOpened(&opened, wake: request.wake))
        effects.note(wakes)
        if opened != device { try put(opened) }
        device = opened
        return hadRow
    }

    /// Users of one device looked at: those who are logged in on it come first, and there is one.
    private static let ownersMax = 16

    /// The device and those it takes something from: it belongs to one user at a time,
    /// so whoever was logged in on it is logged out (SES-14), and its push token lives on no other
    /// device (SES-18). An extension takes nothing from anybody (SES-17).
    private func concernedDevices(
        _ request: OpenSession, _ user: UserID, _ environment: PushEnvironmentKind?
    ) throws(RuleFailure) -> Set<DeviceKey> {
        let app = request.app
        var keys: Set<DeviceKey> = [DeviceKey(user: user, device: request.device)]
        let sameDevice = try records(
            DeviceRecord.self,
            Scan(
                index: "device_by_id", prefix: [.app(app), .identifier(request.device)],
                limit: Self.ownersMax))
        for other in sameDevice where other.expiresAt == nil { keys.insert(DeviceKey(other)) }
        if request.role == .extension {
            try require(keys.count == 1, .forbidden, "the app on this device is another user's")
        } else if let registration = request.push, let environment {
            for holder in try holders(of: registration.token, environment, in: app) {
                keys.insert(DeviceKey(holder))
            }
        }
        return keys
    }

    /// Locks the devices; gives the session's own, new if there is none, with its push token.
    private func takeDevice(
        _ request: OpenSession, _ user: UserID, _ environment: PushEnvironmentKind?,
        _ concerned: Set<DeviceKey>, givenUp: [DeviceKey]
    ) throws(RuleFailure) -> DeviceRecord {
        let app = request.app
        let registration = request.role == .app ? request.push : nil
        let own = DeviceKey(user: user, device: request.device)
        var device = DeviceRecord(
            app: app, user: user, device: request.device, createdAt: now, lastSeenAt: now)
        for key in concerned.sorted() {
            guard
                var found = try record(
                    DeviceRecord.self, [.app(app), .user(key.user), .identifier(key.device)],
                    lock: .wait)
            else { continue }
            if key == own {
                device = found
            } else if givenUp.contains(key) {
                try giveUp(&found)
            } else if key.device == own.device {
                try forget(&found)
            } else if found.pushToken == registration?.token,
                found.pushEnvironment == environment
            {
                try detachPushToken(&found)
                try put(found)
            }
        }
        device.expiresAt = nil
        if let registration, let environment {
            try attach(registration, environment, to: &device)
        }
        return device
    }

    private func attach(
        _ registration: PushRegistration, _ environment: PushEnvironmentKind,
        to device: inout DeviceRecord
    ) throws(RuleFailure) {
        var attached = device
        effects.detached += try stored(
            try wakeRules.registerToken(
                &attached, token: registration.token, environment: environment,
                topic: registration.topic))
        device = attached
    }

    private func describe(_ request: OpenSession, _ device: inout DeviceRecord) {
        device.clientName = bounded(request.clientName)
        device.clientVersion = bounded(request.clientVersion)
        if let state = request.appState { store(state, in: &device) }
        if let place = request.place { store(place, in: &device) }
    }

    /// What is not said stays; what cannot be meant counts as not said.
    private func store(_ place: DevicePlace, in device: inout DeviceRecord) {
        func isName(_ text: String) -> Bool {
            (1...limits.placeBytes).contains(text.utf8.count)
                && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        }
        if isName(place.locale) { device.locale = place.locale }
        if isName(place.timeZone) { device.timeZone = place.timeZone }
        if (1...2_880).contains(place.utcOffset) {
            device.utcOffset = UInt64(place.utcOffset)
        } else if isName(place.timeZone), let east = zones.offset(of: place.timeZone, at: now) {
            // Campaigns find devices by it.
            device.utcOffset = UInt64(clamping: max(1, min(east / 60 + 1_440, 2_880)))
        }
    }

    private func bounded(_ text: String) -> String {
        guard text.utf8.count > limits.clientNameBytes else { return text }
        return String(decoding: text.utf8.prefix(limits.clientNameBytes), as: UTF8.self)
    }

    /// The three switches; one that is not said stays as it was.
    private func store(_ state: AppState, in device: inout DeviceRecord) {
        device.notifications = SettingKind(state.notifications) ?? device.notifications
        device.backgroundRefresh = SettingKind(state.backgroundRefresh) ?? device.backgroundRefresh
        device.lowPower = SettingKind(state.lowPower) ?? device.lowPower
    }

    func changeAppState(_ request: ChangeAppState) throws(RuleFailure) -> StoreAnswer {
        var device = try lockDevice(request.session)
        var row = try current(request.session)
        if let state = request.appState {
            store(state, in: &device)
            try put(device)
        }
        row.dormantAt = request.dormantAfter.map { now + $0 }
        try put(row)
        if row.counts(now: now) {
            try stored(try wakeRules.sessionCounts(device))
        }
        return .done
    }

    /// A late end changes nothing: a newer session has taken the row.
    func endSession(_ request: EndSession) throws(RuleFailure) -> StoreAnswer {
        let session = request.session
        var device = try lockDevice(session)
        let user = try record(UserRecord.self, [.app(session.app), .user(session.user)])
        var row = try current(session)
        guard session.role == .app else {
            try delete(SessionRecord.self, Array(row.row.prefix(SessionRecord.table.keyCount)))
            return .done
        }
        if let user, request.applied > device.applied, request.applied <= user.head {
            device.deliveryFailures = 0
            try advance(&device, to: request.applied, user)
            try cover(&device)
        } else if request.isPageUnsent, device.deliveryFailures > 0 {
            // Nothing in it can be what the client did not take.
            device.deliveryFailures -= 1
        }
        device.lastSeenAt = now
        try put(device)
        row.expectedUntil = now + request.expectedWithin
        try put(row)
        return .done
    }

    /// The session of one connection, if it was opened and is still the newest of its device.
    func abandonSession(_ request: AbandonSession) throws(RuleFailure) -> StoreAnswer {
        let devices = try records(
            DeviceRecord.self,
            Scan(
                index: "device_by_id", prefix: [.app(request.app), .identifier(request.device)],
                limit: Self.ownersMax))
        for device in devices {
            let found = try record(
                SessionRecord.self,
                [
                    .app(device.app), .user(device.user), .identifier(device.device),
                    .unsigned(request.role.rawValue),
                ])
            guard let found, found.boot == request.boot,
                found.connectedAt == request.connectedAt & .halfMask
            else { continue }
            return try endSession(
                EndSession(
                    session: SessionKey(found), applied: 0,
                    expectedWithin: request.expectedWithin))
        }
        return .done
    }
}

/// A device of a known app, in the lock order.
private struct DeviceKey: Hashable, Comparable {
    let user: UserID
    let device: DeviceID

    init(user: UserID, device: DeviceID) {
        self.user = user
        self.device = device
    }

    init(_ record: DeviceRecord) { self.init(user: record.user, device: record.device) }

    static func < (left: Self, right: Self) -> Bool {
        left.user == right.user ? left.device < right.device : left.user < right.user
    }
}

extension SettingKind {
    /// `nil`: not said.
    fileprivate init?(_ setting: Setting) {
        switch setting {
        case .unspecified: return nil
        case .on: self = .on
        case .off: self = .off
        }
    }
}
