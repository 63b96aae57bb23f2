import Feed
import Model
import Testing
import Wake
import Wire

/// What is not unread any more when its alert would leave is not shown on a lock screen: whoever
/// deleted a message, or muted its conversation, on another device saw to that in time.
@Suite struct OverBeforeAlertTests {
    private let pushes: Pushes
    private let phone = DeviceID(high: 1, low: 1)
    private var world: World { pushes.world }

    init() throws { pushes = try Pushes() }

    private static let ways = [
        "removed", "removed and added again", "ended", "deleted for oneself", "muted",
    ]

    private func asleep(_ user: String) throws {
        let session = try pushes.open(user, phone).session
        try pushes.acknowledge(session, try world.head(user))
        try pushes.end(session, applied: try world.head(user), within: 0)
        try pushes.run(1_000)
    }

    private func finish(_ conversation: ConversationID, _ way: String) throws {
        let tablet = try pushes.open("b", DeviceID(high: 2, low: 2), token: 2).session
        switch way {
        case "removed": try world.remove(["b"], from: conversation)
        case "removed and added again":
            try world.remove(["b"], from: conversation)
            try world.finishFanOut()
            #expect(try world.add(["b"], to: conversation).refusal == nil)
        case "ended": try world.end(conversation)
        case "muted":
            try world.mutate(
                tablet, 1,
                .muteConversation(MuteConversation(conversation: conversation, muted: true)))
        default:
            try world.mutate(
                tablet, 1,
                .deleteConversation(
                    DeleteConversation(conversation: conversation, forEveryone: false)))
        }
        try world.finishFanOut()
        #expect(
            try world.unread().allSatisfy { $0.conversation != conversation || $0.unread == 0 }
                || way == "muted")
    }

    @Test(arguments: ways)
    func thePhoneThatDoesNotComeIsNotAlertedOfIt(_ way: String) throws {
        let conversation = try world.converse(["a", "b"])
        try asleep("b")
        try world.publish("secret", to: conversation, from: "a")
        #expect(try pushes.run(0) == ["silent"])
        world.pass(2_000)
        try finish(conversation, way)
        let sent = try pushes.run(90_000)
        #expect(!sent.contains { $0.hasPrefix("alert") }, "\(sent)")
        // It was not given up for a message that nobody would have seen.
        #expect(try !pushes.view(phone).device.isUnreachable)
    }

    @Test(arguments: ["removed and added again", "deleted for oneself"])
    func ofWhatComesAfterwardsAloneThePhoneIsAlerted(_ way: String) throws {
        let conversation = try world.converse(["a", "b"])
        try asleep("b")
        try world.publish("secret", to: conversation, from: "a")
        #expect(try pushes.run(0) == ["silent"])
        try finish(conversation, way)
        try world.publish("new", to: conversation, from: "a")
        try world.finishFanOut()
        let alerts = try pushes.run(90_000).filter { $0.hasPrefix("alert") }
        #expect(alerts == [#"alert "new" badge 1 stored"#])
    }

    @Test(arguments: ways)
    func anAlertThatWaitsDoesNotLeave(_ way: String) throws {
        let conversation = try world.converse(["a", "b"])
        try asleep("b")
        try world.publish("1", to: conversation, from: "a")
        #expect(try pushes.run(61_000) == ["silent", #"alert "1" badge 1 stored"#])
        try world.publish("2", to: conversation, from: "a")
        #expect(try world.all(AlertRecord.self).map(\.phase) == [.sent, .queued])
        try finish(conversation, way)
        let after = try pushes.run(90_000)
        #expect(!after.contains { $0.hasPrefix("alert") }, "\(after)")
    }

    @Test(arguments: ways)
    func theBadgeShowsTheTextOfWhatIsStillUnread(_ way: String) throws {
        let (stays, goes) = (try world.converse(["a", "b"]), try world.converse(["c", "b"]))
        try asleep("b")
        try world.publish("stays", to: stays, from: "a")
        _ = try pushes.run(120_000)
        try world.publish("goes", to: goes, from: "c")
        _ = try pushes.run(120_000)
        #expect(try world.all(AlertRecord.self).map(\.phase) == [.sent, .sent])
        try finish(goes, way)
        _ = try pushes.run(90_000)
        let badge = try #require(pushes.sent.last { $0.kind == .badge })
        let payload = String(decoding: badge.request.payload, as: UTF8.self)
        #expect(payload.contains("stays") && !payload.contains("goes"), "\(payload)")
    }
}
