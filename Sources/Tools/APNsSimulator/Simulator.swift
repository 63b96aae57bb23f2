internal import Crypto
public import EventLoop
internal import HTTP2
internal import Model

/// APNs on one machine: two environments that answer as Apple documents, the devices behind
/// them, and a control socket. Loop-confined: made, used and closed on its loop's thread.
public final class Simulator {
    public let loop: Loop
    public var ports: SimulatorPorts {
        SimulatorPorts(
            production: production.port, development: development.port,
            control: options.controlPath, controlPort: control.port)
    }
    /// Apps, keys and tokens. Changes count from the next request on.
    public var state = SimulatorState()
    public var faults = FaultScript() {
        didSet { applyFaults() }
    }
    public private(set) var log: EventLog
    let options: SimulatorOptions
    private var services: [PushService] = []
    private var production: PushService { services[0] }
    private var development: PushService { services[1] }
    private let control: ControlServer
    private var devices: [String: DeviceHost] = [:]
    private var deviceByToken: [String: DeviceHost] = [:]
    private var deadlines: [String: Timestamp] = [:]
    private var timer: LoopTimer?
    private var isClosed = false
    private var isHolding = false

    /// Listens on everything that `options` names.
    ///
    /// - Throws: `TLSError` for the certificate, `StreamError` for an address.
    public init(loop: Loop, options: SimulatorOptions) throws {
        self.loop = loop
        self.options = options
        log = EventLog(limit: options.logLimit)
        control = ControlServer(loop: loop)
        do {
            try listen()
        } catch {
            close()
            throw error
        }
    }

    private func listen() throws {
        let context = try TLSContext.server(
            certificateChain: options.certificateChain, privateKey: options.privateKey,
            protocols: ["h2"], minimumVersion: .tls12)
        let hooks = PushService.Hooks(
            decide: { [unowned self] push, connection, state in
                decide(push, connection, &state)
            },
            tell: { [unowned self] event in tell(event) },
            freshID: { Self.freshID().description })
        for (environment, port) in [
            (APNsEnvironment.production, options.productionPort),
            (.development, options.developmentPort),
        ] {
            services.append(
                try PushService(
                    loop: loop, host: options.host, port: port, environment: environment,
                    context: context, maximumStreams: options.maximumStreams, hooks: hooks))
        }
        timer = loop.timer { [unowned self] in deadlineReached() }
        let commands = ControlCommands(simulator: self)
        try control.listen(
            path: options.controlPath, port: options.controlPort,
            answer: { commands.answer($0) },
            source: EventSource(
                limit: options.logLimit, patience: options.subscriberPatience,
                head: { [unowned self] in log.head },
                events: { [unowned self] in log.events(after: $0, limit: $1) },
                hold: { [unowned self] in hold($0) }))
    }

