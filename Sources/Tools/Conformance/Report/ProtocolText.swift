public import FoundationEssentials

/// The normative text: every clause of the folder Protocol, and the MUSTs in it.
public struct ProtocolText: Sendable {
    /// One clause, `SES-7` and its text with single spaces.
    public struct Clause: Sendable {
        public let id: String
        public let text: String
        /// Its text without tables and examples.
        public let prose: String
        /// The file it stands in, such as `session.md`.
        public let file: String
    }

    /// One MUST or MUST NOT, and where it stands.
    public struct Must: Sendable, Equatable {
        public let clause: String
        /// Which MUST of its clause, from 1.
        public let number: Int
        /// The words around it.
        public let words: String
        let range: Range<Int>
    }

    public let clauses: [Clause]
    public let musts: [Must]
    /// How many SHOULDs there are.
    public let shoulds: Int

    /// - Parameter folder: `Protocol`; every Markdown file of it is read.
    public init(folder: URL) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".md") }.sorted()
        var clauses: [Clause] = []
        for name in names {
            let text = try String(
                contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
            clauses += Self.clauses(in: text, of: name)
        }
        self.init(clauses: clauses)
    }

    init(clauses: [Clause]) {
        self.clauses = clauses
        musts = clauses.flatMap { clause in
            Self.places(of: "MUST", in: clause.text).enumerated().map { index, range in
                let characters = Array(clause.text)
                let start = max(0, range.lowerBound - 40)
                let end = min(characters.count, range.upperBound + 60)
                return Must(
                    clause: clause.id, number: index + 1, words: String(characters[start..<end]),
                    range: range)
            }
        }
        shoulds = clauses.reduce(0) { $0 + Self.places(of: "SHOULD", in: $1.text).count }
    }

    /// A clause begins with its id in bold brackets, and ends where another or a heading begins.
    static func clauses(in text: String, of file: String) -> [Clause] {
        var clauses: [Clause] = []
        var id: String?
        var words: [Substring] = []
        var prose: [Substring] = []
        var isExample = false
        func finish() {
            if let id {
                clauses.append(
                    Clause(
                        id: id, text: words.joined(separator: " "),
                        prose: prose.joined(separator: " "), file: file))
            }
            id = nil
            words = []
            prose = []
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("#") {
                finish()
            } else if line.hasPrefix("**["), let end = line.firstRange(of: "]**") {
                finish()
                id = String(line[line.index(line.startIndex, offsetBy: 3)..<end.lowerBound])
                words = line[end.upperBound...].split(whereSeparator: \.isWhitespace)
                prose = words
            } else {
                let more = line.split(whereSeparator: \.isWhitespace)
                words += more
                if line.hasPrefix("```") { isExample.toggle() }
                let isShown = isExample || line.hasPrefix("```") || line.hasPrefix("    ")
                if !isShown && !line.hasPrefix("|") { prose += more }
            }
        }
        finish()
        return clauses
    }

    /// Where a word stands, in characters.
    private static func places(of word: String, in text: String) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var start = text.startIndex
        while let range = text[start...].firstRange(of: word) {
            let lower = text.distance(from: text.startIndex, to: range.lowerBound)
            found.append(lower..<(lower + word.count))
            start = range.upperBound
        }
        return found
    }

    /// Whether the clause is there and holds the citation's words.
    func holds(_ citation: Citation) -> Bool {
        guard let clause = clauses.first(where: { $0.id == citation.clause }) else { return false }
        return citation.words.isEmpty || clause.text.contains(citation.words)
    }

    /// Whether the citation's words hold this MUST.
    func covers(_ citation: Citation, _ must: Must) -> Bool {
        guard citation.clause == must.clause, !citation.words.isEmpty,
            let clause = clauses.first(where: { $0.id == citation.clause }),
            let range = clause.text.firstRange(of: citation.words)
        else { return false }
        let lower = clause.text.distance(from: clause.text.startIndex, to: range.lowerBound)
        let upper = lower + citation.words.count
        return lower <= must.range.lowerBound && must.range.upperBound <= upper
    }
}
