import Crypto
import EventLoop
import Foundation
import Model

extension Replay {
    // MARK: - The app, as its backend sees it

    private var admin: HTTPCall.Place { .socket(path: server.adminSocket) }
    private var api: HTTPCall.Place { .tcp(host: "127.0.0.1", port: server.apiPort) }

    private static func json(_ value: some Encodable) -> [UInt8] {
        (try? JSONEncoder().encode(value)).map(Array.init) ?? []
    }

    /// App, issuer key, API key, conversation: one call after the other.
    func setUpApp(then done: @escaping (ScenarioError?) -> Void) {
        let name = Self.app
        call(admin, "POST", "/apps", policy(), done) { _ in
            let key = ["public_key_pem": self.issuer.publicKeyPEM]
            self.call(
                self.admin, "PUT", "/apps/\(name)/issuer-keys/\(Self.keyID)", key, done
            ) { _ in
                self.call(
                    self.admin, "POST", "/apps/\(name)/api-keys", [String: String](), done
                ) { body in
                    struct Made: Decodable { let secret: String }
                    guard let made = try? JSONDecoder().decode(Made.self, from: Data(body)) else {
                        return done(ScenarioError("the answer holds no API key"))
                    }
                    self.apiKey = made.secret
                    self.setUpPush(done)
                }
            }
        }
    }

    private struct Policy: Encodable {
        let app: String
        let grace_seconds: UInt64
        let silent_window_seconds: UInt64
        let silent_spacing_seconds: UInt64
    }

    /// Minutes and hours of the policy run as fast as the log's.
    private func policy() -> Policy {
        func compressed(_ seconds: Double) -> UInt64 {
            UInt64(max(1, (seconds / options.factor).rounded()))
        }
        let policy = Policy(
            app: Self.app, grace_seconds: compressed(60), silent_window_seconds: compressed(3600),
            silent_spacing_seconds: compressed(60))
        report.graceSeconds = policy.grace_seconds
        report.budgetWindowSeconds = policy.silent_window_seconds
        report.budgetSpacingSeconds = policy.silent_spacing_seconds
        return policy
    }

    private func setUpPush(_ done: @escaping (ScenarioError?) -> Void) {
        guard let simulator else { return createConversation(done) }
        struct Credential: Encodable {
            let key_id: String
            let team: String
            let private_key_pem: String
            let topics: [String]
            let host = "localhost"
            let port: UInt16
            let trusted_certificates_pem: String
        }
        call(
            admin, "PUT", "/apps/\(Self.app)/push/production",
            Credential(
                key_id: Self.pushKeyID, team: Self.team, private_key_pem: pushKey.pem,
                topics: [Self.topic], port: simulator.port,
                trusted_certificates_pem: authorityPEM), done
        ) { _ in self.createConversation(done) }
    }

    private func createConversation(_ done: @escaping (ScenarioError?) -> Void) {
        struct New: Encodable {
            let id: String
            let participants: [String]
        }
        call(
            api, "POST", "/v1/conversations",
            New(id: conversation.description, participants: ["channel"]), done
        ) { _ in done(nil) }
    }

    private func call(
        _ place: HTTPCall.Place, _ method: String, _ path: String, _ body: some Encodable,
        _ failed: @escaping (ScenarioError?) -> Void, then: @escaping ([UInt8]) -> Void
    ) {
        HTTPCall(
            loop: loop, place: place, method: method, path: path, headers: authorization,
            body: Self.json(body)
        ) { result in
            switch result {
            case .success(let answer) where answer.status < 300: then(answer.body)
            case .success(let answer):
                failed(
                    ScenarioError(
                        "\(method) \(path): \(answer.status) "
                            + String(decoding: answer.body, as: UTF8.self)))
            case .failure(let error): failed(error)
            }
        }
    }

    private var authorization: [(String, String)] {
        apiKey.isEmpty ? [] : [("authorization", "Bearer \(apiKey)")]
    }

    /// Adds the users that wait, one call at a time, as often as it takes.
    func addWaiting() {
        guard addsInFlight == 0, !waitingAdds.isEmpty else { return }
        let users = Array(waitingAdds.prefix(50))
        waitingAdds.removeFirst(users.count)
        addsInFlight = users.count
        add(users, key: "add-\(random.next())")
    }

    private func add(_ users: [String], key: String) {
        HTTPCall(
            loop: loop, place: api, method: "POST",
            path: "/v1/conversations/\(conversation)/participants",
            headers: authorization + [("idempotency-key", key)],
            body: Self.json(["users": users])
        ) { [weak self] result in
            guard let self else { return }
            guard case .success(let answer) = result, answer.status < 500 else {
                // Killed, or starting again: the same once more, under the same key.
                let again = self.loop.timer { [weak self] in self?.add(users, key: key) }
                return again.start(afterMilliseconds: 200)
            }
            guard answer.status < 300 else {
                return self.fail(
                    "adding users: \(answer.status) "
                        + String(decoding: answer.body, as: UTF8.self))
            }
            self.added(users)
        }
    }

    private func added(_ users: [String]) {
        let now = SystemClock.monotonicMilliseconds()
        addsInFlight = 0
        for user in users {
            guard let number = numbers[user] else { continue }
            ledger.added(number, at: now)
            isAdded[number] = true
            sendWaiting(number)
        }
        addWaiting()
    }
}
