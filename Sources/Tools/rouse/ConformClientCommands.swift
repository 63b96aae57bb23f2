import Conformance
import FoundationEssentials
import Scenario

/// `rouse conform client`: whether a client keeps Protocol/.
extension Rouse {
    static let conformClientCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "conform client", summary: "test any client against the protocol's text",
                options: [
                    CommandOption("client", "COMMAND", "starts the client's driver"),
                    CommandOption("self", "test the client of our own"),
                    CommandOption("only", "NAME", "a section or a case, or a part of its name"),
                    CommandOption("list", "list the cases with their clauses, run nothing"),
                    CommandOption("strict", "a SHOULD that is not kept counts as a MUST"),
                    CommandOption("format", "people|tap|junit|json", "for whom (people)"),
                    CommandOption("timeout", "SECONDS", "what a case may take (45)"),
                    CommandOption("jobs", "N", "cases at once (12)"),
                    CommandOption("no-timers", "leave out cases that wait for timers"),
                    CommandOption("mutants", "run the suite against clients with one defect each"),
                    CommandOption("protocol", "DIR", "the folder Protocol of the checkout"),
                    CommandOption("vectors", "DIR", "its vectors, if they lie elsewhere"),
                ],
                examples: [
                    "rouse conform client --self",
                    "rouse conform client --client 'driver {port} {ca} {key} {user} {dir}'",
                ],
                notes: """
                    For each case a scripted server listens on a port of 127.0.0.1, and the command
                    starts a driver: a small program around the client under test, told by lines
                    what its app and its user do. {host} {port} {name} {ca} {app} {user} {key}
                    {kid} {dir} are replaced in its words. Protocol/conformance.md says what a
                    driver does.
                    """),
            run: { try conformClient($0) }),
        Command(
            description: CommandDescription(
                name: "conform driver", summary: "the driver of our own client, for conform client",
                options: [
                    CommandOption("host", "HOST", "the server"),
                    CommandOption("port", "PORT", "its port for devices"),
                    CommandOption("name", "NAME", "the name in its certificate"),
                    CommandOption("ca", "FILE", "authorities of its certificate, PEM"),
                    CommandOption("app", "APP", "the app"),
                    CommandOption("user", "USER", "who logs in"),
                    CommandOption("key", "FILE", "the issuer's private key, PEM"),
                    CommandOption("kid", "KID", "its name"),
                    CommandOption("dir", "DIR", "where the device keeps everything"),
                ],
                examples: [
                    "rouse conform driver --port 7443 --ca tls/ca.pem --app shop --user anna "
                        + "--key issuer.pem --kid 2026 --dir device"
                ]),
            run: { try driveClient($0) }),
    ]

    private static func driveClient(_ arguments: Arguments) throws -> Int32 {
        guard let port = try arguments.number("port", in: 1...UInt16.max) else {
            throw UsageError("--port is needed")
        }
        func text(_ name: String) throws -> String {
            _ = try arguments.required(name)
            return try file(name, arguments) ?? ""
        }
        let host = arguments.string("host") ?? "127.0.0.1"
        try ConformDriver.run(
            ConformDriver.Options(
                host: host, port: port, serverName: arguments.string("name") ?? host,
                authorityPEM: try text("ca"), app: try arguments.required("app"),
                user: try arguments.required("user"), issuerKeyPEM: try text("key"),
                keyID: try arguments.required("kid"),
                folder: URL(fileURLWithPath: try arguments.required("dir"))))
        return ExitStatus.success
    }

    private static func conformClient(_ arguments: Arguments) throws -> Int32 {
        if arguments.has("list") {
            return try list(ClientConformance.cases, only: arguments.strings("only"))
        }
        if arguments.has("mutants") { return try mutants(arguments, areClients: true) }
        guard let format = ReportFormat(rawValue: arguments.string("format") ?? "people") else {
            throw UsageError("--format is one of people, tap, junit, json")
        }
        let words: [String]
        if arguments.has("self") {
            words = [
                try ownExecutable(), "conform", "driver", "--host", "{host}", "--port", "{port}",
                "--name", "{name}", "--ca", "{ca}", "--app", "{app}", "--user", "{user}",
                "--key", "{key}", "--kid", "{kid}", "--dir", "{dir}",
            ]
        } else if let command = arguments.string("client") {
            words = command.split(separator: " ").map(String.init)
        } else {
            throw UsageError("--client is needed, or --self")
        }
        var options = ClientConformanceOptions(client: words)
        options.only = arguments.strings("only")
        options.isStrict = arguments.has("strict")
        options.caseSeconds = try arguments.number("timeout", in: 1...3_600) ?? 45
        options.jobs = try arguments.number("jobs", in: 1...64) ?? 12
        options.skipsTimers = arguments.has("no-timers")
        if format == .people {
            let hasColour = Terminal.hasColour
            options.progress = { Terminal.print(line(of: $0, colour: hasColour)) }
        }
        let report = try ClientConformance.run(options)
        Terminal.print(report.text(format))
        if format != .people { Terminal.complain(report.summary) }
        return report.isGood ? ExitStatus.success : ExitStatus.failure
    }
}
