import Foundation
import Testing

/// Protocol/wake-rules.md names a test for every rule: each of them exists.
@Suite struct WakeRuleTests {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Rows of the tables: a rule, and the names in its second column.
    static func rules(in text: String) -> [(rule: String, tests: [String])] {
        text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("| "), !line.hasPrefix("| rule ") else { return nil }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 2 else { return (String(line), []) }
            let names = cells[1].split(separator: "`", omittingEmptySubsequences: false)
            let tests = names.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
            return (cells[0], tests)
        }
    }

    static func functions() throws -> Set<String> {
        var names: Set<String> = []
        let folder = root.appendingPathComponent("Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            let words = try String(contentsOf: file, encoding: .utf8)
            for piece in words.components(separatedBy: "func ").dropFirst() {
                names.insert(String(piece.prefix { $0.isLetter || $0.isNumber }))
            }
        }
        return names
    }

    @Test func everyWakeRuleIsHeldByTestsThatExist() throws {
        let page = Self.root.appendingPathComponent("Protocol/wake-rules.md")
        let rules = Self.rules(in: try String(contentsOf: page, encoding: .utf8))
        #expect(rules.count >= 30)
        let known = try Self.functions()
        for (rule, tests) in rules {
            #expect(!tests.isEmpty, "no test for: \(rule)")
            for test in tests { #expect(known.contains(test), "no test \(test) for: \(rule)") }
        }
    }

    @Test func aRuleWithoutATestIsNoticed() {
        let rules = Self.rules(
            in: "| rule | held by |\n|---|---|\n| A. | `a` `b` |\n| B. | |\n| C. |")
        #expect(rules.map(\.tests) == [["a", "b"], [], []])
    }
}
