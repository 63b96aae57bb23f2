import Feed
import Model
import Wake
import Wire

// What a backend asks.
extension StoreBench {
    func driveBackend(_ kind: BenchKind, run: Int) throws {
        let app = BenchWorld.app
        switch kind {
        case .publish: try repeated { [world.publishing(in: pair($0))] }
        case .publishHundred:
            try repeated(max(2, scale.requests / 10)) { index in
                (0..<100).map { world.publishing(in: pair(index * 100 + $0)) }
            }
        case .publishAsleep:
            try repeated { [world.publishing(in: stock.sleepers[$0 % stock.sleepers.count])] }
        case .edit:
            let ids = try published(scale.requests)
            try repeated { [.editMessage(app: app, edit(ids[$0]), idempotency: idempotency())] }
        case .delete:
            let ids = try published(scale.requests)
            try repeated { [.deleteMessage(app: app, ids[$0], idempotency: idempotency())] }
        case .create:
            try repeated { index in
                let names = [pair(index).first.user.name, pair(index).second.user.name]
                let request = CreateConversation(
                    conversation: world.fresh(), participants: names)
                return [
                    .createConversation(app: app, request, idempotency: idempotency())
                ]
            }
        case .metadata:
            try repeated { index in
                let change = topic(try room(index), run * scale.requests + index)
                return [.changeMetadata(app: app, change, idempotency: idempotency())]
            }
        case .tag:
            try repeated { index in
                let change = ChangeTags(
                    app: app, user: pair(index).first.user, device: nil,
                    add: ["run-\(run)-\(index / stock.pairs.count)"], remove: [])
                return [.campaigns(.tag(change, idempotency: idempotency()))]
            }
        case .announce:
            try repeated(max(2, scale.requests / 20)) { _ in [announcing(to: 256)] }
        case .announceThousand:
            let id: MessageID = world.fresh()
            try measure([announcing(to: 1_000, as: id)])
            try turns("fan-out")
            let request = StoreRequest.takeBackAnnouncement(
                app: app, id, idempotency: idempotency())
            try measure([request], part: "take back")
            try turns("fan-out")
        case .schedule: try driveSchedule()
        case .webhook: try driveWebhook(run)
        case .campaign: try driveCampaign(run)
        default: try driveMembership(kind)
        }
    }

    private func driveMembership(_ kind: BenchKind) throws {
        let app = BenchWorld.app
        switch kind {
        case .add:
            try repeated { index in
                let guest: MessageID = world.fresh()
                let request = AddParticipants(
                    conversation: try room(index), users: ["guest-\(guest)"])
                return [.addParticipants(app: app, request, idempotency: idempotency())]
            }
        case .remove:
            try repeated { index in
                let guest: MessageID = world.fresh()
                let room = try room(index)
                let users = ["guest-\(guest)"]
                try world.ask(
                    .addParticipants(
                        app: app, AddParticipants(conversation: room, users: users),
                        idempotency: nil))
                let request = RemoveParticipants(conversation: room, users: users)
                return [.removeParticipants(app: app, request, idempotency: idempotency())]
            }
        case .end:
            try repeated { index in
                var pair = pair(index)
                pair.conversation = try world.converse(
                    app, [pair.first.user, pair.second.user])
                try world.ask(world.publishing(in: pair))
                return [
                    .deleteConversation(
                        app: app, pair.conversation, idempotency: idempotency())
                ]
            }
        default: preconditionFailure("\(kind) is driven elsewhere")
        }
    }

    /// To users who are online, as far as there are so many.
    private func announcing(to count: Int, as id: MessageID? = nil) -> StoreRequest {
        let online = stock.pairs.flatMap { [$0.first.user.name, $0.second.user.name] }
        let others = (0..<max(0, count - online.count)).map { "listener-\($0)" }
        let announcement = Announcement(
            announcement: id ?? world.fresh(), users: online.prefix(count) + others,
            parts: [Part(mimeType: "text/plain", content: world.bytes(100))],
            push: PushText(title: "News", body: "We are open on Sunday"))
        return .announce(app: BenchWorld.app, announcement, idempotency: idempotency())
    }

    private func driveSchedule() throws {
        var waiting: [MessageID] = []
        try repeated { index in
            let message = world.message(to: pair(index).conversation)
            guard let id = message.message else { return [] }
            waiting.append(id)
            let publication = Publication(
                message: message, sender: pair(index).first.user.name)
            let later = NewScheduled(.message(publication), sendAt: world.now + 60_000)
            return [
                .schedules(.add(app: BenchWorld.app, later, idempotency: idempotency()))
            ]
        }
        let half = waiting.count / 2
        try repeated(half, part: "cancel") { index in
            [
                .schedules(
                    .cancel(
                        app: BenchWorld.app, waiting[index], idempotency: idempotency()))
            ]
        }
        try world.pass(62_000)
        try turns("scheduled")
    }

    private func driveWebhook(_ run: Int) throws {
        let app = AppID("hooked-\(run)")
        try world.makeApp(app)
        let conversation = try world.converse(app, [UserID("anna"), UserID("bert")])
        var keys: [WebhookKey] = []
        try repeated(8) { _ in
            let key = WebhookKey(app: app, webhook: world.fresh())
            keys.append(key)
            return [
                .webhooks(
                    .create(
                        NewWebhook(
                            key: key, url: "https://example.org/hook", kinds: .all,
                            secret: "secret", series: 1)))
            ]
        }
        try repeated(keys.count, part: "change") { index in
            [.webhooks(.change(keys[index], WebhookChange(isActive: true)))]
        }
        _ = try world.ask(
            (0..<200).map { _ in
                world.publishing(world.message(to: conversation), app, from: "anna")
            })
        var jobs: [DeliveryJob] = []
        let claim = ClaimDeliveries(
            boot: BootID(high: 9, low: 9),
            ids: (0..<16).map { _ in world.fresh() }, underWay: [:], perApp: 16,
            policy: WebhookPolicy())
        try repeated(1, part: "claim") { _ in
            [.webhooks(.claim(claim))]
        } after: { _, answer in
            if case .deliveries(let claimed) = answer { jobs += claimed.jobs }
        }
        try repeated(jobs.count, part: "finish") { index in
            let job = jobs[index]
            return [
                .webhooks(
                    .finish(
                        FinishDelivery(
                            key: job.key, claim: job.claim,
                            answer: .answered(status: 200, retryAfter: nil), chance: 0,
                            policy: WebhookPolicy())))
            ]
        }
    }

    private func driveCampaign(_ run: Int) throws {
        let id: CampaignID = world.fresh()
        try measure([
            .campaigns(
                .create(
                    NewCampaign(
                        app: Self.crowd, campaign: id, name: "run \(run)", title: "",
                        body: "We are open on Sunday", plan: CampaignPlan(startsAt: world.now)),
                    idempotency: idempotency()))
        ])
        try turns("campaigns")
        try measure(
            [.campaigns(.control(Self.crowd, id, .cancel, idempotency: idempotency()))],
            part: "cancel")
        try settle("campaigns")
    }
}
