import FoundationEssentials

/// What a demo tells while it plays. Times are milliseconds since it began.
public enum DemoMoment: Equatable, Sendable {
    case began(step: Int, title: String)
    /// Something was seen: on a device, at APNs, or at the server.
    case saw(DemoFact)
    case ended(DemoStep)
    case finished(DemoReport)
}

/// One thing that was seen.
public struct DemoFact: Codable, Equatable, Sendable {
    public var atMs: UInt64
    public var who: String
    public var what: String

    enum CodingKeys: String, CodingKey {
        case atMs = "at_ms"
        case who, what
    }
}

/// One step of the story and what came of it.
public struct DemoStep: Codable, Equatable, Sendable {
    public var step: String
    public var title: String
    public var ok: Bool
    public var beganMs: UInt64
    public var tookMs: UInt64
    public var facts: [DemoFact]
    /// What did not happen.
    public var failure: String?

    enum CodingKeys: String, CodingKey {
        case step, title, ok, facts, failure
        case beganMs = "began_ms"
        case tookMs = "took_ms"
    }
}

/// What the whole demo came to.
public struct DemoReport: Codable, Equatable, Sendable {
    public var ok: Bool
    /// Steps that happened, of `stepsTotal`.
    public var steps: Int
    public var stepsTotal: Int
    public var tookMs: UInt64
    /// The step that did not happen; `nil`: all did.
    public var failedStep: String?
    public var failure: String?

    enum CodingKeys: String, CodingKey {
        case ok, steps, failure
        case stepsTotal = "steps_total"
        case tookMs = "took_ms"
        case failedStep = "failed_step"
    }
}

extension DemoMoment {
    /// For people, one or more lines.
    public func text(colour: Bool) -> String {
        switch self {
        case .began(let step, let title):
            return "\n" + Self.paint("\(step). \(title)", "1", colour)
        case .saw(let fact):
            let gap = String(repeating: " ", count: max(1, 14 - fact.who.count))
            return "\(Self.time(fact.atMs))  \(Self.paint(fact.who, "36", colour))\(gap)"
                + fact.what
        case .ended(let step):
            if step.ok { return "            " + Self.paint("happened", "32", colour) }
            return "            "
                + Self.paint("did not happen: \(step.failure ?? "")", "31", colour)
        case .finished(let report):
            let seconds = Double(report.tookMs / 100) / 10
            guard let failed = report.failedStep else {
                return "\n"
                    + Self.paint(
                        "all \(report.steps) steps happened, in \(seconds) s", "32", colour)
            }
            return "\n"
                + Self.paint(
                    "\(report.steps) of \(report.stepsTotal) steps happened; `\(failed)` did not",
                    "31", colour)
        }
    }

    /// One JSON object on one line for a step and for the end; `nil` for what they contain.
    public var json: String? {
        switch self {
        case .began, .saw: nil
        case .ended(let step): Self.encoded(step)
        case .finished(let report): Self.encoded(report)
        }
    }

    private static func encoded(_ value: some Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Seconds with milliseconds, ten wide.
    private static func time(_ milliseconds: UInt64) -> String {
        let fraction = String(1_000 + milliseconds % 1_000).dropFirst()
        let text = "\(milliseconds / 1_000).\(fraction)"
        return String(repeating: " ", count: max(0, 10 - text.count)) + text
    }

    /// SGR of ECMA-48 8.3.117.
    private static func paint(_ text: String, _ code: String, _ colour: Bool) -> String {
        colour ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
