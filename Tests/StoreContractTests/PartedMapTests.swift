import Model
import Testing

@testable import WorkingSet

/// A map in parts answers as one dictionary does, before and after it is divided.
@Suite struct PartedMapTests {
    private func key(_ number: UInt64) -> SortKey {
        SortKey([.text("app"), .text("user\(number % 3_000)"), .integer(Int64(number / 3_000))])
    }

    @Test("it holds what a dictionary holds, whatever is put in and taken out")
    func asADictionary() {
        var random = SplitMix64(seed: 7)
        var map = PartedMap<UInt64>()
        var model: [SortKey: UInt64] = [:]
        var most = 0
        for round in 0..<30_000 {
            let key = key(random.next() % 6_000)
            // It grows, is divided, and becomes empty but for a few.
            if random.next() % 8 < (round < 20_000 ? 6 : 1) {
                let value = random.next()
                #expect(map.set(value, at: key) == model.updateValue(value, forKey: key))
            } else {
                #expect(map.remove(key) == model.removeValue(forKey: key))
            }
            most = max(most, map.count)
            #expect(map.count == model.count && map.isEmpty == model.isEmpty)
        }
        #expect(most > 2 * PartedMap<UInt64>.wholeCount)
        for number in UInt64(0)..<6_000 {
            #expect(map[key(number)] == model[key(number)])
        }
    }

    @Test(
        "keys as rows have them are spread over all parts",
        arguments: ["numbers", "names", "identifiers", "places"])
    func spread(_ kind: String) {
        var random = SplitMix64(seed: 11)
        var counts = [Int](repeating: 0, count: 64)
        for number in Int64(0)..<64_000 {
            let key =
                switch kind {
                case "numbers": SortKey([.text("app"), .text("alice"), .integer(number)])
                case "names": SortKey([.text("app"), .text("user-\(number)")])
                case "identifiers":
                    SortKey([.text("app"), .identifier(MessageID(high: 5, low: random.next()))])
                default:
                    SortKey([
                        .text("app"), .identifier(ConversationID(high: random.next(), low: 1)),
                        .text("user-\(number % 10)"),
                    ])
                }
            counts[Int(key.spread >> 58)] += 1
        }
        // A thousand each; by chance they differ by about a hundred.
        #expect(counts.allSatisfy { (800...1_200).contains($0) }, "\(counts)")
    }
}
