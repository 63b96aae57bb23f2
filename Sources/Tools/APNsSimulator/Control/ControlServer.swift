internal import EventLoop
internal import Foundation

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
    private var events: (UInt64, Int) -> (events: ArraySlice<SimulatorEvent>, lost: UInt64) = {
        _, _ in ([], 0)
    }
    private var isPumping = false
    /// The loopback port, if there is one.
    private(set) var port: UInt16?

    init(loop: Loop) { self.loop = loop }

    func listen(
        path: String?, port: UInt16?, answer: @escaping (ControlRequest) -> ControlResponse,
        events: @escaping (UInt64, Int) -> (events: ArraySlice<SimulatorEvent>, lost: UInt64)
    ) throws(StreamError) {
        self.answer = answer
        self.events = events
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
        answer = { _ in ControlResponse() }
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
    }

    fileprivate func answered(_ request: ControlRequest) -> ControlResponse { answer(request) }

    fileprivate func events(after: UInt64) -> (events: ArraySlice<SimulatorEvent>, lost: UInt64) {
        events(after, Self.eventsPerStep)
    }

    /// The log has grown: subscribers are told once per turn of the loop.
    func eventsArrived() {
        guard !isPumping, connections.values.contains(where: \.isSubscribed) else { return }
        isPumping = true
        loop.nextTurn { [weak self] in
            guard let self else { return }
            self.isPumping = false
            for connection in Array(self.connections.values) { connection.pump() }
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
    private var cursor: UInt64?
    private var isClosed = false

    var isSubscribed: Bool { cursor != nil }

    init(stream: EventLoop.Stream, server: ControlServer) {
        self.stream = stream
        self.server = server
        encoder.outputFormatting = [.withoutEscapingSlashes]
    }

    func start() {
        stream.onBytes = { [unowned self] bytes in received(bytes) }
        stream.onEnd = { [unowned self] in close() }
        stream.onFailure = { [unowned self] _ in close() }
        stream.onDrained = { [unowned self] in
            takeLines()
            pump()
            if !isClosed { stream.startReading() }
        }
        stream.startReading()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        stream.close()
        server.closed(self)
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
            response.error = "no command: \(error)"
            send(response)
            return
        }
        if request.cmd == .events {
            cursor = request.after ?? 0
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
        while !isClosed, let cursor, stream.unsentBytes < ControlServer.unsentMax {
            let (events, lost) = server.events(after: cursor)
            guard let last = events.last else { return }
            for event in events {
                var response = ControlResponse()
                response.event = event
                if lost > 0, event.n == events.first?.n { response.lost = lost }
                send(response)
            }
            self.cursor = last.n
        }
    }
}
