import APNsSimulator
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
        exit(run(Array(CommandLine.arguments.dropFirst())))
    }

    static func run(_ words: [String]) -> Int32 {
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
            let arguments = try Arguments(rest, for: command.description)
            if arguments.asksForHelp {
                Terminal.print(help(of: command))
                return ExitStatus.success
            }
            return try command.run(arguments)
        } catch let error as UsageError {
            Terminal.complain("rouse \(command.description.name): \(error)")
            return ExitStatus.usage
        } catch let error as ConfigurationError {
            Terminal.complain("rouse \(command.description.name): \(error)")
            return ExitStatus.configuration
        } catch let error as AdminRefusal {
            let reason = command.description.inWordsOfOptions(error.description)
            Terminal.complain("rouse \(command.description.name): \(reason)")
            return error.status
        } catch {
            Terminal.complain("rouse \(command.description.name): \(ErrorWords.of(error))")
            return ExitStatus.failure
        }
    }

    /// Commands have one or more words (`app`, `app key add`): the longest that fits wins.
    private static func found(_ words: [String]) -> (Command, [String])? {
        let fitting = commands.filter { words.starts(with: $0.words) }
        guard let command = fitting.max(by: { $0.words.count < $1.words.count }) else { return nil }
        return (command, Array(words.dropFirst(command.words.count)))
    }
}
