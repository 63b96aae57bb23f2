import APNsSimulator
import Foundation
import Testing

/// CHECKS.md and the tables in the code say the same.
struct CheckDocumentTests {
    /// The cells of the tables' rows, by section.
    let sections: [String: [[String]]]

    init() throws {
        let file = ForeignClientTests.root
            .appendingPathComponent("Sources/Tools/APNsSimulator/CHECKS.md")
        var sections: [String: [[String]]] = [:]
        var section = ""
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("## ") { section = String(line.dropFirst(3)) }
            guard line.hasPrefix("| "), line.contains("`") else { continue }
            let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: [" ", "`"])
            }
            sections[section, default: []].append(cells)
        }
        self.sections = sections
    }

    @Test func theChecks() {
        let rows = sections["Requests, in this order"] ?? []
        let table = CheckRow.table
        #expect(rows.count == table.count)
        for (index, (row, check)) in zip(rows, table).enumerated() {
            let answer =
                check.id == Check.lint.rawValue
                ? "the lint's, below" : "\(check.status) \(check.reason)"
            #expect(row == [String(index + 1), check.id, check.what, answer])
        }
    }

    @Test func theConnectionRules() {
        let rows = sections["Connections"] ?? []
        #expect(rows.map { $0.first } == ConnectionRule.allCases.map(\.rawValue))
    }

    @Test func theLints() {
        let rows = sections["Lints"] ?? []
        #expect(rows.map { $0.first } == Lint.allCases.map(\.rawValue))
        for (row, lint) in zip(rows, Lint.allCases) {
            let answer = lint.strictRefusal.map { "\($0.status) \($0.rawValue)" } ?? "GOAWAY"
            #expect(row.last == answer)
        }
    }
}
