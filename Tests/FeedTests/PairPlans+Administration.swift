import Feed
import Model
import Wake
import Wire

// What backends and administrators do beside messaging, and the server's own turns.
extension PairWorld {
    func administered(_ operation: Operation, on thing: Thing?, by party: Int?) -> Plan? {
        let app = World.app
        var device = pick(devices) ?? DeviceID(high: 1, low: 1)
        var named = party ?? anyone()
        switch thing {
        case .user(let user):
            named = user
            device = pick(devices(of: user)) ?? device
        case .device(let known):
            device = known
            named = party ?? owner[known] ?? named
        default: if operation.roles[.device] != nil { named = owner[device] ?? named }
        }
        let user = user(named)
        var touches: [(Thing, Int?)] = [(.user(named), nil)]
        if operation.roles[.device] != nil { touches.append((.device(device), named)) }
        let request: StoreRequest
        switch operation {
        case .deleteUser: request = .deleteUser(app: app, user, idempotency: nil)
        case .revoke: request = .administer(.revokeSessions(app, user, reauthenticate: false))
        case .challenge: request = .administer(.revokeSessions(app, user, reauthenticate: true))
        case .suspendUser: request = .administer(.suspendUser(app, user))
        case .resumeUser: request = .administer(.resumeUser(app, user))
        case .removeDevice: request = .administer(.removeDevice(app, user, device))
        default:
            request = .campaigns(
                .tag(
                    ChangeTags(
                        app: app, user: user, device: operation == .tagUser ? nil : device,
                        add: ["t\(chance.next() % 3)"], remove: ["t\(chance.next() % 3)"]),
                    idempotency: nil))
        }
        return Plan(request: request, touches: touches)
    }

    // MARK: the app

    func ofApp(_ operation: Operation, on thing: Thing?) -> Plan? {
        var app = Self.side
        if case .app(let named) = thing { app = named }
        guard let request = request(operation, of: app) else { return nil }
        return Plan(request: request, touches: [(.app(app), nil)])
    }

    private func request(_ operation: Operation, of app: AppID) -> StoreRequest? {
        let key = "key \(chance.next() % 2)"
        switch operation {
        case .putApp:
            let known = (try? world.record(AppRecord.self, [.app(app)])) ?? nil
            return .administer(.putApp(known ?? AppRecord(app: app, createdAt: world.now)))
        // Everything of the app that the others are about would go.
        case .removeApp: return app == World.app ? nil : .administer(.removeApp(app))
        case .putIssuerKey:
            return .administer(
                .putIssuerKey(
                    IssuerKeyRecord(
                        app: app, keyID: key, publicKeyPEM: "p", addedAt: world.now)))
        case .removeIssuerKey: return .administer(.removeIssuerKey(app, keyID: key))
        case .putAPIKey:
            let hash: MessageID = world.fresh()
            return .administer(
                .putAPIKey(
                    APIKeyRecord(
                        app: app, keyID: key, hash: hash.bytes, createdAt: world.now)))
        case .removeAPIKey: return .administer(.removeAPIKey(app, keyID: key))
        case .putCredential: return .administer(.putPushCredential(credential(of: app, key)))
        case .removeCredential:
            return .administer(
                .removePushCredential(CredentialKey(app: app, environment: .development, name: key))
            )
        case .suspendApp: return .administer(.suspendApp(app))
        case .resumeApp: return .administer(.resumeApp(app))
        default: return own(operation, of: app)
        }
    }

    func credential(of app: AppID, _ name: String) -> PushCredentialRecord {
        PushCredentialRecord(
            app: app, environment: .development, name: name, keyID: "K", team: "T",
            privateKeyPEM: "p", topics: "example.chess", host: "h", port: 443,
            changedAt: world.now)
    }

