import FoundationEssentials
import Scenario

extension Rouse {
    static let replayCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "replay", summary: "run an IRC log through a server and judge the result",
                operands: ["FILE"],
                options: [
                    CommandOption("awake", "nobody sleeps"),
                    CommandOption("factor", "N", "log time runs N times faster (default 60)"),
                    CommandOption("seed", "N", "chance (default 1)"),
                    CommandOption("lines", "N", "only the first N lines"),
                    CommandOption("kill-server", "N", "kill -9 the server N times on the way"),
                    CommandOption(
                        "kill-phones", "N", "kill N apps, each in the middle of a wake"),
                    CommandOption("suppress", "N", "keep the Nth entry back; the run must fail"),
                    CommandOption("corrupt", "N", "store the Nth wrongly; the run must fail"),
                    CommandOption("keep", "keep the folder with stores and log"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: [
                    "rouse replay 2007-06-04.txt --awake",
                    "rouse replay 2007-06-04.txt --kill-server 5 --json",
                    "rouse replay 2007-06-04.txt --kill-phones 20",
                ],
                notes: """
                    At the default factor a minute of the log takes a second, more if the server is
                    behind: log time waits for it. Every nick is a user with a device; its lines
                    are mutations on that device's own connection. A part puts the app to sleep (a
                    third is swiped away); its next line opens it. Half of the nicks read what
                    comes, half of these on a tablet of theirs, where each of the others reads on
                    the phone. The exit status is 0 only if every line was acknowledged, nothing was
                    lost, doubled or out of order, at the end the digest of every device's replica
                    was equal to the server's (over the newest 50 messages of each conversation),
                    and, unless --awake is given, there were wakes, demotions, alerts and
                    recoveries, no phone told of a message twice, each wake had told of all that it
                    brought when it was over, and at the end nothing stood on a screen but messages
                    that nobody had read, with their number at the icon. --suppress and --corrupt
                    put a defect in on one device, with --awake.
                    """),
            run: { try replay($0) })
    ]

    private static func replay(_ arguments: Arguments) throws -> Int32 {
        var options = ReplayOptions()
        options.logFile = arguments.operands[0]
        options.isAwake = arguments.has("awake")
        options.factor = Double(try arguments.number("factor", in: 1...100_000) ?? 60)
        options.seed = try arguments.number("seed", in: 0...UInt64.max) ?? 1
        options.lines = try arguments.number("lines", in: 1...Int.max)
        options.kills = try arguments.number("kill-server", in: 0...100) ?? 0
        options.phoneKills = try arguments.number("kill-phones", in: 0...10_000) ?? 0
        if let entry = try arguments.number("suppress", in: 1...Int.max) {
            options.damage = ReplayDamage(.suppressed, entry: entry)
        }
        if let entry = try arguments.number("corrupt", in: 1...Int.max) {
            options.damage = ReplayDamage(.corrupted, entry: entry)
        }
        options.keepsFolder = arguments.has("keep")
        options.executable = try ownExecutable()
        let progress = Progress()
        options.progress = { progress.show($0) }
        options.remark = { line in
            progress.end()
            Terminal.complain(line)
        }
        let report = try Replay.run(options)
        progress.end()
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        return report.isGood ? ExitStatus.success : ExitStatus.failure
    }

    /// This program's file: scenarios run it again as the server.
    static func ownExecutable() throws -> String {
        let link = "/proc/self/exe"
        guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link) else {
            throw UsageError("cannot find the own executable at \(link)")
        }
        return path
    }
}