    /// Ends everything; the stores of devices stay on disk.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        timer?.close()
        control.close()
        for service in services { service.close() }
        for name in devices.keys.sorted() { devices[name]?.app?.terminate() }
    }

    // MARK: Pushes

    private func decide(
        _ push: ReceivedPush, _ connection: UInt64, _ state: inout ConnectionState
    ) -> PushDecision {
        let fault = faults.next(path: push.path)
        var event = SimulatorEvent(.push)
        event.connection = connection
        event.environment = state.environment
        event.describe(push)
        defer { tell(event) }
        var isSilent = false
        switch fault {
        case .answer(let status, let reason):
            event.fault = "answer"
            event.status = status
            event.reason = reason
            return .answer(
                Answer(
                    status: status, reason: status == 200 ? nil : reason, timestamp: nil,
                    apnsID: push["apns-id"] ?? Self.freshID().description, lints: [],
                    delivery: nil))
        case .reset(let code):
            event.fault = "reset"
            event.code = code
            return .reset(HTTP2ErrorCode(rawValue: code))
        case .silence(false):
            event.fault = "silence"
            return .silence
        case .silence(true):
            event.fault = "silence"
            isSilent = true
        case nil: break
        }
        let answer = self.state.check(
            push, connection: &state, freshID: Self.freshID(), now: now)
        event.status = answer.status
        event.reason = answer.reason
        event.lints = answer.lints.isEmpty ? nil : answer.lints
        event.apnsId = answer.apnsID
        event.wake = answer.delivery?.content.wake
        if let delivery = answer.delivery, let host = deviceByToken[delivery.token] {
            event.device = host.name
            // After the answer has left, as on a real network.
            loop.nextTurn { [weak self] in
                guard let self, !self.isClosed else { return }
                host.change { $0.push(delivery, now: $1) }
            }
        }
        return isSilent ? .silence : .answer(answer)
    }

    private static func freshID() -> PushID {
        let bytes = Random.bytes(16)
        guard let id = PushID(bytes) else { preconditionFailure("16 bytes are an id") }
        return id
    }

    private func applyFaults() {
        for service in services {
            service.delayMilliseconds = faults.delayMilliseconds
            service.refusesConnections = faults.refusesConnections
        }
    }

    /// Ends every connection of an environment (nil: both) with GOAWAY, leaving the newest
    /// `unprocessed` open streams of each unanswered.
    public func goAway(
        _ environment: APNsEnvironment?, unprocessed: Int, code: UInt32, reason: String?
    ) {
        for service in services where environment == nil || service.environment == environment {
            service.goAway(
                unprocessed: unprocessed, code: HTTP2ErrorCode(rawValue: code), reason: reason)
        }
    }

    /// Cuts every connection of an environment (nil: both) without a word.
    public func cutConnections(_ environment: APNsEnvironment?) {
        for service in services where environment == nil || service.environment == environment {
            service.closeConnections()
        }
    }

    // MARK: Devices

    /// Puts a device with a new token into the simulator. `makeApp` gets its token and hooks;
    /// without an app the device only receives.
    ///
    /// - Throws: `SimulatorState.Problem`, and what `makeApp` throws.
    /// - Returns: the device token in hexadecimal.
    public func addDevice(
        _ name: String, topic: String, environment: APNsEnvironment,
        makeApp: (_ token: String, DeviceAppHooks) throws -> (any DeviceApp)?
    ) throws -> String {
        guard !name.isEmpty, name.utf8.count <= 128 else {
            throw SimulatorState.Problem.invalid("device name of 1 to 128 bytes")
        }
        guard devices[name] == nil else {
            throw SimulatorState.Problem.invalid("device `\(name)` exists")
        }
        guard devices.count < options.devicesMax else {
            throw SimulatorState.Problem.full("devices")
        }
        let token = try state.issue(
            Random.bytes(32), SimulatorState.IssuedToken(environment: environment, topic: topic))
        let host = DeviceHost(
            name: name, token: token, topic: topic, environment: environment,
            now: { [unowned self] in now }, tell: { [unowned self] in tell($0) },
            deadlineChanged: { [unowned self] in deadlineChanged($0) })
        host.app = try makeApp(token, host.hooks)
        if isHolding { host.app?.hold(true) }
        devices[name] = host
        deviceByToken[token] = host
        return token
    }

    func device(_ name: String) throws(SimulatorState.Problem) -> DeviceHost {
        guard let host = devices[name] else { throw .unknown("device `\(name)`") }
        return host
    }

    /// Lets all apps wait for a subscriber that is to miss nothing, or go on.
    private func hold(_ isHeld: Bool) {
        isHolding = isHeld
        for host in devices.values { host.app?.hold(isHeld) }
    }

    var deviceNames: [String] { devices.keys.sorted() }

    private func deadlineChanged(_ host: DeviceHost) {
        let next = host.device.nextDeadline
        guard deadlines[host.name] != next else { return }
        deadlines[host.name] = next
        startTimer()
    }

    private func startTimer() {
        guard !isClosed, let first = deadlines.values.min() else {
            timer?.stop()
            return
        }
        timer?.start(afterMilliseconds: first.since(now))
    }

    private func deadlineReached() {
        let now = now
        for name in deadlines.filter({ $0.value <= now }).keys.sorted() {
            devices[name]?.change { $0.expire(now: $1) }
        }
        startTimer()
    }

    // MARK: Time and log

    var now: Timestamp { Timestamp(milliseconds: SystemClock.wallMilliseconds()) }

    func tell(_ event: SimulatorEvent) {
        log.append(
            event, at: now.milliseconds, uptime: SystemClock.monotonicMilliseconds())
        control.eventsArrived()
    }
}

extension SimulatorEvent {
    mutating func describe(_ push: ReceivedPush) {
        token = push.path.split(separator: "/").last.map { String($0.prefix(200)) }
        topic = push["apns-topic"]
        pushType = push["apns-push-type"]
        priority = push["apns-priority"].flatMap { Int($0) }
        expiration = push["apns-expiration"].flatMap { UInt64($0) }
        collapseId = push["apns-collapse-id"]
        apnsId = push["apns-id"]
        bytes = push.body.count
    }
}
