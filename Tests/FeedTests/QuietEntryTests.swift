import Feed
import Model
import Testing
import Wake
import Wire

/// Messages that a page marks because no alert would tell of them (PSH-9): their read mark, mute or
/// block stands on a later page, or nowhere any more.
struct QuietEntryTests {
    private let world: World
    private let id: ConversationID
    private let tablet: SessionKey

    init() throws {
        world = try World()
        id = try world.converse(["anna", "bert", "carl"])
        tablet = try world.login("anna", DeviceID(high: 5, low: 1)).session
    }

    /// The messages for anna's phone that it tells of itself, by their positions.
    private func toTell(_ user: String = "anna") throws -> [UInt64] {
        try world.page(user).entries.compactMap { entry in
            guard case .message(let message) = entry.body, !entry.alerted else { return nil }
            return message.position
        }
    }

    private func mute(_ muted: Bool, for duration: Milliseconds = 0) -> Mutation.Operation {
        .muteConversation(MuteConversation(conversation: id, muted: muted, forMs: duration))
    }

    private func publish(_ count: Int, from sender: String = "bert") throws {
        for number in 1...count { try world.publish("\(number)", to: id, from: sender) }
    }

    @Test func whatIsUnreadIsTold() throws {
        try publish(3)
        #expect(try toTell() == [1, 2, 3])
        #expect(try toTell("bert") == [1, 2, 3], "the own ones no mark is needed for")
    }

    @Test func whatWasReadElsewhereIsNotTold() throws {
        try publish(4)
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: tablet, applied: try world.head("anna"), ranges: [],
                    reads: [ReadReceipt(conversation: id, through: 3)], completesSync: true)))
        #expect(try toTell() == [4])
        #expect(try toTell("carl") == [1, 2, 3, 4])
    }

    @Test func whatIsMutedIsNotToldNorWhatCameDuringAMute() throws {
        try publish(2)
        #expect(try world.mutate(tablet, 1, mute(true)).code == 0)
        #expect(try toTell() == [])
        try publish(1)
        #expect(try world.mutate(tablet, 2, mute(false)).code == 0)
        try publish(1)
        #expect(try toTell() == [1, 2, 4], "the third came while nothing of it was to be told")
        #expect(try world.mutate(tablet, 3, mute(true, for: 1_000)).code == 0)
        try publish(1)
        #expect(try toTell() == [])
        world.pass(1_000)
        #expect(try toTell() == [1, 2, 4])
    }

    @Test func whatABlockedUserSentBeforeIsNotTold() throws {
        try publish(1)
        try publish(1, from: "carl")
        let block = { Mutation.Operation.blockUser(BlockUser(user: "bert", blocked: $0)) }
        #expect(try world.mutate(tablet, 1, block(true)).code == 0)
        #expect(try toTell() == [2])
        #expect(try world.mutate(tablet, 2, block(false)).code == 0)
        #expect(try toTell() == [1, 2])
    }

    @Test func whatIsOfAConversationThatWasLeftIsNotTold() throws {
        try publish(2)
        try world.remove(["anna"], from: id)
        #expect(try toTell() == [])
        #expect(try toTell("carl") == [1, 2])
    }

    /// MSG-33: an edit that gives a text for alerts alerts nobody, and makes the message unread.
    @Test func anEditWithAFirstTextIsNotTold() throws {
        var silent = world.message0("quiet", to: id, world.fresh())
        silent.push = nil
        try world.ask(
            .publish(
                app: World.app, Publication(message: silent, sender: "bert"), idempotency: nil))
        #expect(try world.page("anna").unread == 0)
        let edit = EditMessage(
            message: silent.message, parts: silent.parts,
            push: PushText(title: "now", body: "loud"))
        try world.ask(
            .editMessage(app: World.app, edit, idempotency: nil))
        #expect(try world.page("anna").unread == 1)
        #expect(try toTell() == [])
    }

    /// What a device peeks at is marked alike.
    @Test func aPeekMarksAlike() throws {
        try publish(2)
        #expect(try world.mutate(tablet, 1, mute(true)).code == 0)
        let query = PageQuery(
            app: World.app, user: UserID("anna"), device: DeviceID(high: 5, low: 2), after: 0,
            bytes: 1 << 16, newestFirst: true)
        guard case .page(let page) = try world.read(.page(query)) else {
            throw Unexpected(answer: .done)
        }
        let marks = page.entries.compactMap { entry in
            if case .message = entry.body { entry.alerted } else { nil }
        }
        #expect(marks == [true, true])
    }
}
