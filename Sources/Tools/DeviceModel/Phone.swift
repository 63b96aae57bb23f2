public import Model

/// One phone with one app on it, as a small pure value: pushes, what its user does, and time go
/// in; what the app and the screen see comes out. Without text, clock and chance, so that a
/// million fit into a simulation: callers append to one array of events that they reuse.
public struct Phone: Equatable, Sendable {
    /// A notification on the screen.
    public struct Notification: Equatable, Sendable {
        public let handle: UInt64
        /// 0: the app cannot name it.
        public let identifier: UInt64
        /// The app shows it, not a push.
        public let isLocal: Bool
    }

    private struct Switches: OptionSet {
        let rawValue: UInt8
        static let noCoverage = Switches(rawValue: 1)
        static let lowPower = Switches(rawValue: 2)
        static let refreshOff = Switches(rawValue: 4)
        static let alertsDenied = Switches(rawValue: 8)
        static let locked = Switches(rawValue: 16)
    }

    public internal(set) var state: PushEffect.State
    private var switches: Switches = []
    /// The icon's number.
    public private(set) var badge: UInt32 = 0
    /// Until when a background app may run.
    public internal(set) var runsUntil: Timestamp?
    /// The one storage slot that APNs has for this device and topic.
    public private(set) var slot: PhonePush?
    private var slotUntil = Timestamp(milliseconds: 0)
    /// The newest silent push that the device itself keeps back.
    public private(set) var held: PhonePush?
    /// When its obstacle goes by itself.
    private var heldUntil: Timestamp?
    private var budget = WakeBudget()
    public internal(set) var openedAt: Timestamp
    /// Oldest first.
    public internal(set) var screen: [Notification] = []
    var refresh = RefreshPlan()

    /// - Parameters:
    ///   - state: of the app, which is installed.
    ///   - openedAt: when its user last opened it.
    public init(
        state: PushEffect.State = .suspended, openedAt: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.state = state
        self.openedAt = openedAt
    }

    public var hasCoverage: Bool { !switches.contains(.noCoverage) }
    public var isLowPower: Bool { switches.contains(.lowPower) }
    public var isRefreshOff: Bool { switches.contains(.refreshOff) }
    public var areAlertsDenied: Bool { switches.contains(.alertsDenied) }
    /// Restarted and not unlocked since: nobody reads what is kept for its apps.
    public internal(set) var isLocked: Bool {
        get { switches.contains(.locked) }
        set { set(.locked, newValue) }
    }

    /// When `expire` has something to do; `nil`: never.
    public var nextDeadline: Timestamp? {
        var next = runsUntil
        if slot != nil { next = min(next ?? slotUntil, slotUntil) }
        if held != nil, let heldUntil { next = min(next ?? heldUntil, heldUntil) }
        if let at = refresh.at { next = min(next ?? at, at) }
        return next
    }

    // MARK: Pushes

    /// APNs has a push for this device.
    ///
    /// - Parameter chance: decides whether the storage slot keeps its older push; any number.
    public mutating func push(
        _ push: PhonePush, rules: DeviceRules, now: Timestamp, chance: UInt64 = .max,
        into events: inout [PhoneEvent]
    ) {
        if hasCoverage { return receive(push, rules, now, &events) }
        if push.expires == 0 { return events.append(.dropped(handle: push.handle, .notStored)) }
        let until =
            push.expires == .max
            ? now + rules.storageTime : Timestamp(milliseconds: push.expires)
        guard now < until else {
            return events.append(.dropped(handle: push.handle, .expired))
        }
        if slot != nil, chance % 1_000 < UInt64(rules.keepsOlderPermille) {
            return events.append(.dropped(handle: push.handle, .olderKept))
        }
        // One slot: the newer takes it, whatever either of them was.
        events.append(.stored(handle: push.handle, replaced: slot?.handle))
        slot = push
        slotUntil = until
    }

    func obstacle(
        _ push: PhonePush, _ rules: DeviceRules, _ now: Timestamp
    ) -> WakeObstacle? {
        if state == .rebooted, !rules.wakesAfterRestart { return .restarted }
        if isRefreshOff { return .refreshOff }
        if let most = rules.forgottenAfter, now.since(openedAt) > most { return .forgotten }
        if isLowPower { return .lowPower }
        if push.priority == 1 { return .priorityOne }
        return budget.obstacle(rules, now: now)
    }

