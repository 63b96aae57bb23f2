internal import Crypto
public import DeviceModel
public import EventLoop
internal import HTTP2
public import Model

/// APNs on one machine: two environments that answer as Apple documents, the devices behind
/// them, and a control socket. Loop-confined: made, used and closed on its loop's thread.
public final class Simulator {
    public let loop: Loop
    public var ports: SimulatorPorts {
        SimulatorPorts(
            production: production.port, development: development.port,
            control: options.controlPath, controlPort: control.port, httpPort: http?.port)
    }
    /// Apps, keys and tokens. Changes count from the next request on.
    public var state = SimulatorState()
    public var faults = FaultScript() {
        didSet { applyFaults() }
    }
    public private(set) var log: EventLog
    /// Of devices made from now on.
    public var deviceRules: DeviceRules
    let options: SimulatorOptions
    private var services: [PushService] = []
    private var production: PushService { services[0] }
    private var development: PushService { services[1] }
    private let control: ControlServer
    private var http: ControlHTTP?
    /// Added to the machine's clock.
    public private(set) var clockOffset: Int64 = 0
    /// Answers by status and reason, and lints, since the start.
    private(set) var answers: [String: UInt64] = [:]
    private(set) var lints: [Lint: UInt64] = [:]
    private var devices: [String: DeviceHost] = [:]
    private var deviceByToken: [String: DeviceHost] = [:]
    private var deadlines: [String: Timestamp] = [:]
    private var timer: LoopTimer?
    private var isClosed = false
    private var isHolding = false
    private static let reasonsMax = 1_000

    /// Listens on everything that `options` names.
    ///
    /// - Throws: `TLSError` for the certificate, `StreamError` for an address.
    public init(loop: Loop, options: SimulatorOptions) throws {
        self.loop = loop
        self.options = options
        log = EventLog(limit: options.logLimit)
        deviceRules = options.deviceRules
        clockOffset = options.clockOffset
        state.limits.streams = options.maximumStreams
        state.options = options.checks
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
            protocols: ["h2"], minimumVersion: .tls12, takesAnyClientCertificate: true)
        let broken = try TLSContext.server(
            certificateChain: options.certificateChain, privateKey: options.privateKey,
            protocols: ["nothing-that-a-provider-speaks"])
        let hooks = PushService.Hooks(
            decide: { [unowned self] push, connection, state in
                decide(push, connection, &state)
            },
            tell: { [unowned self] event in tell(event) },
            freshID: { Self.freshID().description },
            now: { [unowned self] in now },
            limits: { [unowned self] in state.limits },
            isStrict: { [unowned self] in state.options.strict },
            judge: { [unowned self] in state.judge(certificate: $0, environment: $1) })
        for (environment, port, firstNumber) in [
            (APNsEnvironment.production, options.productionPort, 1 as UInt64),
            (.development, options.developmentPort, 2),
        ] {
            services.append(
                try PushService(
                    loop: loop, host: options.host, port: port, environment: environment,
                    context: context, brokenContext: broken, firstNumber: firstNumber,
                    hooks: hooks))
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
        if let port = options.httpPort {
            http = try ControlHTTP(loop: loop, port: port, commands: commands)
        }
    }

