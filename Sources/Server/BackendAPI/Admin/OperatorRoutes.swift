import Crypto
import Feed
import HTTP1
public import Model
import Wire

/// What a server says of itself to operators.
public struct ServerFacts: Sendable {
    public var name: String
    public var boot: String
    /// The store's file or database, without a password.
    public var store: String
    /// Whether other nodes serve the same store.
    public var isShared: Bool
    public var startedAt: Timestamp?

    public init(
        name: String = "", boot: String = "", store: String = "", isShared: Bool = false,
        startedAt: Timestamp? = nil
    ) {
        self.name = name
        self.boot = boot
        self.store = store
        self.isShared = isShared
        self.startedAt = startedAt
    }

    /// No change takes longer, the doctor's look at push credentials among them.
    private static let underWayMax: Milliseconds = 10 * 60_000

    /// Whether nobody will tell what came of a change: its server ended meanwhile. Of a file that
    /// is so of all that is older than the process; of a database another node may have it.
    func hasLost(_ change: AuditRecord, now: Timestamp) -> Bool {
        guard change.status == 0 else { return false }
        if !isShared, let startedAt, change.at < startedAt { return true }
        return now > change.at + Self.underWayMax
    }
}

/// What an examination of a push credential found.
public struct ExaminedCredential: Encodable, Equatable, Sendable {
    /// One thing that was looked at, in the doctor's words.
    public struct Finding: Encodable, Equatable, Sendable {
        public var check: String
        public var isGood: Bool
        public var text: String

        public init(check: String, isGood: Bool, text: String) {
            self.check = check
            self.isGood = isGood
            self.text = text
        }
    }

    public var app: String
    public var environment: String
    public var name: String
    public var isGood: Bool
    public var findings: [Finding]

    public init(
        app: String, environment: String, name: String, isGood: Bool, findings: [Finding]
    ) {
        self.app = app
        self.environment = environment
        self.name = name
        self.isGood = isGood
        self.findings = findings
    }
}

/// Tries the push credentials out that an app has in an environment under a name. It may wait for
/// the network.
public typealias CredentialExamination =
    @Sendable (_ app: String, _ environment: String, _ name: String) throws -> [ExaminedCredential]

/// Console tokens, the audit log, and the doctor of push credentials.
enum OperatorRoutes {
    /// Only on the machine itself: who has stolen a session must not make one that lasts longer.
    static let socketOnly = Route("POST", "/console/tokens", .open(createToken))

    static let all: [Route] = [
        Route("GET", "/console/tokens", .open(listTokens)),
        Route("DELETE", "/console/tokens/{token}", .open(revokeToken)),
        Route("GET", "/audit", query: ["cursor", "limit"], .open(listAudit)),
        Route(
            "POST", "/apps/{app}/push/{environment}/{name}/check", takesBody: false,
            .open(check)),
    ]

    struct NewConsoleToken: Decodable {
        enum Key: String, CodingKey, CaseIterable {
            case role, label
            case expiresSeconds = "expires_seconds"
        }

        let role: ConsoleRole
        let label: String
        let lifetime: Milliseconds

        init(from decoder: any Decoder) throws {
            let fields = try Fields<Key>(decoder)
            let name = try fields.optional(.role, String.self) ?? ConsoleRole.readOnly.name
            guard let role = ConsoleRole.allCases.first(where: { $0.name == name }) else {
                throw fields.refusal(.role, "must be read-only or admin")
            }
            self.role = role
            label = try fields.text(.label, bytes: 0...64) ?? ""
            let most = ConsoleTokenRecord.lifetimeMax / 1_000
            lifetime = (try fields.number(.expiresSeconds, in: 60...most) ?? 8 * 3_600) * 1_000
        }
    }

    /// The secret has 256 bits of chance, so a plain hash of it is as good as a slow one.
    private static func createToken(_ call: Call) throws(Problem) -> Step {
        let body = try call.body(NewConsoleToken.self)
        let secret = ConsoleTokenRecord.secretPrefix + Base64URL.encode(Random.bytes(32))
        let record = ConsoleTokenRecord(
            tokenID: "ct_" + Hex.encode(Random.bytes(6)),
            hash: Digest.sha256(Array(secret.utf8)), label: body.label, role: body.role,
            createdAt: call.now, expiresAt: call.now + body.lifetime)
        return .commit(.administer(.putConsoleToken(record))) { _ in
            .answer(.json(201, ConsoleTokenBody(record, secret: secret)))
        }
    }