    private mutating func receive(
        _ push: PhonePush, _ rules: DeviceRules, _ now: Timestamp, _ events: inout [PhoneEvent]
    ) {
        let effect = PushEffect.of(push.kind, in: state)
        let obstacle = effect.wakes ? obstacle(push, rules, now) : nil
        if let obstacle, push.kind == .silent { return refuse(push, obstacle, rules, &events) }
        // What has to do with the wake is not called without it.
        let callback = obstacle == nil ? effect.callback : .none
        events.append(.received(handle: push.handle, callback, obstacle: obstacle))
        if effect.setsBadge, push.badge >= 0, !areAlertsDenied {
            setNumber(UInt32(push.badge), &events)
        }
        if effect.shows, push.hasText, !areAlertsDenied {
            show(
                Notification(handle: push.handle, identifier: push.identifier, isLocal: false),
                rules, &events)
        }
        if effect.wakes {
            if obstacle == nil { run(push, rules, now, &events) }
        } else if state == .foreground || state == .inactive, callback != .none {
            events.append(.notify(handle: push.handle))
        }
    }

    private mutating func refuse(
        _ push: PhonePush, _ obstacle: WakeObstacle, _ rules: DeviceRules,
        _ events: inout [PhoneEvent]
    ) {
        guard obstacle.silent == .held else {
            return events.append(.dropped(handle: push.handle, .disallowed))
        }
        if let older = held { events.append(.dropped(handle: older.handle, .superseded)) }
        held = push
        heldUntil = budget.end(of: obstacle, rules)
        events.append(.held(handle: push.handle, obstacle))
    }

    private mutating func run(
        _ push: PhonePush, _ rules: DeviceRules, _ now: Timestamp, _ events: inout [PhoneEvent]
    ) {
        let launches = state == .notRunning || state == .rebooted
        budget.spend(now: now)
        runBehind(push.handle, rules, now, launches: launches, &events)
    }

    mutating func runBehind(
        _ handle: UInt64, _ rules: DeviceRules, _ now: Timestamp, launches: Bool,
        _ events: inout [PhoneEvent]
    ) {
        state = .background
        runsUntil = now + rules.runTime
        events.append(.run(handle: handle, remaining: rules.runTime, launches: launches))
    }

    /// Tries what the device holds again.
    mutating func release(
        _ rules: DeviceRules, _ now: Timestamp, _ events: inout [PhoneEvent]
    ) {
        guard let push = held else { return }
        if PushEffect.of(push.kind, in: state).wakes,
            let obstacle = obstacle(push, rules, now), obstacle.silent == .held
        {
            heldUntil = budget.end(of: obstacle, rules)
            return
        }
        held = nil
        heldUntil = nil
        receive(push, rules, now, &events)
    }

    private mutating func discardHeld(_ events: inout [PhoneEvent]) {
        guard let push = held else { return }
        held = nil
        heldUntil = nil
        events.append(.dropped(handle: push.handle, .discarded))
    }
}

// MARK: The user and the system

extension Phone {
    /// The user opens the app; what the device held is delivered at once.
    public mutating func open(
        rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        bringToFront(now, &events)
        release(rules, now, &events)
    }

    mutating func bringToFront(_ now: Timestamp, _ events: inout [PhoneEvent]) {
        unlock(into: &events)
        state = .foreground
        runsUntil = nil
        openedAt = now
        events.append(.enterForeground)
    }

    /// The user leaves the app; it runs on for `runTime`.
    public mutating func background(
        now: Timestamp, runTime: Milliseconds, into events: inout [PhoneEvent]
    ) {
        guard state == .foreground || state == .inactive else { return }
        state = .background
        runsUntil = now + runTime
        events.append(.enterBackground(remaining: runTime))
    }

    /// The app stops running: the system's decision, or the app said that it has finished.
    public mutating func suspend(into events: inout [PhoneEvent]) {
        guard state.isRunning else { return }
        state = .suspended
        runsUntil = nil
        events.append(.suspend)
    }

    /// The app called its completion handler: nothing is left to do in the background.
    public mutating func finished(into events: inout [PhoneEvent]) {
        if state == .background { suspend(into: &events) }
    }

    /// The user swipes the app away.
    public mutating func forceQuit(into events: inout [PhoneEvent]) {
        guard state != .forceQuit else { return }
        leaveMemory(.forceQuit, &events)
    }

    /// The system needs the memory. An app in front is not taken.
    public mutating func kill(into events: inout [PhoneEvent]) {
        guard state == .background || state == .suspended else { return }
        leaveMemory(.notRunning, &events)
    }

    /// The phone is restarted, and unlocked unless `isLocked`; the screen's notifications stay.
    public mutating func reboot(isLocked: Bool = false, into events: inout [PhoneEvent]) {
        leaveMemory(.rebooted, &events)
        self.isLocked = isLocked
    }

