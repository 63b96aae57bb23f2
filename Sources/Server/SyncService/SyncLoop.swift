import Crypto
import EventLoop
import Feed
import Model
import StoreService
import SyncServer
import Telemetry
import Wire

/// One event loop of the device port: its listening socket, its connections, its TLS context, its
/// door to the store and one timer for all deadlines. Loop-confined.
final class SyncLoop {
    let loop: Loop
    private(set) var options: SyncOptions
    let hub: Hub
    let log: Log
    let metrics: SyncMetrics
    let verifier: IdentityVerifier
    private(set) var index = 0
    private let loopCount: Int
    private var context: TLSContext
    /// The first one seals tickets.
    private var ticketKeys: [TLSTicketKey] = []
    private var ticketKeyKeeper: TicketKeyKeeper?
    private var listener: Listener?
    /// Somebody else holds its socket, too.
    private var isListenerInherited = false
    private var plainListener: Listener?
    private var store: StoreClient?
    private var inbox: Mailbox<HubMessage>?
    private var timer: LoopTimer?
    private var headTimer: LoopTimer?
    private var connections: [UInt64: Connection] = [:]
    private var questions: [UInt64: Question] = [:]
    private var distantSignals = DistantSignals()
    private var deadlines = DeadlineQueue()
    private var lastNumber: UInt64 = 0
    /// Connections of balancers that have not said yet whose they are.
    private var newcomers: [UInt64: Newcomer] = [:]
    private var lastNewcomer: UInt64 = 0
    private var admission: Admission
    /// Who waits for a turn: for the handshake, or for more frames than one turn takes. Networks
    /// take turns.
    private var turns = FairQueue<PeerNetwork, UInt64>()
    private var isServingTurns = false
    private var countedHandshakes = 0
    /// The bytes of frames that have begun, by user, or by network before the login.
    private var receiving = Holdings<BytesOwner>()
    /// The sessions in the hub, by user.
    private var sessions: LoopSessions
    /// `nil`: there is no drain.
    private var drainPlan: DrainPlan?

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
        admission = Admission(
            connectionsMax: options.connectionsMax / loopCount,
            handshakesMax: options.handshakesMax / loopCount,
            addressHandshakesMax: options.gates.rates.addressHandshakes / loopCount)
        sessions = LoopSessions(turns: options.headTurns)
        verifier = IdentityVerifier(apps: service.apps)
        context = try Self.context(tls)
        store = service.client(on: loop) { [unowned self] reply in self.answered(reply) }
        let mailbox = Mailbox<HubMessage>(loop: loop, limit: Hub.mailboxLimit) {
            // The mailbox keeps the loop's shell alive until the loop ends.
            messages in self.received(messages)
        }
        inbox = mailbox
        index = hub.add(mailbox)
        ticketKeyKeeper = TicketKeyKeeper(loop: loop, service: service) { [unowned self] keys in
            guard keys != self.ticketKeys else { return }
            self.ticketKeys = keys
            self.context.use(ticketKeys: keys, lifetime: Self.ticketSeconds)
            log.info(
                "tls.ticket_keys", [LogField("loop", self.index), LogField("keys", keys.count)])
        }
        timer = loop.timer { [unowned self] in self.deadlinesReached() }
        headTimer = loop.timer { [unowned self] in self.turnOverHeads() }
        headTimer?.start(
            afterMilliseconds: options.headTurn, repeatingMilliseconds: options.headTurn)
    }

    private static let ticketSeconds = Int(TicketKey.ticketLifetime / 1_000)

    static func context(_ tls: TLSMaterial) throws -> TLSContext {
        try TLSContext.server(
            certificateChain: tls.certificateChain, privateKey: tls.privateKey,
            protocols: ["rouse/1"])
    }

    var now: Instant { Instant(milliseconds: loop.now) }

    func listen(host: String, port: UInt16, inherited: Int32?) throws -> UInt16 {
        isListenerInherited = inherited != nil
        let listener =
            try inherited.map { try Listener.listen(loop: loop, inherited: $0) }
            ?? Listener.listen(loop: loop, host: host, port: port, reusePort: loopCount > 1)
        listener.onConnection = { [unowned self] stream in self.accepted(stream, isPlain: false) }
        listener.onAcceptFailure = { [unowned self] error in
            self.log.limited(.error, "accept.failed", [LogField("error", error)])
        }
        self.listener = listener
        return listener.port
    }

    /// Connections without TLS: no handshake, no address to count against unless the balancer tells
    /// it, and nothing else that is different.
    func listenPlain(_ place: PlainListener) throws -> UInt16 {
        let listener = try Listener.listen(
            loop: loop, host: place.host, port: place.port, reusePort: loopCount > 1)
        listener.onConnection = { [unowned self] stream in
            guard PeerAddress(stream.peerAddress)?.isTrusted == true else {
                self.metrics.rateLimited["untrusted"].add()
                return self.turnAway(stream)
            }
            self.accepted(stream, isPlain: true)
        }
        listener.onAcceptFailure = { [unowned self] error in
            self.log.limited(.error, "accept.failed", [LogField("error", error)])
        }
        plainListener = listener
        return listener.port
    }

    /// New connections get the new certificate, old ones keep theirs.
    func reload(_ tls: TLSMaterial) throws {
        context = try Self.context(tls)
        context.use(ticketKeys: ticketKeys, lifetime: Self.ticketSeconds)
    }

    /// The rates are those of all loops, and changed by the service.
    func change(_ limits: SyncLimits) {
        options.connectionsMax = limits.connectionsMax
        options.handshakesMax = limits.handshakesMax
        options.receivingBytesMax = limits.receivingBytesMax
        admission.change(
            connectionsMax: limits.connectionsMax / loopCount,
            handshakesMax: limits.handshakesMax / loopCount,
            addressHandshakesMax: limits.rates.addressHandshakes / loopCount)
    }

    func entropy() -> SessionEntropy {
        let bytes = Random.bytes(72)
        let seed = bytes[64...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return SessionEntropy(
            sessionToken: Array(bytes[..<32]), nonce: Array(bytes[32..<64]), seed: seed)
    }

    // MARK: - Connections

    private func accepted(_ stream: Stream, isPlain: Bool) {
        let peer = stream.peerAddress
        guard options.isBalancer(peer) else {
            return admit(stream, isPlain: isPlain, Client(peer, options.gates.origin(peer)))
        }
        guard newcomers.count < options.handshakesMax else {
            metrics.rateLimited["connections"].add()
            return turnAway(stream)
        }
        lastNewcomer += 1
        let number = lastNewcomer
        newcomers[number] = Newcomer(
            stream, on: loop, deadline: options.handshakeDeadline
        ) { [unowned self] heard in
            self.newcomers[number] = nil
            self.heard(heard, of: stream, isPlain: isPlain)
        }
    }

    /// The balancer said whose connection it passes on.
    private func heard(
        _ heard: Result<(ProxyHeader, rest: [UInt8]), Newcomer.ProxyFault>, of stream: Stream,
        isPlain: Bool
    ) {
        let peer = stream.peerAddress
        switch heard {
        case .failure(let fault):
            log.limited(
                .warning, "proxy.refused",
                [LogField("peer", peer), LogField("reason", fault.reason)])
            turnAway(stream)
        case .success((let header, let rest)):
            // The balancer's own connections count against nobody.
            let own = PeerOrigin(holder: nil, network: options.gates.origin(peer).network)
            let origin = header.client.map { options.gates.origin($0) } ?? own
            admit(stream, isPlain: isPlain, Client(header.client ?? peer, origin, rest))
        }
    }

    /// Whose connection it is.
    private struct Client {
        let address: String
        let origin: PeerOrigin
        /// What came behind the balancer's header.
        let first: [UInt8]

        init(_ address: String, _ origin: PeerOrigin, _ first: [UInt8] = []) {
            (self.address, self.origin, self.first) = (address, origin, first)
        }
    }

    private func admit(_ stream: Stream, isPlain: Bool, _ client: Client) {
        let isCounted = !isPlain || options.isBalancer(stream.peerAddress)
        guard !isCounted || options.gates.mayConnect(client.origin, now: now) else {
            metrics.rateLimited["connections"].add()
            return turnAway(stream)
        }
        begin(stream, isPlain: isPlain, client)
    }

    private func begin(_ stream: Stream, isPlain: Bool, _ client: Client) {
        lastNumber += 1
        metrics.accepted.add()
        metrics.open.add(1)
        hub.connections.add(1)
        let leaving = admission.admit(lastNumber, from: client.origin, besides: sessionCount)
        let connection = Connection(
            number: lastNumber, stream: stream, isPlain: isPlain, origin: client.origin,
            address: client.address, shell: self)
        connections[lastNumber] = connection
        if !client.first.isEmpty { connection.take(first: client.first) }
        settle(connection)
        if let leaving { connections[leaving]?.giveWay("place", atOnce: true) }
    }

    /// Closed before it cost anything: an answer would cost a handshake.
    private func turnAway(_ stream: Stream) { stream.close() }

    /// Connections that are logged in, and those that were and are not quite over.
    private var sessionCount: Int { connections.count - admission.strangerCount }
    private var isCrowded: Bool { admission.isCrowded(besides: sessionCount) }

    /// Nobody more is logged in.
    var isFull: Bool { sessionCount >= admission.connectionsMax }

    /// Who has no bytes of a ClientHello sent has less time when places run short.
    var silenceDeadline: Milliseconds {
        isCrowded ? options.crowdedHandshakeDeadline : options.handshakeDeadline
    }

    var sessionConfiguration: SessionConfiguration {
        isCrowded ? options.crowdedSession : options.session
    }

    func makeEngine() -> TLSEngine { context.makeEngine() }

    /// A whole ClientHello is there: its handshake begins in a turn of its own.
    func clientHelloCame(_ connection: Connection) {
        let leaving = admission.beginHandshake(connection.number, from: connection.origin)
        countHandshakes()
        waitsForTurn(connection)
        if let leaving { connections[leaving]?.giveWay("handshake", atOnce: true) }
    }

    func handshakeEnded(_ connection: UInt64) {
        admission.endHandshake(connection)
        countHandshakes()
    }

    /// The connection's socket is closed.
    func left(_ connection: Connection) {
        admission.left(connection.number)
        countHandshakes()
    }

    private func countHandshakes() {
        metrics.handshaking.add(admission.handshakeCount - countedHandshakes)
        countedHandshakes = admission.handshakeCount
    }

    // MARK: - Turns

    /// The connection gets a turn, after those of other networks that wait for one already.
    func waitsForTurn(_ connection: Connection) {
        turns.append(connection.number, of: connection.origin.network)
        askForTurns()
    }

    private func askForTurns() {
        guard !isServingTurns else { return }
        isServingTurns = true
        loop.nextTurn { [weak self] in self?.serveTurns() }
    }

    /// As many turns as a few milliseconds hold: all others are looked at in between.
    private func serveTurns() {
        isServingTurns = false
        let end = SystemClock.monotonicMilliseconds() + SyncOptions.turnsTime
        repeat {
            guard let number = turns.take(1).first else { return }
            connections[number]?.takeTurn()
        } while SystemClock.monotonicMilliseconds() < end
        if !turns.isEmpty { askForTurns() }
    }

    /// So many bytes of a frame that has begun are held for the connection. Whoever holds bytes
    /// for longest gives way when there are too many: of one owner, or of all.
    func hold(_ bytes: Int, for connection: Connection) {
        let before = receiving.amount
        defer { options.receiving.add(receiving.amount - before) }
        guard bytes > 0 else { return receiving.release(connection.number) }
        let owner = connection.bytesOwner
        receiving.hold(bytes, connection: connection.number, of: owner)
        while receiving.amount(of: owner) > options.ownerReceivingMax(loopCount),
            let leaving = receiving.oldest(of: owner)
        {
            takeBytes(of: leaving)
        }
        while receiving.amount > options.receivingMax(loopCount),
            let leaving = receiving.oldest()
        {
            takeBytes(of: leaving)
        }
    }

    private func takeBytes(of connection: UInt64) {
        let before = receiving.amount
        receiving.release(connection)
        options.receiving.add(receiving.amount - before)
        connections[connection]?.giveWay("bytes", atOnce: false)
    }

    /// After any input to a connection: its deadline is noted, and it goes when it is finished.
    func settle(_ connection: Connection) {
        if connection.isFinished {
            deadlines.set(nil, for: connection.number)
            if connections.removeValue(forKey: connection.number) != nil {
                metrics.open.add(-1)
                hub.connections.add(-1)
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
            case .committed(let news):
                carryOut(news)
                hub.took(news, on: index)
            case .signalled(let number, let signal, let app, let mark):
                // SIG-5: a block or a removal that was answered meanwhile.
                let sender = UserID(signal.user)
                guard let conversation = signal.conversation,
                    hub.audienceMark(app, conversation, sender) == mark
                else { continue }
                connections[number]?.signalled(signal)
            case .signalledElsewhere(let signal):
                let mark = hub.audienceMark(signal.app, signal.conversation, signal.sender)
                distantSignals.take(signal, mark: mark) { store?.read($0) }
            }
        }
    }

    /// Who gets a signal of another node was read, or could not be.
    private func handOn(_ signal: NodeSignal, _ mark: UInt64, _ result: StoreResult) {
        // Nobody waits for it: what changed meanwhile is not read again (SIG-6).
        guard case .read(.audience(let users)) = result,
            hub.audienceMark(signal.app, signal.conversation, signal.sender) == mark
        else { return }
        hub.signal(signal.signal, app: signal.app, to: users, mark: mark)
    }

    /// Who is to log in anew, or out, hears of that first: what the commit appended is not for
    /// a session that it ended.
    private func carryOut(_ news: LoopNews) {
        if news.followsLoss { for connection in connections.values { connection.unreadMoved() } }
        for (number, generation) in news.challenged {
            connections[number]?.challenged(generation: generation)
        }
        for (number, generation) in news.tokensDied {
            connections[number]?.tokenDied(generation: generation)
        }
        for (number, generation, code) in news.ended {
            connections[number]?.ended(code, generation: generation)
        }
        for (number, change) in news.moved {
            connections[number]?.feedChanged(news.change(change), at: news.at)
        }
    }

    /// The connection is logged in: it goes into the hub, and its place is not a stranger's.
    func entered(_ connection: Connection, _ key: SessionKey) {
        admission.left(connection.number)
        sessions.enter(connection.number, of: Hub.UserKey(key))
        hub.enter(key, at: ConnectionPlace(loop: index, number: connection.number))
    }

    func hasLeft(_ connection: Connection, _ key: SessionKey) {
        sessions.leave(connection.number, of: Hub.UserKey(key))
        hub.leave(key, at: ConnectionPlace(loop: index, number: connection.number))
    }

    /// Looks at the heads of the users connected here who are due, and at the rows of their
    /// sessions.
    private func turnOverHeads() {
        log.tellLeftOut()
        if hub.takeLoss(loop: index) { sessions.allAreDue() }
        for query in sessions.nextTurn({ connections[$0]?.key }) {
            guard let ticket = store?.read(query) else { return }
            questions[ticket] = Question(connection: 0, tag: nil)
        }
    }

    private func headsRead(_ heads: [FeedChange]) {
        for head in heads {
            for number in sessions.connections(
                of: Hub.UserKey(app: head.app, user: head.user))
            {
                connections[number]?.headRead(head.head)
            }
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
        if let (signal, mark) = distantSignals.answered(reply.ticket) {
            return handOn(signal, mark, reply.result)
        }
        guard let question = questions.removeValue(forKey: reply.ticket) else { return }
        if case .committed = reply.result {
            // The hub was told of the commit before anybody was answered, but by another mailbox.
            // A client that was logged out must not read that another connection took its place
            // (SES-23); and who knows of its head from an answer would have to read what the hub
            // hands over.
            inbox?.deliver()
        }
        if let tag = question.tag {
            connections[question.connection]?.answered(tag, reply.result)
        } else if case .read(.heads(let heads)) = reply.result {
            headsRead(heads)
        } else if case .read(.standings(let standings)) = reply.result {
            for session in standings.keys {
                for number in sessions.connections(of: Hub.UserKey(session)) {
                    guard let connection = connections[number], connection.key == session
                    else { continue }
                    connection.standingDoubted()
                }
            }
        }
    }

    // MARK: - The end

    var isDraining: Bool { drainPlan != nil }

    /// Asks every client to come back at a slot of its own. Until the deadline everybody is
    /// served, newcomers too, who are asked as well.
    ///
    /// - Parameters:
    ///   - deadline: until the process ends; `nil`: it goes on without devices.
    ///   - isElsewhere: Other nodes take them.
    func drain(within deadline: Milliseconds?, isElsewhere: Bool) {
        drainPlan = DrainPlan(ends: deadline.map { now + $0 }, isElsewhere: isElsewhere)
        for connection in Array(connections.values) {
            // Who has not logged in yet may do so while the process goes on, and where no attempt
            // is to fail.
            if deadline == nil || isListenerInherited, connection.key == nil { continue }
            tellDrain(connection)
        }
    }

    /// Who comes from here on may stay.
    func resume() { drainPlan = nil }

    /// Asks so many clients to come back, elsewhere if their balancer finds that better.
    func sendAway(_ count: Int) {
        // Those that were asked before count where they still are.
        let asked = connections.values.lazy.filter(\.knowsDrain).count
        let count = count - min(count, asked)
        let leaving = connections.values.lazy.filter { $0.key != nil && !$0.knowsDrain }
            .prefix(count)
        var plan = DrainPlan(ends: nil, isElsewhere: true)
        for connection in Array(leaving) {
            let (deadline, slot) = plan.next(of: count, now: now)
            connection.drain(deadline: deadline, slot: slot)
        }
    }

    /// Shortly before the drain's deadline: whoever connects is left to the next process, which
    /// finds them waiting in a socket that is held for it.
    func leaveNewcomers() {
        if isListenerInherited, listener?.isPaused == false { listener?.pauseAccepting() }
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
        guard let (deadline, slot) = drainPlan?.next(of: connections.count, now: now) else {
            return
        }
        connection.drain(deadline: deadline, slot: slot)
    }

    var count: Int { connections.count }

    /// Ends all connections at once: the sessions' ends are written at the next start.
    func abandonAll() {
        for connection in Array(connections.values) { connection.abandon("stopped") }
        store?.close()
        ticketKeyKeeper?.close()
        headTimer?.close()
        timer?.close()
        inbox?.close()
    }
}
