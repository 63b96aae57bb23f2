public import Model

/// Why a message that could have alerted asked for nothing on a user's devices: what rows do not
/// show any more when somebody asks. A week.
public struct RefusalRecord: Record, Equatable {
    public enum Reason: UInt64, StoredNumber, CaseIterable {
        case muted = 1
        /// Read on another device before it came into the feed.
        case readAlready = 2
        case senderBlocked = 3
    }

    private static let lifetime: Milliseconds = 7 * 86_400_000

    public var app: AppID
    public var user: UserID
    public var message: MessageID
    public var reason: Reason
    public var refusedAt: Timestamp
}

extension RefusalRecord {
    public static let table = Table(
        "refusal", of: Self.self,
        indexes: [
            TableIndex("refusal_by_expiry", on: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "refusal_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        message = c.key("message", row?.message)
        reason = c.value("reason", row?.reason)
        refusedAt = c.value("refused_at", row?.refusedAt)
        c.derived("expires_at", row.map { $0.refusedAt + Self.lifetime })
    }
}
