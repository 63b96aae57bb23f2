internal import Crypto
public import Model

extension SimulatorState {
    static let payloadBytesMax = 4_096
    static let voipPayloadBytesMax = 5_120
    static let collapseBytesMax = 64

    /// Decides one request by the checks in their order.
    ///
    /// - Parameter freshID: for an answer to a request without a usable id.
    public mutating func check(
        _ push: ReceivedPush, connection: inout ConnectionState, freshID: PushID, now: Timestamp
    ) -> Answer {
        // Moved, not shared: a table of a million tokens must not be copied for each request.
        var state = SimulatorState()
        swap(&self, &state)
        var run = CheckRun(
            push, state: consume state, connection: connection, freshID: freshID, now: now)
        let answer = run.answer()
        connection = run.connection
        self = run.state
        return answer
    }
}

/// One request on its way through the checks.
struct CheckRun {
    private static let prefix = "/3/device/"

    let push: ReceivedPush
    let now: Timestamp
    var state: SimulatorState
    var connection: ConnectionState
    var lints: [Lint] = []
    var bearer: String?
    var parsed: CompactToken?
    var claims: ProviderClaims?
    private let freshID: String
    /// The request's own, in its own spelling, if it is one.
    private var id: String?
    private var topicText = ""
    private var delivery: PushDelivery
    private var content: PushContent?
    /// The token is dead, and the sender not told yet: 200, and nothing arrives.
    private var isSecretlyDead = false
    private var deadSince: Timestamp?
    private var deathRefusal = Refusal.unregistered

    init(
        _ push: ReceivedPush, state: consuming SimulatorState, connection: ConnectionState,
        freshID: PushID, now: Timestamp
    ) {
        self.push = push
        self.now = now
        self.state = state
        self.connection = connection
        self.freshID = freshID.description
        if push.pathWasIndexed { lints.append(.pathIndexed) }
        if let text = push["apns-id"], PushID(text: text) != nil {
            id = text
            if text != text.lowercased() { lints.append(.idNotCanonical) }
        }
        delivery = PushDelivery(
            token: "", topic: "", apnsID: id ?? self.freshID, pushType: "alert",
            content: PushContent())
    }

    mutating func answer() -> Answer {
        if connection.isIdle(now: now) { lints.append(.idleWithoutPing) }
        connection.heard(now: now)
        for check in Check.allCases {
            guard fails(check) else { continue }
            var refusal = check.refusal(state.options)
            if check == .deviceTokenAlive { refusal = deathRefusal }
            if check == .lint { refusal = strictRefusal ?? refusal }
            let isDeath = refusal.status == 410
            return Answer(
                status: refusal.status, reason: refusal.rawValue,
                timestamp: isDeath ? deadSince : nil, apnsID: id ?? freshID, lints: lints,
                delivery: nil, check: check)
        }
        if let content { delivery.content = content }
        return Answer(
            status: 200, reason: nil, timestamp: nil, apnsID: delivery.apnsID, lints: lints,
            delivery: content == nil || isSecretlyDead ? nil : delivery)
    }

    private mutating func fails(_ check: Check) -> Bool {
        switch check {
        case .method: return push.method != "POST"
        case .path: return !push.path.hasPrefix(Self.prefix)
        case .deviceTokenPresent:
            delivery.token = push.path.dropFirst(Self.prefix.count).lowercased()
            return delivery.token.isEmpty
        case .duplicateHeaders: return hasDuplicates
        case .credentialsPresent, .tokenForm, .tokenKey, .tokenTeam, .tokenSignature,
            .tokenIssued, .tokenAge, .keyEnvironment, .connectionTeam, .connectionKey,
            .tokenUpdates:
            return providerTokenFails(check)
        case .messageID: return push["apns-id"] != nil && id == nil
        case .expiration, .priority, .pushType: return !readHeader(check)
        case .topicPresent, .topicForm, .topicSuffix, .topicAllowed: return topicFails(check)
        case .collapseID:
            delivery.collapseID = push["apns-collapse-id"]
            return (delivery.collapseID?.utf8.count ?? 0) > SimulatorState.collapseBytesMax
        case .payloadPresent: return push.body.isEmpty && !push.bodyIsTooLong
        case .payloadSize:
            let most =
                delivery.pushType == "voip"
                ? SimulatorState.voipPayloadBytesMax : SimulatorState.payloadBytesMax
            return push.bodyIsTooLong || push.body.count > most
        case .deviceToken, .deviceTokenTopic, .deviceTokenAlive: return deviceTokenFails(check)
        case .rate: return !isSecretlyDead && state.countBurst(delivery.token, now: now)
        case .lint:
            readPayload()
            return state.options.strict && strictRefusal != nil
        }
    }

