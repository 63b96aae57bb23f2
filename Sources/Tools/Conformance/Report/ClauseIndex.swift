import FoundationEssentials

extension ProtocolText {
    private static let preface = """
        # Index of clauses

        Printed by `rouse conform --clauses`; a test holds it to the text. A clause stands here
        with its first sentence, and with each sentence that says MUST: `SYN-10.2` is the second
        MUST of SYN-10, and a sentence with two of them has both numbers. A new MUST goes to the
        end of its clause or into a new clause, so that numbers stay. `rouse conform --coverage`
        says which of them no case holds a server or a client to, and why.
        """

    /// `Protocol/clauses.md`: every clause with its first sentence, and below it each sentence
    /// that says MUST under the number that `Coverage` gives it.
    public var index: String {
        var lines = [Self.preface]
        var file = ""
        for clause in clauses {
            if clause.file != file {
                file = clause.file
                lines += [
                    "", "## [\(file)](\(file))", "", "| clause | what it says |", "|---|---|",
                ]
            }
            lines += rows(of: clause)
        }
        return lines.joined(separator: "\n")
    }

    private func rows(of clause: Clause) -> [String] {
        var rows: [String] = []
        var number = 0
        for sentence in Self.sentences(of: clause.prose) {
            let count = sentence.ranges(of: "MUST").count
            guard count > 0 || rows.isEmpty else { continue }
            var ids = rows.isEmpty ? ["**\(clause.id)**"] : []
            ids += (0..<count).map { "\(clause.id).\(number + $0 + 1)" }
            number += count
            rows.append(
                "| \(ids.joined(separator: ", ")) | \(sentence.replacing("|", with: "\\|")) |")
        }
        return rows
    }

    /// A sentence ends with a point before a capital letter, a mark or a bracket.
    private static func sentences(of prose: String) -> [String] {
        var sentences: [String] = []
        var words: [Substring] = []
        for word in prose.split(separator: " ") {
            // A colon at a table's or example's place ends one too.
            if let last = words.last, last.hasSuffix(".") || last.hasSuffix(":"),
                let first = word.first,
                first.isUppercase || last.hasSuffix(".") && "*`[".contains(first)
            {
                sentences.append(words.joined(separator: " "))
                words = []
            }
            words.append(word)
        }
        if !words.isEmpty { sentences.append(words.joined(separator: " ")) }
        return sentences
    }
}
