import FoundationEssentials
import Glibc
import Scenario

/// `rouse load`: what a server can bear, measured on this machine.
extension Rouse {
    static let loadCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "load idle", summary: "measure the memory of idle device connections",
                options: [
                    CommandOption("connections", "N", "devices that log in (default 5000)"),
                    CommandOption("idle", "SECONDS", "how long they idle (default 10)"),
                    CommandOption("keep", "keep the folder with store and log"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: ["rouse load idle", "rouse load idle --connections 500 --json"],
                notes: """
                    It starts a server of its own, with free ports and a temporary folder, and logs
                    devices in over TLS from several addresses of 127.0.0.0/8. The figure is what
                    the server's process grew by, divided by the connections; measure with a
                    release build. Kernel memory of the sockets is not in it.
                    """),
            run: { try loadIdle($0) }),
        Command(
            description: CommandDescription(
                name: "load first-sync", summary: "measure what a new device's first sync costs",
                options: [
                    CommandOption("messages", "N", "a history of N instead of 10 and 10000"),
                    CommandOption("conversations", "N", "that hold the history (default 20)"),
                    CommandOption("runs", "N", "new devices, of which the median (default 5)"),
                    CommandOption("keep", "keep the folder with stores and log"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: [
                    "rouse load first-sync", "rouse load first-sync --messages 1000 --json",
                ],
                notes: """
                    It starts a server of its own, publishes the history through the backend API,
                    and lets new devices sync into files of their own: by snapshot, where the first
                    page makes the app usable, and, to compare, by the feed from its start. Bytes
                    are those of the socket, TLS and the login included; time is from dialling.
                    """),
            run: { try loadFirstSync($0) }),
        Command(
            description: CommandDescription(
                name: "load push", summary: "measure the way to APNs, beside h2load",
                options: [
                    CommandOption("pushes", "N", "pushes of one campaign (default 15000)"),
                    CommandOption("payload", "BYTES", "of each (default 150)"),
                    CommandOption(
                        "wakes", "N", "wakes to send alone, and then beside the campaign"),
                    CommandOption("keep", "keep the folder with the simulator's log"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: [
                    "rouse load push", "rouse load push --pushes 100000 --wakes 500 --json",
                ],
                notes: """
                    It starts a simulator in a process of its own and sends the pushes to it: by the
                    gateway of the server, from memory, with a provider token and with a client
                    certificate, and then by h2load (nghttp2-client), the same requests over one
                    connection, with a provider token, for it has no certificates. Processor time is
                    the sender's alone. The exit status is 0 only if every push that the gateway
                    sent was accepted. Measure with a release build.
                    """),
            run: { try loadPush($0) }),
    ]

    private static func loadFirstSync(_ arguments: Arguments) throws -> Int32 {
        var options = FirstSyncOptions()
        if let messages = try arguments.number("messages", in: 1...1_000_000) {
            options.histories = [messages]
        }
        options.conversations = try arguments.number("conversations", in: 1...1_000) ?? 20
        options.runs = try arguments.number("runs", in: 1...1_000) ?? 5
        options.keepsFolder = arguments.has("keep")
        options.executable = try ownExecutable()
        options.progress = { Terminal.complain($0) }
        let report = try FirstSyncLoad.run(options)
        return tell(report.text, json: report.json, arguments)
    }

    private static func loadPush(_ arguments: Arguments) throws -> Int32 {
        var options = PushLoadOptions()
        options.pushes = try arguments.number("pushes", in: 1...1_000_000) ?? options.pushes
        options.payloadBytes =
            try arguments.number("payload", in: 32...4_096) ?? options.payloadBytes
        options.wakes = try arguments.number("wakes", in: 0...100_000) ?? 0
        options.keepsFolder = arguments.has("keep")
        options.executable = try ownExecutable()
        options.progress = { Terminal.complain($0) }
        let report = try PushLoad.run(options)
        let status = tell(report.text, json: report.json, arguments)
        return report.isGood ? status : ExitStatus.failure
    }

    private static func loadIdle(_ arguments: Arguments) throws -> Int32 {
        var options = IdleLoadOptions()
        options.connections = try arguments.number("connections", in: 1...1_000_000) ?? 5_000
        options.idleSeconds = try arguments.number("idle", in: 0...3_600) ?? 10
        options.keepsFolder = arguments.has("keep")
        options.executable = try ownExecutable()
        options.progress = { Terminal.complain($0) }
        let report = try IdleLoad.run(options)
        return tell(report.text, json: report.json, arguments)
    }

    /// With `--json` standard output holds nothing but the object.
    private static func tell(_ text: String, json: String, _ arguments: Arguments) -> Int32 {
        if arguments.has("json") {
            Terminal.complain(text)
            Terminal.print(json)
        } else {
            Terminal.print(text)
        }
        return ExitStatus.success
    }
}
