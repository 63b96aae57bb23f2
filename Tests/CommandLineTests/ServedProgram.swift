import Foundation
import Glibc

/// `rouse serve` on a configuration file, with one app `shop` and a key for its backend.
final class ServedProgram {
    let program: Program
    private let process = Process()
    /// The server ends when this end is gone.
    private let input = Pipe()
    private(set) var devicePort = 0
    private(set) var apiPort = 0
    private(set) var apiKey = ""

    private struct Addresses: Decodable {
        let devicePort: Int
        let apiPort: Int
    }

    static let base = """
        tls.certificate_file = tls/server.pem
        tls.key_file = tls/server.key
        listen.port = 0
        api.port = 0

        """

    /// - Parameters:
    ///   - prepare: changes what is there before the start.
    ///   - begun: told the process's number before it serves.
    init(
        _ settings: String = "", prepare: (Program) throws -> Void = { _ in },
        begun: (Int32) throws -> Void = { _ in }
    ) throws {
        program = try Program()
        _ = try program.rouse("dev", "certificates", "tls")
        try write(settings)
        try prepare(program)
        process.executableURL = URL(fileURLWithPath: Program.path)
        process.arguments = ["serve", "--config", "rouse.conf", "--json", "--with-parent"]
        process.currentDirectoryURL = program.folder
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        process.environment = environment
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        FileManager.default.createFile(atPath: program.path("server.log"), contents: nil)
        process.standardError = try FileHandle(
            forWritingTo: URL(fileURLWithPath: program.path("server.log")))
        try process.run()
        try begun(process.processIdentifier)
        let line = output.fileHandleForReading.availableData
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let addresses = try decoder.decode(Addresses.self, from: line)
        (devicePort, apiPort) = (addresses.devicePort, addresses.apiPort)
        _ = try program.rouse("app", "create", "shop", "--config", "rouse.conf")
        apiKey = try program.rouse("app", "api-key", "create", "shop", "--config", "rouse.conf")
            .output.trimmingCharacters(in: .newlines)
    }

    deinit {
        process.terminate()
        process.waitUntilExit()
    }

    /// The settings besides ports and certificates.
    func write(_ settings: String) throws {
        try program.write(Self.base + settings + "\n", "rouse.conf")
    }

    var identifier: Int32 { process.processIdentifier }

    var log: [String] {
        let text = (try? String(contentsOfFile: program.path("server.log"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// Sends SIGHUP and waits for the line that ends what it does.
    ///
    /// - Returns: what was logged from there on; `nil`: no such line came.
    func reload(until event: String) -> [String]? {
        let before = log.count
        kill(process.processIdentifier, SIGHUP)
        let end = Date(timeIntervalSinceNow: 60)
        while Date() < end {
            let lines = Array(log.dropFirst(before))
            if lines.contains(where: { $0.contains("event=\(event) ") }) { return lines }
            usleep(20_000)
        }
        return nil
    }

    /// Asks the backend API so many times over; the statuses.
    func ask(_ path: String, times: Int) throws -> [Int] {
        let place = "http://127.0.0.1:\(apiPort)\(path)"
        let words = ["-s", "-o", "/dev/null", "-w", "%{http_code}\n", place]
        let more = (1..<times).flatMap { _ in ["--next"] + authorization + words }
        let curl = try program.run(["/usr/bin/curl"] + authorization + words + more)
        return curl.output.split(separator: "\n").compactMap { Int($0) }
    }

    private var authorization: [String] { ["-H", "Authorization: Bearer \(apiKey)"] }

    /// What `/metrics` says of these, by their names.
    func metrics(_ names: [String]) throws -> [String: Double] {
        let curl = try program.run(
            ["/usr/bin/curl", "-fsS", "http://127.0.0.1:\(apiPort)/metrics"])
        var found: [String: Double] = [:]
        for line in curl.output.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, names.contains(String(words[0])) {
                found[String(words[0])] = Double(words[1])
            }
        }
        return found
    }

    /// The certificate that a device is shown, as openssl prints its fingerprint.
    func certificate() throws -> String {
        try program.write("", "nothing")
        let shown = try program.run([
            "/bin/sh", "-c",
            "openssl s_client -connect 127.0.0.1:\(devicePort) -alpn rouse/1 </dev/null "
                + "2>/dev/null | openssl x509 -noout -fingerprint -sha256",
        ])
        return shown.output
    }
}
