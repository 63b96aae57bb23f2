import EventLoop
import FoundationEssentials
import Glibc
import JSONTree
import RouseServer
import Telemetry

extension Rouse {
    /// What may begin a value of `--set`.
    static let settingChoices = Configuration.settings.map { $0.key + "=" }

    static let serveCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "serve", summary: "run the server",
                options: [
                    CommandOption("config", "FILE", "settings; without it the defaults"),
                    CommandOption(
                        "set", "KEY=VALUE", "one setting over the file; repeatable",
                        choices: settingChoices),
                    CommandOption("check-config", "check the settings and end"),
                    CommandOption("print-config", "print the settings in force and end"),
                    CommandOption("example-config", "print a commented example and end"),
                    CommandOption(
                        "json",
                        "say the addresses, the settings of --print-config or what --check-config "
                            + "found as one JSON object"),
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
                    SIGHUP reads the settings and the certificate files again: limits.*, tls.*,
                    log.* and timers.drain are in force then, and the log names what needs a
                    restart. A mistake changes nothing. During the start SIGHUP waits for its end;
                    SIGUSR1 and SIGUSR2 do nothing. Certificate files that were renewed are in
                    force within seconds also without it. The log goes to standard error.
                    A supervisor that speaks systemd's protocol is told READY=1, STOPPING=1 and, as
                    long as every loop moves, WATCHDOG=1; a socket it passes (LISTEN_FDS) takes the
                    place of listen.host and listen.port.
                    """),
            run: { try serve($0) })
    ]

    private static func serve(_ arguments: Arguments) throws -> Int32 {
        if arguments.has("example-config") {
            Terminal.print(Configuration.example, terminator: "")
            return ExitStatus.success
        }
        var reading = try readSettings(arguments)
        if arguments.has("print-config") {
            if let error = reading.error { throw error }
            try show(reading.configuration, json: arguments.has("json"))
            return ExitStatus.success
        }
        reading.look()
        if let error = reading.error { throw error }
        let configuration = reading.configuration
        if arguments.has("check-config") {
            let warnings = Server.warnings(configuration)
            for warning in warnings { Terminal.complain("rouse serve: warning: \(warning)") }
            if arguments.has("json") {
                let object = JSONValue.object([
                    "is_sound": .flag(true), "warnings": .list(warnings.map { .text($0) }),
                ])
                Terminal.print(String(decoding: try object.bytes, as: UTF8.self))
            } else {
                Terminal.print("the settings are sound")
            }
            return ExitStatus.success
        }
        return try run(
            configuration, { try readSettings(arguments) }, json: arguments.has("json"),
            withParent: arguments.has("with-parent"))
    }

    private static func show(_ configuration: Configuration, json: Bool) throws {
        guard json else { return Terminal.print(configuration.text, terminator: "") }
        // Texts, as a file and --set take them.
        let settings = configuration.shown.map { ($0.key, JSONValue.text($0.value)) }
        let object = JSONValue.object(Dictionary(uniqueKeysWithValues: settings))
        Terminal.print(String(decoding: try object.bytes, as: UTF8.self))
    }

    /// What `--config`, the environment and `--set` say together.
    static func readSettings(_ arguments: Arguments) throws -> ConfigurationReading {
        try ConfigurationReading(
            file: arguments.string("config"), environment: ProcessInfo.processInfo.environment,
            overrides: arguments.strings("set"))
    }

    /// The same, where a mistake ends the command.
    static func servedConfiguration(_ arguments: Arguments) throws -> Configuration {
        let reading = try readSettings(arguments)
        if let error = reading.error { throw error }
        return reading.configuration
    }

    /// - Parameter read: reads the settings again.
    private static func run(
        _ configuration: Configuration, _ read: @escaping () throws -> ConfigurationReading,
        json: Bool, withParent: Bool
    ) throws -> Int32 {
        Signals.ignoreFailedWrites()
        let log = Log(level: configuration.logLevel)
        let supervisor = Supervisor(environment: ProcessInfo.processInfo.environment)
        try Server.check(supervisor)
        let server = try Server.start(configuration, log: log, supervisor: supervisor)
        let loop = try Loop()
        let ended = Mailbox<Void>(loop: loop, limit: 2) { _ in loop.stop() }
        var isDraining = false
        let end: () -> Void = {
            if isDraining { return loop.stop() }
            isDraining = true
            supervisor.tell("STOPPING=1")
            server.drain { ended.post(()) }
        }
        let ends = [
            try Signals.watch(.terminate, on: loop, end),
            try Signals.watch(.interrupt, on: loop, end),
        ]
        let reloads = try Signals.watch(.hangUp, on: loop) { server.reload(read) }
        if Signals.takeHeldHangUp() { server.reload(read) }
        let parent = withParent ? ParentWatch(loop: loop) { loop.stop() } : nil
        let addresses = server.addresses
        if json {
            let others =
                (addresses.consolePort.map { ",\"console_port\":\($0)" } ?? "")
                + (addresses.agentPort.map { ",\"agent_port\":\($0)" } ?? "")
            Terminal.print(
                """
                {"device_port":\(addresses.devicePort),"api_port":\(addresses.apiPort)\(others)}
                """)
        } else {
            // The log tells it, too: no server ends as a failure for this line.
            Terminal.mention(
                "rouse: devices on port \(addresses.devicePort), "
                    + "backend API on port \(addresses.apiPort)"
                    + (addresses.consolePort.map { ", console on port \($0)" } ?? "")
                    + (addresses.agentPort.map { ", agent on port \($0)" } ?? ""))
        }
        let watchdog = loop.timer {
            server.whenAllTurned { supervisor.tell("WATCHDOG=1") }
        }
        // Twice within the time in which one is wanted, as sd_watchdog_enabled(3) advises.
        if let wanted = supervisor.watchdog {
            watchdog.start(
                afterMilliseconds: 0, repeatingMilliseconds: max(wanted / 2, 1))
        }
        let certificates = loop.timer { server.lookAtCertificate() }
        certificates.start(
            afterMilliseconds: Server.certificateInterval,
            repeatingMilliseconds: Server.certificateInterval)
        supervisor.tell("READY=1")
        loop.run()
        // From here on a signal has its own effect: whatever the stop may wait for, the next one
        // ends the process, which has nothing to repair.
        for watch in ends { watch.close() }
        server.stop()
        withExtendedLifetime((reloads, parent, watchdog, certificates)) { loop.close() }
        return ExitStatus.success
    }
}
