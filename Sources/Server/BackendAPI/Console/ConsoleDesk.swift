import Crypto
import EventLoop
import Feed
import HTTP1
import Model
import StoreService
import Telemetry
import Wire

/// The console's half of a desk: files, logins and what is live; what it does not know itself it
/// hands to a desk of the admin API, once who asks is known and may. Loop-confined.
///
/// Each request of a session is looked up by its token in the store: a token that was revoked, on
/// whichever node, opens nothing any more. Logins, which anybody may send, share readings.
final class ConsoleDesk: Desk {
    static let cookieName = "rouse_console"
    static let csrfHeader = "x-rouse-csrf"
    /// Of a page that looks by itself.
    static let watchingHeader = "x-rouse-watching"
    private static let loginBytesMax = 1_024

    private let admin: CallDesk
    private var sessions: ConsoleSessions
    private let board: LiveBoard
    private let log: Log
    /// The monotonic clock.
    private let now: () -> UInt64
    private var gate = LoginGate()
    private var lookup: TokenLookup?
    private var turn: LoopTimer?
    private var client: StoreClient?
    private var waiting: [UInt64: (Result<OperatorReading, StoreError>) -> Void] = [:]

    /// What waits for live numbers is not counted: it ends with the door.
    var openCalls: Int { admin.openCalls + waiting.count + (lookup?.count ?? 0) }

    init(
        loop: Loop, store: StoreService, surroundings: Surroundings, instruments: Instruments,
        now: @escaping () -> UInt64 = SystemClock.monotonicMilliseconds
    ) {
        log = instruments.log
        self.now = now
        sessions = ConsoleSessions()
        board = LiveBoard(loop: loop, metrics: surroundings.metrics)
        admin = CallDesk(
            loop: loop, table: Self.routes, store: store, surroundings: surroundings,
            instruments: instruments, isOneAtATime: true)
        client = store.client(on: loop) { [unowned self] in received($0) }
        turn = loop.timer { [unowned self] in lookup?.go(now: instant) }
        lookup = TokenLookup(
            now: instant, read: { [unowned self] in readTokens($0) },
            later: { [unowned self] in turn?.start(afterMilliseconds: $0) })
    }

    private var instant: Instant { Instant(milliseconds: now()) }

    /// What the admin socket has, but for the making of console tokens.
    static let routes = BackendAPI.operatorRoutes

    func close() {
        board.close()
        turn?.close()
        turn = nil
        lookup?.close()
        client?.close()
        client = nil
        waiting = [:]
        admin.close()
    }

    func refused(_ refusal: HTTPRefusal) -> HTTPResponse { admin.refused(refusal).guarded() }

    func take(_ request: HTTPRequest, respond: @escaping Respond) {
        let respond: (HTTPResponse) -> Void = { respond($0.guarded(), {}) }
        do throws(Problem) {
            try answer(request, respond)
        } catch {
            respond(error.response)
        }
    }

    private func answer(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        let path = request.pathSegments
        switch path.first {
        case nil: return respond(try redirect(request))
        case "console" where path.count == 1: return respond(try redirect(request))
        case "console": break
        default: throw .noSuch("page")
        }
        switch path[1] {
        case "" where path.count == 2: respond(try file("index.html", request))
        case "files" where path.count == 3: respond(try file(path[2], request))
        case "live" where path.count == 2: try live(request, respond)
        case "login" where path.count == 2: try login(request, respond)
        case "logout" where path.count == 2: try logout(request, respond)
        case "session" where path.count == 2: try session(request, respond)
        case "api" where path.count > 2: try forward(request, respond)
        default: throw .noSuch("page")
        }
    }

    // MARK: Files

    private func redirect(_ request: HTTPRequest) throws(Problem) -> HTTPResponse {
        try request.check(["GET", "HEAD"])
        return HTTPResponse(status: 308, headers: [("location", "/console/")])
    }

