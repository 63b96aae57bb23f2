import Conformance
import Crypto
import Foundation
import Glibc
import Scenario

/// `rouse-mutants`: servers with one defect each, and the cases that must notice. Not part of the
/// shipped program; `rouse conform --mutants` runs it.
@main
enum ConformanceMutants {
    static func main() {
        do {
            exit(try run(Array(CommandLine.arguments.dropFirst())))
        } catch {
            say("rouse-mutants: \(error)", to: 2)
            exit(1)
        }
    }

    /// Writes a line at once, to standard output if nothing else is said.
    static func say(_ line: String, to descriptor: Int32 = 1) {
        FileHandle(fileDescriptor: descriptor).write(Data("\(line)\n".utf8))
    }

    struct Options {
        var only: [String] = []
        var executable = ""
        var printsData = false
        var protocolFolder: String?
        var jobs = 16
        var areClients = false
    }

    private static func options(_ words: [String]) throws -> Options {
        var options = Options()
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--only": options.only.append(rest.popFirst() ?? "")
            case "--rouse": options.executable = rest.popFirst() ?? ""
            case "--vectors": options.protocolFolder = rest.popFirst()
            case "--jobs": options.jobs = Int(rest.popFirst() ?? "") ?? options.jobs
            case "--print-data": options.printsData = true
            case "--clients": options.areClients = true
            default:
                throw MutantError(
                    "usage: rouse-mutants [--only MUTANT] [--rouse FILE] [--vectors DIR] "
                        + "[--jobs N] [--print-data] [--clients]")
            }
        }
        if options.executable.isEmpty {
            let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            options.executable =
                URL(fileURLWithPath: own).deletingLastPathComponent()
                .appendingPathComponent("rouse").path
        }
        return options
    }

    private static func run(_ words: [String]) throws -> Int32 {
        let options = try options(words)
        if options.areClients { return try runClients(options) }
        let mutants = Mutant.all.filter { mutant in
            options.only.isEmpty || options.only.contains { mutant.name.contains($0) }
        }
        guard !mutants.isEmpty else { throw MutantError("no mutant of that name") }
        let server = try PreparedServer(executable: options.executable)
        defer { server.stop() }
        let made = try DevelopmentCertificates(names: ["localhost"])
        let place = Proxy.Place(
            serverPort: server.devicePort, serverAuthorityPEM: server.authorityPEM,
            certificatePEM: made.server.certificatePEM, privateKeyPEM: made.server.privateKeyPEM)
        let key = try PrivateKey(pem: Array(server.issuerKeyPEM.utf8))
        var conform = ConformanceOptions(credentials: credentials(of: server))
        conform.authorityPEM = made.authorityPEM
        conform.skipsTimers = true
        conform.deliveries = ["whole"]
        conform.patienceSeconds = 4
        conform.jobs = options.jobs
        if let folder = options.protocolFolder {
            conform.vectors = try FramingVectors(folder: URL(fileURLWithPath: folder))
        }

        // Through a proxy without a defect everything passes: else nothing below means anything.
        let sound = try judged(place, key, conform) { Defect($0) }
        guard sound.isEmpty else {
            throw MutantError("without a defect these fail: \(sound.sorted())")
        }
        var wrong = 0
        for mutant in mutants {
            let expected =
                Expectations.catches[mutant.name] ?? Expectations.watched[mutant.name] ?? []
            let caught = try judged(place, key, conform, expecting: expected, mutant.make)
            if options.printsData {
                let names = caught.sorted().map { "            \"\($0)\"," }
                say("        \"\(mutant.name)\": [\n\(names.joined(separator: "\n"))\n        ],")
                continue
            }
            if !judge("\(mutant.name): \(mutant.what)", caught, expected) { wrong += 1 }
        }
        if options.printsData { return 0 }
        say(
            "\(mutants.count) mutants, \(mutants.count - wrong) caught as they must be, "
                + "\(wrong) not")
        return wrong == 0 ? 0 : 1
    }

    /// Whether a mutant was caught by the cases that must, and by no others.
    static func judge(_ title: String, _ caught: Set<String>, _ expected: Set<String>) -> Bool {
        let missing = expected.subtracting(caught).sorted()
        let extra = caught.subtracting(expected).sorted()
        let isRight = missing.isEmpty && extra.isEmpty && !expected.isEmpty
        say("\(isRight ? "caught" : "WRONG ") \(title)")
        say("       by \(caught.count): \(caught.sorted().joined(separator: ", "))")
        if !missing.isEmpty { say("       missing: \(missing.joined(separator: ", "))") }
        if !extra.isEmpty { say("       extra: \(extra.joined(separator: ", "))") }
        return isRight
    }

    /// The cases that fail against a server with that defect.
    ///
    /// Patience is short, for many cases wait for what a defect keeps from them; so beside other
    /// work one may fail that has nothing to do with it. Those that were not expected are run
    /// again, one by one and with the patience of every day; what fails then too is told with its
    /// transcript.
    private static func judged(
        _ place: Proxy.Place, _ key: PrivateKey, _ options: ConformanceOptions,
        expecting expected: Set<String> = [], _ make: @escaping @Sendable (Shared) -> Defect
    ) throws -> Set<String> {
        let failed = try failures(place, key, options, make).map(\.name)
        let extra = Set(failed).subtracting(expected)
        guard !extra.isEmpty else { return Set(failed) }
        var alone = options
        alone.only = extra.sorted()
        alone.jobs = 1
        alone.patienceSeconds = ConformanceOptions(credentials: options.credentials).patienceSeconds
        let again = try failures(place, key, alone, make).filter { extra.contains($0.name) }
        for one in again {
            say("       \(one.name): \(one.reason ?? "")")
            for line in one.transcript { say("         \(line)") }
        }
        return Set(failed).intersection(expected).union(again.map(\.name))
    }

    private static func failures(
        _ place: Proxy.Place, _ key: PrivateKey, _ options: ConformanceOptions,
        _ make: @escaping @Sendable (Shared) -> Defect
    ) throws -> [CaseResult] {
        let proxy = try Proxy(place, shared: Shared(key: key), make: make)
        defer { proxy.stop() }
        var options = options
        options.port = proxy.port
        let report = try Conformance.run(options)
        return report.results.filter { $0.verdict == .fail }
    }

    private static func credentials(of server: PreparedServer) -> ConformanceCredentials {
        var tokens = ConformanceCredentials.Tokens()
        tokens.keyPEM = server.issuerKeyPEM
        tokens.kid = server.keyID
        var credentials = ConformanceCredentials(app: server.app, tokens: tokens)
        var publish = ConformanceCredentials.Publish()
        publish.api = "127.0.0.1:\(server.apiPort)"
        publish.key = server.apiKey
        credentials.publish = publish
        credentials.push = ConformanceCredentials.Push(
            environment: "production", topic: server.pushTopic)
        credentials.serverName = "localhost"
        return credentials
    }
}
