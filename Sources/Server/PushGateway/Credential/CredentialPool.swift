import Crypto
import EventLoop
import Failpoints
import Feed
import HTTP2
import Model
import Telemetry
import Wake

/// What a pool needs of the gateway.
protocol CredentialPoolOwner: AnyObject {
    var tokens: ProviderTokens { get }
    /// An engine that trusts what the credential says.
    func makeTLS(_ credential: PushCredentialRecord) throws(TLSError) -> TLSEngine
    func finish(_ push: HeldPush, _ reply: PushReply)
    /// Streams have become free.
    func poolHasRoom()
    /// APNs wants fewer provider tokens of this key: all of its pools rest.
    func rest(_ key: ProviderKey, for pause: Milliseconds, reason: String)
}

/// The pushes and connections of one credential. Loop-confined.
///
/// The first push binds a connection to its key, so no connection is shared with another
/// credential. There is one connection, and while it is being replaced two. Classes of pushes
/// with connections of their own belong here: in `active` and `pump()`.
final class CredentialPool {
    let key: CredentialKey
    let credential: PushCredentialRecord
    let provider: ProviderKey
    private unowned let owner: any CredentialPoolOwner
    private let loop: Loop
    private let configuration: PushGatewayConfiguration
    private let log: Log
    private let metrics: GatewayMetrics
    private var waiting = WaitingPushes()
    /// Pushes are sent here.
    private var active: APNsConnection?
    /// Takes `active`'s place once it is up.
    private var dialing: APNsConnection?
    /// Take no new streams; gone when their last has ended.
    private var leaving: [APNsConnection] = []
    private var lastNumber: UInt64 = 0
    private var failures = 0
    private var nextConnectAt: Instant?
    private var replacedAt: Instant?
    private var pause: Pause?
    private var pauseCount = 0
    /// After a pause one push shows whether APNs accepts again.
    private var isProbing = false
    private var isPumping = false
    private(set) var isRetired = false

    private struct Pause {
        let until: Instant
        let isOfKey: Bool
    }

