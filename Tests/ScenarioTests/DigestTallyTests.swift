import APNsSimulator
import Testing

@testable import Scenario

@Suite struct DigestTallyTests {
    func facts(
        _ isComparable: Bool = true, equal isEqual: Bool = true
    ) -> SimulatorEvent.DigestFacts {
        SimulatorEvent.DigestFacts(
            isComparable: isComparable, isEqual: isEqual, objects: 3, entries: 5,
            conversations: 1, messages: 2)
    }

    @Test("all are asked once, and the end is when all have answered")
    func all() {
        var tally = DigestTally()
        #expect(tally.next(devices: 2, now: 0) == [0, 1])
        #expect(tally.next(devices: 2, now: 5) == [])
        tally.heard(facts(), from: 1, now: 6)
        #expect(tally.next(devices: 2, now: 7) == [])
        tally.heard(facts(), from: 0, now: 8)
        #expect(tally.next(devices: 2, now: 9) == nil)
        #expect(tally.equal.count == 2 && tally.unequal.isEmpty)
        #expect(tally.objects == 6 && tally.entries == 10 && tally.messages == 4)
    }

    @Test("a comparison that says nothing is made again, and so is one without an answer")
    func again() {
        var tally = DigestTally()
        #expect(tally.next(devices: 2, now: 0) == [0, 1])
        tally.heard(facts(false), from: 0, now: 10)
        #expect(tally.next(devices: 2, now: 10 + DigestTally.pause - 1) == [])
        #expect(tally.next(devices: 2, now: 10 + DigestTally.pause) == [0])
        #expect(tally.next(devices: 2, now: DigestTally.answerTime) == [1])
        #expect(tally.equal.isEmpty && tally.unequal.isEmpty)
    }

    @Test("a device once unequal stays so, also if the server asked before the end")
    func unequal() {
        var tally = DigestTally()
        tally.heard(facts(equal: false), from: 1, now: 0)
        #expect(tally.next(devices: 2, now: 0) == [0, 1])
        tally.heard(facts(equal: false), from: 0, now: 1)
        tally.heard(facts(), from: 1, now: 1)
        #expect(tally.next(devices: 2, now: 2) == nil)
        #expect(tally.unequal == [0, 1])
        #expect(tally.equal.keys.sorted() == [1])
    }

    @Test("devices that never answer are given up, and few are asked at once")
    func silence() {
        var tally = DigestTally()
        #expect(tally.next(devices: 100, now: 0)?.count == DigestTally.inFlightMax)
        #expect(tally.next(devices: 100, now: DigestTally.patience - 1) != nil)
        #expect(tally.next(devices: 100, now: DigestTally.patience) == nil)
        #expect(tally.equal.isEmpty)
    }
}
