import Crypto
import EventLoop
import Feed
import Model
import StoreService
import Sync
import Telemetry
import Wire

/// One event loop of the device port: its listening socket, its connections, its TLS context, its
/// door to the store and one timer for all deadlines. Loop-confined.
final class SyncLoop {
    let loop: Loop
    let options: SyncOptions
    let hub: Hub
    let log: Log
    let metrics: SyncMetrics
    let verifier: IdentityVerifier
    private(set) var index = 0
    private let loopCount: Int
    private var context: TLSContext
    private var listener: Listener?
    private var plainListener: Listener?
    private var store: StoreClient?
    private var inbox: Mailbox<HubMessage>?
    private var timer: LoopTimer?
    private var headTimer: LoopTimer?
    private var connections: [UInt64: Connection] = [:]
    private var questions: [UInt64: Question] = [:]
    private var deadlines = DeadlineQueue()
    private var lastNumber: UInt64 = 0
    private var handshakes = 0
    /// By whose address; as many elements as handshakes at most.
    private var handshakesOf: [[UInt8]: Int] = [:]
    /// When the drain's time is over; `nil`: there is none.
    private(set) var drainEnds: Instant?
    /// Connections that were told; each has the turn after the one before.
    private var drainsTold = 0

    private struct Question {
        let connection: UInt64
        let tag: RequestTag?
    }

    init(
        loop: Loop, loopCount: Int, options: SyncOptions, hub: Hub, service: StoreService,
        tls: TLSMaterial, log: Log, metrics: SyncMetrics
    ) throws {
        self.loop = loop
        self.loopCount = loopCount
        self.options = options
        self.hub = hub
        self.log = log
        self.metrics = metrics
        verifier = IdentityVerifier(apps: service.apps)
        context = try Self.context(tls)
        store = service.client(on: loop) { [unowned self] reply in self.answered(reply) }
        let mailbox = Mailbox<HubMessage>(loop: loop, limit: Hub.mailboxLimit) {
            // The mailbox keeps the loop's shell alive until the loop ends.
            messages in self.received(messages)
        }
        inbox = mailbox
        index = hub.add(mailbox)
        timer = loop.timer { [unowned self] in self.deadlinesReached() }
        headTimer = loop.timer { [unowned self] in self.turnOverHeads() }
        headTimer?.start(
            afterMilliseconds: options.headTurn, repeatingMilliseconds: options.headTurn)
    }

    static func context(_ tls: TLSMaterial) throws -> TLSContext {
        try TLSContext.server(
            certificateChain: tls.certificateChain, privateKey: tls.privateKey,
            protocols: ["rouse/1"])
    }

    var now: Instant { Instant(milliseconds: loop.now) }
    /// This loop's share of what the whole process may hold.
    var isOverCapacity: Bool { connections.count > max(1, options.connectionsMax / loopCount) }
    private var handshakesMax: Int { max(1, options.handshakesMax / loopCount) }

    func listen(host: String, port: UInt16) throws -> UInt16 {
        let listener = try Listener.listen(
            loop: loop, host: host, port: port, reusePort: loopCount > 1)
        listener.onConnection = { [unowned self] stream in self.accepted(stream) }
        listener.onAcceptFailure = { [unowned self] error in
            self.log.error("accept.failed", [LogField("error", error)])
        }
        self.listener = listener
        return listener.port
    }

    /// Connections without TLS: no handshake, no address to count against (they come from a
    /// balancer), and nothing else that is different.
    func listenPlain(_ place: PlainListener) throws -> UInt16 {
        let listener = try Listener.listen(
            loop: loop, host: place.host, port: place.port, reusePort: loopCount > 1)
        listener.onConnection = { [unowned self] stream in
            guard PeerAddress(stream.peerAddress)?.isTrusted == true else {
                self.metrics.rateLimited["untrusted"].add()
                return self.turnAway(stream)
            }
            self.begin(stream, engine: nil, holder: nil)
        }
        listener.onAcceptFailure = { [unowned self] error in
            self.log.error("accept.failed", [LogField("error", error)])
        }
        plainListener = listener
        return listener.port
    }

    /// New connections get the new certificate, old ones keep theirs.
    func reload(_ tls: TLSMaterial) throws {
        context = try Self.context(tls)
    }

