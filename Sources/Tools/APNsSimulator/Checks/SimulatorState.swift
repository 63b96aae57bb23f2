public import Crypto
public import Model

/// All that APNs knows about apps, keys and tokens. A plain value: requests and `now` go in,
/// answers come out.
public struct SimulatorState: Sendable {
    /// An app as its developer account has it.
    public struct App: Sendable {
        /// The bundle id.
        public var topic: String
        /// The account: keys of this team may push to the app.
        public var team: String

        public init(topic: String, team: String) {
            self.topic = topic
            self.team = team
        }
    }

    /// A key that signs provider tokens.
    public struct SigningKey: Sendable {
        public var team: String
        public var key: PublicKey
        /// Keys are bound to one environment today; `nil`: an old one for both.
        public var environment: APNsEnvironment?
        /// Bundle ids of a topic-specific key; `nil`: all of the team's.
        public var topics: Set<String>?
        /// Keys of one family are related: they may follow each other on a connection. `nil`: this
        /// key alone.
        public var family: String?
        public var isRevoked = false
        /// The newest token seen on any connection.
        var use: TokenUse?

        public init(
            team: String, key: PublicKey, environment: APNsEnvironment? = nil,
            topics: Set<String>? = nil, family: String? = nil
        ) {
            self.team = team
            self.key = key
            self.environment = environment
            self.topics = topics
            self.family = family
        }
    }

    struct TokenUse: Equatable {
        var token: String
        var issuedAt: Timestamp
        /// When it was first seen.
        var since: Timestamp

        init(_ token: String, _ issuedAt: Timestamp, _ since: Timestamp) {
            self.token = token
            self.issuedAt = issuedAt
            self.since = since
        }
    }

    /// A client certificate that pushes without provider tokens.
    public struct Certificate: Equatable, Sendable {
        /// What its extension allows, suffixes included: `org.example.chat`,
        /// `org.example.chat.voip`, ...
        public var topics: [String]
        /// `nil`: for both.
        public var environment: APNsEnvironment?
        public var isRevoked = false

        public init(topics: [String], environment: APNsEnvironment? = nil) {
            self.topics = topics
            self.environment = environment
        }

        /// What it says of itself. One that names no environment is for both.
        init(_ certificate: PushCertificate) {
            topics = certificate.topics
            if certificate.isForDevelopment != certificate.isForProduction {
                environment = certificate.isForProduction ? .production : .development
            }
        }
    }

    /// A device token that was issued here.
    public struct IssuedToken: Equatable, Sendable {
        public var environment: APNsEnvironment
        public var topic: String
        /// When the app was removed or the token replaced.
        public var deadSince: Timestamp?
        /// From when on this is told by 410: before it a dead token gets 200 and nothing arrives,
        /// as Apple does so that nobody can watch people uninstall.
        public var toldFrom: Timestamp?
        /// 410 says ExpiredToken instead of Unregistered.
        public var isExpired = false
        /// A sender was told that it is dead.
        var isDeathTold = false
        var burstStart = Timestamp(milliseconds: 0)
        var burstCount = 0

        public init(environment: APNsEnvironment, topic: String) {
            self.environment = environment
            self.topic = topic
        }
    }

    public var limits = SimulatorLimits()
    public var options = CheckOptions()
    public private(set) var apps: [String: App] = [:]
    public private(set) var keys: [String: SigningKey] = [:]
    /// By the SHA-256 of the certificate (DER) in hexadecimal.
    public private(set) var certificates: [String: Certificate] = [:]
    public private(set) var tokens: [String: IssuedToken] = [:]

    public init() {}

    /// Why something cannot be added.
    public enum Problem: Error, Equatable, CustomStringConvertible {
        case invalid(String)
        case full(String)
        case unknown(String)

        public var description: String {
            switch self {
            case .invalid(let text): text
            case .full(let what): "no room for more \(what)"
            case .unknown(let what): "unknown \(what)"
            }
        }
    }

    /// Adds or replaces an app.
    public mutating func add(_ app: App) throws(Problem) {
        guard Topic.isWellFormed(app.topic) else {
            throw .invalid("topic `\(app.topic)` is no bundle id")
        }
        guard !app.team.isEmpty else { throw .invalid("team is empty") }
        guard apps[app.topic] != nil || apps.count < limits.apps else { throw .full("apps") }
        apps[app.topic] = app
    }

