import Foundation
import Testing

/// Protocol/complaints.md names the tests that show what we do not suffer from; a name that is gone
/// would leave a claim without its proof.
@Suite struct ComplaintTests {
    struct Section: Equatable {
        var title: String
        /// As the page names them: `target/suite.function`.
        var tests: [String] = []
        var isExcused = false
    }

    static func sections(of page: String) -> [Section] {
        var sections: [Section] = []
        for line in page.split(separator: "\n") {
            if line.hasPrefix("## ") {
                sections.append(Section(title: String(line.dropFirst(3))))
            } else if !sections.isEmpty {
                let last = sections.count - 1
                if line.hasPrefix("- ") { sections[last].tests.append(String(line.dropFirst(2))) }
                if line.lowercased().contains("not applicable") { sections[last].isExcused = true }
            }
        }
        return sections
    }

    /// Functions with `@Test` in the text of a suite's file, whatever arguments it has.
    static func tests(in text: String) -> Set<String> {
        var found: Set<String> = []
        var isMarked = false
        for line in text.split(separator: "\n") {
            if line.drop(while: { $0 == " " }).hasPrefix("@Test") { isMarked = true }
            guard isMarked, let name = line.firstMatch(of: #/\bfunc (\w+)/#) else { continue }
            found.insert(String(name.1))
            isMarked = false
        }
        return found
    }

    static func exists(_ test: String) -> Bool {
        guard let parts = test.wholeMatch(of: #/(\w+)/(\w+)\.(\w+)/#) else { return false }
        let folder = LayoutTests.root.appendingPathComponent("Tests/\(parts.1)")
        for file in LayoutTests.swiftFiles(in: "Tests/\(parts.1)") {
            guard file.deletingLastPathComponent().path == folder.path,
                let text = try? String(contentsOf: file, encoding: .utf8),
                text.contains("struct \(parts.2) {") || text.contains("extension \(parts.2) {"),
                tests(in: text).contains(String(parts.3))
            else { continue }
            return true
        }
        return false
    }

    @Test("every complaint names its tests, and each of them exists")
    func everyTestExists() throws {
        let file = LayoutTests.root.appendingPathComponent("Protocol/complaints.md")
        let sections = Self.sections(of: try String(contentsOf: file, encoding: .utf8))
        #expect(sections.count >= 15)
        for section in sections {
            #expect(!section.tests.isEmpty || section.isExcused, "\(section.title)")
            for test in section.tests { #expect(Self.exists(test), "\(test)") }
        }
    }

    @Test("a test that is gone is noticed, and so is a complaint without one")
    func missing() {
        #expect(Self.exists("LayoutTests/ComplaintTests.missing"))
        #expect(!Self.exists("LayoutTests/ComplaintTests.gone"))
        #expect(!Self.exists("LayoutTests/GoneTests.missing"))
        #expect(!Self.exists("GoneTests/ComplaintTests.missing"))
        // Not a test: nothing marks it.
        #expect(!Self.exists("LayoutTests/ComplaintTests.exists"))
        let page = "# Page\n## One\nText.\n- A/B.c\n## Two\nNot applicable here.\n## Three\n"
        #expect(
            Self.sections(of: page) == [
                Section(title: "One", tests: ["A/B.c"]), Section(title: "Two", isExcused: true),
                Section(title: "Three"),
            ])
    }
}
