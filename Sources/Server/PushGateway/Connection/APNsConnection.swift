import Crypto
import EventLoop
import Feed
import HTTP2
import Model
import PushPool
import Telemetry
import Wake

/// Where a connection goes.
struct APNsEndpoint: Equatable {
    var host: String
    var port: UInt16

    /// `:authority`: without the port that https implies.
    var authority: String { port == 443 ? host : "\(host):\(port)" }
}

/// One HTTP/2 connection to APNs: socket, TLS and engine joined. It decides nothing: what is sent
/// and when it is closed is said to it. Loop-confined.
final class APNsConnection {
    /// The answer to one push, as far as it is there.
    private struct Answer {
        let stream: HTTP2StreamID
        var status: Int?
        var date: Int64?
        var retryAfter: Milliseconds?
        var id: WakeID?
        var body: [UInt8] = []
    }

    /// Unsent bytes above which nothing more should be submitted.
    private static let unsentMax = 256 * 1024
    /// A TLS record's worth.
    private static let recordBytes = 16 * 1024

    private let endpoint: APNsEndpoint
    private let loop: Loop
    private let tls: TLSEngine
    private let bytesSent: Counter
    /// Told from inside the loop's handlers, and from inside `submit` and `flush`.
    private let tell: ([ConnectionEvent]) -> Void
    private var http: HTTP2ClientEngine?
    private var dialing: Dialing?
    private var socket: EventLoop.Stream?
    private var answers: [UInt64: Answer] = [:]
    /// All answers of a connection tell the same clock: it is read from the first.
    private var knowsTime = false
    private var isUp = false
    private var isReceiving = false
    private var isBehind = false
    /// Why it is over.
    private(set) var end: ConnectionEnd?

    init(
        endpoint: APNsEndpoint, tls: TLSEngine, loop: Loop, bytesSent: Counter,
        tell: @escaping ([ConnectionEvent]) -> Void
    ) {
        self.endpoint = endpoint
        self.tls = tls
        self.loop = loop
        self.bytesSent = bytesSent
        self.tell = tell
    }

    /// Begins to connect; the name is looked up anew.
    func start(timeout: Milliseconds) {
        dialing = EventLoop.Stream.connect(
            loop: loop, host: endpoint.host, port: endpoint.port, timeoutMilliseconds: timeout
        ) { [unowned self] result in
            self.dialing = nil
            switch result {
            case .success(let socket): self.connected(socket)
            case .failure(let error): self.finish(.socket(error))
            }
        }
    }

    // MARK: - What is said to it

    /// Opens a stream; `flush()` sends it.
    func submit(_ push: HeldPush, tag: UInt64, token: String?) {
        guard let http, end == nil else { return tell([.notTaken(tag: tag)]) }
        do throws(HTTP2Error) {
            let stream = try http.submit(
                headers: push.headers(authority: endpoint.authority, token: token),
                body: push.job.request.payload, tag: tag)
            answers[tag] = Answer(stream: stream)
        } catch {
            switch error {
            case .streamsExhausted, .connectionEnding, .connection:
                tell([.notTaken(tag: tag)])
            case .invalidHeader, .headersTooLarge, .invalidArgument:
                tell([.impossible(tag: tag, "\(error)")])
            }
        }
    }

    /// Gives a stream up.
    func cancel(_ tag: UInt64) {
        guard let answer = answers.removeValue(forKey: tag) else { return }
        http?.reset(answer.stream)
    }

    func ping() { try? http?.ping(opaque: 0) }

    /// Sends what was submitted. While bytes are being received it waits for their end: what the
    /// answers of one read lead to leaves in as few TLS records as it fits.
    func flush() {
        guard let http, end == nil, !isReceiving else { return }
        while http.wantsOutput {
            let bytes = http.takeOutput(maximumBytes: Self.recordBytes)
            guard !bytes.isEmpty else { break }
            if let failure = seal(bytes) { return finishLater(.tls(failure)) }
            writeTLS()
        }
        if http.isFinished { return finishLater(.finished) }
        let unsent = socket?.unsentBytes ?? 0
        if unsent >= Self.unsentMax, !isBehind {
            isBehind = true
            tell([.behind])
        }
    }

    /// Ends at once, and tells nothing more.
    ///
    /// - Parameter saysGoodbye: tells APNs, if it is up.
    func close(saysGoodbye: Bool) {
        guard end == nil else { return }
        if saysGoodbye, let http, isUp {
            try? http.goAway()
            _ = seal(http.takeOutput(maximumBytes: Self.recordBytes))
            tls.close()
            writeTLS()
        }
        letGo(.closed)
    }

    // MARK: - The socket

    private func connected(_ socket: EventLoop.Stream) {
        self.socket = socket
        socket.onBytes = { [unowned self] bytes in self.received(bytes) }
        socket.onEnd = { [unowned self] in self.finish(.closedByPeer) }
        socket.onFailure = { [unowned self] error in self.finish(.socket(error)) }
        socket.onDrained = { [unowned self] in
            guard self.end == nil else { return }
            self.isBehind = false
            self.tell([.caughtUp])
        }
        socket.setNoDelay(true)
        socket.setKeepalive(Keepalive(idleSeconds: 60, intervalSeconds: 15, probes: 4))
        socket.startReading()
        do throws(TLSError) {
            try tls.startHandshake()
            writeTLS()
        } catch {
            writeTLS()
            finish(.tls(error))
        }
    }

