public import Model

/// What is asked of an app's webhooks, by its backend and by the sender.
public enum WebhookRequest: Equatable, Sendable {
    case create(NewWebhook)
    case change(WebhookKey, WebhookChange)
    case remove(WebhookKey)
    /// The newest secret becomes the second one; refused with `.limit` while there is one. With the
    /// newest one again it changes nothing.
    case rotate(WebhookKey, secret: String)
    /// Forgets the second secret.
    case endRotation(WebhookKey)
    /// Forgets the newest secret, so that the second one goes on alone.
    case undoRotation(WebhookKey)
    /// Has it told `webhook.test`; while one waits, it stays that one. Refused with `.conflict`
    /// unless it is active.
    case test(WebhookKey)
    case claim(ClaimDeliveries)
    case finish(FinishDelivery)

    /// Whose share of the writer it takes; `nil`: the server's own.
    public var app: AppID? {
        switch self {
        case .create(let webhook): webhook.key.app
        case .change(let key, _), .remove(let key), .rotate(let key, _), .endRotation(let key),
            .undoRotation(let key), .test(let key):
            key.app
        case .claim, .finish: nil
        }
    }
}

/// A webhook to be made. It hears of what happens from then on.
public struct NewWebhook: Equatable, Sendable {
    public var key: WebhookKey
    /// Checked by who asks.
    public var url: String
    public var kinds: WebhookEventKinds
    public var secret: String
    /// 63 bits of chance, for the first webhook of the app.
    public var series: UInt64

    public init(
        key: WebhookKey, url: String, kinds: WebhookEventKinds, secret: String, series: UInt64
    ) {
        self.key = key
        self.url = url
        self.kinds = kinds
        self.secret = secret
        self.series = series
    }
}

/// What changes of a webhook; `nil`: it stays.
public struct WebhookChange: Equatable, Sendable {
    public var url: String?
    /// Of the batches made from then on.
    public var kinds: WebhookEventKinds?
    /// True also takes the server's own deactivation back: it goes on where it stopped.
    public var isActive: Bool?

    public init(
        url: String? = nil, kinds: WebhookEventKinds? = nil, isActive: Bool? = nil
    ) {
        self.url = url
        self.kinds = kinds
        self.isActive = isActive
    }
}

/// Takes batches that are due, at most one a webhook.
public struct ClaimDeliveries: Equatable, Sendable {
    /// The process that sends them.
    public var boot: BootID
    /// The most batches given: one an id. Each id may become that of a new batch.
    public var ids: [DeliveryID]
    /// Batches under way, by app; apps that are not named have none.
    public var underWay: [AppID: Int]
    /// The most of one app.
    public var perApp: Int
    public var policy: WebhookPolicy

    public init(
        boot: BootID, ids: [DeliveryID], underWay: [AppID: Int], perApp: Int,
        policy: WebhookPolicy
    ) {
        self.boot = boot
        self.ids = ids
        self.underWay = underWay
        self.perApp = perApp
        self.policy = policy
    }
}

/// The batches, and when to come again.
public struct ClaimedDeliveries: Equatable, Sendable {
    public var jobs: [DeliveryJob]
    /// More may be due now.
    public var more: Bool
    /// When the next batch becomes due, as far as it is known; `nil`: none waits.
    public var nextDue: Timestamp?
}

/// One batch to send.
public struct DeliveryJob: Equatable, Sendable {
    public var key: WebhookKey
    /// To be shown with the answer.
    public var claim: UInt64
    public var delivery: DeliveryID
    /// From 1.
    public var attempt: UInt64
    public var url: String
    /// One or two, the newest first.
    public var secrets: [String]
    /// Events that were dropped before they were delivered, since the last batch that was taken.
    public var dropped: UInt64
    /// In order.
    public var events: [WebhookEventView]

    /// That of all its events which have one; `nil`: none has, or they are of several traces.
    public var traceparent: String? {
        let all = Set(events.compactMap(\.traceparent))
        return all.count == 1 ? all.first : nil
    }
}

/// An event with what it is about, as that stands when the batch is made.
public struct WebhookEventView: Equatable, Sendable {
    public var id: WebhookEventID
    public var event: WebhookEventRecord
    /// `nil`: the event is about none, or it was deleted since.
    public var message: MessageRecord?
    public var metadata: MetadataRecord?
    public var conversation: ConversationRecord?
    public var dropped: TokenFeedbackRecord?

    /// Of the message's publisher, as a header; `nil`: it named none.
    public var traceparent: String? { message?.trace?.header }
}

/// What came of one attempt.
public struct FinishDelivery: Equatable, Sendable {
    public var key: WebhookKey
    public var claim: UInt64
    public var answer: DeliveryAnswer
    /// 0 to 1000, drawn: where in its window the next attempt falls.
    public var chance: UInt64
    public var policy: WebhookPolicy

    public init(
        key: WebhookKey, claim: UInt64, answer: DeliveryAnswer, chance: UInt64,
        policy: WebhookPolicy
    ) {
        self.key = key
        self.claim = claim
        self.answer = answer
        self.chance = chance
        self.policy = policy
    }
}

/// The events of all apps that wait, for metrics.
public struct WebhookBacklog: Equatable, Sendable {
    public var events: UInt64
    /// `nil`: none waits.
    public var oldest: Timestamp?
    /// Webhooks that the server deactivated.
    public var deactivated: Int
}

/// How deliveries are paced and given up. Durations in milliseconds.
public struct WebhookPolicy: Equatable, Sendable {
    /// The first wait after a failure; it doubles.
    public var retryFirst: Milliseconds = 5_000
    public var retryMax: Milliseconds = 3_600_000
    /// The most a receiver's Retry-After can ask for.
    public var retryAfterMax: Milliseconds = 21_600_000
    /// A webhook that has failed for so long is deactivated.
    public var deactivateAfter: Milliseconds = 3 * 86_400_000
    /// But not before so many attempts in a row: nobody was asked while the server was down.
    public var attemptsMin: UInt64 = 3
    /// How long a batch belongs to who claimed it: longer than any attempt takes.
    public var lease: Milliseconds = 90_000

    public init() {}
}

/// What a receiver said to a batch.
public enum DeliveryAnswer: Equatable, Sendable {
    /// - Parameter retryAfter: as the receiver asked for it, if it did.
    case answered(status: UInt64, retryAfter: Milliseconds?)
    /// No answer; why, in words without anything of the peer's.
    case failed(String)
    /// It was not sent at all, and may be sent by the next who comes.
    case notSent
}

/// What an answer came to.
public enum DeliveryEffect: Equatable, Sendable {
    case taken
    case retried(at: Timestamp)
    case deactivated(WebhookState, reason: String)
    case returned
}
