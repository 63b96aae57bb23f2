import RouseServer

/// A mistake in the command line: what it was and what to do. Exit status 64 (sysexits EX_USAGE).
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
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
                throw Self.unknown(name, command)
            }
            if option.value == nil {
                guard parts.count == 1 else { throw UsageError("--\(name) takes no value") }
                values[name, default: []].append("")
            } else if parts.count == 2 {
                try take(String(parts[1]), option)
            } else if let value = rest.first, !Self.isOption(value, of: command) {
                rest.removeFirst()
                try take(value, option)
            } else {
                throw UsageError("--\(name) needs a value: \(option.value ?? "")")
            }
        }
        try checkOperands(command)
    }

    private mutating func take(_ value: String, _ option: CommandOption) throws(UsageError) {
        if let form = option.form {
            try Self.check(value, form, "--\(option.name) must be")
        }
        values[option.name, default: []].append(value)
    }

    /// What follows an option that needs a value and is an option itself is not that value.
    private static func isOption(_ word: String, of command: CommandDescription) -> Bool {
        word == "--" || command.options.contains { word == "--\($0.name)" }
    }

    private func checkOperands(_ command: CommandDescription) throws(UsageError) {
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
        for (operand, name) in zip(operands, command.operands) {
            try Self.check(operand, ValueForm(name), "expected")
        }
    }

    /// Where only certain words may stand, it is one of them.
    private static func check(
        _ value: String, _ form: ValueForm, _ place: String
    ) throws(UsageError) {
        guard form.isClosed, !form.words.isEmpty, !form.words.contains(value) else { return }
        let words = form.words
        let list =
            words.count == 1
            ? words[0]
            : words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
        throw UsageError("\(place) \(list), not `\(value)`")
    }

    private static func unknown(_ name: String, _ command: CommandDescription) -> UsageError {
        let meant = Spelling.nearest(name, among: command.options.map(\.name))
        return UsageError(
            "--\(name): `rouse \(command.name)` has no such option; "
                + (meant.map { "did you mean --\($0)?" } ?? "see --help"))
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