    func entropy() -> SessionEntropy {
        let bytes = Random.bytes(72)
        let seed = bytes[64...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return SessionEntropy(
            sessionToken: Array(bytes[..<32]), nonce: Array(bytes[32..<64]), seed: seed)
    }

    // MARK: - Connections

    private func accepted(_ stream: Stream) {
        let holder = options.gates.holder(stream.peerAddress)
        if let holder {
            let share = max(1, options.gates.rates.addressHandshakes / loopCount)
            guard options.gates.mayConnect(holder, now: now) else {
                metrics.rateLimited["connections"].add()
                return turnAway(stream)
            }
            guard handshakesOf[holder, default: 0] < share else {
                metrics.rateLimited["handshakes"].add()
                return turnAway(stream)
            }
            handshakesOf[holder, default: 0] += 1
        }
        metrics.handshaking.add(1)
        handshakes += 1
        begin(stream, engine: context.makeEngine(), holder: holder)
        // The rest waits in the kernel's backlog: a handshake in flight costs 70 KiB.
        if handshakes >= handshakesMax { listener?.pauseAccepting() }
    }

    private func begin(_ stream: Stream, engine: TLSEngine?, holder: [UInt8]?) {
        lastNumber += 1
        metrics.accepted.add()
        metrics.open.add(1)
        let connection = Connection(
            number: lastNumber, stream: stream, engine: engine, holder: holder, shell: self)
        connections[lastNumber] = connection
        settle(connection)
    }

    /// Closed before it cost anything: an answer would cost a handshake.
    private func turnAway(_ stream: Stream) { stream.close() }

    func handshakeEnded(_ holder: [UInt8]?) {
        handshakes -= 1
        if let holder, let held = handshakesOf[holder] {
            handshakesOf[holder] = held > 1 ? held - 1 : nil
        }
        metrics.handshaking.add(-1)
        if handshakes < handshakesMax, listener?.isPaused == true {
            listener?.resumeAccepting()
        }
    }

    /// After any input to a connection: its deadline is noted, and it goes when it is finished.
    func settle(_ connection: Connection) {
        if connection.isFinished {
            deadlines.set(nil, for: connection.number)
            if connections.removeValue(forKey: connection.number) != nil {
                metrics.open.add(-1)
            }
            return
        }
        deadlines.set(connection.nextDeadline, for: connection.number)
        armTimer()
    }

    private func armTimer() {
        guard let next = deadlines.next else { return }
        timer?.start(afterMilliseconds: next.since(now))
    }

    private func deadlinesReached() {
        while let number = deadlines.popDue(now: now) {
            connections[number]?.deadlineReached()
            if let connection = connections[number] { settle(connection) }
        }
        armTimer()
    }

    // MARK: - The hub

    private func received(_ messages: [HubMessage]) {
        for message in messages {
            switch message {
            case .headMoved(let number, let head, let kinds, let isUrgent):
                connections[number]?.headMoved(to: head, kinds: kinds, isUrgent: isUrgent)
            case .ended(let number, let generation, let code):
                connections[number]?.ended(code, generation: generation)
            case .challenged(let number, let generation):
                connections[number]?.challenged(generation: generation)
            case .signalled(let number, let signal, let app, let mark):
                // SIG-5: a block or a removal that was answered meanwhile.
                let sender = UserID(signal.user)
                guard let conversation = signal.conversation,
                    hub.audienceMark(app, conversation, sender) == mark
                else { continue }
                connections[number]?.signalled(signal)
            }
        }
    }

    /// Looks at the heads of all users connected here.
    private func turnOverHeads() {
        var users: [AppID: Set<UserID>] = [:]
        for connection in connections.values {
            if let key = connection.key { users[key.app, default: []].insert(key.user) }
        }
        for (app, members) in users {
            let sorted = members.sorted()
            for start in stride(from: 0, to: sorted.count, by: 256) {
                let chunk = Array(sorted[start..<min(start + 256, sorted.count)])
                guard let ticket = store?.read(.heads(app, chunk)) else { return }
                questions[ticket] = Question(connection: 0, tag: nil)
            }
        }
    }

    private func headsRead(_ heads: [FeedChange]) {
        var byUser: [UserID: FeedChange] = [:]
        for head in heads { byUser[head.user] = head }
        for connection in Array(connections.values) {
            guard let key = connection.key, let found = byUser[key.user], found.app == key.app
            else { continue }
            connection.headRead(found.head)
        }
    }

    // MARK: - The store

    func commit(_ request: StoreRequest, for connection: Connection, tag: RequestTag) {
        guard let ticket = store?.commit(request) else { return }
        questions[ticket] = Question(connection: connection.number, tag: tag)
    }

    func read(_ query: StoreQuery, for connection: Connection, tag: RequestTag) {
        guard let ticket = store?.read(query) else { return }
        questions[ticket] = Question(connection: connection.number, tag: tag)
    }

    private func answered(_ reply: StoreReply) {
        guard let question = questions.removeValue(forKey: reply.ticket) else { return }
        if case .committed(let outcome) = reply.result, case .superseded = outcome.answer {
            // The hub was told why the session is over before anybody was answered so, but by
            // another mailbox: a client that was logged out must not read that another connection
            // took its place (SES-23).
            inbox?.deliver()
        }
        if let tag = question.tag {
            connections[question.connection]?.answered(tag, reply.result)
        } else if case .read(.heads(let heads)) = reply.result {
            headsRead(heads)
        }
    }

    // MARK: - The end

    /// How long the next process may take until it listens. No slot lies before: who came too
    /// early would be refused and back off, for longer than the restart takes.
    static let restartTime: Milliseconds = 2_000
    /// Clients a second and loop that come back; a handshake and a login cost about 1 ms.
    static let returnsPerSecond: UInt64 = 250

    /// Asks every client to come back at a slot of its own after `deadline`. Until then everybody
    /// is served, newcomers too.
    func drain(within deadline: Milliseconds) {
        drainEnds = now + deadline
        for connection in Array(connections.values) { tellDrain(connection) }
    }

    /// At the drain's deadline: nobody is let in any more, and who is not logged in is sent away.
    /// Sessions close by themselves.
    func endDrain() {
        guard listener != nil || plainListener != nil else { return }
        listener?.close()
        listener = nil
        plainListener?.close()
        plainListener = nil
        for connection in Array(connections.values) where connection.key == nil {
            connection.drain(deadline: 0, slot: 0)
        }
    }

    /// Tells a connection of the drain, if there is one.
    func tellDrain(_ connection: Connection) {
        guard let drainEnds else { return }
        let left = drainEnds > now ? drainEnds.since(now) : 0
        // Spread, so that the next process is not stormed.
        let spread = 1_000 * UInt64(connections.count) / Self.returnsPerSecond
        let count = max(1, connections.count)
        let turn = DrainSlots.slot(drainsTold % count, of: count, within: spread)
        drainsTold += 1
        connection.drain(deadline: left, slot: left + Self.restartTime + turn)
    }

    var count: Int { connections.count }

    /// Ends all connections at once: the sessions' ends are written at the next start.
    func abandonAll() {
        for connection in Array(connections.values) { connection.abandon("stopped") }
        store?.close()
        headTimer?.close()
        timer?.close()
        inbox?.close()
    }

    func log(_ event: SessionEvent, connection: UInt64) {
        let place = LogField("connection", "\(index)-\(connection)")
        switch event {
        case .challenged(let reason):
            metrics.logins["challenged"].add()
            log.debug("session.challenged", [place, LogField("reason", "\(reason)")])
        case .loginRefused(let code):
            metrics.logins["refused"].add()
            log.info("session.login_refused", [place, LogField("code", code.rawValue)])
        case .opened(let key, let clientName, let clientVersion, let wake):
            metrics.logins["opened"].add()
            log.info(
                "session.opened",
                [
                    place, LogField("app", key.app.name), LogField("user", key.user.name),
                    LogField("device", key.device), LogField("generation", key.generation),
                    LogField("client", "\(clientName) \(clientVersion)"),
                    LogField("wake", wake?.description ?? ""),
                ])
        case .reauthenticated:
            metrics.logins["reauthenticated"].add()
            log.info("session.reauthenticated", [place])
        case .poisonPage(let key, let after):
            metrics.poisonPages.add()
            log.warning(
                "poison_page",
                [
                    place, LogField("app", key.app.name), LogField("user", key.user.name),
                    LogField("device", key.device), LogField("after", after),
                ])
        case .suspected: log.info("session.suspected", [place])
        case .trusted: log.info("session.trusted", [place])
        case .refused(let type, let code):
            log.info(
                "request.refused",
                [place, LogField("frame", "\(type)"), LogField("code", code.rawValue)])
        case .storeFailed(let error):
            log.warning("session.store_failed", [place, LogField("error", "\(error)")])
        case .digestCompared(let own, let clients):
            compared(own, clients, place)
        case .closedByPeer(let code):
            log.debug("session.closed_by_peer", [place, LogField("code", code)])
        }
    }

    /// HIS-35. The counts are in the line, for two empty replicas are equal and prove nothing.
    private func compared(_ own: DigestCounts, _ clients: DigestCounts, _ place: LogField) {
        metrics.digests[own == clients ? "equal" : "mismatch"].add()
        metrics.digestObjects.add(own.conversations + own.readMarks + own.messages)
        let fields = [
            place, LogField("conversations", own.conversations),
            LogField("read_marks", own.readMarks), LogField("messages", own.messages),
            LogField("client_conversations", clients.conversations),
            LogField("client_read_marks", clients.readMarks),
            LogField("client_messages", clients.messages),
        ]
        if own == clients {
            log.debug("digest.equal", fields)
        } else {
            log.warning("digest.mismatch", fields)
        }
    }
}
