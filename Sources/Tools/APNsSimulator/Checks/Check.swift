/// The checks of a request as data: the order of the cases is the order in which they are made,
/// and the first that fails is the answer. Apple documents none; this one is fixed, and CHECKS.md
/// beside these sources has it as a table.
public enum Check: String, Codable, Sendable, CaseIterable {
    case method
    case path
    case deviceTokenPresent = "device_token_present"
    case duplicateHeaders = "duplicate_headers"
    case credentialsPresent = "credentials_present"
    case tokenForm = "token_form"
    case tokenKey = "token_key"
    case tokenTeam = "token_team"
    case tokenSignature = "token_signature"
    case tokenIssued = "token_issued"
    case tokenAge = "token_age"
    case keyEnvironment = "key_environment"
    case connectionTeam = "connection_team"
    case connectionKey = "connection_key"
    case tokenUpdates = "token_updates"
    case messageID = "message_id"
    case expiration
    case priority
    case pushType = "push_type"
    case topicPresent = "topic_present"
    case topicForm = "topic_form"
    case topicSuffix = "topic_suffix"
    case topicAllowed = "topic_allowed"
    case collapseID = "collapse_id"
    case payloadPresent = "payload_present"
    case payloadSize = "payload_size"
    case deviceToken = "device_token"
    case deviceTokenTopic = "device_token_topic"
    case deviceTokenAlive = "device_token_alive"
    case rate
    /// Only with `strict`: the first lint that has a reason.
    case lint

    /// What fails the check, for people.
    public var what: String {
        switch self {
        case .method: "the method is not POST"
        case .path: "the path is not /3/device/..."
        case .deviceTokenPresent: "the path ends without a device token"
        case .duplicateHeaders: "authorization or an apns- header comes twice"
        case .credentialsPresent: "neither a client certificate nor a bearer token"
        case .tokenForm: "not three parts, alg not ES256, or no kid"
        case .tokenKey: "the kid is unknown or revoked"
        case .tokenTeam: "iss is not the key's team"
        case .tokenSignature: "the signature does not fit"
        case .tokenIssued: "iat is missing, no number, or over an hour ahead"
        case .tokenAge: "iat is over an hour ago"
        case .keyEnvironment: "the key is of the other environment"
        case .connectionTeam: "another team than the connection's first token"
        case .connectionKey: "a key that is not related to the connection's first"
        case .tokenUpdates: "a new token within 20 minutes of the last new one"
        case .messageID: "apns-id is no UUID (8-4-4-4-12)"
        case .expiration: "apns-expiration is not a number of seconds"
        case .priority: "apns-priority is not 10, 5 or 1"
        case .pushType: "apns-push-type is unknown"
        case .topicPresent: "no apns-topic, and no certificate with one topic only"
        case .topicForm: "apns-topic is malformed"
        case .topicSuffix: "apns-topic lacks the suffix of its push type"
        case .topicAllowed: "the key or certificate may not push to the topic"
        case .collapseID: "apns-collapse-id has over 64 bytes"
        case .payloadPresent: "the body is empty"
        case .payloadSize: "the body has over 4096 bytes (voip: 5120)"
        case .deviceToken: "the token is no hexadecimal, unknown, or of the other environment"
        case .deviceTokenTopic: "the token is another topic's"
        case .deviceTokenAlive: "the app is gone from the device, and long enough to be told"
        case .rate: "too many requests to one device token"
        case .lint: "strict: what would else be a lint"
        }
    }

    /// The answer; where `CheckOptions` gives a choice, the default one.
    public var refusal: Refusal {
        switch self {
        case .method: .methodNotAllowed
        case .path: .badPath
        case .deviceTokenPresent: .missingDeviceToken
        case .duplicateHeaders: .duplicateHeaders
        case .credentialsPresent: .missingProviderToken
        case .tokenForm, .tokenKey, .tokenTeam, .tokenSignature, .tokenIssued, .connectionTeam:
            .invalidProviderToken
        case .tokenAge: .expiredProviderToken
        case .keyEnvironment: .badEnvironmentKeyID
        case .connectionKey: .unrelatedKeyID
        case .tokenUpdates: .tooManyProviderTokenUpdates
        case .messageID: .badMessageID
        case .expiration: .badExpirationDate
        case .priority: .badPriority
        case .pushType: .invalidPushType
        case .topicPresent: .missingTopic
        case .topicForm, .topicSuffix: .badTopic
        case .topicAllowed: .topicDisallowed
        case .collapseID: .badCollapseID
        case .payloadPresent: .payloadEmpty
        case .payloadSize: .payloadTooLarge
        case .deviceToken: .badDeviceToken
        case .deviceTokenTopic: .deviceTokenNotForTopic
        case .deviceTokenAlive: .unregistered
        case .rate: .tooManyRequests
        case .lint: .invalidPushType
        }
    }

    func refusal(_ options: CheckOptions) -> Refusal {
        switch self {
        case .keyEnvironment where options.usesWireSpelling: .badEnvironmentKey
        case .connectionTeam where options.forbidsOtherTeams: .forbidden
        case .topicSuffix where options.refusesSuffixAsToken: .deviceTokenNotForTopic
        default: refusal
        }
    }
}

/// Where Apple's words leave a choice, and how strict to be.
public struct CheckOptions: Equatable, Codable, Sendable {
    /// A lint is an error.
    public var strict = false
    /// Another team on a connection is `Forbidden`, not `InvalidProviderToken`: Apple says only
    /// that it is an error.
    public var forbidsOtherTeams = false
    /// A topic without the suffix of its push type is `DeviceTokenNotForTopic`, not `BadTopic`.
    public var refusesSuffixAsToken = false
    /// `BadEnvironmentKeyInToken`, as seen on the wire, not `BadEnvironmentKeyIdInToken`, as
    /// documented.
    public var usesWireSpelling = false
    /// The 20 minutes between new provider tokens count for a key over all its connections, not
    /// for each connection: people report both.
    public var countsTokenUpdatesPerKey = false

    public init() {}

    /// What is not named is as in `init()`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func flag(_ key: CodingKeys) throws -> Bool {
            try values.decodeIfPresent(Bool.self, forKey: key) ?? false
        }
        strict = try flag(.strict)
        forbidsOtherTeams = try flag(.forbidsOtherTeams)
        refusesSuffixAsToken = try flag(.refusesSuffixAsToken)
        usesWireSpelling = try flag(.usesWireSpelling)
        countsTokenUpdatesPerKey = try flag(.countsTokenUpdatesPerKey)
    }
}