    private func seal(_ bytes: [UInt8]) -> TLSError? {
        bytes.withUnsafeBytes { raw in
            do throws(TLSError) {
                try tls.send(raw)
                return nil
            } catch {
                return error
            }
        }
    }

    private func writeTLS() {
        tls.takeOutput { bytes in
            bytesSent.add(UInt64(bytes.count))
            _ = self.socket?.write(bytes)
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var events: [ConnectionEvent] = [.heard]
        let failure = take(bytes, &events)
        if let failure {
            flush()
            writeTLS()
            return finish(failure, after: events)
        }
        isReceiving = true
        tell(events)
        isReceiving = false
        flush()
        writeTLS()
        if tls.peerClosed { finish(.closedByPeer) }
    }

    private func take(
        _ bytes: UnsafeRawBufferPointer, _ events: inout [ConnectionEvent]
    ) -> ConnectionEnd? {
        var news: [HTTP2ClientEvent] = []
        var failure: ConnectionEnd?
        do throws(TLSError) {
            try tls.received(bytes) { plaintext in
                if self.http == nil { failure = failure ?? self.makeEngine() }
                guard failure == nil, let http = self.http else { return }
                do throws(HTTP2Error) {
                    news += try http.received(plaintext)
                } catch {
                    news += http.takeEvents()
                    failure = .http(error)
                }
            }
        } catch {
            failure = failure ?? .tls(error)
        }
        if failure == nil, tls.isHandshakeComplete, !isUp {
            if http == nil { failure = makeEngine() }
            isUp = failure == nil
            if isUp { events.append(.up) }
        }
        for event in news { read(event, &events) }
        return failure
    }

    private func makeEngine() -> ConnectionEnd? {
        var settings = HTTP2ClientSettings()
        // APNs allows one stream until it has accepted a provider token; its SETTINGS say more.
        settings.assumedConcurrentStreams = 1
        settings.maximumBodyBytes = PushResponse.bodyBytesMax
        do throws(HTTP2Error) {
            http = try HTTP2ClientEngine(settings: settings)
            return nil
        } catch {
            return .http(error)
        }
    }

    // MARK: - What APNs says

    private func read(_ event: HTTP2ClientEvent, _ events: inout [ConnectionEvent]) {
        switch event {
        case .response(let tag, let status, let headers): readHead(tag, status, headers)
        case .data(let tag, let bytes): answers[tag]?.body += bytes
        case .finished(let tag): events.append(finished(tag))
        case .responseTooLarge(let tag):
            answers[tag]?.body = []
            events.append(finished(tag))
        case .reset(let tag, _, let refused):
            // What was accepted is; what a refusal without its whole body would say is not known.
            if answers[tag]?.status == 200 { return events.append(finished(tag)) }
            answers[tag] = nil
            events.append(refused ? .refused(tags: [tag]) : .reset(tag: tag))
        case .settings(let streams): events.append(.allows(streams: Int(clamping: streams)))
        case .goAway(_, let code, let debugData):
            let reason = PushResponse.reason(goAway: debugData)
            events.append(.goAway(reason: reason, code: code.rawValue))
        case .unprocessed(let tags):
            for tag in tags { answers[tag] = nil }
            events.append(.refused(tags: tags))
        case .pingAnswered: events.append(.pingAnswered)
        }
    }

    private func readHead(_ tag: UInt64, _ status: Int, _ headers: [HTTP2ReceivedHeader]) {
        answers[tag]?.status = status
        // One that finds fault with the provider token is worth another look at the time.
        if !knowsTime || status == 403 || status == 429 {
            answers[tag]?.date = headers["date"].flatMap { PushResponse.seconds(httpDate: $0) }
        }
        if status >= 400 {
            let date = answers[tag]?.date
            answers[tag]?.retryAfter = headers["retry-after"].flatMap {
                PushResponse.retryAfter($0, date: date)
            }
        }
        // Of a request that had none.
        answers[tag]?.id = headers["apns-id"].flatMap { WakeID(text: $0) }
    }

    private func finished(_ tag: UInt64) -> ConnectionEvent {
        guard let answer = answers.removeValue(forKey: tag), let status = answer.status else {
            return .answered(tag: tag, nil)
        }
        knowsTime = true
        var response = PushResponse(status: status, body: answer.body)
        response.date = answer.date
        response.retryAfter = answer.retryAfter
        response.id = answer.id
        return .answered(tag: tag, response)
    }

    // MARK: - The end

    /// From inside a call that must return first.
    private func finishLater(_ end: ConnectionEnd) {
        loop.nextTurn { [weak self] in self?.finish(end) }
    }

    private func finish(_ reason: ConnectionEnd, after events: [ConnectionEvent] = []) {
        guard end == nil else { return }
        letGo(reason)
        let loss = ConnectionLoss(
            label: reason.label, explanation: reason.explanation(host: endpoint.host))
        tell(events + [.ended(loss, inOrder: reason == .finished)])
    }

    private func letGo(_ reason: ConnectionEnd) {
        end = reason
        dialing?.cancel()
        dialing = nil
        socket?.close()
        socket = nil
        answers = [:]
    }
}
