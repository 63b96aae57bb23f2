public import Model

/// What came back for one push.
public enum PushReply: Equatable, Sendable {
    /// HTTP status, `reason` of the body (empty at 200), its `timestamp` (410 only), and after
    /// which time the server wants to hear of the push again, if it says so.
    case answered(
        status: UInt64, reason: String, timestamp: Timestamp?, retryAfter: Milliseconds? = nil)
    /// It was written and nothing came: APNs may or may not have taken it.
    case unanswered
    /// It never left: no connection, a refused stream, or one above GOAWAY's last stream.
    case notSent
    /// Nobody has taken an answer down within the lease: the process that sent it, or was to, is
    /// gone. APNs may or may not have taken it, which says nothing of the push.
    case lost

    /// APNs may have taken it.
    var isUnanswered: Bool { self == .unanswered || self == .lost }

    /// APNs asks to leave this device alone, whatever the push.
    var isAboutDevice: Bool {
        guard case .answered(429, let reason, _, _) = self else { return false }
        return reason != "TooManyProviderTokenUpdates"
    }
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
    /// No push of this key or certificate to this topic will succeed until somebody mends its
    /// configuration; those to its other topics may.
    case pauseTopic
    /// The request is wrong: it must not be repeated, and is told in the log.
    case ourBug

    /// - Parameters:
    ///   - failures: how often pushes of this device were answered with a retry before, each kind
    ///     of answer by its own count. A 500 or
    ///     503 is retried on another connection after 5 s, then after twice as long each time.
    ///   - kind: a badge and a campaign have time: they begin at a minute and end at Apple's 15.
    ///     A wake has not, nor has an alert, which somebody waits for: a minute at most.
    ///   - retryAfter: what the answer's `retry-after` says (RFC 9110 10.2.3).
    public init(
        status: UInt64, reason: String, timestamp: Timestamp?,
        failures: RefusalCount = RefusalCount(),
        kind: PushKind = .silent, retryAfter: Milliseconds? = nil
    ) {
        self.init(status, reason, timestamp, failures, kind)
        if let retryAfter, case .retryLater(_, let step) = self {
            self = .retryLater(
                after: min(max(retryAfter, Self.shortDelay), Self.longDelay), step: step)
        }
    }

    /// What the reason of a GOAWAY means: Apple's are of the same table. Empty or unknown: nothing
    /// more than that the connection goes.
    public init(goAway reason: String) {
        self.init(
            status: Self.status(of: reason) ?? 0, reason: reason, timestamp: nil)
    }

    private init(
        _ status: UInt64, _ reason: String, _ timestamp: Timestamp?, _ failures: RefusalCount,
        _ kind: PushKind
    ) {
        guard status != 200 else {
            self = .accepted
            return
        }
        guard Self.status(of: reason) ?? status == status else {
            // Somebody else's: a proxy's, or a fault's. It says nothing of the token or the key.
            self = Self.foreign(status: status, failures: failures, kind)
            return
        }
        switch reason {
        case "BadDeviceToken", "DeviceTokenNotForTopic": self = .deadToken(since: nil)
        case "ExpiredToken", "Unregistered": self = .deadToken(since: timestamp)
        case "IdleTimeout": self = .retryLater(after: Self.shortDelay, step: .reconnect)
        case "UnrelatedKeyIdInToken":
            self = .retryLater(after: Self.keyDelay(failures.faults), step: .reconnectNow)
        case "ExpiredProviderToken":
            self = .retryLater(after: Self.keyDelay(failures.faults), step: .renewToken)
        case "TooManyProviderTokenUpdates":
            self = .retryLater(after: 5 * 60_000, step: .keepToken)
        case "TooManyRequests":
            // Of this device: doubling from a minute.
            self = .retryLater(
                after: min(60_000 << min(failures.faults, 4), Self.longDelay), step: .none)
        case "InternalServerError", "ServiceUnavailable", "Shutdown":
            self = Self.serverFault(failures: failures.faults, kind)
        case "BadCertificate", "BadCertificateEnvironment", "Forbidden", "InvalidProviderToken",
            "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "MissingProviderToken":
            self = .pauseCredential
        case "BadTopic", "TopicDisallowed": self = .pauseTopic
        case "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority",
            "DuplicateHeaders", "InvalidPushType", "MissingDeviceToken", "MissingTopic",
            "PayloadEmpty", "BadPath", "MethodNotAllowed", "PayloadTooLarge":
            self = .ourBug
        default:
            self = Self.unknown(
                status: status, isTold: !reason.isEmpty, timestamp: timestamp,
                failures: failures, kind)
        }
    }

