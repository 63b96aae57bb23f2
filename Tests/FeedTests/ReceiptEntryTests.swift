import Feed
import MemoryStore
import Model
import Testing
import Wire

/// What receipt entries say, and to whom (SYN-2, MSG-21, HIS-17).
struct ReceiptEntryTests {
    let world: World
    let conversation: ConversationID
    private var sessions: [String: SessionKey] = [:]

    init() throws {
        world = try World()
        conversation = try world.converse(["anna", "bert", "carl"])
        for (number, user) in ["anna", "bert", "carl", "dora"].enumerated() {
            let device = DeviceID(high: 5, low: UInt64(number))
            sessions[user] = try world.login(user, device).session
        }
    }

    private func say(_ user: String) throws {
        try world.publish("x", to: conversation, from: user)
    }

    /// The user's device has stored everything and its user has read what is named.
    private func follow(
        _ user: String, readThrough through: UInt64? = nil, alone: InclusiveRange? = nil
    ) throws {
        let session = try #require(sessions[user])
        let isRead = through != nil || alone != nil
        let receipt = ReadReceipt(
            conversation: conversation, through: through ?? 0, ranges: alone.map { [$0] } ?? [])
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: try world.head(user),
                    reads: isRead ? [receipt] : [], completesSync: true)))
        world.pass(2_000)
        try world.ask(.coalesceReceipts(users: 100))
    }

    private func told(_ user: String) throws -> [String] {
        try world.page(user).entries.map(\.word).filter { $0.hasPrefix("receipt") }
    }

    private func snapshot(_ user: String) throws -> [String] {
        guard
            case .history(.snapshotPage(let page)) = try world.read(
                .history(
                    .snapshot(World.app, UserID(user), SnapshotFrame(), bytes: 1 << 20)))
        else { throw Unexpected(answer: .done) }
        return page.conversations.flatMap(\.entries).map(\.word)
            .filter { $0.hasPrefix("receipt") }
    }

    private func progress(_ user: String) throws -> [UInt64] {
        guard
            case .backend(.receipts(let all, next: _)) = try world.read(
                .backend(World.app, .receipts(conversation, after: nil, limit: 100)))
        else { throw Unexpected(answer: .done) }
        return all.filter { $0.user.name == user }.flatMap { [$0.delivered, $0.read] }
    }

    @Test("an entry says under its number what it said when it came")
    func isNotRewritten() throws {
        try say("anna")
        try follow("bert", readThrough: 1)
        let entries = try world.page("anna").entries
        #expect(try told("anna") == ["receipt bert 1 1"])
        // Only carl is told of what comes now.
        try say("carl")
        try follow("bert", readThrough: 2)
        #expect(try told("carl") == ["receipt bert 2 2"])
        let later = try world.page("anna").entries
        #expect(later.prefix(entries.count) == entries[...])
        #expect(try snapshot("anna") == ["receipt bert 1 1"])
        // A new state comes under a new number.
        try say("anna")
        try follow("bert")
        let newest = try #require(
            try world.page("anna", after: entries.last?.seq ?? 0).entries.last)
        #expect(newest.word == "receipt bert 3 2")
    }

    @Test("a snapshot holds the receipts the user was told of, and no others")
    func snapshotIsTheFeed() throws {
        try say("anna")
        try say("bert")
        for user in ["anna", "bert", "carl"] { try follow(user, readThrough: 2) }
        // Carl wrote nothing: nobody's receipts are for him.
        #expect(try snapshot("carl") == [])
        #expect(try Set(snapshot("anna")) == Set(told("anna")))
        #expect(try snapshot("bert").sorted() == ["receipt anna 2 2", "receipt carl 2 2"])
        // Who left stays where the feed has it.
        try world.remove(["carl"], from: conversation)
        #expect(try snapshot("bert").sorted() == ["receipt anna 2 2", "receipt carl 2 2"])
        #expect(try Set(snapshot("bert")) == Set(told("bert")))
    }

    @Test("who joined late has received and read nothing of what came before")
    func lateJoiner() throws {
        try say("anna")
        try say("anna")
        try say("bert")
        _ = try world.add(["dora"], to: conversation)
        #expect(try progress("dora") == [0, 0])
        try follow("dora")
        #expect(try told("anna") == [])
        #expect(try progress("dora") == [0, 0])
        try say("carl")
        try follow("dora")
        #expect(try progress("dora") == [4, 0])
        // Read alone, with nothing she sees before it: it is read up to there.
        try follow("dora", alone: InclusiveRange(first: 4, last: 4))
        #expect(try progress("dora") == [4, 4])
        #expect(try told("carl") == ["receipt dora 4 4"])
        #expect(try told("anna") == [] && told("bert") == [])
        #expect(try snapshot("carl") == ["receipt dora 4 4"])
    }

    @Test("a peek of who joined late has no gap before the first message there is")
    func lateJoinersPeek() throws {
        try say("anna")
        _ = try world.add(["dora"], to: conversation)
        try say("carl")
        let device = try #require(sessions["dora"]?.device)
        let peek = try world.login("dora", device, role: .extension).session
        let head = try world.head("dora")
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: peek, applied: 0,
                    ranges: [InclusiveRange(first: head, last: head)], completesSync: false)))
        world.pass(2_000)
        try world.ask(.coalesceReceipts(users: 100))
        #expect(try progress("dora") == [2, 0])
        #expect(try told("carl") == ["receipt dora 2 0"])
    }

    @Test("a clock that was ahead for an hour holds no receipt up")
    func clockSetBack() throws {
        try say("anna")
        world.store.clock = world.now + 3_600_000
        try follow("bert")
        try say("anna")
        // Due two seconds after that hour, as the clock says then.
        let session = try #require(sessions["bert"])
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: try world.head("bert"), completesSync: true)))
        world.store.clock = Timestamp(milliseconds: world.now.milliseconds - 3_600_000)
        try world.ask(.coalesceReceipts(users: 100))
        #expect(try told("anna") == ["receipt bert 2 0"])
        // Nor does the time of the last turn, where none is set.
        var turn = try #require(
            try world.all(ReceiptDueRecord.self).first { $0.user.name == "bert" })
        turn.due = nil
        turn.lastAt = world.now + 3_600_000
        try world.tamper { transaction throws(StoreError) in
            try transaction.put(ReceiptDueRecord.table, turn.row)
        }
        try say("anna")
        try follow("bert")
        #expect(try told("anna") == ["receipt bert 3 0"])
    }
}
