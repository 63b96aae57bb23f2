import Model
import Testing

@testable import WorkingSet

/// A map in parts answers as one dictionary does, before and after it is divided.
@Suite struct PartedMapTests {
    private class Thing: Placed {
        let place: SortKey
        required init(_ place: SortKey) { self.place = place }
        class func spread(of place: SortKey) -> Int { place.spread }
    }

    /// One of few hashes for all places.
    private final class Crowded: Thing {
        override class func spread(of place: SortKey) -> Int { place.spread & 0x3ff << 54 }
    }

    private func key(_ number: UInt64) -> SortKey {
        SortKey([.text("app"), .text("user\(number % 3_000)"), .integer(Int64(number / 3_000))])
    }

    @Test("it holds what a dictionary holds, whatever is put in and taken out")
    func asADictionary() { isADictionary(of: Thing.self) }

    @Test("and so it does where many places have the same hash")
    func crowded() { isADictionary(of: Crowded.self) }

    private func isADictionary<Value: Thing>(of type: Value.Type) {
        var random = SplitMix64(seed: 7)
        let map = PartedMap<Value>()
        var model: [SortKey: Value] = [:]
        var most = 0
        for round in 0..<30_000 {
            let key = key(random.next() % 6_000)
            // It grows, is divided, and becomes empty but for a few.
            if random.next() % 8 < (round < 20_000 ? 6 : 1) {
                let value = Value(key)
                #expect(map.set(value) === model.updateValue(value, forKey: key))
            } else {
                #expect(map.remove(key) === model.removeValue(forKey: key))
            }
            most = max(most, map.count)
            #expect(map.count == model.count && map.isEmpty == model.isEmpty)
        }
        #expect(most > 2 * PartedMap<Value>.wholeCount)
        for number in UInt64(0)..<6_000 {
            #expect(map[key(number)] === model[key(number)])
        }
    }
}
