import EventLoop
import FoundationEssentials
import Glibc
import RouseServer

/// The one executable: `rouse COMMAND`.
@main
enum Rouse {
    /// A command: what it is, and what runs it. `run` returns the exit status.
    struct Command: Sendable {
        let description: CommandDescription
        let run: @Sendable (Arguments) throws -> Int32

        var words: [String] { description.words }
    }

    /// Commands that help with one thing.
    struct CommandGroup: Sendable {
        let title: String
        let commands: [Command]

        init(_ title: String, _ commands: [Command]) {
            self.title = title
            self.commands = commands
        }
    }

    static let version = Server.version

    /// Every command there is. Help, manual pages and completion are made from this.
    static let groups = [
        CommandGroup(
            "a server and its store",
            serveCommands + backupCommands + storeCommands
                + nodeCommands),
        CommandGroup(
            "apps, and what they may do",
            appCommands + appAccessCommands + keyCommands
                + webhookCommands),
        CommandGroup(
            "users and their devices", deviceCommands + userAccessCommands + explainCommands),
        CommandGroup("operators", consoleCommands),
        CommandGroup("pushes", credentialCommands + pushCommands + campaignCommands),
        CommandGroup(
            "trying it out",
            demoCommands + chatCommands + apnsSimulatorCommands + replayCommands
                + developmentCommands),
        CommandGroup(
            "measuring and testing",
            benchCommands + loadCommands + fleetCommands + conformCommands
                + conformClientCommands),
        CommandGroup("this program", helpCommands + completionCommands + manualCommands),
    ]

    static let commands = groups.flatMap(\.commands)

    static func main() {
        // A parent may have blocked signals for its threads, and a child inherits that: a server
        // that cannot be told to end would be the result.
        var none = sigset_t()
        sigemptyset(&none)
        // Whoever sends it to a server that still starts does not want to end it.
        if CommandLine.arguments.dropFirst().first == "serve" { Signals.holdHangUps() }
        pthread_sigmask(SIG_SETMASK, &none, nil)
        let status = run(Array(CommandLine.arguments.dropFirst()))
        fflush(nil)
        // Without what libraries do at an exit: libuv waits for each question that the system's
        // resolver still works on, and OpenSSL takes away what a thread may be using.
        _exit(status)
    }

    /// The exit status of a command line, with whether its output arrived.
    static func run(_ words: [String]) -> Int32 {
        let name = found(words).map { " " + $0.0.description.name } ?? ""
        return Terminal.settle(outcome(of: words), of: "rouse" + name)
    }

    private static func outcome(of words: [String]) -> Int32 {
        guard let first = words.first, first != "--help", first != "-h" else {
            Terminal.print(overview)
            return words.isEmpty ? ExitStatus.usage : ExitStatus.success
        }
        if first == "--version" {
            Terminal.print("rouse \(version)")
            return ExitStatus.success
        }
        guard let (command, rest) = found(words) else { return offer(words) }
        do {
            try refuseOtherThanText()
            let arguments = try Arguments(rest, for: command.description)
            if arguments.asksForHelp {
                Terminal.print(help(of: command))
                return ExitStatus.success
            }
            return try command.run(arguments)
        } catch {
            let refusal = CommandRefusal(error, of: command.description)
            Terminal.complain("rouse \(command.description.name): \(refusal.words)")
            if asksForJSON(rest, of: command), !refusal.isPrinted,
                let problem = try? refusal.json()
            {
                Terminal.print(problem)
            }
            return refusal.status
        }
    }

    /// Swift puts other characters in the place of bytes that are not UTF-8: a name would be made
    /// that nobody gave.
    private static func refuseOtherThanText() throws(UsageError) {
        for place in 1..<max(1, Int(CommandLine.argc)) {
            guard let word = CommandLine.unsafeArgv[place],
                String(validatingCString: word) == nil
            else { continue }
            throw UsageError("`\(String(cString: word))`: word \(place) is not UTF-8")
        }
    }

    /// With `--json`, or as the one of several formats.
    private static func asksForJSON(_ rest: [String], of command: Command) -> Bool {
        let options = command.description.options.map(\.name)
        let format = rest.firstIndex(of: "--format").map { rest.dropFirst($0 + 1).first }
        return options.contains("json") && rest.contains("--json")
            || options.contains("format") && (format == "json" || rest.contains("--format=json"))
    }

    /// Commands have one or more words (`app`, `app key add`): the longest that fits wins.
    private static func found(_ words: [String]) -> (Command, [String])? {
        let fitting = commands.filter { words.starts(with: $0.words) }
        guard let command = fitting.max(by: { $0.words.count < $1.words.count }) else { return nil }
        return (command, Array(words.dropFirst(command.words.count)))
    }
}