    private static func listTokens(_ call: Call) throws(Problem) -> Step {
        .read(.operators(.consoleTokens)) { reading throws(Problem) in
            guard case .operators(.consoleTokens(let tokens)) = reading else {
                throw .unexpected(reading)
            }
            let inOrder = tokens.sorted { $0.createdAt < $1.createdAt }
            return .answer(
                .json(200, ConsoleTokenListBody(tokens: inOrder.map { ConsoleTokenBody($0) })))
        }
    }

    private static func revokeToken(_ call: Call) throws(Problem) -> Step {
        .commit(.administer(.removeConsoleToken(call.parameter("token")))) { _ in
            .answer(HTTPResponse(status: 204))
        }
    }

    private static func listAudit(_ call: Call) throws(Problem) -> Step {
        let limit = try call.limit(default: 500, max: 500)
        let before = try call.positionCursor(.audit)
        let address = call.address
        return .read(.operators(.audit(before: before, limit: limit))) {
            reading throws(Problem) in
            guard case .operators(.audit(let rows, let next)) = reading else {
                throw .unexpected(reading)
            }
            let body = AuditListBody(
                changes: rows.map {
                    AuditBody($0, isLost: call.surroundings.about.hasLost($0, now: call.now))
                },
                next: next.map { PageCursor(.audit, of: address, position: $0).text })
            return .answer(.json(200, body))
        }
    }

    /// Signs, connects, and sends a push for each topic to a token that cannot exist.
    private static func check(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let (environment, name) = (call.parameter("environment"), call.parameter("name"))
        let isThere = configuration.pushCredentials.contains {
            $0.environment.name == environment && $0.name.isExactly(name)
        }
        guard isThere else { throw .noSuch("push credential") }
        guard let examine = call.surroundings.examine else {
            throw Problem(.unavailable, "no server runs that could try it; use rouse push check")
        }
        let app = configuration.app.app.name
        return .work {
            do {
                return .json(
                    200, ExaminationBody(credentials: try examine(app, environment, name)))
            } catch {
                return Problem(.unavailable, "it could not be tried: \(error)").response
            }
        }
    }
}

extension ConsoleTokenRecord {
    /// What every token begins with, so that one in a log or a repository is found for what it is.
    static let secretPrefix = "rct_"
}

extension ConsoleRole {
    var name: String {
        switch self {
        case .readOnly: "read-only"
        case .admin: "admin"
        }
    }
}

struct ConsoleTokenListBody: Encodable {
    let tokens: [ConsoleTokenBody]
}

struct ConsoleTokenBody: Encodable {
    let id: String
    let label: String
    let role: String
    let createdAt: String
    let expiresAt: String
    /// Only in the answer that made it: the server keeps a hash.
    var secret: String?

    init(_ record: ConsoleTokenRecord, secret: String? = nil) {
        id = record.tokenID
        label = record.label
        role = record.role.name
        createdAt = record.createdAt.text
        expiresAt = record.expiresAt.text
        self.secret = secret
    }
}

struct AuditListBody: Encodable {
    /// Newest first.
    let changes: [AuditBody]
    let next: String?
}

struct AuditBody: Encodable {
    let number: UInt64
    let at: String
    let actor: String
    let address: String?
    let action: String
    let detail: String?
    /// Left out while it is under way, and where nobody knows what came of it.
    let status: UInt64?
    /// Nobody will tell any more what came of it; left out otherwise.
    let lost: Bool?

    init(_ record: AuditRecord, isLost: Bool) {
        number = record.number
        at = record.at.text
        actor = record.actor
        address = record.address.isEmpty ? nil : record.address
        action = record.action
        detail = record.detail.isEmpty ? nil : record.detail
        status = record.status == 0 ? nil : record.status
        lost = isLost ? true : nil
    }
}

struct ExaminationBody: Encodable {
    let credentials: [ExaminedCredential]
}
