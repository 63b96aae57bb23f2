import Feed
import Model
import Testing
import Wake
import Wire

/// SYN-27 where much is unread: a change of one message looks at that one.
struct UnreadChangeTests {
    private let world: World
    private let room: ConversationID

    init() throws {
        world = try World()
        room = try world.converse(["anna", "bob"])
    }

    private func count() throws -> UInt64 {
        try world.page("bob").unread
    }

    @Test("a deleted message takes one from the number, and no other is looked at")
    func deleted() throws {
        var messages: [MessageID] = []
        for number in 0..<600 {
            messages.append(try world.publish("\(number)", to: room, from: "anna").message)
        }
        #expect(try count() == 600)
        try world.delete(messages[300])
        #expect(world.rows.total < 80, "\(world.rows)")
        #expect(try count() == 599)
        // What was read already was not counted.
        let bob = try world.login("bob", DeviceID(high: 5, low: 1)).session
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bob, applied: 0,
                    reads: [
                        ReadReceipt(
                            conversation: room, through: 10,
                            ranges: [InclusiveRange(first: 21, last: 30)])
                    ], completesSync: false)))
        let after = try count()
        #expect(after == 579)
        for place in [5, 9, 25] { try world.delete(messages[place]) }
        #expect(try count() == 579)
        for place in [10, 19, 30, 599] { try world.delete(messages[place]) }
        #expect(try count() == 575)
    }

    @Test("above what the number shows it stays true however many go")
    func aboveTheMost() throws {
        var messages: [MessageID] = []
        for number in 0..<1_002 {
            messages.append(try world.publish("\(number)", to: room, from: "anna").message)
        }
        for place in 0..<3 {
            #expect(try count() == 999)
            try world.delete(messages[place])
        }
        #expect(try count() == 999)
        try world.delete(messages[3])
        #expect(try count() == 998)
        try world.delete(messages[4])
        #expect(world.rows.total < 80, "\(world.rows)")
        #expect(try count() == 997)
    }

    @Test("a row that says zero, as only a damaged file has it, is counted anew")
    func damagedZero() throws {
        let messages = try (0..<3).map {
            try world.publish("\($0)", to: room, from: "anna").message
        }
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(room), .text("bob")]
            var member = try transaction.record(ParticipantRecord.self, key)!
            member.unread = 0
            try transaction.put(member)
        }
        try world.delete(messages[1])
        #expect(try count() == 2)
    }
}
