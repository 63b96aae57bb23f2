internal import Crypto
internal import DeviceModel
internal import Model

/// One device of the simulator: the model, the app that runs on it, and the log of both.
/// Loop-confined.
final class DeviceHost {
    let name: String
    let token: String
    let topic: String
    let environment: APNsEnvironment
    private(set) var device: SimulatedDevice
    var app: (any DeviceApp)? {
        didSet {
            device.hasExtension = app?.hasExtension ?? false
            device.told = app?.told
        }
    }
    private let now: () -> Timestamp
    private let log: (SimulatorEvent) -> Void
    /// The system kills the app as soon as an event of this kind has happened behind the front.
    private var killsAt: SimulatorEvent.Kind?
    /// It has happened in the middle of something else that is carried out to its end first.
    private var isToBeKilled = false
    private var isChanging = false
    /// The name of the button that the user has pressed.
    private var action: String?
    /// The model's next deadline may have changed.
    private let deadlineChanged: (DeviceHost) -> Void

    init(
        name: String, token: String, topic: String, environment: APNsEnvironment,
        rules: DeviceRules, now: @escaping () -> Timestamp,
        tell: @escaping (SimulatorEvent) -> Void,
        deadlineChanged: @escaping (DeviceHost) -> Void
    ) {
        self.name = name
        self.token = token
        self.topic = topic
        self.environment = environment
        device = SimulatedDevice(rules: rules, openedAt: now())
        self.now = now
        log = tell
        self.deadlineChanged = deadlineChanged
    }

    /// What the app is given to reach this device.
    var hooks: DeviceAppHooks {
        DeviceAppHooks(
            finished: { [weak self] in self?.change { $0.finished(now: $1) } },
            showNotification: { [weak self] notification in
                self?.change { $0.showLocal(notification, now: $1) }
            },
            presentNotification: { [weak self] notification in
                self?.change { $0.present(notification, now: $1) }
            },
            removeNotification: { [weak self] identifier in
                self?.change { $0.remove(identifier: identifier, now: $1) }
            },
            screen: { [weak self] in self?.device.screen ?? [] },
            isLocked: { [weak self] in self?.device.phone.isLocked ?? false },
            setBadge: { [weak self] number in
                self?.change { $0.setBadge(number, now: $1) }
            },
            tell: { [weak self] event in
                guard let self else { return }
                var event = event
                event.device = self.name
                self.tell(event)
            })
    }

    /// Other budgets and run times from now on.
    func setRules(_ rules: DeviceRules) {
        device.rules = rules
        change { $0.expire(now: $1) }
    }

    /// A push from APNs.
    func push(_ push: PushDelivery) {
        let chance = Random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        change { $0.push(push, now: $1, chance: chance) }
    }

    /// The system takes the app out of memory; `moment`: in the middle of what it does next.
    func kill(at moment: SimulatorEvent.Kind?) {
        killsAt = moment
        if moment == nil { change { $0.kill(now: $1) } }
    }

    /// The user does something with a notification.
    ///
    /// - Parameter action: the name of the button.
    func respond(_ response: NotificationResponse, to identifier: String, action: String? = nil) {
        self.action = action
        defer { self.action = nil }
        change { $0.respond(response, to: identifier, now: $1) }
    }

    private func tell(_ event: SimulatorEvent) {
        log(event)
        guard event.kind == killsAt, device.state == .background else { return }
        killsAt = nil
        guard !isChanging else {
            isToBeKilled = true
            return
        }
        change { $0.kill(now: $1) }
    }

    /// Lets something happen to the device, and carries out what follows.
    func change(_ input: (inout SimulatedDevice, Timestamp) -> [DeviceAction]) {
        let isOutermost = !isChanging
        isChanging = true
        let before = device.state
        let actions = input(&device, now())
        if device.state != before {
            var event = SimulatorEvent(.state, device: name)
            event.state = device.state.rawValue
            tell(event)
        }
        for action in actions { perform(action) }
        if isOutermost {
            isChanging = false
            if isToBeKilled {
                isToBeKilled = false
                change { $0.kill(now: $1) }
            }
        }
        deadlineChanged(self)
    }

    private func perform(_ action: DeviceAction) {
        switch action {
        case .run(let wake, let remaining):
            var event = SimulatorEvent(.wake, device: name)
            event.wake = wake
            tell(event)
            app?.run(
                wake: wake.flatMap { WakeID(text: $0) }, remainingMilliseconds: remaining)
        case .notify(let wake, let shows):
            if let shows { app?.willPresent(shows) }
            app?.notify(wake: wake.flatMap { WakeID(text: $0) })
        case .enterForeground: app?.enterForeground()
        case .resignActive: app?.resignActive()
        case .responded(let notification, let response, let callback):
            var event = SimulatorEvent(response.kind, device: name)
            event.identifier = notification.identifier
            event.action = self.action
            event.called(callback)
            event.userInfo = notification.look.userInfo
            tell(event)
            if response.opensApp { app?.tapped(notification) }
        case .unlocked: app?.unlocked()
        case .enterBackground(let remaining):
            app?.enterBackground(remainingMilliseconds: remaining)
        case .suspend: app?.suspend()
        case .terminate: app?.terminate()
        case .networkChanged(let isUp):
            var event = SimulatorEvent(.coverage, device: name)
            event.state = isUp ? "on" : "off"
            tell(event)
            app?.networkChanged(isUp: isUp)
        case .received, .stored, .held, .dropped, .shown, .removed, .cleared, .badge: note(action)
        }
    }

    private func note(_ action: DeviceAction) {
        var event: SimulatorEvent
        switch action {
        case .received(let push, let callback, let obstacle):
            event = SimulatorEvent(.received, device: name)
            event.describe(push)
            event.userInfo = push.content.look.userInfo
            event.payload = String(decoding: push.content.payload, as: UTF8.self)
            event.obstacle = obstacle
            event.called(callback)
            event.state = device.state.rawValue
        case .stored(let push, let replaced):
            event = SimulatorEvent(.stored, device: name)
            event.describe(push)
            event.text = replaced.map { "replaced \($0)" }
        case .held(let push, let obstacle):
            event = SimulatorEvent(.held, device: name)
            event.describe(push)
            event.obstacle = obstacle
        case .dropped(let push, let loss):
            event = SimulatorEvent(.dropped, device: name)
            event.describe(push)
            event.reason = loss.rawValue
        case .shown(let notification):
            event = SimulatorEvent(.shown, device: name)
            event.identifier = notification.identifier
            event.title = notification.title
            event.body = notification.body
            event.message = notification.object
            event.conversation = notification.conversation
            event.local = notification.isLocal
            if notification.look.sound == nil { event.quiet = true }
        case .removed(let identifier):
            event = SimulatorEvent(.removed, device: name)
            event.identifier = identifier
        case .badge(let number):
            event = SimulatorEvent(.badge, device: name)
            event.badge = number
        default: event = SimulatorEvent(.cleared, device: name)
        }
        tell(event)
    }
}

extension NotificationResponse {
    fileprivate var kind: SimulatorEvent.Kind {
        switch self {
        case .opened: .tapped
        case .action: .acted
        case .dismissed: .dismissed
        }
    }
}

extension SimulatorEvent {
    fileprivate mutating func called(_ callback: PushEffect.Callback) {
        self.callback = callback.rawValue
        calls = callback.calls
    }

    mutating func describe(_ push: PushDelivery) {
        apnsId = push.apnsID
        pushType = push.pushType
        collapseId = push.collapseID
        wake = push.content.wake
        badge = push.content.badge
    }
}
