import Crypto
import EventLoop
import Feed
import Model
import StoreService
import Sync
import Telemetry
import Wire

/// One device connection: joins socket, TLS and decoder to a `Session` and carries out what it
/// decides. Lives and dies on its loop; never Sendable.
///
/// It stays in the loop's table after its socket is gone until the session is finished, because
/// what a device acknowledged and the end of its session are still being written.
final class Connection {
    let number: UInt64
    private let stream: Stream
    /// `nil`: without TLS.
    private let engine: TLSEngine?
    /// Against whose rate its handshake counts.
    private let holder: [UInt8]?
    private unowned let shell: SyncLoop
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    private var session: Session?
    private let acceptedAt: Instant
    private let peerAddress: String
    private var pendingBody = 0
    private var framesReceived: UInt64 = 0
    private var framesSent: UInt64 = 0
    private var endCode: String?
    private var isClosing = false
    private var isSocketClosed = false
    private var isRunning = false
    private var waiting: [SessionAction] = []
    /// A session that was opened during a drain was told of it.
    private var knowsDrain = false
    /// Of the conversations signalled in last, what the hub said before their participants were
    /// read; one more than the session remembers.
    private var audienceMarks: [(conversation: ConversationID, mark: UInt64)] = []
    private var shouldClose = false
    private var handshakeDeadline: Instant?
    /// Set when all is said: what the peer still sends is dropped until it ends or this passes.
    /// Closing at once would make the kernel answer unread bytes with a reset, and the peer could
    /// lose the CLOSE.
    private var lingerDeadline: Instant?
    private var knownHead: UInt64 = 0
    private var lastTold: (taken: UInt64, unsent: Int) = (0, 0)

