/// Which MUSTs of the text have a case, which are excused, and what is wrong with that.
public struct Coverage: Sendable {
    /// A MUST without a case, and why there is none.
    public struct Excuse: Sendable {
        /// Whose MUST it is.
        public enum Kind: Sendable {
            /// A client's: cases of a server say nothing about it.
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
    /// Clauses that a case cites, of all.
    public let clausesCited: Int

    public init(_ text: ProtocolText) {
        self.init(text, suite: Conformance.suite, excuses: Self.excuses)
    }

    init(_ text: ProtocolText, suite: [ConformanceCase], excuses: [Excuse]) {
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
        self.stale = stale
        let cited = Set(citations.map(\.1.clause))
        clausesCited = text.clauses.count { cited.contains($0.id) }
    }

    /// MUSTs of a server to devices: all but those that are excused as a client's or as about
    /// backends.
    public var ofServer: Int {
        text.musts.count - excused.count { $0.excuse.kind != .inside }
    }

    /// Covered MUSTs of a server's, in percent.
    public var percent: Double {
        ofServer == 0 ? 0 : 100 * Double(covered.count) / Double(ofServer)
    }

    public var report: String {
        var lines = [
            "clauses       \(text.clauses.count), \(clausesCited) cited by a case",
            "MUST          \(text.musts.count): \(ofServer) of a server, "
                + "\(text.musts.count - ofServer) of a client alone or about backends",
            "with a case   \(covered.count) of the server's \(ofServer) "
                + "(\(Int(percent.rounded(.down))) %)",
            "SHOULD        \(text.shoulds)",
            "cases         \(Conformance.suite.count)",
        ]
        if !excused.isEmpty {
            lines.append("\nwithout a case, and why:")
            for (must, excuse) in excused {
                lines.append("  \(must.clause).\(must.number) ...\(must.words)...")
                lines.append("      \(excuse.reason)")
            }
        }
        if !bare.isEmpty {
            lines.append("\nneither a case nor a reason:")
            lines += bare.map { "  \($0.clause).\($0.number) ...\($0.words)..." }
        }
        if !stale.isEmpty { lines += ["\nthe text is gone:"] + stale.map { "  \($0)" } }
        return lines.joined(separator: "\n")
    }
}
