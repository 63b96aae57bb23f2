import APNsSimulator
import Fleet
import FoundationEssentials
import Glibc
import Scenario

/// `rouse fleet`: what another policy would do to a million devices.
extension Rouse {
    static let fleetCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "fleet", summary: "try wake policies on a million simulated devices",
                options: [
                    CommandOption("devices", "N", "how many (default 10000)"),
                    CommandOption("days", "N", "of simulated time (default 3)"),
                    CommandOption(
                        "policy", "NAME[,NAME]", "policies beside each other (default: all)",
                        choices: PolicyChoice.names),
                    CommandOption(
                        "traffic", "everyday|FILE", "drawn, or of an IRC log or a folder of them"),
                    CommandOption("seed", "N", "chance (default 1)"),
                    CommandOption("threads", "N", "(default: one for each processor)"),
                    CommandOption("json", "end with one JSON object on stdout"),
                    CommandOption("svg", "FILE", "write a picture of the result"),
                ],
                examples: [
                    "rouse fleet",
                    "rouse fleet --devices 1000000 --policy classic,adaptive --svg fleet.svg",
                    "rouse fleet --policy classic,classic/grace_seconds=120,adaptive",
                    "rouse fleet --traffic 2007-06-04.txt --days 1 --json",
                ],
                notes: """
                    Policies: \(PolicyChoice.names.joined(separator: ", ")). A policy may be
                    changed, NAME/key=number/..., by the keys that `rouse app set` has for apps.
                    What is decided is decided by the server's own rules, what a phone does with a
                    push by the simulator's; Sources/Tools/Fleet/Fleet.md says what is assumed of
                    people and phones, and what the columns mean. The same seed gives the same
                    result, whatever the number of threads. Measure with a release build.
                    """),
            run: { try fleet($0) })
    ]

    private static func fleet(_ arguments: Arguments) throws -> Int32 {
        var options = FleetOptions()
        options.devices = try arguments.number("devices", in: 1...100_000_000) ?? options.devices
        options.days = try arguments.number("days", in: 1...28) ?? options.days
        options.seed = try arguments.number("seed", in: 0...UInt64.max) ?? options.seed
        options.threads =
            try arguments.number("threads", in: 1...256)
            ?? max(1, ProcessInfo.processInfo.activeProcessorCount)
        let names =
            arguments.string("policy")?.split(separator: ",", omittingEmptySubsequences: false)
            .map(String.init) ?? PolicyChoice.names
        guard names.count <= 8 else { throw UsageError("--policy takes 8 at most") }
        do {
            options.policies = try names.map { try PolicyChoice($0) }
        } catch {
            throw UsageError("--policy: \(error)")
        }
        if let traffic = arguments.string("traffic"), traffic != "everyday" {
            guard let recorded = try recordedTraffic(traffic) else {
                throw AdminRefusal(
                    description: "\(traffic) holds no message", status: ExitStatus.badData)
            }
            options.traffic = recorded
            options.trafficName = URL(fileURLWithPath: traffic).lastPathComponent
        }
        // Known before a run that takes a quarter of an hour.
        if let file = arguments.string("svg") { try write("", to: file) }
        let progress = Progress()
        options.progress = { progress.show("\($0) of \($1) devices") }
        let report = Fleet.run(options)
        progress.end()
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        guard let file = arguments.string("svg") else { return ExitStatus.success }
        do {
            try write(report.svg, to: file)
        } catch {
            // The result is printed already, which is what took the time.
            throw AdminRefusal(
                description: error.description, status: error.status, isPrinted: true)
        }
        return ExitStatus.success
    }

    private static func write(_ text: String, to file: String) throws(AdminRefusal) {
        do {
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        } catch {
            throw AdminRefusal(
                description: "cannot write \(file): \(ErrorWords.reason(error))",
                status: ExitStatus.cannotCreate)
        }
    }

    /// Each log is a conversation of all who spoke in it.
    private static func recordedTraffic(_ path: String) throws -> RecordedTraffic? {
        let files = FileManager.default
        var isFolder = false
        guard files.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw AdminRefusal(
                description: "--traffic: there is no \(path)", status: ExitStatus.badData)
        }
        let folder = URL(fileURLWithPath: path)
        let logs =
            isFolder
            ? try files.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".txt") }.sorted()
                .map { folder.appendingPathComponent($0) }
            : [folder]
        var messages: [RecordedTraffic.Message] = []
        for (index, log) in logs.enumerated() {
            messages += IRCLog(text: try IRCLog.text(of: log.path))
                .messages(of: UInt64(index + 1))
        }
        return RecordedTraffic(messages)
    }
}

extension IRCLog {
    /// The lines of a minute, evenly over it.
    fileprivate func messages(of conversation: UInt64) -> [RecordedTraffic.Message] {
        var numbers: [String: Int] = [:]
        var inMinute: [Int: Int] = [:]
        let spoken = events.filter {
            if case .message = $0.kind { true } else { false }
        }
        for event in spoken { inMinute[event.minute, default: 0] += 1 }
        var seen: [Int: Int] = [:]
        return spoken.map { event in
            let number = numbers[event.user] ?? numbers.count
            numbers[event.user] = number
            let place = seen[event.minute, default: 0]
            seen[event.minute] = place + 1
            let count = inMinute[event.minute] ?? 1
            return RecordedTraffic.Message(
                at: UInt64(event.minute) * 60_000 + UInt64(60_000 * place / count),
                conversation: conversation, sender: number)
        }
    }
}
