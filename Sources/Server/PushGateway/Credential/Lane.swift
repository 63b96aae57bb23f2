import Crypto
import EventLoop
import Failpoints
import Feed
import HTTP2
import Model
import Telemetry
import Wake

/// What the lanes of a credential share.
protocol LaneOwner: AnyObject {
    var key: CredentialKey { get }
    var credential: PushCredentialRecord { get }
    var isPaused: Bool { get }
    var isRetired: Bool { get }
    /// One push shows whether APNs accepts again: no other is sent meanwhile.
    var isBusyProbing: Bool { get }
    /// More of this lane waits in the store.
    func isBlocked(_ lane: PushClass) -> Bool
    var mayConnect: Bool { get }
    func nextConnectionNumber() -> UInt64
    func makeTLS() throws(TLSError) -> TLSEngine
    func authority() throws(UnusableKey) -> PushAuthority
    /// Nothing can be sent until the credential is changed.
    func unusable(_ reason: String)
    func connectionWorked(_ connection: APNsConnection)
    func connectFailed(_ reason: String)
    func connectionLost(_ connection: APNsConnection) -> Milliseconds
    func answered(
        _ push: HeldPush, _ response: PushResponse, lane: Lane, connection: APNsConnection)
    func finish(_ push: HeldPush, _ reply: PushReply)
    func goneAway(reason: String)
    func laneHasRoom(_ lane: PushClass)
}

/// What makes APNs take a push.
enum PushAuthority {
    /// The connection's client certificate.
    case certificate
    case token(String)
    /// A token that the store is asked for; the lane is pumped when it comes.
    case awaited
}

/// The pushes and connections of one class of one credential. Loop-confined.
///
/// It starts with one connection, gets more while all streams are taken, and replaces one by
/// making another before it gives the old one up.
final class Lane {
    let kind: PushClass
    private unowned let owner: any LaneOwner
    private let loop: Loop
    private let configuration: PushGatewayConfiguration
    private let log: Log
    private let metrics: GatewayMetrics
    private var waiting = WaitingPushes()
    /// Pushes are sent here, the oldest connection first.
    private var active: [APNsConnection] = []
    /// Joins `active` once it is up.
    private var dialing: APNsConnection?
    /// Gives way to `dialing` then.
    private var replaced: APNsConnection?
    /// Take no new streams; gone when their last has ended.
    private var leaving: [APNsConnection] = []
    private var replacedAt: Instant?
    private var growth: LaneGrowth
    private var isPumping = false

    init(
        _ kind: PushClass, owner: any LaneOwner, loop: Loop,
        configuration: PushGatewayConfiguration, log: Log, metrics: GatewayMetrics
    ) {
        self.kind = kind
        self.owner = owner
        self.loop = loop
        self.configuration = configuration
        self.log = log
        self.metrics = metrics
        growth = LaneGrowth(
            after: configuration.growAfter, spacing: configuration.growSpacing)
    }

    private var now: Instant { Instant(milliseconds: loop.now) }
    private var all: [APNsConnection] { leaving + active + [dialing].compactMap { $0 } }

    // MARK: - For the credential

    var waitingCount: Int { waiting.count }
    var openStreams: Int { all.reduce(0) { $0 + $1.openStreams } }
    var streamsAllowed: Int { active.reduce(0) { $0 + $1.streamLimit } }
    var connectionCount: Int { active.count }
    var oldestStream: Milliseconds { all.map(\.oldestStream).max() ?? 0 }
    var isGone: Bool { all.isEmpty }
    var isUsable: Bool { active.contains(where: \.isUsable) }

    /// How many more pushes could be sent now.
    var freeStreams: Int {
        guard waiting.count < configuration.waitingMax else { return 0 }
        let free = active.filter(\.isUsable).reduce(0) {
            $0 + max(0, $1.streamLimit - $1.openStreams)
        }
        // The first push has the connection made.
        return max(0, (isUsable ? free : 1) - waiting.count)
    }

    func take(_ push: HeldPush) {
        waiting.append(push)
        pump()
    }

    func tick() {
        let now = now
        for push in waiting.take(where: { $0.sendBefore(configuration) <= now }) { unsent(push) }
        for connection in all { connection.tick() }
        renew()
        grow()
        pump()
    }

    /// Takes no more pushes; what is under way ends.
    func retire() -> [HeldPush] {
        for connection in all { connection.retire() }
        return waiting.takeAll()
    }

    func stop() {
        for push in waiting.takeAll() { unsent(push) }
        for connection in all { connection.stop() }
    }

    /// The credential pauses.
    func giveUpWaiting() {
        for push in waiting.takeAll() { unsent(push) }
    }

