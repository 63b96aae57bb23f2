import MemoryStore
import Model
import Testing
import Wire
import WorkingSet

@testable import Feed

struct ReceiptTests {
    let world: World
    let anna: SessionKey
    let bert: SessionKey
    let conversation: ConversationID

    init() throws {
        world = try World()
        anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
        conversation = try world.converse(["anna", "bert", "carl"])
    }

    private func acknowledge(
        _ session: SessionKey, _ applied: UInt64, ranges: [InclusiveRange] = [],
        reads: [ReadReceipt] = []
    ) throws -> StoreAnswer {
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: applied, ranges: ranges, reads: reads,
                    completesSync: true)))
    }

    private func words(_ user: String) throws -> [String] {
        try world.page(user).entries.map(\.word)
    }

    private func receipts(_ user: String) throws -> [String] {
        try words(user).filter { $0.hasPrefix("receipt") }
    }

    private func coalesce() throws { try world.ask(.coalesceReceipts(users: 100)) }

    /// MSG-30: who left learns no more of the conversation, nor how far the others get in it.
    @Test func anAuthorWhoLeftIsToldNothing() throws {
        let message = try world.publish("seen?", to: conversation, from: "anna")
        try world.remove(["anna"], from: conversation)
        let head = try world.head("anna")
        _ = try acknowledge(
            bert, try world.head("bert"),
            reads: [ReadReceipt(conversation: conversation, through: message.position)])
        try coalesce()
        #expect(try receipts("anna").isEmpty)
        #expect(try world.head("anna") == head)
    }

    /// MSG-24: what still comes under the id that was merged into another conversation counts
    /// there.
    @Test func aReceiptUnderAMergedIDCounts() throws {
        let (first, merged) = (world.fresh() as ConversationID, world.fresh() as ConversationID)
        for id in [first, merged] {
            try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(
                        conversation: id, participants: ["anna", "bert"], distinct: true),
                    idempotency: nil))
        }
        let message = try world.publish("seen?", to: merged, from: "anna")
        #expect(message.conversation == first)
        _ = try acknowledge(
            bert, try world.head("bert"),
            reads: [ReadReceipt(conversation: merged, through: message.position)])
        #expect(try words("bert").contains("read \(message.position)"))
        world.pass(5_000)
        try coalesce()
        #expect(try receipts("anna").count == 1)
    }

    @Test func nobodyIsToldOfWhatHasEnded() throws {
        try world.publish("x", to: conversation, from: "anna")
        _ = try acknowledge(bert, try world.head("bert"))
        #expect(try world.all(ReceiptDueRecord.self).contains { $0.due != nil })
        try world.ask(.deleteConversation(app: World.app, conversation, idempotency: nil))
        try world.finishFanOut()
        try coalesce()
        #expect(try !world.rows("anna").contains { $0.kind == .receipt })
        #expect(try world.all(ReceiptRecord.self).allSatisfy { $0.pendingSince == nil })
    }

    @Test(
        "authors are told of what was just sent and stored without a look into the store",
        .enabled(if: World.isSole, "what was read is known only where nobody else writes"))
    func fromMemory() throws {
        let world = try World()
        let bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
        let room = try world.converse(["anna", "bert"])
        func turn(after word: String) throws -> [UInt64] {
            for number in 1...2 {
                try world.publish("\(word) \(number)", to: room, from: "anna")
            }
            try world.ask(
                .acknowledge(
                    Acknowledge(
                        session: bert, applied: try world.head("bert"), completesSync: false)))
            world.pass(5_000)
            let before = world.known.effort
            try world.ask(.coalesceReceipts(users: 1))
            let after = world.known.effort
            return [after.reads - before.reads, after.scans - before.scans]
        }
        _ = try turn(after: "first")
        // It asks whose turn it is, and no more.
        #expect(try turn(after: "second") == [0, 2])
        #expect(
            try world.page("anna").entries.map(\.word).filter { $0.hasPrefix("receipt") }
                == ["receipt bert 4 0"])
    }

    @Test func onlyTheAuthorsAreTold() throws {
        try world.publish("one", to: conversation, from: "anna")
        try world.publish("two", to: conversation)
        let head = try world.page("bert").head
        #expect(try acknowledge(bert, head) == .acknowledged(head: head))
        #expect(try receipts("anna").isEmpty)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 2 0"])
        #expect(try receipts("bert").isEmpty)
        #expect(try receipts("carl").isEmpty)
        #expect(world.changes.map(\.user) == [UserID("anna")])
        #expect(world.changes.map(\.kinds) == [1 << UInt32(EntryKind.receipt.rawValue)])
        #expect(try world.page("anna").firstVisible == nil || receipts("anna").count == 1)
    }

    @Test func onlyNewlyCoveredAuthorsAreTold() throws {
        try world.publish("one", to: conversation, from: "carl")
        _ = try acknowledge(bert, try world.head("bert"))
        try coalesce()
        #expect(world.changes.map(\.user.name) == ["carl"])
        try world.publish("two", to: conversation, from: "anna")
        _ = try acknowledge(bert, try world.head("bert"))
        world.pass(2000)
        try coalesce()
        #expect(world.changes.map(\.user.name) == ["anna"])
        let read = ReadReceipt(conversation: conversation, through: 1)
        _ = try acknowledge(bert, 0, reads: [read])
        world.pass(2000)
        try coalesce()
        #expect(world.changes.map(\.user.name) == ["carl"])
        #expect(try receipts("carl") == ["receipt bert 2 1"])
    }

    @Test func oneReceiptInTwoSeconds() throws {
        func step(_ number: Int) throws {
            try world.publish("\(number)", to: conversation, from: "anna")
            _ = try acknowledge(bert, try world.page("bert").head)
            try coalesce()
        }
        try step(1)
        try step(2)
        try step(3)
        #expect(try receipts("anna") == ["receipt bert 1 0"])
        world.pass(1999)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 1 0"])
        world.pass(1)
        let before = try world.page("anna").head
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 3 0"])
        #expect(try world.page("anna").head == before + 1)
    }

    @Test("what its reader deletes before its author was told has come all the same")
    func hiddenBeforeTold() throws {
        try world.publish("one", to: conversation, from: "anna")
        _ = try acknowledge(bert, try world.head("bert"))
        try coalesce()
        world.pass(500)
        let message = try world.publish("two", to: conversation, from: "anna")
        _ = try acknowledge(bert, try world.head("bert"))
        let hide = DeleteMessage(message: message.message)
        #expect(try world.mutate(bert, 1, .deleteMessage(hide)).code == 0)
        _ = try acknowledge(bert, try world.head("bert"))
        for _ in 0..<2 {
            world.pass(2_000)
            try coalesce()
        }
        #expect(try receipts("anna") == ["receipt bert 2 0"])
    }

    @Test("MSG-21: what was deleted for everyone before any device had it has not come")
    func endedBeforeStored() throws {
        let message = try world.publish("one", to: conversation, from: "anna")
        try world.delete(message.message)
        let other = try world.converse(["bert", "carl"])
        try world.publish("two", to: other, from: "carl")
        _ = try acknowledge(bert, try world.head("bert"))
        try coalesce()
        #expect(try receipts("carl") == ["receipt bert 1 0"])
        #expect(try receipts("anna").isEmpty)
    }

    @Test func readMarksMergeAndReachTheOwnDevices() throws {
        for number in 1...6 {
            try world.publish("\(number)", to: conversation, from: "anna")
        }
        func read(_ through: UInt64, _ ranges: [InclusiveRange] = []) throws {
            let report = ReadReceipt(
                conversation: conversation, through: through, ranges: ranges)
            let answer = try acknowledge(bert, 0, reads: [report])
            #expect(answer == .acknowledged(head: try world.page("bert").head))
        }
        let head = try world.page("bert").head
        try read(2)
        #expect(try words("bert").last == "read 2")
        try read(1)
        #expect(try world.page("bert").head == head + 1)
        try read(0, [InclusiveRange(first: 5, last: 5)])
        #expect(try world.page("bert").head == head + 2)
        try read(0, [InclusiveRange(first: 3, last: 4)])
        #expect(try words("bert").suffix(1) == ["read 5"])
        // Nothing counts as read before it was sent.
        try read(99, [InclusiveRange(first: 8, last: 9)])
        #expect(try words("bert").last == "read 6")
        try world.publish("7", to: conversation, from: "anna")
        #expect(try world.page("bert", after: head).firstVisible != nil)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 6 6"])
        #expect(try receipts("carl").isEmpty)
    }

    @Test func whatWasReadAloneStaysRead() throws {
        for number in 1...3 { try world.publish("\(number)", to: conversation) }
        let alone = ReadReceipt(
            conversation: conversation, through: 0,
            ranges: [InclusiveRange(first: 2, last: 2), InclusiveRange(first: 9, last: 1)])
        _ = try acknowledge(bert, 0, reads: [alone])
        let mark = try #require(try world.page("bert").entries.last)
        #expect(
            mark.body
                == .readMark(
                    ReadMarkState(through: 0, ranges: [InclusiveRange(first: 2, last: 2)])))
        try coalesce()
        #expect(try receipts("anna").isEmpty)
    }

    @Test func othersConversationsAreNotTouched() throws {
        let hidden = try world.converse(["carl"])
        try world.publish("x", to: hidden, from: "carl")
        let reads = [
            ReadReceipt(conversation: hidden, through: 1),
            ReadReceipt(conversation: world.fresh(), through: 1),
            ReadReceipt(conversation: nil, through: 1),
        ]
        let head = try world.page("bert").head
        #expect(try acknowledge(bert, 0, reads: reads) == .acknowledged(head: head))
        #expect(try world.all(ReadMarkRecord.self).isEmpty)
        #expect(try world.all(ReceiptRecord.self).isEmpty)
    }

    @Test func aPeeksRangesAreDeliveredWithoutGaps() throws {
        let peek = try world.login("bert", bert.device, role: .extension).session
        for number in 1...3 { try world.publish("\(number)", to: conversation, from: "anna") }
        let head = try world.page("bert").head
        _ = try acknowledge(peek, 0, ranges: [InclusiveRange(first: head, last: head)])
        try coalesce()
        #expect(try receipts("anna").isEmpty)
        _ = try acknowledge(peek, 0, ranges: [InclusiveRange(first: head - 2, last: head - 1)])
        world.pass(2000)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 3 0"])
        let above = InclusiveRange(first: head, last: head + 1)
        #expect(try acknowledge(peek, 0, ranges: [above]).refusal == .ackAhead)
        let reversed = InclusiveRange(first: 2, last: 1)
        #expect(try acknowledge(peek, 0, ranges: [reversed]).refusal == .malformed)
    }

    @Test("SYN-28: what a peek stored behind a gap counts when the gap is closed")
    func rangesBehindAGapAreKept() throws {
        let peek = try world.login("bert", bert.device, role: .extension).session
        for number in 1...4 { try world.publish("\(number)", to: conversation, from: "anna") }
        let head = try world.page("bert").head
        _ = try acknowledge(peek, 0, ranges: [InclusiveRange(first: head, last: head)])
        _ = try acknowledge(peek, 0, ranges: [InclusiveRange(first: head - 2, last: head - 2)])
        try coalesce()
        #expect(try receipts("anna").isEmpty)
        // The app itself comes as far as the first: the second is there already.
        _ = try acknowledge(bert, head - 3)
        world.pass(2000)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 2 0"])
        _ = try acknowledge(bert, head - 1)
        world.pass(2000)
        try coalesce()
        #expect(try receipts("anna") == ["receipt bert 4 0"])
        let rows = try world.all(ReceiptRecord.self)
        #expect(rows.filter { $0.user.name == "bert" }.map(\.deliveredRanges) == [[]])
    }

    @Test("SYN-28: a bounded number of ranges is kept")
    func rangesAreBounded() throws {
        world.limits.rangesPerReadMark = 2
        let peek = try world.login("bert", bert.device, role: .extension).session
        for number in 1...9 { try world.publish("\(number)", to: conversation, from: "anna") }
        let head = try world.page("bert").head
        for back in [6, 4, 2, 0] as [UInt64] {
            _ = try acknowledge(
                peek, 0, ranges: [InclusiveRange(first: head - back, last: head - back)])
        }
        let row = try world.all(ReceiptRecord.self).first { $0.user.name == "bert" }
        #expect(row?.deliveredRanges.count == 32)
    }

    @Test func largeConversationsGetNone() throws {
        try world.expectDone(
            .putApp(AppRecord(app: World.app, createdAt: world.now, receiptParticipantsMax: 2)))
        try world.publish("x", to: conversation, from: "anna")
        let read = ReadReceipt(conversation: conversation, through: 1)
        _ = try acknowledge(bert, try world.page("bert").head, reads: [read])
        try coalesce()
        #expect(try receipts("anna").isEmpty)
        #expect(try words("bert").last == "read 1")
        // It is kept for whoever asks.
        #expect(try world.all(ReceiptRecord.self).map(\.read) == [1])
        // As many as the app wants receipts for are not too many.
        try world.expectDone(
            .putApp(AppRecord(app: World.app, createdAt: world.now, receiptParticipantsMax: 3)))
        try world.publish("y", to: conversation, from: "anna")
        let next = ReadReceipt(conversation: conversation, through: 2)
        _ = try acknowledge(bert, try world.head("bert"), reads: [next])
        world.pass(5_000)
        try coalesce()
        #expect(try receipts("anna").count == 1)
    }

    @Test func aTurnThatSeesMuchGoesOn() throws {
        world.limits.receiptStep = 2
        world.limits.receiptConversations = 1
        var others: [ConversationID] = []
        for _ in 0..<3 { others.append(try world.converse(["anna", "bert"])) }
        for id in others {
            for number in 1...3 { try world.publish("\(number)", to: id, from: "anna") }
        }
        _ = try acknowledge(bert, try world.page("bert").head)
        for _ in 0..<30 {
            try coalesce()
            world.pass(2000)
        }
        let expected = Array(repeating: "receipt bert 3 0", count: 3)
        #expect(try receipts("anna") == expected)
        #expect(try world.all(ReceiptDueRecord.self).allSatisfy { $0.due == nil })
    }

    @Test func aFullBatchWritesNothing() throws {
        try world.publish("x", to: conversation, from: "anna")
        world.store.faults = [.full]
        #expect(throws: StoreError.self) { try acknowledge(bert, 1) }
        let key: [ColumnValue] = [.app(World.app), .text("bert"), .identifier(bert.device)]
        #expect(try world.record(DeviceRecord.self, key)?.applied == 0)
    }
}
