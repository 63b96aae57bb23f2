import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// The sentences of Protocol/wake-rules.md about how many alerts a device gets.
@Suite struct AlertRateTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    /// A phone that missed a wake, with one alert on its screen, a quiet while ago.
    private func unreachable() throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(62_000).count == 2)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.run(120_000)
        return (pushes, room)
    }

    @Test func fiveAlertsThenOneSummaryAMinute() throws {
        let (pushes, room) = try unreachable()
        var words: [String] = []
        for number in 1...20 {
            try pushes.say("\(number)", in: room)
            words += try pushes.run(1_000)
        }
        #expect(
            words == [
                #"alert "1 (and 1 more)" badge 2 stored"#,
                #"alert "2 (and 2 more)" badge 3 stored"#,
                #"alert "3 (and 3 more)" badge 4 stored"#,
                #"alert "4 (and 4 more)" badge 5 stored"#,
                #"alert "5 (and 5 more)" badge 6 stored"#,
            ])
        #expect(try pushes.run(43_000) == [])
        // A minute after the last one: the newest, for all of them.
        #expect(try pushes.run(3_000) == [#"alert "20 (and 20 more)" badge 21 stored"#])
        #expect(Set(try pushes.world.all(AlertRecord.self).map(\.phase)) == [.sent])
        try pushes.say("21", in: room)
        #expect(try pushes.run(55_000) == [])
        #expect(try pushes.run(10_000) == [#"alert "21 (and 21 more)" badge 22 stored"#])
    }

    @Test func aSummaryIsSentAsTheNewestMessageItCovers() throws {
        let (pushes, room) = try unreachable()
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        let newest = try pushes.say("8", in: room)
        #expect(try pushes.run(0).count == 5)
        try pushes.run(61_000)
        let summary = try #require(pushes.sent.last)
        #expect(summary.request.collapseID == newest.message.description)
        let row = try #require(
            try pushes.world.all(AlertRecord.self).first { $0.message == newest.message })
        #expect(row.push == summary.request.id)
        // The others it covers became sent with it.
        let others = try pushes.world.all(AlertRecord.self).filter { $0.push == row.push }
        #expect(others.map(\.phase) == [.sent, .sent, .sent])
        #expect(others.allSatisfy { $0.sentAt == row.sentAt })
        #expect(try pushes.world.all(WakeRecord.self).map(\.alertsQueued) == [0])
    }

    @Test func whoIsBlockedRingsNoMore() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["carl", "bob"])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.say("from anna", in: room)
        try pushes.acknowledge(other, try pushes.head("bob"))
        // It waits when its sender is blocked.
        try pushes.world.mutate(other, 1, .blockUser(BlockUser(user: "anna", blocked: true)))
        #expect(try pushes.run(2_000) == [])
        // A block takes nothing back: it counts as unread.
        try pushes.say("from carl", in: side, from: "carl")
        let words = try pushes.run(0)
        #expect(words.count == 1 && words[0].contains(#""from carl"#), "\(words)")
        #expect(words.first?.contains("badge 3") ?? false, "\(words)")
    }

    /// A claim that exceeds its ceiling of rows ends the test.
    @Test func hundredsFromSomebodyWhoIsBlockedHoldUpNothing() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["carl", "bob"])
        let other = try pushes.open("bob", tablet, token: 2).session
        for number in 1...6 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(0).count == 5)
        for number in 7...260 { try pushes.say("\(number)", in: room) }
        try pushes.say("from carl", in: side, from: "carl")
        try pushes.acknowledge(other, try pushes.head("bob"))
        try pushes.world.mutate(other, 1, .blockUser(BlockUser(user: "anna", blocked: true)))
        let words = try pushes.run(70_000)
        #expect(words.count == 1 && words[0].contains("from carl"), "\(words)")
    }

    /// It left before it was read: whatever its answer finds, it is on the screen.
    @Test func whatIsReadWhileItsPushIsUnderWayIsTakenFromTheScreen() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["carl", "bob"])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.say("stays", in: side, from: "carl")
        #expect(try pushes.run(0).count == 1)
        try pushes.say("is read", in: room)
        let job = try #require(try pushes.claim().first { $0.key.device == phone })
        let head = try pushes.head("bob")
        try pushes.acknowledge(
            other, head, reads: [ReadReceipt(conversation: room, through: head)])
        try pushes.finish(job)
        let words = try pushes.run(2_000)
        #expect(words == [#"badge "stays" badge 1 stored"#], "in the place of what was read")
    }

    @Test func conversationsAreSummedUpApart() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["anna", "bob"])
        for number in 1...8 { try pushes.say("a\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        // Nothing of this one was told in the last minute.
        try pushes.say("b1", in: side)
        try pushes.say("b2", in: side)
        #expect(try pushes.run(0) == [#"alert "b2 (and 10 more)" badge 11 stored"#])
        #expect(try pushes.run(50_000) == [])
        #expect(try pushes.run(10_000) == [#"alert "a8 (and 8 more)" badge 11"#])
    }

    @Test func aFaultOfAPNsCostsNoSummaryItsMinute() throws {
        let (pushes, room) = try unreachable()
        let rooms = try (0..<10).map { _ in try pushes.world.converse(["anna", "bob"]) }
        for number in 0..<50 { try pushes.say("\(number)", in: rooms[number % 10]) }
        // With the one before them 12 in this hour: one a minute now.
        #expect(try pushes.run(62_000).count == 11)
        let fault = PushReply.answered(
            status: 503, reason: "ServiceUnavailable", timestamp: nil)
        var refused: [String] = []
        while refused.isEmpty { refused = try pushes.run(1_000, answering: { _ in fault }) }
        #expect(try pushes.run(6_000).count == 1)
        // The next keeps its distance from the one that APNs took, and there is none beside it.
        try pushes.say("next", in: room)
        #expect(try pushes.run(50_000) == [])
        while try pushes.claim().isEmpty {
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        let next = try #require(pushes.sent.last)
        try pushes.say("more", in: room)
        for _ in 0..<8 {
            pushes.world.pass(1_000)
            try pushes.tick()
            #expect(try pushes.claim().isEmpty)
        }
        try pushes.finish(next)
        #expect(try pushes.run(58_000) == [])
        #expect(try pushes.run(3_000).count == 1)
    }

    @Test func aQuietMinuteBeginsANewBurst() throws {
        let (pushes, room) = try unreachable()
        for number in 1...6 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(61_000).count == 6)
        try pushes.run(60_000)
        for number in 7...9 {
            try pushes.say("\(number)", in: room)
            #expect(try pushes.run(1_000).count == 1)
        }
    }

    @Test func anUrgentAlertDoesNotWaitForTheMinute() throws {
        let (pushes, room) = try unreachable()
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        try pushes.say("now", in: room, .urgent)
        #expect(try pushes.run(0) == [#"alert "now (and 8 more)" badge 9 stored"#])
        // What waits is older than what APNs stores: it must not take the slot.
        #expect(try pushes.run(62_000) == [#"alert "7 (and 7 more)" badge 9"#])
    }

    @Test func anAlertReadMeanwhileIsNotInTheSummary() throws {
        let (pushes, room) = try unreachable()
        for number in 1...8 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [
                ReadReceipt(
                    conversation: room, through: 0,
                    ranges: [InclusiveRange(first: 9, last: 9)])
            ])
        try pushes.run(3_000)
        #expect(try pushes.run(60_000) == [#"alert "7 (and 7 more)" badge 8 stored"#])
    }

    /// What a phone shows that is demoted while seven messages wait.
    private func expectDemotionOfSeven(_ pushes: Pushes) throws {
        #expect(
            try pushes.run(3_000) == [
                #"alert "4 (and 3 more)" badge 7 stored"#, #"alert "5" badge 7 stored"#,
                #"alert "6" badge 7 stored"#, #"alert "7 (and 6 more)" badge 7 stored"#,
            ])
        #expect(
            try pushes.world.all(AlertRecord.self).map(\.phase) == Array(repeating: .sent, count: 7)
        )
    }

    @Test func demotionSumsUpAllButTheNewestThree() throws {
        let (pushes, room) = try Pushes.sleeping()
        let side = try pushes.world.converse(["anna", "bob"])
        for number in 1...7 { try pushes.say("\(number)", in: number % 2 == 0 ? side : room) }
        #expect(try pushes.run(59_000) == ["silent"])
        try expectDemotionOfSeven(pushes)
        // DELTA marks all of them: the client adds no sound for any.
        let marks = try pushes.world.page("bob", device: phone).entries.map(\.alerted)
        #expect(marks.filter { $0 }.count == 7)
    }

    @Test func anEditTakesNoMessageOutOfTheCountOfADemotion() throws {
        let (pushes, room) = try Pushes.sleeping()
        let messages = try (1...7).map { try pushes.say("\($0)", in: room) }
        for job in try pushes.claim() { try pushes.finish(job) }
        for _ in 0..<31 {
            pushes.world.pass(2_000)
            try pushes.tick()
        }
        #expect(try pushes.view(phone).reachability == .unreachable)
        // One of those that are counted stands above all others of the feed now.
        try pushes.world.edit(messages[1].message, "two")
        try expectDemotionOfSeven(pushes)
        // The newest that was shown is read: that is what the icon's push takes off the screen.
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [
                ReadReceipt(
                    conversation: room, through: 0,
                    ranges: [InclusiveRange(first: 7, last: 7)])
            ])
        #expect(try pushes.run(3_000).last?.hasSuffix("badge 6 stored") ?? false)
    }

    @Test func anEditedMessageIsInTheCountOfItsConversationsSummary() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["anna", "bob"])
        for number in 1...5 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(0).count == 5)
        var messages: [MessageRecord] = []
        for number in 6...9 {
            messages.append(try pushes.say("\(number)", in: room))
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        try pushes.say("side", in: side)
        try pushes.world.edit(messages[1].message, "seven")
        let words = try pushes.run(62_000)
        #expect(words.last?.hasPrefix(#"alert "9 (and 9 more)""#) ?? false, "\(words)")
    }

    @Test func aSummaryTellsNothingOfWhatCameAfterItsClaim() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("timed", in: room, pushes.at(62_000))
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(0).count == 5)
        while try pushes.claim().isEmpty {
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        let summary = try #require(pushes.sent.last)
        #expect(summary.word == #"alert "7 (and 7 more)" badge 9 stored"#)
        // While it is under way an older message comes to its time, the summary's own moves up in
        // the feed, and another message comes.
        pushes.world.pass(3_000)
        try pushes.tick()
        let newest = try #require(summary.request.collapseID.flatMap { MessageID(text: $0) })
        try pushes.world.edit(newest, "seven")
        try pushes.say("8", in: room)
        try pushes.finish(summary)
        let words = try pushes.run(62_000)
        #expect(words == [#"alert "8 (and 9 more)" badge 10 stored"#])
        let messages = try pushes.world.all(MessageRecord.self)
        for body in ["timed", "8"] {
            let message = try #require(messages.first { $0.pushBody == body }).message
            let row = try #require(
                try pushes.world.all(AlertRecord.self).first { $0.message == message })
            #expect(row.push != summary.request.id)
        }
    }

    @Test func aDemotionsSummaryThatIsReadFallsToTheNextNewest() throws {
        let (pushes, room) = try Pushes.sleeping()
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        let silent = try pushes.claim()
        for job in silent { try pushes.finish(job) }
        for _ in 0..<31 {
            pushes.world.pass(2_000)
            try pushes.tick()
        }
        #expect(try pushes.view(phone).reachability == .unreachable)
        // The fourth is deleted before its turn; its deletion is on its way.
        let messages = try pushes.world.all(MessageRecord.self).sorted { $0.position < $1.position }
        try pushes.world.tamper { transaction throws(StoreError) in
            var message = messages[3]
            message.pushBody = ""
            try transaction.put(message)
        }
        #expect(try pushes.run(0).first == #"alert "3 (and 2 more)" badge 7 stored"#)
    }

    @Test func aDemotionsSummaryThatIsRefusedFallsToTheNextNewest() throws {
        let (pushes, room) = try Pushes.sleeping()
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        for job in try pushes.claim() { try pushes.finish(job) }
        for _ in 0..<31 {
            pushes.world.pass(2_000)
            try pushes.tick()
        }
        let summary = try #require(try pushes.claim().first)
        #expect(summary.word == #"alert "4 (and 3 more)" badge 7 stored"#)
        try pushes.finish(
            summary, .answered(status: 413, reason: "PayloadTooLarge", timestamp: nil))
        // Those it would have told of are told by another.
        #expect(try pushes.run(2_000).first == #"alert "3 (and 2 more)" badge 7 stored"#)
        let phases = try pushes.world.all(AlertRecord.self).map(\.phase)
        #expect(phases.count { $0 == .sent } == 6 && phases.count { $0 == .cancelled } == 1)
        let row = try #require(try pushes.world.all(WakeRecord.self).first)
        #expect(row.alertsQueued == 0 && row.alertsOpen == 6)
    }

    @Test func anUnansweredSummaryIsDecidedAgain() throws {
        let (pushes, room) = try unreachable()
        for number in 1...7 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(58_000).count == 5)
        pushes.world.pass(2_000)
        try pushes.tick()
        let job = try #require(try pushes.claim().first)
        #expect(job.word == #"alert "7 (and 7 more)" badge 8 stored"#)
        try pushes.finish(job, .unanswered)
        try pushes.say("8", in: room)
        // The same push is not repeated for what it does not name any more.
        #expect(try pushes.run(6_000).last == #"alert "8 (and 8 more)" badge 9 stored"#)
        #expect(try pushes.world.all(WakeRecord.self).map(\.alertsQueued) == [0])
    }

    @Test func anOlderAlertDoesNotTakeTheSlotOfANewer() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        let job = try #require(try pushes.claim().first)
        try pushes.finish(job, .notSent)
        try pushes.say("2", in: room, .urgent)
        let newer = try #require(try pushes.claim().first)
        #expect(newer.word == #"alert "2 (and 2 more)" badge 3 stored"#)
        try pushes.finish(newer)
        #expect(try pushes.run(2_000) == [#"alert "1" badge 3"#])
        // Once the newer is read, the older may be stored again.
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [
                ReadReceipt(
                    conversation: room, through: 0,
                    ranges: [InclusiveRange(first: 3, last: 3)])
            ])
        #expect(try pushes.run(3_000) == [#"badge "1 (and 1 more)" badge 2 stored"#])
    }

    @Test func aDeviceInManyConversationsIsNotRungTwentyTimesAMinute() throws {
        let (pushes, room) = try unreachable()
        let rooms = try (0..<10).map { _ in try pushes.world.converse(["anna", "bob"]) }
        for number in 0..<50 { try pushes.say("\(number)", in: rooms[number % 10]) }
        // With the one before them 12 in this hour.
        #expect(try pushes.run(62_000).count == 11)
        // All are told in the end, the rest by one that speaks for the whole device.
        let rest = try pushes.run(62_000)
        #expect(rest.count == 1, "\(rest)")
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
        // An hour of it: one a minute, and then one in five.
        for minute in 0..<56 {
            for number in 0..<10 { try pushes.say("\(minute)", in: rooms[number]) }
            try pushes.run(60_000)
        }
        #expect(pushes.sent.count { $0.kind == .alert } <= 40)
        #expect(pushes.sent.count { $0.kind == .alert } >= 30)
        // An urgent one rings whatever was before.
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(0).first?.contains("fire") ?? false)
    }
}
