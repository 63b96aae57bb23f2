import EventLoop
import Foundation
import Glibc
import RouseServer
import Telemetry

extension Rouse {
    static let serveCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "serve", summary: "run the server",
                options: [
                    CommandOption("config", "FILE", "settings; without it the defaults"),
                    CommandOption("set", "KEY=VALUE", "one setting over the file; repeatable"),
                    CommandOption("check-config", "check the settings and end"),
                    CommandOption("print-config", "print the settings in force and end"),
                    CommandOption("example-config", "print a commented example and end"),
                    CommandOption("json", "say the addresses as one JSON object on stdout"),
                    CommandOption("with-parent", "end at once when standard input ends"),
                ],
                examples: [
                    "rouse serve --example-config > rouse.conf",
                    "rouse serve --config rouse.conf --check-config",
                    "ROUSE_LISTEN_PORT=7443 rouse serve --config rouse.conf",
                ],
                notes: """
                    SIGTERM drains: clients are told when to come back, and the server ends when
                    none is left or after timers.drain seconds; a second SIGTERM ends at once.
                    SIGHUP reads the certificate files again. The log goes to standard error.
                    """),
            run: { try serve($0) })
    ]

    private static func serve(_ arguments: Arguments) throws -> Int32 {
        if arguments.has("example-config") {
            Terminal.print(Configuration.example, terminator: "")
            return ExitStatus.success
        }
        let configuration: Configuration
        do {
            configuration = try servedConfiguration(arguments)
            if arguments.has("check-config") { try Server.check(configuration) }
        } catch {
            Terminal.complain("rouse serve: \(error)")
            return ExitStatus.configuration
        }
        if arguments.has("print-config") {
            Terminal.print(configuration.text, terminator: "")
            return ExitStatus.success
        }
        if arguments.has("check-config") {
            for warning in Server.warnings(configuration) {
                Terminal.complain("rouse serve: warning: \(warning)")
            }
            Terminal.print("the settings are sound")
            return ExitStatus.success
        }
        do {
            return try run(
                configuration, json: arguments.has("json"),
                withParent: arguments.has("with-parent"))
        } catch let error as ServerError {
            Terminal.complain("rouse serve: \(error)")
            return ExitStatus.unavailable
        }
    }

    /// What `--config`, the environment and `--set` say together.
    static func servedConfiguration(_ arguments: Arguments) throws -> Configuration {
        var text = ""
        var name = "defaults"
        if let path = arguments.string("config") {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw ConfigurationError("cannot read \(path)")
            }
            text = String(decoding: data, as: UTF8.self)
            name = path
        }
        return try Configuration(
            text: text, name: name, environment: ProcessInfo.processInfo.environment,
            overrides: arguments.strings("set"))
    }

    private static func run(
        _ configuration: Configuration, json: Bool, withParent: Bool
    ) throws -> Int32 {
        Signals.ignoreBrokenPipe()
        let log = Log(level: configuration.logLevel)
        let server = try Server.start(configuration, log: log)
        let loop = try Loop()
        let ended = Mailbox<Void>(loop: loop, limit: 2) { _ in loop.stop() }
        var isDraining = false
        let end: () -> Void = {
            if isDraining { return loop.stop() }
            isDraining = true
            server.drain { ended.post(()) }
        }
        let watches = [
            try Signals.watch(.terminate, on: loop, end),
            try Signals.watch(.interrupt, on: loop, end),
            try Signals.watch(.hangUp, on: loop) { server.reload() },
        ]
        let parent = withParent ? ParentWatch(loop: loop) { loop.stop() } : nil
        let addresses = server.addresses
        if json {
            Terminal.print(
                """
                {"device_port":\(addresses.devicePort),"api_port":\(addresses.apiPort)}
                """)
        } else {
            Terminal.print(
                "rouse: devices on port \(addresses.devicePort), "
                    + "backend API on port \(addresses.apiPort)")
        }
        loop.run()
        server.stop()
        withExtendedLifetime((watches, parent)) { loop.close() }
        return ExitStatus.success
    }
}
