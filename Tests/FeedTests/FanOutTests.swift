import Feed
import Model
import Testing
import Wire

struct FanOutTests {
    let world: World

    init() throws {
        var limits = RuleLimits()
        limits.directRecipients = 3
        limits.fanOutStep = 2
        world = try World(limits: limits)
    }

    private func words(_ user: String) throws -> [String] {
        try world.page(user).entries.map(\.word)
    }

    @Test func aChangeForManyIsAJob() throws {
        let users = ["a", "b", "c", "d", "e"]
        let id = try world.converse(users)
        #expect(world.changes.isEmpty)
        #expect(try world.all(FanOutRecord.self).count == 1)
        try world.finishFanOut()
        let opening = ["conversation"] + users.map { "participant \($0)" }
        for user in users { #expect(try words(user) == opening) }
        try world.publish("x", to: id, from: "c")
        // The sender's own entry waits its turn like everyone's.
        #expect(try words("c") == opening)
        try world.finishFanOut()
        for user in users { #expect(try words(user) == opening + ["message 1"]) }
        #expect(try world.all(FanOutRecord.self).isEmpty)
    }

    @Test("who is served while a removed app's rows go still has a row, and no feed begins anew")
    func removedWhileServed() throws {
        let room = try world.converse(["a", "b", "c", "d", "e"])
        try world.finishFanOut()
        for number in 0..<20 { try world.publish("\(number)", to: room, from: "a") }
        try world.expectDone(.removeApp(World.app))
        let users = try world.all(UserRecord.self).count
        var turns = 0
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 2)) {
            turns += 1
            try #require(turns < 300)
            _ = try world.ask(.continueFanOut(recipients: 2))
            let isServed =
                try !world.all(FanOutRecord.self).isEmpty || !world.all(EntryRecord.self).isEmpty
            #expect(try !isServed || world.all(UserRecord.self).count == users)
        }
        #expect(turns > 10)
        #expect(try world.all(UserRecord.self).isEmpty)
    }

    @Test("nobody comes into an app that is being removed, whatever still waits of it")
    func nobodyNew() throws {
        let room = try world.converse(["a", "b", "c", "d", "e"])
        try world.finishFanOut()
        try world.publish("1", to: room, from: "a")
        try world.expectDone(.removeApp(World.app))
        // As an earlier version left it: users went first.
        try world.tamper { transaction throws(StoreError) in
            for table in [UserRecord.table, EntryRecord.table] {
                for row in try transaction.rows(table, Scan(limit: 999)) {
                    try transaction.delete(table, key: Array(row.prefix(table.keyCount)))
                }
            }
        }
        #expect(try world.all(FanOutRecord.self).count == 1)
        _ = try world.ask(.continueFanOut(recipients: 100))
        #expect(try world.all(UserRecord.self).isEmpty)
        #expect(try world.all(EntryRecord.self).isEmpty)
    }

