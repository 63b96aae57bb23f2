public import Model
import Wake

/// Every record of the server's store, in the order in which their tables are made.
///
/// Every table but `meta`, `node`, those of operators and `provider_token`, of keys that apps may
/// share, begins with the app;
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
        AnnouncementAudienceRecord.self,
        UserDeletionRecord.self, RefusalRecord.self, NameErasureRecord.self,
        WakeRecord.self, AlertRecord.self, WakeHistoryRecord.self,
        WebhookRecord.self, OutboxRecord.self, WebhookEventRecord.self,
        TokenFeedbackRecord.self, ProviderTokenRecord.self,
        ScheduledRecord.self, ScheduledRecipientRecord.self, ScheduleRecord.self,
        CampaignRecord.self, CampaignProgressRecord.self, CampaignPushRecord.self,
        TagRecord.self, SessionEndRecord.self, NodeRecord.self,
        ConsoleTokenRecord.self, AuditRecord.self,
    ]

    /// The rows that transactions wait for, in the order in which one sequence of locks takes
    /// them; within a table by key, ascending. With each the tables whose rows it protects beside
    /// itself, unless another protects it.
    private static let locks: [(holder: any Record.Type, guarded: [any Record.Type])] = [
        (AppRecord.self, [IssuerKeyRecord.self, APIKeyRecord.self, PushCredentialRecord.self]),
        (NodeRecord.self, []),
        (SessionEndRecord.self, []),
        (ProviderTokenRecord.self, []),
        (IdempotencyRecord.self, []),
        (UserDeletionRecord.self, []),
        (NameErasureRecord.self, []),
        (ScheduledRecord.self, [ScheduledRecipientRecord.self]),
        (DistinctRecord.self, []),
        (
            ConversationRecord.self,
            [
                ParticipantRecord.self, MessageRecord.self, MetadataRecord.self,
                FanOutRecord.self, PurgeRecord.self, AliasRecord.self,
            ]
        ),
        // The id, which messages and announcements of all conversations share.
        (MessageRecord.self, []),
        (
            AnnouncementRecord.self,
            [AnnouncementBatchRecord.self, AnnouncementAudienceRecord.self]
        ),
        (
            UserRecord.self,
            [
                DeviceRecord.self, SessionTokenRecord.self, SessionRecord.self,
                EntryRecord.self, ReceiptRecord.self, ReadMarkRecord.self, HiddenRecord.self,
                MutationRecord.self, SettingsRecord.self, BlockRecord.self,
                RefusalRecord.self, WakeRecord.self, AlertRecord.self, WakeHistoryRecord.self,
                TokenFeedbackRecord.self, CampaignPushRecord.self,
                TagRecord.self,
            ]
        ),
        (DeviceRecord.self, []),
        (ReceiptDueRecord.self, []),
        (CampaignProgressRecord.self, [CampaignRecord.self]),
        (ConsoleTokenRecord.self, []),
        (MetaRecord.self, []),
        (AuditRecord.self, []),
        (ScheduleRecord.self, []),
        // One row for all that happens in an app: it is waited for last.
        (OutboxRecord.self, [WebhookRecord.self, WebhookEventRecord.self]),
    ]

    public static let tables: [Table] = records.map { record in
        let table = record.table
        let other = locks.first { lock in lock.guarded.contains { $0 == record } }
        // An alias is an id of conversations, too: that of none.
        let columns = record == AliasRecord.self ? ["app", "alias"] : nil
        let guarded = table.guarded(by: (other?.holder ?? record).table, columns: columns)
        // The columns that the user's own doing changes stand in the membership's row.
        return record == ParticipantRecord.self
            ? guarded.alsoGuarded(by: UserRecord.table) : guarded
    }

    private static let byName = Dictionary(
        uniqueKeysWithValues: tables.map { (ExactText($0.name), $0) })

    /// The table with the guard of its rows.
    static func guarded(_ table: Table) -> Table { byName[ExactText(table.name)] ?? table }

    /// The place of each table in the order of locks, by its name.
    public static let lockRanks: [String: Int] = Dictionary(
        uniqueKeysWithValues: locks.enumerated().map { ($1.holder.table.name, $0) })
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

extension UInt64 {
    /// An epoch half is stored as a signed number: its top bit is never set.
    static let halfMask: UInt64 = .max >> 1
}

extension MetaRecord {
    /// Under this name `number` is the store's half of every epoch.
    static let epochName = "epoch"
    /// Until when what was scheduled waits after a restore.
    static let schedulesHeldName = "schedules_held_until"

    /// With an app's name: `number` is the time at which its last reset has its turn.
    static let resetsPrefix = "resets/"

    /// With an app's name: its `AppSuspension`.
    static let suspensionsPrefix = "suspensions/"

    /// With an app's name: `number` is the last that one of its batches of announcements had.
    static let batchesPrefix = "announcement_batches/"

    /// Followed by the name of an app whose rows are on their way out: `number` is when it was
    /// removed, and `bytes` is `rowsAreGone` once only the nodes are waited for.
    static let removedPrefix = "removed_app/"
    static let rowsAreGone: [UInt8] = [1]
    /// Above every name with that prefix, and below all others: `0` follows `/`.
    static let removedEnd = "removed_app0"
}

/// A row of one device. Who changes rows of several devices takes them in this order, that of
/// the store's locks, so that no two wait for each other.
protocol DeviceOrdered {
    var app: AppID { get }
    var user: UserID { get }
    var device: DeviceID { get }
}

extension DeviceOrdered {
    /// - Parameter orInTie: the answer for two rows of one device.
    func precedes(_ other: Self, orInTie tie: Bool = false) -> Bool {
        if app != other.app {
            return app.name.utf8.lexicographicallyPrecedes(other.app.name.utf8)
        }
        if user != other.user { return user < other.user }
        return device == other.device ? tie : device < other.device
    }
}

extension WakeRecord: DeviceOrdered {}
extension SessionRecord: DeviceOrdered {}
extension AlertRecord: DeviceOrdered {}
extension CampaignPushRecord: DeviceOrdered {}
