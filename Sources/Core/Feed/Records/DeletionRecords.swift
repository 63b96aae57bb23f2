public import Model

/// A user whose deletion is decided and not yet carried out: where it stands.
public struct UserDeletionRecord: Record, Equatable {
    /// In this order.
    public enum Stage: UInt64, StoredNumber {
        /// Sessions, session tokens and push tokens, with the devices.
        case devices = 1
        case memberships = 2
        /// The user's messages become tombstones.
        case messages = 3
        /// What was on its way into the feed before has to come to nothing first.
        case settling = 4
        /// Everything else.
        case rows = 5
    }

    public var app: AppID
    public var user: UserID
    public var requestedAt: Timestamp
    public var stage: Stage = .devices
    /// The stage is done with the user's conversations up to this id; 16 zero bytes: none.
    public var conversation: ConversationID = .blank
    /// Messages of the conversation after that one are looked at up to here.
    public var position: UInt64 = 0
    /// The app's newest batch of users for an announcement when it was decided.
    public var announcements: UInt64 = 0
}

extension UserDeletionRecord {
    public static let table = Table("user_deletion", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        requestedAt = c.value("requested_at", row?.requestedAt)
        stage = c.value("stage", row?.stage)
        conversation = c.value("conversation", row?.conversation)
        position = c.value("position", row?.position)
        announcements = c.value("announcements", row?.announcements)
    }
}

/// A deleted user whose name still stands where others hold it: in memberships that ended, and as
/// the sender of tombstones. Devices need it to learn that the user is gone; then it goes too.
public struct NameErasureRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    /// What is told by tombstones is known to every device that is waited for.
    public var due: Timestamp
    /// Done with the user's conversations up to this id; 16 zero bytes: none.
    public var conversation: ConversationID = .blank
    /// Messages of the next conversation are looked at up to here.
    public var position: UInt64 = 0
    /// Then feeds of its participants up to this one.
    public var member: String = ""
}

extension NameErasureRecord {
    public static let table = Table(
        "name_erasure", of: Self.self,
        indexes: [
            TableIndex("name_erasure_by_due", on: "due")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        due = c.value("due", row?.due)
        conversation = c.value("conversation", row?.conversation)
        position = c.value("position", row?.position)
        member = c.value("member", row?.member)
    }
}
