import Feed
import Model
import Testing
import Wake
import Wire

/// An alert whose end comes before its beginning is a mistake of who publishes, and told as one;
/// what was published stays as it is.
@Suite struct AlertEndTests {
    let world: World
    let room: ConversationID

    init() throws {
        world = try World()
        room = try world.converse(["anna", "bob"])
    }

    private func publish(
        _ timing: AlertTiming, _ id: MessageID? = nil, _ idempotency: Idempotency? = nil
    ) throws -> StoreAnswer {
        let message = SendMessage(
            conversation: room, message: id ?? world.fresh(),
            parts: [Part(mimeType: "text/plain", content: [65])],
            push: PushText(title: "", body: "x"))
        return try world.ask(
            .publish(
                app: World.app,
                Publication(message: message, sender: "anna", options: Self.options(timing)),
                idempotency: idempotency))
    }

    private static func options(_ timing: AlertTiming) -> PushOptions {
        var options = PushOptions()
        options.timing = timing
        return options
    }

    private func isRefused(_ answer: StoreAnswer) -> Bool {
        if case .refused(.malformed, let detail) = answer {
            return detail.hasPrefix("push.expires_at: ")
        }
        return false
    }

    @Test func aMinuteIsForClocks() throws {
        #expect(try isRefused(publish(AlertTiming(expires: world.now - 60_000))))
        #expect(try !isRefused(publish(AlertTiming(expires: world.now - 59_999))))
        let at = AlertTiming.Moment.at(world.now + 5_000)
        #expect(try isRefused(publish(AlertTiming(moment: at, expires: world.now + 5_000))))
        #expect(try !isRefused(publish(AlertTiming(moment: at, expires: world.now + 5_001))))
        // A lifetime counts from when it may be shown: it is never over before.
        #expect(try !isRefused(publish(AlertTiming(moment: at, lifetime: 1))))
    }

    @Test func whoRepeatsIsAnsweredAsBefore() throws {
        let timing = AlertTiming(expires: world.now + 5_000)
        let once = Idempotency(key: "end", requestHash: [1])
        let id: MessageID = world.fresh()
        let first = try publish(timing, nil, once)
        guard case .published = first else { throw Unexpected(answer: first) }
        _ = try publish(timing, id)
        world.pass(600_000)
        #expect(try isRefused(publish(timing)))
        #expect(try publish(timing, nil, once) == first)
        let known = try publish(timing, id)
        guard case .refused(.idInUse, _) = known else { throw Unexpected(answer: known) }
    }

    @Test func whatIsPublishedLateIsPublishedAllTheSame() throws {
        let sendAt = world.now + 60_000
        func add(_ expires: Timestamp) throws -> StoreAnswer {
            let message = SendMessage(
                conversation: room, message: world.fresh(),
                parts: [Part(mimeType: "text/plain", content: [65])],
                push: PushText(title: "", body: "x"))
            let publication = Publication(
                message: message, sender: "anna",
                options: Self.options(AlertTiming(expires: expires)))
            return try world.ask(
                .schedules(
                    .add(
                        app: World.app, NewScheduled(.message(publication), sendAt: sendAt),
                        idempotency: nil)))
        }
        #expect(try isRefused(add(sendAt)))
        let taken = try add(sendAt + 1)
        guard case .scheduled = taken else { throw Unexpected(answer: taken) }
        // The server was down meanwhile.
        world.pass(86_400_000)
        _ = try world.ask(.schedules(.publishDue(rows: 10)))
        #expect(try world.all(MessageRecord.self).count == 1)
    }
}
