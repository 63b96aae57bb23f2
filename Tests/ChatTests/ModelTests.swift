import SyncClient
import Testing
import Wire

@testable import Chat

/// What the chat knows of a conversation, and what a command means by it.
@Suite struct ModelTests {
    @Test("/edit and /delete are about the last message of one's own, and about no other")
    func lastOwn() {
        let sent = MessageRow.row(2, "agreed: 100", by: "anna")
        let waits = MessageRow.row(nil, "oops", by: "anna")
        let refused = MessageRow.row(
            nil, "too much", by: "anna", delivery: .refused(Refusal(code: 4_001)))
        var model = ChatModel.looking(at: [.row(1, "hi")])
        #expect(model.lastOwn == .none)
        model.window.rows.append(sent)
        model.window.rows.append(.row(3, "well"))
        #expect(model.lastOwn == .sent(sent))
        model.window.rows.append(waits)
        #expect(model.lastOwn == .waits)
        model.window.rows.append(refused)
        #expect(model.lastOwn == .refused(refused))
    }

    @Test("who types does so until it is over, whatever they look at")
    func typing() {
        var model = ChatModel.looking()
        model.heard(.present, of: "ben")
        #expect(model.typing == [])
        for _ in 1...2 { model.heard(.typing, of: "ben") }
        model.heard(.typing, of: "carl")
        model.heard(.away, of: "ben")
        model.heard(.present, of: "carl")
        #expect(model.typing == ["ben", "carl"])
        model.heard(.typingEnded, of: "ben")
        #expect(model.typing == ["carl"])
    }
}