    /// A topic pauses.
    func giveUpWaiting(_ topic: String) {
        for push in waiting.take(where: { $0.job.request.topic == topic }) { unsent(push) }
    }

    // MARK: - Sending

    func pump() {
        // A submission never calls back, but what it leads to may.
        guard !isPumping, !waiting.isEmpty, !owner.isPaused, !owner.isRetired else { return }
        isPumping = true
        defer { isPumping = false }
        guard isUsable else { return connect() }
        var sent: PushKind?
        for connection in active where !waiting.isEmpty && connection.isReadyToSend() {
            if let last = fill(connection) { sent = last }
            connection.flush()
        }
        if !isUsable { connect() }
        // What is submitted while bytes are received leaves at the end of that.
        if let sent, Failpoint.areBuiltIn { loop.nextTurn { Failpoint.hit(.sent(sent)) } }
    }

    /// - Returns: the class of the last push that was sent, if one was.
    private func fill(_ connection: APNsConnection) -> PushKind? {
        var sent: PushKind?
        while connection.openStreams < connection.streamLimit, !owner.isBusyProbing,
            let push = nextInTime()
        {
            let token: String?
            do throws(UnusableKey) {
                switch try owner.authority() {
                case .certificate: token = nil
                case .token(let text): token = text
                case .awaited:
                    waiting.giveBack([push])
                    return sent
                }
            } catch {
                waiting.giveBack([push])
                owner.unusable(error.description)
                break
            }
            switch connection.submit(push, token: token) {
            case .sent:
                sent = push.job.kind
                continue
            case .full, .ending: waiting.giveBack([push])
            case .impossible(let text):
                log.error("push.impossible", place + [LogField("error", text)])
                // There is no HTTP status: the request was never made, and never can be.
                count(push, status: "none", reason: "none")
                owner.finish(
                    push, .answered(status: 0, reason: "Unsendable", timestamp: nil))
                continue
            }
            break
        }
        return sent
    }

    private func nextInTime() -> HeldPush? {
        while let push = waiting.takeFirst() {
            if now < push.sendBefore(configuration) { return push }
            unsent(push)
        }
        return nil
    }

    private func unsent(_ push: HeldPush) {
        count(push, status: "unsent", reason: "none")
        owner.finish(push, .notSent)
    }

    private func count(_ push: HeldPush, status: String, reason: String) {
        metrics.pushes[push.job.lane.name, status, reason].add()
    }

    // MARK: - Connections

    /// Begins a connection unless one is under way or it is too early.
    private func connect() {
        guard dialing == nil, !owner.isRetired, owner.mayConnect else { return }
        let credential = owner.credential
        let engine: TLSEngine
        do {
            // A provider token comes while the connection is made.
            _ = try owner.authority()
            engine = try owner.makeTLS()
        } catch {
            return owner.unusable("\(error)")
        }
        let connection = APNsConnection(
            number: owner.nextConnectionNumber(),
            endpoint: APNsEndpoint(
                host: credential.host, port: UInt16(clamping: credential.port)),
            tls: engine, usesTokens: credential.certificatePEM == nil, loop: loop,
            configuration: configuration, metrics: metrics, owner: self)
        dialing = connection
        connection.start()
    }

    /// Another connection takes the place of this one, which goes on until then.
    ///
    /// - Parameter isUrgent: APNs will refuse everything on it; a pattern of connects is
    ///   prevented by the pause of the push that told so.
    func replace(_ connection: APNsConnection, reason: String, isUrgent: Bool = false) {
        guard active.contains(where: { $0 === connection }), dialing == nil else { return }
        if !isUrgent, let replacedAt, now.since(replacedAt) < configuration.replaceSpacing {
            return
        }
        replacedAt = now
        replaced = connection
        log.info(
            "push.connection_replaced",
            place + [
                LogField("connection", connection.number), LogField("reason", reason),
            ])
        connect()
        if dialing == nil { replaced = nil }
    }

    /// Old connections are replaced, and of several idle ones all but one go.
    private func renew() {
        guard !owner.isRetired else { return }
        if let old = active.first(where: { $0.age >= configuration.connectionAge }) {
            replace(old, reason: "age")
        }
        guard active.count > 1,
            let idle = active.last(where: { $0.idleTime >= configuration.surplusIdle })
        else { return }
        leave(idle)
        idle.retire()
    }

    private func grow() {
        let isFull =
            !active.isEmpty
            && active.allSatisfy {
                // One stream is what APNs leaves to a connection it does not trust yet, or any
                // more: another one would be treated no better, unless this one is stuck.
                $0.openStreams >= $0.streamLimit
                    && ($0.streamLimit > 1 || $0.oldestStream >= configuration.streamDeadline)
            }
        let isPressed = isFull && (!waiting.isEmpty || owner.isBlocked(kind))
        let wants = growth.observe(isPressed: isPressed, now: now)
        guard wants, active.count < connectionsMax, dialing == nil, !owner.isPaused else { return }
        log.info("push.connection_added", place + [LogField("connections", active.count + 1)])
        connect()
    }

