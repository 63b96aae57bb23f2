public import Model

/// A token that was dropped because APNs called it dead or wrong: what a backend reads, in order.
/// 30 days.
public struct TokenFeedbackRecord: Record, Equatable {
    private static let lifetime: Milliseconds = 30 * 86_400_000

    public var app: AppID
    /// Rises in the order of the drops; a restore leaves a gap.
    public var number: UInt64
    public var user: UserID
    public var device: DeviceID
    public var token: [UInt8]
    public var environment: PushEnvironmentKind
    public var topic: String
    /// HTTP status and `reason` of APNs' answer.
    public var status: UInt64
    public var reason: String
    /// APNs' time of death; with 410 only.
    public var deadSince: Timestamp?
    public var droppedAt: Timestamp
    public var expiresAt: Timestamp

    init(
        _ device: DeviceRecord, token: [UInt8], number: UInt64, status: UInt64, reason: String,
        deadSince: Timestamp?, now: Timestamp
    ) {
        app = device.app
        self.number = number
        user = device.user
        self.device = device.device
        self.token = token
        environment = device.pushEnvironment
        topic = device.pushTopic
        self.status = status
        self.reason = reason
        self.deadSince = deadSince
        droppedAt = now
        expiresAt = now + Self.lifetime
    }
}

extension TokenFeedbackRecord {
    public static let table = Table(
        "token_feedback", of: Self.self,
        indexes: [
            TableIndex("token_feedback_by_user", on: "app", "user"),
            TableIndex("token_feedback_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "token_feedback_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        number = c.key("number", row?.number)
        user = c.value("user", row?.user)
        device = c.value("device", row?.device)
        token = c.value("token", row?.token)
        environment = c.value("environment", row?.environment)
        topic = c.value("topic", row?.topic)
        status = c.value("status", row?.status)
        reason = c.value("reason", row?.reason)
        deadSince = c.value("dead_since", row?.deadSince)
        droppedAt = c.value("dropped_at", row?.droppedAt)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

extension StoreTransaction {
    /// Writes down that the token of `device`, which still has it, is dropped for what APNs said.
    ///
    /// - Returns: what is to be told to the app's webhooks; `nil`: there was no token.
    func noteDropped(
        _ device: DeviceRecord, status: UInt64, reason: String, since: Timestamp?,
        now: Timestamp
    ) throws(StoreError) -> TokenFeedbackRecord? {
        guard let token = device.pushToken else { return nil }
        let name = MetaRecord.tokenFeedbackPrefix + device.app.name
        let last = try record(MetaRecord.self, [.text(name)], lock: .wait)?.number ?? 0
        let base = try record(MetaRecord.self, [.text(MetaRecord.numberBaseName)])?.number ?? 0
        let number = max(last, base) + 1
        try put(MetaRecord(name: name, number: number))
        let dropped = TokenFeedbackRecord(
            device, token: token, number: number, status: status, reason: reason,
            deadSince: since, now: now)
        try insert(dropped)
        return dropped
    }
}

extension MetaRecord {
    /// Followed by an app's name: the number of its newest dropped token.
    static let tokenFeedbackPrefix = "token_feedback/"
    /// A restore raises it: numbers that backends remember are above it afterwards.
    static let numberBaseName = "number_base"
}
