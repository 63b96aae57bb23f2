public import Model

/// What came back for one push.
public enum PushReply: Equatable, Sendable {
    /// HTTP status, `reason` of the body (empty at 200), and its `timestamp` (410 only).
    case answered(status: UInt64, reason: String, timestamp: Timestamp?)
    /// It was written and nothing came: APNs may or may not have taken it.
    case unanswered
    /// It never left: no connection, a refused stream, or one above GOAWAY's last stream.
    case notSent
}

/// What the credential's connections should do before the next push.
public enum CredentialStep: Equatable, Sendable {
    case none
    /// Open another connection; this one goes.
    case reconnect
    /// The same, however young this one is: it is bound to another key for good.
    case reconnectNow
    /// Make a new provider token, on a new connection.
    case renewToken
    /// Keep the provider token and pause the credential for a while.
    case keepToken
}

/// The class of an answer (Apple: Handling notification responses from APNs).
public enum PushAnswer: Equatable, Sendable {
    case accepted
    /// Never again to this token; `since`: APNs' time of it, given with 410 only.
    case deadToken(since: Timestamp?)
    /// The same push may succeed `after` milliseconds.
    case retryLater(after: Milliseconds, step: CredentialStep)
    /// No push of this key or certificate will succeed until somebody mends its configuration.
    case pauseCredential
    /// The request is wrong: it must not be repeated, and is told in the log.
    case ourBug

    /// - Parameters:
    ///   - failures: how often this push was answered with a retry before. The first 500 or 503
    ///     is retried early, on another connection; later ones after Apple's 15 minutes.
    ///   - kind: a badge and a campaign have time: they wait the 15 minutes at once. A wake has
    ///     not, nor has an alert, which somebody waits for.
    public init(
        status: UInt64, reason: String, timestamp: Timestamp?, failures: UInt64,
        kind: PushKind = .silent
    ) {
        switch reason {
        case _ where status == 200: self = .accepted
        case "BadDeviceToken", "DeviceTokenNotForTopic": self = .deadToken(since: nil)
        case "ExpiredToken", "Unregistered": self = .deadToken(since: timestamp)
        case "IdleTimeout": self = .retryLater(after: 1_000, step: .reconnect)
        case "UnrelatedKeyIdInToken":
            self = .retryLater(
                after: failures == 0 ? 1_000 : Self.longDelay, step: .reconnectNow)
        case "ExpiredProviderToken":
            self = .retryLater(
                after: failures == 0 ? 1_000 : Self.longDelay, step: .renewToken)
        case "TooManyProviderTokenUpdates":
            self = .retryLater(after: 5 * 60_000, step: .keepToken)
        case "TooManyRequests":
            // Of this device: doubling from a minute.
            self = .retryLater(
                after: min(60_000 << min(failures, 4), Self.longDelay), step: .none)
        case "InternalServerError", "ServiceUnavailable", "Shutdown":
            self = Self.serverFault(failures: failures, kind)
        case "BadCertificate", "BadCertificateEnvironment", "Forbidden", "InvalidProviderToken",
            "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadTopic",
            "TopicDisallowed":
            self = .pauseCredential
        case "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority",
            "DuplicateHeaders", "InvalidPushType", "MissingDeviceToken", "MissingTopic",
            "PayloadEmpty", "MissingProviderToken", "BadPath", "MethodNotAllowed",
            "PayloadTooLarge":
            self = .ourBug
        default:
            self = Self.unknown(
                status: status, timestamp: timestamp, failures: failures, kind)
        }
    }

    /// Apple: retry after 15 minutes.
    static let longDelay: Milliseconds = 15 * 60_000

    private static func serverFault(failures: UInt64, _ kind: PushKind) -> PushAnswer {
        let isEarly = failures == 0 && kind != .badge && kind != .campaign
        return .retryLater(after: isEarly ? 5_000 : longDelay, step: .reconnect)
    }

    /// A reason Apple added since: its status tells the class.
    private static func unknown(
        status: UInt64, timestamp: Timestamp?, failures: UInt64, _ kind: PushKind
    ) -> PushAnswer {
        switch status {
        case 410: .deadToken(since: timestamp)
        case 403: .pauseCredential
        case 429: .retryLater(after: 60_000, step: .none)
        case 500...: serverFault(failures: failures, kind)
        default: .ourBug
        }
    }
}
