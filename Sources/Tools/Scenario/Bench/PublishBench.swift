import Crypto
import EventLoop
import FoundationEssentials

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
    /// mosquitto and redis beside, where they are installed.
    public var hasPeers = false
    /// Nodes on a PostgreSQL of its own beside, where that is installed: this many at a time.
    public var nodes: [Int] = []
    /// Entries that devices lack when they come back.
    public var behind = [1_000]
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
    /// Devices that are away while messages come.
    static let awayDevices = 20
    /// Milliseconds that a server has for what follows a connection or a publish.
    static let settleTime: UInt64 = 1_000
    /// A server that writes fewer rows in that time does what it always does; it is looked at so
    /// often.
    static let quietRows = 10.0
    static let quietLooks = 120

    private let options: PublishBenchOptions
    private let loop: Loop
    private let folder: URL
    /// Those that take turns now; others are not running.
    private var targets: [any PublishTarget] = []
    private var database: PostgresProgram?
    /// By target.
    private var devices: [String: [Int: any TargetDevice]] = [:]
    /// What was asked for and is not there, and why.
    private var missing: [String] = []
    private var drive: PublishDrive?
    private var lastNumber: UInt64 = 0
    private var failure: String?
    private var isTidying = false

    public static func run(_ options: PublishBenchOptions) throws -> PublishBenchReport {
        let descriptors = Descriptors.raiseLimit()
        // The server keeps 256 for other things (`limits.connections`).
        let servers =
            (options.floor == nil ? 1 : 2) + (options.hasPeers ? 2 : 0)
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
        stopTargets()
        database?.stop()
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
        if options.hasPeers { try startPeers(certificate: made.authorityPEM) }
        var rows = try measureTargets()
        // Of nodes each does something all the time, and all of them have one PostgreSQL.
        for count in options.nodes {
            stopTargets()
            guard try startNodes(count, tls) else { break }
            rows += try measureTargets()
        }
        return PublishBenchReport(
            devices: options.devices, seconds: Double(options.seconds), rows: Self.byKind(rows),
            floorMissing: floorMissing, peersMissing: missing)
    }

    private func stopTargets() {
        for device in devices.values.flatMap(\.values) { device.vanish() }
        for target in targets { target.stop() }
        devices = [:]
        targets = []
    }

    /// Rows of one kind stand together, in the order in which they were measured.
    static func byKind(_ rows: [PublishRow]) -> [PublishRow] {
        var kinds: [String] = []
        var sorted: [String: [PublishRow]] = [:]
        for row in rows {
            let kind = "\(row.kind) \(row.rate ?? 0) \(row.entries ?? 0)"
            if sorted[kind] == nil { kinds.append(kind) }
            sorted[kind, default: []].append(row)
        }
        return kinds.flatMap { sorted[$0] ?? [] }
    }

    private func measureTargets() throws -> [PublishRow] {
        var rows: [PublishRow] = []
        for (index, target) in targets.enumerated() {
            try prepare(target)
            try waitUntilQuiet(target)
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
        rows += try idle()
        for entries in options.behind { rows += try behind(entries) }
        return rows
    }

    /// One PostgreSQL holds the stores of all.
    ///
    /// - Returns: whether there is one.
    private func startNodes(_ count: Int, _ tls: TLSContext) throws -> Bool {
        if database == nil, let programs = PostgresProgram.find() {
            database = try PostgresProgram(programs, folder: folder)
        }
        guard let database else {
            missing.append("PostgreSQL is not installed")
            options.progress("left out: PostgreSQL is not installed")
            return false
        }
        targets = [
            try RouseTarget(
                loop: loop, executable: options.executable, folder: folder, tls: tls,
                database: database, nodes: count)
        ]
        return true
    }

    /// Those that are installed.
    private func startPeers(certificate: String) throws {
        // They know nothing of our protocol's name.
        let tls = try TLSContext.client(
            trustedCertificates: Array(certificate.utf8), protocols: [], minimumVersion: .tls13)
        if let program = peer(MosquittoTarget.programName) {
            targets.append(
                try MosquittoTarget(
                    loop: loop, program: program, folder: folder, tls: tls, group: group))
        }
        if let program = peer(RedisTarget.programName) {
            targets.append(
                try RedisTarget(
                    loop: loop, program: program, folder: folder, tls: tls, group: group))
        }
    }

    private func peer(_ name: String) -> URL? {
        let program = PeerProgram.find(name)
        if program == nil {
            missing.append("\(name) is not installed")
            options.progress("left out: \(name) is not installed")
        }
        return program
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
                vanish(0..<options.devices, of: target)
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

    private func vanish(_ numbers: Range<Int>, of target: any PublishTarget) {
        for number in numbers { devices[target.name]?[number]?.vanish() }
    }

    /// What connections cost that carry nothing.
    private func idle() throws -> [PublishRow] {
        pass(Self.settleTime)
        return try targets.map { target in
            options.progress("\(options.devices) idle devices: \(target.name)")
            let measure = try measure(target) {
                var outcome = PublishDrive.Outcome()
                let started = monotonicNanoseconds()
                pass(UInt64(options.seconds) * 1_000)
                outcome.nanoseconds = monotonicNanoseconds() - started
                outcome.done = options.devices * options.seconds
                return outcome
            }
            return PublishRow(
                kind: "idle", target: target.name, group: options.devices, measures: [measure])
        }
    }

    /// What each entry costs that devices lack when they come back: above what their coming back
    /// costs when they lack none, which is measured just before.
    private func behind(_ entries: Int) throws -> [PublishRow] {
        let away = 0..<min(Self.awayDevices, options.devices)
        return try targets.enumerated().filter(\.element.keepsFeeds).map { index, target in
            let measures = try (1...options.runs).map { run in
                options.progress("\(away.count) devices behind by \(entries), run \(run)")
                vanish(away, of: target)
                pass(Self.settleTime)
                let base = try comeBack(away, target, source: index, lacking: 0)
                vanish(away, of: target)
                pass(Self.settleTime)
                try publish(entries, to: .group(away.count), of: target)
                pass(Self.settleTime)
                return try comeBack(away, target, source: index, lacking: entries).above(base)
            }
            return PublishRow(
                kind: "behind", target: target.name, entries: entries, measures: measures)
        }
    }

    private func comeBack(
        _ numbers: Range<Int>, _ target: any PublishTarget, source: Int, lacking entries: Int
    ) throws -> PublishMeasure {
        let measure = try logIn(
            target, source: source, inFlight: numbers.count, numbers, settling: true)
        for number in numbers {
            guard let device = devices[target.name]?[number] as? LoadDevice,
                device.syncedEntries == entries
            else { throw ScenarioError("device \(number) did not get the \(entries) it lacked") }
        }
        var counted = measure
        counted.outcome.done = entries * numbers.count
        return counted
    }

    private func publish(
        _ count: Int, to recipient: Recipient, of target: any PublishTarget
    ) throws {
        let pool = BackendPool(
            loop: loop, ports: target.apiPorts, dialect: target.dialect, limit: options.inFlight)
        defer { pool.close() }
        let requests = (0..<count).map { index in
            let number = lastNumber + 1 + UInt64(index)
            return target.publish(PublishDrive.text(number), number: number, to: recipient)
        }
        lastNumber += UInt64(count)
        try exchange(requests, pool) { _ in }
    }

    /// Runs the loop for so long.
    private func pass(_ milliseconds: UInt64) {
        loop.updateNow()
        let timer = loop.timer { [loop] in loop.stop() }
        timer.start(afterMilliseconds: milliseconds)
        loop.run()
        timer.close()
    }

    // MARK: - Publishing

    private func drive(
        _ target: any PublishTarget, _ arrivals: Arrivals, _ seconds: Double, group: Int? = nil
    ) throws -> PublishMeasure {
        let pool = BackendPool(
            loop: loop, ports: target.apiPorts, dialect: target.dialect, limit: options.inFlight)
        defer { pool.close() }
        pool.open { [loop] in loop.stop() }
        loop.run()
        let drive = PublishDrive(
            loop: loop, pool: pool, target: target, devices: options.devices,
            group: group, arrivals: arrivals, seconds: seconds, firstNumber: lastNumber + 1)
        self.drive = drive
        defer { self.drive = nil }
        return try measure(target) {
            let (outcome, begun) = try drive.run()
            lastNumber += begun
            return outcome
        }
    }

    /// What the server used, and told, of what happens in `body`.
    private func measure(
        _ target: any PublishTarget, _ body: () throws -> PublishDrive.Outcome
    ) throws -> PublishMeasure {
        let metricsBefore = try metrics(target)
        let before = try use(target)
        let own = ownProcessorNanoseconds()
        let outcome = try body()
        let ownAfter = ownProcessorNanoseconds()
        if let failure = outcome.failure ?? failure {
            throw ScenarioError("\(failure)\n\(target.lastLogLines())")
        }
        let after = try use(target)
        var measure = PublishMeasure(
            outcome: outcome, use: after.since(before), toolNanoseconds: ownAfter - own,
            residentGrowth: after.residentBytes - before.residentBytes)
        let metricsAfter = try metrics(target)
        for name in PublishMeasure.metricNames {
            measure.metrics[name] = metricsAfter.change(name, since: metricsBefore)
        }
        return measure
    }

    private func use(_ target: any PublishTarget) throws(ScenarioError) -> ProcessUse {
        guard let processes = target.processes else {
            throw ScenarioError("\(target.name) has ended:\n\(target.lastLogLines())")
        }
        return ProcessUse(of: processes)
    }

    /// Those of all nodes, added up.
    private func metrics(_ target: any PublishTarget) throws(ScenarioError) -> ServerMetrics {
        guard target.tellsMetrics else { return ServerMetrics() }
        var text = ""
        for port in target.apiPorts {
            let node = BackendPool(loop: loop, ports: [port], dialect: target.dialect, limit: 1)
            defer { node.close() }
            try exchange([BackendRequest.get("/metrics")], node) { text += $0 }
        }
        return ServerMetrics(text)
    }

    /// Sends requests and runs the loop until all are answered.
    private func exchange(
        _ requests: [[UInt8]], _ pool: BackendPool, _ take: @escaping (String) -> Void
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
        let requests = (0..<options.devices).flatMap { target.preparation(for: .device($0)) }
        guard !requests.isEmpty else { return }
        options.progress("\(target.name): making \(requests.count) conversations")
        let pool = BackendPool(
            loop: loop, ports: target.apiPorts, dialect: target.dialect, limit: 32)
        defer { pool.close() }
        try exchange(requests, pool) { _ in }
        for members in Set([group, min(Self.awayDevices, options.devices)]) {
            for request in target.preparation(for: .group(members)) {
                try exchange([request], pool) { _ in }
            }
        }
    }

    /// Until the server has done what the preparations left to its background work: it would be
    /// in every figure.
    private func waitUntilQuiet(_ target: any PublishTarget) throws(ScenarioError) {
        guard target.tellsMetrics else { return }
        for _ in 0..<Self.quietLooks {
            let before = try metrics(target)
            pass(Self.settleTime)
            let after = try metrics(target)
            let written = after.change("rouse_store_rows_written_total", since: before) ?? 0
            if written < Self.quietRows { return }
        }
    }

    // MARK: - Logging in

    /// - Parameters:
    ///   - source: of the addresses 127.x.y.z, which part is this server's.
    ///   - numbers: those that log in; `nil`: all.
    ///   - settling: what follows is waited for.
    private func logIn(
        _ target: any PublishTarget, source: Int, inFlight: Int, _ numbers: Range<Int>? = nil,
        settling: Bool = false
    ) throws -> PublishMeasure {
        let numbers = numbers ?? 0..<options.devices
        options.progress("\(target.name): \(numbers.count) devices connect")
        var outcome = PublishDrive.Outcome()
        var next = numbers.lowerBound
        func connectNext() {
            guard next < numbers.upperBound, failure == nil else { return }
            let number = next
            next += 1
            let dialled = monotonicNanoseconds()
            let address = number / Self.connectionsPerAddress
            let from = "127.\(source).\(1 + address / 250).\(1 + address % 250)"
            devices[target.name, default: [:]][number] = target.connect(number, from: from) {
                [unowned self] event in
                switch event {
                case .ready:
                    outcome.answers.append(monotonicNanoseconds() - dialled)
                    outcome.done += 1
                    if outcome.done == numbers.count { self.loop.stop() }
                    connectNext()
                case .message(let text): self.drive?.delivered(text, to: number)
                case .ended(let why): self.fail("\(target.name), device \(number): \(why)")
                }
            }
        }
        return try measure(target) {
            let started = monotonicNanoseconds()
            loop.updateNow()
            for _ in 0..<inFlight { connectNext() }
            loop.run()
            outcome.nanoseconds = monotonicNanoseconds() - started
            if settling, failure == nil { pass(Self.settleTime) }
            return outcome
        }
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
