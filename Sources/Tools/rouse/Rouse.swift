import Glibc

/// The one executable: `rouse COMMAND`.
@main
enum Rouse {
    /// A command: what it is, and what runs it. `run` returns the exit status.
    struct Command: Sendable {
        let description: CommandDescription
        let run: @Sendable (Arguments) throws -> Int32

        var words: [String] { description.name.split(separator: " ").map(String.init) }
    }

    static let version = "0.1.0"

    static let commands: [Command] =
        serveCommands + apnsSimulatorCommands + demoCommands + replayCommands + loadCommands
        + benchCommands
        + conformCommands + conformClientCommands + backupCommands + storeCommands
        + appCommands + keyCommands + pushCommands + webhookCommands + deviceCommands
        + fleetCommands + accessCommands
        + developmentCommands
        + explainCommands + campaignCommands

    static func main() {
        // A parent may have blocked signals for its threads, and a child inherits that: a server
        // that cannot be told to end would be the result.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        exit(run(Array(CommandLine.arguments.dropFirst())))
    }

    static func run(_ words: [String]) -> Int32 {
        guard let first = words.first, first != "--help", first != "-h", first != "help" else {
            Terminal.print(overview)
            return words.isEmpty ? ExitStatus.usage : ExitStatus.success
        }
        if first == "--version" {
            Terminal.print("rouse \(version)")
            return ExitStatus.success
        }
        guard let (command, rest) = found(words) else { return offer(words) }
        do {
            let arguments = try Arguments(rest, for: command.description)
            if arguments.asksForHelp {
                Terminal.print(command.description.help)
                return ExitStatus.success
            }
            return try command.run(arguments)
        } catch let error as UsageError {
            Terminal.complain("rouse \(command.description.name): \(error)")
            return ExitStatus.usage
        } catch {
            Terminal.complain("rouse \(command.description.name): \(error)")
            return ExitStatus.failure
        }
    }

    /// What to say to words that are no command: the commands that begin so, if there are any.
    private static func offer(_ words: [String]) -> Int32 {
        let asked = words.prefix { !$0.hasPrefix("-") }
        let group = asked.indices.reversed().lazy.map { last in
            commands.filter { $0.words.starts(with: asked[...last]) }
        }.first { !$0.isEmpty }
        guard let group else {
            Terminal.complain("rouse: no command `\(words[0])`; `rouse --help` lists them")
            return ExitStatus.usage
        }
        let isHelp = words.contains("--help") || words.contains("-h")
        let text = "commands:\n\n\(lines(of: group))\n\nrouse COMMAND --help tells more"
        isHelp ? Terminal.print(text) : Terminal.complain(text)
        return isHelp ? ExitStatus.success : ExitStatus.usage
    }

    /// Commands have one or more words (`app`, `app key add`): the longest that fits wins.
    private static func found(_ words: [String]) -> (Command, [String])? {
        let fitting = commands.filter { words.starts(with: $0.words) }
        guard
            let command = fitting.max(by: {
                $0.description.name.count < $1.description.name.count
            })
        else { return nil }
        return (command, Array(words.dropFirst(command.words.count)))
    }

    private static func lines(of commands: [Command]) -> String {
        let width = (commands.map(\.description.name.count).max() ?? 0) + 2
        return commands.map { command in
            let name = command.description.name
            let gap = String(repeating: " ", count: width - name.count)
            return "  \(name)\(gap)\(command.description.summary)"
        }.joined(separator: "\n")
    }

    private static var overview: String {
        """
        rouse keeps every device of every user in sync, and wakes the ones that sleep.

        usage: rouse COMMAND [options]; rouse COMMAND --help; rouse --version

        \(lines(of: commands))
        """
    }
}
