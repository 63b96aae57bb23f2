import Feed
import Model
import RouseServer
import StoreService

/// What to measure, and where.
public struct StoreBenchOptions: Sendable {
    public var scale = BenchScale.small
    public var kinds = BenchKind.allCases
    public var engine = BenchEngine.memory
    /// How often each kind is driven that can be driven more than once in a store.
    public var runs = 3
    /// How long one run of an ordinary kind may take; turns may take 20 times as long.
    public var seconds = 2.0
    /// Called with a line for whoever waits; on a terminal one takes the place of the other.
    public var progress: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// What the store is made of.
public enum BenchEngine: Sendable {
    /// A file to be made at this path.
    case file(String)
    case memory
    /// In memory, and rows are fetched together before requests run, as from PostgreSQL: what rules
    /// and fetching cost there without the database and the way to it.
    case distant

    var name: String {
        switch self {
        case .file: "file"
        case .memory: "memory"
        case .distant: "distant"
        }
    }
}

/// The tool could not go on, or the server answered what it should not have.
public struct BenchError: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

/// Drives the writer alone, request by request, as its thread does, and measures it.
public final class StoreBench {
    let options: StoreBenchOptions
    let writer: BenchWriter
    let world: BenchWorld
    private var kind = BenchKind.publish
    private var samples: [BenchPlace: [[BenchSample]]] = [:]
    private var order: [BenchPlace] = []
    private var driven: [BenchPlace: Set<String>] = [:]
    private var cut: Set<BenchPlace> = []
    private var failures: [String] = []
    private var deadline: UInt64 = 0
    /// What the kinds are driven on.
    var stock = BenchStock()

    var scale: BenchScale { options.scale }

    private init(_ options: StoreBenchOptions) throws {
        self.options = options
        writer = try BenchWriter(options.engine)
        world = BenchWorld(writer, options.scale)
    }

    /// A kind in which a request is refused ends there, and the report says so: figures of what was
    /// not carried out would be none.
    public static func run(_ options: StoreBenchOptions) throws -> BenchReport {
        let bench = try StoreBench(options)
        defer { bench.writer.close() }
        try bench.fill()
        for kind in BenchKind.allCases where options.kinds.contains(kind) {
            do {
                try bench.drive(kind)
            } catch let error as BenchError {
                bench.failures.append("\(kind.rawValue): \(error)")
            }
        }
        return bench.report()
    }

    private func drive(_ kind: BenchKind) throws {
        self.kind = kind
        for run in 0..<(kind.isOnce ? 1 : max(1, options.runs)) {
            options.progress("\(kind.rawValue), run \(run + 1)")
            for place in order where place.kind == kind.rawValue { samples[place]?.append([]) }
            // A change that a conversation still waits for makes the next one wait, too.
            try settle("fan-out")
            deadline = BenchClock.monotonic() + UInt64(options.seconds * 1e9)
            try carryOut(kind, run: run)
        }
    }

    private func report() -> BenchReport {
        var rows = order.map { place in
            BenchRow(
                place, runs: samples[place] ?? [], requests: driven[place] ?? [],
                isCut: cut.contains(place))
        }
        if !writer.checkpoints.isEmpty {
            rows.append(
                BenchRow(
                    BenchPlace(kind: "checkpoint", part: ""), runs: [writer.checkpoints],
                    requests: [], isCut: false))
        }
        return BenchReport(
            store: options.engine.name, scale: scale,
            rows: rows.filter { $0.transactions > 0 }, failures: failures,
            isDebug: BenchReport.isDebugBuild)
    }

    // MARK: Measuring

    func note(_ sample: BenchSample, part: String = "") {
        let place = BenchPlace(kind: kind.rawValue, part: part)
        var runs = samples.removeValue(forKey: place) ?? [[]]
        if !order.contains(place) { order.append(place) }
        runs[runs.count - 1].append(sample)
        samples[place] = runs
    }

    /// One transaction, measured; all of it must have been carried out.
    @discardableResult
    func measure(_ requests: [StoreRequest], part: String = "") throws -> [StoreOutcome] {
        let place = BenchPlace(kind: kind.rawValue, part: part)
        for request in requests {
            let name = BenchRequest(request)
            guard !part.isEmpty || name.isDriven(in: kind) else {
                throw BenchError("\(kind.rawValue) drives \(name), which is not said of it")
            }
            driven[place, default: []].insert(name.rawValue)
        }
        try world.stayAlive()
        let (outcomes, sample) = try writer.commit(requests)
        let sound = try zip(requests, outcomes).map { try world.sound($1, of: $0) }
        note(sample, part: part)
        return sound
    }

    /// Measures what `next` makes, until there are enough or the time is up.
    ///
    /// - Parameter after: told each answer, to go on from there.
    func repeated(
        _ count: Int? = nil, part: String = "", _ next: (Int) throws -> [StoreRequest],
        after: (Int, StoreAnswer) throws -> Void = { _, _ in }
    ) throws {
        for index in 0..<(count ?? scale.requests) {
            guard index == 0 || BenchClock.monotonic() < deadline else { return }
            let outcomes = try measure(try next(index), part: part)
            if let first = outcomes.first { try after(index, first.answer) }
        }
    }

    /// The turns of a duty, as long as there is more to do.
    ///
    /// - Returns: whether it came to its end.
    @discardableResult
    func turns(_ name: String) throws -> Bool {
        guard let duty = Server.duties.first(where: { $0.name == name }) else {
            throw BenchError("the server has no duty \(name)")
        }
        let end = BenchClock.monotonic() + UInt64(options.seconds * 20e9)
        var count = 0
        while true {
            let outcomes = try measure([duty.request], part: name)
            guard case .progressed(_, more: true) = outcomes.first?.answer else { return true }
            count += 1
            if count % 100 == 0 {
                options.progress("\(kind.rawValue): \(name), turn \(count)")
            }
            if BenchClock.monotonic() > end {
                cut.insert(BenchPlace(kind: kind.rawValue, part: name))
                return false
            }
        }
    }

    /// The turns of a duty, unmeasured: what an earlier kind left must not count here.
    func settle(_ name: String) throws {
        guard let duty = Server.duties.first(where: { $0.name == name }) else { return }
        var turns = 0
        while case .progressed(_, more: true) = try world.ask(duty.request), turns < 10_000 {
            turns += 1
        }
    }
}
