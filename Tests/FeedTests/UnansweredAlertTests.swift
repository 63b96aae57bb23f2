import Feed
import Model
import Testing
import Wake
import Wire

/// An alert that APNs did not answer may be on the screen all the same.
@Suite struct UnansweredAlertTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    enum Order: CaseIterable {
        case answerFirst, readFirst, processDies
    }

    enum End: CaseIterable {
        case read, deleted
    }

    @Test(
        "what is read or deleted after an alert without an answer leaves the screen",
        arguments: Order.allCases, End.allCases)
    func whatWasNotAnsweredIsTakenFromTheScreen(_ order: Order, _ end: End) throws {
        let (pushes, room) = try Pushes.sleeping()
        let fire = try pushes.say("fire", in: room, .urgent)
        let job = try #require(try pushes.claim().first)
        func goOut() throws {
            switch end {
            case .deleted: try pushes.world.delete(fire.message)
            case .read:
                let other = try pushes.open("bob", tablet, token: 2).session
                try pushes.acknowledge(
                    other, try pushes.head("bob"),
                    reads: [ReadReceipt(conversation: room, through: fire.position)])
            }
        }
        switch order {
        case .answerFirst:
            try pushes.finish(job, .unanswered)
            try goOut()
        case .readFirst:
            try goOut()
            try pushes.finish(job, .unanswered)
        case .processDies: try goOut()
        }
        #expect(try pushes.run(62_000).first == "badge badge 0 stored")
    }

    /// What stands in APNs' slot by then is not known: it is replaced by what is still to be told.
    @Test func theSlotOfOneThatWasNotAnsweredIsReplaced() throws {
        let (pushes, room) = try Pushes.sleeping()
        let side = try pushes.world.converse(["anna", "bob"])
        try pushes.say("first", in: side, .urgent)
        #expect(try pushes.run(0).count == 1)
        let fire = try pushes.say("fire", in: room, .urgent)
        try pushes.finish(try #require(try pushes.claim().first), .unanswered)
        try pushes.world.delete(fire.message)
        #expect(try pushes.run(62_000).first == #"badge "first" badge 1 stored"#)
    }

    /// One that is sent again and answered needs no other push.
    @Test func oneThatIsAnsweredTheSecondTimeNeedsNoBadge() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("fire", in: room, .urgent)
        try pushes.finish(try #require(try pushes.claim().first), .unanswered)
        #expect(try pushes.run(62_000) == [#"alert "fire" badge 1 stored"#])
    }
}
