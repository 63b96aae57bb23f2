import APNsSimulator
import Conformance
import EventLoop
import FoundationEssentials
import Glibc
import Scenario

/// `rouse conform`: whether a server keeps Protocol/.
extension Rouse {
    static let conformCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "conform", summary: "test any server against the protocol's text",
                options: [
                    CommandOption("host", "HOST", "the server (default 127.0.0.1)"),
                    CommandOption("port", "PORT", "its port for devices"),
                    CommandOption("ca", "FILE", "authorities of its certificate, PEM"),
                    CommandOption("credentials", "FILE", "how to get users in, JSON"),
                    CommandOption("self", "start a server of our own and test that"),
                    CommandOption("only", "NAME", "a section or a case, or a part of its name"),
                    CommandOption("list", "list the cases with their clauses, run nothing"),
                    CommandOption("coverage", "say which MUSTs of the text have a case"),
                    CommandOption("clauses", "print the index of clauses, Protocol/clauses.md"),
                    CommandOption("strict", "a SHOULD that is not kept counts as a MUST"),
                    CommandOption("format", "people|tap|junit|json", "for whom (people)"),
                    CommandOption("timeout", "SECONDS", "what a case may take (30)"),
                    CommandOption("jobs", "N", "cases at once (12)"),
                    CommandOption("mutants", "run the suite against servers with one defect each"),
                    CommandOption("no-timers", "leave out cases that wait for timers"),
                    CommandOption("protocol", "DIR", "the folder Protocol, for its vectors"),
                    CommandOption("vectors", "DIR", "the vectors, if they lie elsewhere"),
                ],
                examples: [
                    "rouse conform --self",
                    "rouse conform --host sync.example --port 7443 --credentials shop.json",
                    "rouse conform --self --only session --format tap",
                ],
                notes: """
                    Each case makes users of its own; bytes that a case is about go whole, split at
                    every byte, and glued together. Exit status 0: no MUST failed, nothing was
                    inconclusive and something passed. Protocol/conformance.md describes the
                    credentials file, and what each verdict means.
                    """),
            run: { try conform($0) })
    ]

    private static func conform(_ arguments: Arguments) throws -> Int32 {
        if arguments.has("list") {
            return try list(Conformance.cases, only: arguments.strings("only"))
        }
        if arguments.has("mutants") { return try mutants(arguments) }
        if arguments.has("coverage") { return try coverage(arguments) }
        if arguments.has("clauses") { return try clauses(arguments) }
        guard let format = ReportFormat(rawValue: arguments.string("format") ?? "people") else {
            throw UsageError("--format is one of people, tap, junit, json")
        }
        var server: PreparedServer?
        defer { server?.stop() }
        var options: ConformanceOptions
        if arguments.has("self") {
            let own = try PreparedServer(executable: try ownExecutable())
            server = own
            options = ConformanceOptions(credentials: own.credentials)
            options.port = own.devicePort
            options.authorityPEM = own.authorityPEM
            if let process = own.identifier { options.drain = { kill(process, SIGTERM) } }
        } else {
            let name = try arguments.required("credentials")
            let file = URL(fileURLWithPath: name)
            do {
                options = ConformanceOptions(credentials: try ConformanceCredentials(file: file))
            } catch let error as DecodingError {
                throw AdminRefusal(
                    description: "--credentials \(name): \(ErrorWords.of(error))")
            }
            guard let port = try arguments.number("port", in: 1...UInt16.max) else {
                throw UsageError("--port is needed, or --self")
            }
            options.host = arguments.string("host") ?? "127.0.0.1"
            options.port = port
            options.authorityPEM = try Self.file("ca", arguments)
        }
        options.only = arguments.strings("only")
        options.isStrict = arguments.has("strict")
        options.caseSeconds = try arguments.number("timeout", in: 1...3_600) ?? 30
        options.jobs = try arguments.number("jobs", in: 1...64) ?? 12
        options.skipsTimers = arguments.has("no-timers")
        options.vectors = try vectors(arguments)
        if format == .people {
            let hasColour = Terminal.hasColour
            options.progress = { Terminal.print(line(of: $0, colour: hasColour)) }
        }
        let report = try Conformance.run(options)
        Terminal.print(report.text(format))
        if format != .people { Terminal.complain(report.summary) }
        return report.isGood ? ExitStatus.success : ExitStatus.failure
    }

    static func line(of result: CaseResult, colour: Bool) -> String {
        let word = result.verdict.rawValue
        let pad = String(repeating: " ", count: max(1, 13 - word.count))
        var shown = word
        if colour {
            let number =
                switch result.verdict {
                case .pass: 32
                case .skip: 34
                case .fail: 31
                case .inconclusive: 33
                }
            shown = "\u{1B}[\(number)m\(word)\u{1B}[0m"
        }
        let text = "\(shown)\(pad)\(result.name): \(result.title)"
        guard result.verdict != .pass, let reason = result.reason else { return text }
        return "\(text)\n             \(reason)"
    }

    static func list(_ cases: [ListedCase], only: [String]) throws -> Int32 {
        let meant = cases.filter { one in
            only.isEmpty || only.contains { one.name.contains($0) }
        }
        guard !meant.isEmpty else {
            throw ConformanceError("no case is called \(only.joined(separator: ", "))")
        }
        for one in meant {
            let clauses = one.citations.map(\.clause).joined(separator: " ")
            Terminal.print("\(one.name) (\(one.level.rawValue)): \(one.title) [\(clauses)]")
        }
        return ExitStatus.success
    }

    /// Runs the mutants, which are a program of their own beside this one.
    ///
    /// - Parameter areClients: clients with one defect each, instead of servers.
    static func mutants(_ arguments: Arguments, areClients: Bool = false) throws -> Int32 {
        let own = try ownExecutable()
        let program = URL(fileURLWithPath: own).deletingLastPathComponent()
            .appendingPathComponent("rouse-mutants")
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            throw UsageError(
                "\(program.path) is not there: build it with `swift build --product rouse-mutants`")
        }
        var words = [program.path, "--rouse", own] + (areClients ? ["--clients"] : [])
        for name in arguments.strings("only") { words += ["--only", name] }
        let folder =
            try arguments.string("vectors").map { URL(fileURLWithPath: $0) }
            ?? protocolFolder(arguments)?.appendingPathComponent("vectors")
        if let folder { words += ["--vectors", folder.path] }
        // What a shell says of a program that a signal ended.
        switch try ChildProcess(words).waitForEnd() {
        case .exit(let status): return status
        case .signal(let number): return 128 + number
        }
    }

    private static func protocolText(_ arguments: Arguments) throws -> ProtocolText {
        guard let folder = try protocolFolder(arguments) else {
            throw UsageError("no folder Protocol here: name it with --protocol")
        }
        let schema = folder.appendingPathComponent("sync.proto").path
        guard FileManager.default.fileExists(atPath: schema) else {
            throw UsageError("--protocol: \(folder.relativePath) is not the folder Protocol")
        }
        return try ProtocolText(folder: folder)
    }

    private static func clauses(_ arguments: Arguments) throws -> Int32 {
        Terminal.print(try protocolText(arguments).index)
        return ExitStatus.success
    }

    private static func coverage(_ arguments: Arguments) throws -> Int32 {
        let coverage = Coverage(try protocolText(arguments))
        Terminal.print(coverage.report)
        let isWhole = coverage.bare.isEmpty && coverage.stale.isEmpty
        return isWhole ? ExitStatus.success : ExitStatus.failure
    }

    /// The vectors of the command line, else those of a folder Protocol above the working
    /// directory or the executable; `nil`: none are there.
    private static func vectors(_ arguments: Arguments) throws -> FramingVectors? {
        if let folder = arguments.string("vectors") {
            return try FramingVectors(folder: URL(fileURLWithPath: folder))
        }
        guard let folder = try protocolFolder(arguments) else { return nil }
        return try? FramingVectors(folder: folder.appendingPathComponent("vectors"))
    }

    static func protocolFolder(_ arguments: Arguments) throws -> URL? {
        if let folder = arguments.string("protocol") { return URL(fileURLWithPath: folder) }
        let files = FileManager.default
        var places = [URL(fileURLWithPath: files.currentDirectoryPath)]
        places.append(URL(fileURLWithPath: try ownExecutable()).deletingLastPathComponent())
        for var place in places {
            while place.path != "/" {
                let folder = place.appendingPathComponent("Protocol")
                if files.fileExists(atPath: folder.appendingPathComponent("sync.proto").path) {
                    return folder
                }
                place.deleteLastPathComponent()
            }
        }
        return nil
    }
}

extension PreparedServer {
    /// What the harness needs to know of it.
    var credentials: ConformanceCredentials {
        var tokens = ConformanceCredentials.Tokens()
        tokens.keyPEM = issuerKeyPEM
        tokens.kid = keyID
        var credentials = ConformanceCredentials(app: app, tokens: tokens)
        var publish = ConformanceCredentials.Publish()
        publish.api = "127.0.0.1:\(apiPort)"
        publish.key = apiKey
        credentials.publish = publish
        credentials.push = ConformanceCredentials.Push(
            environment: "production", topic: pushTopic)
        credentials.serverName = "localhost"
        return credentials
    }
}
