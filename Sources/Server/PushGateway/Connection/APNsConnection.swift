import Crypto
import EventLoop
import Feed
import HTTP2
import Model
import Telemetry
import Wake

/// Whoever uses a connection; told from inside the connection's handlers, never from inside a
/// call it makes itself.
protocol APNsConnectionOwner: AnyObject {
    /// TLS is up; streams are allowed from now on.
    func connectionReady(_ connection: APNsConnection)
    /// A stream has become free, or the server allows another number.
    func connectionHasRoom(_ connection: APNsConnection)
    func connection(
        _ connection: APNsConnection, answered push: HeldPush, _ response: PushResponse)
    /// It was written, and APNs may or may not have taken it.
    func connection(_ connection: APNsConnection, leftUnanswered push: HeldPush)
    /// APNs did nothing with these; in the order in which they were submitted.
    func connection(_ connection: APNsConnection, returned pushes: [HeldPush])
    /// APNs takes no new streams here.
    func connection(_ connection: APNsConnection, goAway reason: String, code: HTTP2ErrorCode)
    /// Too many streams in a row had no answer.
    func connectionIsSuspect(_ connection: APNsConnection)
    /// Called once, after all of its pushes were given back.
    func connection(_ connection: APNsConnection, ended end: ConnectionEnd)
}

/// Where a connection goes.
struct APNsEndpoint: Equatable {
    var host: String
    var port: UInt16

    /// `:authority`: without the port that https implies.
    var authority: String { port == 443 ? host : "\(host):\(port)" }
}

/// One HTTP/2 connection to APNs: socket, TLS and engine joined. Loop-confined.
///
/// Every push given to `submit` comes back exactly once: answered, unanswered or returned.
final class APNsConnection {
    enum Submission: Equatable {
        case sent
        /// As many streams are open as are allowed, or the socket is behind.
        case full
        /// It takes no new streams any more.
        case ending
        /// A header cannot be sent: our bug.
        case impossible(String)
    }

    private struct Stream {
        let push: HeldPush
        let id: HTTP2StreamID
        let sentAt: Instant
        /// Until when it is waited for, in time or late.
        var deadline: Instant
        var isLate = false
        var status: Int?
        var date: Int64?
        var retryAfter: Milliseconds?
        var answeredID: WakeID?
        var body: [UInt8] = []
    }

    /// Unsent bytes above which nothing more is submitted.
    private static let unsentMax = 256 * 1024

    /// For the log.
    let number: UInt64
    let endpoint: APNsEndpoint
    private let loop: Loop
    private let configuration: PushGatewayConfiguration
    private unowned let owner: any APNsConnectionOwner
    private let tls: TLSEngine
    /// Requests carry provider tokens: APNs allows one stream until it has accepted one.
    private let usesTokens: Bool
    private let metrics: GatewayMetrics
    private var http: HTTP2ClientEngine?
    private var dialing: Dialing?
    private var socket: EventLoop.Stream?
    private var connectBefore: Instant?
    private var streams: [UInt64: Stream] = [:]
    /// Tags in the order of their deadlines; those answered since are skipped.
    private var order: [UInt64] = []
    private var orderStart = 0
    /// Tags of streams whose deadline has passed, in order; their answers may come yet.
    private var late: [UInt64] = []
    /// The newest push that was answered in time.
    private var lastPrompt: UInt64 = 0
    private var lastTag: UInt64 = 0
    private var lastHeard: Instant
    private var pingBefore: Instant?
    /// The PING under way must be answered before the next push.
    private var isVerifying = false
    private var isReceiving = false
    private var silentStreams = 0
    private var isGoingAway = false
    private(set) var isRetired = false
    private(set) var end: ConnectionEnd?
    /// Whether APNs has answered a push here: a connection without any came to nothing.
    private(set) var hasAnswered = false
    /// Whether APNs has believed a provider token here, whatever it said of the push.
    private var isAuthenticated = false
    private(set) var readyAt: Instant?
    /// When a stream was last opened or answered.
    private var lastUsed: Instant

