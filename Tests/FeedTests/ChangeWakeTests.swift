import Feed
import Model
import Testing
import Wake
import Wire

/// What edits and deletions owe a phone: nothing new, and nothing less than before.
struct ChangeWakeTests {
    private let pushes: Pushes
    private let device = DeviceID(high: 1, low: 1)
    private var world: World { pushes.world }

    init() throws { pushes = try Pushes() }

    /// A phone that has everything up to now and sleeps.
    private func asleep(_ user: String) throws -> SessionKey {
        let session = try pushes.open(user, device).session
        try pushes.acknowledge(session, try world.head(user))
        try pushes.end(session, applied: try world.head(user), within: 0)
        try pushes.run(1_000)
        return session
    }

    @Test func anEditWakesNobodyWhoHasTheMessage() throws {
        let id = try world.converse(["a", "b"])
        let message = try world.publish("x", to: id, from: "a").message
        _ = try asleep("b")
        try world.edit(message, "y")
        #expect(try pushes.run(5_000).isEmpty)
        // A restart looks for whoever is behind.
        let session = try pushes.open("b", device).session
        try pushes.end(session, within: 0)
        #expect(try pushes.run(5_000).isEmpty)
        try world.edit(message, "z")
        let again = try pushes.open("b", device).session
        try pushes.end(again, within: 0)
        #expect(try pushes.run(5_000).isEmpty)
    }

    @Test func whoLacksTheMessageIsStillOwedIt() throws {
        let id = try world.converse(["a", "b"])
        let session = try asleep("b")
        _ = session
        let message = try world.publish("x", to: id, from: "a").message
        let before = try world.head("b")
        try world.publish("quiet", to: id, from: "b")
        let applied = try world.head("b")
        try world.edit(message, "y")
        #expect(try pushes.run(1_000).count == 1)
        // The phone comes, gets one page that ends below the edited message, and is gone.
        let woken = try pushes.open("b", device).session
        #expect(applied > before)
        try pushes.acknowledge(woken, applied, completes: false)
        try pushes.end(woken, applied: applied, within: 0)
        let sent = try pushes.run(90_000)
        #expect(!sent.isEmpty, "the message is behind what the phone has")
    }

