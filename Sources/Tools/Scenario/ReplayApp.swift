import Crypto
import EventLoop
import Foundation
import Model

extension Replay {
    // MARK: - The app, as its backend sees it

    var api: HTTPCall.Place { .tcp(host: "127.0.0.1", port: server.apiPort) }

    private static func json(_ value: some Encodable) -> [UInt8] {
        (try? JSONEncoder().encode(value)).map(Array.init) ?? []
    }

    /// App, keys, push credential if there is a simulator, conversation.
    func setUpApp() throws(ScenarioError) {
        let backend = AppBackend(loop: loop, app: Self.app, server: server)
        try backend.setUp(
            policy: policy(), issuer: issuer.publicKey, issuerKeyID: Self.keyID)
        if let simulator {
            try backend.setPush(
                AppBackend.Push(
                    keyID: Self.pushKeyID, team: Self.team, privateKeyPEM: pushKey.pem,
                    topics: [Self.topic], host: "localhost", port: simulator.port,
                    trustedCertificatesPEM: authorityPEM))
        }
        try backend.createConversation(conversation.description, participants: ["channel"])
        apiKey = backend.apiKey
    }

    /// Minutes and hours of the policy run as fast as the log's.
    private func policy() -> [String: UInt64] {
        func compressed(_ seconds: Double) -> UInt64 {
            UInt64(max(1, (seconds / options.factor).rounded()))
        }
        report.graceSeconds = compressed(60)
        report.budgetWindowSeconds = compressed(3600)
        report.budgetSpacingSeconds = compressed(60)
        return [
            "grace_seconds": report.graceSeconds,
            "silent_window_seconds": report.budgetWindowSeconds,
            "silent_spacing_seconds": report.budgetSpacingSeconds,
            // Days of a log go by in minutes: who sleeps through some is not doubted.
            "doubt_misses": 0,
        ]
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
