internal import Crypto
internal import EventLoop
internal import HTTP2
internal import Model

/// What is done with one request.
enum PushDecision {
    /// `delay`: in milliseconds, beside that of all answers.
    case answer(Answer, delay: UInt64 = 0)
    /// The stream stays open without an answer.
    case silence
    case reset(HTTP2ErrorCode)
    case goAway(unprocessed: Int, code: HTTP2ErrorCode, reason: String?, answer: Answer?)
    case cut
    case halfClose
}

/// One provider's connection: TLS, HTTP/2, and what APNs remembers of it. Loop-confined.
final class PushConnection {
    private static let outputStep = 16 * 1024
    /// A provider that does not read its answers is not read from either.
    private static let unsentMax = 1 << 20
    static let handshakeMilliseconds: UInt64 = 10_000
    static let delayedMax = 10_000

    let number: UInt64
    let openedAt: Timestamp
    private(set) var state: ConnectionState
    var peerAddress: String { stream.peerAddress }
    private unowned let service: PushService
    private let stream: Stream
    private let tls: TLSEngine
    /// `nil` until the handshake is done: what SETTINGS say depends on the certificate.
    private var http: HTTP2ServerEngine?
    private var open: [HTTP2StreamID] = []
    private var delayed: [(due: UInt64, stream: HTTP2StreamID, answer: Answer)] = []
    private var timer: LoopTimer?
    private var isClosed = false
    private var isEnding = false
    private var isHalfClosed = false

    init(
        number: UInt64, stream: Stream, tls: TLSEngine, environment: APNsEnvironment,
        service: PushService
    ) {
        self.number = number
        self.stream = stream
        self.tls = tls
        self.service = service
        openedAt = service.now
        state = ConnectionState(environment: environment)
    }

    /// - Parameter isSilent: nothing is read and nothing said.
    func start(isSilent: Bool = false) {
        let timer = stream.loop.timer { [unowned self] in timerFired() }
        self.timer = timer
        timer.start(afterMilliseconds: Self.handshakeMilliseconds)
        stream.setNoDelay(true)
        stream.onBytes = { [unowned self] bytes in received(bytes) }
        stream.onEnd = { [unowned self] in close("end", byPeer: true) }
        stream.onFailure = { [unowned self] error in close(error.description, byPeer: true) }
        stream.onDrained = { [unowned self] in
            flush()
            if !isClosed { stream.startReading() }
        }
        if !isSilent { stream.startReading() }
    }

    func close(_ text: String, byPeer: Bool = false) {
        guard !isClosed else { return }
        isClosed = true
        timer?.close()
        timer = nil
        delayed = []
        tls.close()
        if !isHalfClosed { writeSealed() }
        // What the kernel does not take at once is not waited for: the peer is going too.
        stream.close()
        service.closed(self, text, byPeer: byPeer && !isEnding)
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
        if tls.isHandshakeComplete, http == nil, failure == nil { handshakeEnded() }
        if isClosed { return }
        if !plaintext.isEmpty { take(plaintext) }
        if isClosed { return }
        flush()
        if let failure {
            close("tls: \(failure)")
        } else if tls.peerClosed {
            close("end", byPeer: true)
        }
    }

    private func handshakeEnded() {
        timer?.stop()
        let (certificate, refusal) = service.judge(tls.peerCertificateDigest)
        var settings = HTTP2ServerSettings()
        settings.maximumConcurrentStreams = state.opened(
            certificate: certificate, limits: service.limits, now: service.now)
        settings.maximumBodyBytes = 16 * 1024
        if let bytes = service.headerTableBytes { settings.headerTableBytes = bytes }
        do {
            http = try HTTP2ServerEngine(settings: settings)
        } catch {
            return close("http2: \(error)")
        }
        if let refusal {
            let rule: ConnectionRule =
                refusal == .badCertificate ? .certificate : .certificateEnvironment
            end(rule, reason: refusal.rawValue, isCalm: false, last: 0)
        } else {
            startTimer()
        }
    }

    private func take(_ plaintext: [UInt8]) {
        guard let http else { return }
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
            service.noted(self, "stream \(id) has too large headers", .headerSize)
            http?.resetStream(id, code: .enhanceYourCalm)
        case .closed(let id, _):
            open.removeAll { $0 == id }
            delayed.removeAll { $0.stream == id }
        case .priorityFrameSeen: lint(.priorityFrame)
        case .violation(let text): service.noted(self, "violation: \(text)")
        case .refused(let id): service.noted(self, "stream \(id) refused", .streams)
        case .ping:
            react(state.pinged(limits: service.limits, now: service.now))
            startTimer()
        case .goAway, .settingsAcknowledged: break
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
        startTimer()
        switch decision {
        case .silence: break
        case .reset(let code): http?.resetStream(id, code: code)
        case .answer(let answer, let delay): answerLater(id, answer, delay)
        case .goAway(let unprocessed, let code, let reason, let answer):
            if let answer { answerLater(id, answer, 0) }
            goAway(unprocessed: unprocessed, code: code, reason: reason)
        case .cut: close("cut")
        case .halfClose:
            isHalfClosed = true
            stream.shutdown()
        }
    }

