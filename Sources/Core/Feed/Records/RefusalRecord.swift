public import Model

/// Why a message that could have alerted asked for nothing on a user's devices: what rows do not
/// show any more when somebody asks. A week.
public struct RefusalRecord: Record, Equatable {
    public static let table = Table(
        "refusal",
        key: [Column("app", .text), Column("user", .text), Column("message", .blob)],
        values: [
            Column("reason", .integer), Column("refused_at", .integer),
            Column("expires_at", .integer),
        ],
        indexes: [TableIndex("refusal_by_expiry", on: "expires_at")],
        retention: .until(column: "expires_at", index: "refusal_by_expiry"))

    public enum Reason: UInt64, Sendable, CaseIterable {
        case muted = 1
        /// Read on another device before it came into the feed.
        case readAlready = 2
        case senderBlocked = 3
    }

    static let lifetime: Milliseconds = 7 * 86_400_000

    public var app: AppID
    public var user: UserID
    public var message: MessageID
    public var reason: Reason
    public var refusedAt: Timestamp

    public init(
        app: AppID, user: UserID, message: MessageID, reason: Reason, refusedAt: Timestamp
    ) {
        self.app = app
        self.user = user
        self.message = message
        self.reason = reason
        self.refusedAt = refusedAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        message = try reader.identifier()
        reason = try reader.value(Reason.self)
        refusedAt = try reader.timestamp()
        _ = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .user(user), .identifier(message), .unsigned(reason.rawValue),
            .timestamp(refusedAt), .timestamp(refusedAt + Self.lifetime),
        ]
    }
}