    /// Adds or replaces a key.
    public mutating func add(_ key: SigningKey, id: String) throws(Problem) {
        guard !id.isEmpty, id.utf8.count <= 64 else { throw .invalid("key id is empty or long") }
        guard key.key.kind == .p256 else { throw .invalid("provider tokens are ES256: P-256") }
        guard keys[id] != nil || keys.count < limits.keys else { throw .full("keys") }
        keys[id] = key
    }

    /// From now on no token signed by the key is valid.
    public mutating func revokeKey(_ id: String) throws(Problem) {
        guard keys[id] != nil else { throw .unknown("key \(id)") }
        keys[id]?.isRevoked = true
    }

    /// Adds or replaces a client certificate.
    ///
    /// - Parameter digest: SHA-256 of the certificate (DER).
    public mutating func add(_ certificate: Certificate, digest: [UInt8]) throws(Problem) {
        let name = Hex.encode(digest)
        guard !certificate.topics.isEmpty, certificate.topics.allSatisfy(Topic.isWellFormed)
        else {
            throw .invalid(
                "the certificate names no well-formed topic: neither the extension "
                    + "1.2.840.113635.100.6.3.6 nor the subject's user id does")
        }
        guard certificates[name] != nil || certificates.count < limits.keys else {
            throw .full("certificates")
        }
        certificates[name] = certificate
    }

    /// From now on no connection is taken with the certificate.
    public mutating func revokeCertificate(digest: [UInt8]) throws(Problem) {
        guard certificates[Hex.encode(digest)] != nil else { throw .unknown("certificate") }
        certificates[Hex.encode(digest)]?.isRevoked = true
    }

    /// Whether a connection with this client certificate may go on; `nil`: it may.
    public func judge(
        certificate digest: [UInt8], environment: APNsEnvironment
    ) -> (Certificate?, Refusal?) {
        guard let known = certificates[Hex.encode(digest)], !known.isRevoked else {
            return (nil, .badCertificate)
        }
        if let bound = known.environment, bound != environment {
            return (nil, .badCertificateEnvironment)
        }
        return (known, nil)
    }

    /// Gives out a device token. `bytes`: chance, of any length.
    public mutating func issue(_ bytes: [UInt8], _ token: IssuedToken) throws(Problem) -> String {
        guard apps[token.topic] != nil else { throw .unknown("topic \(token.topic)") }
        guard !bytes.isEmpty, bytes.count <= 100 else { throw .invalid("token of 1 to 100 bytes") }
        guard tokens.count < limits.tokens else { throw .full("tokens") }
        let text = Hex.encode(bytes)
        tokens[text] = token
        return text
    }

    /// The app was removed at `since`; senders are told from `toldFrom` on.
    public mutating func kill(
        token: String, since: Timestamp, toldFrom: Timestamp, isExpired: Bool = false
    ) throws(Problem) {
        guard tokens[token] != nil else { throw .unknown("token") }
        tokens[token]?.deadSince = since
        tokens[token]?.toldFrom = toldFrom
        tokens[token]?.isExpired = isExpired
        tokens[token]?.isDeathTold = false
    }

    mutating func noteUse(of keyID: String, _ use: TokenUse) {
        guard keys[keyID]?.use?.token != use.token else { return }
        keys[keyID]?.use = use
    }

    /// A sender is told that the token is dead; true: not for the first time.
    mutating func noteDeathTold(_ token: String) -> Bool {
        let wasTold = tokens[token]?.isDeathTold ?? false
        tokens[token]?.isDeathTold = true
        return wasTold
    }

    /// Counts a request to a token; true: too many.
    mutating func countBurst(_ token: String, now: Timestamp) -> Bool {
        guard var issued = tokens[token] else { return false }
        if now.since(issued.burstStart) >= limits.burstMilliseconds || now < issued.burstStart {
            issued.burstStart = now
            issued.burstCount = 0
        }
        // Bounded by the limit: what is above is not counted.
        let isTooMany = issued.burstCount >= limits.burst
        if !isTooMany { issued.burstCount += 1 }
        tokens[token] = issued
        return isTooMany
    }
}