    private func answerLater(_ id: HTTP2StreamID, _ answer: Answer, _ own: UInt64) {
        let delay = service.delayMilliseconds + own
        guard delay > 0, delayed.count < Self.delayedMax else { return respond(id, answer) }
        let due = stream.loop.now + delay
        let place = delayed.firstIndex { $0.due > due } ?? delayed.count
        delayed.insert((due, id, answer), at: place)
        startTimer()
    }

    // MARK: Out

    private func respond(_ id: HTTP2StreamID, _ answer: Answer) {
        let body = answer.body
        var headers = [HTTP2Header("apns-id", answer.apnsID, indexing: .never)]
        if state.environment == .development {
            headers.append(HTTP2Header("apns-unique-id", service.freshID(), indexing: .never))
        }
        if let skew = service.dateSkewMilliseconds {
            headers.append(HTTP2Header("date", HTTPDate.text(service.now, skew: skew)))
        }
        if !body.isEmpty { headers.append(HTTP2Header("content-type", "application/json")) }
        // SETTINGS that allow fewer streams leave before the answer that is the reason.
        react(state.answered(answer.status, answer.reason, limits: service.limits)) {
            do throws(HTTP2Error) {
                try http?.respond(id, status: answer.status, headers: headers, body: body)
            } catch {
                http?.resetStream(id, code: .internalError)
            }
        }
    }

    private func react(
        _ reactions: [ConnectionReaction], then answer: () -> Void = {}
    ) {
        for case .allow(let streams) in reactions { setStreams(streams) }
        answer()
        for reaction in reactions {
            switch reaction {
            case .allow: break
            case .end(let rule, let reason, let isCalm):
                end(rule, reason: reason, isCalm: isCalm, last: nil)
            case .lint(let lint): self.lint(lint)
            }
        }
    }

    private func lint(_ lint: Lint) {
        service.linted(self, lint)
        if service.isStrict { end(.lint, reason: lint.rawValue, isCalm: true, last: nil) }
    }

    /// Another limit, by the rules or by a fault.
    func setStreams(_ streams: UInt32) {
        try? http?.setMaximumConcurrentStreams(streams)
    }

    private func end(_ rule: ConnectionRule, reason: String, isCalm: Bool, last: HTTP2StreamID?) {
        guard !isEnding else { return }
        isEnding = true
        service.noted(self, "goaway \(reason)", rule)
        let debug = reason.isEmpty ? [] : Array(#"{"reason":"\#(reason)"}"#.utf8)
        try? http?.goAway(
            lastStream: last, code: isCalm ? .enhanceYourCalm : .noError, debugData: debug)
    }

    /// Sends what waits, as far as the peer reads.
    func flush() {
        guard !isClosed else { return }
        guard let http else { return writeSealed() }
        while !isHalfClosed, tls.isHandshakeComplete, stream.unsentBytes < Self.unsentMax {
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
        guard !isHalfClosed else { return }
        tls.takeOutput { stream.write($0) }
    }

    // MARK: Time

    /// For the next late answer, or for the end of a silent connection.
    func startTimer() {
        guard http != nil, !isClosed else { return }
        var wait: UInt64?
        if let first = delayed.first {
            let now = stream.loop.now
            wait = first.due > now ? first.due - now : 0
        }
        if let end = state.idleEnd(service.limits) {
            wait = min(wait ?? .max, end.since(service.now))
        }
        if let wait { timer?.start(afterMilliseconds: wait) } else { timer?.stop() }
    }

    private func timerFired() {
        guard tls.isHandshakeComplete else { return close("handshake timeout") }
        let now = stream.loop.now
        while let first = delayed.first, first.due <= now {
            delayed.removeFirst()
            respond(first.stream, first.answer)
        }
        if let end = state.idleEnd(service.limits), end <= service.now {
            self.end(
                .idle, reason: Refusal.idleTimeout.rawValue, isCalm: false, last: nil)
        } else {
            startTimer()
        }
        flush()
    }

    /// Ends the connection with a GOAWAY that leaves the newest `unprocessed` open streams out.
    func goAway(unprocessed: Int, code: HTTP2ErrorCode, reason: String?) {
        guard let http, !isClosed else { return close("goaway") }
        isEnding = true
        let kept = open.sorted().dropLast(max(0, unprocessed))
        let last: HTTP2StreamID? =
            unprocessed > 0 && !open.isEmpty ? kept.last ?? (open.min() ?? 2) - 2 : nil
        let debug = reason.map { Array(#"{"reason":"\#($0)"}"#.utf8) } ?? []
        do throws(HTTP2Error) {
            try http.goAway(lastStream: last.map { max(0, $0) }, code: code, debugData: debug)
        } catch {
            service.noted(self, "goaway: \(error)")
        }
    }
}
