public import Model
public import Wake

/// An app: its policy. Keys and push credentials are rows of their own.
public struct AppRecord: Record, Equatable {
    public var app: AppID
    public var createdAt: Timestamp
    /// Milliseconds a silent wake may go unanswered.
    public var grace: UInt64 = WakePolicy.standard.grace
    /// Silent pushes to one device in any `silentWindow`.
    public var silentBudget: UInt64 = WakePolicy.standard.silentBudget
    /// Milliseconds APNs may store an alert; 0: one attempt.
    public var alertExpiration: UInt64 = WakePolicy.standard.alertExpiration
    /// Milliseconds.
    public var sessionTokenLifetime: UInt64 = 2_592_000_000
    /// Above so many participants no receipts, delivered or read, are written.
    public var receiptParticipantsMax: UInt64 = 8
    /// Milliseconds the silent budget looks back.
    public var silentWindow: UInt64 = WakePolicy.standard.silentWindow
    /// Milliseconds between two silent pushes to one device.
    public var silentSpacing: UInt64 = WakePolicy.standard.silentSpacing
    /// Nobody of the app gets in, its backend neither, and no push leaves.
    public var isSuspended: Bool = false
    /// A BCP 47 tag: the language of push texts for devices that speak none of theirs; empty:
    /// the text that was given for all.
    public var locale: String = ""
    /// What its devices may have of their own.
    public var adaptive: AdaptivePolicy = WakePolicy.standard.adaptive
    /// `nil`: a publish may name any.
    public var eventKinds: EventKinds?
}

extension AppRecord {
    public static let table = Table("app", of: Self.self)

    public init(app: AppID, createdAt: Timestamp) {
        self.app = app
        self.createdAt = createdAt
    }

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        createdAt = c.value("created_at", row?.createdAt)
        grace = c.value("grace", row?.grace)
        silentBudget = c.value("silent_budget", row?.silentBudget)
        alertExpiration = c.value("alert_expiration", row?.alertExpiration)
        sessionTokenLifetime = c.value("session_token_lifetime", row?.sessionTokenLifetime)
        receiptParticipantsMax = c.value("receipt_participants_max", row?.receiptParticipantsMax)
        silentWindow = c.value("silent_window", row?.silentWindow)
        silentSpacing = c.value("silent_spacing", row?.silentSpacing)
        isSuspended = c.value("is_suspended", row?.isSuspended)
        locale = c.value("locale", row?.locale)
        adaptive = c.value("adaptive", row?.adaptive)
        eventKinds = c.value("event_kinds", row?.eventKinds, since: 8)
    }
}

/// A public key that signs identity tokens of the app, by its `kid`.
public struct IssuerKeyRecord: Record, Equatable {
    public var app: AppID
    public var keyID: String
    public var publicKeyPEM: String
    public var addedAt: Timestamp

    public init(app: AppID, keyID: String, publicKeyPEM: String, addedAt: Timestamp) {
        self.app = app
        self.keyID = keyID
        self.publicKeyPEM = publicKeyPEM
        self.addedAt = addedAt
    }
}

extension IssuerKeyRecord {
    public static let table = Table("issuer_key", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        keyID = c.key("key_i_d", row?.keyID)
        publicKeyPEM = c.value("public_key_p_e_m", row?.publicKeyPEM)
        addedAt = c.value("added_at", row?.addedAt)
    }
}

/// A key of the backend API: only its SHA-256 is kept. At most two an app.
public struct APIKeyRecord: Record, Equatable {
    public var app: AppID
    public var keyID: String
    public var hash: [UInt8]
    public var createdAt: Timestamp

    public init(app: AppID, keyID: String, hash: [UInt8], createdAt: Timestamp) {
        self.app = app
        self.keyID = keyID
        self.hash = hash
        self.createdAt = createdAt
    }
}

