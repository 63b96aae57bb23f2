import Model
import Testing

@testable import SyncService

@Suite struct DrainSlotTests {
    @Test("CON-8: in no second of a drain more clients come back than in another")
    func spread() {
        var inSecond = [Int](repeating: 0, count: 20)
        for number in 0..<10_000 {
            let slot = DrainSlots.slot(number, of: 10_000, within: 20_000)
            #expect(slot < 20_000)
            inSecond[Int(slot / 1_000)] += 1
        }
        #expect(inSecond.allSatisfy { $0 == 500 }, "\(inSecond)")
    }

    @Test("who waits for the next process comes after its start, who goes elsewhere at once")
    func plans() {
        let now = Instant(milliseconds: 50_000)
        var restart = DrainPlan(ends: now + 5_000, isElsewhere: false)
        #expect(restart.next(of: 500, now: now) == (5_000, 7_000))
        #expect(restart.next(of: 500, now: now + 1_000) == (4_000, 6_004))
        var elsewhere = DrainPlan(ends: now + 5_000, isElsewhere: true)
        #expect(elsewhere.next(of: 500, now: now) == (5_000, DrainPlan.noticeTime))
        #expect(elsewhere.next(of: 500, now: now).slot == DrainPlan.noticeTime + 4)
        // A node that goes on closes nobody before the slot.
        var drained = DrainPlan(ends: nil, isElsewhere: true)
        for number in 0..<1_000 {
            let (deadline, slot) = drained.next(of: 1_000, now: now)
            #expect(slot == DrainPlan.noticeTime + UInt64(number) * 4 && deadline > slot)
        }
    }

    @Test("few clients are spread as well, and a drain without time is no trap")
    func few() {
        #expect((0..<3).map { DrainSlots.slot($0, of: 3, within: 30) } == [0, 10, 20])
        #expect(DrainSlots.slot(0, of: 1, within: 0) == 0)
        #expect(DrainSlots.slot(2, of: 3, within: .max) < .max)
    }
}
