import Model
import Testing
import Wire

@testable import Feed

/// What a recipient costs the writer, counted in rows.
struct FanOutCostTests {
    private let world: World

    init() throws { world = try World() }

    private func join(
        _ conversation: ConversationID, _ names: [String], left: UInt64? = nil
    ) throws {
        try world.tamper { transaction throws(StoreError) in
            for name in names {
                var member = ParticipantRecord(
                    app: World.app, conversation: conversation, user: UserID(name),
                    joinedPosition: 0, joinedRevision: 0, version: 1)
                member.leftRevision = left
                try transaction.put(member)
            }
            guard left == nil else { return }
            let key: [ColumnValue] = [.app(World.app), .identifier(conversation)]
            var row = try transaction.record(ConversationRecord.self, key)!
            row.participants += UInt64(names.count)
            try transaction.put(row)
        }
    }

    @Test("a recipient costs the own row, the membership and the devices; three rows are written")
    func recipients() throws {
        let id = try world.converse(["anna", "bob"])
        try world.publish("0", to: id, from: "anna")
        let few = world.rows
        let names = (0..<100).map { "u\($0)" }
        try join(id, names)
        try world.publish("1", to: id, from: "anna")
        // The membership is found by its conversation, and once more with the user locked.
        #expect(world.rows.read - few.read <= 4 * names.count, "\(few) \(world.rows)")
        #expect(world.rows.written - few.written == 3 * names.count, "\(few) \(world.rows)")
        for name in ["bob", "u0", "u99"] {
            #expect(try world.texts(name).last == "message 2 1")
            #expect(try world.page(name).unread == (name == "bob" ? 2 : 1))
        }
    }

    @Test("those who left years ago cost nothing")
    func leavers() throws {
        let id = try world.converse(["anna", "zoe"])
        try world.publish("0", to: id, from: "anna")
        let before = world.rows
        try join(id, (0..<1_000).map { "left\($0)" }, left: 2)
        try world.publish("1", to: id, from: "anna")
        #expect(world.rows == before, "\(before) \(world.rows)")
        #expect(try world.page("zoe").unread == 2)
        // The same of a change that is on its way, of metadata, and of who joins and leaves.
        try world.add(["bob"], to: id)
        #expect(world.rows.total < 100, "\(world.rows)")
        try world.remove(["bob"], from: id)
        #expect(world.rows.total < 100, "\(world.rows)")
        #expect(try world.texts("zoe").last == "removed bob")
    }

    @Test("of those who left while a change was on its way each gets it once, and in turn")
    func leftMeanwhile() throws {
        var limits = RuleLimits()
        limits.directRecipients = 1
        limits.fanOutStep = 7
        let world = try World(limits: limits)
        let names = (100..<300).map { "u\($0)" }
        let id = try world.converse(names)
        try world.finishFanOut()
        try world.publish("x", to: id)
        // Some have it when others go: few, then many.
        try world.ask(.continueFanOut(recipients: 20))
        try world.remove([names[3], names[150]], from: id)
        try world.ask(.continueFanOut(recipients: 20))
        try world.remove(Array(names[60..<140]), from: id)
        try world.finishFanOut()
        for name in names {
            #expect(try world.texts(name).count { $0 == "message 1 x" } == 1, "\(name)")
        }
        #expect(try world.texts(names[150]).last == "removed \(names[150])")
        #expect(try world.texts(names[100]).last == "removed \(names[100])")
    }

    @Test("a block is found however many block the sender")
    func blocks() throws {
        let names = (0..<70).map { "u\($0)" }
        let id = try world.converse(names + ["sender"])
        try world.finishFanOut()
        for (number, name) in names.enumerated() where number % 3 > 0 || number < 3 {
            if number == 61 {
                try world.publish("few", to: id, from: "sender")
                try world.finishFanOut()
            }
            let session = try world.login(name, DeviceID(high: 7, low: UInt64(number))).session
            _ = try world.mutate(
                session, 1, .blockUser(BlockUser(user: "sender", blocked: true)))
            if number == 0 {
                _ = try world.mutate(
                    session, 2, .blockUser(BlockUser(user: "sender", blocked: false)))
            }
        }
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<64 as Range<UInt64> {
                try transaction.put(
                    BlockRecord(
                        app: World.app, user: UserID("other\(number)"), other: UserID("sender"),
                        isBlocked: true, version: 1))
            }
        }
        try world.publish("many", to: id, from: "sender")
        try world.finishFanOut()
        for (number, name) in names.enumerated() {
            let got = try world.texts(name).filter { $0.hasPrefix("message") }
            let isBlocking = number > 0 && (number % 3 > 0 || number < 3)
            let expected = isBlocking ? (number < 61 ? [] : ["message 1 few"]) : nil
            #expect(got == expected ?? ["message 1 few", "message 2 many"], "\(name)")
        }
    }

    @Test("whether a sleeping device has a session need not be looked up")
    func asleep() throws {
        let pushes = try Pushes()
        let world = pushes.world
        var costs: [RowCount] = []
        for (user, number) in [("bob", 1), ("carl", 2)] as [(String, UInt64)] {
            let phone = DeviceID(high: 8, low: number)
            let id = try world.converse(["anna", user])
            let session = try pushes.open(user, phone).session
            try world.publish("seen", to: id, from: "anna")
            #expect(try pushes.run(70_000) == [], "it is connected")
            try pushes.acknowledge(session, try world.head(user))
            try pushes.end(session, applied: try world.head(user), within: 0)
            try pushes.run(1_000)
            if number == 2 {
                try world.tamper { transaction throws(StoreError) in
                    let key: [ColumnValue] = [.app(World.app), .text(user), .identifier(phone)]
                    var device = try transaction.record(DeviceRecord.self, key)!
                    #expect(device.withoutSessionSince != nil)
                    device.withoutSessionSince = nil
                    try transaction.put(device)
                }
            }
            try world.publish("x", to: id, from: "anna")
            costs.append(world.rows)
        }
        #expect(costs[0].read + 2 == costs[1].read, "\(costs)")
        #expect(costs[0].written == costs[1].written)
    }
}
