import Foundation
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
            run: { try loadIdle($0) })
    ]

    private static func loadIdle(_ arguments: Arguments) throws -> Int32 {
        var options = IdleLoadOptions()
        options.connections = try arguments.number("connections", in: 1...1_000_000) ?? 5_000
        options.idleSeconds = try arguments.number("idle", in: 0...3_600) ?? 10
        options.keepsFolder = arguments.has("keep")
        options.executable = try ownExecutable()
        options.progress = { Terminal.complain($0) }
        let report = try IdleLoad.run(options)
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        return ExitStatus.success
    }
}
