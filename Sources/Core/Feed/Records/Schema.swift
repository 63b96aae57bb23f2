public import Model
import Wake

/// Every record of the server's store, in the order in which their tables are made.
///
/// Every table but `meta` and `provider_token`, of keys that apps may share, begins with the app;
/// what is a user's own with (app, user), what is a conversation's with (app, conversation), so
/// that a cell can be split off by either.
public enum Schema {
    public static let records: [any Record.Type] = [
        MetaRecord.self,
        AppRecord.self, IssuerKeyRecord.self, APIKeyRecord.self, PushCredentialRecord.self,
        UserRecord.self, DeviceRecord.self, SessionTokenRecord.self, SessionRecord.self,
        ConversationRecord.self, ParticipantRecord.self, MessageRecord.self,
        EntryRecord.self, ReceiptRecord.self, ReadMarkRecord.self, ReceiptDueRecord.self,
        HiddenRecord.self, PurgeRecord.self,
        MutationRecord.self, IdempotencyRecord.self, FanOutRecord.self,
        MetadataRecord.self, DistinctRecord.self, AliasRecord.self, SettingsRecord.self,
        BlockRecord.self, AnnouncementRecord.self, AnnouncementBatchRecord.self,
        UserDeletionRecord.self, RefusalRecord.self, NameErasureRecord.self,
        WakeRecord.self, AlertRecord.self, WakeHistoryRecord.self,
        WebhookRecord.self, OutboxRecord.self, WebhookEventRecord.self,
        TokenFeedbackRecord.self, ProviderTokenRecord.self,
        ScheduledRecord.self, ScheduledRecipientRecord.self, ScheduleRecord.self,
        CampaignRecord.self, CampaignProgressRecord.self, CampaignPushRecord.self,
        TagRecord.self, SessionEndRecord.self,
    ]

    public static let tables: [Table] = records.map { $0.table }

    /// The order in which one step waits for rows, by table; within a table by key, ascending.
    /// Rows of other tables are waited for last.
    public static let lockRanks: [String: Int] = [
        IdempotencyRecord.table.name: 0, DistinctRecord.table.name: 1,
        ConversationRecord.table.name: 2, MessageRecord.table.name: 3,
        AnnouncementRecord.table.name: 4, UserRecord.table.name: 5, DeviceRecord.table.name: 6,
    ]
}

/// A value of the store itself: its epoch half, `alive_at`.
public struct MetaRecord: Record, Equatable {
    /// Under this name `number` is when a server last was there, in milliseconds since 1970.
    public static let aliveName = "alive_at"

    public var name: String
    public var number: UInt64
    public var bytes: [UInt8]

    public init(name: String, number: UInt64 = 0, bytes: [UInt8] = []) {
        self.name = name
        self.number = number
        self.bytes = bytes
    }
}

extension MetaRecord {
    public static let table = Table("meta", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        name = c.key("name", row?.name)
        number = c.value("number", row?.number)
        bytes = c.value("bytes", row?.bytes)
    }
}