    @Test func aDeletedMessageIsNotAlertedAndLeavesTheIcon() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        let first = try world.publish("one", to: id, from: "a").message
        // It does not come: the phone is alerted.
        let demoted = try pushes.run(70_000)
        #expect(demoted.contains { $0.hasPrefix(#"alert "one""#) }, "\(demoted)")
        let second = try world.publish("two", to: id, from: "a").message
        try world.delete(second)
        #expect(try !pushes.run(2_000).contains { $0.hasPrefix(#"alert "two""#) })
        try world.delete(first)
        let after = try pushes.run(70_000)
        #expect(after.contains { $0.hasPrefix("badge") }, "\(after)")
    }

    /// Who left is told of no change any more: what was deleted since is nothing to show, to
    /// count or to wake for.
    @Test func aMessageDeletedSinceItsReaderLeftIsOwedToNobody() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        let seen = try world.publish("seen", to: id, from: "a").message
        _ = try asleep("b")
        let message = try world.publish("x", to: id, from: "a").message
        #expect(try pushes.run(90_000).count > 0)
        try world.remove(["b"], from: id)
        try pushes.run(90_000)
        let head = try world.head("b")
        try world.delete(message)
        #expect(try world.unread().allSatisfy { $0.unread <= 1 })
        #expect(try world.head("b") == head, "nothing new is told")
        #expect(try !world.rows("b").contains { $0.object == message.bytes })
        #expect(try world.texts("b").contains("message 1 seen"))
        // It is owed no alert, and the phone that comes and goes without applying no wake.
        #expect(
            try world.all(AlertRecord.self).allSatisfy {
                $0.message != message || $0.openPosition == nil
            })
        let session = try pushes.open("b", device).session
        try pushes.end(session, within: 0)
        #expect(try pushes.run(90_000).isEmpty)
        try world.delete(seen)
        #expect(try world.unread().isEmpty)
        #expect(
            try world.texts("b") == [
                "conversation", "participant a", "removed b",
            ])
    }

    @Test func aPushTextThatIsGoneIsNotAlerted() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        try world.publish("one", to: id, from: "a")
        _ = try pushes.run(70_000)
        let second = try world.publish("two", to: id, from: "a").message
        try world.edit(second, "two", push: "")
        #expect(try !pushes.run(2_000).contains { $0.hasPrefix("alert") })
        #expect(try world.unread().first?.unread == 1)
    }

    /// It came without a text, so that no entry of it was ever visible; an edit gave it one.
    @Test func aPushTextThatAnEditGaveAndAnEditTookLeavesTheIcon() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        let quiet = try world.publish("quiet", to: id, from: "a", push: "").message
        try world.edit(quiet, "loud")
        try world.publish("one", to: id, from: "a")
        let told = try pushes.run(70_000)
        #expect(told.contains { $0.hasPrefix(#"alert "one" badge 2"#) }, "\(told)")
        try world.edit(quiet, "quiet again", push: "")
        #expect(try pushes.run(70_000).map { $0.prefix(11) } == ["badge badge"])
        #expect(try world.unread().first?.unread == 1)
    }

    /// An alert that waits shows the newest text, and is still covered when the phone has it.
    @Test func anAlertFollowsTheEdit() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        try world.publish("one", to: id, from: "a")
        _ = try pushes.run(70_000)
        let second = try world.publish("two", to: id, from: "a").message
        try world.edit(second, "three")
        let sent = try pushes.run(1_000)
        #expect(sent.count == 1 && sent[0].hasPrefix(#"alert "three"#), "\(sent)")
        let session = try pushes.open("b", device).session
        try pushes.acknowledge(session, try world.head("b"))
        #expect(try world.all(AlertRecord.self).isEmpty)
    }

    /// What is over for its user leaves the screen of a phone that was never alerted: the app shows
    /// notifications of its own, and set the icon's number itself.
    /// So does what was edited meanwhile, of which it shows an older text.
    @Test(
        arguments: [
            "removed", "ended", "deleted for oneself", "muted", "edited", "deleted", "read",
        ], [false, true])
    func whatIsOverWakesThePhoneThatMayShowIt(_ how: String, _ isEdited: Bool) throws {
        let id = try world.converse(["a", "b"])
        let message = try world.publish("x", to: id, from: "a").message
        _ = try asleep("b")
        #expect(try pushes.run(60_000).isEmpty)
        let tablet = try pushes.open("b", DeviceID(high: 2, low: 2), token: 2).session
        if isEdited { try world.edit(message, "edited") }
        switch how {
        case "removed": try world.remove(["b"], from: id)
        case "edited": try world.edit(message, "y", push: "")
        case "deleted": try world.delete(message)
        case "read":
            try pushes.acknowledge(
                tablet, try world.head("b"), reads: [ReadReceipt(conversation: id, through: 1)])
        case "ended": try world.end(id)
        case "muted":
            try world.mutate(
                tablet, 1,
                .muteConversation(MuteConversation(conversation: id, muted: true)))
        default:
            try world.mutate(
                tablet, 1,
                .deleteConversation(
                    DeleteConversation(conversation: id, forEveryone: false)))
        }
        let sent = try pushes.run(60_000)
        #expect(sent.count == 1 && sent.allSatisfy { $0.hasPrefix("silent") }, "\(sent)")
    }

    /// A phone shows the first message. The wake for the second has to wait, and when both are over
    /// there is nothing to wake for but that.
    @Test(arguments: ["read", "read one by one", "ended", "muted", "left", "deleted"])
    func whatIsOverLeavesAPhoneThatLacksTheNewest(_ how: String) throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        try world.publish("1", to: id, from: "a")
        #expect(try pushes.run(0) == ["silent"])
        try pushes.nap("b", device)
        // Two silent pushes have some time between them.
        try world.publish("2", to: id, from: "a")
        #expect(try pushes.run(0).isEmpty)
        let tablet = try pushes.open("b", DeviceID(high: 2, low: 2), token: 2).session
        switch how {
        case "read":
            try pushes.acknowledge(
                tablet, try world.head("b"), reads: [ReadReceipt(conversation: id, through: 2)])
        case "read one by one":
            for position in [2, 1] as [UInt64] {
                let range = InclusiveRange(first: position, last: position)
                try pushes.acknowledge(
                    tablet, try world.head("b"),
                    reads: [ReadReceipt(conversation: id, ranges: [range])])
            }
        case "ended": try world.end(id)
        case "muted":
            try world.mutate(
                tablet, 1,
                .muteConversation(MuteConversation(conversation: id, muted: true)))
        case "left": try world.remove(["b"], from: id)
        default:
            try world.mutate(
                tablet, 1,
                .deleteConversation(
                    DeleteConversation(conversation: id, forEveryone: false)))
        }
        let sent = try pushes.run(120_000)
        #expect(sent.contains { $0.hasPrefix("silent") || $0.hasPrefix("badge") }, "\(sent)")
        // The next that the phone hears is that nothing is unread.
        #expect(!sent.contains { $0.hasPrefix("alert") }, "\(sent)")
    }

    /// A mute that is taken back loses no alert that had not left yet, and repeats none that had.
    @Test func anAlertThatWaitsOutlivesAMuteThatIsTakenBack() throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        try world.publish("1", to: id, from: "a")
        // In vain: the phone gets alerts from now on, and five in a row leave one by one.
        #expect(try pushes.run(100_000).last == #"alert "1" badge 1 stored"#)
        for number in 2...5 { try world.publish("\(number)", to: id, from: "a") }
        let left = try pushes.run(1_000)
        #expect(left.count == 4 && left.last?.hasPrefix(#"alert "5"#) == true, "\(left)")
        try world.publish("6", to: id, from: "a")
        #expect(try pushes.run(1_000) == [], "it waits for the next summary")
        let tablet = try pushes.open("b", DeviceID(high: 2, low: 2), token: 2).session
        for (number, muted) in [(1, true), (2, false)] as [(UInt64, Bool)] {
            try world.mutate(
                tablet, number,
                .muteConversation(MuteConversation(conversation: id, muted: muted)))
        }
        let later = try pushes.run(70_000).filter { $0.hasPrefix("alert") }
        #expect(later == [#"alert "6" badge 6 stored"#])
    }

    /// An edit alerts nobody anew, also not of a message whose text an edit had taken away.
    @Test(arguments: [true, false])
    func anEditThatGivesATextCallsNobody(_ hadOne: Bool) throws {
        let id = try world.converse(["a", "b"])
        _ = try asleep("b")
        let message = try world.publish("x", to: id, from: "a", push: hadOne ? "x" : "").message
        if hadOne { try world.edit(message, "y", push: "") }
        try world.edit(message, "z")
        #expect(try pushes.run(120_000) == [])
        // It is there to be read, and the next message calls as ever.
        try world.publish("next", to: id, from: "a")
        #expect(try pushes.run(90_000) == ["silent", #"alert "next" badge 2 stored"#])
    }

    /// A wake that is due is not forgotten by a page that ends below the edited message.
    @Test func aDueWakeFollowsTheEdit() {
        let now = Timestamp(milliseconds: 5_000)
        let (conversation, message) = (ConversationID(high: 1, low: 1), MessageID(high: 2, low: 1))
        func change(_ seq: UInt64) -> VisibleChange {
            VisibleChange(seq: seq, conversation: conversation, message: message)
        }
        var machine = Reachability(
            policy: WakePolicy(), tokenGeneration: 1,
            row: WakeRecord(app: World.app, user: UserID("b"), device: device))
        machine.moved(change(3))
        #expect(machine.row.phase == .none, "it owes nothing by itself")
        _ = machine.changed(change(5), now: now)
        machine.moved(change(9))
        _ = machine.synced(applied: 7, isComplete: false, now: now)
        #expect(machine.row.phase == .due)
        _ = machine.synced(applied: 9, isComplete: false, now: now)
        #expect(machine.row.phase == .none)
    }

    @Test func whoWasRemovedIsAlertedOfOtherConversationsAlone() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let phone = DeviceID(high: 2, low: 1)
        let left = try world.converse(["anna", "bob"])
        let stays = try world.converse(["carl", "bob"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)

        try world.publish("1", to: left, from: "anna")
        #expect(try pushes.run(0) == ["silent"])
        try world.publish("still here", to: stays, from: "carl")
        for text in ["2", "3", "4", "5"] { try world.publish(text, to: left, from: "anna") }
        try world.remove(["bob"], from: left)
        #expect(try pushes.run(61_000) == [#"alert "still here" badge 1 stored"#])
    }

    /// The number is of messages that are still to be seen somewhere.
    @Test(arguments: ["removed", "muted"])
    func whatIsOverIsNoneOfTheOthersOfAnAlert(_ how: String) throws {
        let over = try world.converse(["a", "b"])
        let stays = try world.converse(["c", "b"])
        _ = try asleep("b")
        for text in ["1", "2", "3"] { try world.publish(text, to: over, from: "a") }
        let told = try pushes.run(61_000)
        #expect(told.contains { $0.hasPrefix(#"alert "3 (and 2 more)""#) }, "\(told)")
        if how == "removed" {
            try world.remove(["b"], from: over)
        } else {
            let tablet = try pushes.open("b", DeviceID(high: 2, low: 2), token: 2).session
            try world.mutate(
                tablet, 1, .muteConversation(MuteConversation(conversation: over, muted: true)))
        }
        try pushes.run(61_000)
        try world.publish("4", to: stays, from: "c")
        let next = try pushes.run(61_000)
        #expect(next.contains { $0.hasPrefix(#"alert "4" badge 1"#) }, "\(next)")
    }

    @Test func anAlertThatWaitsGoesWithItsReadersMembership() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let phone = DeviceID(high: 2, low: 1)
        let left = try world.converse(["anna", "bob"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)

        try world.publish("1", to: left, from: "anna")
        #expect(try pushes.run(61_000) == ["silent", #"alert "1" badge 1 stored"#])
        try world.publish("2", to: left, from: "anna")
        let phases = try world.all(AlertRecord.self).map(\.phase)
        #expect(phases == [AlertPhase.sent, .queued])
        try world.remove(["bob"], from: left)
        let after = try pushes.run(60_000)
        #expect(!after.contains { $0.hasPrefix("alert") }, "\(after)")
    }
}
