import Crypto
import EventLoop
import Feed
import Model
import StoreService
import SyncServer
import Telemetry
import Wire

/// One device connection: joins socket, TLS and decoder to a `Session` and carries out what it
/// decides. Lives and dies on its loop; never Sendable.
///
/// It stays in the loop's table after its socket is gone until the session is finished, because
/// what a device acknowledged and the end of its session are still being written.
final class Connection {
    let number: UInt64
    let origin: PeerOrigin
    private let stream: Stream
    private let isPlain: Bool
    /// `nil`: without TLS, or its turn to begin the handshake has not come.
    private var engine: TLSEngine?
    private unowned let shell: SyncLoop
    private var clientHello = ClientHello()
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    private var session: Session?
    private let acceptedAt: Instant
    private let peerAddress: String
    /// Something has come.
    private var hasHeard = false
    private var framesReceived: UInt64 = 0
    private var framesSent: UInt64 = 0
    private var endCode: String?
    private var isClosing = false
    private var isSocketClosed = false
    private var isRunning = false
    /// Frames are being taken: what they are answered with leaves together.
    private var isTaking = false
    /// It waits for its next turn, for more has come than one turn takes. Nothing is read.
    private var isLagging = false
    /// The loop knows that it waits for a turn.
    private var isQueued = false
    /// The session wants nothing more for now.
    private var isHeldBack = false
    /// Why it ends when what has come is taken.
    private var endWhenTaken: String?
    private var waiting: [SessionAction] = []
    /// Frames without TLS that leave together.
    private var plainOutput: [UInt8] = []
    /// It was asked to come back elsewhere.
    private(set) var knowsDrain = false
    /// Of the conversations signalled in last, what the hub said before their participants were
    /// read; one more than the session remembers.
    private var audienceMarks: [(conversation: ConversationID, mark: UInt64)] = []
    private var shouldClose = false
    /// Until then the TLS handshake is done, at first a whole ClientHello there.
    private var handshakeDeadline: Instant?
    /// Until then the frame that has begun is there, and how many frames had come before it.
    private var frameDeadline: (at: Instant, after: UInt64)?
    /// Set when all is said: what the peer still sends is dropped until it ends or this passes.
    /// Closing at once would make the kernel answer unread bytes with a reset, and the peer could
    /// lose the CLOSE.
    private var lingerDeadline: Instant?
    private var knownHead: UInt64 = 0
    /// Those of its HELLO, until the store has found out whose they are.
    private var helloMutations: [Mutation] = []
    private var delivery = DeliveryWatch()
    private var countedPushed = PushedCounts()
    private var lastTold: (taken: UInt64, unsent: Int) = (0, 0)