    private func file(_ name: String, _ request: HTTPRequest) throws(Problem) -> HTTPResponse {
        try request.check(["GET", "HEAD"])
        guard let file = ConsoleFiles.file(named: name) else { throw .noSuch("file") }
        return file
    }

    // MARK: Sessions

    /// Checks the session of a request, and that its token still stands; then goes on with it.
    private func admit(
        _ request: HTTPRequest, counts: Bool = true,
        _ respond: @escaping (HTTPResponse) -> Void,
        then: @escaping (ConsoleSession) throws(Problem) -> Void
    ) throws(Problem) {
        guard let cookie = request.cookie(request.consoleCookie),
            let session = sessions.find(cookie, now: now(), counts: counts)
        else { throw .loggedOut }
        find(hash: session.tokenHash) { [unowned self] result in
            do throws(Problem) {
                switch result {
                case .success(let token?) where token.role == session.role: try then(session)
                case .success:
                    sessions.end(cookie)
                    throw .loggedOut
                case .failure(let error): throw Problem(error)
                }
            } catch {
                respond(error.response)
            }
        }
    }

    private func find(hash: [UInt8], then: @escaping TokenLookup.Found) {
        ask(.consoleToken(hash: hash)) { result in
            then(
                result.map { reading in
                    guard case .consoleToken(let token) = reading else { Self.mixedUp() }
                    return token
                })
        }
    }

    private func readTokens(_ then: @escaping (TokenLookup.Tokens) -> Void) {
        ask(.consoleTokens) { result in
            then(
                result.map { reading in
                    guard case .consoleTokens(let tokens) = reading else { Self.mixedUp() }
                    return tokens
                })
        }
    }

    private func ask(
        _ query: OperatorQuery, then: @escaping (Result<OperatorReading, StoreError>) -> Void
    ) {
        guard let client else { return then(.failure(.unavailable("the server is stopping"))) }
        waiting[client.read(.operators(query))] = then
    }

    private func received(_ reply: StoreReply) {
        guard let then = waiting.removeValue(forKey: reply.ticket) else { return }
        switch reply.result {
        case .read(.operators(let reading)): then(.success(reading))
        case .failed(let error): then(.failure(error))
        case .read, .committed: Self.mixedUp()
        }
    }

    private static func mixedUp() -> Never {
        preconditionFailure("another answer than was asked for")
    }

    private func session(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        try request.check(["GET", "HEAD"])
        // That nobody is in yet is no fault: browsers write each of those down.
        let nobody = HTTPResponse(status: 204, headers: [("cache-control", "no-store")])
        let respond: (HTTPResponse) -> Void = { respond($0.status == 401 ? nobody : $0) }
        do throws(Problem) {
            try admit(request, counts: !request.isWatching, respond) { session in
                respond(.json(200, SessionBody(session)))
            }
        } catch {
            respond(error.response)
        }
    }

    private func login(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        try request.check(["POST"], takesBody: true)
        try request.checkOrigin()
        guard request.body.count <= Self.loginBytesMax, request.isJSON else {
            throw .malformed("send {\"token\": \"\(ConsoleTokenRecord.secretPrefix)...\"} as JSON")
        }
        let secret = try StrictJSON.read(LoginBody.self, request.body).token
        let hash = Digest.sha256(Array(secret.utf8))
        lookup?.find(hash: hash, now: instant) { [unowned self] result in
            do throws(Problem) {
                switch result {
                case .success(let token?): respond(enter(token, request))
                case .success: throw wrongToken(request)
                case .failure(let error): throw Problem(error)
                }
            } catch {
                respond(error.response)
            }
        }
    }

