import Feed
import Model
import Wake
import Wire

// What the writer does by itself, what the gateway asks, and administration.
extension StoreBench {
    func driveOperation(_ kind: BenchKind, run: Int) throws {
        let app = BenchWorld.app
        switch kind {
        case .receipts: try driveReceipts()
        case .pushes: try drivePushes()
        case .providerToken:
            try repeated { index in
                [
                    .keepProviderToken(
                        KeepProviderToken(
                            team: "TEAM", keyID: "\(run)-\(index)",
                            fingerprint: world.bytes(32),
                            token: String(repeating: "t", count: 200)))
                ]
            }
        case .alive: try repeated { _ in [.keepAlive] }
        case .administer: try driveSettings()
        case .removeDevice:
            try repeated { index in
                let phone = try world.login(app, pair(index).first.user.name)
                return [.administer(.removeDevice(app, phone.user, phone.session.device))]
            }
        case .revoke:
            try repeated(max(2, scale.requests / 10)) { index in
                let user = "revoked-\(run)-\(index)"
                for _ in 0..<2 { _ = try world.login(app, user) }
                return [
                    .administer(.revokeSessions(app, UserID(user), reauthenticate: false))
                ]
            }
        case .suspendUser:
            let count = max(2, scale.requests / 10)
            let users = (0..<count).map { "suspended-\(run)-\($0)" }
            _ = try world.login(app, users)
            try repeated(count) { [.administer(.suspendUser(app, UserID(users[$0])))] }
            try repeated(count, part: "resume") {
                [.administer(.resumeUser(app, UserID(users[$0])))]
            }
        default: preconditionFailure("\(kind) is driven elsewhere")
        }
    }

    private func driveSettings() throws {
        let app = BenchWorld.app
        try repeated { index in
            switch index % 3 {
            case 0: [.administer(.putApp(AppRecord(app: app, createdAt: world.now)))]
            case 1: [.administer(.putPushCredential(world.credential(of: app)))]
            default:
                [
                    .administer(
                        .putAPIKey(
                            APIKeyRecord(
                                app: app, keyID: "key", hash: world.bytes(32),
                                createdAt: world.now)))
                ]
            }
        }
        try repeated(max(2, scale.requests / 10), part: "remove") { index in
            let key = IssuerKeyRecord(
                app: app, keyID: "issuer-\(index)", publicKeyPEM: "", addedAt: world.now)
            try world.ask(.administer(.putIssuerKey(key)))
            return [.administer(.removeIssuerKey(app, keyID: key.keyID))]
        }
    }

    /// Each of a pair has stored what the other wrote: receipts are due.
    private func driveReceipts() throws {
        _ = try published(stock.pairs.count)
        for first in stride(from: 0, to: stock.pairs.count, by: 100) {
            let phones = stock.pairs[first..<min(first + 100, stock.pairs.count)].map(\.second)
            _ = try world.ask(
                phones.map { phone in
                    .acknowledge(
                        Acknowledge(
                            session: phone.session, applied: try world.head(of: phone),
                            completesSync: true))
                })
        }
        try world.pass(2_500)
        try turns("receipts")
    }

    private func drivePushes() throws {
        let count = min(200, stock.sleepers.count)
        for pair in stock.sleepers.prefix(count) { try world.ask(world.publishing(in: pair)) }
        try world.pass(16_000)
        var left = 2 + count / 50
        while left > 0 {
            left -= 1
            let claim = ClaimPushes(
                boot: world.boot, streams: 100, ids: (0..<100).map { _ in world.fresh() })
            guard case .pushes(let claimed) = try measure([.claimPushes(claim)]).first?.answer
            else { return }
            for job in claimed.jobs {
                let finish = FinishPush(
                    key: job.key, id: job.request.id,
                    reply: .answered(status: 200, reason: "", timestamp: nil))
                try measure([.finishPush(finish)], part: "finish")
            }
            if claimed.jobs.isEmpty { return }
        }
    }
}
