/// Which MUSTs of the text have a case, which are excused, and what is wrong with that.
public struct Coverage: Sendable {
    /// A MUST without a case, and why there is none.
    public struct Excuse: Sendable {
        /// Whose MUST it is.
        public enum Kind: Sendable {
            /// A client's, which no frame and no state of a driver shows.
            case client
            /// About HTTP between a server and an app's backend: no device sees it.
            case backend
            /// A server's, which cannot be seen from outside.
            case inside
        }

        public let citation: Citation
        public let kind: Kind
        public let reason: String

        init(_ citation: Citation, _ kind: Kind, _ reason: String) {
            self.citation = citation
            self.kind = kind
            self.reason = reason
        }
    }

    public let text: ProtocolText
    public let covered: [ProtocolText.Must]
    public let excused: [(must: ProtocolText.Must, excuse: Excuse)]
    /// Neither a case nor an excuse: each is a mistake.
    public let bare: [ProtocolText.Must]
    /// Citations and excuses whose clause or words are gone, or excuses of what has a case.
    public let stale: [String]
    /// Clauses that no case cites, by id.
    public let uncited: [String]

    public init(_ text: ProtocolText) {
        self.init(
            text, suite: Conformance.cases + ClientConformance.cases, excuses: Self.excuses,
            reasons: Self.reasonsUncited)
    }

    init(
        _ text: ProtocolText, suite: [ListedCase], excuses: [Excuse],
        reasons: [String: String] = [:]
    ) {
        self.text = text
        let citations = suite.flatMap { one in one.citations.map { (one.name, $0) } }
        var covered: [ProtocolText.Must] = []
        var excused: [(must: ProtocolText.Must, excuse: Excuse)] = []
        var bare: [ProtocolText.Must] = []
        for must in text.musts {
            if citations.contains(where: { text.covers($0.1, must) }) {
                covered.append(must)
            } else if let excuse = excuses.first(where: { text.covers($0.citation, must) }) {
                excused.append((must, excuse))
            } else {
                bare.append(must)
            }
        }
        self.covered = covered
        self.excused = excused
        self.bare = bare
        var stale = citations.filter { !text.holds($0.1) }.map {
            "\($0.0) cites \($0.1.clause): \($0.1.words)"
        }
        for excuse in excuses {
            let meant = text.musts.filter { text.covers(excuse.citation, $0) }
            if meant.isEmpty || meant.allSatisfy({ covered.contains($0) }) {
                stale.append("excuse of \(excuse.citation.clause): \(excuse.citation.words)")
            }
        }
        let cited = Set(citations.map(\.1.clause))
        uncited = text.clauses.map(\.id).filter { !cited.contains($0) }
        for id in reasons.keys.sorted() where !uncited.contains(id) {
            stale.append("reason why no case cites \(id)")
        }
        self.stale = stale
    }

    /// MUSTs between servers and devices: all but those that are excused as about backends.
    public var ofDevices: Int {
        text.musts.count - excused.count { $0.excuse.kind == .backend }
    }

    /// Covered MUSTs between servers and devices, in percent.
    public var percent: Double {
        ofDevices == 0 ? 0 : 100 * Double(covered.count) / Double(ofDevices)
    }

    public var report: String {
        var lines = [
            "clauses       \(text.clauses.count), "
                + "\(text.clauses.count - uncited.count) cited by a case",
            "MUST          \(text.musts.count): \(ofDevices) between servers and devices, "
                + "\(text.musts.count - ofDevices) about backends",
            "with a case   \(covered.count) of the \(ofDevices) "
                + "(\(Int(percent.rounded(.down))) %)",
            "SHOULD        \(text.shoulds)",
            "cases         \(Conformance.suite.count) of a server, "
                + "\(ClientConformance.suite.count) of a client",
        ]
        if !excused.isEmpty {
            lines.append("\nwithout a case, and why:")
            for (must, excuse) in excused {
                lines.append("  \(must.clause).\(must.number) ...\(must.words)...")
                lines.append("      \(excuse.reason)")
            }
        }
        if !uncited.isEmpty {
            lines.append("\nclauses that no case cites, and why:")
            lines += uncited.map { "  \($0)  \(Self.reasonUncited($0))" }
        }
        if !bare.isEmpty {
            lines.append("\nneither a case nor a reason:")
            lines += bare.map { "  \($0.clause).\($0.number) ...\($0.words)..." }
        }
        if !stale.isEmpty { lines += ["\nthe text is gone:"] + stale.map { "  \($0)" } }
        return lines.joined(separator: "\n")
    }
}