    /// - Parameter address: The client's, as its balancer tells it if there is one.
    init(
        number: UInt64, stream: Stream, isPlain: Bool, origin: PeerOrigin, address: String,
        shell: SyncLoop
    ) {
        self.number = number
        self.stream = stream
        self.isPlain = isPlain
        self.origin = origin
        self.shell = shell
        acceptedAt = shell.now
        peerAddress = address
        if !isPlain { handshakeDeadline = acceptedAt + shell.silenceDeadline }
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.finish("end") }
        stream.onFailure = { [unowned self] error in self.failed(error) }
        stream.onDrained = { [unowned self] in self.told() }
        stream.onClosed = { [unowned self] in self.socketClosed() }
        stream.setNoDelay(true)
        stream.setKeepalive(Keepalive(idleSeconds: 60, intervalSeconds: 15, probes: 4))
        stream.setUserTimeout(milliseconds: 60_000)
        stream.startReading()
        if isPlain { beginSession() }
    }

    var nextDeadline: Instant? {
        // A stream that was closed tells so in a later turn: until then its deadline, which has
        // passed, must not be found due again and again within this one.
        let own =
            stream.isClosed ? nil : handshakeDeadline ?? lingerDeadline ?? frameDeadline?.at
        guard let asked = session?.nextDeadline else { return own }
        return own.map { min($0, asked) } ?? asked
    }
    var isFinished: Bool { isSocketClosed && (session?.isFinished ?? true) }
    var key: SessionKey? { session?.isOpen == true ? session?.key : nil }

    /// Whose share of the bytes of begun frames it takes.
    var bytesOwner: BytesOwner { key.map { .user($0.app, $0.user) } ?? .network(origin.network) }

    // MARK: - From the socket

    /// What came before the connection was known to be a client's.
    func take(first bytes: [UInt8]) { bytes.withUnsafeBytes { received($0) } }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard lingerDeadline == nil, isAwaited(bytes) else { return }
        // libuv would go on with this one before it looks at the others.
        let isMore = bytes.count == Loop.readBufferSize
        if isPlain {
            decoder.append(bytes)
            takeFrames(isMore: isMore)
        } else if let engine {
            decrypt(bytes, engine, isMore: isMore)
        } else {
            clientHello.append(bytes)
            guard clientHello.isWhole, !isClosing else { return }
            stream.stopReading()
            handshakeDeadline = acceptedAt + shell.options.handshakeDeadline
            shell.clientHelloCame(self)
        }
        shell.settle(self)
    }

    /// A PROXY header is taken from balancers only: anybody else could tell any address.
    private func isAwaited(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !hasHeard else { return true }
        hasHeard = true
        guard ProxyHeader.isBegun(by: bytes.prefix(12)) else { return true }
        shell.log.limited(
            .warning, "proxy.refused",
            [
                LogField("peer", peerAddress),
                LogField("reason", "a PROXY header, but not of listen.proxy_networks"),
            ])
        finish("proxy-header")
        return false
    }

    /// What waited for its turn goes on.
    func takeTurn() {
        isQueued = false
        guard !isClosing else { return }
        if !isPlain, engine == nil {
            let engine = shell.makeEngine()
            self.engine = engine
            let first = clientHello.bytes
            clientHello = ClientHello()
            stream.startReading()
            first.withUnsafeBytes { decrypt($0, engine, isMore: false) }
        } else {
            takeFrames(isMore: false)
        }
        shell.settle(self)
    }

    private func decrypt(_ bytes: UnsafeRawBufferPointer, _ engine: TLSEngine, isMore: Bool) {
        do {
            try engine.received(bytes) { plaintext in
                // The first frames may come with the end of the handshake.
                if self.session == nil, !self.isClosing { self.handshakeDone() }
                if !self.isClosing { self.decoder.append(plaintext) }
            }
            if engine.isHandshakeComplete, session == nil, !isClosing { handshakeDone() }
            if engine.peerClosed { endWhenTaken = "end" }
        } catch {
            let isHandshaking = handshakeDeadline != nil
            shell.metrics.handshakeFailures[isHandshaking ? "handshake" : "record"].add()
            endWhenTaken = isHandshaking ? "tls-handshake" : "tls"
        }
        takeFrames(isMore: isMore)
    }

    private func handshakeDone() {
        guard handshakeDeadline != nil else { return }
        handshakeDeadline = nil
        shell.handshakeEnded(number)
        shell.metrics.handshakeSeconds.observe(milliseconds: shell.now.since(acceptedAt))
        if engine?.isResumed == true { shell.metrics.resumed.add() }
        beginSession()
    }

    private func beginSession() {
        session = Session(
            configuration: shell.sessionConfiguration, entropy: shell.entropy(),
            connectedAt: acceptedAt, now: shell.now)
        if shell.isFull { with { $0.shutDown(.tooManyConnections, now: $1) } }
    }

    /// Takes frames that have come, no more than one turn's worth; the rest waits for its next
    /// turn. `isMore`: the kernel seems to have more.
    private func takeFrames(isMore: Bool) {
        guard !isTaking else { return }
        isTaking = true
        var left = shell.options.framesPerTurn
        do {
            while left > 0, !isHeldBack, !isClosing, session != nil, let frame = try nextFrame() {
                left -= 1
                framesReceived += 1
                shell.metrics.framesReceived[frame.body.type].add()
                with { $0.received(frame, now: $1) }
            }
        } catch {
            with { $0.decodingFailed(error, now: $1) }
        }
        isTaking = false
        writeOutput()
        if !isClosing, !isHeldBack, left == 0 || isMore {
            lag()
        } else if !isClosing, !isHeldBack, let endWhenTaken {
            finish(endWhenTaken)
        } else if isLagging {
            isLagging = false
            if !isHeldBack, !isClosing { stream.startReading() }
        }
        noteBegunFrame()
    }

    /// Reads nothing more until its turn has come.
    private func lag() {
        if !isLagging { stream.stopReading() }
        isLagging = true
        guard !isQueued else { return }
        isQueued = true
        shell.waitsForTurn(self)
    }

    /// A frame that has begun holds memory, against a budget, and has a time to be whole.
    private func noteBegunFrame() {
        let held = isClosing || decoder.bufferedBytes == 0 ? 0 : decoder.heldBytes
        if held == 0 || isLagging || isHeldBack {
            frameDeadline = nil
        } else if frameDeadline?.after != framesReceived {
            frameDeadline = (shell.now + shell.options.frameDeadline, framesReceived)
        }
        shell.hold(held, for: self)
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
        handshakeDeadline = nil
        shell.hold(0, for: self)
        shell.left(self)
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
        if let frameDeadline, frameDeadline.at <= shell.now {
            self.frameDeadline = nil
            with { $0.shutDown(.idle, now: $1) }
        }
        told()
        with { $0.deadlineReached(now: $1) }
        shell.settle(self)
    }

    /// The head read in turn: only a hint that got lost makes it news.
    func headRead(_ head: UInt64) {
        guard head > knownHead else { return }
        knownHead = head
        with { $0.headMoved(to: head, kinds: .max, now: $1) }
        shell.settle(self)
    }

    func standingDoubted() {
        with { $0.standingDoubted(now: $1) }
        shell.settle(self)
    }

    /// - Parameter at: When it was committed.
    func feedChanged(_ change: FeedChange, at: Instant) {
        knownHead = max(knownHead, change.head)
        delivery.changed(change, at: at)
        with { $0.feedChanged(change, now: $1) }
        shell.settle(self)
    }

    /// What the hub told of numbers of unread messages may have got lost.
    func unreadMoved() { session?.unreadMoved() }

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

    func tokenDied(generation: UInt64) {
        guard session?.key?.generation == generation else { return }
        with { $0.tokenDied(now: $1) }
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
            if case .opened(let opened) = outcome.answer {
                knownHead = opened.sync.head
                shell.options.gates.opened(opened.session, helloMutations, now: shell.now)
                helloMutations = []
            }
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
            shell.metrics.storeFailures[error.kind].add()
            // Only the one that asked knows the tag.
            with { $0.storeFailed(tag, error, now: $1) }
            with { $0.readFailed(tag, error, now: $1) }
            with { $0.historyFailed(tag, error, now: $1) }
            session?.audienceFailed(tag)
        }
        shell.settle(self)
    }

    /// What it holds is needed for another (5008).
    ///
    /// - Parameter atOnce: its socket too, so that its place is free.
    func giveWay(_ what: String, atOnce: Bool) {
        shell.metrics.gaveWay[what].add()
        with { $0.shutDown(.tooManyConnections, now: $1) }
        if atOnce || session == nil { finish("crowded") }
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
        countPushed()
        if delivery.isMeasuring, let progress = session?.progress {
            delivery.look(progress, now: shell.now) { step, trace, waited in
                shell.log(step, of: trace, waited, key, connection: number)
            }
        }
        if shell.isDraining, !knowsDrain, key != nil {
            knowsDrain = true
            shell.tellDrain(self)
        }
        if !isTaking { writeOutput() }
        if shouldClose && !isClosing {
            isClosing = true
            noteBegunFrame()
            engine?.close()
            writeOutput()
            stream.shutdown()
            stream.startReading()
            lingerDeadline = shell.now + shell.options.linger
        }
    }

    private func countPushed() {
        guard let pushed = session?.pushed, pushed != countedPushed else { return }
        shell.metrics.pushedByTail.add(UInt64(pushed.byTail &- countedPushed.byTail))
        shell.metrics.pushedByRead.add(UInt64(pushed.byRead &- countedPushed.byRead))
        countedPushed = pushed
    }

    private func run(_ action: SessionAction) {
        switch action {
        case .send(let frame): send(frame)
        case .store(let tag, let request):
            if let wait = shell.options.gates.wait(request, now: shell.now) {
                shell.metrics.rateLimited["requests"].add()
                with { $0.storeLimited(tag, retryAfter: wait, now: $1) }
            } else {
                if case .openSession(let open) = request {
                    helloMutations = open.sync?.mutations ?? []
                }
                shell.commit(request, for: self, tag: tag)
            }
        case .read(let tag, let query): read(.page(query), tag: tag)
        case .readHistory(let tag, let query): read(.history(query), tag: tag)
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
            if let tell = shell.options.tellNodes,
                let distant = NodeSignal(signal, app: app, users: users)
            {
                tell(distant)
            }
        case .verify(let tag, let identityToken, let app): verify(tag, identityToken, app)
        case .drawEntropy:
            let entropy = shell.entropy()
            with { $0.entropyDrawn(entropy, now: $1) }
        case .enterHub(let key):
            delivery.begin(shell.metrics.delivery[key.app.name], key)
            shell.entered(self, key)
        case .leaveHub(let key): shell.hasLeft(self, key)
        case .stopReading:
            isHeldBack = true
            stream.stopReading()
        case .resumeReading:
            isHeldBack = false
            if isTaking {
                // By the frame that held it back: the stream is begun again behind the frames.
                isLagging = true
            } else if !isClosing {
                // What had come before is taken first, in a turn of its own.
                lag()
            }
        case .raiseLimits(let limits): decoder.limits = limits
        case .close(let code):
            shouldClose = true
            if endCode == nil { endCode = "\(code.rawValue)" }
            shell.metrics.closes["\(code.rawValue)"].add()
        case .log(let event): shell.log(event, connection: number)
        }
    }

    private func read(_ query: StoreQuery, tag: RequestTag) {
        if let wait = shell.options.gates.wait(query, now: shell.now) {
            shell.metrics.rateLimited["reads"].add()
            with { $0.readLimited(tag, retryAfter: wait, now: $1) }
        } else {
            shell.read(query, for: self, tag: tag)
        }
    }

    private func send(_ frame: Frame) {
        guard !isClosing else { return }
        framesSent += 1
        shell.metrics.framesSent[frame.body.type].add()
        let bytes = frame.encoded
        guard let engine else {
            plainOutput += bytes
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
        if !plainOutput.isEmpty {
            stream.write(plainOutput)
            plainOutput = []
        }
        engine?.takeOutput { _ = stream.write($0) }
        told()
    }

    /// Tells the session how far the peer's TCP got, when that matters: bytes wait here, or it
    /// is waiting for a sign of life.
    private func told() {
        guard session != nil, !isSocketClosed else { return }
        let unsent = stream.unsentBytes
        guard unsent != lastTold.unsent || unsent > 0 || session?.watchesTaking == true
        else { return }
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

    /// One line a connection, when it is over; of those that nobody logged in on only some, if
    /// there are many.
    private func logEnd() {
        let fields = {
            [
                LogField("connection", "\(self.shell.index)-\(self.number)"),
                LogField("peer", self.peerAddress),
                LogField("app", self.session?.key?.app.name ?? ""),
                LogField("user", self.session?.key?.user.name ?? ""),
                LogField("device", self.session?.key?.device.description ?? ""),
                LogField("reason", self.endCode ?? "end"),
                LogField("milliseconds", self.shell.now.since(self.acceptedAt)),
                LogField("bytes_in", self.stream.readBytes),
                LogField("bytes_out", self.stream.writtenBytes),
                LogField("frames_in", self.framesReceived),
                LogField("frames_out", self.framesSent),
            ]
        }
        if session?.key == nil {
            let kind = "without-login \(endCode ?? "end")"
            shell.log.limited(.info, "connection.closed", kind: kind, fields())
        } else {
            shell.log.info("connection.closed", fields())
        }
    }
}
