import Model
import Testing
import Wire

@testable import Feed

/// What cannot be read of one change on its way keeps no other from its users: it is set aside,
/// and whoever runs the server is told.
struct UnreadableJobTests {
    private let world: World

    enum Damage: CaseIterable {
        case noConversation, noMessage, unknownChange, unreadableMessage
    }

    init() throws {
        var limits = RuleLimits()
        limits.directRecipients = 1
        limits.fanOutStep = 8
        world = try World(limits: limits)
    }

    /// - Returns: what was passed over.
    private func finish() throws -> [UnreadableRow] {
        var passed: [UnreadableRow] = []
        for _ in 0..<200 {
            let answer = try world.ask(.continueFanOut(recipients: 50))
            passed += world.unreadable
            guard case .progressed(_, more: true) = answer else { return passed }
        }
        Issue.record("the fan-out does not come to an end")
        return passed
    }

    private func damage(
        _ damage: Damage, _ conversation: ConversationID, _ message: MessageID
    ) throws {
        let room: [ColumnValue] = [.app(World.app), .identifier(conversation)]
        let key: [ColumnValue] = [.app(World.app), .identifier(message)]
        try world.tamper { transaction throws(StoreError) in
            switch damage {
            case .noConversation: try transaction.delete(ConversationRecord.self, room)
            case .noMessage: try transaction.delete(MessageRecord.self, key)
            case .unknownChange:
                var row = try transaction.rows(
                    FanOutRecord.table, Scan(prefix: room, limit: 1))[0]
                row[3] = .integer(99)
                try transaction.put(FanOutRecord.table, row)
            case .unreadableMessage:
                var row = try transaction.row(MessageRecord.table, key: key, lock: .none)!
                row[3] = .integer(-1)
                try transaction.put(MessageRecord.table, row)
            }
        }
    }

    @Test(arguments: Damage.allCases)
    func oneJobThatCannotBeReadStopsNoOther(kind: Damage) throws {
        let broken = try world.converse(["a", "b"])
        let sound = try world.converse(["a", "c"])
        #expect(try finish().isEmpty)
        let lost = try world.publish("lost", to: broken, from: "a").message
        if kind != .noConversation { try world.publish("next", to: broken, from: "a") }
        try world.publish("x", to: sound, from: "a")
        try damage(kind, broken, lost)
        let passed = try finish()
        #expect(try world.texts("c").last == "message 1 x")
        #expect(passed.map(\.conversation) == [broken])
        #expect(passed.allSatisfy { $0.app == World.app && !$0.detail.isEmpty }, "\(passed)")
        #expect(try world.all(FanOutRecord.self).isEmpty)
        if kind != .noConversation {
            #expect(try world.texts("b").last == "message 2 next")
        }
    }

    /// Something of one recipient that cannot be read keeps the message from nobody else.
    @Test func oneRecipientThatCannotBeServedStopsNoOther() throws {
        let users = (10..<40).map { "u\($0)" }
        let id = try world.converse(users + ["sender"])
        #expect(try finish().isEmpty)
        try world.tamper { transaction throws(StoreError) in
            for user in ["u13", "u39"] {
                try transaction.put(
                    ReadMarkRecord(
                        app: World.app, user: UserID(user), conversation: id, through: 0,
                        ranges: [1], version: 1))
                let key: [ColumnValue] = [.app(World.app), .identifier(id), .text(user)]
                var member = try transaction.record(ParticipantRecord.self, key)!
                member.readThrough = 1_000
                try transaction.put(member)
            }
        }
        try world.publish("x", to: id, from: "sender")
        let passed = try finish()
        #expect(passed.map(\.user.name) == ["u13", "u39"])
        #expect(passed.map(\.conversation) == [id, id])
        for user in users where user != "u13" && user != "u39" {
            #expect(try world.texts(user).last == "message 1 x", "\(user)")
        }
        #expect(try world.all(FanOutRecord.self).isEmpty)
    }

