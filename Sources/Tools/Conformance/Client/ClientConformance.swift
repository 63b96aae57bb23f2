import Crypto
import FoundationEssentials

/// How the harness tests a client.
public struct ClientConformanceOptions: Sendable {
    /// The command line that starts the driver, word by word (Protocol/conformance.md).
    public var client: [String]
    /// Sections, cases, or parts of a case's name; empty: all.
    public var only: [String] = []
    public var isStrict = false
    /// Seconds a case may take, unless it waits for a timer.
    public var caseSeconds = 45
    /// Seconds that a single step may take.
    public var patienceSeconds = 15
    /// Cases that run at once.
    public var jobs = 12
    /// Leaves out cases that wait for timers of the client's own.
    public var skipsTimers = false
    /// Called when a case has ended, from any thread, one call at a time.
    public var progress: @Sendable (CaseResult) -> Void = { _ in }

    public init(client: [String]) { self.client = client }
}

/// The client half: a scripted server for every case, and a client that a driver stands for.
public enum ClientConformance {
    static let suite: [ClientCase] =
        clientFramingCases + clientSessionCases + clientSyncCases + clientResetCases
        + clientMessagingCases + clientPushCases + clientConnectionCases + clientBackoffCases

    /// Every case, in order.
    public static var cases: [ListedCase] {
        suite.map { one in
            ListedCase(
                name: one.name, section: one.section, level: one.level, title: one.title,
                citations: one.citations)
        }
    }

    /// Runs the cases, each with a client that has stored nothing yet.
    ///
    /// - Throws: `ConformanceError` if no case is meant; when files cannot be written.
    public static func run(_ options: ClientConformanceOptions) throws -> ConformanceReport {
        let chosen = suite.filter { one in
            options.only.isEmpty
                || options.only.contains { one.section.rawValue == $0 || one.name.contains($0) }
        }
        guard !chosen.isEmpty else {
            throw ConformanceError("no case is called \(options.only.joined(separator: ", "))")
        }
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-scripted-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        let place = try place(options.client, in: folder)
        let started = ContinuousClock.now
        let jobs = chosen.enumerated().map { index, one in
            (one, CasePool.Job(index: index) { run(one, place, options) })
        }
        let pool = CasePool(
            jobs.sorted { ($0.0.seconds ?? 0) > ($1.0.seconds ?? 0) }.map(\.1),
            progress: options.progress)
        pool.run(threads: options.jobs)
        return ConformanceReport(
            results: pool.results, isStrict: options.isStrict,
            milliseconds: milliseconds(since: started))
    }

    private static func place(_ words: [String], in folder: URL) throws -> ClientUnderTest {
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        let key = PrivateKey.generate(.p256)
        func file(_ name: String, _ text: String) throws -> URL {
            let url = folder.appendingPathComponent(name)
            try Data(text.utf8).write(to: url)
            return url
        }
        return ClientUnderTest(
            words: words, certificatePEM: made.server.certificatePEM,
            privateKeyPEM: made.server.privateKeyPEM,
            authorityFile: try file("ca.pem", made.authorityPEM),
            issuerFile: try file("issuer.pem", key.pem), issuer: key.publicKey)
    }

    private static func run(
        _ one: ClientCase, _ place: ClientUnderTest, _ options: ClientConformanceOptions
    ) -> CaseResult {
        let started = ContinuousClock.now
        func result(_ verdict: Verdict, _ reason: String?, _ transcript: [String]) -> CaseResult {
            CaseResult(
                name: one.name, section: one.section, level: one.level, title: one.title,
                clauses: one.citations.map(\.clause), verdict: verdict, reason: reason,
                transcript: transcript, milliseconds: milliseconds(since: started))
        }
        if options.skipsTimers, one.isTimer {
            return result(.skip, "waits for a timer of the client's own", [])
        }
        let trial: ClientTrial
        do {
            trial = try ClientTrial(
                place, seconds: one.seconds ?? options.caseSeconds,
                patience: .seconds(options.patienceSeconds))
        } catch {
            return result(.inconclusive, "\(error)", [])
        }
        var transcript: [String] {
            trial.transcript.lines
                + trial.log.split(separator: "\n").map { "driver's log: \($0)" }
        }
        do {
            try one.run(trial)
            return result(.pass, nil, [])
        } catch CaseEnd.failed(let reason) {
            return result(.fail, reason, transcript)
        } catch CaseEnd.skipped(let reason) {
            return result(.skip, reason, [])
        } catch CaseEnd.inconclusive(let reason) {
            return result(.inconclusive, reason, transcript)
        } catch {
            return result(.inconclusive, "\(error)", transcript)
        }
    }
}