    init(
        number: UInt64, stream: Stream, engine: TLSEngine?, holder: [UInt8]?, shell: SyncLoop
    ) {
        self.number = number
        self.stream = stream
        self.engine = engine
        self.holder = holder
        self.shell = shell
        acceptedAt = shell.now
        peerAddress = stream.peerAddress
        if engine != nil { handshakeDeadline = acceptedAt + shell.options.handshakeDeadline }
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.finish("end") }
        stream.onFailure = { [unowned self] error in self.failed(error) }
        stream.onDrained = { [unowned self] in self.told() }
        stream.onClosed = { [unowned self] in self.socketClosed() }
        stream.setNoDelay(true)
        stream.setKeepalive(Keepalive(idleSeconds: 60, intervalSeconds: 15, probes: 4))
        stream.setUserTimeout(milliseconds: 60_000)
        stream.startReading()
        if engine == nil { beginSession() }
    }

    var nextDeadline: Instant? {
        // A stream that was closed tells so in a later turn: until then its deadline, which has
        // passed, must not be found due again and again within this one.
        let own = stream.isClosed ? nil : handshakeDeadline ?? lingerDeadline
        guard let asked = session?.nextDeadline else { return own }
        return own.map { min($0, asked) } ?? asked
    }
    var isHandshaking: Bool { handshakeDeadline != nil }
    var isFinished: Bool { isSocketClosed && (session?.isFinished ?? true) }
    var key: SessionKey? { session?.isOpen == true ? session?.key : nil }

    // MARK: - From the socket

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard lingerDeadline == nil else { return }
        guard let engine else {
            decode(bytes)
            writeOutput()
            return shell.settle(self)
        }
        do {
            try engine.received(bytes) { plaintext in
                guard self.session != nil, !self.isClosing else {
                    // The first frames may come with the end of the handshake.
                    if !self.isClosing { self.handshakeDone() }
                    if !self.isClosing { self.decode(plaintext) }
                    return
                }
                self.decode(plaintext)
            }
        } catch {
            writeOutput()
            shell.metrics.handshakeFailures[isHandshaking ? "handshake" : "record"].add()
            finish(isHandshaking ? "tls-handshake" : "tls")
            return
        }
        if engine.isHandshakeComplete && session == nil && !isClosing { handshakeDone() }
        writeOutput()
        if engine.peerClosed { finish("end") }
        shell.settle(self)
    }

    private func handshakeDone() {
        guard handshakeDeadline != nil else { return }
        handshakeDeadline = nil
        shell.handshakeEnded(holder)
        shell.metrics.handshakeSeconds.observe(milliseconds: shell.now.since(acceptedAt))
        beginSession()
    }

    private func beginSession() {
        session = Session(
            configuration: shell.options.session, entropy: shell.entropy(),
            connectedAt: acceptedAt, now: shell.now)
        if shell.isOverCapacity { with { $0.shutDown(.tooManyConnections, now: $1) } }
    }

    private func decode(_ plaintext: UnsafeRawBufferPointer) {
        guard !isClosing else { return }
        decoder.append(plaintext)
        do {
            while !isClosing, let frame = try nextFrame() {
                framesReceived += 1
                shell.metrics.framesReceived["\(frame.body.type)"].add()
                with { $0.received(frame, now: $1) }
            }
        } catch {
            with { $0.decodingFailed(error, now: $1) }
        }
        let pending = isClosing ? 0 : decoder.heldBytes
        shell.options.receiving.change(from: pendingBody, to: pending)
        pendingBody = pending
        if shell.options.receiving.isExceeded && pending > 0 {
            // One budget for all: whoever holds half a body when it is used up pays.
            with { $0.shutDown(.tooManyConnections, now: $1) }
        }
    }

    private func nextFrame() throws(WireError) -> Frame? {
        decoder.accepted = session?.acceptedFrames ?? .all
        return try decoder.next()
    }

    private func failed(_ error: StreamError) {
        // The stream closes itself.
        isClosing = true
        if endCode == nil { endCode = error.name }
    }

    private func socketClosed() {
        isSocketClosed = true
        isClosing = true
        shell.options.receiving.change(from: pendingBody, to: 0)
        pendingBody = 0
        if handshakeDeadline != nil {
            handshakeDeadline = nil
            shell.handshakeEnded(holder)
        }
        with { $0.closed(now: $1) }
        logEnd()
        shell.settle(self)
    }

    // MARK: - From the loop

    func deadlineReached() {
        if let handshakeDeadline {
            guard handshakeDeadline <= shell.now else { return }
            shell.metrics.handshakeFailures["deadline"].add()
            finish("tls-deadline")
            return
        }
        if let lingerDeadline, lingerDeadline <= shell.now, !isSocketClosed {
            stream.close()
        }
        told()
        with { $0.deadlineReached(now: $1) }
        shell.settle(self)
    }

    /// The head read in turn: only a hint that got lost makes it news.
    func headRead(_ head: UInt64) {
        guard head > knownHead else { return }
        headMoved(to: head, kinds: .max)
    }

    func headMoved(to head: UInt64, kinds: UInt32, isUrgent: Bool = false) {
        knownHead = max(knownHead, head)
        with { $0.headMoved(to: head, kinds: kinds, isUrgent: isUrgent, now: $1) }
        shell.settle(self)
    }

    func ended(_ code: Code, generation: UInt64) {
        guard session?.key?.generation == generation else { return }
        with { $0.ended(code, now: $1) }
        shell.settle(self)
    }

    func challenged(generation: UInt64) {
        guard session?.key?.generation == generation else { return }
        with { $0.challenged(now: $1) }
        shell.settle(self)
    }

    func signalled(_ signal: Signal) {
        with { $0.signalled(signal, now: $1) }
        shell.settle(self)
    }

    func drain(deadline: Milliseconds, slot: Milliseconds) {
        knowsDrain = true
        guard session != nil else { return finish("drain") }
        with { $0.drain(deadline: deadline, slot: slot, now: $1) }
        shell.settle(self)
    }

    func answered(_ tag: RequestTag, _ result: StoreResult) {
        switch result {
        case .committed(let outcome):
            let wall = Timestamp(milliseconds: SystemClock.wallMilliseconds())
            if case .opened(let opened) = outcome.answer { knownHead = opened.sync.head }
            with { $0.storeAnswered(tag, outcome.answer, now: $1, wall: wall) }
        case .read(.page(let page)):
            knownHead = max(knownHead, page.head)
            with { $0.pageRead(tag, page, now: $1) }
        case .read(.history(let reading)):
            with { $0.historyRead(tag, reading, now: $1) }
        case .read(.audience(let users)):
            with { $0.audienceFound(tag, users, now: $1) }
        case .read:
            with { $0.historyFailed(tag, .corrupt("the user is unknown"), now: $1) }
            with { $0.readFailed(tag, .corrupt("the user is unknown"), now: $1) }
        case .failed(let error):
            shell.metrics.storeFailures["\(error)".prefix { $0 != "(" }.description].add()
            // Only the one that asked knows the tag.
            with { $0.storeFailed(tag, error, now: $1) }
            with { $0.readFailed(tag, error, now: $1) }
            with { $0.historyFailed(tag, error, now: $1) }
            session?.audienceFailed(tag)
        }
        shell.settle(self)
    }

    /// Closes at once, for good.
    func abandon(_ why: String) { finish(why) }

    // MARK: - Carrying out

    /// Gives the session an input and carries out what it decides, in order. Inputs that come
    /// from carrying out (a refused identity token) queue behind.
    private func with(_ input: (inout Session, Instant) -> [SessionAction]) {
        guard session != nil else { return }
        let actions = input(&session!, shell.now)
        waiting += actions
        guard !isRunning else { return }
        isRunning = true
        var index = 0
        while index < waiting.count {
            run(waiting[index])
            index += 1
        }
        waiting.removeAll(keepingCapacity: false)
        isRunning = false
        if shell.drainEnds != nil, !knowsDrain, key != nil {
            knowsDrain = true
            shell.tellDrain(self)
        }
        writeOutput()
        if shouldClose && !isClosing {
            isClosing = true
            engine?.close()
            writeOutput()
            stream.shutdown()
            stream.startReading()
            lingerDeadline = shell.now + shell.options.linger
        }
    }

    private func run(_ action: SessionAction) {
        switch action {
        case .send(let frame): send(frame)
        case .store(let tag, let request):
            if let wait = shell.options.gates.wait(request, now: shell.now) {
                shell.metrics.rateLimited["requests"].add()
                with { $0.storeLimited(tag, retryAfter: wait, now: $1) }
            } else {
                shell.commit(request, for: self, tag: tag)
            }
        case .read(let tag, let query): shell.read(.page(query), for: self, tag: tag)
        case .readHistory(let tag, let query):
            shell.read(.history(query), for: self, tag: tag)
        case .findAudience(let tag, let app, let user, let conversation):
            // Taken before the read: what changes after it shows.
            audienceMarks.removeAll { $0.conversation == conversation }
            audienceMarks.append(
                (conversation, shell.hub.audienceMark(app, conversation, user)))
            audienceMarks.removeFirst(
                max(0, audienceMarks.count - shell.options.session.limits.signalAudiences - 1))
            shell.read(.audience(app, user, conversation), for: self, tag: tag)
        case .signal(let signal, let app, let users):
            guard let conversation = signal.conversation,
                let mark = audienceMarks.first(where: { $0.conversation == conversation })?.mark,
                mark == shell.hub.audienceMark(app, conversation, UserID(signal.user))
            else {
                with { $0.audienceChanged(signal, now: $1) }
                return
            }
            guard shell.options.gates.maySignal(app, signal.user, now: shell.now) else { return }
            shell.metrics.signals["\(signal.kind)"].add()
            shell.hub.signal(signal, app: app, to: users, mark: mark)
        case .verify(let tag, let identityToken, let app): verify(tag, identityToken, app)
        case .drawEntropy:
            let entropy = shell.entropy()
            with { $0.entropyDrawn(entropy, now: $1) }
        case .enterHub(let key):
            shell.hub.enter(key, at: ConnectionPlace(loop: shell.index, number: number))
        case .leaveHub(let key):
            shell.hub.leave(key, at: ConnectionPlace(loop: shell.index, number: number))
        case .stopReading: stream.stopReading()
        case .resumeReading: if !isClosing { stream.startReading() }
        case .raiseLimits(let limits): decoder.limits = limits
        case .close(let code):
            shouldClose = true
            if endCode == nil { endCode = "\(code.rawValue)" }
            shell.metrics.closes["\(code.rawValue)"].add()
        case .log(let event): shell.log(event, connection: number)
        }
    }

    private func send(_ frame: Frame) {
        guard !isClosing else { return }
        framesSent += 1
        shell.metrics.framesSent["\(frame.body.type)"].add()
        let bytes = frame.encoded
        guard let engine else {
            _ = bytes.withUnsafeBytes { stream.write($0) }
            return
        }
        do {
            try bytes.withUnsafeBytes { try engine.send($0) }
        } catch {
            finish("tls-send")
        }
    }

    private func verify(_ tag: RequestTag, _ identityToken: String, _ app: AppID) {
        let result = shell.verifier.verify(
            identityToken, app: app,
            bytesMax: shell.options.session.limits.identityTokenBytes)
        let wall = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        switch result {
        case .success(let claims):
            with { $0.identityVerified(tag, claims, now: $1, wall: wall) }
        case .failure:
            with { $0.identityRefused(tag, .tokenInvalid, now: $1) }
        }
    }

    private func writeOutput() {
        guard !isSocketClosed else { return }
        engine?.takeOutput { _ = stream.write($0) }
        told()
    }

    /// Tells the session how far the peer's TCP got, when that matters: bytes wait here, or it
    /// is waiting for a sign of life (`deadlineReached` asks each time).
    private func told() {
        guard session != nil, !isSocketClosed else { return }
        let unsent = stream.unsentBytes
        guard unsent != lastTold.unsent || unsent > 0 || isRunning == false else { return }
        let kernel = stream.kernelUnsentBytes
        let written = stream.writtenBytes
        let taken = written > UInt64(kernel) ? written - UInt64(kernel) : 0
        guard (taken, unsent) != lastTold else { return }
        lastTold = (taken, unsent)
        with { session, now in
            session.progressed(
                taken: taken, unsent: unsent, outstanding: unsent + kernel, now: now)
        }
    }

    private func finish(_ why: String) {
        if endCode == nil { endCode = why }
        isClosing = true
        if !isSocketClosed { stream.close() }
    }

    /// One line a connection, when it is over.
    private func logEnd() {
        shell.log.info(
            "connection.closed",
            [
                LogField("connection", "\(shell.index)-\(number)"),
                LogField("peer", peerAddress),
                LogField("app", session?.key?.app.name ?? ""),
                LogField("user", session?.key?.user.name ?? ""),
                LogField("device", session?.key?.device.description ?? ""),
                LogField("reason", endCode ?? "end"),
                LogField("milliseconds", shell.now.since(acceptedAt)),
                LogField("bytes_in", stream.readBytes), LogField("bytes_out", stream.writtenBytes),
                LogField("frames_in", framesReceived), LogField("frames_out", framesSent),
            ])
    }
}

/// Bytes of half-received bodies over all connections of the process. From any thread.
final class ReceivingBudget: Sendable {
    private let bytesMax: Int
    private let held = Gauge()

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    func change(from old: Int, to new: Int) {
        if old != new { held.add(new - old) }
    }

    var isExceeded: Bool { held.current > bytesMax }
    var current: Int { held.current }
}
