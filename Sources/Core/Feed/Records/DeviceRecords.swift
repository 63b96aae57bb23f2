public import Model

/// A user and the head of the feed. Its row lock makes `seq` commit-ordered.
public struct UserRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    /// The highest `seq` given.
    public var head: UInt64 = 0
    /// The highest `seq` of a visible entry.
    public var visibleHead: UInt64 = 0
    /// The `seq` of the newest entry that could be a useful change to one of the user's devices.
    public var usefulHead: UInt64?
    /// The low half of the epoch. The top bit is never set.
    public var epochHalf: UInt64
    /// The highest `seq` of a message whose delivery is told to its author.
    public var receiptHead: UInt64 = 0
    /// Delivered receipts are written up to this `seq`.
    public var receipted: UInt64 = 0
    public var createdAt: Timestamp
    /// Nobody gets in as this user, and no push leaves.
    public var isSuspended: Bool = false
    /// The highest `seq` of a message that stood lower in the feed before it was edited.
    public var movedHead: UInt64 = 0
    /// The head when the user last deleted a conversation: entries above it are of nothing deleted.
    public var clearedHead: UInt64 = 0
    /// The highest `seq` of an entry removed for its age: a cursor below it cannot go on.
    public var compactedThrough: UInt64 = 0
    /// The id of the conversation with the newest message or join in the feed; empty: none.
    public var activeConversation: [UInt8] = []
    /// The backend deleted the user: nothing comes into the feed any more, and the row goes last.
    public var deletingSince: Timestamp?
    /// The user has never blocked another: no block is looked for (MSG-27).
    public var blocksNobody: Bool = true
}

extension UserRecord {
    public static let table = Table(
        "user", of: Self.self, steps: [SchemaStep(2, blocksBeforeSchema2)])

    private static let blocksBeforeSchema2 = """
        UPDATE "user" SET "blocks_nobody" = NOT EXISTS (SELECT 1 FROM "block" b
        WHERE b."app" = "user"."app" AND b."user" = "user"."user")
        """

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        head = c.value("head", row?.head)
        visibleHead = c.value("visible_head", row?.visibleHead)
        epochHalf = c.value("epoch_half", row?.epochHalf)
        receiptHead = c.value("receipt_head", row?.receiptHead)
        receipted = c.value("receipted", row?.receipted)
        createdAt = c.value("created_at", row?.createdAt)
        isSuspended = c.value("is_suspended", row?.isSuspended)
        movedHead = c.value("moved_head", row?.movedHead)
        clearedHead = c.value("cleared_head", row?.clearedHead)
        compactedThrough = c.value("compacted_through", row?.compactedThrough)
        activeConversation = c.value("active_conversation", row?.activeConversation)
        deletingSince = c.value("deleting_since", row?.deletingSince)
        blocksNobody = c.value("blocks_nobody", row?.blocksNobody, since: 2, absent: false)
        usefulHead = c.value("useful_head", row?.usefulHead, since: 7)
    }
}

/// One installation of the app, as logged in by one user.
public struct DeviceRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    /// The highest `seq` the device says it has durably stored.
    public var applied: UInt64 = 0
    /// The highest mutation number taken.
    public var mutationFloor: UInt64 = 0
    public var clientName: String = ""
    public var clientVersion: String = ""
    public var createdAt: Timestamp
    public var lastSeenAt: Timestamp
    public var notifications: SettingKind = .unknown
    public var backgroundRefresh: SettingKind = .unknown
    public var lowPower: SettingKind = .unknown
    public var pushToken: [UInt8]?
    public var pushEnvironment: PushEnvironmentKind = .production
    public var pushTopic: String = ""
    /// Raised whenever the token changes or goes; rows of pushes carry it.
    public var tokenGeneration: UInt64 = 0
    /// When a HELLO last presented the token.
    public var tokenConfirmedAt: Timestamp?
    /// A silent wake was missed and no sync was completed since.
    public var isUnreachable: Bool = false
    /// Alerts were sent that may still be on the screen.
    public var wasAlerted: Bool = false
    /// The times of the silent pushes of the last hour, 8 bytes each, oldest first.
    public var lastSilentAt: [UInt8] = []
    /// SYNCs from the same place in a row while there was something above it: so often the same
    /// page was sent without an ACK.
    public var deliveryFailures: UInt64 = 0
    /// Of the newest session; never repeats, so that a late end cannot meet a newer session.
    public var sessionGeneration: UInt64 = 0
    /// Refused for the time being: later numbers wait until it comes again. 0: none.
    public var refusedMutation: UInt64 = 0
    /// Counts the mutations taken; their results are kept by this count.
    public var mutationsTaken: UInt64 = 0
    /// Set when the device was forgotten: the row only keeps its counters from repeating.
    public var expiresAt: Timestamp?
    /// A BCP 47 tag; empty: not said.
    public var locale: String = ""
    /// A name of the IANA time zone database; empty: not said.
    public var timeZone: String = ""
    /// Minutes east of UTC when it was last said, plus 1,440; 0: not said.
    public var utcOffset: UInt64 = 0
    /// When APNs first accepted a push to the token; `nil`: it never has.
    public var tokenProvenAt: Timestamp?
    /// `WakeHabit`, encoded: what its wakes came to of late.
    public var wakeHabit: [UInt8] = []
    /// What the app has stored above `applied`: pairs of a first and a last `seq`, 8 bytes each.
    public var storedRanges: [UInt8] = []
    /// When the device's last session row was deleted: a fan-out need not look for one to know
    /// that the device is not connected. `nil`: there may be a session.
    public var withoutSessionSince: Timestamp?
}

