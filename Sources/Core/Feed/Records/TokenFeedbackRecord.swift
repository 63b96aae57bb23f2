public import Model

/// A token that was dropped because APNs called it dead or wrong: what a backend reads, in order.
/// 30 days.
public struct TokenFeedbackRecord: Record, Equatable {
    public static let table = Table(
        "token_feedback",
        key: [Column("app", .text), Column("number", .integer)],
        values: [
            Column("user", .text), Column("device", .blob), Column("token", .blob),
            Column("environment", .integer), Column("topic", .text), Column("status", .integer),
            Column("reason", .text), Column("dead_since", .integer, optional: true),
            Column("dropped_at", .integer), Column("expires_at", .integer),
        ],
        indexes: [
            TableIndex("token_feedback_by_user", on: "app", "user"),
            TableIndex("token_feedback_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "token_feedback_by_expiry"))

    static let lifetime: Milliseconds = 30 * 86_400_000

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

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        number = try reader.unsigned()
        user = UserID(try reader.text())
        device = try reader.identifier()
        token = try reader.blob()
        environment = try reader.value(PushEnvironmentKind.self)
        topic = try reader.text()
        status = try reader.unsigned()
        reason = try reader.text()
        deadSince = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        droppedAt = try reader.timestamp()
        expiresAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .unsigned(number), .user(user), .identifier(device), .blob(token),
            .unsigned(environment.rawValue), .text(topic), .unsigned(status), .text(reason),
            .optional(deadSince) { .timestamp($0) }, .timestamp(droppedAt),
            .timestamp(expiresAt),
        ]
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
        let last = try record(MetaRecord.self, [.text(name)])?.number ?? 0
        let base = try record(MetaRecord.self, [.text(MetaRecord.numberBaseName)])?.number ?? 0
        let number = max(last, base) + 1
        try put(MetaRecord(name: name, number: number))
        let dropped = TokenFeedbackRecord(
            device, token: token, number: number, status: status, reason: reason,
            deadSince: since, now: now)
        try put(dropped)
        return dropped
    }
}

extension MetaRecord {
    /// Followed by an app's name: the number of its newest dropped token.
    static let tokenFeedbackPrefix = "token_feedback/"
    /// A restore raises it: numbers that backends remember are above it afterwards.
    static let numberBaseName = "number_base"
}
