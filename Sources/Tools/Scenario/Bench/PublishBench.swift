import Crypto
import EventLoop
import Foundation

/// How publishing over sockets is measured.
public struct PublishBenchOptions: Sendable {
    /// Connected devices, each of a user of its own.
    public var devices = 1_000
    /// Publishes under way in the closed loop, and connections of the backend.
    public var inFlight = 256
    /// The rates of the open loops, in publishes a second.
    public var rates = [500]
    /// Devices in the conversation of the fan-out.
    public var group = 100
    public var runs = 3
    /// The length of one run.
    public var seconds = 5
    /// The floor to measure beside: C source that is compiled, or a program; `nil`: none.
    public var floor: String?
    public var keepsFolder = false
    /// The `rouse` executable that runs the server.
    public var executable = ""
    public var progress: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// Measures durable publishes to connected devices through the backend API of a server of its own,
/// and of the floor beside it. Lives on the calling thread.
public final class PublishBench {
    static let loginsInFlight = 32
    /// In a storm; the rest waits for its turn, as devices that back off do.
    static let stormInFlight = 256
    /// Connections of one source address, far from the ports it has.
    static let connectionsPerAddress = 250

    private let options: PublishBenchOptions
    private let loop: Loop
    private let folder: URL
    private var targets: [any PublishTarget] = []
    /// By target.
    private var devices: [String: [any TargetDevice]] = [:]
    private var drive: PublishDrive?
    private var lastNumber: UInt64 = 0
    private var failure: String?
    private var isTidying = false

    public static func run(_ options: PublishBenchOptions) throws -> PublishBenchReport {
        let descriptors = Descriptors.raiseLimit()
        // The server keeps 256 for other things (`limits.connections`).
        let servers = options.floor == nil ? 1 : 2
        guard options.devices * servers + options.inFlight + 256 <= descriptors else {
            throw ScenarioError(
                "\(options.devices) devices do not fit the descriptor limit of \(descriptors); "
                    + "raise it (ulimit -n) or ask for fewer")
        }
        let bench = try PublishBench(options)
        defer { bench.tidy() }
        return try bench.measure()
    }

    private init(_ options: PublishBenchOptions) throws {
        self.options = options
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-bench-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        loop = try Loop()
    }

