import Foundation
import Testing

@testable import Conformance

/// Text and cases hold on to each other: neither moves without the other.
@Suite struct CoverageTests {
    static func folder() -> URL {
        URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Protocol")
    }

    @Test("no case cites a clause or words that are gone")
    func citations() throws {
        let coverage = Coverage(try ProtocolText(folder: Self.folder()))
        #expect(coverage.stale == [])
    }

    @Test("every MUST has a case or a reason why there is none")
    func musts() throws {
        let coverage = Coverage(try ProtocolText(folder: Self.folder()))
        #expect(coverage.bare.map { "\($0.clause).\($0.number) \($0.words)" } == [])
        #expect(coverage.percent >= 90)
    }

    @Test("names of cases differ, and every case cites something")
    func names() {
        let suite = Conformance.cases + ClientConformance.cases
        let names = suite.map(\.name)
        #expect(Set(names).count == names.count)
        for one in suite { #expect(!one.citations.isEmpty, "\(one.name)") }
    }

    @Test("a case that the text names exists")
    func named() throws {
        let names = Set((Conformance.cases + ClientConformance.cases).map(\.name))
        let sections = Set(Section.allCases.map(\.rawValue))
        let page = try String(
            contentsOf: Self.folder().appendingPathComponent("exchanges.md"), encoding: .utf8)
        let found = page.matches(of: #/`([a-z]+)\.([a-z-]+)`/#)
            .filter { sections.contains(String($0.1)) && $0.2 != "md" }
        #expect(found.count >= 5)
        for match in found { #expect(names.contains("\(match.1).\(match.2)")) }
    }

    static let text = ProtocolText(
        clauses: ProtocolText.clauses(
            in: """
                # Title
                **[ABC-1]** A server MUST close.
                It MUST NOT lie. It SHOULD

                write.
                ## Other
                Not a clause: MUST.
                **[ABC-2]** One MUST
                obey.
                """, of: "abc.md"))

    @Test("clauses end at headings, and each MUST is found")
    func parsing() {
        #expect(Self.text.clauses.map(\.id) == ["ABC-1", "ABC-2"])
        #expect(
            Self.text.clauses[0].text
                == "A server MUST close. It MUST NOT lie. It SHOULD write.")
        #expect(Self.text.musts.map(\.clause) == ["ABC-1", "ABC-1", "ABC-2"])
        #expect(Self.text.shoulds == 1)
    }

    @Test("a citation covers the MUSTs among its words, and is stale when they are gone")
    func citing() {
        func coverage(_ citations: [Citation]) -> Coverage {
            let one = ListedCase(
                name: "framing.x", section: .framing, level: .must, title: "x",
                citations: citations)
            return Coverage(Self.text, suite: [one], excuses: [])
        }
        #expect(coverage(["ABC-1"]).covered.isEmpty)
        #expect(coverage(["ABC-1: MUST close"]).covered.map(\.number) == [1])
        #expect(coverage(["ABC-1: MUST close. It MUST NOT"]).covered.count == 2)
        #expect(coverage(["ABC-1: MUST close"]).bare.count == 2)
        #expect(coverage(["ABC-1: MUST open"]).stale.count == 1)
        #expect(coverage(["ABC-3"]).stale.count == 1)
        #expect(coverage(["ABC-2: MUST obey"]).stale.isEmpty)
    }
}
