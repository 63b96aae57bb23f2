import Crypto
import Feed
import FoundationEssentials
import Model

/// `POST .../webhooks`.
struct NewWebhookBody: Decodable {
    enum Key: String, CodingKey, CaseIterable { case id, url, events, secret }

    let id: WebhookID?
    let url: String
    let kinds: WebhookEventKinds
    /// `nil`: one is drawn.
    let secret: String?

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        guard let url = try fields.webhookURL(.url) else { throw fields.missing(.url) }
        self.url = url
        kinds = try fields.eventKinds(.events) ?? .all
        secret = try fields.webhookSecret(.secret)
    }
}

/// `PATCH .../webhooks/{id}`.
struct WebhookChangeBody: Decodable {
    enum Key: String, CodingKey, CaseIterable { case url, events, active }

    let change: WebhookChange

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        change = WebhookChange(
            url: try fields.webhookURL(.url), kinds: try fields.eventKinds(.events),
            isActive: try fields.optional(.active, Bool.self))
    }
}

/// `POST .../webhooks/{id}/secrets`.
struct NewWebhookSecret: Decodable {
    enum Key: String, CodingKey, CaseIterable { case secret }

    let secret: String?

    init(from decoder: any Decoder) throws {
        secret = try Fields<Key>(decoder).webhookSecret(.secret)
    }
}

extension Fields {
    fileprivate func webhookURL(_ key: Key) throws -> String? {
        guard let text = try optional(key, String.self) else { return nil }
        if let flaw = WebhookURL.flaw(of: text) { throw refusal(key, flaw) }
        return text
    }

    fileprivate func eventKinds(_ key: Key) throws -> WebhookEventKinds? {
        guard let names = try optional(key, [String].self) else { return nil }
        var kinds: [WebhookEventKind] = []
        for name in names {
            guard let kind = WebhookEventKind(name: name),
                WebhookEventKind.askable.contains(kind)
            else {
                throw refusal(
                    key,
                    "must be of "
                        + WebhookEventKind.askable.map(\.name).joined(separator: ", "))
            }
            kinds.append(kind)
        }
        guard !kinds.isEmpty else { throw refusal(key, "must name at least one kind") }
        return WebhookEventKinds(kinds)
    }

    /// Long enough that nobody finds it by trying.
    fileprivate func webhookSecret(_ key: Key) throws -> String? {
        guard let text = try optional(key, String.self) else { return nil }
        guard (24...128).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw refusal(key, "must be 24 to 128 visible ASCII characters") }
        return text
    }
}

extension String {
    /// 256 bits of chance.
    static func drawnWebhookSecret() -> String { "whs_" + Base64URL.encode(Random.bytes(32)) }
}

/// The event that tests a webhook, as its receiver gets it.
struct WebhookTestBody: Encodable {
    let id: String
    let number: UInt64

    init(_ event: WebhookEventID) {
        id = event.description
        number = event.low
    }
}

struct WebhookListBody: Encodable {
    let webhooks: [WebhookBody]
}

/// A webhook and how it does; never a secret but in the answer that drew it.
struct WebhookBody: Encodable {
    let id: String
    let url: String
    let events: [String]
    let state: String
    /// Why the server deactivated it.
    let reason: String?
    let stateSince: String
    let createdAt: String
    /// 2 while a rotation is under way.
    let secretCount: Int
    /// Failed attempts in a row.
    let attempts: UInt64
    let failingSince: String?
    let lastStatus: UInt64?
    let lastError: String?
    let lastSuccessAt: String?
    /// Events lost to retention that no delivery has told of yet.
    let dropped: UInt64
    let secret: String?

    init(_ record: WebhookRecord, secret: String? = nil) {
        id = record.webhook.description
        url = record.url
        events = record.kinds.kinds.map(\.name)
        state = record.state.name
        reason = record.reason.isEmpty ? nil : record.reason
        stateSince = record.stateSince.text
        createdAt = record.createdAt.text
        secretCount = record.secondSecret.isEmpty ? 1 : 2
        attempts = record.attempts
        failingSince = record.failingSince?.text
        lastStatus = record.lastStatus == 0 ? nil : record.lastStatus
        lastError = record.lastError.isEmpty ? nil : record.lastError
        lastSuccessAt = record.lastSuccessAt?.text
        dropped = record.dropped
        self.secret = secret
    }
}
