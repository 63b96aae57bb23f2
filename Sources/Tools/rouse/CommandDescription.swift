/// An option or flag a command takes.
struct CommandOption: Sendable {
    let name: String
    /// What its value is called in the help; `nil`: a flag.
    let value: String?
    let help: String
    /// Words that may stand there besides those its name tells.
    let choices: [String]

    init(_ name: String, _ value: String?, _ help: String, choices: [String] = []) {
        self.name = name
        self.value = value
        self.help = help
        self.choices = choices
    }

    /// A flag.
    init(_ name: String, _ help: String) { self.init(name, nil, help) }

    /// What may stand for its value; `nil`: a flag.
    var form: ValueForm? {
        guard let value else { return nil }
        var form = ValueForm(value)
        form.words += choices
        return form
    }

    /// As the help shows it: `--config FILE`.
    var shown: String { "--\(name)" + (value.map { " \($0)" } ?? "") }
}

/// What may stand for an operand or an option's value, as its name in the help tells: words in
/// small letters stand for themselves, FILE and PATH for files, DIR for directories, and `|` is
/// between them.
struct ValueForm: Equatable, Sendable {
    var words: [String] = []
    var takesFiles = false
    var takesDirectories = false
    /// Nothing but one of the words.
    var isClosed = true

    init(_ name: String) {
        for part in name.split(whereSeparator: { "[]|. ".contains($0) }) {
            switch part {
            case "FILE", "PATH": (takesFiles, isClosed) = (true, false)
            case "DIR": (takesDirectories, isClosed) = (true, false)
            default:
                if part.allSatisfy({ $0.isLowercase || $0.isNumber || $0 == "-" }) {
                    words.append(String(part))
                } else {
                    isClosed = false
                }
            }
        }
    }
}

/// What a command is called, takes and does. Its help, its manual page and the shells' completion
/// are made from this, and its command line is taken apart by it.
struct CommandDescription: Sendable {
    let name: String
    let summary: String
    /// Names of the operands, such as `APP`; one in brackets may be left out.
    var operands: [String] = []
    var options: [CommandOption] = []
    var examples: [String] = []
    var notes: String = ""

    var words: [String] { name.split(separator: " ").map(String.init) }

    var usage: String {
        (["rouse \(name)"] + (options.isEmpty ? [] : ["[options]"]) + operands)
            .joined(separator: " ")
    }

    var help: String {
        var text = "rouse \(name) - \(summary)\n\nusage: \(usage)\n"
        if !options.isEmpty {
            let rows = options.map { (name: $0.shown, text: $0.help) }
            text += "\noptions:\n\(Self.columns(rows))\n"
        }
        if !examples.isEmpty {
            text += "\nexamples:\n" + examples.map { "  \($0)\n" }.joined()
        }
        if !notes.isEmpty { text += "\n\(notes)\n" }
        return text
    }

    /// Names and texts side by side, two columns from the edge.
    static func columns(_ rows: [(name: String, text: String)]) -> String {
        let width = (rows.map(\.name.count).max() ?? 0) + 2
        return rows.map { row in
            "  " + row.name + String(repeating: " ", count: width - row.name.count) + row.text
        }.joined(separator: "\n")
    }
}
