import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials

/// An app's backend and its operator: sets the app up over the admin socket, and calls the
/// backend API with the key it got. Each call runs the loop until its answer is there, so nothing
/// else may run it meanwhile. Loop-confined.
final class AppBackend {
    let app: String
    private(set) var apiKey = ""
    private let loop: Loop
    private let admin: HTTPCall.Place
    private let api: HTTPCall.Place

    /// The APNs of an app: where it is, what signs the requests, and whom to trust.
    struct Push: Encodable {
        var keyID: String
        var team: String
        var privateKeyPEM: String
        var topics: [String]
        var host: String
        var port: UInt16
        var trustedCertificatesPEM: String

        enum CodingKeys: String, CodingKey {
            case keyID = "key_id"
            case team
            case privateKeyPEM = "private_key_pem"
            case topics, host, port
            case trustedCertificatesPEM = "trusted_certificates_pem"
        }
    }

    init(loop: Loop, app: String, server: ServerProcess) {
        self.loop = loop
        self.app = app
        admin = .socket(path: server.adminSocket)
        api = .tcp(host: "127.0.0.1", port: server.apiPort)
    }

    /// App, issuer key, API key, one call after the other.
    ///
    /// - Parameter policy: by the names of the admin API, such as `grace_seconds`.
    func setUp(
        policy: [String: UInt64] = [:], issuer: PublicKey, issuerKeyID: String
    ) throws(ScenarioError) {
        struct Made: Decodable { let secret: String }
        try call(admin, "POST", "/apps", ["app": app])
        if !policy.isEmpty { try call(admin, "PATCH", "/apps/\(app)", policy) }
        try call(
            admin, "PUT", "/apps/\(app)/issuer-keys/\(issuerKeyID)",
            ["public_key_pem": issuer.pem])
        let made = try call(admin, "POST", "/apps/\(app)/api-keys", Nothing?.none)
        apiKey = try Self.decoded(Made.self, made).secret
    }

    /// Gives the app an APNs for the production environment.
    func setPush(_ push: Push) throws(ScenarioError) {
        try call(admin, "PUT", "/apps/\(app)/push/production", push)
    }

    func createConversation(
        _ id: String, participants: [String]
    ) throws(ScenarioError) {
        struct New: Encodable {
            let id: String
            let participants: [String]
        }
        try call(api, "POST", "/v1/conversations", New(id: id, participants: participants))
    }

    /// Returns when every one of these places knows the app, its keys and this conversation: what
    /// was administered through one node is in force on the others soon.
    func wait(untilKnownAt places: [HTTPCall.Place], _ conversation: String) throws(ScenarioError) {
        for place in places {
            for attempt in 0... {
                do throws(ScenarioError) {
                    try call(place, "GET", "/v1/conversations/\(conversation)", Nothing?.none)
                    break
                } catch {
                    guard attempt < 200 else { throw error }
                    pass(100)
                }
            }
        }
    }

    private func pass(_ milliseconds: UInt64) {
        loop.updateNow()
        let timer = loop.timer { [loop] in loop.stop() }
        timer.start(afterMilliseconds: milliseconds)
        loop.run()
        timer.close()
    }

    /// Publishes for one of the app's users; the alert text is the text.
    ///
    /// - Returns: the message's id and position.
    func publish(
        _ text: String, from sender: String, to conversation: String
    ) throws(ScenarioError) -> PublishedMessage {
        struct New: Encodable {
            let sender: String
            let parts: [[String: String]]
            let push: [String: String]
        }
        let body = try call(
            api, "POST", "/v1/conversations/\(conversation)/messages",
            New(
                sender: sender, parts: [["mime_type": "text/plain", "text": text]],
                push: ["title": sender, "body": text]))
        return try Self.decoded(PublishedMessage.self, body)
    }

