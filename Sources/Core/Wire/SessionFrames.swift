public import Model

/// `HELLO` (0x01, client): the first frame of a connection.
public struct Hello: WireMessage {
    /// Lowest protocol version the client speaks.
    public var versionMin: UInt32
    /// Highest protocol version the client speaks.
    public var versionMax: UInt32
    /// The app id; it only selects keys, the credential decides.
    public var app: String
    /// Who connects; `nil` is a missing field (4002).
    public var device: DeviceID?
    /// What runs on the device: the app, or an extension beside it.
    public var role: Role
    /// The client software, for logs.
    public var clientName: String
    /// Its version, for logs.
    public var clientVersion: String
    /// Features asked for, by name.
    public var features: [String]
    /// Credential of an earlier session; empty: none yet.
    public var sessionToken: [UInt8]
    /// State of the app at connect.
    public var appState: AppState?
    /// Where this device takes pushes.
    public var push: PushRegistration?
    /// Answered after `WELCOME` as if it had come alone; dropped unread by a `CHALLENGE`.
    public var sync: SyncFrame?
    /// The wake that caused this connection.
    public var wake: WakeID?
    /// The user's language, a BCP 47 tag; empty: not said.
    public var locale: String
    /// By its name in the IANA time zone database; empty: not said.
    public var timeZone: String
    /// Minutes east of UTC now, plus 1,440; 0: not said.
    public var utcOffset: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        versionMin: UInt32 = 0, versionMax: UInt32 = 0, app: String = "", device: DeviceID? = nil,
        role: Role = .unspecified, clientName: String = "", clientVersion: String = "",
        features: [String] = [], sessionToken: [UInt8] = [], appState: AppState? = nil,
        push: PushRegistration? = nil, sync: SyncFrame? = nil, wake: WakeID? = nil,
        locale: String = "", timeZone: String = "", utcOffset: UInt32 = 0
    ) {
        self.versionMin = versionMin
        self.versionMax = versionMax
        self.app = app
        self.device = device
        self.role = role
        self.clientName = clientName
        self.clientVersion = clientVersion
        self.features = features
        self.sessionToken = sessionToken
        self.appState = appState
        self.push = push
        self.sync = sync
        self.wake = wake
        self.locale = locale
        self.timeZone = timeZone
        self.utcOffset = utcOffset
    }

    public static var empty: Hello { Hello() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "version_min", &versionMin)
        try visitor.uint32(2, "version_max", &versionMax)
        try visitor.string(3, "app", &app)
        try visitor.identifier(4, "device", &device)
        try visitor.enumeration(5, "role", &role)
        try visitor.string(6, "client_name", &clientName)
        try visitor.string(7, "client_version", &clientVersion)
        try visitor.strings(8, "features", &features)
        try visitor.bytes(9, "session_token", &sessionToken)
        try visitor.message(10, "app_state", &appState)
        try visitor.message(11, "push", &push)
        try visitor.message(12, "sync", &sync)
        try visitor.identifier(13, "wake", &wake)
        try visitor.string(14, "locale", &locale)
        try visitor.string(15, "time_zone", &timeZone)
        try visitor.uint32(16, "utc_offset", &utcOffset)
    }
}

/// Where a device takes pushes.
public struct PushRegistration: WireMessage {
    /// The device token APNs gave the app.
    public var token: [UInt8]
    /// Which APNs environment the token belongs to.
    public var environment: PushEnvironment
    /// The APNs topic; one of those configured for the app.
    public var topic: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        token: [UInt8] = [], environment: PushEnvironment = .unspecified, topic: String = ""
    ) {
        self.token = token
        self.environment = environment
        self.topic = topic
    }

    public static var empty: PushRegistration { PushRegistration() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "token", &token)
        try visitor.enumeration(2, "environment", &environment)
        try visitor.string(3, "topic", &topic)
    }
}

/// `CHALLENGE` (0x02, server): authenticate before anything else goes on.
public struct Challenge: WireMessage {
    /// To be signed into the identity token.
    public var nonce: [UInt8]
    /// How long the nonce is accepted, in milliseconds.
    public var lifetimeMs: UInt32
    /// Why the server asks.
    public var reason: ChallengeReason

    /// A body with these fields; those left out keep their proto3 default.
    public init(nonce: [UInt8] = [], lifetimeMs: UInt32 = 0, reason: ChallengeReason = .unspecified)
    {
        self.nonce = nonce
        self.lifetimeMs = lifetimeMs
        self.reason = reason
    }

    public static var empty: Challenge { Challenge() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "nonce", &nonce)
        try visitor.uint32(2, "lifetime_ms", &lifetimeMs)
        try visitor.enumeration(3, "reason", &reason)
    }
}

