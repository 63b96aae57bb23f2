import Foundation
import Testing

@testable import Conformance

/// The ids of clauses: each stands once, and whoever cites one cites one that exists.
@Suite struct ClauseTests {
    static let root = CoverageTests.folder().deletingLastPathComponent()

    static func text() throws -> ProtocolText {
        try ProtocolText(folder: CoverageTests.folder())
    }

    /// Ids that stand at more than one clause.
    static func doubled(_ text: ProtocolText) -> [String] {
        var known: Set<String> = []
        return text.clauses.map(\.id).filter { !known.insert($0).inserted }
    }

    /// Every text file below the folders that cite clauses.
    static func files() throws -> [URL] {
        let names = ["Sources", "Tests", "Protocol", "Deploy", "README.md"]
        return names.flatMap { name -> [URL] in
            let url = root.appendingPathComponent(name)
            guard
                let walk = FileManager.default.enumerator(at: url, includingPropertiesForKeys: nil)
            else { return [url] }
            let found = walk.compactMap { $0 as? URL }
            return found.isEmpty ? [url] : found
        }.filter { ["swift", "md", "py", "proto", "yaml", "lua"].contains($0.pathExtension) }
    }

    @Test("no two clauses have the same id")
    func unique() throws {
        #expect(Self.doubled(try Self.text()) == [])
        let page = "**[ABC-1]** One.\n**[ABC-2]** Two.\n**[ABC-1]** Three.\n"
        let text = ProtocolText(clauses: ProtocolText.clauses(in: page, of: "abc.md"))
        #expect(Self.doubled(text) == ["ABC-1"])
    }

    @Test("every clause that is cited anywhere exists")
    func cited() throws {
        let ids = Set(try Self.text().clauses.map(\.id))
        let kinds = Set(ids.map { $0.prefix { $0 != "-" } })
        var count = 0
        for file in try Self.files() {
            guard let content = try? String(contentsOf: file, encoding: .utf8) else { continue }
            for match in content.matches(of: #/\b([A-Z]{3})-([0-9]+)\b/#)
            where kinds.contains(match.1) {
                count += 1
                #expect(ids.contains(String(match.0)), "\(file.lastPathComponent)")
            }
        }
        #expect(count > 1_000)
    }

    @Test("the index of clauses is the one of the text")
    func index() throws {
        let kept = try String(
            contentsOf: CoverageTests.folder().appendingPathComponent("clauses.md"), encoding: .utf8
        )
        #expect(
            kept == (try Self.text().index) + "\n",
            "run rouse conform --clauses > Protocol/clauses.md")
    }

    @Test("a sentence with a MUST has its number in the index, whatever table stands before it")
    func numbers() {
        let page = """
            **[ABC-1]** One MUST come. It may go:

            | a | b |
            |---|---|

            Then it MUST NOT stay, and MUST be counted. The end.
            """
        let text = ProtocolText(clauses: ProtocolText.clauses(in: page, of: "abc.md"))
        #expect(
            text.index.split(separator: "\n").suffix(2) == [
                "| **ABC-1**, ABC-1.1 | One MUST come. |",
                "| ABC-1.2, ABC-1.3 | Then it MUST NOT stay, and MUST be counted. |",
            ])
    }
}
