import Glibc

/// The one executable: `rouse COMMAND`.
@main
enum Rouse {
    /// A command: what it is, and what runs it. `run` returns the exit status.
    struct Command: Sendable {
        let description: CommandDescription
        let run: @Sendable (Arguments) throws -> Int32
    }

    static let version = "0.1.0"

    static let commands: [Command] = serveCommands + replayCommands

    static func main() {
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
        guard let (command, rest) = found(words) else {
            Terminal.complain("rouse: no command `\(first)`; `rouse --help` lists them")
            return ExitStatus.usage
        }
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

    /// Commands have one or more words (`app`, `app key add`): the longest that fits wins.
    private static func found(_ words: [String]) -> (Command, [String])? {
        let fitting = commands.filter { command in
            words.starts(with: command.description.name.split(separator: " ").map(String.init))
        }
        guard
            let command = fitting.max(by: {
                $0.description.name.count < $1.description.name.count
            })
        else { return nil }
        let count = command.description.name.split(separator: " ").count
        return (command, Array(words.dropFirst(count)))
    }

    private static var overview: String {
        let width = (commands.map(\.description.name.count).max() ?? 0) + 2
        let lines = commands.map { command in
            let name = command.description.name
            let gap = String(repeating: " ", count: width - name.count)
            return "  \(name)\(gap)\(command.description.summary)"
        }
        return """
            rouse keeps every device of every user in sync, and wakes the ones that sleep.

            usage: rouse COMMAND [options]; rouse COMMAND --help; rouse --version

            \(lines.joined(separator: "\n"))
            """
    }
}