    /// Of the first lint in the order of their cases.
    private var strictRefusal: Refusal? {
        Lint.allCases.first { lints.contains($0) && $0.strictRefusal != nil }?.strictRefusal
    }

    private var hasDuplicates: Bool {
        var seen: Set<String> = []
        for header in push.headers
        where header.name.hasPrefix("apns-") || header.name == "authorization" {
            if !seen.insert(header.name).inserted { return true }
        }
        return false
    }

    // MARK: Headers

    private mutating func readHeader(_ check: Check) -> Bool {
        switch check {
        case .expiration:
            guard let text = push["apns-expiration"] else { return true }
            guard let seconds = Self.number(text) else { return false }
            delivery.expiration = seconds
            if seconds > 100_000_000_000 {
                lints.append(.expirationInMilliseconds)
            } else if seconds > 0, seconds < now.milliseconds / 1_000 {
                lints.append(.expirationPast)
            }
        case .priority:
            guard let text = push["apns-priority"] else { return true }
            guard let priority = Self.number(text), [1, 5, 10].contains(priority) else {
                return false
            }
            delivery.priority = Int(priority)
        default:
            guard let type = push["apns-push-type"] else {
                lints.append(.missingPushType)
                return true
            }
            guard Topic.suffixes.keys.contains(type) else { return false }
            delivery.pushType = type
        }
        return true
    }

    /// Decimal digits and nothing else: `UInt64` would also take a sign.
    private static func number(_ text: String) -> UInt64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil
    }

    private mutating func topicFails(_ check: Check) -> Bool {
        switch check {
        case .topicPresent:
            let only = connection.certificate.flatMap { $0.topics.count == 1 ? $0.topics[0] : nil }
            topicText = push["apns-topic"].flatMap { $0.isEmpty ? nil : $0 } ?? only ?? ""
            return topicText.isEmpty
        case .topicForm: return !Topic.isWellFormed(topicText)
        case .topicSuffix:
            guard let bundle = Topic.bundleID(topicText, pushType: delivery.pushType) else {
                return true
            }
            delivery.topic = bundle
            return false
        default:
            guard let app = state.apps[delivery.topic] else { return true }
            if let certificate = connection.certificate {
                return !certificate.topics.contains(topicText)
            }
            if let topics = connection.keyTopics, !topics.contains(delivery.topic) { return true }
            return app.team != connection.team
        }
    }

    // MARK: Device token and payload

    private mutating func deviceTokenFails(_ check: Check) -> Bool {
        guard let issued = state.tokens[delivery.token],
            issued.environment == connection.environment
        else { return check == .deviceToken }
        switch check {
        case .deviceTokenTopic: return issued.topic != delivery.topic
        case .deviceTokenAlive:
            guard let since = issued.deadSince else { return false }
            if let told = issued.toldFrom, now < told {
                isSecretlyDead = true
                return false
            }
            if state.noteDeathTold(delivery.token) { lints.append(.deadTokenAgain) }
            deadSince = since
            deathRefusal = issued.isExpired ? .expiredToken : .unregistered
            return true
        default: return false
        }
    }

    private mutating func readPayload() {
        guard !isSecretlyDead else { return }
        guard push["content-encoding"] == nil,
            let read = PushContent.read(push.body, lints: &lints)
        else { return lints.append(.payloadNotUsable) }
        content = read
        let shows = read.showsAlert || read.badge != nil || read.sound
        switch delivery.pushType {
        case "background":
            if delivery.priority != 5 { lints.append(.backgroundPriority) }
            if shows { lints.append(.backgroundShows) }
            if !read.contentAvailable { lints.append(.backgroundWithoutContentAvailable) }
            if delivery.expiration != 0 { lints.append(.backgroundMayBeStored) }
        case "alert" where push["apns-push-type"] != nil:
            if !shows { lints.append(.alertWithoutContent) }
            if delivery.priority == 1 { lints.append(.alertPriorityOne) }
        default: break
        }
    }
}
