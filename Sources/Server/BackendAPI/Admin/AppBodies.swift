import Crypto
import Feed
import Model
import Wake

/// The policy of an app, as `rouse app create` and `set` give it; what is left out stays.
struct AppPolicy: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case app
        case graceSeconds = "grace_seconds"
        case silentBudget = "silent_budget"
        case silentWindowSeconds = "silent_window_seconds"
        case silentSpacingSeconds = "silent_spacing_seconds"
        case alertExpirationSeconds = "alert_expiration_seconds"
        case sessionTokenSeconds = "session_token_seconds"
        case receiptParticipantsMax = "receipt_participants_max"
        case locale
        case eventKinds = "event_kinds"
        case graceQuantile = "grace_quantile"
        case graceMinSeconds = "grace_min_seconds"
        case graceMaxSeconds = "grace_max_seconds"
        case graceSamples = "grace_samples"
        case silentBudgetMin = "silent_budget_min"
        case silentBudgetMax = "silent_budget_max"
        case demotionMisses = "demotion_misses"
        case demotionOf = "demotion_of"
        case goneAfterDays = "gone_after_days"
        case doubtMisses = "doubt_misses"
        case doubtOf = "doubt_of"
        case doubtRetryHours = "doubt_retry_hours"
    }

    /// Only where an app is made.
    let app: AppID?
    let graceSeconds: UInt64?
    let silentBudget: UInt64?
    let silentWindowSeconds: UInt64?
    let silentSpacingSeconds: UInt64?
    let alertExpirationSeconds: UInt64?
    let sessionTokenSeconds: UInt64?
    let receiptParticipantsMax: UInt64?
    /// The language of push texts for devices that speak none of theirs; empty: none.
    let locale: String?
    /// Empty: any.
    private let eventKinds: [String]?
    /// Changes of what devices may have of their own.
    private let adaptive: [(inout AdaptivePolicy) -> Void]

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        app = try fields.text(.app, bytes: 1...AppID.bytesMax).map { AppID($0) }
        // Below a second no phone connects; above an hour nobody waits.
        graceSeconds = try fields.number(.graceSeconds, in: 1...3_600)
        // The row of a device remembers so many silent pushes.
        silentBudget = try fields.number(.silentBudget, in: 0...32)
        // Apple means hours; scenarios that compress time shorten both.
        silentWindowSeconds = try fields.number(.silentWindowSeconds, in: 1...86_400)
        silentSpacingSeconds = try fields.number(.silentSpacingSeconds, in: 0...86_400)
        // APNs stores a notification for 30 days at most.
        alertExpirationSeconds = try fields.number(.alertExpirationSeconds, in: 0...2_592_000)
        sessionTokenSeconds = try fields.number(.sessionTokenSeconds, in: 60...31_536_000)
        receiptParticipantsMax = try fields.number(.receiptParticipantsMax, in: 0...10_000)
        locale = try fields.text(.locale, bytes: 0...35)
        eventKinds = try fields.optional(.eventKinds)
        if let eventKinds, !eventKinds.isEmpty, EventKinds(eventKinds) == nil {
            throw fields.refusal(
                .eventKinds,
                "must be up to \(EventKinds.countMax) different names of 1 to "
                    + "\(EventKinds.bytesMax) bytes without control characters")
        }
        adaptive = try Self.adaptive(fields)
    }

    private static func adaptive(
        _ fields: Fields<Key>
    ) throws -> [(inout AdaptivePolicy) -> Void] {
        var changes: [(inout AdaptivePolicy) -> Void] = []
        func change(
            _ key: Key, _ range: ClosedRange<UInt64>,
            _ path: WritableKeyPath<AdaptivePolicy, UInt64>, times factor: UInt64 = 1
        ) throws {
            guard let number = try fields.number(key, in: range) else { return }
            changes.append { $0[keyPath: path] = number * factor }
        }
        try change(.graceQuantile, 0...100, \.graceQuantile)
        try change(.graceMinSeconds, 1...3_600, \.graceMin, times: 1_000)
        try change(.graceMaxSeconds, 1...3_600, \.graceMax, times: 1_000)
        try change(.graceSamples, 1...32, \.graceSamples)
        try change(.silentBudgetMin, 0...32, \.budgetMin)
        try change(.silentBudgetMax, 0...32, \.budgetMax)
        try change(.demotionMisses, 1...16, \.demotionMisses)
        try change(.demotionOf, 1...16, \.demotionOf)
        try change(.goneAfterDays, 0...3_650, \.goneAfter, times: 86_400_000)
        try change(.doubtMisses, 0...16, \.doubtMisses)
        try change(.doubtOf, 1...16, \.doubtOf)
        try change(.doubtRetryHours, 1...8_760, \.doubtRetry, times: 3_600_000)
        return changes
    }

    /// Throws if what comes of it makes no sense.
    func apply(to record: inout AppRecord) throws(Problem) {
        for change in adaptive { change(&record.adaptive) }
        if let problem = record.adaptive.problem { throw .malformed(problem) }
        if let graceSeconds { record.grace = graceSeconds * 1000 }
        if let silentBudget { record.silentBudget = silentBudget }
        if let silentWindowSeconds { record.silentWindow = silentWindowSeconds * 1000 }
        if let silentSpacingSeconds { record.silentSpacing = silentSpacingSeconds * 1000 }
        if let alertExpirationSeconds { record.alertExpiration = alertExpirationSeconds * 1000 }
        if let sessionTokenSeconds { record.sessionTokenLifetime = sessionTokenSeconds * 1000 }
        if let receiptParticipantsMax { record.receiptParticipantsMax = receiptParticipantsMax }
        if let locale { record.locale = locale }
        if let eventKinds { record.eventKinds = EventKinds(eventKinds) }
    }
}

