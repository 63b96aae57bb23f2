import FoundationEssentials
import Model

/// What came of a run.
public struct BenchReport: Codable, Equatable, Sendable {
    public let store: String
    public let scale: BenchScale
    public let rows: [BenchRow]
    /// Kinds that could not be driven to their end, and why.
    public let failures: [String]
    /// Whether it was built without optimization: then the times say nothing.
    public let isDebug: Bool

    public static var isDebugBuild: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    /// One object in one line, names in snake case.
    public var json: String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            preconditionFailure("a report that is no JSON: \(error)")
        }
    }

    private static let heads = [
        "kind", "n", "x", "read", "written", "stmts", "journal", "cpu", "held p50", "p99",
        "worst", "commit p50", "p99", "worst",
    ]

    public var text: String {
        let lines = [Self.heads] + rows.map { cells(of: $0) }
        let widths = Self.heads.indices.map { column in
            lines.map { $0[column].count }.max() ?? 0
        }
        var text = lines.map { line in
            line.enumerated().map { column, cell in
                let gap = String(repeating: " ", count: widths[column] - cell.count)
                return column == 0 ? cell + gap : gap + cell
            }.joined(separator: "  ").trimmed
        }.joined(separator: "\n")
        text += """


            n transactions of x requests each; rows, statements, bytes of journal and microseconds
            of the processor are of one request, times are microseconds of one transaction. A name
            behind a colon is that of the duty whose turns followed, or of what came next.
            """
        text += "\n\n" + longest
        if rows.contains(where: \.isCut) { text += "\n* cut short: its time was up." }
        for failure in failures { text += "\nfailed: \(failure)" }
        if isDebug { text += "\nA debug build: the times say nothing." }
        return text
    }

    private static let longestRows = 8

    /// The transaction that held the writer for longest. Its rows and statements are the same on
    /// every machine.
    private var longest: String {
        let chosen = rows.sorted { $0.held.worstOfAll > $1.held.worstOfAll }
        let lines = chosen.prefix(Self.longestRows).map { row in
            let statements = row.statementsMost.map { ", \($0) statements" } ?? ""
            let held = row.held.worstOfAll.text(decimals: 0)
            return String(repeating: " ", count: max(0, 9 - held.count)) + "\(held) us  "
                + "\(row.name): at most \(row.rowsMost) rows\(statements)"
        }
        return "Longest holds of one transaction, and the most that one of its kind took:\n"
            + lines.joined(separator: "\n")
    }

    private func cells(of row: BenchRow) -> [String] {
        func short(_ value: Double?) -> String {
            guard let value else { return "-" }
            return value < 100 && value != value.rounded()
                ? value.text(decimals: 1) : value.text(decimals: 0)
        }
        return [
            row.isCut ? "\(row.name) *" : row.name, "\(row.transactions)", "\(row.group)",
            short(row.rowsRead), short(row.rowsWritten), short(row.statements),
            short(row.journalBytes), short(row.processorMicroseconds),
            short(row.held.p50), short(row.held.p99), short(row.held.worst),
            short(row.commit.p50), short(row.commit.p99), short(row.commit.worst),
        ]
    }
}

extension BenchRow {
    fileprivate var name: String { part.isEmpty ? kind : "\(kind): \(part)" }
}

extension String {
    fileprivate var trimmed: String {
        var text = self
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }
}
