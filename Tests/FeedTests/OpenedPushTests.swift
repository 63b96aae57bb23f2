import Feed
import Model
import Testing
import Wake
import Wire

/// Somebody taps a notification: the message it shows must be there, however much else was missed.
@Suite struct OpenedPushTests {
    private let phone = DeviceID(high: 2, low: 1)

    /// Bob's phone, away while 600 messages come, and the last alert it got.
    private func missed() throws -> (Pushes, applied: UInt64, alert: PushJob) {
        let pushes = try Pushes()
        let world = pushes.world
        let rooms = try (0..<3).map { _ in try world.converse(["anna", "bob"]) }
        let session = try pushes.open("bob", phone).session
        let applied = try pushes.head("bob")
        try pushes.acknowledge(session, applied)
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        for number in 0..<600 {
            try world.publish("message \(number)", to: rooms[number % 3], from: "anna")
        }
        try pushes.run(120_000)
        let alert = try #require(pushes.sent.last { $0.kind == .alert })
        return (pushes, applied, alert)
    }

    private func object(of alert: PushJob) throws -> MessageID {
        let json = String(decoding: alert.request.payload, as: UTF8.self)
        let start = try #require(json.firstRange(of: "\"o\":\"")?.upperBound)
        return try #require(MessageID(text: String(json[start...].prefix(36))))
    }

    private func page(
        _ pushes: Pushes, after: UInt64, newestFirst: Bool
    ) throws -> Page {
        let query = PageQuery(
            app: World.app, user: UserID("bob"), device: phone, after: after, bytes: 16 << 10,
            newestFirst: newestFirst)
        guard case .page(let page) = try pushes.world.read(.page(query)) else {
            throw Unexpected(answer: .done)
        }
        return page
    }

    @Test("SYN-12: the message that an alert shows is on the first page of the peek")
    func peek() throws {
        let (pushes, applied, alert) = try missed()
        let shown = try object(of: alert)
        let page = try page(pushes, after: applied, newestFirst: true)
        #expect(page.entries.contains { $0.object == shown.bytes })
        // Far more was missed than a page holds; in the feed's order it would have come late.
        #expect(page.more && page.entries.count < 300)
        let first = try self.page(pushes, after: applied, newestFirst: false)
        #expect(!first.entries.contains { $0.object == shown.bytes })
    }

    @Test("HIS-7: it is also there for one request by its id")
    func fetch() throws {
        let (pushes, _, alert) = try missed()
        let shown = try object(of: alert)
        guard
            case .history(.page(let page)) = try pushes.world.read(
                .history(
                    .fetch(
                        World.app, UserID("bob"), Fetch(object: shown.bytes), bytes: 16 << 10)))
        else { throw Unexpected(answer: .done) }
        #expect(page.entries.map(\.object) == [shown.bytes])
    }

    @Test("the alert already holds the text, so that nothing need be fetched to show it")
    func text() throws {
        let (_, _, alert) = try missed()
        let json = String(decoding: alert.request.payload, as: UTF8.self)
        #expect(json.contains("\"body\":\"message "))
    }
}
