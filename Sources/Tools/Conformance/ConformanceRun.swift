import FoundationEssentials

/// How the harness runs.
public struct ConformanceOptions: Sendable {
    public var host = "127.0.0.1"
    public var port: UInt16 = 0
    /// PEM of the authorities that may have signed the server's certificate; `nil`: the system's.
    public var authorityPEM: String?
    public var credentials: ConformanceCredentials
    /// Sections, cases, or parts of a case's name; empty: all.
    public var only: [String] = []
    public var isStrict = false
    /// Seconds a case may take, unless it waits for one of the protocol's timers.
    public var caseSeconds = 30
    /// Seconds that a single frame may take to come.
    public var patienceSeconds = 10
    /// Cases that run at once.
    public var jobs = 12
    /// Leaves out cases that wait for the protocol's timers.
    public var skipsTimers = false
    /// Tells the server to drain and end, and returns at once; `nil`: the credentials' command,
    /// else what needs it is skipped. Its case runs last, for it is the server's end.
    public var drain: (@Sendable () throws -> Void)?
    /// How bytes go: `whole`, `split`, `glued`; empty: in each of these ways.
    public var deliveries: [String] = []
    /// `Protocol/vectors`; `nil`: cases that need it are skipped.
    public var vectors: FramingVectors?
    /// Called when a case has ended, from any thread, one call at a time.
    public var progress: @Sendable (CaseResult) -> Void = { _ in }

    public init(credentials: ConformanceCredentials) { self.credentials = credentials }
}

/// A case of the suite, for lists.
public struct ListedCase: Codable, Sendable {
    public let name: String
    public let section: Section
    public let level: Level
    public let title: String
    public let citations: [Citation]
}

/// The suite, and a run of it.
public enum Conformance {
    static let suite: [ConformanceCase] =
        framingCases + sessionCases + syncCases + historyCases + messagingCases + signalCases
        + connectionCases + backendCases + hintCases + watchCases

    /// Every case, in order.
    public static var cases: [ListedCase] {
        suite.map { one in
            ListedCase(
                name: one.name, section: one.section, level: one.level, title: one.title,
                citations: one.citations)
        }
    }

    /// One case in one delivery.
    private struct Variant: Sendable {
        let one: ConformanceCase
        let delivery: Delivery
        let index: Int

        var name: String {
            delivery == .whole ? one.name : "\(one.name) [\(delivery.rawValue)]"
        }
    }

    /// Whether a name given on the command line means this case.
    private static func isMeant(_ one: ConformanceCase, by only: [String]) -> Bool {
        only.isEmpty
            || only.contains { word in one.section.rawValue == word || one.name.contains(word) }
    }

    private static func drainCommand(
        of credentials: ConformanceCredentials
    ) -> (@Sendable () throws -> Void)? {
        guard let command = credentials.drain else { return nil }
        return { _ = try ChildCommand.run(command, replacing: [:]) }
    }

    /// Runs the cases; fresh users for each. Returns when all have ended.
    ///
    /// - Throws: `ConformanceError` if the credentials do not do, or no case is meant.
    public static func run(_ options: ConformanceOptions) throws -> ConformanceReport {
        let server = ServerUnderTest(
            host: options.host, port: options.port,
            serverName: options.credentials.serverName ?? options.host,
            authorityPEM: options.authorityPEM, credentials: options.credentials,
            issuer: try TokenIssuer(options.credentials), vectors: options.vectors,
            drain: options.drain ?? drainCommand(of: options.credentials))
        var variants: [Variant] = []
        for one in suite where isMeant(one, by: options.only) {
            for delivery in one.isByteLevel ? Delivery.allCases : [.whole]
            where options.deliveries.isEmpty || options.deliveries.contains(delivery.rawValue) {
                variants.append(Variant(one: one, delivery: delivery, index: variants.count))
            }
        }
        guard !variants.isEmpty else {
            throw ConformanceError("no case is called \(options.only.joined(separator: ", "))")
        }
        let started = ContinuousClock.now
        let jobs = variants.filter { !$0.one.isLast && $0.one.invariant == nil }
            .sorted { ($0.one.seconds ?? 0) > ($1.one.seconds ?? 0) }
        let witness = Witness()
        let pool = CasePool(
            jobs.map { job(for: $0, on: server, options, witness) }, progress: options.progress)
        pool.run(threads: options.jobs)
        // These judge what the others have seen.
        for variant in variants where variant.one.invariant != nil {
            pool.run(job(for: variant, on: server, options, witness))
        }
        for variant in variants where variant.one.isLast {
            pool.run(job(for: variant, on: server, options, witness))
        }
        return ConformanceReport(
            results: pool.results, isStrict: options.isStrict,
            milliseconds: milliseconds(since: started))
    }

    private static func job(
        for variant: Variant, on server: ServerUnderTest, _ options: ConformanceOptions,
        _ witness: Witness
    ) -> CasePool.Job {
        CasePool.Job(index: variant.index) { run(variant, on: server, options, witness) }
    }

    private static func run(
        _ variant: Variant, on server: ServerUnderTest, _ options: ConformanceOptions,
        _ witness: Witness
    ) -> CaseResult {
        let one = variant.one
        let started = ContinuousClock.now
        func result(_ verdict: Verdict, _ reason: String?, _ transcript: [String]) -> CaseResult {
            CaseResult(
                name: variant.name, section: one.section, level: one.level, title: one.title,
                clauses: one.citations.map(\.clause), verdict: verdict, reason: reason,
                transcript: transcript, milliseconds: milliseconds(since: started))
        }
        if let reason = reasonToSkip(one, options) { return result(.skip, reason, []) }
        let trial: Trial
        do {
            trial = try Trial(
                server: server, delivery: variant.delivery,
                seconds: one.seconds ?? options.caseSeconds,
                patience: .seconds(options.patienceSeconds), witness: witness, name: variant.name)
        } catch {
            return result(.inconclusive, "\(error)", [])
        }
        do {
            try judging(one, trial)
            return result(.pass, nil, [])
        } catch CaseEnd.failed(let reason) {
            return result(.fail, reason, trial.transcript.lines)
        } catch CaseEnd.skipped(let reason) {
            return result(.skip, reason, [])
        } catch CaseEnd.inconclusive(let reason) {
            return result(.inconclusive, reason, trial.transcript.lines)
        } catch {
            return result(.inconclusive, "\(error)", trial.transcript.lines)
        }
    }

    /// Carries the case through; what broke its invariant anywhere in the run comes first.
    private static func judging(_ one: ConformanceCase, _ trial: Trial) throws {
        let end = Result { try one.run(trial) }
        if let invariant = one.invariant, let what = trial.witness.first(invariant) {
            throw CaseEnd.failed(what)
        }
        try end.get()
    }

    private static func reasonToSkip(
        _ one: ConformanceCase, _ options: ConformanceOptions
    ) -> String? {
        if options.skipsTimers, one.isTimer { return "waits for a timer" }
        guard let without = options.credentials.without else { return nil }
        let names = [one.name, one.section.rawValue] + one.citations.map(\.clause)
        return names.lazy.compactMap { without[$0] }.first
    }
}
