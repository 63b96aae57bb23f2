internal import Crypto
internal import EventLoop
internal import HTTP2
internal import Model

/// One environment's listener and its connections. Loop-confined.
final class PushService {
    /// What the service asks for each push, and tells of its connections.
    struct Hooks {
        var decide: (ReceivedPush, UInt64, inout ConnectionState) -> PushDecision
        var tell: (SimulatorEvent) -> Void
        var freshID: () -> String
        var now: () -> Timestamp
        var limits: () -> SimulatorLimits
        var isStrict: () -> Bool
        /// Judges the SHA-256 of a client certificate.
        var judge: ([UInt8], APNsEnvironment) -> (SimulatorState.Certificate?, Refusal?)
    }

    static let connectionsMax = 1_000

    let environment: APNsEnvironment
    var limits: SimulatorLimits { hooks.limits() }
    var isStrict: Bool { hooks.isStrict() }
    var delayMilliseconds: UInt64 = 0
    var door = FaultScript.Door.open
    var headerTableBytes: UInt32?
    var dateSkewMilliseconds: Int64?
    var port: UInt16 { listener.port }
    var connectionCount: Int { connections.count }
    var now: Timestamp { hooks.now() }
    private let context: TLSContext
    /// Speaks nothing that a provider speaks: for the door that is broken.
    private let brokenContext: TLSContext
    private let hooks: Hooks
    private let listener: Listener
    private var connections: [UInt64: PushConnection] = [:]
    private var lastNumber: UInt64
    private var churn = ConnectionChurn()

    /// - Parameter firstNumber: of the first connection; the next are each two more, so that two
    ///   services have different ones.
    init(
        loop: Loop, host: String, port: UInt16, environment: APNsEnvironment, context: TLSContext,
        brokenContext: TLSContext, firstNumber: UInt64, hooks: Hooks
    ) throws {
        self.environment = environment
        self.context = context
        self.brokenContext = brokenContext
        self.hooks = hooks
        lastNumber = firstNumber
        listener = try Listener.listen(loop: loop, host: host, port: port)
        listener.onConnection = { [unowned self] stream in accept(stream) }
    }

    private func accept(_ stream: Stream) {
        guard door != .refused, connections.count < Self.connectionsMax else {
            stream.close()
            return
        }
        if churn.isBlocked(stream.peerAddress, now: now) {
            var event = SimulatorEvent(.connection)
            event.environment = environment
            event.text = "shut out: \(stream.peerAddress)"
            event.rule = .churn
            hooks.tell(event)
            stream.close()
            return
        }
        let connection = PushConnection(
            number: lastNumber, stream: stream,
            tls: (door == .broken ? brokenContext : context).makeEngine(),
            environment: environment, service: self)
        connections[lastNumber] = connection
        lastNumber += 2
        connection.start(isSilent: door == .silent)
        tell(connection, "opened")
    }

    func decide(
        _ push: ReceivedPush, _ connection: PushConnection, _ state: inout ConnectionState
    ) -> PushDecision {
        hooks.decide(push, connection.number, &state)
    }

    func freshID() -> String { hooks.freshID() }

    func judge(_ digest: [UInt8]?) -> (SimulatorState.Certificate?, Refusal?) {
        digest.map { hooks.judge($0, environment) } ?? (nil, nil)
    }

    func closed(_ connection: PushConnection, _ text: String, byPeer: Bool) {
        connections[connection.number] = nil
        tell(connection, "closed: \(text)")
        guard byPeer else { return }
        let isMuch = churn.ended(
            connection.peerAddress, openedAt: connection.openedAt, limits: limits, now: now)
        if isMuch { linted(connection, .connectionChurn) }
    }

    func noted(_ connection: PushConnection, _ text: String, _ rule: ConnectionRule? = nil) {
        tell(connection, text, rule)
    }

    func linted(_ connection: PushConnection, _ lint: Lint) {
        var event = SimulatorEvent(.connection)
        event.connection = connection.number
        event.environment = environment
        event.lints = [lint]
        hooks.tell(event)
    }

    private func tell(
        _ connection: PushConnection, _ text: String, _ rule: ConnectionRule? = nil
    ) {
        var event = SimulatorEvent(.connection)
        event.connection = connection.number
        event.environment = environment
        event.text = text
        event.rule = rule
        hooks.tell(event)
    }

    private func each(_ body: (PushConnection) -> Void) {
        for number in connections.keys.sorted() {
            guard let connection = connections[number] else { continue }
            body(connection)
            connection.flush()
        }
    }

    func goAway(unprocessed: Int, code: HTTP2ErrorCode, reason: String?) {
        each { $0.goAway(unprocessed: unprocessed, code: code, reason: reason) }
    }

    /// SETTINGS with another number of streams, out of the blue.
    func setStreams(_ streams: UInt32) { each { $0.setStreams(streams) } }

    /// The clock was moved, or the limits were.
    func timesChanged() { each { $0.startTimer() } }

    /// Cuts every connection without a word.
    func closeConnections() { each { $0.close("cut") } }

    func close() {
        listener.close()
        closeConnections()
    }
}
