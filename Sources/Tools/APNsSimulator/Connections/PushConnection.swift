internal import Crypto
internal import EventLoop
internal import HTTP2

/// What is done with one request.
enum PushDecision {
    case answer(Answer)
    /// The stream stays open without an answer.
    case silence
    case reset(HTTP2ErrorCode)
}

/// One provider's connection: TLS, HTTP/2, and what APNs remembers of it. Loop-confined.
final class PushConnection {
    private static let outputStep = 16 * 1024
    /// A provider that does not read its answers is not read from either.
    private static let unsentMax = 1 << 20
    static let handshakeMilliseconds: UInt64 = 10_000
    static let delayedMax = 10_000

    let number: UInt64
    private(set) var state: ConnectionState
    private unowned let service: PushService
    private let stream: Stream
    private let tls: TLSEngine
    private let http: HTTP2ServerEngine
    private var open: [HTTP2StreamID] = []
    private var delayed: [(due: UInt64, stream: HTTP2StreamID, answer: Answer)] = []
    private var timer: LoopTimer?
    private var isClosed = false
    private var isProven = false

    init(
        number: UInt64, stream: Stream, tls: TLSEngine, environment: APNsEnvironment,
        service: PushService
    ) throws {
        self.number = number
        self.stream = stream
        self.tls = tls
        self.service = service
        state = ConnectionState(environment: environment)
        var settings = HTTP2ServerSettings()
        // One stream until a provider token has been accepted (Apple: Sending notification
        // requests to APNs).
        settings.maximumConcurrentStreams = 1
        settings.maximumBodyBytes = 16 * 1024
        http = try HTTP2ServerEngine(settings: settings)
    }

    func start() {
        let timer = stream.loop.timer { [unowned self] in timerFired() }
        self.timer = timer
        timer.start(afterMilliseconds: Self.handshakeMilliseconds)
        stream.setNoDelay(true)
        stream.onBytes = { [unowned self] bytes in received(bytes) }
        stream.onEnd = { [unowned self] in close("end") }
        stream.onFailure = { [unowned self] error in close(error.description) }
        stream.onDrained = { [unowned self] in
            flush()
            if !isClosed { stream.startReading() }
        }
        stream.startReading()
    }

    func close(_ text: String) {
        guard !isClosed else { return }
        isClosed = true
        timer?.close()
        timer = nil
        delayed = []
        tls.close()
        writeSealed()
        // What the kernel does not take at once is not waited for: the peer is going too.
        stream.close()
        service.closed(self, text)
    }

