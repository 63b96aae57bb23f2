import Crypto
import EventLoop
import HTTP2

/// What a scripted APNs does with one request.
enum ScriptedReply: Sendable {
    case answer(Int, headers: [HTTP2Header] = [], body: String = "")
    /// Nothing, for now; `answerHeld` may answer later.
    case hold
    case refuse

    /// Its body ends before it should: the client's HTTP/2 calls the stream broken.
    static func half(_ status: Int) -> Self {
        .answer(
            status, headers: [HTTP2Header("content-length", "1000")], body: #"{"reason":"BadDev"#)
    }

    static func refusal(
        _ status: Int, _ reason: String, timestamp: UInt64? = nil, headers: [HTTP2Header] = []
    ) -> Self {
        let time = timestamp.map { #","timestamp":\#($0)"# } ?? ""
        return .answer(status, headers: headers, body: #"{"reason":"\#(reason)"\#(time)}"#)
    }
}

/// A request as it arrived.
struct SeenRequest: Sendable {
    let connection: Int
    let stream: HTTP2StreamID
    let headers: [HTTP2ReceivedHeader]
    let body: [UInt8]

    subscript(_ name: String) -> String { headers[name] ?? "" }
    var id: String { self["apns-id"] }
    var token: String { String(self["authorization"].dropFirst("bearer ".count)) }
    var keyID: String {
        (try? CompactToken(token, maximumBytes: 4096))?.keyIdentifier ?? ""
    }
}

/// An HTTP/2 TLS server on a thread of its own that does what a test says.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (SeenRequest) -> ScriptedReply

    let port: UInt16
    private let thread: LoopThread
    private let box: Box

    /// State of the loop, and what the test reads of it under `lock`.
    final class Box: @unchecked Sendable {
        // @unchecked: `connections`, `listener` and `context` are the loop's; the rest is under
        // `lock`.
        let lock = Lock()
        var connections: [Int: ScriptedConnection] = [:]
        var listener: Listener?
        var context: TLSContext?
        var script: Script
        var settings: HTTP2ServerSettings
        var seen: [SeenRequest] = []
        var held: [SeenRequest] = []
        var accepted = 0
        var closed: Set<Int> = []
        var resets = 0
        var troubles: [String] = []
        var pings = 0
        /// Of the client certificates that came.
        var subjects: [String] = []
        /// HTTP/2 output stays unsent, as on a connection that is stuck.
        var isMute = false

        init(script: @escaping Script, settings: HTTP2ServerSettings) {
            self.script = script
            self.settings = settings
        }
    }

    init(
        _ certificate: IssuedCertificate, port: UInt16 = 0, streams: UInt32 = 100,
        clientAuthorities: String? = nil, script: @escaping Script
    ) throws {
        var settings = HTTP2ServerSettings()
        settings.maximumConcurrentStreams = streams
        let box = Box(script: script, settings: settings)
        self.box = box
        (thread, self.port) = try LoopThread.startReturning(name: "apns") { loop in
            box.context = try TLSContext.server(
                certificateChain: Array(certificate.certificatePEM.utf8),
                privateKey: Array(certificate.privateKeyPEM.utf8), protocols: ["h2"],
                minimumVersion: .tls12,
                clientAuthorities: clientAuthorities.map { Array($0.utf8) })
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: port)
            listener.onConnection = { stream in
                guard let context = box.context else { return stream.close() }
                let number = box.lock.withLock {
                    box.accepted += 1
                    return box.accepted
                }
                box.connections[number] = ScriptedConnection(
                    number: number, stream: stream, tls: context.makeEngine(), box: box)
            }
            box.listener = listener
            return listener.port
        }
    }

    // MARK: What happened

    var seen: [SeenRequest] { box.lock.withLock { box.seen } }
    var held: [SeenRequest] { box.lock.withLock { box.held } }
    var accepted: Int { box.lock.withLock { box.accepted } }
    var closed: Set<Int> { box.lock.withLock { box.closed } }
    var resets: Int { box.lock.withLock { box.resets } }
    var troubles: [String] { box.lock.withLock { box.troubles } }
    var subjects: [String] { box.lock.withLock { box.subjects } }
    var pings: Int { box.lock.withLock { box.pings } }

    // MARK: What to do

    /// Forgets the requests seen so far.
    func forget() { box.lock.withLock { box.seen = [] } }

    func setScript(_ script: @escaping Script) { box.lock.withLock { box.script = script } }

    /// From now on HTTP/2 frames stay here; `false` sends what gathered.
    func mute(_ isMute: Bool) {
        box.lock.withLock { box.isMute = isMute }
        guard !isMute else { return }
        perform { box in for connection in Array(box.connections.values) { connection.flush() } }
    }

    func answerHeld(_ request: SeenRequest, _ status: Int, body: String = "") {
        box.lock.withLock {
            box.held.removeAll {
                $0.connection == request.connection && $0.stream == request.stream
            }
        }
        perform { box in
            box.connections[request.connection]?.answer(request.stream, status, body)
        }
    }

    func allow(_ streams: UInt32) {
        perform { box in
            box.lock.withLock { box.settings.maximumConcurrentStreams = streams }
            for connection in Array(box.connections.values) {
                try? connection.http?.setMaximumConcurrentStreams(streams)
                connection.flush()
            }
        }
    }

    func goAway(
        _ connection: Int, last: HTTP2StreamID?, code: HTTP2ErrorCode = .noError,
        debug: String = ""
    ) {
        perform { box in
            guard let found = box.connections[connection] else { return }
            try? found.http?.goAway(lastStream: last, code: code, debugData: Array(debug.utf8))
            found.flush()
        }
    }

    func cut(_ connection: Int) {
        perform { box in box.connections[connection]?.close() }
    }

    func stop() {
        thread.stop()
        thread.join()
    }

    private func perform(_ body: @escaping @Sendable (Box) -> Void) {
        let box = self.box
        thread.perform { _ in body(box) }
    }
}

/// One accepted connection of the scripted server. Loop-confined.
final class ScriptedConnection {
    let number: Int
    private let stream: EventLoop.Stream
    private let tls: TLSEngine
    private unowned let box: ScriptedServer.Box
    private(set) var http: HTTP2ServerEngine?