    /// Webhooks and campaigns.
    private func own(_ operation: Operation, of app: AppID) -> StoreRequest? {
        switch operation {
        case .createWebhook:
            let key = WebhookKey(app: app, webhook: world.fresh())
            return .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://shop.example/", kinds: .all, secret: "first",
                        series: 77)))
        case .createCampaign:
            return .campaigns(
                .create(
                    NewCampaign(
                        app: app, campaign: world.fresh(), name: "spring", title: "",
                        body: "hello", plan: CampaignPlan(startsAt: world.now + 60_000)),
                    idempotency: nil))
        case .pauseCampaign, .resumeCampaign, .cancelCampaign:
            guard let campaign = pick((campaigns[app] ?? []).suffix(3)) else { return nil }
            let control: CampaignControl =
                operation == .pauseCampaign
                ? .pause : operation == .resumeCampaign ? .resume : .cancel
            return .campaigns(.control(app, campaign, control, idempotency: nil))
        default: break
        }
        guard let webhook = pick((webhooks[app] ?? []).suffix(3)) else { return nil }
        switch operation {
        case .changeWebhook:
            return .webhooks(.change(webhook, WebhookChange(isActive: chance.next() % 2 == 0)))
        case .removeWebhook: return .webhooks(.remove(webhook))
        case .rotateSecret: return .webhooks(.rotate(webhook, secret: "next"))
        case .undoRotation: return .webhooks(.undoRotation(webhook))
        case .testWebhook: return .webhooks(.test(webhook))
        default: return .webhooks(.endRotation(webhook))
        }
    }

    // MARK: the server's own turns

    func turn(_ operation: Operation) -> Plan? {
        request(of: operation).map { Plan(request: $0) }
    }

    private func request(of turn: Operation) -> StoreRequest? {
        let some = chance.next() % 4 == 0 ? 40 : Int(chance.next() % 6) + 1
        let ids: [WakeID] = (0..<8).map { _ in world.fresh() }
        switch turn {
        case .continueFanOut: return .continueFanOut(recipients: some)
        case .continueDeletions: return .continueDeletions(rows: some)
        case .coalesceReceipts: return .coalesceReceipts(users: some)
        case .enforceRetention: return .enforceRetention(rows: some)
        case .start: return .start(boot: BootID(high: 9, low: 9), epochHalf: 77)
        case .restore: return .restore(epochHalf: (world.fresh() as MessageID).low)
        case .claimPushes:
            return .claimPushes(
                ClaimPushes(boot: BootID(high: 9, low: 9), streams: 8, ids: ids))
        case .finishPush:
            guard let job = jobs.popLast() else { return nil }
            let isTaken = chance.next() % 4 > 0
            let reply = PushReply.answered(
                status: isTaken ? 200 : 410, reason: isTaken ? "" : "Unregistered",
                timestamp: isTaken ? nil : world.now)
            return .finishPush(FinishPush(key: job.key, id: job.request.id, reply: reply))
        case .keepProviderToken:
            return .keepProviderToken(
                KeepProviderToken(team: "T", keyID: "K", fingerprint: [1], token: "t"))
        case .keepTicketKeys:
            return .keepTicketKeys(
                TicketKey(
                    name: [UInt8](repeating: UInt8(some), count: 16),
                    secret: [UInt8](repeating: 7, count: 64)))
        case .sweepWakes: return .sweepWakes(rows: 20)
        case .keepAlive: return .keepAlive
        case .beat:
            return .beat(
                NodeBeat(
                    boot: BootID(high: 9, low: 9 + chance.next() % 2), name: "node",
                    phase: [.serving, .serving, .ending, .over][Int(chance.next() % 4)]))
        case .order: return .order(chance.next() % 2 == 0 ? .rebalance : .drain(name: "node"))
        case .publishDue: return .schedules(.publishDue(rows: some))
        case .advanceCampaigns: return .campaigns(.advance(devices: some))
        case .claimDeliveries:
            return .webhooks(
                .claim(
                    ClaimDeliveries(
                        boot: BootID(high: 9, low: 9),
                        ids: (0..<4).map { _ in world.fresh() }, underWay: [:], perApp: 2,
                        policy: WebhookPolicy())))
        default:
            guard let job = deliveries.popLast() else { return nil }
            return .webhooks(
                .finish(
                    FinishDelivery(
                        key: job.key, claim: job.claim,
                        answer: .answered(status: 200, retryAfter: nil), chance: 500,
                        policy: WebhookPolicy())))
        }
    }
}
