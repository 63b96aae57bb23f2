/// How much a clause asks for (RFC 2119).
public enum Level: String, Codable, Sendable {
    case must
    case should
}

/// The chapter of the protocol a case belongs to: the name of its file in Protocol/.
public enum Section: String, Codable, Sendable, CaseIterable {
    case framing, session, sync, history, messaging, signals, connection, push
}

/// What a case stands on: a clause, and the words of it that the case holds the server to.
///
/// Written `SES-7: MUST NOT accept it from another device`. The words must stand in the clause;
/// each MUST among them counts as covered.
public struct Citation: Codable, Sendable, Equatable, ExpressibleByStringLiteral {
    public let clause: String
    /// Empty: the clause as a whole, which covers no MUST of it.
    public let words: String

    public init(stringLiteral value: String) {
        let parts = value.split(separator: ":", maxSplits: 1)
        clause = parts.first.map(String.init) ?? ""
        words = parts.count > 1 ? parts[1].drop { $0 == " " }.description : ""
    }
}

/// One thing a server must do, and the transcript that shows it.
struct ConformanceCase: Sendable {
    /// Section and name, such as `session.hello-first`.
    let name: String
    let section: Section
    let level: Level
    /// What holds if the case passes.
    let title: String
    let citations: [Citation]
    /// Runs also split at every byte and glued.
    let isByteLevel: Bool
    /// How long it may take; `nil`: as long as any.
    let seconds: Int?
    /// Waits for one of the protocol's timers.
    let isTimer: Bool
    /// Ends the server: runs alone, after all others.
    var isLast = false
    /// Judges what the whole run has seen: runs after all other cases, if not the last.
    var invariant: Invariant?
    let run: @Sendable (Trial) throws -> Void

    static func must(
        _ name: String, _ title: String, _ citations: [Citation], bytes: Bool = false,
        seconds: Int? = nil, timer: Bool = false,
        run: @escaping @Sendable (Trial) throws -> Void
    ) -> ConformanceCase {
        ConformanceCase(
            name: name, level: .must, title: title, citations: citations, isByteLevel: bytes,
            seconds: seconds, isTimer: timer, run: run)
    }

    static func should(
        _ name: String, _ title: String, _ citations: [Citation], bytes: Bool = false,
        seconds: Int? = nil, timer: Bool = false,
        run: @escaping @Sendable (Trial) throws -> Void
    ) -> ConformanceCase {
        ConformanceCase(
            name: name, level: .should, title: title, citations: citations, isByteLevel: bytes,
            seconds: seconds, isTimer: timer, run: run)
    }

    /// The same case, run alone after all others.
    func last() -> ConformanceCase {
        var last = self
        last.isLast = true
        return last
    }

    /// The same case, which then fails if the run has seen the invariant broken.
    func watching(_ invariant: Invariant) -> ConformanceCase {
        var watching = self
        watching.invariant = invariant
        return watching
    }

    private init(
        name: String, level: Level, title: String, citations: [Citation], isByteLevel: Bool,
        seconds: Int?, isTimer: Bool, run: @escaping @Sendable (Trial) throws -> Void
    ) {
        let prefix = name.prefix { $0 != "." }
        guard let section = Section(rawValue: String(prefix)) else {
            preconditionFailure("\(name): no section of the protocol")
        }
        self.name = name
        self.section = section
        self.level = level
        self.title = title
        self.citations = citations
        self.isByteLevel = isByteLevel
        self.seconds = seconds
        self.isTimer = isTimer
        self.run = run
    }
}
