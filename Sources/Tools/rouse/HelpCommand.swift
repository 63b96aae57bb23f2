import FoundationEssentials
import RouseServer

/// `rouse help`, and what is said to words that are no command.
extension Rouse {
    static let helpCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "help", summary: "tell what a command does and takes",
                operands: ["[COMMAND...]"],
                options: [CommandOption("json", "print the table of the commands as JSON")],
                examples: ["rouse help serve", "rouse help app user"],
                notes: "The same as `rouse COMMAND --help`; without COMMAND, all commands."),
            run: { try help($0) })
    ]

    private static func help(_ arguments: Arguments) throws -> Int32 {
        let words = arguments.operands
        if arguments.has("json") {
            let asked = groups.map { group in
                CommandGroup(group.title, group.commands.filter { $0.words.starts(with: words) })
            }
            guard asked.contains(where: { !$0.commands.isEmpty }) else {
                return offer(words + ["--json"], isAsked: true)
            }
            Terminal.print(try table(of: asked))
            return ExitStatus.success
        }
        if words.isEmpty {
            Terminal.print(overview)
            return ExitStatus.success
        }
        guard let command = commands.first(where: { $0.words == words }) else {
            return offer(words, isAsked: true)
        }
        Terminal.print(help(of: command))
        return ExitStatus.success
    }

    /// A command's help, with the commands whose names begin with its own.
    static func help(of command: Command) -> String {
        let below = commands.filter {
            $0.words.count > command.words.count && $0.words.starts(with: command.words)
        }
        if below.isEmpty { return command.description.help }
        return command.description.help + "\nsee also:\n\(lines(of: below))\n"
    }

    /// What to say to words that are no command: those that begin so if there are any, and the one
    /// that may have been meant.
    ///
    /// - Parameter isAsked: for help; what is found is then an answer and not a complaint.
    static func offer(_ words: [String], isAsked: Bool = false) -> Int32 {
        let asked = Array(words.prefix { !$0.hasPrefix("-") })
        let meant = meant(by: asked)
        let family = asked.indices.reversed().lazy.map { last in
            (count: last + 1, commands: commands.filter { $0.words.starts(with: asked[...last]) })
        }.first { !$0.commands.isEmpty }
        guard let family else {
            let groups = Set(commands.map { $0.words[0] }).sorted()
            let near = meant ?? asked.first.flatMap { Spelling.nearest($0, among: groups) }
            let said = near.map { "did you mean `rouse \($0)`?" } ?? "`rouse --help` lists them"
            return refuse(words, "no command `\(words[0])`; \(said)")
        }
        let text = "commands:\n\n\(lines(of: family.commands))\n\nrouse help COMMAND tells more"
        let isHelp =
            words.contains("--help") || words.contains("-h")
            || isAsked && family.count == asked.count
        if isHelp {
            Terminal.print(text)
            return ExitStatus.success
        }
        let begun = asked.prefix(family.count).joined(separator: " ")
        let list = "`rouse help \(begun)` lists those that begin so"
        let name = asked.prefix(family.count + 1).joined(separator: " ")
        let said = meant.map { "did you mean `rouse \($0)`?" } ?? list
        return refuse(
            words,
            family.count < asked.count
                ? "no command `\(name)`; \(said)" : "`\(begun)` is no whole command; \(list)",
            with: "\n" + text)
    }

    /// Words that are no command, refused for people and, with `--json`, for programs.
    private static func refuse(
        _ words: [String], _ reason: String, with more: String? = nil
    ) -> Int32 {
        Terminal.complain("rouse: \(reason)" + (more.map { "\n\($0)" } ?? ""))
        let refusal = CommandRefusal(UsageError(reason))
        if words.contains("--json"), let problem = try? refusal.json() { Terminal.print(problem) }
        return refusal.status
    }

    /// The command that the first of these words are most like.
    private static func meant(by asked: [String]) -> String? {
        var best: (name: String, mistakes: Int)?
        for command in commands where command.words.count <= asked.count {
            var sum = 0
            for (word, name) in zip(asked, command.words) {
                guard let mistakes = Spelling.mistakes(word, for: name) else {
                    sum = .max
                    break
                }
                sum += mistakes
            }
            // Of two as near, the longer one says more of what was asked.
            if sum < .max, sum <= best?.mistakes ?? .max { best = (command.description.name, sum) }
        }
        return best?.name
    }

    private static func lines(of commands: [Command]) -> String {
        CommandDescription.columns(
            commands.map { (name: $0.description.name, text: $0.description.summary) })
    }

    static var overview: String {
        let width = commands.map(\.description.name.count).max() ?? 0
        let parts = groups.map { group in
            let rows = group.commands.map { command in
                let name = command.description.name
                let gap = String(repeating: " ", count: width - name.count)
                return (name: name + gap, text: command.description.summary)
            }
            return "\(group.title)\n\(CommandDescription.columns(rows))"
        }
        return """
            rouse keeps every device of every user in sync, and wakes the ones that sleep.

            usage: rouse COMMAND [options]
                   rouse help COMMAND     what it does and takes
                   rouse --version

            \(parts.joined(separator: "\n\n"))
            """
    }
}

/// The table of commands for other programs.
extension Rouse {
    private struct TableOption: Encodable {
        let name: String
        let value: String?
        let words: [String]
        let help: String
    }

    private struct TableCommand: Encodable {
        let name: String
        let group: String
        let summary: String
        let operands: [String]
        let options: [TableOption]
    }

    private static func table(of groups: [CommandGroup]) throws -> String {
        let rows = groups.flatMap { group in
            group.commands.map(\.description).map { command in
                TableCommand(
                    name: command.name, group: group.title, summary: command.summary,
                    operands: command.operands,
                    options: command.options.map {
                        TableOption(
                            name: $0.name, value: $0.value, words: $0.form?.words ?? [],
                            help: $0.help)
                    })
            }
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return String(decoding: try encoder.encode(rows), as: UTF8.self)
    }
}
