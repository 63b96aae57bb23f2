import APNsSimulator
import Model
import Testing

@testable import Scenario

/// The judge of screens, by what it says of right phones and of wrong ones.
@Suite struct ScreenWatchTests {
    func id(_ number: UInt64) -> MessageID { MessageID(high: 0, low: number) }

    /// A sleeping phone on which a wake has brought two messages.
    func woken() -> ScreenWatch {
        var watch = ScreenWatch()
        watch.state(0, isInFront: false)
        watch.applied(0, id(1), position: 1)
        watch.applied(0, id(2), position: 2)
        return watch
    }

    @Test("a wake that told of all is right, and one that was done before it had told is not")
    func completion() {
        var right = woken()
        for number in UInt64(1)...2 {
            right.shown(0, id(number), isLocal: true, isQuiet: false)
        }
        right.completed(0) { _ in false }
        #expect(right.untold == 0 && right.shownTwice == 0 && right.details.isEmpty)
        var wrong = woken()
        wrong.shown(0, id(1), isLocal: true, isQuiet: false)
        wrong.completed(0) { _ in false }
        wrong.shown(0, id(2), isLocal: true, isQuiet: false)
        #expect(wrong.untold == 1 && wrong.details.count == 1)
    }

    @Test("what a wake failed to tell, the one that goes on may tell; one that claims it must have")
    func anotherGoesOn() {
        var right = woken()
        right.completed(0, "failed", open: 1) { _ in false }
        for number in UInt64(1)...2 {
            right.shown(0, id(number), isLocal: true, isQuiet: false)
        }
        right.completed(0, "no_data") { _ in false }
        #expect(right.untold == 0)
        var wrong = woken()
        wrong.completed(0, "failed", open: 1) { _ in false }
        wrong.shown(0, id(1), isLocal: true, isQuiet: false)
        wrong.completed(0, "failed") { _ in false }
        #expect(wrong.untold == 1)
        var claims = woken()
        claims.completed(0, "new_data", open: 1) { _ in false }
        #expect(claims.untold == 2)
    }

    @Test("nobody is owed what is read, what was alerted with a newer one, or what is in front")
    func notOwed() {
        var read = woken()
        read.completed(0) { $0 <= 2 }
        #expect(read.untold == 0)
        var alerted = ScreenWatch()
        alerted.placed(id(2), at: 2)
        alerted.shown(0, id(2), isLocal: false, isQuiet: false)
        alerted.applied(0, id(1), position: 1)
        alerted.applied(0, id(2), position: 2)
        alerted.completed(0) { _ in false }
        #expect(alerted.untold == 0)
        var inFront = woken()
        inFront.state(0, isInFront: true)
        inFront.applied(0, id(3), position: 3)
        inFront.completed(0) { _ in false }
        #expect(inFront.untold == 0)
        var reset = ScreenWatch()
        reset.reset(0)
        reset.applied(0, id(1), position: 1)
        reset.completed(0) { _ in false }
        reset.applied(0, id(2), position: 2)
        reset.completed(0) { _ in false }
        #expect(reset.untold == 1)
        var cut = ScreenWatch()
        cut.reset(0)
        cut.applied(0, id(1), position: 1)
        cut.completed(0, "failed") { _ in false }
        cut.applied(0, id(2), position: 2)
        cut.completed(0, "new_data") { _ in false }
        #expect(cut.untold == 0)
        cut.applied(0, id(3), position: 3)
        cut.completed(0, "new_data") { _ in false }
        #expect(cut.untold == 1)
    }

    @Test("a message is told once by each phone; a place taken without a sound tells nothing")
    func twice() {
        var watch = woken()
        watch.shown(0, id(1), isLocal: false, isQuiet: false)
        watch.shown(0, id(1), isLocal: false, isQuiet: true)
        watch.shown(1, id(1), isLocal: false, isQuiet: false)
        #expect(watch.shownTwice == 0)
        watch.shown(0, id(1), isLocal: true, isQuiet: false)
        #expect(watch.shownTwice == 1 && watch.details.count == 1)
    }

    @Test("at the end nothing stands there that is read, nothing twice, and the icon is right")
    func end() {
        func shown(_ number: UInt64, as identifier: String? = nil) -> ScreenNotification {
            ScreenNotification(
                identifier: identifier ?? id(number).description, title: "", body: "",
                threadID: nil, shownAtMs: 0, isLocal: true, object: id(number).description)
        }
        var tally = ScreenTally()
        let unread: Set = [id(1), id(2)]
        tally.judge(
            PhoneScreen(notifications: [shown(1)], icon: 2), of: 0, holding: unread)
        #expect(tally.wrong.isEmpty && tally.stale == 0 && tally.wrongIcons.isEmpty)
        tally.judge(
            PhoneScreen(notifications: [shown(1), shown(3)], icon: 2), of: 1, holding: unread)
        #expect(tally.wrong == [1] && tally.stale == 1 && tally.wrongIcons.isEmpty)
        tally.judge(
            PhoneScreen(notifications: [shown(1), shown(1, as: "x")], icon: 1), of: 2,
            holding: unread)
        #expect(tally.wrong == [1, 2] && tally.stale == 1 && tally.wrongIcons == [2])
        #expect(tally.judged == 3 && tally.details.count == 2)
    }

    @Test("an icon of 999 is right for whatever is more, and no other number is")
    func manyUnread() {
        let unread = Set((1...1_001).map { id($0) })
        for (icon, isRight) in [(UInt64(999), true), (1_000, false), (1_001, false), (998, false)] {
            var tally = ScreenTally()
            tally.judge(PhoneScreen(notifications: [], icon: icon), of: 0, holding: unread)
            #expect(tally.wrongIcons.isEmpty == isRight, "\(icon)")
        }
    }

    @Test("what a user has read is everything below a mark, and single ones above it")
    func marks() {
        var marks = ReadMarks()
        marks.read(only: 7)
        marks.read(through: 3)
        #expect([1, 3, 7].allSatisfy { marks.contains($0) })
        #expect([4, 6, 8].allSatisfy { !marks.contains($0) })
        marks.read(through: 8)
        marks.read(only: 2)
        #expect(marks.contains(8) && !marks.contains(9))
    }

    @Test("apps are killed over the whole log, and one that is not woken holds nobody up")
    func kills() {
        var kills = PhoneKills(wanted: 4, seed: 1)
        #expect(kills.next(share: 0, among: []) == nil)
        let first = kills.next(share: 0, among: [3, 4])
        #expect(first != nil)
        kills.killed(first?.device ?? -1)
        kills.killed(9)
        #expect(kills.count == 1)
        #expect(kills.next(share: 0.1, among: [3, 4]) == nil)
        for _ in 0..<9 {
            if let next = kills.next(share: 1, among: [3, 4, 5]) { kills.killed(next.device) }
        }
        #expect(kills.count == 4)
    }
}
