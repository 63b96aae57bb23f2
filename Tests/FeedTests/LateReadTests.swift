import Model
import Testing
import Wire

@testable import Feed

/// Read receipts of users who are out of the conversation, or whose conversation is over.
struct LateReadTests {
    private let world: World
    private let bert: SessionKey
    private let conversation: ConversationID

    init() throws {
        world = try World()
        bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
        conversation = try world.converse(["anna", "bert", "carl"])
    }

    private func read(through position: UInt64) throws {
        let receipt = ReadReceipt(conversation: conversation, through: position)
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bert, applied: try world.head("bert"), reads: [receipt],
                    completesSync: true)))
    }

    private func mark() throws -> ReadMarkRecord? {
        try world.all(ReadMarkRecord.self).first { $0.user.name == "bert" }
    }

    @Test("what is read after the conversation ended leaves nothing behind")
    func afterTheEnd() throws {
        try world.publish("x", to: conversation, from: "anna")
        try world.end(conversation)
        try world.retain()
        let head = try world.head("bert")
        try read(through: 1)
        #expect(try world.head("bert") == head)
        #expect(try mark() == nil)
    }

    @Test("who was removed reads what came before, and the authors hear nothing of it")
    func afterTheRemoval() throws {
        try world.publish("x", to: conversation, from: "anna")
        try world.publish("y", to: conversation, from: "anna")
        try world.remove(["bert"], from: conversation)
        try world.publish("z", to: conversation, from: "anna")
        try read(through: 9)
        #expect(try mark()?.through == 2)
        world.pass(5_000)
        try world.ask(.coalesceReceipts(users: 100))
        #expect(try !world.rows("anna").contains { $0.kind == .receipt })
        let told = try world.all(ReceiptRecord.self)
        #expect(!told.contains { $0.user.name == "bert" && $0.read > 0 })
    }
}
