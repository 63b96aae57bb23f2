import Feed
import Model
import Testing
import Wake
import Wire

/// What a backend tells listed users (MSG-50 to MSG-52).
struct AnnouncementTests {
    private let pushes: Pushes
    private var world: World { pushes.world }
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    init() throws { pushes = try Pushes() }

    @discardableResult
    private func announce(
        _ text: String, to users: [String], id: MessageID? = nil, push: String? = nil,
        key: Idempotency? = nil, app: AppID = World.app
    ) throws -> StoreAnswer {
        try world.ask(
            .announce(
                app: app,
                Announcement(
                    announcement: id ?? world.fresh(), users: users,
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                    push: push.map { PushText(title: "News", body: $0) }), idempotency: key))
    }

    private func states(_ user: String) throws -> [AnnouncementState] {
        try world.page(user).entries.compactMap {
            if case .announcement(let state) = $0.body { state } else { nil }
        }
    }

    private func read(_ id: MessageID, on session: SessionKey) throws {
        try pushes.acknowledge(
            session, try world.head(session.user.name),
            reads: [ReadReceipt(announcement: id)])
    }

    // MARK: delivery

    @Test func eachListedUserGetsItOnceAndNobodyElse() throws {
        try world.converse(["carl"])
        let before = try world.head("carl")
        let id: MessageID = world.fresh()
        guard
            case .announced(let made) = try announce(
                "sale", to: ["bob", "anna", "bob"], id: id, push: "Sale")
        else { throw Unexpected(answer: .done) }
        #expect(made.recipients == 2)
        for user in ["anna", "bob"] {
            let entry = try #require(try world.page(user).entries.first)
            #expect(entry.object == id.bytes)
            #expect(entry.conversation == nil)
            #expect(entry.version == 1)
            #expect(
                entry.body
                    == .announcement(
                        AnnouncementState(
                            sentMs: world.now.milliseconds,
                            parts: [Part(mimeType: "text/plain", content: Array("sale".utf8))],
                            push: PushText(title: "News", body: "Sale"))))
        }
        #expect(try world.head("carl") == before)
    }

    @Test func manyAreServedInTheBackgroundAStepAtATime() throws {
        world.limits.directRecipients = 3
        let users = (1...8).map { "user\($0)" }
        try announce("first", to: users)
        try announce("second", to: users)
        #expect(try users.allSatisfy { try world.head($0) == 0 })
        #expect(try world.all(AnnouncementBatchRecord.self).count == 6)
        // One step is one batch: a crash between two leaves whole ones.
        #expect(
            try world.ask(.continueFanOut(recipients: 1)) == .progressed(count: 1, more: true))
        #expect(try users.map { try world.head($0) } == [1, 1, 1, 0, 0, 0, 0, 0])
        try world.finishFanOut()
        #expect(try world.all(AnnouncementBatchRecord.self).isEmpty)
        for user in users {
            #expect(
                try states(user).map { String(decoding: $0.parts[0].content, as: UTF8.self) }
                    == ["first", "second"])
        }
    }

    @Test func appsTakeTurnsAndConversationsAreServedBesides() throws {
        world.limits.directRecipients = 3
        let other = AppID("other")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        let users = (1...30).map { "user\($0)" }
        try announce("a", to: users)
        try announce("b", to: users, app: other)
        try world.converse((1...5).map { "member\($0)" })
        _ = try world.ask(.continueFanOut(recipients: 30))
        let batches = try world.all(AnnouncementBatchRecord.self)
        #expect(batches.filter { $0.app == World.app }.count < 10)
        #expect(batches.filter { $0.app == other }.count < 10)
        #expect(!batches.isEmpty)
        #expect(try world.head("member1") > 0)
    }

    @Test func tooManyThatWaitAreRefusedForTheTimeBeing() throws {
        world.limits.directRecipients = 1
        world.limits.announcementQueue = 4
        for _ in 1...2 { #expect(try announce("x", to: ["a", "b", "c"]).refusal == nil) }
        #expect(try announce("x", to: ["a", "b", "c"]).refusal == .rateLimited)
        // Few are served at once all the same.
        #expect(try announce("x", to: ["a"]).refusal == nil)
        try world.finishFanOut()
        #expect(try announce("x", to: ["a", "b", "c"]).refusal == nil)
    }

    @Test func aSnapshotBeginsWithTheNewestThatFit() throws {
        for low in 1...60 {
            try announce("x", to: ["anna"], id: MessageID(high: 8, low: UInt64(low)))
        }
        func entries(_ bytes: Int) throws -> [Entry] {
            let reading = try world.read(
                .history(
                    .snapshot(World.app, UserID("anna"), SnapshotFrame(), bytes: bytes)))
            guard case .history(.snapshotPage(let page)) = reading else {
                throw Unexpected(answer: .done)
            }
            return page.entries
        }
        let all = try entries(1 << 20)
        #expect(all.count == 50)
        #expect(all.first?.object == MessageID(high: 8, low: 60).bytes)
        #expect(try entries(1_000).count < 10)
        try announce(
            String(repeating: "x", count: 50_000), to: ["anna"],
            id: MessageID(high: 9, low: 1))
        #expect(try entries(1_000).map(\.object) == [MessageID(high: 9, low: 1).bytes])
    }

    // MARK: refusals

    @Test func whatIsNotAnAnnouncementIsRefused() throws {
        world.limits.announcementRecipients = 3
        #expect(try announce("x", to: []).refusal == .missingField)
        #expect(try announce("x", to: ["a", "b", "c", "d"]).refusal == .limit)
        #expect(try announce("x", to: ["a\n"]).refusal == .malformed)
        #expect(
            try announce("x", to: ["a"], id: MessageID(high: 0, low: 0)).refusal == .malformed)
        #expect(
            try announce(String(repeating: "x", count: 70_000), to: ["a"]).refusal == .tooLarge)
        #expect(try world.all(AnnouncementRecord.self).isEmpty)
        #expect(try world.head("a") == 0)
    }

    /// A device's alert is known by the id alone.
    @Test func messagesAndAnnouncementsShareTheirIDs() throws {
        let room = try world.converse(["anna"])
        let anna = try world.login("anna", phone).session
        let message = try world.publish("x", to: room).message
        #expect(try announce("x", to: ["anna"], id: message).refusal == .idInUse)
        let id: MessageID = world.fresh()
        #expect(try announce("x", to: ["bob"], id: id).refusal == nil)
        #expect(try announce("x", to: ["bob"], id: id).refusal == .idInUse)
        let send = world.message0("y", to: room, id)
        #expect(
            try world.mutate(anna, 1, .sendMessage(send)).code == Code.forbidden.rawValue)
        #expect(
            try world.ask(
                .publish(
                    app: World.app, Publication(message: send, sender: ""), idempotency: nil)
            ).refusal == .idInUse)
    }

    @Test func aRepetitionHasOneEffectAndOneAnswer() throws {
        let id: MessageID = world.fresh()
        let key = Idempotency(key: "k", requestHash: [1])
        let first = try announce("x", to: ["anna"], id: id, key: key)
        world.pass(5_000)
        #expect(try announce("x", to: ["anna"], id: id, key: key) == first)
        #expect(try world.head("anna") == 1)
    }

    // MARK: waking and reading

    /// A phone that has everything up to now and sleeps.
    private func asleep() throws {
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try world.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(1_000)
    }

    @Test func itWakesAndAlertsAndIsNotCounted() throws {
        try asleep()
        try announce("quiet", to: ["bob"])
        #expect(try pushes.run(2_000) == [], "nothing to show")
        let id: MessageID = world.fresh()
        try announce("sale", to: ["bob"], id: id, push: "Sale")
        #expect(try pushes.run(0) == ["silent"])
        let silent = String(decoding: try #require(pushes.sent.last).request.payload, as: UTF8.self)
        #expect(silent.contains(#""e":"announcement","o":"\#(id)","w":"#), "\(silent)")
        // It does not come: it is demoted, and alerted of what it lacks.
        #expect(try pushes.run(61_000) == [#"alert "Sale" badge 0 stored"#])
        let alert = String(decoding: try #require(pushes.sent.last).request.payload, as: UTF8.self)
        #expect(alert.contains(#""e":"announcement","o":"\#(id)","w":"#), "\(alert)")
        #expect(!alert.contains("thread-id"))
        // A message after it is counted, and names it as one more to see.
        let room = try world.converse(["anna", "bob"])
        try world.publish("hi", to: room, from: "anna")
        #expect(try pushes.run(0) == [#"alert "hi (and 1 more)" badge 1 stored"#])
        let session = try pushes.open("bob", phone).session
        let alerted = try world.page("bob", device: phone).entries.filter(\.alerted).map(\.word)
        #expect(alerted == ["announcement", "message 1"])
        try pushes.acknowledge(session, try world.head("bob"))
        #expect(try world.all(AlertRecord.self).isEmpty)
    }

    @Test func readOnOneDeviceItIsReadOnAllAndAlertedNoMore() throws {
        try asleep()
        let other = try pushes.open("bob", tablet, token: 2).session
        let id: MessageID = world.fresh()
        try announce("sale", to: ["bob"], id: id, push: "Sale")
        #expect(try pushes.run(0) == ["silent"])
        try read(id, on: other)
        let entries = try world.page("bob").entries
        #expect(entries.count == 1, "the newer state takes the place of the older")
        #expect(entries.first?.version == 2)
        #expect(try states("bob").map(\.read) == [true])
        // The phone's grace ends: there is nothing it lacks.
        #expect(try pushes.run(70_000) == [])
        let head = try world.head("bob")
        try read(id, on: other)
        #expect(try world.head("bob") == head, "read once")
    }

    @Test func anAlertThatWaitsIsCancelledByReading() throws {
        try asleep()
        let other = try pushes.open("bob", tablet, token: 2).session
        try announce("one", to: ["bob"], push: "One")
        #expect(try pushes.run(61_000) == ["silent", #"alert "One" badge 0 stored"#])
        let second: MessageID = world.fresh()
        try announce("two", to: ["bob"], id: second, push: "Two")
        try read(second, on: other)
        #expect(try pushes.run(2_000) == [])
        try announce("three", to: ["bob"], push: "Three")
        #expect(try pushes.run(2_000) == [#"alert "Three (and 1 more)" badge 0 stored"#])
    }

    @Test func whatNeverCameIsPassedOver() throws {
        let bob = try world.login("bob", phone).session
        let id: MessageID = world.fresh()
        try announce("x", to: ["anna"], id: id)
        try read(id, on: bob)
        try read(world.fresh(), on: bob)
        #expect(try world.head("bob") == 0)
        #expect(try states("anna").map(\.read) == [false])
    }
}
