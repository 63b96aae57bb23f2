import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What requests cost on a store that is a round trip away, with and without a plan of what they
/// read. Beginning and committing are not counted.
@Suite struct DistantCostTests {
    /// Carries the same story out, and tells of each of its steps how often it fetched, and what
    /// was fetched late.
    private func rounds(
        _ plan: ReadPlan,
        _ story: (World, (String, () throws -> Void) throws -> Void) throws -> Void
    ) throws -> [(step: String, rounds: Int, late: [String])] {
        let world = try World()
        world.twin.plan = plan
        var found: [(step: String, rounds: Int, late: [String])] = []
        try story(world) { name, act in
            var rounds = 0
            var late: [String] = []
            world.twin.every = 1
            world.twin.onFetch = { reads in
                rounds += 1
                if rounds > 3 { late += reads.prefix(8).map { "\(rounds): \($0.summary)" } }
            }
            try act()
            world.twin.every = .max
            found.append((name, rounds, late))
        }
        return found
    }

    private func expect(
        _ expected: [String: (planned: Int, alone: Int)],
        _ story: (World, (String, () throws -> Void) throws -> Void) throws -> Void
    ) throws {
        let planned = try rounds(.expected, story)
        let alone = try rounds(.none, story)
        #expect(planned.count == expected.count)
        for (with, without) in zip(planned, alone) {
            let cost = expected[with.step]
            #expect(
                with.rounds == cost?.planned, "\(with.step): \(with.late.joined(separator: ", "))")
            #expect(without.rounds == cost?.alone, "\(with.step), alone")
        }
    }

    private static let phone = DeviceID(high: 1, low: 1)
    private static let push = PushRegistration(
        token: [1, 2, 3], environment: .production, topic: "example.chess")

    private func putCredential(_ world: World) throws {
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: World.app, environment: .production, name: "plain", keyID: "K",
                    team: "T", privateKeyPEM: "p", topics: "example.chess", host: "h", port: 443,
                    changedAt: world.now)))
    }

    @Test("OPEN, a publish to one, ACK and receipts")
    func oneToOne() throws {
        try expect([
            "OPEN": (1, 22), "publish to one who is connected": (3, 12), "ACK": (1, 5),
            "turn of receipts": (6, 17), "ACK that reads": (4, 18), "send": (3, 18),
            "end of a session": (1, 3), "publish to one who is away": (3, 13),
            "OPEN of one who comes back": (1, 21),
        ]) { world, step in
            try putCredential(world)
            let anna = try world.login("anna", DeviceID(high: 1, low: 2))
            let conversation = try world.converse(["anna", "ben"])
            try step("OPEN") {
                try world.login("ben", Self.phone, push: Self.push, sync: SyncFrame())
            }
            let ben = try world.login("ben", Self.phone, push: Self.push)
            try step("publish to one who is connected") {
                try world.publish("hello", to: conversation, from: "anna")
            }
            let head = try world.page("ben").to
            try step("ACK") {
                try world.ask(
                    .acknowledge(
                        Acknowledge(session: ben.session, applied: head, completesSync: true)))
            }
            world.pass(5000)
            try step("turn of receipts") { try world.ask(.coalesceReceipts(users: 16)) }
            try world.publish("again", to: conversation, from: "anna")
            let later = try world.page("ben").to
            try step("ACK that reads") {
                let read = ReadReceipt(conversation: conversation, through: 2)
                try world.ask(
                    .acknowledge(
                        Acknowledge(
                            session: ben.session, applied: head,
                            ranges: [InclusiveRange(first: later, last: later)], reads: [read],
                            completesSync: false)))
            }
            try step("send") {
                _ = try world.mutate(
                    anna.session, 1,
                    .sendMessage(world.message0("from anna", to: conversation, world.fresh())))
            }
            try step("end of a session") {
                try world.ask(
                    .endSession(
                        EndSession(session: ben.session, applied: head, expectedWithin: 0)))
            }
            world.pass(1000)
            try step("publish to one who is away") {
                try world.publish("come", to: conversation, from: "anna")
            }
            try step("OPEN of one who comes back") {
                try world.login("ben", Self.phone, push: Self.push, sync: SyncFrame())
            }
        }
    }

    @Test("a publish to many, at once and as a job")
    func many() throws {
        try expect([
            "publish to 100": (3, 307), "publish to 300": (2, 6), "turn of fan-out": (4, 210),
        ]) { world, step in
            let users = (0..<300).map { "user\(1000 + $0)" }
            let some = try world.converse(Array(users[..<100]))
            let all = try world.converse(Array(users[..<250]))
            _ = try world.add(Array(users[250...]), to: all)
            while case .progressed(_, true) = try world.ask(.continueFanOut(recipients: 512)) {}
            try step("publish to 100") { try world.publish("all", to: some, from: users[0]) }
            try step("publish to 300") { try world.publish("all", to: all, from: users[0]) }
            try step("turn of fan-out") { try world.ask(.continueFanOut(recipients: 64)) }
        }
    }

    /// A hundred publishes to twenty conversations of one sender: each depends on those before.
    private func hundredPublishes(_ world: World) throws -> [StoreRequest] {
        try world.login("anna", DeviceID(high: 1, low: 2))
        let conversations = try (0..<20).map { try world.converse(["anna", "user\($0)"]) }
        return conversations.flatMap { conversation in
            (0..<5).map { number in
                StoreRequest.publish(
                    app: World.app,
                    Publication(
                        message: world.message0(
                            "\(number)", to: conversation, world.fresh()), sender: "anna"),
                    idempotency: nil)
            }
        }
    }

    /// Expects what nobody reads, and reads before it is locked what is.
    private static let wrong = ReadPlan(rounds: 3) { expected, hints in
        guard case .request(.change(let app, .publish(let publication), _)) = expected,
            let id = publication.message.conversation
        else { return }
        let nobody: [ColumnValue] = [.app(app), .text("nobody")]
        if hints.record(ConversationRecord.self, [.app(app), .identifier(id)]) == nil {
            return
        }
        hints.ask(UserRecord.self, nobody, lock: .wait)
        for user in hints.records(UserRecord.self, Scan(prefix: [.app(app)], limit: 50)) {
            hints.ask(EntryRecord.self, Scan(prefix: user.rowKey, limit: 3))
        }
    }

    @Test("the requests of one group share their rounds, whatever is expected of them")
    func group() throws {
        let world = try World()
        let requests = try hundredPublishes(world)
        let near = world.store.copy()
        let expected = try near.commit(requests)
        #expect(expected.allSatisfy { (try? $0.get()) != nil })
        for (plan, rounds) in [(ReadPlan.expected, 2), (.none, 19), (Self.wrong, 20)] {
            let copy = world.store.copy()
            let engine = DistantEngine(copy, lockRanks: Schema.lockRanks)
            var group = GroupCommit(requests)
            group.plan = plan
            let results = try engine.commit(group) { _ in }
            #expect(results == expected)
            for table in Schema.tables {
                #expect(try rows(table, copy) == rows(table, near), "\(table.name)")
            }
            #expect(engine.spent.rounds == rounds)
        }
    }

    private func rows(_ table: Table, _ store: MemoryStore) throws -> [[ColumnValue]] {
        var found: [[ColumnValue]] = []
        try store.read { snapshot throws(StoreError) in
            found = try snapshot.rows(table, Scan(limit: .max))
        }
        return found
    }
}

extension Read {
    fileprivate var summary: String {
        switch self {
        case .row(let table, let key, let lock): "\(table.name) \(key) \(lock)"
        case .rows(let table, let scan):
            "\(table.name) \(scan.index ?? "") \(scan.prefix) \(scan.after ?? []) \(scan.limit)"
        }
    }
}
