/// How a case ended.
public enum Verdict: String, Codable, Sendable, CaseIterable {
    case pass, fail, skip
    /// It could not be carried through; never counted as a pass.
    case inconclusive
}

/// A case that has run.
public struct CaseResult: Codable, Sendable {
    /// The case; a variant stands in brackets.
    public let name: String
    public let section: Section
    public let level: Level
    public let title: String
    public let clauses: [String]
    public let verdict: Verdict
    /// Why it did not pass.
    public let reason: String?
    /// What was sent and came; empty when it passed.
    public let transcript: [String]
    public let milliseconds: Int
}

/// All of a run.
public struct ConformanceReport: Sendable {
    /// In the order of the cases.
    public let results: [CaseResult]
    /// Whether a SHOULD counts as a MUST.
    public let isStrict: Bool
    public let milliseconds: Int

    public func count(_ verdict: Verdict) -> Int { results.count { $0.verdict == verdict } }

    /// Failures and inconclusive cases that count.
    public var faults: [CaseResult] {
        results.filter { result in
            switch result.verdict {
            case .pass, .skip: false
            case .inconclusive: true
            case .fail: isStrict || result.level == .must
            }
        }
    }

    /// Nothing counts against the server, and something speaks for it.
    public var isGood: Bool { faults.isEmpty && count(.pass) > 0 }

    /// The line a run ends with.
    public var summary: String {
        let shoulds = results.count { $0.verdict == .fail && $0.level == .should }
        var text = "\(count(.pass)) passed, \(count(.fail)) failed"
        if shoulds > 0 { text += " (\(shoulds) of them SHOULD)" }
        text += ", \(count(.inconclusive)) inconclusive, \(count(.skip)) skipped"
        return text + ": " + (isGood ? "conforms" : "does not conform")
    }
}