extension APIKeyRecord {
    public static let table = Table(
        "api_key", of: Self.self,
        indexes: [
            TableIndex("api_key_by_hash", on: "hash")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        keyID = c.key("key_i_d", row?.keyID)
        hash = c.value("hash", row?.hash)
        createdAt = c.value("created_at", row?.createdAt)
    }
}

/// What the gateway needs to push for some topics of one app in one APNs environment: a signing
/// key, or a client certificate. Several may stand side by side; of those that name a topic the
/// first by name that can send does.
public struct PushCredentialRecord: Record, Equatable {
    /// The name of a credential that was given none.
    public static let plainName = "default"
    /// Credentials of one app and environment.
    public static let countMax = 16

    public var app: AppID
    public var environment: PushEnvironmentKind
    public var name: String
    /// Of the signing key; empty with a certificate.
    public var keyID: String
    /// Empty with a certificate.
    public var team: String
    /// The signing key, or the certificate's key.
    public var privateKeyPEM: String
    /// Bundle ids, one a line.
    public var topics: String
    public var host: String
    public var port: UInt64
    /// `nil`: the system's.
    public var trustedCertificatesPEM: String?
    public var changedAt: Timestamp
    /// The client certificate and its chain; `nil`: provider tokens are signed with the key.
    public var certificatePEM: String?

    public init(
        app: AppID,
        environment: PushEnvironmentKind,
        name: String = PushCredentialRecord.plainName,
        keyID: String,
        team: String,
        privateKeyPEM: String,
        topics: String,
        host: String,
        port: UInt64,
        trustedCertificatesPEM: String? = nil,
        changedAt: Timestamp,
        certificatePEM: String? = nil
    ) {
        self.app = app
        self.environment = environment
        self.name = name
        self.keyID = keyID
        self.team = team
        self.privateKeyPEM = privateKeyPEM
        self.topics = topics
        self.host = host
        self.port = port
        self.trustedCertificatesPEM = trustedCertificatesPEM
        self.changedAt = changedAt
        self.certificatePEM = certificatePEM
    }

    /// Whether pushes with this topic may go out with it: silent ones and alerts, for no others
    /// are sent.
    public func hasTopic(_ topic: String) -> Bool {
        let all = topics.split(separator: "\n")
        return all.contains { $0.isExactly(topic) } && !Self.isOfAnotherType(topic, among: all)
    }

    /// Its topics apart: those of pushes that are sent, and those of other types. A client
    /// certificate of Apple names the latter beside the former.
    public var topicsByUse: (sent: [String], others: [String]) {
        let all = topics.split(separator: "\n")
        let others = all.filter { Self.isOfAnotherType(String($0), among: all) }
        return (all.filter { !others.contains($0) }.map(String.init), others.map(String.init))
    }

    /// What other push types append to a bundle id (Apple: Sending notification requests to
    /// APNs).
    private static let suffixes = [
        ".voip", ".complication", ".pushkit.fileprovider", ".push-type.liveactivity",
        ".location-query", ".voip-ptt", ".push-type.widgets", ".push-type.controls",
    ]

    /// A bundle id may end like that too: it is a suffix where the bundle id stands beside it.
    private static func isOfAnotherType(_ topic: String, among all: [Substring]) -> Bool {
        suffixes.contains { suffix in
            topic.hasSuffix(suffix) && all.contains(topic.dropLast(suffix.count))
        }
    }
}

extension PushCredentialRecord {
    public static let table = Table("push_credential", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        environment = c.key("environment", row?.environment)
        name = c.key("name", row?.name)
        keyID = c.value("key_i_d", row?.keyID)
        team = c.value("team", row?.team)
        privateKeyPEM = c.value("private_key_p_e_m", row?.privateKeyPEM)
        topics = c.value("topics", row?.topics)
        host = c.value("host", row?.host)
        port = c.value("port", row?.port)
        trustedCertificatesPEM = c.value("trusted_certificates_p_e_m", row?.trustedCertificatesPEM)
        changedAt = c.value("changed_at", row?.changedAt)
        certificatePEM = c.value("certificate_p_e_m", row?.certificatePEM)
    }
}
