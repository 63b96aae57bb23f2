/// What Apple takes, and a good provider does not do: red in a test, silent on the wire. With
/// `strict` it is an error.
public enum Lint: String, Codable, Sendable, CaseIterable {
    /// `:path` went into the table of header compression.
    case pathIndexed = "path_indexed"
    /// The canonical form of a UUID is lower case.
    case idNotCanonical = "id_not_canonical"
    /// `iat` as a string: Apple seems to take it, but documents a number.
    case issuedAtIsString = "issued_at_is_string"
    /// A new token of the key within 20 minutes, on another connection: people report that Apple
    /// counts these as updates, too.
    case tokenRenewedEarly = "token_renewed_early"
    /// A token is used a minute after a newer one of its key came: two programs sign, each for
    /// itself.
    case tokenNotShared = "token_not_shared"
    case missingPushType = "missing_push_type"
    /// The expiration was in the past when the push came.
    case expirationPast = "expiration_past"
    /// So far in the future that it can only be milliseconds.
    case expirationInMilliseconds = "expiration_in_milliseconds"
    /// A push to a token after 410 was told of it.
    case deadTokenAgain = "dead_token_again"
    /// No JSON object with `aps`, or a compressed one: accepted and never delivered.
    case payloadNotUsable = "payload_not_usable"
    /// The key is to be left out, never 0.
    case contentAvailableZero = "content_available_zero"
    /// Keys that Apple does not know inside `aps` are ignored: own keys go beside it.
    case unknownKeyInAPS = "unknown_key_in_aps"
    /// A background push must have priority 5; 10 is an error (Apple: Sending notification
    /// requests to APNs).
    case backgroundPriority = "background_priority"
    /// A background push with alert, badge or sound in it.
    case backgroundShows = "background_shows"
    /// A background push without `content-available` 1 wakes nothing.
    case backgroundWithoutContentAvailable = "background_without_content_available"
    /// A background push that may be stored takes the place of a stored alert.
    case backgroundMayBeStored = "background_may_be_stored"
    /// Push type alert with neither alert, badge nor sound shows and wakes nothing.
    case alertWithoutContent = "alert_without_content"
    /// Priority 1 never wakes the device: nobody hears of the alert.
    case alertPriorityOne = "alert_priority_1"
    /// A request after an hour of silence without a PING: the connection may be dead.
    case idleWithoutPing = "idle_without_ping"
    /// PRIORITY frames are ignored: do not send them.
    case priorityFrame = "priority_frame"
    /// PINGs in quick succession.
    case pingTooOften = "ping_too_often"
    /// Connections opened and closed in quick succession: Apple may take it for an attack.
    case connectionChurn = "connection_churn"

    /// What `strict` answers; `nil`: it is no single request's, and the connection is ended with
    /// GOAWAY.
    public var strictRefusal: Refusal? {
        switch self {
        case .pathIndexed: .badPath
        case .idNotCanonical: .badMessageID
        case .issuedAtIsString: .invalidProviderToken
        case .tokenRenewedEarly, .tokenNotShared: .tooManyProviderTokenUpdates
        case .expirationPast, .expirationInMilliseconds, .backgroundMayBeStored:
            .badExpirationDate
        case .deadTokenAgain: .unregistered
        case .payloadNotUsable: .payloadEmpty
        case .backgroundPriority, .alertPriorityOne: .badPriority
        case .missingPushType, .contentAvailableZero, .unknownKeyInAPS, .backgroundShows,
            .backgroundWithoutContentAvailable, .alertWithoutContent:
            .invalidPushType
        case .idleWithoutPing: .idleTimeout
        case .priorityFrame, .pingTooOften, .connectionChurn: nil
        }
    }
}
