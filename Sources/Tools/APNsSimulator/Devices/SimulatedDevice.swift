public import Model

/// A notification on a device's screen.
public struct ScreenNotification: Equatable, Codable, Sendable {
    /// The collapse id of a remote one, or what the app named a local one: a later one with the
    /// same identifier takes its place.
    public var identifier: String
    public var title: String
    public var body: String
    public var threadID: String?
    /// Milliseconds since 1970 when it appeared or last changed.
    public var shownAtMs: UInt64
    /// Shown by the app itself, not by a push.
    public var isLocal: Bool

    public init(
        identifier: String, title: String, body: String, threadID: String?, shownAtMs: UInt64,
        isLocal: Bool
    ) {
        self.identifier = identifier
        self.title = title
        self.body = body
        self.threadID = threadID
        self.shownAtMs = shownAtMs
        self.isLocal = isLocal
    }
}

/// What happens on a device, for the app on it and for the log.
public enum DeviceAction: Equatable, Sendable {
    /// The app runs in the background for so long, for this push; also told to an app that runs
    /// already, whose time then counts anew.
    case run(wake: String?, remainingMilliseconds: Milliseconds)
    /// The user sees the app.
    case enterForeground
    /// A push came while the user sees the app.
    case notify(wake: String?)
    /// The app left the front and may finish what it does.
    case enterBackground(remainingMilliseconds: Milliseconds)
    /// The app stops running and stays in memory.
    case suspend
    /// The app is gone from memory.
    case terminate
    case networkChanged(isUp: Bool)
    /// A push reached the device.
    case received(PushDelivery, PushEffect.Callback)
    /// APNs keeps the push until the device has coverage; `replaced`: the one it kept before.
    case stored(PushDelivery, replaced: String?)
    /// APNs gave the push up.
    case dropped(PushDelivery, Loss)
    case shown(ScreenNotification)
    case removed(identifier: String)
    case cleared
    case badge(UInt64)

    /// Why a push never reached its device.
    public enum Loss: String, Codable, Sendable {
        /// Expiration 0 and no coverage.
        case notStored = "not_stored"
        /// Its time passed in the storage slot.
        case expired
    }
}

/// One phone with one app on it, as a pure value: pushes, what its user does, and time go in;
/// what the app and the screen see comes out.
public struct SimulatedDevice: Equatable, Sendable {
    /// Run time the system gives to a woken app (Apple: "up to 30 seconds").
    public static let runTime: Milliseconds = 30_000
    /// Run time left to an app that its user leaves.
    public static let leaveTime: Milliseconds = 5_000
    /// APNs keeps a push without an expiration this long.
    static let storageTime: Milliseconds = 30 * 86_400_000
    /// The oldest notifications leave the screen beyond this number.
    static let screenMax = 500

    public private(set) var state: PushEffect.State
    /// Until when a background app may run.
    public private(set) var runsUntil: Timestamp?
    public private(set) var hasCoverage = true
    /// Oldest first.
    public private(set) var screen: [ScreenNotification] = []
    public private(set) var badge: UInt64 = 0
    /// The one storage slot that APNs has for this device and topic.
    public private(set) var slot: PushDelivery?
    private var slotUntil = Timestamp(milliseconds: 0)
    /// Names notifications without a collapse id.
    private var unnamed: UInt64 = 0

    /// A device whose app is installed and not running; nobody has swiped it away.
    public init() { state = .suspended }

    /// When `expire` has something to do; `nil`: never.
    public var nextDeadline: Timestamp? {
        [runsUntil, slot == nil ? nil : slotUntil].compactMap { $0 }.min()
    }

    // MARK: Pushes

    /// APNs has a push for this device.
    public mutating func push(_ push: PushDelivery, now: Timestamp) -> [DeviceAction] {
        guard !hasCoverage else { return receive(push, now: now) }
        if push.expiration == 0 { return [.dropped(push, .notStored)] }
        let until =
            push.expiration.map { seconds in
                let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
                return Timestamp(milliseconds: overflow ? .max : milliseconds)
            } ?? now + Self.storageTime
        guard now < until else { return [.dropped(push, .expired)] }
        // One slot: the newer takes it, whatever either of them was.
        let replaced = slot?.apnsID
        slot = push
        slotUntil = until
        return [.stored(push, replaced: replaced)]
    }

