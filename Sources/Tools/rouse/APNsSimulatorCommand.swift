internal import APNsSimulator
import JSONTree

/// `rouse apns-simulator`: APNs on one machine, for tests, demo and replay.
extension Rouse {
    static let apnsSimulatorCommands: [Command] = [
        Command(description: simulatorDescription, run: runSimulator),
        Command(description: tellDescription, run: tellSimulator),
    ]

    private static let tellDescription = CommandDescription(
        name: "apns-simulator tell", summary: "give a running simulator one command",
        operands: ["COMMAND"],
        options: [
            CommandOption("control", "PATH", "its control socket"),
            CommandOption("follow", "go on printing what comes, as for events; until Ctrl-C"),
        ],
        examples: [
            #"rouse apns-simulator tell --control apns.sock '{"cmd":"devices"}'"#,
            #"rouse apns-simulator tell --control apns.sock --follow '{"cmd":"events"}'"#,
        ],
        notes: """
            Prints the answer, one line of JSON. Exit status 1 if the simulator refuses. The
            commands are in Sources/Tools/APNsSimulator/Control/README.md.
            """)

    private static func tellSimulator(_ arguments: Arguments) throws -> Int32 {
        let client = try SimulatorClient(path: try arguments.required("control"))
        let answer = try client.exchange(line: arguments.operands[0])
        Terminal.print(answer)
        let isDone = (try? JSONValue(bytes: Array(answer.utf8)))?["ok"] == .flag(true)
        guard isDone else { return ExitStatus.failure }
        guard arguments.has("follow") else { return ExitStatus.success }
        while true {
            if let line = try client.nextLine(timeoutMilliseconds: 60_000) { Terminal.print(line) }
        }
    }

    private static let simulatorDescription = CommandDescription(
        name: "apns-simulator",
        summary: "answer pushes as Apple does, and simulate the phones behind",
        options: [
            CommandOption("host", "ADDRESS", "numeric address to listen on (127.0.0.1)"),
            CommandOption("port", "PORT", "port of the production environment (0: a free one)"),
            CommandOption(
                "development-port", "PORT", "port of the development environment (0: a free one)"),
            CommandOption("control", "PATH", "control socket (Unix domain)"),
            CommandOption("control-port", "PORT", "control port on 127.0.0.1 (0: a free one)"),
            CommandOption(
                "http-port", "PORT", "HTTP on 127.0.0.1: control, log, a page (0: a free one)"),
            CommandOption("directory", "DIR", "where simulated devices keep their stores"),
            CommandOption("certificate", "FILE", "TLS certificate chain, PEM"),
            CommandOption("key", "FILE", "its private key, PEM"),
            CommandOption(
                "certificates", "DIR", "make development certificates in DIR, or use those there"),
            CommandOption("streams", "N", "streams a connection once a token was accepted (1000)"),
            CommandOption("strict", nil, "what Apple takes and a good provider does not do fails"),
            CommandOption(
                "clock-offset", "SECONDS", "added to this machine's clock; may be negative"),
            CommandOption(
                "everyday-devices", nil, "new devices have an everyday phone's silent budget"),
            CommandOption("json", nil, "say where it listens as one JSON line"),
            CommandOption("with-parent", nil, "end at once when standard input ends"),
        ],
        examples: [
            "rouse apns-simulator --port 2197 --control /tmp/apns.sock --certificates /tmp/apns",
            "rouse apns-simulator --control apns.sock --directory phones --certificates tls --json",
            "rouse apns-simulator --port 2197 --http-port 2198 --certificates /tmp/apns --strict",
            #"curl 127.0.0.1:2198/app_add -d '{"topic":"org.example.chat","team":"TEAM000001"}'"#,
            #"curl 127.0.0.1:2198/token_issue -d '{"topic":"org.example.chat"}'"#,
            "curl '127.0.0.1:2198/log?kinds=push&limit=10'",
            #"rouse apns-simulator tell --control /tmp/apns.sock '{"cmd":"log"}'"#,
        ],
        notes: """
            It runs until SIGTERM or SIGINT. Any provider can be pointed at it: the certificate's
            authority is authority.pem in the directory of --certificates, keys and client
            certificates are made known by key_add and certificate_add. Apps, keys, devices and
            faults come over the control socket or HTTP;
            Sources/Tools/APNsSimulator/Control/README.md describes the commands, and CHECKS.md
            beside it in which order requests are checked and what is answered. http://127.0.0.1
            with the port of --http-port is a page for people.
            """)

    private static func runSimulator(_ arguments: Arguments) throws -> Int32 {
        var chain: [UInt8]
        var key: [UInt8]
        var authority: String?
        if let directory = arguments.string("certificates") {
            guard !arguments.has("certificate"), !arguments.has("key") else {
                throw UsageError("--certificates stands for --certificate and --key")
            }
            let made = try SimulatorProgram.developmentCertificates(in: directory)
            (chain, key, authority) = (made.chain, made.key, made.authority)
        } else {
            guard let certificate = arguments.string("certificate"),
                let keyFile = arguments.string("key")
            else { throw UsageError("give --certificate and --key, or --certificates") }
            chain = try SimulatorProgram.read(certificate)
            key = try SimulatorProgram.read(keyFile)
        }
        var options = SimulatorOptions(certificateChain: chain, privateKey: key)
        options.host = arguments.string("host") ?? options.host
        options.productionPort = try arguments.number("port", in: 0...UInt16.max) ?? 0
        options.developmentPort =
            try arguments.number("development-port", in: 0...UInt16.max) ?? 0
        options.controlPath = arguments.string("control")
        options.controlPort = try arguments.number("control-port", in: 0...UInt16.max)
        options.httpPort = try arguments.number("http-port", in: 0...UInt16.max)
        options.directory = arguments.string("directory")
        options.checks.strict = arguments.has("strict")
        if let text = arguments.string("clock-offset") {
            guard let seconds = Int64(text), seconds.magnitude <= 3_155_760_000 else {
                throw UsageError("--clock-offset takes seconds, up to 100 years")
            }
            options.clockOffset = seconds * 1_000
        }
        if arguments.has("everyday-devices") { options.limitDevices() }
        options.maximumStreams =
            try arguments.number("streams", in: 1...100_000) ?? options.maximumStreams
        guard
            options.controlPath != nil || options.controlPort != nil || options.httpPort != nil
        else {
            throw UsageError(
                "give --control, --control-port or --http-port: nothing can be set up without")
        }
        let isJSON = arguments.has("json")
        try SimulatorProgram.run(options, withParent: arguments.has("with-parent")) { ports in
            if isJSON {
                Terminal.print(SimulatorProgram.json(ports))
                return
            }
            var text = "production \(options.host):\(ports.production), "
            text += "development \(options.host):\(ports.development)"
            if let path = ports.control { text += ", control \(path)" }
            if let port = ports.controlPort { text += ", control 127.0.0.1:\(port)" }
            if let port = ports.httpPort { text += ", http://127.0.0.1:\(port)/" }
            if let authority { text += "; trust \(authority)" }
            Terminal.print(text)
        }
        return ExitStatus.success
    }
}