    /// Ends everything; the stores of devices stay on disk.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        timer?.close()
        control.close()
        http?.close()
        for service in services { service.close() }
        for name in devices.keys.sorted() { devices[name]?.app?.terminate() }
    }

    // MARK: Pushes

    private func decide(
        _ push: ReceivedPush, _ connection: UInt64, _ state: inout ConnectionState
    ) -> PushDecision {
        let fault = faults.next(push.match(state.environment, connection))
        var event = SimulatorEvent(.push)
        event.connection = connection
        event.environment = state.environment
        event.describe(push)
        event.fault = fault?.name
        defer { tell(event) }
        var delay: UInt64 = 0
        switch fault {
        case .answer(let status, let reason):
            let scripted = scripted(push, status, status == 200 ? nil : reason, &event)
            return .answer(scripted)
        case .shutdown:
            let answer = scripted(push, 503, Refusal.shutdown.rawValue, &event)
            return .goAway(
                unprocessed: 0, code: .noError, reason: Refusal.shutdown.rawValue, answer: answer)
        case .reset(let code):
            event.code = code
            return .reset(HTTP2ErrorCode(rawValue: code))
        case .silence(false): return .silence
        case .cut: return .cut
        case .halfClose: return .halfClose
        case .goAway(let unprocessed, let code, let reason) where unprocessed > 0:
            return .goAway(
                unprocessed: unprocessed, code: HTTP2ErrorCode(rawValue: code), reason: reason,
                answer: nil)
        case .slow(let milliseconds): delay = min(milliseconds, FaultScript.delayMax)
        case .silence, .goAway, nil: break
        }
        let answer = self.state.check(
            push, connection: &state, freshID: Self.freshID(), now: now)
        event.tell(answer)
        count(answer)
        deliver(answer, &event)
        switch fault {
        case .silence: return .silence
        case .goAway(_, let code, let reason):
            return .goAway(
                unprocessed: 0, code: HTTP2ErrorCode(rawValue: code), reason: reason,
                answer: answer)
        default: return .answer(answer, delay: delay)
        }
    }

    private func scripted(
        _ push: ReceivedPush, _ status: Int, _ reason: String?, _ event: inout SimulatorEvent
    ) -> Answer {
        let answer = Answer(
            status: status, reason: reason, timestamp: nil,
            apnsID: push["apns-id"] ?? Self.freshID().description, lints: [], delivery: nil)
        event.status = status
        event.reason = reason
        count(answer)
        return answer
    }

    private func deliver(_ answer: Answer, _ event: inout SimulatorEvent) {
        guard let delivery = answer.delivery, let host = deviceByToken[delivery.token] else {
            return
        }
        event.device = host.name
        // After the answer has left, as on a real network.
        loop.nextTurn { [weak self] in
            guard let self, !self.isClosed else { return }
            host.push(delivery)
        }
    }

    private func count(_ answer: Answer) {
        // Scripted reasons are anybody's: a bounded number of them is told apart.
        var name = answer.reason.map { "\(answer.status) \($0)" } ?? "\(answer.status)"
        if answers[name] == nil, answers.count >= Self.reasonsMax { name = "others" }
        answers[name, default: 0] += 1
    }

    private static func freshID() -> PushID {
        let bytes = Random.bytes(16)
        guard let id = PushID(bytes) else { preconditionFailure("16 bytes are an id") }
        return id
    }

    private func applyFaults() {
        for service in services {
            service.delayMilliseconds = faults.delayMilliseconds
            service.door = faults.door
            service.headerTableBytes = faults.headerTableBytes
            service.dateSkewMilliseconds = faults.dateSkewMilliseconds
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

    /// Changes the streams allowed on every connection of an environment (nil: both), now.
    public func setStreams(_ environment: APNsEnvironment?, _ streams: UInt32) {
        for service in services where environment == nil || service.environment == environment {
            service.setStreams(streams)
        }
    }

    /// Providers' connections that are open.
    public func connectionCount(_ environment: APNsEnvironment) -> Int {
        services.first { $0.environment == environment }?.connectionCount ?? 0
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
            name: name, token: token, topic: topic, environment: environment, rules: deviceRules,
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

    /// The machine's clock, moved.
    public var now: Timestamp {
        let (sum, overflow) = Int64(clamping: SystemClock.wallMilliseconds())
            .addingReportingOverflow(clockOffset)
        return Timestamp(milliseconds: overflow ? .max : UInt64(max(0, sum)))
    }

    /// Moves the clock of everything here, so that hours can be tested in seconds. What is due
    /// then happens.
    public func setClock(offset: Int64) {
        clockOffset = offset
        var event = SimulatorEvent(.clock)
        event.text = "offset \(offset) ms"
        tell(event)
        for service in services { service.timesChanged() }
        deadlineReached()
    }

    func tell(_ event: SimulatorEvent) {
        for lint in event.lints ?? [] { lints[lint, default: 0] += 1 }
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

    mutating func tell(_ answer: Answer) {
        status = answer.status
        reason = answer.reason
        check = answer.check
        lints = answer.lints.isEmpty ? nil : answer.lints
        apnsId = answer.apnsID
        wake = answer.delivery?.content.wake
    }
}

extension FaultScript.Fault {
    /// For the log.
    var name: String {
        switch self {
        case .answer: "answer"
        case .shutdown: "shutdown"
        case .silence: "silence"
        case .slow: "slow"
        case .reset: "reset"
        case .goAway: "goaway"
        case .cut: "cut"
        case .halfClose: "half_close"
        }
    }
}
