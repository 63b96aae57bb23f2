import Feed
import Foundation
import Model
import Testing
import Wake
import Wire

/// Options of a push on their way from a publish to the request for APNs.
@Suite struct PushOptionsFeedTests {
    private let phone = DeviceID(high: 2, low: 1)

    private func publish(
        _ pushes: Pushes, _ room: ConversationID, _ options: PushOptions, push: PushText?,
        message: MessageID? = nil
    ) throws -> StoreAnswer {
        var send = pushes.world.message0("text", to: room, message ?? pushes.world.fresh())
        send.push = push
        return try pushes.world.ask(
            .publish(
                app: World.app, Publication(message: send, sender: "anna", options: options),
                idempotency: nil))
    }

    /// A phone that speaks German and sleeps.
    private func sleepyPhone(locale: String = "de-AT") throws -> (Pushes, ConversationID) {
        let pushes = try Pushes()
        let room = try pushes.world.converse(["anna", "bob"])
        let answer = try pushes.world.ask(
            .openSession(
                OpenSession(
                    app: World.app, device: phone, role: .app,
                    credential: .identity(UserID("bob")), newTokenHash: pushes.world.hash(),
                    freshEpochHalf: 5, boot: pushes.boot, push: Pushes.registration(),
                    place: DevicePlace(
                        locale: locale, timeZone: "Europe/Vienna", utcOffset: 1_500))))
        guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
        try pushes.end(opened.session, within: 0)
        try pushes.run(2_000)
        return (pushes, room)
    }

    @Test func optionsAndLanguageReachTheAlert() throws {
        let (pushes, room) = try sleepyPhone()
        var options = PushOptions()
        options.sound = .none
        options.category = "CHAT"
        options.texts = [.init(locale: "de", title: "Anna", body: "Grüße")]
        options.custom = try CustomData(["k": .integer(7)])
        guard
            case .published = try publish(
                pushes, room, options, push: PushText(title: "Anna", body: "Greetings"))
        else { throw Unexpected(answer: .done) }
        #expect(try pushes.run(61_000) == ["silent", #"alert "Grüße" badge 1 stored"#])
        let payload = try #require(pushes.sent.last).request.payload
        let json = try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]
        #expect(json?["k"] as? Int == 7)
        let aps = json?["aps"] as? [String: Any]
        #expect(aps?["category"] as? String == "CHAT")
        #expect(aps?["sound"] == nil)
    }

    @Test func theAppsLanguageServesWhoSpeaksNoOther() throws {
        let (pushes, room) = try sleepyPhone(locale: "fr-FR")
        let world = pushes.world
        try world.expectDone(
            .putApp(World.classic(createdAt: world.now, locale: "de")))
        var options = PushOptions()
        options.texts = [.init(locale: "de", body: "Grüße")]
        _ = try publish(pushes, room, options, push: PushText(title: "", body: "Greetings"))
        #expect(try pushes.run(61_000).last == #"alert "Grüße" badge 1 stored"#)
    }

    @Test func aKeyAloneIsATextToAlertOf() throws {
        let (pushes, room) = try sleepyPhone()
        var options = PushOptions()
        options.bodyKey = .init("NEW_ORDER", ["4711"])
        _ = try publish(pushes, room, options, push: nil)
        #expect(try pushes.run(61_000) == ["silent", "alert badge 1 stored"])
        let payload = try #require(pushes.sent.last).request.payload
        #expect(String(decoding: payload, as: UTF8.self).contains(#""loc-key":"NEW_ORDER""#))
    }

    @Test func whatCannotFitIsRefusedAndNothingIsStored() throws {
        let (pushes, room) = try sleepyPhone()
        var options = PushOptions()
        options.custom = try CustomData(["x": .text(String(repeating: "x", count: 3_000))])
        options.bodyKey = .init(
            "K", Array(repeating: String(repeating: "y", count: 200), count: 5))
        let id: MessageID = pushes.world.fresh()
        let answer = try publish(pushes, room, options, push: nil, message: id)
        guard case .refused(.tooLarge, let reason) = answer else {
            throw Unexpected(answer: answer)
        }
        #expect(reason.contains("bytes beside its text, of 4096"))
        #expect(
            try pushes.world.record(MessageRecord.self, [.app(World.app), .identifier(id)]) == nil)
        options.custom = CustomData()
        options.thread = "a\u{1}b"
        #expect(try publish(pushes, room, options, push: nil).refusal == .malformed)
    }

    @Test func anEditKeepsTheMannerAndDropsTheOldTexts() throws {
        let (pushes, room) = try sleepyPhone()
        let id: MessageID = pushes.world.fresh()
        var options = PushOptions()
        options.category = "CHAT"
        options.texts = [.init(locale: "de", body: "alt")]
        _ = try publish(
            pushes, room, options, push: PushText(title: "", body: "old"), message: id)
        _ = try pushes.world.ask(
            .editMessage(
                app: World.app,
                EditMessage(
                    message: id, parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "new"), baseVersion: 0),
                idempotency: nil))
        #expect(try pushes.run(61_000).last == #"alert "new" badge 1 stored"#)
        let payload = try #require(pushes.sent.last).request.payload
        #expect(String(decoding: payload, as: UTF8.self).contains(#""category":"CHAT""#))
    }

    @Test func aDeviceIsInOnePlaceAndKeepsWhatItDoesNotSay() throws {
        let (pushes, _) = try sleepyPhone()
        func say(_ place: DevicePlace?) throws {
            _ = try pushes.world.ask(
                .openSession(
                    OpenSession(
                        app: World.app, device: phone, role: .app,
                        credential: .identity(UserID("bob")),
                        newTokenHash: pushes.world.hash(), freshEpochHalf: 5, boot: pushes.boot,
                        place: place)))
        }
        func places() throws -> [String] {
            let device = try pushes.view(phone).device
            return [device.locale, device.timeZone, "\(device.utcOffset)"]
        }
        #expect(try places() == ["de-AT", "Europe/Vienna", "1500"])
        try say(nil)
        try say(DevicePlace())
        #expect(try places() == ["de-AT", "Europe/Vienna", "1500"])
        let long = String(repeating: "a", count: 65)
        try say(DevicePlace(locale: long, timeZone: "a b", utcOffset: 2_881))
        #expect(try places() == ["de-AT", "Europe/Vienna", "1500"])
        try say(DevicePlace(locale: "fr", timeZone: "Europe/Paris", utcOffset: 1_560))
        #expect(try places() == ["fr", "Europe/Paris", "1560"])
    }
}