/// `AUTHENTICATE` (0x03, client): the answer to a challenge.
public struct Authenticate: WireMessage {
    /// A JWT signed by the app's backend.
    public var identityToken: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(identityToken: String = "") {
        self.identityToken = identityToken
    }

    public static var empty: Authenticate { Authenticate() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "identity_token", &identityToken)
    }
}

/// `WELCOME` (0x04, server): the session is open.
public struct Welcome: WireMessage {
    /// The protocol version of this connection.
    public var version: UInt32
    /// New credential; the old one stays valid until this one has been used.
    public var sessionToken: [UInt8]
    /// Lifetime of the new credential, in milliseconds.
    public var sessionTokenLifetimeMs: UInt64
    /// The server's clock, in milliseconds since 1970.
    public var serverTimeMs: UInt64
    /// The history this user's feed belongs to now.
    public var epoch: Epoch?
    /// Every mutation number up to this one has been taken.
    public var mutationFloor: UInt64
    /// Proposed longest time between frames, in milliseconds.
    public var keepaliveMs: UInt32
    /// Limits of this connection.
    public var limits: AdvertisedLimits?
    /// Features granted, by name.
    public var features: [String]
    /// The node that serves this connection, for logs.
    public var node: String
    /// Whether the server holds a push token for this device.
    public var pushTokenHeld: Bool
    /// The user the credential belongs to.
    public var user: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        version: UInt32 = 0, sessionToken: [UInt8] = [], sessionTokenLifetimeMs: UInt64 = 0,
        serverTimeMs: UInt64 = 0, epoch: Epoch? = nil, mutationFloor: UInt64 = 0,
        keepaliveMs: UInt32 = 0, limits: AdvertisedLimits? = nil, features: [String] = [],
        node: String = "", pushTokenHeld: Bool = false, user: String = ""
    ) {
        self.version = version
        self.sessionToken = sessionToken
        self.sessionTokenLifetimeMs = sessionTokenLifetimeMs
        self.serverTimeMs = serverTimeMs
        self.epoch = epoch
        self.mutationFloor = mutationFloor
        self.keepaliveMs = keepaliveMs
        self.limits = limits
        self.features = features
        self.node = node
        self.pushTokenHeld = pushTokenHeld
        self.user = user
    }

    public static var empty: Welcome { Welcome() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "version", &version)
        try visitor.bytes(2, "session_token", &sessionToken)
        try visitor.uint64(3, "session_token_lifetime_ms", &sessionTokenLifetimeMs)
        try visitor.uint64(4, "server_time_ms", &serverTimeMs)
        try visitor.identifier(5, "epoch", &epoch)
        try visitor.uint64(6, "mutation_floor", &mutationFloor)
        try visitor.uint32(7, "keepalive_ms", &keepaliveMs)
        try visitor.message(8, "limits", &limits)
        try visitor.strings(9, "features", &features)
        try visitor.string(10, "node", &node)
        try visitor.bool(11, "push_token_held", &pushTokenHeld)
        try visitor.string(12, "user", &user)
    }
}

/// Limits the server names in `WELCOME` (message `Limits`); 0: not said.
public struct AdvertisedLimits: WireMessage {
    /// Largest body of a frame, in bytes.
    public var bodyBytes: UInt32
    /// Most unacknowledged bytes of pushed deltas.
    public var windowBytes: UInt32
    /// Most unacknowledged pushed deltas.
    public var windowDeltas: UInt32
    /// Most mutations without a result.
    public var mutationsUnanswered: UInt32
    /// Largest message, in bytes of its parts.
    public var messageBytes: UInt32
    /// Most users named in one mutation.
    public var participantsPerRequest: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        bodyBytes: UInt32 = 0, windowBytes: UInt32 = 0, windowDeltas: UInt32 = 0,
        mutationsUnanswered: UInt32 = 0, messageBytes: UInt32 = 0,
        participantsPerRequest: UInt32 = 0
    ) {
        self.bodyBytes = bodyBytes
        self.windowBytes = windowBytes
        self.windowDeltas = windowDeltas
        self.mutationsUnanswered = mutationsUnanswered
        self.messageBytes = messageBytes
        self.participantsPerRequest = participantsPerRequest
    }

    public static var empty: AdvertisedLimits { AdvertisedLimits() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "body_bytes", &bodyBytes)
        try visitor.uint32(2, "window_bytes", &windowBytes)
        try visitor.uint32(3, "window_deltas", &windowDeltas)
        try visitor.uint32(4, "mutations_unanswered", &mutationsUnanswered)
        try visitor.uint32(5, "message_bytes", &messageBytes)
        try visitor.uint32(6, "participants_per_request", &participantsPerRequest)
    }
}

