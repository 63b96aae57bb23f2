/// A mistake in the command line: what it was and what to do. Exit status 64 (sysexits EX_USAGE).
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// An option or flag a command takes.
struct CommandOption: Sendable {
    let name: String
    /// What its value is called in the help; `nil`: a flag.
    let value: String?
    let help: String

    init(_ name: String, _ value: String?, _ help: String) {
        self.name = name
        self.value = value
        self.help = help
    }

    /// A flag.
    init(_ name: String, _ help: String) {
        self.name = name
        self.value = nil
        self.help = help
    }
}

/// What a command is called, takes and does; its help is made from this.
struct CommandDescription: Sendable {
    let name: String
    let summary: String
    /// Names of the operands, such as `APP`; one in brackets may be left out.
    var operands: [String] = []
    var options: [CommandOption] = []
    var examples: [String] = []
    var notes: String = ""

    var help: String {
        var text = "rouse \(name) - \(summary)\n\nusage: rouse \(name)"
        if !options.isEmpty { text += " [options]" }
        for operand in operands { text += " \(operand)" }
        text += "\n"
        if !options.isEmpty {
            text += "\noptions:\n"
            let names = options.map { "--\($0.name)" + ($0.value.map { " \($0)" } ?? "") }
            let width = (names.map(\.count).max() ?? 0) + 2
            for (option, name) in zip(options, names) {
                let gap = String(repeating: " ", count: width - name.count)
                text += "  \(name)\(gap)\(option.help)\n"
            }
        }
        if !examples.isEmpty {
            text += "\nexamples:\n" + examples.map { "  \($0)\n" }.joined()
        }
        if !notes.isEmpty { text += "\n\(notes)\n" }
        return text
    }
}

/// A command line taken apart by its description.
struct Arguments: Equatable {
    private(set) var operands: [String] = []
    private var values: [String: [String]] = [:]
    private(set) var asksForHelp = false

    /// `--name value`, `--name=value`, flags and operands; `--` ends the options.
    init(_ words: [String], for command: CommandDescription) throws(UsageError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--help" || word == "-h" {
                asksForHelp = true
                return
            }
            if word == "--" {
                operands += rest
                break
            }
            guard word.hasPrefix("--") else {
                if word.hasPrefix("-") && word.count > 1 {
                    throw UsageError("\(word): options begin with two dashes; see --help")
                }
                operands.append(word)
                continue
            }
            let parts = word.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            guard let option = command.options.first(where: { $0.name == name }) else {
                throw UsageError(
                    "--\(name): `rouse \(command.name)` has no such option; see --help")
            }
            if option.value == nil {
                guard parts.count == 1 else { throw UsageError("--\(name) takes no value") }
                values[name, default: []].append("")
            } else if parts.count == 2 {
                values[name, default: []].append(String(parts[1]))
            } else if let value = rest.popFirst() {
                values[name, default: []].append(value)
            } else {
                throw UsageError("--\(name) needs a value: \(option.value ?? "")")
            }
        }
        let needed = command.operands.filter { !$0.hasPrefix("[") }.count
        let allowed =
            command.operands.contains { $0.hasSuffix("...") || $0.hasSuffix("...]") }
            ? Int.max : command.operands.count
        if operands.count < needed {
            throw UsageError(
                "missing \(command.operands[operands.count]); see `rouse \(command.name) --help`")
        }
        if operands.count > allowed {
            throw UsageError("\(operands[allowed]): one word too many; see --help")
        }
    }

    func has(_ name: String) -> Bool { values[name] != nil }
    func string(_ name: String) -> String? { values[name]?.last }
    func strings(_ name: String) -> [String] { values[name] ?? [] }

    func required(_ name: String) throws(UsageError) -> String {
        guard let value = string(name) else { throw UsageError("--\(name) is needed") }
        return value
    }

    func number<Number: FixedWidthInteger>(
        _ name: String, in range: ClosedRange<Number>
    ) throws(UsageError) -> Number? {
        guard let text = string(name) else { return nil }
        guard let number = Number(text), range.contains(number) else {
            throw UsageError(
                "--\(name) must be a number from \(range.lowerBound) to \(range.upperBound), "
                    + "not `\(text)`")
        }
        return number
    }
}
