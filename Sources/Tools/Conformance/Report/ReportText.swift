import FoundationEssentials

/// What reads a report.
public enum ReportFormat: String, Sendable, CaseIterable {
    case people, tap, junit, json
}

extension ConformanceReport {
    /// The whole report in a form for machines; for people only what did not pass, and the
    /// summary.
    public func text(_ format: ReportFormat) -> String {
        switch format {
        case .people: people
        case .tap: tap
        case .junit: junit
        case .json: json
        }
    }

    // MARK: People

    private var people: String {
        var lines: [String] = []
        for result in results where result.verdict == .fail || result.verdict == .inconclusive {
            lines.append("\n\(result.verdict.rawValue): \(result.name) (\(result.level.rawValue))")
            lines.append("  must hold: \(result.title) [\(result.clauses.joined(separator: ", "))]")
            lines.append("  but: \(result.reason ?? "no reason given")")
            lines += result.transcript.suffix(24).map { "    \($0)" }
        }
        lines.append("\n\(summary)")
        return lines.joined(separator: "\n")
    }

    // MARK: TAP 14

    private var tap: String {
        var lines = ["TAP version 14", "1..\(results.count)"]
        for (index, result) in results.enumerated() {
            let isOK = result.verdict == .pass || result.verdict == .skip
            var line = "\(isOK ? "ok" : "not ok") \(index + 1) - \(result.name)"
            if result.verdict == .skip { line += " # SKIP \(oneLine(result.reason ?? ""))" }
            if result.verdict == .fail, result.level == .should, !isStrict {
                line += " # TODO a SHOULD"
            }
            lines.append(line)
            guard !isOK else { continue }
            lines += [
                "  ---", "  verdict: \(result.verdict.rawValue)",
                "  reason: \(quoted(result.reason ?? ""))",
                "  clauses: [\(result.clauses.joined(separator: ", "))]", "  ...",
            ]
        }
        return lines.joined(separator: "\n")
    }

    private func oneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: " ").replacing("#", with: "")
    }

    /// A JSON string is a YAML string.
    private func quoted(_ text: String) -> String { TokenDraft.quoted(text) }

    // MARK: JUnit

    private var junit: String {
        var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
        func counts(_ results: [CaseResult]) -> String {
            let time = Double(results.reduce(0) { $0 + $1.milliseconds }) / 1000
            func number(_ verdict: Verdict) -> Int { results.count { $0.verdict == verdict } }
            return "tests=\"\(results.count)\" failures=\"\(number(.fail))\" "
                + "errors=\"\(number(.inconclusive))\" skipped=\"\(number(.skip))\" "
                + "time=\"\(time)\""
        }
        lines.append("<testsuites name=\"rouse conform\" \(counts(results))>")
        for section in Section.allCases {
            let own = results.filter { $0.section == section }
            guard !own.isEmpty else { continue }
            lines.append("  <testsuite name=\"\(section.rawValue)\" \(counts(own))>")
            for result in own { lines += junitLines(result) }
            lines.append("  </testsuite>")
        }
        lines.append("</testsuites>")
        return lines.joined(separator: "\n")
    }

    private func junitLines(_ result: CaseResult) -> [String] {
        let head =
            "    <testcase classname=\"rouse.\(result.section.rawValue)\" "
            + "name=\"\(escaped(result.name))\" time=\"\(Double(result.milliseconds) / 1000)\""
        let reason = escaped(result.reason ?? "")
        let text = escaped(result.transcript.joined(separator: "\n"))
        switch result.verdict {
        case .pass: return [head + "/>"]
        case .skip:
            return [head + ">", "      <skipped message=\"\(reason)\"/>", "    </testcase>"]
        case .fail:
            return [
                head + ">", "      <failure message=\"\(reason)\">\(text)</failure>",
                "    </testcase>",
            ]
        case .inconclusive:
            return [
                head + ">", "      <error message=\"\(reason)\">\(text)</error>",
                "    </testcase>",
            ]
        }
    }

    private func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "\n": escaped += "&#10;"
            // XML 1.0 has no other control characters.
            case _ where scalar.value < 0x20: escaped += "?"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    // MARK: JSON

    private var json: String {
        struct Whole: Encodable {
            let conforms: Bool
            let strict: Bool
            let counts: [String: Int]
            let milliseconds: Int
            let summary: String
            let cases: [CaseResult]
        }
        var counts: [String: Int] = [:]
        for verdict in Verdict.allCases { counts[verdict.rawValue] = count(verdict) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let whole = Whole(
            conforms: isGood, strict: isStrict, counts: counts, milliseconds: milliseconds,
            summary: summary, cases: results)
        do {
            return String(decoding: try encoder.encode(whole), as: UTF8.self)
        } catch {
            preconditionFailure("a report that is no JSON: \(whole): \(error)")
        }
    }
}
