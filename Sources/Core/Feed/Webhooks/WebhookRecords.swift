public import Model

/// A webhook, and how far its receiver got.
///
/// Invariants: `due` is null exactly while there is nothing to do for it: it is not active, or
/// every event of its kinds was delivered. `claim` rises with every claim and is what a sender
/// shows for it: an answer with an older number changes nothing.
public struct WebhookRecord: Record, Equatable {
    public static let table = Table(
        "webhook", key: [Column("app", .text), Column("webhook", .blob)],
        values: [
            Column("url", .text), Column("kinds", .integer), Column("secret", .text),
            Column("second_secret", .text), Column("state", .integer),
            Column("reason", .text), Column("state_since", .integer),
            Column("created_at", .integer), Column("next", .integer),
            Column("delivery", .blob, optional: true), Column("through", .integer),
            Column("attempts", .integer), Column("failing_since", .integer, optional: true),
            Column("last_status", .integer), Column("last_error", .text),
            Column("last_success_at", .integer, optional: true), Column("dropped", .integer),
            Column("told_dropped", .integer), Column("claim", .integer),
            Column("leased_until", .integer, optional: true),
            Column("due", .integer, optional: true),
        ],
        indexes: [TableIndex("webhook_by_due", on: "due", present: "due")])

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

    public init(
        app: AppID, webhook: WebhookID, url: String, kinds: WebhookEventKinds, secret: String,
        next: UInt64, createdAt: Timestamp
    ) {
        self.app = app
        self.webhook = webhook
        self.url = url
        self.kinds = kinds
        self.secret = secret
        self.next = next
        self.createdAt = createdAt
        stateSince = createdAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        webhook = try reader.identifier()
        url = try reader.text()
        kinds = WebhookEventKinds(rawValue: try reader.unsigned())
        secret = try reader.text()
        secondSecret = try reader.text()
        state = try reader.value(WebhookState.self)
        reason = try reader.text()
        stateSince = try reader.timestamp()
        createdAt = try reader.timestamp()
        next = try reader.unsigned()
        delivery = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        through = try reader.unsigned()
        attempts = try reader.unsigned()
        failingSince = try reader.optional { reader throws(StoreError) in
            try reader.timestamp()
        }
        lastStatus = try reader.unsigned()
        lastError = try reader.text()
        lastSuccessAt = try reader.optional { reader throws(StoreError) in
            try reader.timestamp()
        }
        dropped = try reader.unsigned()
        toldDropped = try reader.unsigned()
        claim = try reader.unsigned()
        leasedUntil = try reader.optional { reader throws(StoreError) in
            try reader.timestamp()
        }
        due = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
    }

    public var row: [ColumnValue] {
        [
            .app(app), .identifier(webhook), .text(url), .unsigned(kinds.rawValue),
            .text(secret), .text(secondSecret), .unsigned(state.rawValue), .text(reason),
            .timestamp(stateSince), .timestamp(createdAt), .unsigned(next),
            .optional(delivery) { .identifier($0) }, .unsigned(through), .unsigned(attempts),
            .optional(failingSince) { .timestamp($0) }, .unsigned(lastStatus),
            .text(lastError), .optional(lastSuccessAt) { .timestamp($0) }, .unsigned(dropped),
            .unsigned(toldDropped), .unsigned(claim), .optional(leasedUntil) { .timestamp($0) },
            .optional(due) { .timestamp($0) },
        ]
    }

    public var key: WebhookKey { WebhookKey(app: app, webhook: webhook) }
}

/// The outbox of an app that has, or had, webhooks: its events' numbers, and who asks for what,
/// so that a change nobody asks for costs one look at this row.
public struct OutboxRecord: Record, Equatable {
    public static let table = Table(
        "webhook_outbox", key: [Column("app", .text)],
        values: [
            Column("series", .integer), Column("last", .integer), Column("kept", .integer),
            Column("kinds", .integer), Column("idle_kinds", .integer),
        ])

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

    public init(app: AppID, series: UInt64) {
        self.app = app
        self.series = series
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        series = try reader.unsigned()
        last = try reader.unsigned()
        kept = try reader.unsigned()
        kinds = WebhookEventKinds(rawValue: try reader.unsigned())
        idleKinds = WebhookEventKinds(rawValue: try reader.unsigned())
    }