    /// The status that a reason of Apple's table comes with: with another one it is not APNs that
    /// answers. `nil`: it is none of the table.
    private static func status(of reason: String) -> UInt64? {
        switch reason {
        case "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId",
            "BadPriority", "BadTopic", "DeviceTokenNotForTopic", "DuplicateHeaders",
            "IdleTimeout", "InvalidPushType", "MissingDeviceToken", "MissingTopic",
            "PayloadEmpty", "TopicDisallowed":
            400
        case "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken",
            "BadEnvironmentKeyInToken", "ExpiredProviderToken", "Forbidden",
            "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken":
            403
        case "BadPath": 404
        case "MethodNotAllowed": 405
        case "ExpiredToken", "Unregistered": 410
        case "PayloadTooLarge": 413
        case "TooManyProviderTokenUpdates", "TooManyRequests": 429
        case "InternalServerError": 500
        case "ServiceUnavailable", "Shutdown": 503
        default: nil
        }
    }

    /// Apple: retry after 15 minutes.
    static let longDelay: Milliseconds = 15 * 60_000
    /// A push that somebody waits for is tried once in this time while APNs has a fault.
    static let faultDelayMax: Milliseconds = 60_000

    private static func serverFault(failures: UInt64, _ kind: PushKind) -> PushAnswer {
        let (first, most): (Milliseconds, Milliseconds) =
            switch kind {
            case .silent, .alert: (5_000, faultDelayMax)
            case .badge, .campaign: (60_000, longDelay)
            }
        return .retryLater(after: min(first << min(failures, 8), most), step: .reconnect)
    }

    /// Before the very same push is worth another try.
    static let shortDelay: Milliseconds = 1_000

    /// What was refused was the key's token: the push waits for a new one, not the device.
    private static func keyDelay(_ failures: UInt64) -> Milliseconds {
        min(shortDelay << min(failures, 6), 60_000)
    }

    /// A reason Apple added since: its status tells the class. Any other answer is not one of
    /// APNs, or not a whole one: only what APNs calls final drops a push at once.
    private static func unknown(
        status: UInt64, isTold: Bool, timestamp: Timestamp?, failures: RefusalCount,
        _ kind: PushKind
    ) -> PushAnswer {
        switch status {
        case 410 where isTold: .deadToken(since: timestamp)
        case 403: .pauseCredential
        default: foreign(status: status, failures: failures, kind)
        }
    }

    /// An answer that is none of Apple's table, by its status alone.
    private static func foreign(
        status: UInt64, failures: RefusalCount, _ kind: PushKind
    ) -> PushAnswer {
        switch status {
        case 429: .retryLater(after: 60_000, step: .none)
        case 500...599: serverFault(failures: failures.faults, kind)
        default:
            failures.unknown < unknownMax
                ? .retryLater(after: min(5_000 << failures.unknown, 300_000), step: .none)
                : .ourBug
        }
    }

    /// Whether what is asked for again is none of Apple's answers: for many of them a push is given
    /// up.
    static func isUnknown(status: UInt64, reason: String) -> Bool {
        guard status != 429, !(500...599).contains(status) else { return false }
        return Self.status(of: reason) != status
    }

    /// So often an answer that is none of Apple's table is asked for again; ten minutes in all.
    private static let unknownMax: UInt64 = 7
}
