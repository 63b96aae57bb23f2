public import DeviceModel
public import Model
public import RouseClient

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
    /// The message, announcement or campaign it is about, and its conversation, as the payload
    /// says: what an app reads of a delivered notification's `userInfo`.
    public var object: String?
    public var conversation: String?
    /// What else it shows, and how.
    public var look: NotificationLook

    public init(
        identifier: String, title: String, body: String, threadID: String?, shownAtMs: UInt64,
        isLocal: Bool, object: String? = nil, conversation: String? = nil,
        look: NotificationLook = NotificationLook()
    ) {
        self.identifier = identifier
        self.title = title
        self.body = body
        self.threadID = threadID
        self.shownAtMs = shownAtMs
        self.isLocal = isLocal
        self.object = object
        self.conversation = conversation
        self.look = look
    }
}

/// What happens on a device, for the app on it and for the log.
public enum DeviceAction: Equatable, Sendable {
    /// The app runs in the background for so long, for this push; also told to an app that runs
    /// already, whose time then counts anew.
    case run(wake: String?, remainingMilliseconds: Milliseconds)
    /// The user sees the app.
    case enterForeground
    /// The user has done something with a notification, and the app, which runs, is told.
    case responded(ScreenNotification, NotificationResponse, PushEffect.Callback)
    /// Something lies over the app in front.
    case resignActive
    /// What is kept for the apps can be read.
    case unlocked
    /// A push came while the user sees the app, which is asked what to show of it in front; `nil`:
    /// there is nothing to show.
    case notify(wake: String?, shows: ScreenNotification? = nil)
    /// The app left the front and may finish what it does.
    case enterBackground(remainingMilliseconds: Milliseconds)
    /// The app stops running and stays in memory.
    case suspend
    /// The app is gone from memory.
    case terminate
    case networkChanged(isUp: Bool)
    /// A push reached the device; `obstacle`: why it did not wake the app as it could have.
    case received(PushDelivery, PushEffect.Callback, obstacle: WakeObstacle? = nil)
    /// APNs keeps the push until the device has coverage; `replaced`: the one it kept before.
    case stored(PushDelivery, replaced: String?)
    /// The device keeps a silent push back.
    case held(PushDelivery, WakeObstacle)
    /// The push is gone.
    case dropped(PushDelivery, PhoneEvent.Loss)
    case shown(ScreenNotification)
    case removed(identifier: String)
    case cleared
    case badge(UInt64)
}

/// One phone of the simulator: the model, and what its pushes and notifications say. A value, pure
/// but for `told`.
public struct SimulatedDevice: Sendable {
    public private(set) var phone = Phone()
    /// Budgets and run times.
    public var rules: DeviceRules
    /// The app has a notification service extension, through which each alert with
    /// `mutable-content` goes before it is shown.
    public var hasExtension = false
    /// What that extension shares with the app.
    public var told: (any ToldRecord)?
    /// What the pushes say that the model still keeps, by handle.
    private var pushes: [UInt64: PushDelivery] = [:]
    /// What is on the screen, by the handle that the model has for it.
    private var texts: [UInt64: ScreenNotification] = [:]
    private var lastHandle: UInt64 = 0
    /// Names notifications without a collapse id.
    private var unnamed: UInt64 = 0

    /// A device whose app is installed and not running; nobody has swiped it away.
    public init(rules: DeviceRules = .unlimited, openedAt: Timestamp = Timestamp(milliseconds: 0)) {
        self.rules = rules
        phone = Phone(openedAt: openedAt)
    }

    public var state: PushEffect.State { phone.state }
    public var hasCoverage: Bool { phone.hasCoverage }
    public var badge: UInt64 { UInt64(phone.badge) }
    /// Oldest first.
    public var screen: [ScreenNotification] { phone.screen.compactMap { texts[$0.handle] } }
    /// The one storage slot that APNs has for this device and topic.
    public var slot: PushDelivery? { phone.slot.flatMap { pushes[$0.handle] } }
    /// The newest silent push that the device itself keeps back.
    public var held: PushDelivery? { phone.held.flatMap { pushes[$0.handle] } }

    /// When `expire` has something to do; `nil`: never.
    public var nextDeadline: Timestamp? { phone.nextDeadline }

    // MARK: Pushes

    /// APNs has a push for this device.
    ///
    /// - Parameter chance: decides whether the storage slot keeps its older push; any number.
    public mutating func push(
        _ push: PushDelivery, now: Timestamp, chance: UInt64 = .max
    ) -> [DeviceAction] {
        lastHandle += 1
        pushes[lastHandle] = push
        let small = PhonePush(push, handle: lastHandle)
        return change(now) { $0.push(small, rules: $1, now: now, chance: chance, into: &$2) }
    }

    // MARK: The user and the system

