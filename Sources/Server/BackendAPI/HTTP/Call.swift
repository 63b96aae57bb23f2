import Crypto
import EventLoop
import Feed
import HTTP1
import Model
import StoreService
import Telemetry
import Wire

/// What a handler wants next. Handlers hold no state and never wait: they are functions from a
/// call to a step, and from the store's answer to the next one.
enum Step {
    case answer(HTTPResponse)
    case commit(StoreRequest, then: (StoreAnswer) throws(Problem) -> Step)
    case read(StoreQuery, then: (StoreReading) throws(Problem) -> Step)
    /// For what takes seconds: carried out on another thread, one at a time.
    case work(@Sendable () -> HTTPResponse)
}

/// What handlers look at besides the request.
struct Surroundings: Sendable {
    let apps: AppDirectory
    let health: StoreHealth
    let metrics: Metrics
    /// Why the server as a whole takes no traffic; empty: it does.
    let notReady: @Sendable () -> [String]
    /// How it stands with the push credentials; empty where no gateway runs.
    var pushStatus: @Sendable () -> [PushStatus] = { [] }
    /// What the process says of itself to operators.
    var about = ServerFacts()
    /// Tries push credentials out, on a thread that may wait; `nil`: nobody here can.
    var examine: CredentialExamination?
}

/// One request, routed.
struct Call {
    let request: HTTPRequest
    let parameters: [String: String]
    let surroundings: Surroundings
    let now: Timestamp
    /// Whose key it came with; `nil`: operators name the app in the path, or ask of none.
    var app: AppID?
    /// Who asks, as the audit log names them; `nil`: nothing of it is written down.
    var caller: Caller?

    /// A named part of the path; the route's template holds the name.
    func parameter(_ name: String) -> String {
        guard let value = parameters[name] else {
            preconditionFailure("a route without {\(name)}")
        }
        return value
    }

    func identifier<Noun>(
        _ name: String, as type: Identifier<Noun>.Type
    ) throws(Problem) -> Identifier<Noun> {
        guard let id = Identifier<Noun>(text: parameter(name)) else {
            throw .malformed("\(name): must be 36 characters like \(Identifier<Noun>.example)")
        }
        return id
    }

    func user(_ name: String = "user") throws(Problem) -> UserID {
        let user = UserID(parameter(name))
        guard user.isValid else {
            throw .malformed(
                "\(name): must be 1 to \(UserID.bytesMax) bytes without control characters")
        }
        return user
    }

    /// The body, strictly read: nothing unknown, nothing of another type.
    func body<Body: Decodable>(_ type: Body.Type) throws(Problem) -> Body {
        guard request.isJSON else {
            throw Problem(
                .malformed,
                "send the body as content-type: application/json, in UTF-8 and without a "
                    + "content-encoding",
                name: "unsupported_media_type", status: 415)
        }
        return try StrictJSON.read(type, request.body)
    }

    /// The Idempotency-Key of a request that has one.
    func idempotency() throws(Problem) -> Idempotency? {
        let keys = request.headers.values("idempotency-key")
        guard let key = keys.first else { return nil }
        guard keys.count == 1, (1...255).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .malformed(
                "idempotency-key: must be one field of 1 to 255 visible ASCII characters")
        }
        return Idempotency(key: key, requestHash: Digest.sha256(request.hashed))
    }
}

/// The random bits of identifiers, which are no secrets: drawn many at once, for the library's
/// generator asks a lot for each call. From any thread.
private enum IdentifierBits {
    private static let lock = Lock()
    private nonisolated(unsafe) static var drawn: [UInt8] = []  // guarded by `lock`

    static func take() -> (UInt64, UInt64) {
        lock.withLock {
            if drawn.isEmpty { drawn = Random.bytes(1_024) }
            return (word(), word())
        }
    }

    private static func word() -> UInt64 {
        var word: UInt64 = 0
        for byte in drawn.suffix(8) { word = word << 8 | UInt64(byte) }
        drawn.removeLast(8)
        return word
    }
}

extension HTTPRequest {
    /// What a request with the same key must be equal in.
    fileprivate var hashed: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(method.utf8.count + path.utf8.count + 2 + body.count)
        bytes += method.utf8
        bytes.append(UInt8(ascii: "\n"))
        bytes += path.utf8
        bytes.append(UInt8(ascii: "\n"))
        bytes += body
        return bytes
    }

    /// The token of its one `authorization` field (RFC 6750, 2.1); `nil`: there is none.
    var bearer: [UInt8]? {
        let fields = headers.values("authorization")
        guard fields.count == 1, let field = fields.first?.utf8 else { return nil }
        let space = UInt8(ascii: " ")
        let words = field.split(separator: space, maxSplits: 2)
        guard words.count == 2, let scheme = String(words[0]), equalWithoutCase(scheme, "bearer")
        else { return nil }
        return Array(words[1])
    }
}

extension Identifier {
    static var example: Self { Self(high: 0x0190_A1B2_C3D4_7123, low: 0x8456_789A_BCDE_F012) }

    /// A new identifier (RFC 9562 5.7, UUIDv7): the time in its first 48 bits keeps those made
    /// one after another close together in the store's indexes. It is no secret.
    static func fresh(at now: Timestamp) -> Self {
        let random = IdentifierBits.take()
        return Self(
            high: now.milliseconds << 16 | 0x7000 | random.0 & 0x0FFF,
            low: random.1 & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }
}
