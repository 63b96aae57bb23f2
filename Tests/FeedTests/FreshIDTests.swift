import Feed
import Model
import Testing
import Wire

/// Messages whose id the server drew for the request: nobody looks whether it is in use.
@Suite struct FreshIDTests {
    @Test("an id that was drawn and is in use all the same replaces nothing")
    func collision() throws {
        let world = try World()
        let conversation = try world.converse(["anna", "bert"])
        let first = try world.publish("first", to: conversation)
        let again = StoreRequest.publish(
            app: World.app,
            Publication(
                message: world.message0("second", to: conversation, first.message),
                sender: "", isIDFresh: true),
            idempotency: nil)
        #expect(throws: StoreError.self) { _ = try world.ask(again) }
        let kept = try world.publish("third", to: conversation)
        #expect(kept.position == first.position + 1)
        let texts = try world.texts("anna").filter { $0.hasPrefix("message") }
        #expect(texts == ["message 1 first", "message 2 third"])
    }
}
