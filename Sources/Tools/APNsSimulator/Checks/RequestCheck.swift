internal import Crypto
public import Model

extension SimulatorState {
    static let payloadBytesMax = 4_096
    static let voipPayloadBytesMax = 5_120
    static let collapseBytesMax = 64
    private static let prefix = "/3/device/"

    /// Decides one request. When several things are wrong the first of this order is told:
    /// method, path, duplicate headers, provider token, `apns-id`, expiration, priority, push
    /// type, topic, collapse id, payload, device token, rate. The order is ours: Apple documents
    /// none.
    ///
    /// - Parameter freshID: for an answer to a request without a usable id.
    public mutating func check(
        _ push: ReceivedPush, connection: inout ConnectionState, freshID: PushID, now: Timestamp
    ) -> Answer {
        var lints: [Lint] = push.pathWasIndexed ? [.pathIndexed] : []
        let id = Self.id(push["apns-id"], &lints)
        func refused(_ refusal: Refusal, _ timestamp: Timestamp? = nil) -> Answer {
            Answer(
                status: refusal.status, reason: refusal.rawValue, timestamp: timestamp,
                apnsID: id ?? freshID.description, lints: lints, delivery: nil)
        }

        guard push.method == "POST" else { return refused(.methodNotAllowed) }
        guard push.path.hasPrefix(Self.prefix) else { return refused(.badPath) }
        let deviceToken = push.path.dropFirst(Self.prefix.count).lowercased()
        guard !deviceToken.isEmpty else { return refused(.missingDeviceToken) }
        guard !Self.hasDuplicates(push.headers) else { return refused(.duplicateHeaders) }
        if let refusal = checkProviderToken(
            push["authorization"], &connection, &lints, now: now)
        {
            return refused(refusal)
        }
        guard push["apns-id"] == nil || id != nil else { return refused(.badMessageID) }
        var delivery = PushDelivery(
            token: deviceToken, topic: "", apnsID: id ?? freshID.description, pushType: "alert",
            content: PushContent())
        if let refusal = readHeaders(push, team: connection.team, &delivery, &lints) {
            return refused(refusal)
        }
        if let refusal = Self.checkPayloadSize(push, pushType: delivery.pushType) {
            return refused(refusal)
        }
        switch checkDeviceToken(delivery, environment: connection.environment, now: now) {
        case .refused(let refusal, let timestamp): return refused(refusal, timestamp)
        case .dead: return accepted(delivery, nil, lints)
        case .alive: break
        }
        if countBurst(deviceToken, now: now) { return refused(.tooManyRequests) }
        guard let content = Self.readPayload(push, delivery, &lints) else {
            return accepted(delivery, nil, lints)
        }
        delivery.content = content
        return accepted(delivery, delivery, lints)
    }

    private func accepted(
        _ push: PushDelivery, _ delivery: PushDelivery?, _ lints: [Lint]
    ) -> Answer {
        Answer(
            status: 200, reason: nil, timestamp: nil, apnsID: push.apnsID, lints: lints,
            delivery: delivery)
    }

    /// The id in its own spelling; `nil`: absent or no UUID.
    private static func id(_ text: String?, _ lints: inout [Lint]) -> String? {
        guard let text, PushID(text: text) != nil else { return nil }
        if text != text.lowercased() { lints.append(.idNotCanonical) }
        return text
    }

    private static func hasDuplicates(_ headers: [ReceivedPush.Header]) -> Bool {
        var seen: Set<String> = []
        for header in headers where header.name.hasPrefix("apns-") || header.name == "authorization"
        {
            if !seen.insert(header.name).inserted { return true }
        }
        return false
    }

    private func readHeaders(
        _ push: ReceivedPush, team: String?, _ delivery: inout PushDelivery, _ lints: inout [Lint]
    ) -> Refusal? {
        if let text = push["apns-expiration"] {
            guard let seconds = Self.number(text) else { return .badExpirationDate }
            delivery.expiration = seconds
        }
        if let text = push["apns-priority"] {
            guard let priority = Self.number(text), [1, 5, 10].contains(priority) else {
                return .badPriority
            }
            delivery.priority = Int(priority)
        }
        if let type = push["apns-push-type"] {
            guard Topic.suffixes.keys.contains(type) else { return .invalidPushType }
            delivery.pushType = type
        } else {
            lints.append(.missingPushType)
        }
        guard let topic = push["apns-topic"], !topic.isEmpty else { return .missingTopic }
        guard Topic.isWellFormed(topic),
            let bundle = Topic.bundleID(topic, pushType: delivery.pushType)
        else { return .badTopic }
        guard let app = apps[bundle], app.team == team else { return .topicDisallowed }
        delivery.topic = bundle
        if let collapse = push["apns-collapse-id"] {
            guard collapse.utf8.count <= Self.collapseBytesMax else { return .badCollapseID }
            delivery.collapseID = collapse
        }
        return nil
    }

    /// Decimal digits and nothing else: `UInt64` would also take a sign.
    private static func number(_ text: String) -> UInt64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil
    }

    private static func checkPayloadSize(_ push: ReceivedPush, pushType: String) -> Refusal? {
        if push.bodyIsTooLong { return .payloadTooLarge }
        if push.body.isEmpty { return .payloadEmpty }
        let most = pushType == "voip" ? voipPayloadBytesMax : payloadBytesMax
        return push.body.count > most ? .payloadTooLarge : nil
    }

    private enum TokenStanding {
        case alive
        /// Nothing arrives, and the sender is not told yet.
        case dead
        case refused(Refusal, Timestamp?)
    }

    private func checkDeviceToken(
        _ push: PushDelivery, environment: APNsEnvironment, now: Timestamp
    ) -> TokenStanding {
        guard let issued = tokens[push.token], issued.environment == environment else {
            return .refused(.badDeviceToken, nil)
        }
        guard issued.topic == push.topic else { return .refused(.deviceTokenNotForTopic, nil) }
        guard let since = issued.deadSince else { return .alive }
        if let told = issued.toldFrom, now < told { return .dead }
        return .refused(issued.isExpired ? .expiredToken : .unregistered, since)
    }

    private static func readPayload(
        _ push: ReceivedPush, _ delivery: PushDelivery, _ lints: inout [Lint]
    ) -> PushContent? {
        guard push["content-encoding"] == nil,
            let content = PushContent.read(push.body, lints: &lints)
        else {
            lints.append(.payloadNotUsable)
            return nil
        }
        let shows = content.showsAlert || content.badge != nil || content.sound
        switch delivery.pushType {
        case "background":
            if delivery.priority != 5 { lints.append(.backgroundPriority) }
            if shows { lints.append(.backgroundShows) }
            if !content.contentAvailable { lints.append(.backgroundWithoutContentAvailable) }
        case "alert" where push["apns-push-type"] != nil && !shows:
            lints.append(.alertWithoutContent)
        default: break
        }
        return content
    }
}