/// `APP_STATE` (0x31, client; also inside `HELLO`): what the app is allowed to do right now.
public struct AppState: WireMessage {
    /// Foreground, background or inactive; lapses with the connection.
    public var phase: AppPhase
    /// Run time left in the background, in milliseconds.
    public var remainingMs: UInt32
    /// Permission to show notifications; stored.
    public var notifications: Setting
    /// Background app refresh; stored.
    public var backgroundRefresh: Setting
    /// Low power mode; stored.
    public var lowPower: Setting

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        phase: AppPhase = .unspecified, remainingMs: UInt32 = 0,
        notifications: Setting = .unspecified, backgroundRefresh: Setting = .unspecified,
        lowPower: Setting = .unspecified
    ) {
        self.phase = phase
        self.remainingMs = remainingMs
        self.notifications = notifications
        self.backgroundRefresh = backgroundRefresh
        self.lowPower = lowPower
    }

    public static var empty: AppState { AppState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "phase", &phase)
        try visitor.uint32(2, "remaining_ms", &remainingMs)
        try visitor.enumeration(3, "notifications", &notifications)
        try visitor.enumeration(4, "background_refresh", &backgroundRefresh)
        try visitor.enumeration(5, "low_power", &lowPower)
    }
}

/// `PING` (0x40, both sides): asks for a `PONG`.
public struct Ping: WireMessage {
    /// The sender's next frame comes within this time, in milliseconds.
    public var nextMs: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(nextMs: UInt32 = 0) {
        self.nextMs = nextMs
    }

    public static var empty: Ping { Ping() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "next_ms", &nextMs)
    }
}

/// `PONG` (0x41, both sides): answers a `PING`.
public struct Pong: WireMessage {
    /// The sender's next frame comes within this time, in milliseconds.
    public var nextMs: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(nextMs: UInt32 = 0) {
        self.nextMs = nextMs
    }

    public static var empty: Pong { Pong() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "next_ms", &nextMs)
    }
}

/// `DRAIN` (0x42, server): this connection ends soon.
public struct Drain: WireMessage {
    /// Closed at the latest after this time, in milliseconds.
    public var deadlineMs: UInt32
    /// When this client is to connect again, in milliseconds from now.
    public var slotMs: UInt32
    /// Where to connect again.
    public var place: DrainPlace

    /// A body with these fields; those left out keep their proto3 default.
    public init(deadlineMs: UInt32 = 0, slotMs: UInt32 = 0, place: DrainPlace = .unspecified) {
        self.deadlineMs = deadlineMs
        self.slotMs = slotMs
        self.place = place
    }

    public static var empty: Drain { Drain() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "deadline_ms", &deadlineMs)
        try visitor.uint32(2, "slot_ms", &slotMs)
        try visitor.enumeration(3, "place", &place)
    }
}

/// `ERROR` (0x43, server; message `Error`): a request failed; the connection goes on.
public struct ErrorFrame: WireMessage {
    /// A code of the registry (`Code`), or one this side does not know.
    public var code: UInt32
    /// The code's name, for people.
    public var name: String
    /// What the client may do; counts also when the code is unknown.
    public var retry: RetryClass
    /// Not again before this time has passed, in milliseconds.
    public var retryAfterMs: UInt32
    /// More for a developer; never shown to users, never parsed.
    public var detail: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        code: UInt32 = 0, name: String = "", retry: RetryClass = .none, retryAfterMs: UInt32 = 0,
        detail: String = ""
    ) {
        self.code = code
        self.name = name
        self.retry = retry
        self.retryAfterMs = retryAfterMs
        self.detail = detail
    }

    public static var empty: ErrorFrame { ErrorFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "code", &code)
        try visitor.string(2, "name", &name)
        try visitor.enumeration(3, "retry", &retry)
        try visitor.uint32(4, "retry_after_ms", &retryAfterMs)
        try visitor.string(5, "detail", &detail)
    }
}

/// `CLOSE` (0x44, both sides): the sender's last frame.
public struct Close: WireMessage {
    /// A code of the registry (`Code`), or one this side does not know.
    public var code: UInt32
    /// What the client may do; counts also when the code is unknown.
    public var retry: RetryClass
    /// The `applied` last taken (server) or reached (client).
    public var applied: UInt64
    /// Not again before this time has passed, in milliseconds.
    public var retryAfterMs: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        code: UInt32 = 0, retry: RetryClass = .none, applied: UInt64 = 0, retryAfterMs: UInt32 = 0
    ) {
        self.code = code
        self.retry = retry
        self.applied = applied
        self.retryAfterMs = retryAfterMs
    }

    public static var empty: Close { Close() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "code", &code)
        try visitor.enumeration(2, "retry", &retry)
        try visitor.uint64(3, "applied", &applied)
        try visitor.uint32(4, "retry_after_ms", &retryAfterMs)
    }
}