    init(
        number: UInt64, endpoint: APNsEndpoint, tls: TLSEngine, usesTokens: Bool, loop: Loop,
        configuration: PushGatewayConfiguration, metrics: GatewayMetrics,
        owner: any APNsConnectionOwner
    ) {
        self.number = number
        self.endpoint = endpoint
        self.tls = tls
        self.usesTokens = usesTokens
        self.metrics = metrics
        self.loop = loop
        self.configuration = configuration
        self.owner = owner
        lastHeard = Instant(milliseconds: loop.now)
        lastUsed = lastHeard
    }

    private var now: Instant { Instant(milliseconds: loop.now) }

    /// Begins to connect; the name is looked up anew.
    func start() {
        connectBefore = now + configuration.connectDeadline
        dialing = EventLoop.Stream.connect(
            loop: loop, host: endpoint.host, port: endpoint.port,
            timeoutMilliseconds: configuration.connectDeadline
        ) { [unowned self] result in
            self.dialing = nil
            switch result {
            case .success(let socket): self.connected(socket)
            case .failure(let error): self.finish(.socket(error))
            }
        }
    }

    // MARK: - For the owner

    /// Pushes submitted and not given back.
    var openStreams: Int { streams.count }

    /// Streams the server allows; 1 until it has said so, and with provider tokens until it has
    /// accepted one (Apple: Establishing a token-based connection to APNs).
    var streamLimit: Int {
        guard let http else { return 0 }
        let told = http.remoteMaximumConcurrentStreams.map { Int(clamping: $0) } ?? 1
        return min(told, usesTokens && !isAuthenticated ? 1 : configuration.streamsMax)
    }

    /// Since the end of the handshake.
    var age: Milliseconds { readyAt.map { now.since($0) } ?? 0 }
    /// How long nothing was sent or answered.
    var idleTime: Milliseconds { streams.isEmpty ? now.since(lastUsed) : 0 }
    /// Of the stream that waits longest for its answer.
    var oldestStream: Milliseconds {
        let first =
            late.lazy.compactMap { self.streams[$0] }.first
            ?? order[orderStart...].lazy.compactMap { self.streams[$0] }.first
        return first.map { now.since($0.sentAt) } ?? 0
    }

    /// Whether TLS is up and new streams may be opened, now or once one is free.
    var isUsable: Bool {
        http != nil && !isGoingAway && !isRetired && end == nil
    }

    /// Makes sure that a connection which was silent for long still lives: false while it has
    /// to prove that.
    func isReadyToSend() -> Bool {
        guard isUsable else { return false }
        if isVerifying { return false }
        guard streams.isEmpty, now.since(lastHeard) >= configuration.verifyAfter else {
            return true
        }
        isVerifying = true
        ping()
        return false
    }

    /// Opens a stream; `flush()` sends it.
    func submit(_ push: HeldPush, token: String?) -> Submission {
        guard isUsable, let http, let socket else { return .ending }
        guard streams.count < streamLimit, socket.unsentBytes < Self.unsentMax else {
            return .full
        }
        lastTag += 1
        do throws(HTTP2Error) {
            let id = try http.submit(
                headers: push.headers(authority: endpoint.authority, token: token),
                body: push.job.request.payload, tag: lastTag)
            var push = push
            push.providerToken = token
            streams[lastTag] = Stream(
                push: push, id: id, sentAt: now, deadline: now + configuration.streamDeadline)
            order.append(lastTag)
            lastUsed = now
            return .sent
        } catch {
            switch error {
            case .streamsExhausted: return .full
            case .connectionEnding, .connection: return .ending
            case .invalidHeader, .headersTooLarge, .invalidArgument:
                return .impossible("\(error)")
            }
        }
    }

    /// Sends what was submitted. While bytes are being received it waits for their end: what the
    /// answers of one read lead to leaves in as few TLS records as it fits.
    func flush() {
        guard let http, end == nil, !isReceiving else { return }
        while http.wantsOutput {
            // A TLS record's worth at a time.
            let bytes = http.takeOutput(maximumBytes: 16 * 1024)
            guard !bytes.isEmpty else { break }
            if let failure = seal(bytes) { return finishLater(.tls(failure)) }
            writeTLS()
        }
        if http.isFinished { finishLater(isRetired ? .retired : .closedByPeer) }
    }

    /// No new streams; ends when the open ones have ended.
    func retire() {
        guard !isRetired, end == nil else { return }
        isRetired = true
        endIfRetired()
    }

