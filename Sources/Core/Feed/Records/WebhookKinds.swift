public import Model

/// What a webhook can be told of. The raw value stands in rows and is the bit in
/// `WebhookRecord.kinds`; it is never reused. The next free one is 12, the highest possible 62.
public enum WebhookEventKind: UInt64, StoredNumber, CaseIterable {
    case messageCreated = 0
    case messageEdited = 1
    case messageDeleted = 2
    /// A user got further: every message up to a position is on one of the user's devices.
    case messageDelivered = 3
    case messageRead = 4
    case conversationCreated = 5
    case participantsChanged = 6
    case metadataChanged = 7
    case conversationDeleted = 8
    /// APNs called a device's push token dead or wrong.
    case tokenDropped = 9
    /// The deletion of a user is carried out.
    case userDeleted = 10
    /// Its app has one webhook tried out, which hears of it whatever it asks for.
    case webhookTest = 11

    /// Those that a webhook asks for.
    public static let askable = allCases.filter { $0 != .webhookTest }

    /// As backends write it (Protocol/webhooks.md, WHK-6).
    public var name: String {
        switch self {
        case .messageCreated: "message.created"
        case .messageEdited: "message.edited"
        case .messageDeleted: "message.deleted"
        case .messageDelivered: "message.delivered"
        case .messageRead: "message.read"
        case .conversationCreated: "conversation.created"
        case .participantsChanged: "conversation.participants-changed"
        case .metadataChanged: "conversation.metadata-changed"
        case .conversationDeleted: "conversation.deleted"
        case .tokenDropped: "device.token-dropped"
        case .userDeleted: "user.deleted"
        case .webhookTest: "webhook.test"
        }
    }

    public init?(name: String) {
        guard let kind = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = kind
    }
}

/// Several kinds, as bits by their raw values.
public struct WebhookEventKinds: OptionSet, StoredNumber, Hashable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public init(_ kinds: some Sequence<WebhookEventKind>) {
        rawValue = kinds.reduce(0) { $0 | 1 << $1.rawValue }
    }

    /// All that can be asked for.
    public static let all = WebhookEventKinds(WebhookEventKind.askable)

    public func contains(_ kind: WebhookEventKind) -> Bool {
        rawValue & 1 << kind.rawValue != 0
    }

    /// In the order of their numbers.
    public var kinds: [WebhookEventKind] { WebhookEventKind.allCases.filter(contains) }
}

/// Whether a webhook is delivered to, and why not.
public enum WebhookState: UInt64, NamedByCase, StoredNumber {
    case active = 1
    /// Its app switched it off: nothing is kept for it.
    case off = 2
    /// Every attempt failed for too long. What happens is kept for it, within retention.
    case failed = 3
    /// Its receiver answered 410. What happens is kept for it, within retention.
    case gone = 4

    /// Whether events are kept for it.
    public var collects: Bool { self != .off }

    /// As in the backend API.
    public static let names = caseNames()
}

extension Noun {
    public enum Webhook {}
    public enum Delivery {}
    public enum WebhookEvent {}
}

/// One webhook of an app.
public typealias WebhookID = Identifier<Noun.Webhook>
/// One batch of events to one webhook: the same in every attempt.
public typealias DeliveryID = Identifier<Noun.Delivery>
/// One event: the series its app's events belong to, and its number.
public typealias WebhookEventID = Identifier<Noun.WebhookEvent>

/// Names a webhook.
public struct WebhookKey: Hashable, Comparable, Sendable {
    public var app: AppID
    public var webhook: WebhookID

    public init(app: AppID, webhook: WebhookID) {
        self.app = app
        self.webhook = webhook
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.app, left.webhook) < (right.app, right.webhook)
    }

    var columns: [ColumnValue] { [.app(app), .identifier(webhook)] }
}