    @Test func laterChangesQueueBehindAJob() throws {
        let id = try world.converse(["a", "b", "c"])
        // The fourth makes it a job; it and what follows keep their order.
        #expect(try world.add(["d"], to: id).refusal == nil)
        try world.publish("x", to: id)
        #expect(try world.add(["e"], to: id).refusal == nil)
        try world.publish("y", to: id)
        #expect(try world.all(FanOutRecord.self).map(\.revision) == [2, 3, 4, 5])
        try world.finishFanOut()
        #expect(
            try words("a").suffix(4) == [
                "participant d", "message 1", "participant e", "message 2",
            ])
        #expect(
            try words("d") == [
                "conversation", "participant a", "participant b", "participant c",
                "participant d", "message 1", "participant e", "message 2",
            ])
        #expect(
            try words("e") == [
                "conversation", "participant a", "participant b", "participant c",
                "participant d", "participant e", "message 2",
            ])
    }

    @Test func aJobResumesWhereItStopped() throws {
        world.limits.fanOutStep = 1
        let users = (0..<6).map { "u\($0)" }
        let id = try world.converse(users)
        try world.publish("x", to: id)
        var steps = 0
        while case .progressed(_, true) = try world.ask(.continueFanOut(recipients: 1)) {
            steps += 1
            #expect(steps < 200)
        }
        #expect(steps > 40)
        for user in users { #expect(try words(user).count == 8) }
        // Nothing was written twice.
        for user in users { #expect(try world.page(user).head == 8) }
    }

    @Test func appsAndConversationsTakeTurns() throws {
        let other = AppID("go")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        let users = (0..<8).map { "u\($0)" }
        for _ in 0..<3 { try world.converse(users) }
        #expect(
            try world.ask(
                .createConversation(
                    app: other,
                    CreateConversation(conversation: world.fresh(), participants: users),
                    idempotency: nil)
            ).refusal == nil)
        // One step each: the small app's job is served as often as the big one's three together.
        var served: [AppID: Int] = [:]
        for _ in 0..<20 {
            let before = try world.all(FanOutRecord.self)
            world.pass(1)
            try world.ask(.continueFanOut(recipients: 1))
            let after = try world.all(FanOutRecord.self)
            for job in before where !after.contains(job) { served[job.app, default: 0] += 1 }
        }
        #expect(served == [World.app: 10, other: 10])
        let members = try world.all(FanOutRecord.self).filter { $0.app == World.app }
            .map(\.member)
        #expect(members == ["u3", "u2", "u2"])
    }

    private func conversation(_ id: ConversationID) throws -> ConversationRecord {
        try #require(
            try world.all(ConversationRecord.self).first { $0.conversation == id })
    }

    @Test("what is in all feeds at once settles the conversation, what becomes a job does not")
    func settled() throws {
        let id = try world.converse(["a", "b", "c"])
        try world.publish("x", to: id)
        #expect(try conversation(id).settledRevision == conversation(id).revision)
        // As a program does that knows nothing of it: the change is a job, the mark stays behind.
        world.limits.directRecipients = 0
        try world.publish("y", to: id)
        world.limits.directRecipients = 3
        let marked = try conversation(id)
        #expect(marked.settledRevision == marked.revision - 1)
        try world.publish("z", to: id)
        #expect(try world.all(FanOutRecord.self).map(\.revision) == [3, 4])
        try world.finishFanOut()
        #expect(try words("c").suffix(3) == ["message 1", "message 2", "message 3"])
        // Jobs that are done write nothing here: the next change finds that none waits.
        #expect(try conversation(id).settledRevision == 2)
        try world.publish("!", to: id)
        #expect(try conversation(id).settledRevision == 5)
        #expect(try world.all(FanOutRecord.self).isEmpty)
    }

    @Test("a change that goes beyond its request holds up the next one")
    func begun() throws {
        let id = try world.converse(["a", "b", "c"])
        world.limits.directEntries = 2
        try world.publish("x", to: id)
        #expect(try conversation(id).settledRevision == nil)
        world.limits.directEntries = 1_000
        try world.publish("y", to: id)
        #expect(try world.all(FanOutRecord.self).map(\.revision) == [2, 3])
        try world.finishFanOut()
        for user in ["a", "b", "c"] {
            #expect(try words(user).suffix(2) == ["message 1", "message 2"])
        }
    }

    /// P1: who took part when it was sent gets it, however many have left since.
    @Test func manyWhoLeftSinceGetWhatCameBefore() throws {
        let users = (100..<180).map { "u\($0)" }
        let id = try world.converse(users + ["z"])
        try world.finishFanOut()
        let revision = try conversation(id).revision
        try world.publish("x", to: id, from: "z")
        for user in users { try world.remove([user], from: id) }
        #expect(try world.all(FanOutRecord.self).map(\.revision).first == revision + 1)
        try world.finishFanOut()
        for user in users {
            #expect(try words(user).contains("message 1"), "\(user)")
        }
    }

    @Test func theQueueOfAConversationIsBounded() throws {
        world.limits.fanOutQueue = 2
        let id = try world.converse(["a", "b", "c", "d"])
        try world.publish("x", to: id)
        try world.publish("y", to: id)
        let refused = try world.ask(
            .publish(
                app: World.app,
                Publication(message: world.message0("z", to: id, world.fresh()), sender: ""),
                idempotency: nil))
        #expect(refused.refusal == .rateLimited)
        try world.finishFanOut()
        #expect(try world.publish("z", to: id).position == 3)
    }
}