    private mutating func receive(_ push: PushDelivery, now: Timestamp) -> [DeviceAction] {
        let effect = PushEffect.of(PushEffect.kind(of: push), in: state)
        var actions: [DeviceAction] = [.received(push, effect.callback)]
        if effect.setsBadge, let number = push.content.badge { actions += setBadge(number) }
        if effect.shows, push.content.showsAlert {
            actions += show(
                push.collapseID, title: push.content.title, body: push.content.body,
                threadID: push.content.threadID, isLocal: false, now: now)
        }
        if effect.wakes {
            state = .background
            runsUntil = now + Self.runTime
            actions.append(
                .run(wake: push.content.wake, remainingMilliseconds: Self.runTime))
        } else if state == .foreground, effect.callback != .none {
            actions.append(.notify(wake: push.content.wake))
        }
        return actions
    }

    // MARK: The user

    /// The user opens the app.
    public mutating func open(now: Timestamp) -> [DeviceAction] {
        state = .foreground
        runsUntil = nil
        return [.enterForeground]
    }

    /// The user leaves the app; it runs on for `runTime`.
    public mutating func background(
        now: Timestamp, runTime: Milliseconds = leaveTime
    ) -> [DeviceAction] {
        guard state == .foreground else { return [] }
        state = .background
        runsUntil = now + runTime
        return [.enterBackground(remainingMilliseconds: runTime)]
    }

    /// The app stops running: the system's decision, or the app said that it has finished.
    public mutating func suspend(now: Timestamp) -> [DeviceAction] {
        guard state == .foreground || state == .background else { return [] }
        state = .suspended
        runsUntil = nil
        return [.suspend]
    }

    /// The user swipes the app away.
    public mutating func forceQuit(now: Timestamp) -> [DeviceAction] {
        guard state != .forceQuit else { return [] }
        state = .forceQuit
        runsUntil = nil
        return [.terminate]
    }

    /// The app called its completion handler: nothing is left to do in the background.
    public mutating func finished(now: Timestamp) -> [DeviceAction] {
        state == .background ? suspend(now: now) : []
    }

    /// The network comes or goes. What APNs kept arrives when it comes.
    public mutating func setCoverage(_ isOn: Bool, now: Timestamp) -> [DeviceAction] {
        guard isOn != hasCoverage else { return [] }
        hasCoverage = isOn
        var actions: [DeviceAction] = [.networkChanged(isUp: isOn)]
        guard isOn, let kept = slot else { return actions }
        slot = nil
        actions += now < slotUntil ? receive(kept, now: now) : [.dropped(kept, .expired)]
        return actions
    }

    // MARK: Time

    /// Does what is due.
    public mutating func expire(now: Timestamp) -> [DeviceAction] {
        var actions: [DeviceAction] = []
        if let runsUntil, runsUntil <= now { actions += suspend(now: now) }
        if let kept = slot, slotUntil <= now {
            slot = nil
            actions.append(.dropped(kept, .expired))
        }
        return actions
    }

    // MARK: The screen

    /// The app shows a notification of its own.
    public mutating func showLocal(
        identifier: String, title: String, body: String, threadID: String?, now: Timestamp
    ) -> [DeviceAction] {
        show(
            identifier, title: title, body: body, threadID: threadID, isLocal: true, now: now)
    }

    /// The app takes one notification away by its identifier.
    public mutating func remove(identifier: String) -> [DeviceAction] {
        guard let index = screen.firstIndex(where: { $0.identifier == identifier }) else {
            return []
        }
        screen.remove(at: index)
        return [.removed(identifier: identifier)]
    }

    /// Sets the icon's number; going to 0 takes all notifications off the screen (Airship and
    /// Braze document that only the change to 0 does).
    public mutating func setBadge(_ number: UInt64) -> [DeviceAction] {
        guard number != badge else { return [] }
        badge = number
        guard number == 0, !screen.isEmpty else { return [.badge(number)] }
        screen = []
        return [.badge(number), .cleared]
    }

    private mutating func show(
        _ identifier: String?, title: String?, body: String?, threadID: String?, isLocal: Bool,
        now: Timestamp
    ) -> [DeviceAction] {
        let name: String
        if let identifier {
            name = identifier
        } else {
            unnamed &+= 1
            name = "unnamed-\(unnamed)"
        }
        let notification = ScreenNotification(
            identifier: name, title: title ?? "", body: body ?? "", threadID: threadID,
            shownAtMs: now.milliseconds, isLocal: isLocal)
        var actions: [DeviceAction] = []
        if let index = screen.firstIndex(where: { $0.identifier == name }) {
            screen.remove(at: index)
        } else if screen.count >= Self.screenMax {
            actions.append(.removed(identifier: screen.removeFirst().identifier))
        }
        screen.append(notification)
        return actions + [.shown(notification)]
    }
}
