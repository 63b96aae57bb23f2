import AppLife
import Foundation
import Model
import RouseClient
import Testing
import Wire

/// A notification of the app's own is what the alert would have been (PSH-12).
@Suite struct NoticeTests {
    private static let message = MessageID(high: 0, low: 7)

    private func notice(
        _ push: PushText, _ hints: PushHints?, sender: String = "ben"
    ) throws -> AppNotice {
        try #require(
            AppNotice(
                Entry(
                    seq: 11, conversation: Stage.room, object: Self.message.bytes, version: 1,
                    body: .message(
                        MessageState(
                            position: 1, sender: sender,
                            parts: [Part(mimeType: "text/plain", content: [65])], push: push,
                            hints: hints)))))
    }

    private func json(_ info: [String: Any]) throws -> String {
        String(
            decoding: try JSONSerialization.data(withJSONObject: info, options: .sortedKeys),
            as: UTF8.self)
    }

    @Test func withoutHintsItIsAsUsual() throws {
        let plain = try notice(PushText(title: "", body: "hello"), nil)
        // No title of the app's own: the alert has none.
        #expect(plain.title == "")
        #expect(plain.body == "hello")
        #expect(plain.sound == .standard)
        #expect(plain.thread == Stage.room.description)
        #expect(plain.relevance == nil)
        #expect(plain.identifier == Self.message.description)
        #expect(
            try json(plain.userInfo)
                == #"{"rouse":{"c":"\#(Stage.room)","e":"message","o":"\#(Self.message)"}}"#)
    }

    @Test func hintsAreShown() throws {
        let hinted = try notice(
            PushText(title: "Shop", body: "On its way"),
            PushHints(
                subtitle: "Order 42", sound: PushSound(kind: .critical, name: "a", volume: 25),
                thread: "orders", interruptionLevel: .timeSensitive, relevance: 701,
                event: "order", object: "42", data: #"{"shop":{"id":7},"rouse":1}"#))
        #expect(hinted.hints.subtitle == "Order 42")
        #expect(hinted.sound == .critical(name: "a", volume: 0.25))
        #expect(hinted.thread == "orders")
        #expect(hinted.relevance == 0.7)
        // What is ours is not the data's to say.
        #expect(
            try json(hinted.userInfo)
                == #"{"rouse":{"c":"\#(Stage.room)","e":"message","i":"42","#
                + #""o":"\#(Self.message)","t":"order"},"shop":{"id":7}}"#)
    }

    @Test("what the backend left empty is left out, at the top as inside")
    func whatIsNullIsLeftOut() throws {
        let hinted = try notice(
            PushText(title: "Shop", body: "On its way"),
            PushHints(data: #"{"coupon":null,"shop":{"id":7,"name":null},"sizes":[1,null]}"#))
        let info = try json(hinted.userInfo)
        #expect(info.hasSuffix(#","shop":{"id":7},"sizes":[1]}"#))
        #expect(!info.contains("coupon"))
    }

    @Test func whatTakesThePlaceOfOneThatStandsIsNotHeard() throws {
        var edited = try notice(PushText(title: "", body: "x"), nil)
        edited.isQuiet = true
        #expect(edited.sound == nil)
        // By which the app knows it when the system asks what to show of it in front.
        #expect(DeliveredNotification(edited).isQuiet)
        #expect(try json(edited.userInfo).contains(#","q":true}"#))
        edited.isQuiet = false
        #expect(!DeliveredNotification(edited).isQuiet)
        let named = PushHints(sound: PushSound(kind: .named, name: "a"))
        #expect(try notice(PushText(), named).sound == .named("a"))
        let mute = PushHints(sound: PushSound(kind: SoundKind.none))
        #expect(try notice(PushText(), mute).sound == nil)
        // A kind of tomorrow is read as the system's.
        #expect(try notice(PushText(), PushHints(sound: PushSound())).sound == .standard)
    }

    @Test func anAnnouncementBelongsToNoConversation() throws {
        let entry = Entry(
            seq: 1, object: Self.message.bytes, version: 1,
            body: .announcement(
                AnnouncementState(push: PushText(title: "News", body: ""))))
        let news = try #require(AppNotice(entry))
        #expect(news.thread == nil)
        #expect(
            try json(news.userInfo)
                == #"{"rouse":{"e":"announcement","o":"\#(Self.message)"}}"#)
        #expect(AppNotice(Entry(body: .announcement(AnnouncementState()))) == nil)
    }

    @Test("killed while it shows: the next process knows the hints from the store")
    func hintsOutliveTheProcess() async throws {
        let hints = PushHints(category: "ORDER", event: "order", data: #"{"a":1}"#)
        var entry = Stage.message(1)
        guard case .message(var message) = entry.body else { return }
        message.hints = hints
        entry.body = .message(message)
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate))
        stage.server.publish(entry, unread: 1)
        let first = stage.process()
        let began = stage.clock.now
        let wake = Task { await first.woken(by: nil, within: 30_000) }
        for await _ in stage.phone.isAtGate { break }
        let later = try stage.next(FakePhone())
        later.server.publish(entry, unread: 1)
        #expect(await later.process().woken(by: nil, within: 30_000) == .noData)
        #expect(later.phone.notices.map(\.hints) == [hints])
        await stage.clock.pass([began + 28_000, began + 29_000])
        _ = await wake.value
        opened.finish()
    }
}
