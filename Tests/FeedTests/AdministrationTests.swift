import Feed
import MemoryStore
import Model
import Testing
import Wire

struct AdministrationTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)

    init() throws { world = try World() }

    @Test func theSameKeyHasOneEffectAndOneAnswer() throws {
        let id = try world.converse(["anna"])
        let key = Idempotency(key: "k1", requestHash: [1])
        let first = try world.publish("x", to: id, idempotency: key)
        // The client makes a new id when it tries again; the answer is the first one's.
        #expect(try world.publish("x", to: id, idempotency: key) == first)
        #expect(try world.page("anna").entries.count == 3)
        let other = try world.ask(
            .publish(
                app: World.app,
                Publication(message: world.message0("y", to: id, world.fresh()), sender: ""),
                idempotency: Idempotency(key: "k1", requestHash: [2])))
        #expect(other == .idempotencyMismatch)
        world.pass(86_400_000 - 1)
        #expect(try world.publish("x", to: id, idempotency: key) == first)
        world.pass(1)
        #expect(try world.publish("x", to: id, idempotency: key).position == 2)
    }

    @Test func aConversationsAnswerIsTheFirstOne() throws {
        let request = CreateConversation(conversation: world.fresh(), participants: ["anna"])
        let key = Idempotency(key: "k", requestHash: [1])
        let first = try world.ask(
            .createConversation(app: World.app, request, idempotency: key))
        guard case .conversation(let record) = first else { throw Unexpected(answer: first) }
        try world.publish("x", to: record.conversation)
        #expect(
            try world.ask(.createConversation(app: World.app, request, idempotency: key)) == first)
        // A refusal is not kept.
        let early = Idempotency(key: "e", requestHash: [1])
        let id: ConversationID = world.fresh()
        let add = AddParticipants(conversation: id, users: ["bert"])
        #expect(
            try world.ask(.addParticipants(app: World.app, add, idempotency: early)).refusal
                == .notFound)
        _ = try world.ask(
            .createConversation(
                app: World.app, CreateConversation(conversation: id), idempotency: nil))
        #expect(
            try world.ask(.addParticipants(app: World.app, add, idempotency: early)).refusal == nil)
        let empty = Idempotency(key: "", requestHash: [1])
        #expect(
            try world.ask(.addParticipants(app: World.app, add, idempotency: empty)).refusal
                == .malformed)
    }

    @Test func twoKeysAreLiveAtMost() throws {
        func key(_ id: String, _ hash: UInt8) -> APIKeyRecord {
            APIKeyRecord(app: World.app, keyID: id, hash: [hash], createdAt: world.now)
        }
        try world.expectDone(.putAPIKey(key("a", 1)))
        try world.expectDone(.putAPIKey(key("b", 2)))
        #expect(try world.ask(.administer(.putAPIKey(key("c", 3)))).refusal == .limit)
        try world.expectDone(.putAPIKey(key("b", 4)))
        #expect(try world.read(.apiKey(hash: [4])) == .apiKey(key("b", 4)))
        #expect(try world.read(.apiKey(hash: [2])) == .apiKey(nil))
        try world.expectDone(.removeAPIKey(World.app, keyID: "a"))
        #expect(
            try world.ask(.administer(.removeAPIKey(World.app, keyID: "a"))).refusal == .notFound)
        try world.expectDone(.putAPIKey(key("c", 3)))
    }

    @Test func appsAreReadWithWhatBelongsToThem() throws {
        let key = IssuerKeyRecord(
            app: World.app, keyID: "i", publicKeyPEM: "p", addedAt: world.now)
        try world.expectDone(.putIssuerKey(key))
        for name in ["a", "z"] {
            try world.expectDone(.putApp(AppRecord(app: AppID(name), createdAt: world.now)))
        }
        world.limits.listRows = 1
        guard case .apps(let apps) = try world.read(.apps) else {
            Issue.record("no apps")
            return
        }
        #expect(apps.map(\.app.app.name) == ["a", "chess", "z"])
        #expect(apps.map(\.issuerKeys) == [[], [key], []])
        #expect(
            try world.ask(
                .administer(.putApp(AppRecord(app: AppID(""), createdAt: world.now)))
            ).refusal == .malformed)
        var foreign = key
        foreign.app = AppID("none")
        #expect(try world.ask(.administer(.putIssuerKey(foreign))).refusal == .notFound)
        try world.expectDone(.removeIssuerKey(World.app, keyID: "i"))
        #expect(try world.all(IssuerKeyRecord.self).isEmpty)
    }

    @Test func aRemovedDeviceIsOutAtOnce() throws {
        let opened = try world.login("anna", phone, token: 1)
        try world.expectDone(.removeDevice(World.app, UserID("anna"), phone))
        #expect(world.ended == [EndedSession(session: opened.session, code: .revoked)])
        #expect(try world.open(.sessionToken(hash: [1]), phone).refusal == .tokenInvalid)
        #expect(
            try world.ask(.administer(.removeDevice(World.app, UserID("anna"), phone))).refusal
                == .notFound)
        #expect(try world.read(.device(World.app, phone)) == .device(nil))
        // Its counters stay for 90 days.
        world.pass(90 * 86_400_000 - 1)
        #expect(try world.ask(.enforceRetention(rows: 10)) == .progressed(count: 0, more: false))
        world.pass(1)
        #expect(try world.ask(.enforceRetention(rows: 10)) == .progressed(count: 1, more: false))
        #expect(try world.all(DeviceRecord.self).isEmpty)
    }

    @Test func aRemovedAppLeavesNothing() throws {
        let session = try world.login("anna", phone, token: 1).session
        let id = try world.converse(["anna", "bert"])
        for number in 0..<5 {
            try world.publish(
                "x", to: id, idempotency: Idempotency(key: "\(number)", requestHash: [1]))
        }
        try world.expectDone(.removeApp(World.app))
        #expect(world.ended.map(\.session) == [session])
        #expect(try world.open(.sessionToken(hash: [1]), phone).refusal == .tokenInvalid)
        let app = World.classic(createdAt: world.now)
        #expect(try world.ask(.administer(.putApp(app))).refusal == .conflict)
        var turns = 0
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 2)) {
            turns += 1
            #expect(turns < 100)
        }
        #expect(turns > 2)
        try world.store.read { snapshot throws(StoreError) in
            for table in Schema.tables where table != MetaRecord.table {
                #expect(try snapshot.rows(table, Scan(limit: 1)).isEmpty, "\(table.name)")
            }
        }
        try world.expectDone(.putApp(app))
    }

    @Test("where several nodes share the store a removed app's name is free once all know of it")
    func removedBesideNodes() throws {
        let nodes = ["one", "two"].enumerated().map { number, name in
            NodeBeat(boot: BootID(high: 7, low: UInt64(number)), name: name)
        }
        for node in nodes { try world.ask(.beat(node)) }
        func retain() throws {
            var turns = 0
            while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 100)) {
                turns += 1
                try #require(turns < 100)
            }
        }
        let app = World.classic(createdAt: world.now)
        try world.login("anna", phone, token: 1)
        try world.expectDone(.removeApp(World.app))
        try retain()
        #expect(try world.ask(.administer(.putApp(app))).refusal == .conflict)
        // Another one is removed, and does not wait for it.
        let other = AppRecord(app: AppID("other"), createdAt: world.now)
        try world.expectDone(.putApp(other))
        try world.expectDone(.removeApp(other.app))
        try retain()
        world.pass(9_999)
        try retain()
        #expect(try world.ask(.administer(.putApp(app))).refusal == .conflict)
        world.pass(1)
        try world.expectDone(.putApp(app))
        func removals() throws -> Int {
            try world.all(MetaRecord.self).filter { $0.name.hasPrefix("removed_app/") }.count
        }
        #expect(try removals() == 1)
        try retain()
        #expect(try removals() == 0)
    }

    @Test func everyTableStatesHowLongItsRowsAreKept() throws {
        for table in Schema.tables { #expect(table.problem() == nil) }
        let kept = Schema.tables.filter { $0.retention == .untilDeleted }.map(\.name)
        #expect(!kept.contains("session_token"))
        #expect(!kept.contains("mutation"))
        #expect(!kept.contains("idempotency"))
    }

    @Test func oneRequestsConflictLeavesTheOthers() throws {
        let id = try world.converse(["anna"])
        let store = ConflictingStore(world.store, conflicts: 3)
        func request(_ text: String) -> StoreRequest {
            .publish(
                app: World.app,
                Publication(message: world.message0(text, to: id, world.fresh()), sender: ""),
                idempotency: nil)
        }
        let results = try store.commit([request("a"), request("b")])
        guard case .failure(.conflict) = results[0] else {
            Issue.record("no conflict")
            return
        }
        guard case .published(let record) = try results[1].get().answer else {
            Issue.record("not published")
            return
        }
        #expect(record.position == 1)
        #expect(try world.page("anna").entries.last?.word == "message 1")
    }
}