extension DeviceRecord {
    public static let table = Table(
        "device", of: Self.self,
        indexes: [
            // Those who are logged in on the device first, then those who were.
            TableIndex("device_by_id", on: "app", "device", "expires_at"),
            TableIndex(
                "device_by_token", on: "app", "push_environment", "push_token",
                present: "push_token"),
            TableIndex("device_by_expiry", on: "expires_at", present: "expires_at"),
            TableIndex("device_by_offset", on: "app", "utc_offset"),
            // Whatever a rule forgets, no two users are logged in on one device, and no push for
            // one goes to another's (P6).
            TableIndex(
                "device_owner", on: "app", "device", absent: "expires_at", unique: true, since: 9),
            TableIndex(
                "device_token", on: "app", "push_environment", "push_token",
                present: "push_token", unique: true, since: 9),
        ],
        retention: .until(column: "expires_at", index: "device_by_expiry"),
        steps: [
            SchemaStep(9, ownersBeforeSchema9), SchemaStep(9, tokensOfForgottenBeforeSchema9),
            SchemaStep(9, sessionsOfForgottenBeforeSchema9), SchemaStep(9, holdersBeforeSchema9),
        ])

    /// Of several users who are logged in on one device the one stays who was there last; for the
    /// others it is forgotten, as `Work.forget` does it: for 90 days from the newest moment that
    /// the table knows.
    private static let ownersBeforeSchema9 = """
        UPDATE "device" SET "push_token" = NULL, "token_confirmed_at" = NULL,
        "token_generation" = "token_generation" + 1,
        "expires_at" = (SELECT max(d."last_seen_at") FROM "device" d) + 7776000000
        WHERE "expires_at" IS NULL AND EXISTS (SELECT 1 FROM "device" d
        WHERE d."app" = "device"."app" AND d."device" = "device"."device"
        AND d."expires_at" IS NULL AND (d."last_seen_at", d."user")
        > ("device"."last_seen_at", "device"."user"))
        """

    private static let tokensOfForgottenBeforeSchema9 = """
        DELETE FROM "session_token" WHERE EXISTS (SELECT 1 FROM "device" d
        WHERE d."app" = "session_token"."app" AND d."user" = "session_token"."user"
        AND d."device" = "session_token"."device" AND d."expires_at" IS NOT NULL)
        """

    private static let sessionsOfForgottenBeforeSchema9 = """
        DELETE FROM "session" WHERE EXISTS (SELECT 1 FROM "device" d
        WHERE d."app" = "session"."app" AND d."user" = "session"."user"
        AND d."device" = "session"."device" AND d."expires_at" IS NOT NULL)
        """

