internal import Crypto
internal import EventLoop
internal import HTTP2

/// One environment's listener and its connections. Loop-confined.
final class PushService {
    /// What the service asks for each push, and tells of its connections.
    struct Hooks {
        var decide: (ReceivedPush, UInt64, inout ConnectionState) -> PushDecision
        var tell: (SimulatorEvent) -> Void
        var freshID: () -> String
    }

    static let connectionsMax = 1_000

    let environment: APNsEnvironment
    let maximumStreams: UInt32
    var delayMilliseconds: UInt64 = 0
    var refusesConnections = false
    var port: UInt16 { listener.port }
    var connectionCount: Int { connections.count }
    private let context: TLSContext
    private let hooks: Hooks
    private let listener: Listener
    private var connections: [UInt64: PushConnection] = [:]
    private var lastNumber: UInt64 = 0

    init(
        loop: Loop, host: String, port: UInt16, environment: APNsEnvironment, context: TLSContext,
        maximumStreams: UInt32, hooks: Hooks
    ) throws {
        self.environment = environment
        self.context = context
        self.maximumStreams = maximumStreams
        self.hooks = hooks
        listener = try Listener.listen(loop: loop, host: host, port: port)
        listener.onConnection = { [unowned self] stream in accept(stream) }
    }

    private func accept(_ stream: Stream) {
        guard !refusesConnections, connections.count < Self.connectionsMax else {
            stream.close()
            return
        }
        lastNumber += 1
        do {
            let connection = try PushConnection(
                number: lastNumber, stream: stream, tls: context.makeEngine(),
                environment: environment, service: self)
            connections[lastNumber] = connection
            connection.start()
            tell(connection, "opened")
        } catch {
            stream.close()
        }
    }

    func decide(
        _ push: ReceivedPush, _ connection: PushConnection, _ state: inout ConnectionState
    ) -> PushDecision {
        hooks.decide(push, connection.number, &state)
    }

    func freshID() -> String { hooks.freshID() }

    func closed(_ connection: PushConnection, _ text: String) {
        connections[connection.number] = nil
        tell(connection, "closed: \(text)")
    }

    func noted(_ connection: PushConnection, _ text: String) { tell(connection, text) }

    func linted(_ connection: PushConnection, _ lint: Lint) {
        var event = SimulatorEvent(.connection)
        event.connection = connection.number
        event.environment = environment
        event.lints = [lint]
        hooks.tell(event)
    }

    private func tell(_ connection: PushConnection, _ text: String) {
        var event = SimulatorEvent(.connection)
        event.connection = connection.number
        event.environment = environment
        event.text = text
        hooks.tell(event)
    }

    func goAway(unprocessed: Int, code: HTTP2ErrorCode, reason: String?) {
        for number in connections.keys.sorted() {
            connections[number]?.goAway(unprocessed: unprocessed, code: code, reason: reason)
        }
    }

    /// Cuts every connection without a word.
    func closeConnections() {
        for number in connections.keys.sorted() { connections[number]?.close("cut") }
    }

    func close() {
        listener.close()
        closeConnections()
    }
}