struct AppListBody: Encodable {
    let apps: [AppBody]
}

/// An app with its keys: names, kinds and times, never a secret.
struct AppBody: Encodable {
    let app: String
    let createdAt: String
    let isSuspended: Bool
    let graceSeconds: UInt64
    let silentBudget: UInt64
    let silentWindowSeconds: UInt64
    let silentSpacingSeconds: UInt64
    let alertExpirationSeconds: UInt64
    let sessionTokenSeconds: UInt64
    let receiptParticipantsMax: UInt64
    let locale: String
    /// Empty: a publish may name any.
    let eventKinds: [String]
    let graceQuantile: UInt64
    let graceMinSeconds: UInt64
    let graceMaxSeconds: UInt64
    let graceSamples: UInt64
    let silentBudgetMin: UInt64
    let silentBudgetMax: UInt64
    let demotionMisses: UInt64
    let demotionOf: UInt64
    let goneAfterDays: UInt64
    let doubtMisses: UInt64
    let doubtOf: UInt64
    let doubtRetryHours: UInt64
    let issuerKeys: [IssuerKeyBody]
    let apiKeys: [APIKeyBody]
    let push: [PushCredentialBody]

    init(_ configuration: AppConfiguration) {
        let record = configuration.app
        app = record.app.name
        createdAt = record.createdAt.text
        isSuspended = record.isSuspended
        graceSeconds = record.grace / 1000
        silentBudget = record.silentBudget
        silentWindowSeconds = record.silentWindow / 1000
        silentSpacingSeconds = record.silentSpacing / 1000
        alertExpirationSeconds = record.alertExpiration / 1000
        sessionTokenSeconds = record.sessionTokenLifetime / 1000
        receiptParticipantsMax = record.receiptParticipantsMax
        locale = record.locale
        eventKinds = record.eventKinds?.names ?? []
        let adaptive = record.adaptive
        graceQuantile = adaptive.graceQuantile
        graceMinSeconds = adaptive.graceMin / 1_000
        graceMaxSeconds = adaptive.graceMax / 1_000
        graceSamples = adaptive.graceSamples
        silentBudgetMin = adaptive.budgetMin
        silentBudgetMax = adaptive.budgetMax
        demotionMisses = adaptive.demotionMisses
        demotionOf = adaptive.demotionOf
        goneAfterDays = adaptive.goneAfter / 86_400_000
        doubtMisses = adaptive.doubtMisses
        doubtOf = adaptive.doubtOf
        doubtRetryHours = adaptive.doubtRetry / 3_600_000
        issuerKeys = configuration.issuerKeys.map { IssuerKeyBody($0) }
        apiKeys = configuration.apiKeys.map { APIKeyBody($0) }
        push = configuration.pushCredentials.map { PushCredentialBody($0) }
    }
}

struct IssuerKeyBody: Encodable {
    let kid: String
    /// What its tokens must be signed with.
    let algorithm: String
    let publicKeyPem: String
    let addedAt: String

    init(_ record: IssuerKeyRecord) {
        kid = record.keyID
        publicKeyPem = record.publicKeyPEM
        // Checked when it was added.
        let key = try? PublicKey(pem: Array(record.publicKeyPEM.utf8))
        algorithm = key?.kind.algorithm ?? "unreadable"
        addedAt = record.addedAt.text
    }
}

struct APIKeyListBody: Encodable {
    let apiKeys: [APIKeyBody]
}

struct APIKeyBody: Encodable {
    let id: String
    let createdAt: String
    /// Only in the answer that made it: the server keeps a hash.
    var secret: String?

    init(_ record: APIKeyRecord, secret: String? = nil) {
        id = record.keyID
        createdAt = record.createdAt.text
        self.secret = secret
    }
}

struct PushCredentialBody: Encodable {
    let environment: String
    let name: String
    /// `key` or `certificate`.
    let kind: String
    /// Empty with a certificate.
    let keyId: String
    let team: String
    let topics: [String]
    let host: String
    let port: UInt64
    /// Whether it trusts authorities of its own instead of the system's.
    let hasTrustedCertificates: Bool
    let changedAt: String

    init(_ record: PushCredentialRecord) {
        environment = record.environment.name
        name = record.name
        kind = record.certificatePEM == nil ? "key" : "certificate"
        keyId = record.keyID
        team = record.team
        topics = record.topics.split(separator: "\n").map(String.init)
        host = record.host
        port = record.port
        hasTrustedCertificates = record.trustedCertificatesPEM != nil
        changedAt = record.changedAt.text
    }
}