    /// Ends at once.
    func stop() { finish(.stopped) }

    // MARK: - Time

    /// Looks at the deadlines; to be called at least every tick.
    func tick() {
        guard end == nil else { return }
        if let connectBefore, connectBefore <= now { return finish(.connectTimeout) }
        if let pingBefore, pingBefore <= now { return finish(.silent) }
        expireStreams()
        guard end == nil, http != nil else { return }
        if streams.isEmpty, !isRetired, now.since(lastHeard) >= configuration.idlePing { ping() }
        flush()
        endIfRetired()
    }

    private func expireStreams() {
        let before = silentStreams
        while orderStart < order.count {
            let tag = order[orderStart]
            guard let stream = streams[tag] else {
                orderStart += 1
                continue
            }
            guard stream.deadline <= now else { break }
            orderStart += 1
            silentStreams += 1
            if tag > lastPrompt, waitOn(tag, stream) {
                late.append(tag)
            } else {
                giveUp(tag)
            }
        }
        if orderStart > 64, orderStart * 2 > order.count {
            order.removeFirst(orderStart)
            orderStart = 0
        }
        for tag in late where streams[tag].map({ $0.deadline <= now }) ?? true { giveUp(tag) }
        late.removeAll { streams[$0] == nil }
        guard silentStreams > before, end == nil else { return }
        // Is it the connection or the one stream?
        ping()
        if silentStreams >= configuration.silentStreamsMax { owner.connectionIsSuspect(self) }
        if end == nil { owner.connectionHasRoom(self) }
    }

    /// Waits on for a late answer.
    ///
    /// - Returns: whether there is time for that.
    private func waitOn(_ tag: UInt64, _ stream: Stream) -> Bool {
        let until = min(
            stream.sentAt + configuration.lateDeadline,
            stream.push.leaseEnd(reserve: configuration.lateReserve))
        guard until > now else { return false }
        streams[tag]?.deadline = until
        streams[tag]?.isLate = true
        return true
    }

    private func giveUp(_ tag: UInt64) {
        guard let stream = streams.removeValue(forKey: tag) else { return }
        http?.reset(stream.id)
        owner.connection(self, leftUnanswered: stream.push)
    }

    /// A push has been answered in time: APNs is not slow, and what was sent before it and is late
    /// will not be answered any more.
    private func answeredPromptly(_ tag: UInt64) {
        lastPrompt = max(lastPrompt, tag)
        guard let first = late.first, first < tag else { return }
        for lost in late where lost < tag { giveUp(lost) }
        late.removeAll { streams[$0] == nil }
    }

    private func ping() {
        guard pingBefore == nil, let http else { return }
        lastTag += 1
        guard (try? http.ping(opaque: lastTag)) != nil else { return }
        pingBefore = now + configuration.pingDeadline
        flush()
    }

    // MARK: - The socket