    init(
        _ credential: PushCredentialRecord, owner: any CredentialPoolOwner, loop: Loop,
        configuration: PushGatewayConfiguration, log: Log, metrics: GatewayMetrics
    ) {
        key = CredentialKey(app: credential.app, environment: credential.environment)
        provider = ProviderKey(
            team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
        self.credential = credential
        self.owner = owner
        self.loop = loop
        self.configuration = configuration
        self.log = log
        self.metrics = metrics
    }

    private var now: Instant { Instant(milliseconds: loop.now) }
    private var connections: [APNsConnection] {
        leaving + [active, dialing].compactMap { $0 }
    }

    // MARK: - For the gateway

    /// Whether pushes of this credential should be claimed at all.
    var takesPushes: Bool {
        guard pause == nil, !isRetired, waiting.count < configuration.waitingMax else {
            return false
        }
        if active?.isUsable == true || failures < configuration.reconnectPatience { return true }
        return nextConnectAt.map { $0 <= now } ?? true
    }

    /// How many more pushes could be sent now.
    var freeStreams: Int {
        guard takesPushes else { return 0 }
        guard let active, active.isUsable else { return max(0, 1 - waiting.count) }
        return max(0, limit(of: active) - active.openStreams - waiting.count)
    }

    var openStreams: Int { connections.reduce(0) { $0 + $1.openStreams } }
    var streamsAllowed: Int { active.map { limit(of: $0) } ?? 0 }
    var waitingCount: Int { waiting.count }
    var isPaused: Bool { pause != nil }
    /// Retired, and nothing is open any more.
    var isGone: Bool { isRetired && connections.isEmpty }

    func take(_ push: HeldPush) {
        guard !isRetired, pause == nil else { return owner.finish(push, .notSent) }
        waiting.append(push)
        pump()
    }

    func tick() {
        if let pause, pause.until <= now {
            self.pause = nil
            isProbing = !pause.isOfKey
            log.info("push.resumed", place)
        }
        for push in waiting.takeLate(now: now, reserve: configuration.leaseReserve) {
            unsent(push)
        }
        for connection in connections { connection.tick() }
        pump()
    }

    /// The credential was changed or removed: what waits is given back, what is under way ends.
    func retire() -> [HeldPush] {
        isRetired = true
        for connection in connections { connection.retire() }
        return waiting.takeAll()
    }

    /// Ends at once.
    func stop() {
        isRetired = true
        for push in waiting.takeAll() { unsent(push) }
        for connection in connections { connection.stop() }
    }

    // MARK: - Sending

    private func limit(of connection: APNsConnection) -> Int {
        isProbing ? min(1, connection.streamLimit) : connection.streamLimit
    }

    private func pump() {
        // A submission never calls back, but what it leads to may.
        guard !isPumping, !waiting.isEmpty, pause == nil, !isRetired else { return }
        isPumping = true
        defer { isPumping = false }
        guard let active, active.isUsable else { return connect() }
        guard active.isReadyToSend() else { return }
        var sent: PushKind?
        while active.openStreams < limit(of: active), let push = nextInTime() {
            let token: String
            do throws(UnusableKey) {
                token = try owner.tokens.current(provider)
            } catch {
                waiting.giveBack([push])
                rest(.max, reason: error.description, isOfKey: false)
                break
            }
            switch active.submit(push, token: token) {
            case .sent:
                sent = push.job.kind
                continue
            case .full: waiting.giveBack([push])
            case .ending:
                waiting.giveBack([push])
                connect()
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
        active.flush()
        if let sent { Failpoint.hit(.sent(sent)) }
    }

    private func nextInTime() -> HeldPush? {
        while let push = waiting.takeFirst() {
            if now < push.sendBefore(reserve: configuration.leaseReserve) { return push }
            unsent(push)
        }
        return nil
    }

    private func unsent(_ push: HeldPush) {
        count(push, status: "unsent", reason: "none")
        owner.finish(push, .notSent)
    }

    private func count(_ push: HeldPush, status: String, reason: String) {
        metrics.pushes["\(push.job.kind)", status, reason].add()
    }

    // MARK: - Connections

    /// Begins a connection unless one is under way or it is too early.
    private func connect() {
        guard dialing == nil, !isRetired else { return }
        if let nextConnectAt, now < nextConnectAt { return }
        let endpoint = APNsEndpoint(
            host: credential.host, port: UInt16(clamping: credential.port))
        let engine: TLSEngine
        do throws(TLSError) {
            engine = try owner.makeTLS(credential)
        } catch {
            return rest(.max, reason: "\(error)", isOfKey: false)
        }
        lastNumber += 1
        let connection = APNsConnection(
            number: lastNumber, endpoint: endpoint, tls: engine, loop: loop,
            configuration: configuration, owner: self)
        dialing = connection
        connection.start()
    }

    /// Another connection takes the place of the present one, which goes on until then.
    private func replace(_ connection: APNsConnection, reason: String) {
        guard connection === active, dialing == nil else { return }
        if let replacedAt, now.since(replacedAt) < configuration.replaceSpacing { return }
        replacedAt = now
        log.info("push.connection_replaced", place + [LogField("reason", reason)])
        connect()
    }

    /// A connection came to nothing: the next one waits, with jitter, so that many servers do
    /// not return together.
    private func failed() {
        failures += 1
        let doublings = UInt64(min(failures - 1, 16))
        let wait = min(
            configuration.reconnectDelay << doublings, configuration.reconnectDelayMax)
        nextConnectAt = now + (wait / 2 + UInt64.random(in: 0...(wait / 2 + 1)))
    }

    // MARK: - Pauses

    private func rest(_ pause: Milliseconds, reason: String, isOfKey: Bool) {
        guard self.pause == nil, !isRetired else { return }
        self.pause = Pause(until: now + pause, isOfKey: isOfKey)
        log.error(
            "push.paused",
            place + [
                LogField("reason", reason),
                LogField("seconds", pause == .max ? "until changed" : "\(pause / 1000)"),
            ])
        for push in waiting.takeAll() { unsent(push) }
    }

    /// APNs accepts no push of this credential as it is configured.
    private func refused(_ reason: String) {
        let wait = min(configuration.pause << UInt64(min(pauseCount, 8)), configuration.pauseMax)
        if pause == nil { pauseCount += 1 }
        rest(wait, reason: reason, isOfKey: false)
    }

    /// The key, which other credentials may have too, must not be used for a while.
    func restKey(for pause: Milliseconds, reason: String) {
        rest(pause, reason: reason, isOfKey: true)
    }

    private var place: [LogField] {
        [
            LogField("app", key.app.name), LogField("environment", "\(key.environment)"),
            LogField("host", credential.host),
        ]
    }
}

// MARK: - From the connections

extension CredentialPool: APNsConnectionOwner {
    func connectionReady(_ connection: APNsConnection) {
        guard connection === dialing else { return }
        dialing = nil
        metrics.connections["connected"].add()
        log.info(
            "push.connected",
            place + [LogField("port", credential.port), LogField("connection", connection.number)])
        if let old = active {
            leaving.append(old)
            old.retire()
        }
        active = connection
        pump()
        owner.poolHasRoom()
    }

    func connectionHasRoom(_ connection: APNsConnection) {
        guard connection === active else { return }
        pump()
        owner.poolHasRoom()
    }

    func connection(
        _ connection: APNsConnection, answered push: HeldPush, _ response: PushResponse
    ) {
        failures = 0
        nextConnectAt = nil
        count(push, status: "\(response.status)", reason: PushResponse.label(response.reason))
        metrics.answerSeconds.observe(milliseconds: now.since(push.claimedAt))
        let answer = PushAnswer(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            failures: 0)
        tell(push, response, answer)
        owner.finish(
            push,
            .answered(
                status: response.status, reason: response.reason, timestamp: response.timestamp))
        act(on: answer, response, connection)
    }

    private func act(
        on answer: PushAnswer, _ response: PushResponse, _ connection: APNsConnection
    ) {
        switch answer {
        case .accepted:
            isProbing = false
            pauseCount = 0
        case .deadToken, .ourBug: break
        case .pauseCredential: refused(response.reason)
        case .retryLater(let after, let step):
            switch step {
            case .none: break
            case .reconnect: replace(connection, reason: response.reason)
            case .keepToken: owner.rest(provider, for: after, reason: response.reason)
            case .renewToken: renewToken(connection, response.reason)
            }
        }
    }

    private func renewToken(_ connection: APNsConnection, _ reason: String) {
        let wait = owner.tokens.expired(provider)
        if wait == 0 {
            // APNs may go on refusing on the connection that carried the expired one.
            replacedAt = nil
            replace(connection, reason: reason)
        } else {
            log.error(
                "push.token_refused_young",
                place + [LogField("hint", "is this host's clock right?")])
            owner.rest(provider, for: wait, reason: reason)
        }
    }

    private func tell(_ push: HeldPush, _ response: PushResponse, _ answer: PushAnswer) {
        let fields = {
            self.place + [
                LogField("kind", "\(push.job.kind)"), LogField("push", push.job.request.id),
                LogField("device", push.job.key.device), LogField("status", response.status),
                LogField("reason", response.reason),
            ]
        }
        switch answer {
        case .accepted: log.debug("push.accepted", fields())
        case .deadToken, .retryLater: log.info("push.refused", fields())
        case .pauseCredential: log.warning("push.refused", fields())
        case .ourBug: log.error("push.wrong", fields())
        }
    }

    func connection(_ connection: APNsConnection, leftUnanswered push: HeldPush) {
        count(push, status: "unanswered", reason: "none")
        log.info(
            "push.unanswered",
            place + [
                LogField("kind", "\(push.job.kind)"), LogField("push", push.job.request.id),
                LogField("connection", connection.number),
            ])
        owner.finish(push, .unanswered)
    }

    func connection(_ connection: APNsConnection, returned pushes: [HeldPush]) {
        var again: [HeldPush] = []
        for var push in pushes {
            push.offers += 1
            if push.offers >= configuration.offersMax || pause != nil || isRetired {
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
        if connection === active {
            active = nil
            leaving.append(connection)
            if !connection.hasAnswered { failed() }
        }
        if !reason.isEmpty,
            PushAnswer(status: 0, reason: reason, timestamp: nil, failures: 0) == .pauseCredential
        {
            refused(reason)
        }
        pump()
    }

    func connectionIsSuspect(_ connection: APNsConnection) {
        replace(connection, reason: "silent streams")
    }

    func connection(_ connection: APNsConnection, ended end: ConnectionEnd) {
        let wasDialing = connection === dialing
        let wasActive = connection === active
        if wasDialing { dialing = nil }
        if wasActive { active = nil }
        leaving.removeAll { $0 === connection }
        guard end != .retired, end != .stopped else { return }
        metrics.connections[end.label].add()
        let fields =
            place + [
                LogField("connection", connection.number), LogField("end", end.label),
                LogField("error", end.explanation(host: credential.host)),
            ]
        if wasDialing || (wasActive && !connection.hasAnswered) {
            failed()
            let wait = nextConnectAt.map { $0.since(now) } ?? 0
            log.error(
                wasDialing ? "push.connect_failed" : "push.connection_lost",
                fields + [LogField("retry_ms", wait)])
        } else {
            log.warning("push.connection_lost", fields)
        }
        pump()
    }
}