    /// Wrong tokens are asked about slowly; one connection does.
    private var connectionsMax: Int { kind == .probe ? 1 : configuration.connectionsMax }

    private func leave(_ connection: APNsConnection) {
        active.removeAll { $0 === connection }
        leaving.append(connection)
    }

    private var place: [LogField] {
        [
            LogField("app", owner.key.app.name),
            LogField("environment", "\(owner.key.environment)"),
            LogField("credential", owner.key.name), LogField("class", kind.name),
            LogField("host", owner.credential.host),
        ]
    }
}

// MARK: - From the connections

extension Lane: APNsConnectionOwner {
    func connectionReady(_ connection: APNsConnection) {
        guard connection === dialing else { return }
        dialing = nil
        metrics.connections["connected"].add()
        log.info(
            "push.connected",
            place + [
                LogField("port", owner.credential.port),
                LogField("connection", connection.number),
            ])
        if let old = replaced, active.contains(where: { $0 === old }) {
            leave(old)
            old.retire()
        }
        replaced = nil
        active.append(connection)
        pump()
        owner.laneHasRoom(kind)
    }

    func connectionHasRoom(_ connection: APNsConnection) {
        guard active.contains(where: { $0 === connection }) else { return }
        pump()
        owner.laneHasRoom(kind)
    }

    func connection(
        _ connection: APNsConnection, answered push: HeldPush, _ response: PushResponse
    ) {
        owner.connectionWorked(connection)
        count(push, status: "\(response.status)", reason: PushResponse.label(response.reason))
        metrics.answerSeconds.observe(milliseconds: now.since(push.claimedAt))
        if response.isLate {
            log.info("push.late_answer", place + [LogField("push", push.job.request.id)])
        }
        owner.answered(push, response, lane: self, connection: connection)
    }

    func connection(_ connection: APNsConnection, leftUnanswered push: HeldPush) {
        count(push, status: "unanswered", reason: "none")
        log.info(
            "push.unanswered",
            place + [
                LogField("push", push.job.request.id), LogField("connection", connection.number),
            ])
        owner.finish(push, .unanswered)
    }

    func connection(_ connection: APNsConnection, returned pushes: [HeldPush]) {
        var again: [HeldPush] = []
        for var push in pushes {
            push.offers += 1
            if push.offers >= configuration.offersMax || owner.isPaused || owner.isRetired {
                unsent(push)
            } else {
                again.append(push)
            }
        }
        waiting.giveBack(again)
        // Not from here: a stream that is refused at once would be offered again at once.
        loop.nextTurn { [weak self] in self?.pump() }
    }

    func connection(_ connection: APNsConnection, goAway reason: String, code: HTTP2ErrorCode) {
        metrics.goAways[PushResponse.label(reason)].add()
        log.warning(
            "push.goaway",
            place + [
                LogField("connection", connection.number), LogField("reason", reason),
                LogField("code", code.rawValue), LogField("open", connection.openStreams),
            ])
        if active.contains(where: { $0 === connection }) {
            leave(connection)
            _ = owner.connectionLost(connection)
        }
        owner.goneAway(reason: reason)
        pump()
    }

    func connectionIsSuspect(_ connection: APNsConnection) {
        replace(connection, reason: "silent streams")
    }

    func connection(_ connection: APNsConnection, ended end: ConnectionEnd) {
        let wasDialing = connection === dialing
        if wasDialing { owner.connectFailed(end.explanation(host: owner.credential.host)) }
        let wasActive = active.contains { $0 === connection }
        if wasDialing {
            dialing = nil
            replaced = nil
        }
        active.removeAll { $0 === connection }
        leaving.removeAll { $0 === connection }
        guard end != .retired, end != .stopped else { return }
        metrics.connections[end.label].add()
        let fields =
            place + [
                LogField("connection", connection.number), LogField("end", end.label),
                LogField("error", end.explanation(host: owner.credential.host)),
            ]
        if wasDialing || wasActive {
            let wait = owner.connectionLost(connection)
            let isVain = wasDialing || !connection.hasAnswered
            let event = wasDialing ? "push.connect_failed" : "push.connection_lost"
            let told = fields + [LogField("retry_ms", wait)]
            isVain ? log.error(event, told) : log.warning(event, told)
        } else {
            log.warning("push.connection_lost", fields)
        }
        pump()
    }
}