    /// The user opens the app.
    public mutating func open(now: Timestamp) -> [DeviceAction] {
        change(now) { $0.open(rules: $1, now: now, into: &$2) }
    }

    /// The user does something with a notification. Nothing happens if it does not stand there.
    public mutating func respond(
        _ response: NotificationResponse, to identifier: String, now: Timestamp
    ) -> [DeviceAction] {
        let shown = phone.screen.first { texts[$0.handle]?.identifier == identifier }
        guard let shown else { return [] }
        return change(now) {
            _ = $0.respond(response, to: shown.handle, rules: $1, now: now, into: &$2)
        }
    }

    /// Something lies over the app in front.
    public mutating func cover(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.cover(into: &events) }
    }

    /// The app asks for a background refresh, not before a moment.
    public mutating func planRefresh(notBefore moment: Timestamp, now: Timestamp) -> Bool {
        phone.planRefresh(notBefore: moment, rules: rules, now: now)
    }

    /// The user leaves the app; it runs on for `runTime`, by default as long as the rules say.
    public mutating func background(
        now: Timestamp, runTime: Milliseconds? = nil
    ) -> [DeviceAction] {
        change(now) { $0.background(now: now, runTime: runTime ?? $1.leaveTime, into: &$2) }
    }

    /// The app stops running: the system's decision, or the app said that it has finished.
    public mutating func suspend(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.suspend(into: &events) }
    }

    /// The user swipes the app away.
    public mutating func forceQuit(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.forceQuit(into: &events) }
    }

    /// The system takes the app out of memory.
    public mutating func kill(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.kill(into: &events) }
    }

    /// The phone is restarted, and unlocked unless `isLocked`.
    public mutating func reboot(isLocked: Bool = false, now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.reboot(isLocked: isLocked, into: &events) }
    }

    /// Its user unlocks a phone that was restarted.
    public mutating func unlock(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.unlock(into: &events) }
    }

    /// The system runs the app's background refresh.
    public mutating func refresh(now: Timestamp) -> [DeviceAction] {
        change(now) { $0.refresh(rules: $1, now: now, into: &$2) }
    }

    /// The app called its completion handler: nothing is left to do in the background.
    public mutating func finished(now: Timestamp) -> [DeviceAction] {
        change(now) { phone, _, events in phone.finished(into: &events) }
    }

    /// The network comes or goes. What APNs kept arrives when it comes.
    public mutating func setCoverage(_ isOn: Bool, now: Timestamp) -> [DeviceAction] {
        change(now) { $0.setCoverage(isOn, rules: $1, now: now, into: &$2) }
    }

    public mutating func setLowPower(_ isOn: Bool, now: Timestamp) -> [DeviceAction] {
        change(now) { $0.setLowPower(isOn, rules: $1, now: now, into: &$2) }
    }

    /// Background App Refresh.
    public mutating func setBackgroundRefresh(_ isOn: Bool, now: Timestamp) -> [DeviceAction] {
        change(now) { $0.setBackgroundRefresh(isOn, rules: $1, now: now, into: &$2) }
    }

    /// Whether the user lets the app show alerts and badges.
    public mutating func setAlertsAllowed(_ areAllowed: Bool) {
        phone.setAlertsAllowed(areAllowed)
    }

    // MARK: Time

    /// Does what is due.
    public mutating func expire(now: Timestamp) -> [DeviceAction] {
        change(now) { $0.expire(rules: $1, now: now, into: &$2) }
    }

    // MARK: The screen

    /// The app, if it runs, shows a notification of its own.
    public mutating func showLocal(
        _ notification: ScreenNotification, now: Timestamp
    ) -> [DeviceAction] {
        lastHandle += 1
        let handle = lastHandle
        var shown = notification
        shown.isLocal = true
        shown.shownAtMs = now.milliseconds
        texts[handle] = shown
        let key = PhonePush.key(notification.identifier)
        return change(now) {
            _ = $0.showLocal(handle: handle, identifier: key, rules: $1, into: &$2)
        }
    }

    /// The app in front has said that this push, which it was asked about, is to be shown.
    public mutating func present(
        _ notification: ScreenNotification, now: Timestamp
    ) -> [DeviceAction] {
        lastHandle += 1
        let handle = lastHandle
        texts[handle] = notification
        let key = PhonePush.key(notification.identifier)
        return change(now) {
            _ = $0.present(handle: handle, identifier: key, rules: $1, into: &$2)
        }
    }

    /// The app, if it runs, takes one notification away by its identifier.
    public mutating func remove(identifier: String, now: Timestamp) -> [DeviceAction] {
        let key = PhonePush.key(identifier)
        return change(now) { phone, _, events in
            _ = phone.remove(identifier: key, into: &events)
        }
    }

    /// The app, if it runs, sets the icon's number; going to 0 clears the screen.
    public mutating func setBadge(_ number: UInt64, now: Timestamp) -> [DeviceAction] {
        let number = UInt32(clamping: number)
        return change(now) { phone, _, events in _ = phone.setBadge(number, into: &events) }
    }

    // MARK: From the model's events to actions

    private mutating func change(
        _ now: Timestamp, _ input: (inout Phone, DeviceRules, inout [PhoneEvent]) -> Void
    ) -> [DeviceAction] {
        var events: [PhoneEvent] = []
        input(&phone, rules, &events)
        let actions = events.compactMap { action($0, now) }
        forget()
        return actions
    }

    private mutating func action(_ event: PhoneEvent, _ now: Timestamp) -> DeviceAction? {
        switch event {
        case .received(let handle, let callback, let obstacle):
            return pushes[handle].map { .received($0, callback, obstacle: obstacle) }
        case .run(let handle, let remaining, _):
            return .run(wake: pushes[handle]?.content.wake, remainingMilliseconds: remaining)
        case .notify(let handle):
            guard let push = pushes[handle] else { return .notify(wake: nil) }
            let shows = push.content.showsAlert ? notification(push, now) : nil
            return .notify(wake: push.content.wake, shows: shows)
        case .enterForeground: return .enterForeground
        case .resignActive: return .resignActive
        case .responded(let handle, let response, let callback):
            return texts[handle].map { .responded($0, response, callback) }
        case .unlocked: return .unlocked
        case .enterBackground(let remaining):
            return .enterBackground(remainingMilliseconds: remaining)
        case .suspend: return .suspend
        case .terminate: return .terminate
        case .networkChanged(let isUp): return .networkChanged(isUp: isUp)
        case .stored(let handle, let replaced):
            let older = replaced.flatMap { pushes[$0]?.apnsID }
            return pushes[handle].map { .stored($0, replaced: older) }
        case .held(let handle, let obstacle): return pushes[handle].map { .held($0, obstacle) }
        case .dropped(let handle, let loss): return pushes[handle].map { .dropped($0, loss) }
        case .shown(let handle, _):
            if let push = pushes[handle] { texts[handle] = notification(push, now) }
            return texts[handle].map { .shown($0) }
        case .removed(let handle, _):
            return texts[handle].map { .removed(identifier: $0.identifier) }
        case .cleared: return .cleared
        case .badge(let number): return .badge(UInt64(number))
        }
    }

    private mutating func notification(
        _ push: PushDelivery, _ now: Timestamp
    ) -> ScreenNotification {
        if push.collapseID == nil { unnamed &+= 1 }
        var shown = ScreenNotification(
            identifier: push.collapseID ?? "unnamed-\(unnamed)", title: push.content.title ?? "",
            body: push.content.body ?? "", threadID: push.content.threadID,
            shownAtMs: now.milliseconds, isLocal: false, object: push.content.object,
            conversation: push.content.conversation, look: push.content.look)
        // The model has put it on the screen by now; what stood there is forgotten later.
        let standing = texts.values.map { DeliveredNotification($0) }
        if hasExtension, push.content.mutableContent,
            RouseExtension.isRepeat(shown.identifier, among: standing, told: told)
        {
            shown.look.quieten()
        }
        return shown
    }

    /// Keeps what the model still refers to and nothing else, so that it is bounded as the model
    /// is.
    private mutating func forget() {
        if !pushes.isEmpty {
            let kept = [phone.slot?.handle, phone.held?.handle].compactMap { $0 }
            pushes = pushes.filter { kept.contains($0.key) }
        }
        guard texts.count != phone.screen.count else { return }
        let shown = Set(phone.screen.map(\.handle))
        texts = texts.filter { shown.contains($0.key) }
    }
}

extension PhonePush {
    init(_ push: PushDelivery, handle: UInt64) {
        let expires = push.expiration.map { seconds -> UInt64 in
            let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
            // Not `.max`, which is for none.
            return overflow ? .max - 1 : milliseconds
        }
        self.init(
            PushEffect.kind(of: push), handle: handle,
            identifier: push.collapseID.map { Self.key($0) } ?? 0, expires: expires ?? .max,
            badge: push.content.badge.map { Int32(clamping: $0) } ?? -1,
            priority: UInt8(clamping: push.priority), hasText: push.content.showsAlert)
    }

    /// An identifier's number: FNV-1a of 64 bits, never 0.
    static func key(_ identifier: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in identifier.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash == 0 ? 1 : hash
    }
}

extension PushEffect {
    /// Which kind a push is.
    public static func kind(of push: PushDelivery) -> Kind {
        let content = push.content
        if push.pushType == "background" { return content.contentAvailable ? .silent : .nothing }
        if content.showsAlert || content.sound {
            return content.contentAvailable ? .alertWithContent : .alert
        }
        if content.badge != nil { return content.contentAvailable ? .badgeWithContent : .badge }
        // Push type alert without anything to show wakes nothing either.
        return .nothing
    }
}
