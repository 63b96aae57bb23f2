import Model
import Testing

@testable import Scenario

@Suite struct ReplayLedgerTests {
    func id(_ number: UInt64) -> MessageID { MessageID(high: 0, low: number) }

    /// Two devices; the first sends two acknowledged messages after both have joined.
    func ledger() -> ReplayLedger {
        var ledger = ReplayLedger()
        for _ in 0..<2 { ledger.added(ledger.addDevice(), at: 10) }
        for number in UInt64(1)...2 {
            ledger.sent(id(number), by: 0, at: 10 + number)
            ledger.answered(id(number), position: number, at: 20)
        }
        return ledger
    }

    @Test("everything applied once and in order is a clean run")
    func clean() {
        var ledger = ledger()
        for device in 0..<2 {
            for number in UInt64(1)...2 {
                ledger.applied(device, id(number), position: number, at: 30)
            }
        }
        #expect(ledger.verdict().lost == 0 && ledger.verdict().duplicated == 0)
        #expect(ledger.outOfOrder == 0 && ledger.acknowledged == 2)
        #expect(ledger.delays(atShares: [0.99]) == [19] && ledger.deliveries == 4)
    }

    @Test("a message missing on one device is lost, whatever the server says of joining")
    func lost() {
        var ledger = ledger()
        ledger.joined(1, position: 99)
        ledger.applied(0, id(1), position: 1, at: 30)
        ledger.applied(0, id(2), position: 2, at: 30)
        ledger.applied(1, id(2), position: 2, at: 30)
        #expect(ledger.verdict().lost == 1 && ledger.verdict().missing == [1])
    }

    @Test("what a killed app could not tell of is found in its store, and nobody's delay")
    func found() {
        var ledger = ledger()
        let tablet = ledger.addDevice(of: 0)
        for number in UInt64(1)...2 {
            for device in [0, tablet] {
                ledger.applied(device, id(number), position: number, at: 30)
            }
            ledger.found(1, id(number), position: number, at: 40)
            ledger.found(1, id(number), position: number, at: 40)
        }
        #expect(ledger.verdict().lost == 0 && ledger.verdict().duplicated == 0)
        #expect(ledger.delays(atShares: [0.99]) == [0])
        // What tells of it after all comes once.
        ledger.applied(1, id(1), position: 1, at: 90)
        #expect(ledger.verdict().duplicated == 0 && ledger.outOfOrder == 0)
        ledger.applied(1, id(1), position: 1, at: 91)
        #expect(ledger.verdict().duplicated == 1)
        // On the tablet they are the own ones, as on the phone.
        #expect(ledger.others(on: tablet).isEmpty && ledger.others(on: 1).count == 2)
        #expect(ledger.user(of: tablet) == 0 && ledger.position(of: id(2)) == 2)
    }

    @Test("an app that was ended with the answer to its own line has it in its store")
    func foundAnswer() {
        var ledger = ledger()
        ledger.sent(id(7), by: 0, at: 30)
        #expect(ledger.unacknowledged == 1)
        // Somebody else's holding it says nothing of what its sender was told.
        ledger.found(1, id(7), position: 3, at: 40)
        #expect(ledger.unacknowledged == 1 && ledger.position(of: id(7)) == nil)
        ledger.found(0, id(7), position: 3, at: 40)
        #expect(ledger.unacknowledged == 0 && ledger.position(of: id(7)) == 3)
    }

    @Test("a message sent before the joining was acknowledged is owed by its position only")
    func before() {
        var ledger = ledger()
        let late = ledger.addDevice()
        ledger.added(late, at: 50)
        #expect(ledger.verdict().missing == [0, 1])
        ledger.joined(late, position: 1)
        #expect(ledger.verdict().missing == [0, 1, late])
    }

    @Test("twice is doubled, and also out of order")
    func doubled() {
        var ledger = ledger()
        ledger.applied(1, id(1), position: 1, at: 30)
        ledger.applied(1, id(1), position: 1, at: 31)
        #expect(ledger.verdict().duplicated == 1 && ledger.outOfOrder == 2)
    }

    @Test("falling positions, and one sender's lines swapped, are out of order")
    func order() {
        var ledger = ledger()
        ledger.applied(1, id(2), position: 1, at: 30)
        ledger.applied(1, id(1), position: 2, at: 30)
        #expect(ledger.outOfOrder == 1, "positions rise, the sender's order does not")
    }

    @Test("a refused line is neither acknowledged nor owed; an unanswered one is told")
    func refused() {
        var ledger = ledger()
        ledger.sent(id(3), by: 1, at: 40)
        #expect(ledger.unacknowledged == 1)
        ledger.answered(id(3), position: 0, at: 41)
        #expect(ledger.unacknowledged == 0 && ledger.refused == 1 && ledger.acknowledged == 2)
    }

    @Test("what a device slept through does not count as delay to open apps")
    func sleepers() {
        var ledger = ledger()
        ledger.opened(1, at: 10)
        ledger.applied(1, id(1), position: 1, at: 31)
        ledger.slept(1)
        ledger.opened(1, at: 50)
        ledger.applied(1, id(2), position: 2, at: 92)
        #expect(ledger.delays(atShares: [0, 0.99]) == [20, 80])
        #expect(ledger.delays(atShares: [0, 0.99], awake: true) == [20, 20])
    }

    @Test("the longest delay to an open app is told once, with who sent and when it was answered")
    func longest() {
        var ledger = ledger()
        ledger.opened(1, at: 10)
        ledger.applied(1, id(1), position: 1, at: 31)
        ledger.applied(1, id(2), position: 2, at: 92)
        let longest = ledger.takeLongestDelay()
        #expect(longest.milliseconds == 80 && longest.sender == 0 && longest.device == 1)
        #expect(longest.median == 80 && longest.acknowledged != nil)
        #expect(ledger.takeLongestDelay().milliseconds == 0)
    }
}
