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

    @Test("few clients are spread as well, and a drain without time is no trap")
    func few() {
        #expect((0..<3).map { DrainSlots.slot($0, of: 3, within: 30) } == [0, 10, 20])
        #expect(DrainSlots.slot(0, of: 1, within: 0) == 0)
        #expect(DrainSlots.slot(2, of: 3, within: .max) < .max)
    }
}