    init(number: Int, stream: EventLoop.Stream, tls: TLSEngine, box: ScriptedServer.Box) {
        self.number = number
        self.stream = stream
        self.tls = tls
        self.box = box
        stream.onBytes = { [unowned self] in self.received($0) }
        stream.onEnd = { [unowned self] in self.close() }
        stream.onFailure = { [unowned self] _ in self.close() }
        stream.startReading()
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var events: [HTTP2ServerEvent] = []
        do {
            try tls.received(bytes) { plaintext in
                self.makeEngine()
                if let http = self.http, let more = try? http.received(plaintext) {
                    events += more
                }
            }
        } catch {
            trouble("tls: \(error)")
            tls.takeOutput { _ = stream.write($0) }
            return close()
        }
        if tls.isHandshakeComplete { makeEngine() }
        for event in events { handle(event) }
        tls.takeOutput { _ = stream.write($0) }
        flush()
        if tls.peerClosed { close() }
    }

    private func makeEngine() {
        guard http == nil else { return }
        if let subject = tls.peerCertificateSubject {
            box.lock.withLock { box.subjects.append(subject) }
        }
        http = try? HTTP2ServerEngine(settings: box.lock.withLock { box.settings })
    }

    private func handle(_ event: HTTP2ServerEvent) {
        switch event {
        case .request(let id, let headers, let body):
            let request = SeenRequest(
                connection: number, stream: id, headers: headers, body: body)
            let script = box.lock.withLock {
                box.seen.append(request)
                return box.script
            }
            switch script(request) {
            case .answer(let status, let headers, let body):
                answer(id, status, body, headers: headers)
            case .hold: box.lock.withLock { box.held.append(request) }
            case .refuse: http?.resetStream(id, code: .refusedStream)
            }
        case .refused(let id): trouble("stream \(id) above the limit")
        case .violation(let text): trouble(text)
        case .priorityFrameSeen: trouble("PRIORITY")
        case .requestTooLarge: trouble("too large")
        case .closed(let id, let code):
            box.lock.withLock {
                if code == .cancel { box.resets += 1 }
                box.held.removeAll { $0.connection == number && $0.stream == id }
            }
        case .ping: box.lock.withLock { box.pings += 1 }
        case .settingsAcknowledged, .goAway: break
        }
    }

    private func trouble(_ text: String) { box.lock.withLock { box.troubles.append(text) } }

    func answer(
        _ id: HTTP2StreamID, _ status: Int, _ body: String, headers: [HTTP2Header] = []
    ) {
        _ = try? http?.respond(id, status: status, headers: headers, body: Array(body.utf8))
        flush()
    }

    func flush() {
        guard let http, !box.lock.withLock({ box.isMute }) else { return }
        while http.wantsOutput {
            let bytes = http.takeOutput(maximumBytes: 16_384)
            guard !bytes.isEmpty else { break }
            bytes.withUnsafeBytes { try? tls.send($0) }
            tls.takeOutput { _ = stream.write($0) }
        }
        for event in http.takeEvents() { handle(event) }
        if http.isFinished { close() }
    }

    func close() {
        stream.close()
        box.lock.withLock { _ = box.closed.insert(number) }
        box.connections[number] = nil
    }
}
