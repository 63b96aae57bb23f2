import HTTP1
import Model
import Wire

/// A refusal, told as problem details (RFC 9457) with the code the sync protocol has for it.
struct Problem: Error, Equatable {
    let status: Int
    /// Snake case; the last part of `type`. Callers tell problems apart by it.
    let name: String
    let code: Code
    /// For people: what is wrong here, and what to do.
    let detail: String
    /// Fields besides `content-type`.
    var headers: [String: String] = [:]

    init(_ code: Code, _ detail: String, name: String? = nil, status: Int? = nil) {
        self.status = status ?? code.httpStatus
        self.name = name ?? code.name
        self.code = code
        self.detail = detail
        // RFC 9110 10.2.3.
        if self.status == 429 || self.status == 503 { headers["retry-after"] = "1" }
    }

    func with(_ header: String, _ value: String) -> Problem {
        var copy = self
        copy.headers[header] = value
        return copy
    }

    var response: HTTPResponse {
        let body = ProblemBody(
            type: "urn:rouse:problem:\(name)", title: title, status: status, detail: detail,
            code: code.rawValue)
        var response = HTTPResponse.json(status, body, type: "application/problem+json")
        response.headers += headers.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return response
    }

    private var title: String {
        let words = name.split(separator: "_").joined(separator: " ")
        return words.prefix(1).uppercased() + words.dropFirst()
    }
}

private struct ProblemBody: Encodable {
    let type: String
    let title: String
    let status: Int
    let detail: String
    let code: UInt32
}

extension Problem {
    /// Neither the address nor the object in it exists, or it is another app's.
    static func noSuch(_ thing: String) -> Problem { Problem(.notFound, "no such \(thing)") }

    static func malformed(_ detail: String) -> Problem { Problem(.malformed, detail) }

    static func noBody(_ method: String) -> Problem {
        .malformed("\(method) takes no body here: send none")
    }

    static func internalFault(_ detail: String) -> Problem { Problem(.internal, detail) }

    static let unknownKey = Problem(
        .tokenInvalid, "this API key is unknown or was revoked"
    ).with("www-authenticate", "Bearer error=\"invalid_token\"")

    static let idempotencyMismatch = Problem(
        .conflict, "this Idempotency-Key was used for another request; take a new one",
        name: "idempotency_mismatch")

    /// What a store's failure is to the caller.
    init(_ error: StoreError) {
        switch error {
        case .full:
            self.init(
                .storageBusy, "the server has no space left; nothing was changed",
                name: "storage_full", status: 507)
        case .conflict:
            self.init(.unavailable, "the server is busy; nothing was changed, try again")
        case .unavailable:
            self.init(
                .unavailable,
                "the store does not answer; it is not known whether the request was carried out: "
                    + "try again with the same Idempotency-Key")
        case .corrupt:
            self.init(.internal, "a stored row is damaged; the server's log says which")
        }
    }

    /// What the HTTP server refused by itself.
    init(_ refusal: HTTPRefusal) {
        let code: Code = refusal.status == 413 || refusal.status == 431 ? .tooLarge : .malformed
        self.init(code, refusal.reason, status: refusal.status)
    }
}

extension Code {
    /// The status a refusal with this code has in HTTP.
    var httpStatus: Int {
        switch self {
        case .malformed, .missingField, .unknownFrame, .featureNotNegotiated, .protocolViolation,
            .upgradeRequired, .cursorTooOld, .epochChanged, .cursorAhead, .ackAhead:
            400
        case .authRequired, .tokenInvalid, .expired, .nonceExpired, .revoked: 401
        case .forbidden, .suspended, .deviceMismatch, .pushTokenRefused: 403
        case .notFound: 404
        case .idInUse, .versionConflict, .conflict, .resultGone, .numberTaken, .superseded: 409
        case .gone: 410
        case .tooLarge: 413
        case .limit, .unknownKind: 422
        case .rateLimited: 429
        case .internal: 500
        case .unavailable, .timeout, .storageBusy, .goingAway, .drainDeadline, .idle,
            .helloTimeout, .tooManyConnections, .slow:
            503
        }
    }
}