    private func tidy() {
        isTidying = true
        for device in devices.values.joined() { device.vanish() }
        for target in targets { target.stop() }
        loop.close()
        if options.keepsFolder {
            options.progress("kept \(folder.path)")
        } else {
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private func measure() throws -> PublishBenchReport {
        let made = try DevelopmentCertificates(names: ["localhost"])
        try Data(made.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(made.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        let tls = try TLSContext.client(
            trustedCertificates: Array(made.authorityPEM.utf8), protocols: ["rouse/1"],
            minimumVersion: .tls13)
        targets.append(
            try RouseTarget(
                loop: loop, executable: options.executable, folder: folder, tls: tls))
        let floorMissing = try startFloor(tls)
        var rows: [PublishRow] = []
        for (index, target) in targets.enumerated() {
            try prepare(target)
            let login = try logIn(target, source: index, inFlight: Self.loginsInFlight)
            rows.append(
                PublishRow(
                    kind: "login", target: target.name, inFlight: Self.loginsInFlight,
                    measures: [login]))
        }
        for target in targets { _ = try drive(target, .closed(inFlight: options.inFlight), 1) }
        var kinds: [Arrivals] = [.closed(inFlight: options.inFlight)]
        kinds += options.rates.map { .open(perSecond: $0) }
        for kind in kinds { rows += try measure(kind) }
        rows += try measure(.closed(inFlight: 1), group: group)
        rows += try storms()
        return PublishBenchReport(
            devices: options.devices, seconds: Double(options.seconds), rows: rows,
            floorMissing: floorMissing)
    }

    /// - Returns: why there is none though it was asked for.
    private func startFloor(_ tls: TLSContext) throws -> String? {
        guard let source = options.floor else { return nil }
        switch try FloorTarget.program(source, folder: folder) {
        case .missing(let why):
            options.progress("no floor: \(why)")
            return why
        case .program(let program):
            targets.append(
                try FloorTarget(loop: loop, program: program, folder: folder, tls: tls))
            return nil
        }
    }

    /// The servers take turns, so that what else the machine does meets all of them.
    private func measure(_ arrivals: Arrivals, group: Int? = nil) throws -> [PublishRow] {
        var measures: [String: [PublishMeasure]] = [:]
        for run in 1...options.runs {
            for target in targets {
                let words = group.map { "fan-out to \($0)" } ?? arrivals.words
                options.progress("\(words): \(target.name), run \(run)")
                measures[target.name, default: []].append(
                    try drive(target, arrivals, Double(options.seconds), group: group))
            }
        }
        return targets.map { target in
            var row = (inFlight: Int?.none, rate: Int?.none)
            switch arrivals {
            case .closed(let inFlight): row.inFlight = inFlight
            case .open(let rate): row.rate = rate
            }
            return PublishRow(
                kind: group == nil ? arrivals.kind : "fan-out", target: target.name,
                inFlight: row.inFlight, rate: row.rate, group: group,
                measures: measures[target.name] ?? [])
        }
    }

    /// All devices are gone at once, as when a network fails, and come again: to being in sync.
    private func storms() throws -> [PublishRow] {
        var measures: [String: [PublishMeasure]] = [:]
        for _ in 1...options.runs {
            for (index, target) in targets.enumerated() {
                for device in devices[target.name] ?? [] { device.vanish() }
                measures[target.name, default: []].append(
                    try logIn(target, source: index, inFlight: Self.stormInFlight))
            }
        }
        return targets.map { target in
            PublishRow(
                kind: "storm", target: target.name, inFlight: Self.stormInFlight,
                measures: measures[target.name] ?? [])
        }
    }

    // MARK: - Publishing

    private func drive(
        _ target: any PublishTarget, _ arrivals: Arrivals, _ seconds: Double, group: Int? = nil
    ) throws -> PublishMeasure {
        let pool = HTTPPool(loop: loop, port: target.apiPort, limit: options.inFlight)
        defer { pool.close() }
        pool.open { [loop] in loop.stop() }
        loop.run()
        let drive = PublishDrive(
            loop: loop, pool: pool, target: target, devices: options.devices,
            group: group, arrivals: arrivals, seconds: seconds, firstNumber: lastNumber + 1)
        self.drive = drive
        defer { self.drive = nil }
        let metricsBefore = try metrics(target, pool)
        let before = try use(target)
        let own = ownProcessorNanoseconds()
        let (outcome, begun) = try drive.run()
        let ownAfter = ownProcessorNanoseconds()
        lastNumber += begun
        if let failure = outcome.failure ?? failure {
            throw ScenarioError("\(failure)\n\(target.lastLogLines())")
        }
        var measure = PublishMeasure(
            outcome: outcome, use: try use(target).since(before), toolNanoseconds: ownAfter - own)
        let metricsAfter = try metrics(target, pool)
        for name in PublishMeasure.metricNames {
            measure.metrics[name] = metricsAfter.change(name, since: metricsBefore)
        }
        return measure
    }

    private func use(_ target: any PublishTarget) throws(ScenarioError) -> ProcessUse {
        guard let process = target.process, let use = ProcessUse(of: process) else {
            throw ScenarioError("\(target.name) has ended:\n\(target.lastLogLines())")
        }
        return use
    }

    private func metrics(
        _ target: any PublishTarget, _ pool: HTTPPool
    ) throws(ScenarioError) -> ServerMetrics {
        guard target.tellsMetrics else { return ServerMetrics() }
        var text = ""
        try exchange([BackendRequest.get("/metrics")], pool) { text = $0 }
        return ServerMetrics(text)
    }

    /// Sends requests and runs the loop until all are answered.
    private func exchange(
        _ requests: [[UInt8]], _ pool: HTTPPool, _ take: @escaping (String) -> Void
    ) throws(ScenarioError) {
        var left = requests.count
        var problem: String?
        guard left > 0 else { return }
        for request in requests {
            pool.send(request) { [loop] result in
                left -= 1
                switch result {
                case .success(let answer):
                    let body = String(decoding: answer.body, as: UTF8.self)
                    if answer.status < 300 {
                        take(body)
                    } else {
                        problem = "\(answer.status) \(body)"
                    }
                case .failure(let error): problem = "\(error)"
                }
                if left == 0 || problem != nil { loop.stop() }
            }
        }
        loop.updateNow()
        while left > 0, problem == nil, failure == nil { loop.run() }
        if let problem = problem ?? failure { throw ScenarioError(problem) }
    }

    private var group: Int { min(options.group, options.devices) }

    private func prepare(_ target: any PublishTarget) throws(ScenarioError) {
        let places = (0..<options.devices).map { Recipient.device($0) } + [.group(group)]
        let requests = places.compactMap { target.preparation(for: $0) }
        guard !requests.isEmpty else { return }
        options.progress("\(target.name): making \(requests.count) conversations")
        let pool = HTTPPool(loop: loop, port: target.apiPort, limit: 32)
        defer { pool.close() }
        try exchange(requests, pool) { _ in }
    }

    // MARK: - Logging in

    /// - Parameter source: of the addresses 127.0.x.y, which part is this server's.
    private func logIn(
        _ target: any PublishTarget, source: Int, inFlight: Int
    ) throws -> PublishMeasure {
        options.progress("\(target.name): \(options.devices) devices connect")
        devices[target.name] = []
        var outcome = PublishDrive.Outcome()
        var next = 0
        let before = try use(target)
        let own = ownProcessorNanoseconds()
        let started = monotonicNanoseconds()
        func connectNext() {
            guard next < options.devices, failure == nil else { return }
            let number = next
            next += 1
            let dialled = monotonicNanoseconds()
            let address = number / Self.connectionsPerAddress
            let from = "127.\(source).\(1 + address / 250).\(1 + address % 250)"
            let device = target.connect(number, from: from) { [unowned self] event in
                switch event {
                case .ready:
                    outcome.answers.append(monotonicNanoseconds() - dialled)
                    outcome.done += 1
                    if outcome.done == self.options.devices { self.loop.stop() }
                    connectNext()
                case .message(let text): self.drive?.delivered(text)
                case .ended(let why): self.fail("\(target.name), device \(number): \(why)")
                }
            }
            devices[target.name, default: []].append(device)
        }
        loop.updateNow()
        for _ in 0..<inFlight { connectNext() }
        loop.run()
        if let failure { throw ScenarioError("\(failure)\n\(target.lastLogLines())") }
        outcome.nanoseconds = monotonicNanoseconds() - started
        let after = try use(target)
        return PublishMeasure(
            outcome: outcome, use: after.since(before),
            toolNanoseconds: ownProcessorNanoseconds() - own,
            residentGrowth: after.residentBytes - before.residentBytes)
    }

    private func fail(_ why: String) {
        guard !isTidying, failure == nil else { return }
        failure = why
        drive?.fail(why)
        loop.stop()
    }
}

extension Arrivals {
    var kind: String {
        switch self {
        case .closed: "closed"
        case .open: "open"
        }
    }

    var words: String {
        switch self {
        case .closed(let inFlight): "closed loop, \(inFlight) in flight"
        case .open(let rate): "open loop, \(rate) a second"
        }
    }
}