    /// Of several devices with one push token the one keeps it that presented it last.
    private static let holdersBeforeSchema9 = """
        UPDATE "device" SET "push_token" = NULL, "token_confirmed_at" = NULL,
        "token_generation" = "token_generation" + 1
        WHERE "push_token" IS NOT NULL AND EXISTS (SELECT 1 FROM "device" d
        WHERE d."app" = "device"."app" AND d."push_environment" = "device"."push_environment"
        AND d."push_token" = "device"."push_token"
        AND (coalesce(d."token_confirmed_at", 0), d."user", d."device")
        > (coalesce("device"."token_confirmed_at", 0), "device"."user", "device"."device"))
        """

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        applied = c.value("applied", row?.applied)
        mutationFloor = c.value("mutation_floor", row?.mutationFloor)
        clientName = c.value("client_name", row?.clientName)
        clientVersion = c.value("client_version", row?.clientVersion)
        createdAt = c.value("created_at", row?.createdAt)
        lastSeenAt = c.value("last_seen_at", row?.lastSeenAt)
        notifications = c.value("notifications", row?.notifications)
        backgroundRefresh = c.value("background_refresh", row?.backgroundRefresh)
        lowPower = c.value("low_power", row?.lowPower)
        pushToken = c.value("push_token", row?.pushToken)
        pushEnvironment = c.value("push_environment", row?.pushEnvironment)
        pushTopic = c.value("push_topic", row?.pushTopic)
        tokenGeneration = c.value("token_generation", row?.tokenGeneration)
        tokenConfirmedAt = c.value("token_confirmed_at", row?.tokenConfirmedAt)
        isUnreachable = c.value("is_unreachable", row?.isUnreachable)
        wasAlerted = c.value("was_alerted", row?.wasAlerted)
        lastSilentAt = c.value("last_silent_at", row?.lastSilentAt)
        deliveryFailures = c.value("delivery_failures", row?.deliveryFailures)
        sessionGeneration = c.value("session_generation", row?.sessionGeneration)
        refusedMutation = c.value("refused_mutation", row?.refusedMutation)
        mutationsTaken = c.value("mutations_taken", row?.mutationsTaken)
        expiresAt = c.value("expires_at", row?.expiresAt)
        locale = c.value("locale", row?.locale)
        timeZone = c.value("time_zone", row?.timeZone)
        utcOffset = c.value("utc_offset", row?.utcOffset)
        tokenProvenAt = c.value("token_proven_at", row?.tokenProvenAt)
        wakeHabit = c.value("wake_habit", row?.wakeHabit)
        storedRanges = c.value("stored_ranges", row?.storedRanges)
        withoutSessionSince = c.value(
            "without_session_since", row?.withoutSessionSince, since: 4)
    }
}

/// A session token: its SHA-256, and whom it lets in. The older one of a device stays valid until
/// the newer one has been used.
public struct SessionTokenRecord: Record, Equatable {
    public var app: AppID
    public var hash: [UInt8]
    public var user: UserID
    public var device: DeviceID
    public var issuedAt: Timestamp
    public var expiresAt: Timestamp
    public var isUsed: Bool = false
    /// App and extension have a token each: one's rotation never drops the other's.
    public var role: RoleKind = .app
}

extension SessionTokenRecord {
    public static let table = Table(
        "session_token", of: Self.self,
        indexes: [
            TableIndex("session_token_by_device", on: "app", "user", "device"),
            TableIndex("session_token_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "session_token_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        hash = c.key("hash", row?.hash)
        user = c.value("user", row?.user)
        device = c.value("device", row?.device)
        issuedAt = c.value("issued_at", row?.issuedAt)
        expiresAt = c.value("expires_at", row?.expiresAt)
        isUsed = c.value("is_used", row?.isUsed)
        role = c.value("role", row?.role)
    }
}

/// One authenticated connection of a device in one role (design: wake, rows).
///
/// A late end acts only if `generation` is still its own.
public struct SessionRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var role: RoleKind
    /// The server process that holds the connection.
    public var boot: BootID
    public var generation: UInt64
    public var openedAt: Timestamp
    /// From then on the wake path sees no socket; `nil` in foreground.
    public var dormantAt: Timestamp?
    /// The connection has ended; the device may come back until then.
    public var expectedUntil: Timestamp?
    /// A wake or alert row existed at HELLO: `applied` is persisted at once.
    public var hadPushRows: Bool = false
    /// When its connection was accepted, by the monotonic clock of its boot.
    public var connectedAt: UInt64 = 0
}

extension SessionRecord {
    public static let table = Table(
        "session", of: Self.self,
        indexes: [
            TableIndex("session_by_expected", on: "expected_until", present: "expected_until"),
            TableIndex("session_by_boot", on: "boot"),
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        role = c.key("role", row?.role)
        boot = c.value("boot", row?.boot)
        generation = c.value("generation", row?.generation)
        openedAt = c.value("opened_at", row?.openedAt)
        dormantAt = c.value("dormant_at", row?.dormantAt)
        expectedUntil = c.value("expected_until", row?.expectedUntil)
        hadPushRows = c.value("had_push_rows", row?.hadPushRows)
        connectedAt = c.value("connected_at", row?.connectedAt)
    }
}
