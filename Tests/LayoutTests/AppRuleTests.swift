import Foundation
import Testing

/// "The app's half" in Protocol/push.md names a test for every rule: each of them exists.
@Suite struct AppRuleTests {
    private static let title = "## The app's half"

    /// The first table below the title; AppTableTests carry out the second.
    private static func rules(in page: String) -> [(rule: String, tests: [String])] {
        let half = page.components(separatedBy: title).last ?? ""
        return WakeRuleTests.rules(in: half.components(separatedBy: "\n### ").first ?? "")
    }

    @Test func everyRuleOfTheAppIsHeldByTestsThatExist() throws {
        let page = WakeRuleTests.root.appendingPathComponent("Protocol/push.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let rules = Self.rules(in: text)
        #expect(rules.count >= 15)
        let known = try WakeRuleTests.functions()
        for (rule, tests) in rules {
            #expect(!tests.isEmpty, "no test for: \(rule)")
            for test in tests { #expect(known.contains(test), "no test \(test) for: \(rule)") }
        }
    }

    @Test func everyTestOfTheAppStandsInItsTable() throws {
        let page = WakeRuleTests.root.appendingPathComponent("Protocol/push.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let rules = Self.rules(in: text)
        let named = Set(rules.flatMap(\.tests))
        for file in ["WakeTests", "ScreenTests"] {
            let tests = WakeRuleTests.root.appendingPathComponent(
                "Tests/AppLifeTests/\(file).swift")
            let words = try String(contentsOf: tests, encoding: .utf8)
            // A test's attribute stands on the line before it, and ends it.
            for piece in words.components(separatedBy: ")\n    func ").dropFirst() {
                let name = String(piece.prefix { $0.isLetter || $0.isNumber })
                #expect(named.contains(name), "\(name) is a test of no rule")
            }
        }
    }
}