    public var row: [ColumnValue] {
        [
            .app(app), .unsigned(series), .unsigned(last), .unsigned(kept),
            .unsigned(kinds.rawValue), .unsigned(idleKinds.rawValue),
        ]
    }
}

/// One event, written in the transaction of the change it tells of. It names objects and holds no
/// content: a message is read when a batch is made, so that what was deleted meanwhile does not
/// leave the server.
public struct WebhookEventRecord: Record, Equatable {
    public static let table = Table(
        "webhook_event", key: [Column("app", .text), Column("number", .integer)],
        values: [
            Column("kind", .integer), Column("at", .integer),
            Column("conversation", .blob, optional: true),
            Column("message", .blob, optional: true), Column("position", .integer),
            Column("version", .integer), Column("by_user", .text), Column("joined", .text),
            Column("left_users", .text), Column("device", .blob, optional: true),
            Column("feedback", .integer), Column("expires_at", .integer),
        ],
        indexes: [TableIndex("webhook_event_by_expiry", on: "expires_at")])

    public var app: AppID
    public var number: UInt64
    public var kind: WebhookEventKind
    public var at: Timestamp
    /// `nil`: it is about a device.
    public var conversation: ConversationID?
    public var message: MessageID?
    /// Of the message; of a receipt up to where.
    public var position: UInt64 = 0
    public var version: UInt64 = 0
    /// Who did it; of a receipt or a device, whose it is; empty: the app's backend.
    public var user = ""
    /// Users' names.
    public var joined: [String] = []
    public var left: [String] = []
    public var device: DeviceID?
    /// The number of the token feedback it tells; 0: none.
    public var feedback: UInt64 = 0
    public var expiresAt: Timestamp

    init(_ event: WebhookEvent, number: UInt64, app: AppID, at: Timestamp, expiresAt: Timestamp) {
        self.app = app
        self.number = number
        self.at = at
        self.expiresAt = expiresAt
        kind = event.kind
        conversation = event.conversation
        message = event.message
        position = event.position
        version = event.version
        user = event.user
        joined = event.joined
        left = event.left
        device = event.device
        feedback = event.feedback
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        number = try reader.unsigned()
        kind = try reader.value(WebhookEventKind.self)
        at = try reader.timestamp()
        conversation = try reader.optional { reader throws(StoreError) in
            try reader.identifier()
        }
        message = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        position = try reader.unsigned()
        version = try reader.unsigned()
        user = try reader.text()
        joined = Self.names(try reader.text())
        left = Self.names(try reader.text())
        device = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        feedback = try reader.unsigned()
        expiresAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .unsigned(number), .unsigned(kind.rawValue), .timestamp(at),
            .optional(conversation) { .identifier($0) },
            .optional(message) { .identifier($0) }, .unsigned(position), .unsigned(version),
            .text(user), .text(Self.text(joined)), .text(Self.text(left)),
            .optional(device) { .identifier($0) }, .unsigned(feedback), .timestamp(expiresAt),
        ]
    }

    /// Names hold no control character.
    private static func text(_ names: [String]) -> String { names.joined(separator: "\n") }

    private static func names(_ text: String) -> [String] {
        text.split(separator: "\n").map { String($0) }
    }
}

/// What happened, before it has a number.
struct WebhookEvent {
    var kind: WebhookEventKind
    var conversation: ConversationID?
    var message: MessageID?
    var position: UInt64 = 0
    var version: UInt64 = 0
    var user = ""
    var joined: [String] = []
    var left: [String] = []
    var device: DeviceID?
    var feedback: UInt64 = 0

    init(_ kind: WebhookEventKind, _ conversation: ConversationID, by user: String = "") {
        self.kind = kind
        self.conversation = conversation
        self.user = user
    }

    init(_ kind: WebhookEventKind, _ message: MessageRecord, by user: String) {
        self.kind = kind
        conversation = message.conversation
        self.message = message.message
        position = message.position
        version = message.version
        self.user = user
    }

    init(_ dropped: TokenFeedbackRecord) {
        kind = .tokenDropped
        user = dropped.user.name
        device = dropped.device
        feedback = dropped.number
    }
}

extension Actor {
    /// A user's name; empty: the backend.
    var name: String {
        switch self {
        case .backend: ""
        case .user(let user): user.name
        }
    }
}