    /// Tells users something outside of conversations; the alert text is the text.
    ///
    /// - Returns: the announcement's id.
    @discardableResult
    func announce(_ text: String, to users: [String]) throws(ScenarioError) -> String {
        struct Made: Decodable { let id: String }
        struct New: Encodable {
            let users: [String]
            let parts: [[String: String]]
            let push: [String: String]
        }
        let body = try call(
            api, "POST", "/v1/announcements",
            New(
                users: users, parts: [["mime_type": "text/plain", "text": text]],
                push: ["title": "News", "body": text]))
        return try Self.decoded(Made.self, body).id
    }

    func takeBack(announcement id: String) throws(ScenarioError) {
        try call(api, "DELETE", "/v1/announcements/\(id)", Nothing?.none)
    }

    /// For a user, as if one of the user's devices had done it.
    func mute(_ user: String, _ conversation: String, _ isMuted: Bool) throws(ScenarioError) {
        let path = "/v1/users/\(user)/conversations/\(conversation)/mute"
        if isMuted {
            try call(api, "PUT", path, [String: String]())
        } else {
            try call(api, "DELETE", path, Nothing?.none)
        }
    }

    func block(_ user: String, _ other: String, _ isBlocked: Bool) throws(ScenarioError) {
        let path = "/v1/users/\(user)/blocks/\(other)"
        try call(api, isBlocked ? "PUT" : "DELETE", path, Nothing?.none)
    }

    func device(_ id: String) throws(ScenarioError) -> DeviceFacts {
        try Self.decoded(DeviceFacts.self, try call(api, "GET", "/v1/devices/\(id)", Nothing?.none))
    }

    /// Newest first.
    func wakes(of device: String) throws(ScenarioError) -> [WakeFacts] {
        struct List: Decodable { let wakes: [WakeFacts] }
        let body = try call(api, "GET", "/v1/devices/\(device)/wakes", Nothing?.none)
        return try Self.decoded(List.self, body).wakes
    }

    private struct Nothing: Encodable {}

    @discardableResult
    private func call(
        _ place: HTTPCall.Place, _ method: String, _ path: String, _ body: (some Encodable)?
    ) throws(ScenarioError) -> [UInt8] {
        let authorization = apiKey.isEmpty ? [] : [("authorization", "Bearer \(apiKey)")]
        let bytes = body.flatMap { try? JSONEncoder().encode($0) }.map { Array($0) } ?? []
        var outcome: Result<HTTPCall.Answer, ScenarioError>?
        loop.updateNow()
        HTTPCall(
            loop: loop, place: place, method: method, path: path, headers: authorization,
            body: bytes
        ) { [loop] result in
            outcome = result
            loop.stop()
        }
        if outcome == nil { loop.run() }
        guard let outcome else { throw ScenarioError("\(method) \(path): the loop has ended") }
        let answer = try outcome.get()
        guard answer.status < 300 else {
            let said = String(decoding: answer.body, as: UTF8.self)
            throw ScenarioError("\(method) \(path): \(answer.status) \(said)")
        }
        return answer.body
    }

    private static func decoded<Value: Decodable>(
        _ type: Value.Type, _ body: [UInt8]
    ) throws(ScenarioError) -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            return try decoder.decode(type, from: Data(body))
        } catch {
            throw ScenarioError("an answer of the server cannot be read: \(ErrorWords.of(error))")
        }
    }
}

/// A message as the backend API answers for it.
struct PublishedMessage: Decodable {
    let id: String
    let position: UInt64
}

/// What the backend API tells of a device, as far as scenarios look at it.
struct DeviceFacts: Decodable {
    struct Feed: Decodable {
        let applied: UInt64
        let head: UInt64
        let isBehind: Bool
    }

    struct PushToken: Decodable {
        let isHeld: Bool
    }

    struct Session: Decodable {
        let role: String
        /// Left out in the foreground.
        let dormantAt: String?
    }

    let reachability: String
    let feed: Feed
    let pushToken: PushToken
    let sessions: [Session]
}

/// One push of a device's history in the backend API, as far as scenarios look at it.
struct WakeFacts: Decodable {
    let kind: String
    let outcome: String
    let messageId: String
}
