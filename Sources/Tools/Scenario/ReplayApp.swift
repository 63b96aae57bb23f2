import Crypto
import EventLoop
import FoundationEssentials
import Model

extension Replay {
    // MARK: - The app, as its backend sees it

    /// App, keys, push credential if there is a simulator, conversation.
    func setUpApp() throws(ScenarioError) {
        let backend = AppBackend(loop: loop, app: Self.app, server: servers.first)
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
        try backend.wait(untilKnownAt: servers.apis, conversation.description)
        self.backend = ReplayBackend(
            loop: loop, places: servers.apis, apiKey: backend.apiKey
        ) { [unowned self] message, answer in
            let now = SystemClock.monotonicMilliseconds()
            switch answer {
            case .success(let position):
                self.ledger.answered(message, position: position, at: now)
                self.screenWatch.placed(message, at: position)
            case .failure(let why): self.fail("publishing: \(why)")
            }
        }
    }

    private static let graceMin: UInt64 = 5

    /// Minutes and hours of the policy run as fast as the log's.
    private func policy() -> [String: UInt64] {
        func compressed(_ seconds: Double) -> UInt64 {
            UInt64(max(1, (seconds / options.factor).rounded()))
        }
        // What a phone and this machine need for a wake is not compressed with the log.
        report.graceSeconds = max(Self.graceMin, compressed(60))
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

    /// Adds the users that wait, one call at a time, as often as it takes.
    func addWaiting() {
        guard addsInFlight == 0, !waitingAdds.isEmpty else { return }
        let users = Array(waitingAdds.prefix(50))
        waitingAdds.removeFirst(users.count)
        addsInFlight = users.count
        backend?.call(
            "/v1/conversations/\(conversation)/participants", ["users": users],
            key: "add-\(random.next())"
        ) { [weak self] answer in
            guard answer.status < 300 else {
                let said = String(decoding: answer.body, as: UTF8.self)
                self?.fail("adding users: \(answer.status) \(said)")
                return
            }
            self?.added(users)
        }
    }

    private func added(_ users: [String]) {
        let now = SystemClock.monotonicMilliseconds()
        addsInFlight = 0
        for user in users {
            guard let number = numbers[user] else { continue }
            ledger.added(number, at: now)
            isAdded[number] = true
            if let tablet = readers.places[number], tablet != number {
                ledger.added(tablet, at: now)
                isAdded[tablet] = true
                planReading(on: tablet)
            }
            sendWaiting(number)
        }
        addWaiting()
    }
}
