import Foundation
import Testing

@testable import Fleet

/// `rouse fleet` as a person runs it.
@Suite struct FleetCommandTests {
    struct Outcome {
        let status: Int32
        let output: String
        let complaint: String
    }

    static func fleet(_ arguments: [String]) throws -> Outcome {
        let files = FileManager.default
        let folder = files.temporaryDirectory
            .appendingPathComponent("fleet-test-\(UUID().uuidString.prefix(8))")
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? files.removeItem(at: folder) }
        // Files and no pipes: nobody has to read while it runs.
        let output = folder.appendingPathComponent("output")
        let complaint = folder.appendingPathComponent("complaint")
        try Data().write(to: output)
        try Data().write(to: complaint)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            .deletingLastPathComponent().appendingPathComponent("rouse")
        process.arguments = ["fleet"] + arguments
        process.currentDirectoryURL = folder
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: complaint)
        try process.run()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus,
            output: try String(contentsOf: output, encoding: .utf8),
            complaint: try String(contentsOf: complaint, encoding: .utf8))
    }

    @Test("JSON alone on standard output, the table and progress on standard error, a picture")
    func json() throws {
        let picture = FileManager.default.temporaryDirectory
            .appendingPathComponent("fleet-\(UUID().uuidString).svg")
        defer { try? FileManager.default.removeItem(at: picture) }
        let arguments = [
            "--devices", "60", "--days", "1", "--policy", "classic,alerts-only", "--seed", "5",
        ]
        let run = try Self.fleet(arguments + ["--json", "--svg", picture.path])
        #expect(run.status == 0, "\(run.complaint)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(FleetReport.self, from: Data(run.output.utf8))
        #expect(report.devices == 60 && report.seed == 5 && report.traffic == "everyday")
        #expect(report.policies.map(\.name) == ["classic", "alerts-only"])
        #expect(run.complaint.contains("60 of 60 devices"))
        #expect(run.complaint.contains("publish to told"))
        #expect(try String(contentsOf: picture, encoding: .utf8) == report.svg)
        let again = try Self.fleet(arguments + ["--threads", "1"])
        #expect(again.output == report.text + "\n")
    }

    @Test("a log is traffic")
    func log() throws {
        let log = FileManager.default.temporaryDirectory
            .appendingPathComponent("fleet-\(UUID().uuidString).txt")
        defer { try? FileManager.default.removeItem(at: log) }
        try """
        [09:00] <anna> one
        [09:00] <bert> two
        === carl [host] has joined #made
        [09:10] <anna> three
        """.write(to: log, atomically: true, encoding: .utf8)
        let run = try Self.fleet(
            ["--devices", "30", "--days", "1", "--traffic", log.path, "--json"])
        #expect(run.status == 0, "\(run.complaint)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(FleetReport.self, from: Data(run.output.utf8))
        #expect(report.traffic == log.lastPathComponent)
        // Anna gets one, Bert gets two.
        let published = try #require(report.policies.first?.messages.published)
        #expect(published > report.users && published < 2 * report.users)
    }

    /// Where the recorded logs are; `nil`: nowhere.
    static let logs: URL? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let places = [
            ProcessInfo.processInfo.environment["ROUSE_IRC"].map { URL(fileURLWithPath: $0) },
            root.deletingLastPathComponent().appendingPathComponent("shared/data/irc"),
        ].compactMap { $0 }
        return places.first { FileManager.default.fileExists(atPath: $0.path) }
    }()

    @Test(
        "the real logs are traffic, where there are any",
        .enabled(if: logs != nil, "no recorded logs: set ROUSE_IRC"))
    func realLogs() throws {
        let place = try #require(Self.logs)
        let run = try Self.fleet(
            [
                "--devices", "4", "--days", "1", "--policy", "classic", "--traffic", place.path,
                "--json",
            ])
        #expect(run.status == 0, "\(run.complaint)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(FleetReport.self, from: Data(run.output.utf8))
        let messages = try #require(report.policies.first).messages
        #expect(messages.published > 1_000 && messages.sum == messages.published)
    }

    @Test(
        "mistakes are named, with a status of their own",
        arguments: [
            (["--policy", "clasic"], Int32(64), "no policy `clasic`"),
            (["--policy", "classic/grace=1"], 64, "changes no policy"),
            (["--days", "0"], 64, "--days must be"),
            (["--traffic", "nowhere.txt"], 65, "there is no nowhere.txt"),
            (["--traffic", "output"], 65, "holds no message"),
            (["--devices", "1", "--svg", "no/folder.svg"], 73, "cannot write no/folder.svg"),
        ])
    func mistakes(_ arguments: [String], _ status: Int32, _ words: String) throws {
        let run = try Self.fleet(arguments)
        #expect(run.status == status, "\(arguments)")
        #expect(run.complaint.contains(words), "\(run.complaint)")
        #expect(run.output.isEmpty)
    }
}
