/// Why a push is refused: Apple's reasons with their statuses ("Handling notification responses
/// from APNs"). Which comes first when several apply is not documented; `SimulatorState.check`
/// has one fixed order.
public enum Refusal: String, Sendable, CaseIterable {
    case badCollapseID = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badExpirationDate = "BadExpirationDate"
    case badMessageID = "BadMessageId"
    case badPriority = "BadPriority"
    case badTopic = "BadTopic"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case duplicateHeaders = "DuplicateHeaders"
    case invalidPushType = "InvalidPushType"
    case missingDeviceToken = "MissingDeviceToken"
    case missingTopic = "MissingTopic"
    case payloadEmpty = "PayloadEmpty"
    case topicDisallowed = "TopicDisallowed"
    case badEnvironmentKeyID = "BadEnvironmentKeyIdInToken"
    case expiredProviderToken = "ExpiredProviderToken"
    case invalidProviderToken = "InvalidProviderToken"
    case missingProviderToken = "MissingProviderToken"
    case badPath = "BadPath"
    case methodNotAllowed = "MethodNotAllowed"
    case unregistered = "Unregistered"
    case expiredToken = "ExpiredToken"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    case tooManyRequests = "TooManyRequests"

    /// The HTTP status that goes with the reason.
    public var status: Int {
        switch self {
        case .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID, .badPriority,
            .badTopic, .deviceTokenNotForTopic, .duplicateHeaders, .invalidPushType,
            .missingDeviceToken, .missingTopic, .payloadEmpty, .topicDisallowed:
            400
        case .badEnvironmentKeyID, .expiredProviderToken, .invalidProviderToken,
            .missingProviderToken:
            403
        case .badPath: 404
        case .methodNotAllowed: 405
        case .unregistered, .expiredToken: 410
        case .payloadTooLarge: 413
        case .tooManyProviderTokenUpdates, .tooManyRequests: 429
        }
    }
}

/// What Apple takes with 200 but punishes or ignores: red in a test, silent on the wire.
public enum Lint: String, Codable, Sendable, CaseIterable {
    /// A background push must have priority 5; 10 is an error (Apple: Sending notification
    /// requests to APNs).
    case backgroundPriority = "background_priority"
    /// A background push with alert, badge or sound in it.
    case backgroundShows = "background_shows"
    /// A background push without `content-available` 1 wakes nothing.
    case backgroundWithoutContentAvailable = "background_without_content_available"
    /// Push type alert with neither alert, badge nor sound shows and wakes nothing.
    case alertWithoutContent = "alert_without_content"
    /// The key is to be left out, never 0.
    case contentAvailableZero = "content_available_zero"
    /// Keys that Apple does not know inside `aps` are ignored: own keys go beside it.
    case unknownKeyInAPS = "unknown_key_in_aps"
    case missingPushType = "missing_push_type"
    /// The canonical form of a UUID is lower case.
    case idNotCanonical = "id_not_canonical"
    /// `iat` as a string: Apple seems to take it, but documents a number.
    case issuedAtIsString = "issued_at_is_string"
    case pathIndexed = "path_indexed"
    /// No JSON object with `aps`, or a compressed one: accepted and never delivered.
    case payloadNotUsable = "payload_not_usable"
    /// PRIORITY frames are ignored: do not send them.
    case priorityFrame = "priority_frame"
}
