public import Model

/// A webhook, and how far its receiver got.
///
/// Invariants: `due` is null exactly while there is nothing to do for it: it is not active, or
/// every event of its kinds was delivered. `claim` rises with every claim and is what a sender
/// shows for it: an answer with an older number changes nothing.
public struct WebhookRecord: Record, Equatable {
    public var app: AppID
    public var webhook: WebhookID
    public var url: String
    public var kinds: WebhookEventKinds
    /// The newest; every batch is signed with both.
    public var secret: String
    /// The one before it, while receivers change over; empty: none.
    public var secondSecret = ""
    public var state = WebhookState.active
    /// In words, why it is not active; empty: it is, or its app said so.
    public var reason = ""
    public var stateSince: Timestamp
    public var createdAt: Timestamp
    /// The number of the first event that is not delivered.
    public var next: UInt64
    /// The batch that was sent and not taken yet.
    public var delivery: DeliveryID?
    /// The last number of that batch.
    public var through: UInt64 = 0
    /// Failed ones in a row.
    public var attempts: UInt64 = 0
    public var failingSince: Timestamp?
    /// Of the last attempt; 0: it got no answer.
    public var lastStatus: UInt64 = 0
    /// Of the last attempt, in words; empty: it was taken.
    public var lastError = ""
    public var lastSuccessAt: Timestamp?
    /// Events that retention took before they were delivered, and that no batch has told of.
    public var dropped: UInt64 = 0
    /// How many of them the batch at hand tells.
    public var toldDropped: UInt64 = 0
    public var claim: UInt64 = 0
    public var leasedUntil: Timestamp?
    /// When a sender looks at it next.
    public var due: Timestamp?
    /// The process that holds the batch at hand; `nil`: none does, or one of an earlier version.
    public var owner: BootID?
    /// The number of the event that tests it, the newest of them; `nil`: it was never tested.
    public var test: UInt64?

    public var key: WebhookKey { WebhookKey(app: app, webhook: webhook) }
}

extension WebhookRecord {
    public static let table = Table(
        "webhook", of: Self.self,
        indexes: [
            TableIndex("webhook_by_due", on: "due", present: "due"),
            TableIndex("webhook_by_owner", on: "owner", present: "owner", since: 11),
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        webhook = c.key("webhook", row?.webhook)
        url = c.value("url", row?.url)
        kinds = c.value("kinds", row?.kinds)
        secret = c.value("secret", row?.secret)
        secondSecret = c.value("second_secret", row?.secondSecret)
        state = c.value("state", row?.state)
        reason = c.value("reason", row?.reason)
        stateSince = c.value("state_since", row?.stateSince)
        createdAt = c.value("created_at", row?.createdAt)
        next = c.value("next", row?.next)
        delivery = c.value("delivery", row?.delivery)
        through = c.value("through", row?.through)
        attempts = c.value("attempts", row?.attempts)
        failingSince = c.value("failing_since", row?.failingSince)
        lastStatus = c.value("last_status", row?.lastStatus)
        lastError = c.value("last_error", row?.lastError)
        lastSuccessAt = c.value("last_success_at", row?.lastSuccessAt)
        dropped = c.value("dropped", row?.dropped)
        toldDropped = c.value("told_dropped", row?.toldDropped)
        claim = c.value("claim", row?.claim)
        leasedUntil = c.value("leased_until", row?.leasedUntil)
        due = c.value("due", row?.due)
        owner = c.value("owner", row?.owner, since: 11)
        test = c.value("test", row?.test, since: 13)
    }
}

/// The outbox of an app that has, or had, webhooks: its events' numbers, and who asks for what,
/// so that a change nobody asks for costs one look at this row.
public struct OutboxRecord: Record, Equatable {
    public var app: AppID
    /// Drawn when the row was made: numbers of an app of the same name are not these.
    public var series: UInt64
    /// The number of the newest event.
    public var last: UInt64 = 0
    /// Events kept.
    public var kept: UInt64 = 0
    /// What the webhooks that collect ask for, all together.
    public var kinds: WebhookEventKinds = []
    /// What those of them ask for that are active and have nothing to do: such an event rouses
    /// them.
    public var idleKinds: WebhookEventKinds = []
    /// There are more events that every webhook has behind it than one step deletes: from when on
    /// the next may; `nil`: there are not.
    public var trimDue: Timestamp?
}

extension OutboxRecord {
    public static let table = Table(
        "webhook_outbox", of: Self.self,
        indexes: [
            TableIndex("webhook_outbox_by_trim", on: "trim_due", present: "trim_due", since: 12)
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        series = c.value("series", row?.series)
        last = c.value("last", row?.last)
        kept = c.value("kept", row?.kept)
        kinds = c.value("kinds", row?.kinds)
        idleKinds = c.value("idle_kinds", row?.idleKinds)
        trimDue = c.value("trim_due", row?.trimDue, since: 12)
    }
}

/// One event, written in the transaction of the change it tells of. It names objects and holds no
/// content: a message is read when a batch is made, so that what was deleted meanwhile does not
/// leave the server.
public struct WebhookEventRecord: Record, Equatable {
    public var app: AppID
    /// It gets this and its times when it is written down.
    public var number: UInt64 = 0
    public var kind: WebhookEventKind
    public var at = Timestamp.blank
    /// `nil`: it is about a device or a user.
    public var conversation: ConversationID?
    public var message: MessageID?
    /// Of the message; of a receipt up to where.
    public var position: UInt64 = 0
    public var version: UInt64 = 0
    /// Who did it; of a receipt, a device or a deletion, whose it is; empty: the app's backend.
    public var user = ""
    /// Users' names.
    public var joined: [String] = []
    public var left: [String] = []
    public var device: DeviceID?
    /// The number of the token feedback it tells; 0: none.
    public var feedback: UInt64 = 0
    public var expiresAt = Timestamp.blank

    /// Names hold no control character.
    private static func text(_ names: [String]) -> String { names.joined(separator: "\n") }

    private static func names(_ text: String) -> [String] {
        text.split(separator: "\n").map { String($0) }
    }
}

extension WebhookEventRecord {
    public static let table = Table(
        "webhook_event", of: Self.self,
        indexes: [
            TableIndex("webhook_event_by_expiry", on: "expires_at")
        ], seldomRead: true)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        number = c.key("number", row?.number)
        kind = c.value("kind", row?.kind)
        at = c.value("at", row?.at)
        conversation = c.value("conversation", row?.conversation)
        message = c.value("message", row?.message)
        position = c.value("position", row?.position)
        version = c.value("version", row?.version)
        user = c.value("by_user", row?.user)
        joined = Self.names(c.value("joined", row.map { Self.text($0.joined) }))
        left = Self.names(c.value("left_users", row.map { Self.text($0.left) }))
        device = c.value("device", row?.device)
        feedback = c.value("feedback", row?.feedback)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}