    // MARK: In

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var plaintext: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) {
            try tls.received(bytes) { plaintext += $0 }
        } catch {
            failure = error
        }
        if tls.isHandshakeComplete, delayed.isEmpty { timer?.stop() }
        if !plaintext.isEmpty { take(plaintext) }
        if isClosed { return }
        flush()
        if let failure {
            close("tls: \(failure)")
        } else if tls.peerClosed {
            close("end")
        }
    }

    private func take(_ plaintext: [UInt8]) {
        var events: [HTTP2ServerEvent] = []
        do {
            events = try plaintext.withUnsafeBytes { try http.received($0) }
        } catch {
            events = http.takeEvents()
            service.noted(self, "http2: \(error)")
        }
        for event in events where !isClosed { handle(event) }
    }

    private func handle(_ event: HTTP2ServerEvent) {
        switch event {
        case .request(let id, let headers, let body):
            request(id, Self.push(headers, body, isTooLong: false))
        case .requestTooLarge(let id, let headers, .body):
            request(id, Self.push(headers, [], isTooLong: true))
        case .requestTooLarge(let id, _, .headerList):
            http.resetStream(id, code: .enhanceYourCalm)
        case .closed(let id, _):
            open.removeAll { $0 == id }
            delayed.removeAll { $0.stream == id }
        case .priorityFrameSeen: service.linted(self, .priorityFrame)
        case .violation(let text): service.noted(self, "violation: \(text)")
        case .refused(let id): service.noted(self, "stream \(id) refused")
        case .goAway, .settingsAcknowledged, .ping: break
        }
    }

    private static func push(
        _ headers: [HTTP2ReceivedHeader], _ body: [UInt8], isTooLong: Bool
    ) -> ReceivedPush {
        ReceivedPush(
            method: headers[":method"] ?? "", path: headers[":path"] ?? "",
            headers: headers.filter { !$0.name.hasPrefix(":") }.map {
                ReceivedPush.Header($0.name, $0.value)
            },
            body: body, bodyIsTooLong: isTooLong,
            pathWasIndexed: headers.contains {
                $0.name == ":path" && $0.indexing == .incremental
            })
    }

    private func request(_ id: HTTP2StreamID, _ push: ReceivedPush) {
        open.append(id)
        let decision = service.decide(push, self, &state)
        if state.isProven, !isProven {
            isProven = true
            try? http.setMaximumConcurrentStreams(service.maximumStreams)
        }
        switch decision {
        case .silence: break
        case .reset(let code): http.resetStream(id, code: code)
        case .answer(let answer):
            let delay = service.delayMilliseconds
            guard delay > 0, delayed.count < Self.delayedMax else { return respond(id, answer) }
            let due = stream.loop.now + delay
            let place = delayed.firstIndex { $0.due > due } ?? delayed.count
            delayed.insert((due, id, answer), at: place)
            startTimer()
        }
    }

    // MARK: Out

    private func respond(_ id: HTTP2StreamID, _ answer: Answer) {
        let body = answer.body
        var headers = [HTTP2Header("apns-id", answer.apnsID, indexing: .never)]
        if state.environment == .development {
            headers.append(HTTP2Header("apns-unique-id", service.freshID(), indexing: .never))
        }
        if !body.isEmpty { headers.append(HTTP2Header("content-type", "application/json")) }
        do throws(HTTP2Error) {
            try http.respond(id, status: answer.status, headers: headers, body: body)
        } catch {
            http.resetStream(id, code: .internalError)
        }
    }

    /// Sends what waits, as far as the peer reads.
    private func flush() {
        while tls.isHandshakeComplete, stream.unsentBytes < Self.unsentMax {
            let bytes = http.takeOutput(maximumBytes: Self.outputStep)
            if bytes.isEmpty { break }
            guard (try? bytes.withUnsafeBytes({ try tls.send($0) })) != nil else { break }
            writeSealed()
        }
        writeSealed()
        for event in http.takeEvents() { handle(event) }
        if stream.unsentBytes >= Self.unsentMax { stream.stopReading() }
        if http.isFinished { close("finished") }
    }

    private func writeSealed() {
        tls.takeOutput { stream.write($0) }
    }

    private func startTimer() {
        guard let first = delayed.first else { return }
        let now = stream.loop.now
        timer?.start(afterMilliseconds: first.due > now ? first.due - now : 0)
    }

    private func timerFired() {
        guard tls.isHandshakeComplete else { return close("handshake timeout") }
        let now = stream.loop.now
        while let first = delayed.first, first.due <= now {
            delayed.removeFirst()
            respond(first.stream, first.answer)
        }
        startTimer()
        flush()
    }

    /// Ends the connection with a GOAWAY that leaves the newest `unprocessed` open streams out.
    func goAway(unprocessed: Int, code: HTTP2ErrorCode, reason: String?) {
        guard tls.isHandshakeComplete else { return close("goaway") }
        let kept = open.sorted().dropLast(max(0, unprocessed))
        let last: HTTP2StreamID? =
            unprocessed > 0 && !open.isEmpty ? kept.last ?? (open.min() ?? 2) - 2 : nil
        let debug = reason.map { Array(#"{"reason":"\#($0)"}"#.utf8) } ?? []
        do throws(HTTP2Error) {
            try http.goAway(lastStream: last.map { max(0, $0) }, code: code, debugData: debug)
        } catch {
            service.noted(self, "goaway: \(error)")
        }
        flush()
    }
}