    private func connected(_ socket: EventLoop.Stream) {
        self.socket = socket
        socket.onBytes = { [unowned self] bytes in self.received(bytes) }
        socket.onEnd = { [unowned self] in self.finish(.closedByPeer) }
        socket.onFailure = { [unowned self] error in self.finish(.socket(error)) }
        socket.onDrained = { [unowned self] in
            if self.end == nil { self.owner.connectionHasRoom(self) }
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
            metrics.bytesSent.add(UInt64(bytes.count))
            _ = self.socket?.write(bytes)
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        lastHeard = now
        isReceiving = true
        let failure = take(bytes)
        isReceiving = false
        if let failure {
            flush()
            writeTLS()
            return finish(failure)
        }
        flush()
        writeTLS()
        if tls.peerClosed { finish(.closedByPeer) }
        endIfRetired()
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> ConnectionEnd? {
        var events: [HTTP2ClientEvent] = []
        var failure: ConnectionEnd?
        do throws(TLSError) {
            try tls.received(bytes) { plaintext in
                if self.http == nil { failure = failure ?? self.makeEngine() }
                guard failure == nil, let http = self.http else { return }
                do throws(HTTP2Error) {
                    events += try http.received(plaintext)
                } catch {
                    events += http.takeEvents()
                    failure = .http(error)
                }
            }
        } catch {
            failure = failure ?? .tls(error)
        }
        var isNew = false
        if failure == nil, tls.isHandshakeComplete, connectBefore != nil {
            if http == nil { failure = makeEngine() }
            connectBefore = nil
            readyAt = now
            isNew = failure == nil
        }
        if isNew { owner.connectionReady(self) }
        for event in events where end == nil { handle(event) }
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

    // MARK: - Events

    private func handle(_ event: HTTP2ClientEvent) {
        switch event {
        case .response(let tag, let status, let headers):
            streams[tag]?.status = status
            // All answers of a connection tell the same clock; one that finds fault with the
            // provider token is worth another look at it.
            if !hasAnswered || status == 403 || status == 429 {
                let date = headers["date"].flatMap { PushResponse.seconds(httpDate: $0) }
                streams[tag]?.date = date
            }
            if status >= 400 {
                let date = streams[tag]?.date
                streams[tag]?.retryAfter = headers["retry-after"].flatMap {
                    PushResponse.retryAfter($0, date: date)
                }
            }
            // Of a request that had none.
            streams[tag]?.answeredID = headers["apns-id"].flatMap { WakeID(text: $0) }
        case .data(let tag, let bytes): streams[tag]?.body += bytes
        case .finished(let tag): answered(tag)
        case .responseTooLarge(let tag):
            streams[tag]?.body = []
            answered(tag)
        case .reset(let tag, _, let refused): streamReset(tag, refused: refused)
        case .settings: owner.connectionHasRoom(self)
        case .goAway(_, let code, let debugData):
            isGoingAway = true
            owner.connection(
                self, goAway: PushResponse.reason(goAway: debugData), code: code)
        case .unprocessed(let tags):
            let pushes = tags.compactMap { streams.removeValue(forKey: $0)?.push }
            if !pushes.isEmpty { owner.connection(self, returned: pushes) }
        case .pingAnswered:
            pingBefore = nil
            isVerifying = false
            owner.connectionHasRoom(self)
        }
    }

    private func answered(_ tag: UInt64) {
        guard let stream = streams.removeValue(forKey: tag) else { return }
        guard let status = stream.status else {
            return owner.connection(self, leftUnanswered: stream.push)
        }
        silentStreams = 0
        hasAnswered = true
        // 403 is about the token, 429 may be.
        if status != 403, status != 429 { isAuthenticated = true }
        lastUsed = now
        var response = PushResponse(status: status, body: stream.body)
        response.date = stream.date
        response.retryAfter = stream.retryAfter
        response.isLate = stream.isLate
        response.id = stream.answeredID
        if !stream.isLate { answeredPromptly(tag) }
        owner.connection(self, answered: stream.push, response)
        if end == nil { owner.connectionHasRoom(self) }
    }

    private func streamReset(_ tag: UInt64, refused: Bool) {
        // What was accepted is; what a refusal without its whole body would say is not known.
        if streams[tag]?.status == 200 { return answered(tag) }
        guard let stream = streams.removeValue(forKey: tag) else { return }
        if refused {
            owner.connection(self, returned: [stream.push])
        } else {
            owner.connection(self, leftUnanswered: stream.push)
        }
        if end == nil { owner.connectionHasRoom(self) }
    }

    // MARK: - The end

    private func endIfRetired() {
        guard isRetired, streams.isEmpty, end == nil else { return }
        if let http, tls.isHandshakeComplete {
            try? http.goAway()
            let bytes = http.takeOutput(maximumBytes: 16 * 1024)
            _ = seal(bytes)
            tls.close()
            writeTLS()
        }
        finish(.retired)
    }

    /// From inside a call of the owner, who must not be called back before it returns.
    private func finishLater(_ end: ConnectionEnd) {
        loop.nextTurn { [weak self] in self?.finish(end) }
    }

    private func finish(_ reason: ConnectionEnd) {
        guard end == nil else { return }
        end = reason
        dialing?.cancel()
        dialing = nil
        socket?.close()
        socket = nil
        connectBefore = nil
        let left = streams.sorted { $0.key < $1.key }.map(\.value.push)
        streams = [:]
        for push in left { owner.connection(self, leftUnanswered: push) }
        owner.connection(self, ended: reason)
    }
}
