import APNsSimulator
import Crypto
import Foundation
import Testing

/// The simulator as a product: providers that are not ours, pointed at it.
struct ForeignClientTests {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    /// Deploy/peers makes it.
    static let python = root.appendingPathComponent(".build/peers/bin/python").path

    let harness: SimulatorHarness
    let directory: URL

    init() throws {
        harness = try SimulatorHarness(maximumStreams: 100)
        directory = URL(fileURLWithPath: harness.directory)
    }

    func write(_ name: String, _ text: String) throws -> String {
        let file = directory.appendingPathComponent(name)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    func tokens(_ count: Int) throws -> [String] {
        var request = ControlRequest(.tokenIssue)
        request.topic = CheckFixture.topic
        return try harness.client.calls(Array(repeating: request, count: count))
            .map { try #require($0.token) }
    }

    func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        try process.run()
        let text = String(
            decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text)
    }

    static let havePython = FileManager.default.isExecutableFile(atPath: python)

    @Test(.enabled(if: havePython, "Deploy/peers could not install aioapns from PyPI"))
    func aioapnsPushes() throws {
        let authority = try #require(SimulatorHarness.certificates).authorityPEM
        let phone = try harness.device("phone")
        var names = [phone] + (try tokens(50))
        // The last two are dead, and nobody's.
        var kill = ControlRequest(.tokenKill)
        kill.token = names[49]
        kill.since = 1_700_000_000_000
        try harness.client.call(kill)
        names[50] = String(repeating: "0", count: 64)
        let answers = try run(
            Self.python,
            [
                Self.root.appendingPathComponent("Tests/peers/apns_client.py").path,
                String(harness.ports.production), try write("authority.pem", authority),
                try write("key.p8", harness.key.pem), CheckFixture.keyID, CheckFixture.team,
                CheckFixture.topic, try write("tokens", names.joined(separator: "\n")),
            ])
        #expect(answers.status == 0)
        let lines = answers.text.split(separator: "\n").map { String($0) }
        var expected = Array(repeating: "[200, null, null]", count: names.count)
        expected[49] = #"[410, "Unregistered", 1700000000000]"#
        expected[50] = #"[400, "BadDeviceToken", null]"#
        #expect(lines == expected)
        let shown = try harness.event { $0.kind == .shown }
        #expect(shown?.identifier == "push-0")
        #expect(shown?.title == "aioapns")
        let status = try #require(try harness.client.call(ControlRequest(.status)).simulator)
        #expect(status.answers == ["200": 49, "410 Unregistered": 1, "400 BadDeviceToken": 1])
        // Its HPACK encoder puts every path into the table.
        #expect(status.lints.keys.sorted() == [Lint.pathIndexed.rawValue])
    }

    static let h2load = "/usr/bin/h2load"
    static let haveH2load = FileManager.default.isExecutableFile(atPath: h2load)

    @Test(
        .enabled(if: haveH2load, "h2load is not installed: Deploy/install test"),
        arguments: [(1, 1), (20, 1)])
    func h2loadPushes(_ connections: Int, _ streams: Int) throws {
        let names = try tokens(400)
        let base = "https://127.0.0.1:\(harness.ports.production)/3/device/"
        let result = try run(
            Self.h2load,
            [
                "-n", "2000", "-c", String(connections), "-m", String(streams),
                "--input-file", try write("paths", names.map { base + $0 + "\n" }.joined()),
                "--data", try write("payload", #"{"aps":{"alert":"Hi"}}"#),
                "-H", "authorization: bearer " + harness.providerToken,
                "-H", "apns-topic: " + CheckFixture.topic, "-H", "apns-push-type: alert",
                "-H", "apns-priority: 10", "-H", "apns-expiration: 0",
            ])
        #expect(result.status == 0)
        #expect(result.text.contains("2000 succeeded, 0 failed, 0 errored"))
        let status = try #require(try harness.client.call(ControlRequest(.status)).simulator)
        #expect(status.answers == ["200": 2_000])
        let lints = status.lints.keys.filter { $0 != Lint.connectionChurn.rawValue }
        #expect(lints.isEmpty)
    }

    /// h2load sends as many streams as it may before it knows the server's limit, so it needs all
    /// of them from the start, as with a certificate.
    @Test(.enabled(if: haveH2load, "h2load is not installed: Deploy/install test"))
    func h2loadPushesWithManyStreams() throws {
        var limits = ControlRequest(.limits)
        limits.limits = SimulatorLimits()
        limits.limits?.unprovenStreams = 100
        limits.limits?.streams = 100
        try harness.client.call(limits)
        try h2loadPushes(2, 50)
    }
}
