internal import EventLoop
internal import FoundationEssentials

/// The control socket: lines of JSON both ways. Loop-confined.
final class ControlServer {
    static let connectionsMax = 64
    static let lineBytesMax = 256 * 1024
    /// Nobody who does not read makes the simulator hold more than about this much.
    static let unsentMax = 1 << 20
    static let eventsPerStep = 256

    private let loop: Loop
    private var listeners: [Listener] = []
    private var connections: [ObjectIdentifier: ControlConnection] = [:]
    private var answer: (ControlRequest) -> ControlResponse = { _ in ControlResponse() }
    fileprivate private(set) var source = EventSource()
    private var isPumping = false
    /// Events wait for a subscriber that is to miss nothing.
    private var isHolding = false
    private var patience: LoopTimer?
    /// The loopback port, if there is one.
    private(set) var port: UInt16?

    init(loop: Loop) { self.loop = loop }

    func listen(
        path: String?, port: UInt16?, answer: @escaping (ControlRequest) -> ControlResponse,
        source: EventSource
    ) throws(StreamError) {
        self.answer = answer
        self.source = source
        patience = loop.timer { [unowned self] in giveUp() }
        if let path { listeners.append(try Listener.listen(loop: loop, path: path)) }
        if let port {
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: port)
            listeners.append(listener)
            self.port = listener.port
        }
        for listener in listeners {
            listener.onConnection = { [unowned self] stream in accept(stream) }
        }
    }

    func close() {
        for listener in listeners { listener.close() }
        for connection in connections.values { connection.close() }
        connections = [:]
        patience?.close()
        patience = nil
        answer = { _ in ControlResponse() }
        source = EventSource()
    }

    private func accept(_ stream: EventLoop.Stream) {
        guard connections.count < Self.connectionsMax else {
            stream.close()
            return
        }
        let connection = ControlConnection(stream: stream, server: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }

    fileprivate func closed(_ connection: ControlConnection) {
        connections[ObjectIdentifier(connection)] = nil
        release()
    }

    fileprivate func answered(_ request: ControlRequest) -> ControlResponse { answer(request) }

    /// The log has grown: subscribers are told once per turn of the loop.
    func eventsArrived() {
        holdIfBehind()
        guard !isPumping, connections.values.contains(where: \.isSubscribed) else { return }
        isPumping = true
        loop.nextTurn { [weak self] in
            guard let self else { return }
            self.isPumping = false
            for connection in Array(self.connections.values) { connection.pump() }
        }
    }
}

extension ControlServer {
    // MARK: Nothing is lost

    /// How far behind a subscriber that is to miss nothing may be before the devices wait; what
    /// happens all the same (commands, pushes, time) has the other half of the log.
    private var holdAbove: UInt64 { UInt64(source.limit) / 2 }

    private func isBehind(_ connection: ControlConnection, _ most: UInt64) -> Bool {
        connection.lag(source.head()) > most
    }

    private func holdIfBehind() {
        guard !isHolding else { return }
        let behind = connections.values.filter { isBehind($0, holdAbove) }
        guard !behind.isEmpty else { return }
        // Perhaps nobody has asked it yet in this turn of the loop.
        for connection in behind { connection.pump() }
        guard connections.values.contains(where: { isBehind($0, holdAbove) }) else { return }
        isHolding = true
        patience?.start(afterMilliseconds: source.patience)
        source.hold(true)
    }

    /// A subscriber took something, or has gone.
    fileprivate func release() {
        guard isHolding else { return }
        guard connections.values.contains(where: { isBehind($0, holdAbove / 2) }) else {
            isHolding = false
            patience?.stop()
            return source.hold(false)
        }
        patience?.start(afterMilliseconds: source.patience)
    }

    private func giveUp() {
        for connection in connections.values where isBehind(connection, holdAbove / 2) {
            connection.close()
        }
    }
}

/// One client of the control socket.
private final class ControlConnection {
    private let stream: EventLoop.Stream
    private unowned let server: ControlServer
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()
    private var pending: [UInt8] = []
    /// How much of `pending` is known to hold no line end.
    private var searched = 0
    private var subscription: Subscription?
    private var isClosed = false

    var isSubscribed: Bool { subscription != nil }

    /// Events it has not had and must not miss.
    func lag(_ head: UInt64) -> UInt64 {
        guard let subscription, subscription.isLossless, subscription.cursor < head else {
            return 0
        }
        return head - subscription.cursor
    }

    init(stream: EventLoop.Stream, server: ControlServer) {
        self.stream = stream
        self.server = server
        encoder.outputFormatting = [.withoutEscapingSlashes]
    }

    func start() {
        stream.onBytes = { [unowned self] bytes in received(bytes) }
        stream.onEnd = { [unowned self] in close() }
        stream.onFailure = { [unowned self] _ in close() }
        stream.onDrained = { [unowned self] in drained() }
        stream.startReading()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        stream.close()
        server.closed(self)
    }

    private func drained() {
        takeLines()
        pump()
        if !isClosed { stream.startReading() }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        pending += bytes
        takeLines()
    }

    private func takeLines() {
        while !isClosed {
            guard stream.unsentBytes < ControlServer.unsentMax else {
                stream.stopReading()
                return
            }
            guard let end = pending[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
                searched = pending.count
                if pending.count > ControlServer.lineBytesMax { close() }
                return
            }
            let line = Data(pending[..<end])
            pending.removeFirst(end + 1)
            searched = 0
            if !line.isEmpty { handle(line) }
        }
    }

    private func handle(_ line: Data) {
        let request: ControlRequest
        do {
            request = try decoder.decode(ControlRequest.self, from: line)
        } catch {
            var response = ControlResponse()
            response.ok = false
            response.error = "no command: \(ErrorWords.of(error))"
            send(response)
            return
        }
        if request.cmd == .events {
            subscription = Subscription(request)
            var response = ControlResponse()
            response.id = request.id
            send(response)
            pump()
        } else {
            var response = server.answered(request)
            response.id = request.id
            send(response)
        }
    }

    private func send(_ response: ControlResponse) {
        guard var data = try? encoder.encode(response) else { return }
        data.append(UInt8(ascii: "\n"))
        data.withUnsafeBytes { _ = stream.write($0) }
    }

    /// Sends a subscriber what it has not had, as far as it reads.
    func pump() {
        var hasMoved = false
        while !isClosed, let cursor = subscription?.cursor,
            stream.unsentBytes < ControlServer.unsentMax
        {
            let (events, lost) = server.source.events(cursor, ControlServer.eventsPerStep)
            guard !events.isEmpty, let isLossless = subscription?.isLossless else { break }
            // Better an end that it notices than a gap.
            if lost > 0, isLossless { return close() }
            for line in subscription?.lines(events, lost: lost) ?? [] { send(line) }
            hasMoved = true
        }
        if hasMoved { server.release() }
    }
}