    /// Its user unlocks a phone that was restarted.
    public mutating func unlock(into events: inout [PhoneEvent]) {
        guard isLocked else { return }
        isLocked = false
        events.append(.unlocked)
    }

    private mutating func leaveMemory(
        _ next: PushEffect.State, _ events: inout [PhoneEvent]
    ) {
        let wasInMemory = state.isRunning || state == .suspended
        // The system starts neither for it.
        if next == .forceQuit { refresh.at = nil }
        state = next
        runsUntil = nil
        if wasInMemory { events.append(.terminate) }
        discardHeld(&events)
    }

    /// The network comes or goes. What APNs kept arrives when it comes.
    public mutating func setCoverage(
        _ isOn: Bool, rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        guard isOn != hasCoverage else { return }
        set(.noCoverage, !isOn)
        events.append(.networkChanged(isUp: isOn))
        guard isOn, let kept = slot else { return }
        slot = nil
        if now < slotUntil {
            receive(kept, rules, now, &events)
        } else {
            events.append(.dropped(handle: kept.handle, .expired))
        }
    }

    public mutating func setLowPower(
        _ isOn: Bool, rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        set(.lowPower, isOn)
        if !isOn { release(rules, now, &events) }
    }

    /// Background App Refresh, a switch of the user's for each app.
    public mutating func setBackgroundRefresh(
        _ isOn: Bool, rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        set(.refreshOff, !isOn)
        if isOn { release(rules, now, &events) }
    }

    /// Whether the user lets the app show alerts and badges.
    public mutating func setAlertsAllowed(_ areAllowed: Bool) { set(.alertsDenied, !areAllowed) }

    private mutating func set(_ one: Switches, _ isOn: Bool) {
        if isOn { switches.insert(one) } else { switches.remove(one) }
    }

    /// Does what is due.
    public mutating func expire(
        rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        if let runsUntil, runsUntil <= now { suspend(into: &events) }
        if let kept = slot, slotUntil <= now {
            slot = nil
            events.append(.dropped(handle: kept.handle, .expired))
        }
        if let heldUntil, heldUntil <= now { release(rules, now, &events) }
        if let at = refresh.at, at <= now { refreshIsDue(rules, now, &events) }
    }
}

// MARK: The screen

extension Phone {
    /// The app, which runs, shows a notification of its own. False: it does not run.
    public mutating func showLocal(
        handle: UInt64, identifier: UInt64, rules: DeviceRules, into events: inout [PhoneEvent]
    ) -> Bool {
        guard state.isRunning else { return false }
        show(
            Notification(handle: handle, identifier: identifier, isLocal: true), rules, &events)
        return true
    }

    /// A push that came in front is shown there, for the app, which runs, was asked and said so.
    /// False: it does not run.
    public mutating func present(
        handle: UInt64, identifier: UInt64, rules: DeviceRules, into events: inout [PhoneEvent]
    ) -> Bool {
        guard state.isRunning else { return false }
        show(
            Notification(handle: handle, identifier: identifier, isLocal: false), rules, &events)
        return true
    }

    /// The app, which runs, takes one notification away by its identifier. False: it does not
    /// run, or there is none of that name.
    public mutating func remove(identifier: UInt64, into events: inout [PhoneEvent]) -> Bool {
        guard state.isRunning, identifier != 0,
            let index = screen.firstIndex(where: { $0.identifier == identifier })
        else { return false }
        let gone = screen.remove(at: index)
        events.append(.removed(handle: gone.handle, identifier: identifier))
        return true
    }

    /// The app, which runs, sets the icon's number. False: it does not run.
    public mutating func setBadge(_ number: UInt32, into events: inout [PhoneEvent]) -> Bool {
        guard state.isRunning else { return false }
        setNumber(number, &events)
        return true
    }

    /// Going to 0 takes all notifications off the screen (Airship and Braze document that only
    /// the change to 0 does).
    private mutating func setNumber(_ number: UInt32, _ events: inout [PhoneEvent]) {
        guard number != badge else { return }
        badge = number
        events.append(.badge(number))
        guard number == 0, !screen.isEmpty else { return }
        screen = []
        events.append(.cleared)
    }

    private mutating func show(
        _ notification: Notification, _ rules: DeviceRules, _ events: inout [PhoneEvent]
    ) {
        let same = screen.firstIndex {
            notification.identifier != 0 && $0.identifier == notification.identifier
        }
        if let same {
            screen.remove(at: same)
        } else if screen.count >= max(1, rules.screenMax) {
            let gone = screen.removeFirst()
            events.append(.removed(handle: gone.handle, identifier: gone.identifier))
        }
        screen.append(notification)
        events.append(
            .shown(handle: notification.handle, identifier: notification.identifier))
    }
}