    private func enter(_ token: ConsoleTokenRecord, _ request: HTTPRequest) -> HTTPResponse {
        gate.forgive(request.peerAddress)
        if let old = request.cookie(request.consoleCookie) { sessions.end(old) }
        let (session, cookie) = sessions.open(
            token, now: now(),
            wall: Timestamp(milliseconds: SystemClock.wallMilliseconds()))
        log.info(
            "console.login",
            [
                LogField("token", token.tokenID), LogField("role", token.role.name),
                LogField("address", request.peerAddress),
            ])
        var response = HTTPResponse.json(200, SessionBody(session))
        response.headers.append(("set-cookie", request.cookieLine(cookie)))
        return response
    }

    private func wrongToken(_ request: HTTPRequest) -> Problem {
        log.limited(.warning, "console.refused", [LogField("address", request.peerAddress)])
        if let wait = gate.note(request.peerAddress, now: now()) {
            let seconds = (wait + 999) / 1_000
            return Problem(
                .rateLimited, "this token is wrong, as many before it; try again in \(seconds) s"
            ).with("retry-after", String(seconds))
        }
        return Problem(.tokenInvalid, "this token is unknown, was revoked, or is over")
    }

    private func logout(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        try request.check(["POST"])
        try admit(request, respond) { [unowned self] session throws(Problem) in
            try request.checkChange(of: session)
            if let cookie = request.cookie(request.consoleCookie) { sessions.end(cookie) }
            respond(
                HTTPResponse(
                    status: 204, headers: [("set-cookie", request.cookieLine("", maxAge: 0))]))
        }
    }

    // MARK: The admin API

    private func forward(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        try admit(
            request, counts: !request.isWatching, respond
        ) { [unowned self] session throws(Problem) in
            try request.checkPage(of: session)
            if request.method != "GET", request.method != "HEAD" {
                try request.checkChange(of: session)
                guard session.role == .admin else {
                    throw Problem(.forbidden, "this token may look, and change nothing")
                }
            }
            var request = request
            request.pathSegments.removeFirst(2)
            request.readDots()
            request.path = String(request.path.dropFirst("/console/api".count))
            let caller = Caller(name: session.callerName, address: request.peerAddress)
            // Operators share no room with anybody: nothing is counted for them.
            admin.take(request, from: caller) { response, taken in
                respond(response)
                taken()
            }
        }
    }

    // MARK: What is live

    /// Server-sent events, each an answer of its own: the browser asks for the next one as soon as
    /// it has one, and tells which that was. So a stream holds no thread and no buffer, its
    /// session is looked at with each event, and what was missed is given again.
    private func live(
        _ request: HTTPRequest, _ respond: @escaping (HTTPResponse) -> Void
    ) throws(Problem) {
        try request.check(["GET"])
        let answer = respond
        // A page that is told anything but 200 never asks again: an event source gives up.
        let respond: (HTTPResponse) -> Void = { response in
            guard response.status == 503 else { return answer(response) }
            answer(
                HTTPResponse(
                    status: 200,
                    headers: [
                        ("content-type", "text/event-stream"), ("cache-control", "no-store"),
                    ], body: Array("retry: 3000\n\n".utf8)))
        }
        try admit(request, counts: false, respond) { [unowned self] _ throws(Problem) in
            try board.await(after: request.headers["last-event-id"]) { events in
                respond(
                    HTTPResponse(
                        status: 200,
                        headers: [
                            ("content-type", "text/event-stream"), ("cache-control", "no-store"),
                        ], body: Array(events.utf8)))
            }
        }
    }
}

private struct LoginBody: Decodable {
    enum Key: String, CodingKey, CaseIterable { case token }

    let token: String

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        guard let token = try fields.text(.token, bytes: 1...256) else {
            throw fields.missing(.token)
        }
        self.token = token
    }
}

private struct SessionBody: Encodable {
    let role: String
    let label: String
    let token: String
    let csrf: String
    let expiresAt: String

    init(_ session: ConsoleSession) {
        role = session.role.name
        label = session.label
        token = session.tokenID
        csrf = session.csrf
        expiresAt = session.expiresAt.text
    }
}