    /// A membership that cannot be read is passed over as its user is.
    @Test func aMembershipThatCannotBeReadStopsNoOther() throws {
        let id = try world.converse(["a", "b", "c", "d"])
        #expect(try finish().isEmpty)
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(id), .text("b")]
            var row = try transaction.row(ParticipantRecord.table, key: key, lock: .none)!
            row[3] = .integer(-1)
            try transaction.put(ParticipantRecord.table, row)
        }
        try world.publish("x", to: id)
        #expect(try finish().map(\.user.name) == ["b"])
        for user in ["a", "c", "d"] { #expect(try world.texts(user).last == "message 1 x") }
    }

    /// One who is passed over in the midst of being told who takes part leaves no place behind: the
    /// next is told of the conversation from its beginning.
    @Test func oneWhoIsPassedOverLeavesNoPlace() throws {
        world.limits.fanOutStep = 1
        let users = ["a", "b", "c", "d"]
        _ = try world.converse(users)
        func job() throws -> FanOutRecord? { try world.all(FanOutRecord.self).first }
        while let next = try job(), next.cursor != "a" || next.member != "b" {
            _ = try world.ask(.continueFanOut(recipients: 1))
        }
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .text("b")]
            var row = try transaction.row(UserRecord.table, key: key, lock: .none)!
            row[2] = .integer(-1)
            try transaction.put(UserRecord.table, row)
        }
        #expect(try finish().map(\.user.name) == ["b"])
        let opening = ["conversation"] + users.map { "participant \($0)" }
        for user in ["a", "c", "d"] { #expect(try world.texts(user) == opening, "\(user)") }
    }

    /// An app that is on its way out leaves jobs behind its conversations: that is no damage.
    @Test func whatAnAppLeavesBehindIsNoDamage() throws {
        let id = try world.converse(["a", "b"])
        try world.tamper { transaction throws(StoreError) in
            try transaction.delete(AppRecord.self, [.app(World.app)])
            try transaction.delete(
                ConversationRecord.self, [.app(World.app), .identifier(id)])
        }
        #expect(try finish().isEmpty)
        #expect(try world.all(FanOutRecord.self).isEmpty)
    }

    /// One listed user whose row cannot be read keeps an announcement from nobody else.
    @Test func oneListedUserStopsNoAnnouncement() throws {
        world.limits.directRecipients = 3
        let users = ["a", "b", "c", "d", "e"]
        let own = try world.converse(["b"])
        #expect(try finish().isEmpty)
        let announcement = Announcement(
            announcement: world.fresh(), users: users,
            parts: [Part(mimeType: "text/plain", content: [65])])
        #expect(
            try world.ask(.announce(app: World.app, announcement, idempotency: nil)).refusal
                == nil)
        try world.tamper { transaction throws(StoreError) in
            var row = try transaction.row(
                UserRecord.table, key: [.app(World.app), .text("b")], lock: .none)!
            row[2] = .integer(-1)
            try transaction.put(UserRecord.table, row)
        }
        let passed = try finish()
        #expect(passed.map(\.user.name) == ["b"])
        for user in ["a", "c", "d", "e"] {
            #expect(try world.texts(user) == ["announcement"], "\(user)")
        }
        #expect(try world.all(AnnouncementBatchRecord.self).isEmpty)
        #expect(try world.all(ConversationRecord.self).map(\.conversation) == [own])
    }

    // MARK: a step that is passed over behind others

    /// What the steps before did stands, and is told.
    @Test func whatIsDoneIsToldThoughALaterStepIsPassedOver() throws {
        let first = try world.converse(["a", "b"])
        try world.converse(["c", "d"])
        world.engine = ConflictingStore(world.store, conflicts: 10_000, after: 1)
        try world.ask(.continueFanOut(recipients: 50))
        #expect(try world.texts("a").first == "conversation")
        #expect(world.changes.map(\.user.name).sorted() == ["a", "b"])
        #expect(try world.all(FanOutRecord.self).allSatisfy { $0.conversation != first })
        world.engine = world.store
        #expect(try finish().isEmpty)
        #expect(try world.texts("c").first == "conversation")
    }
}
