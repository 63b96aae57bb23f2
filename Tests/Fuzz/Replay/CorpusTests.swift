import Foundation
import Testing

/// The inputs the fuzzers kept, through the same functions: what once broke stays mended, and
/// what was reached is reached in every run. `Deploy/fuzz` finds new ones.
@Suite struct CorpusTests {
    static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("corpus")

    static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let folder = corpus.appendingPathComponent(target.rawValue)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            ($0, [UInt8](try Data(contentsOf: folder.appendingPathComponent($0))))
        }
    }

    @Test("each kept input keeps the rules of its target", arguments: FuzzTarget.allCases)
    func inputsKeepTheRules(_ target: FuzzTarget) throws {
        let inputs = try Self.inputs(of: target)
        #expect(inputs.count >= 10, "\(target): a corpus of \(inputs.count) inputs")
        for (name, bytes) in inputs {
            do throws(Violation) {
                try target.run(bytes)
            } catch {
                Issue.record("\(target)/\(name): \(error)")
            }
        }
    }

    @Test(
        "kept inputs with a few bytes changed keep the rules: another stretch in every run",
        arguments: FuzzTarget.allCases)
    func mutantsKeepTheRules(_ target: FuzzTarget) throws {
        let seed =
            ProcessInfo.processInfo.environment["ROUSE_SEED"].flatMap { UInt64($0) }
            ?? UInt64.random(in: 0...UInt64(UInt32.max))
        print("seed \(seed): repeat with ROUSE_SEED=\(seed)")
        var chance = Chance(state: seed)
        let inputs = try Self.inputs(of: target).map(\.bytes)
        for number in 0..<1_000 {
            var input = inputs[chance.below(inputs.count)]
            for _ in 0...chance.below(4) {
                chance.change(&input, with: inputs[chance.below(inputs.count)])
            }
            do throws(Violation) {
                try target.run(Array(input.prefix(target.inputBytesMax)))
            } catch {
                Issue.record("\(target), mutant \(number): \(error)\n\(input)")
                return
            }
        }
    }

    @Test("the kept corpus is small")
    func corpusIsSmall() throws {
        let files = FileManager.default.enumerator(
            at: Self.corpus, includingPropertiesForKeys: [.fileSizeKey])
        var bytes = 0
        while let file = files?.nextObject() as? URL {
            bytes += try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
        }
        #expect((1...2 << 20).contains(bytes), "\(bytes) bytes")
    }
}

/// SplitMix64, and what it does to an input.
private struct Chance {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func below(_ count: Int) -> Int { Int(next() % UInt64(max(1, count))) }

    mutating func change(_ input: inout [UInt8], with other: [UInt8]) {
        let place = below(input.count + 1)
        let byte = UInt8(truncatingIfNeeded: next())
        switch below(5) {
        case 0 where place < input.count: input[place] = byte
        case 1 where place < input.count: input[place] ^= 1 << (byte & 7)
        case 2: input.insert(byte, at: place)
        case 3 where place < input.count:
            input.removeSubrange(place..<min(input.count, place + 1 + Int(byte & 15)))
        default:
            let start = below(other.count + 1)
            input.insert(contentsOf: other[start..<min(other.count, start + 32)], at: place)
        }
    }
}
