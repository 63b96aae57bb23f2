import Bench
import FoundationEssentials
import Glibc
import Scenario

/// `rouse bench`: the server measured, in parts and as a whole.
extension Rouse {
    static let benchCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "bench store", summary: "measure what each request costs the writer",
                options: [
                    CommandOption(
                        "scale", "small|full|N",
                        "sessions, and messages of one user: 2000, 1000000 or N (default small)"),
                    CommandOption(
                        "devices", "N", "of the app that is suspended or removed (a tenth)"),
                    CommandOption(
                        "participants", "N", "of the large conversation (a hundredth)"),
                    CommandOption(
                        "entries", "N", "of the feed that is read from afar (a tenth)"),
                    CommandOption(
                        "only", "KIND[,KIND]", "these kinds alone (default: all)",
                        choices: BenchKind.allCases.map(\.rawValue)),
                    CommandOption(
                        "store", "FILE|memory|distant",
                        "where: a file to be made and left (default: a temporary one)"),
                    CommandOption("runs", "N", "of each kind that can be repeated (default 3)"),
                    CommandOption(
                        "seconds", "S", "one run of a kind at most, turns 20 times (default 2)"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: [
                    "rouse bench store",
                    "rouse bench store --scale full --json",
                    "rouse bench store --only publish,publish-100 --runs 5",
                    "rouse bench store --scale 100000 --only remove-app --store /disk/bench.db",
                    "rouse bench store --participants 10000 --only group-publish,group-end",
                ],
                notes: """
                    It fills a store of its own and drives its writer as the server's thread does,
                    without sockets: groups of requests, carried out by the rules in one transaction
                    which is on disk when it returns. A journal that has grown by 10 MiB is moved
                    by a thread beside; what that leaves, the writer moves between transactions
                    (`checkpoint`). Few rows are made by the rules, the many are copies of these.

                    A row is a kind of request, or the turns of a duty that follow it. `held` is how
                    long the writer carried the transaction out, with reading from the file, and
                    does nothing else; `commit` is writing the journal and waiting for the disk.
                    Rows, statements and bytes are of one request, percentiles are of all
                    transactions of a run, the figures are the median of the runs. What held the
                    writer for longest in one transaction is told at the end.

                    --store memory leaves the disk out. --store distant does, too, and fetches rows
                    for a group of requests before they run, as a node on PostgreSQL does: it shows
                    what rules and fetching cost there, without the database.

                    Not measured: waiting in queues, telling connections, JSON and frames, other
                    threads at the same time. Members of the large conversation hold no entries
                    about each other. What else the machine does shows in the times, less in `cpu`.
                    Measure with a release build. Kinds:

                    \(benchKinds)
                    """),
            run: { try benchStore($0) }),
        Command(
            description: CommandDescription(
                name: "bench publish",
                summary: "measure durable publishes to connected devices, over sockets",
                options: [
                    CommandOption("devices", "N", "connected, each of its own user (default 1000)"),
                    CommandOption(
                        "in-flight", "N", "publishes under way in the closed loop (default 256)"),
                    CommandOption(
                        "rate", "R[,R]", "publishes a second in open loops (default 500)"),
                    CommandOption("group", "N", "devices of the fan-out (default 100)"),
                    CommandOption("runs", "N", "of each kind (default 3)"),
                    CommandOption("seconds", "S", "publishing in one run (default 5)"),
                    CommandOption(
                        "floor", "FILE", "a bare server to measure beside: C source, or a program"),
                    CommandOption("peers", "mosquitto and redis beside, where installed"),
                    CommandOption(
                        "nodes", "N[,N]", "so many nodes on PostgreSQL beside, each in turn"),
                    CommandOption(
                        "behind", "N[,N]", "entries that devices lack (default 1000)"),
                    CommandOption(
                        "server", "FILE", "the rouse to measure, such as an older one"),
                    CommandOption("keep", "keep the folder with store and log"),
                    CommandOption("json", "end with one JSON object on stdout"),
                ],
                examples: [
                    "rouse bench publish",
                    "rouse bench publish --devices 10000 --rate 500,2000 --json",
                    "rouse bench publish --floor Tests/floor/floor.c --peers",
                    "rouse bench publish --nodes 1,2,3 --rate 500",
                ],
                notes: """
                    It starts a server of its own, with free ports and a temporary folder, and logs
                    devices in over TLS with identity tokens, from several addresses of 127.0.0.0/8.
                    Then it publishes as a backend does, over keep-alive connections without TLS:
                    100 bytes with an alert's text and an idempotency key to a random device, each
                    in a conversation of its own. A publish is answered once it is on disk.

                    closed  as many are always under way as --in-flight says, each until it is
                            answered and the device has it: what the server can do
                    open    they begin by a schedule, evenly spaced, whatever became of those
                            before, and times count from the schedule: a stall shows in all that
                            came meanwhile. At a rate above what the server can do, the times are
                            those of a growing queue
                    fan-out messages to one conversation of --group devices, one at a time
                    storm   all devices lose their connections at once and come again with session
                            tokens and where they stand, 256 at a time, until all are in sync
                    idle    all are connected, and nothing comes
                    behind  20 devices were away while --behind messages came to each, and come
                            back, until they are in sync; what their coming back costs when they
                            lack nothing is taken off

                    --floor Tests/floor/floor.c is compiled with cc and serves the same devices and
                    publishes with a framing of its own: TLS, one log that is synced in groups
                    before an answer, and sending, without users, feeds, alerts or history. The two
                    take turns, run by run, and what Rouse costs is also told as a ratio. Without a
                    compiler it is left out, and that is said. --peers measures brokers of Debian's
                    packages likewise: mosquitto with quality of service 1, which puts nothing on
                    disk, and redis with `appendfsync always`, a stream and a channel for each
                    device. They have no feeds to be behind in.

                    --nodes starts a PostgreSQL in the folder, where its package is installed, which
                    syncs what it commits, and that many nodes on it; of 1,2,3 each on tables of its
                    own, and alone: the others are not running meanwhile. Devices and the backend's
                    connections go to the nodes in turn, without a balancer. Round trips and
                    statements of a commit are what its writer sent to PostgreSQL and waited for.
                    Figures are of all nodes and PostgreSQL together; its share of the processor is
                    told as the thread `postgres`, and its shared memory counts in RSS as often as
                    it has processes.

                    The server's processor time, memory and writing are read from /proc, commits and
                    rows from its metrics, all until the last device has its message; what follows
                    later is not in it. This tool, one thread, and the server share the machine's
                    processors: where its own time of one comes near to what a closed loop takes for
                    one, it is the tool that is measured. The disk's speed changes between minutes:
                    times of different days compare little, cpu more. In memory (tmpfs) nothing is
                    written to disk. Exit status 1: not all came to its end. Measure with a release
                    build.
                    """),
            run: { try benchPublish($0) }),
    ]

    private static var benchKinds: String {
        let width = (BenchKind.allCases.map(\.rawValue.count).max() ?? 0) + 2
        return BenchKind.allCases.map { kind in
            let gap = String(repeating: " ", count: width - kind.rawValue.count)
            return "  \(kind.rawValue)\(gap)\(kind.summary)"
        }.joined(separator: "\n")
    }

    private static func benchStore(_ arguments: Arguments) throws -> Int32 {
        var options = StoreBenchOptions()
        options.scale = BenchScale(
            try benchSize(arguments.string("scale") ?? "small"),
            devicesOfApp: try arguments.number("devices", in: BenchScale.devicesRange),
            participants: try arguments.number("participants", in: BenchScale.participantsRange),
            entries: try arguments.number("entries", in: BenchScale.entriesRange))
        if let names = arguments.string("only") {
            options.kinds = try names.split(separator: ",").map { name in
                guard let kind = BenchKind(rawValue: String(name)) else {
                    throw UsageError("--only: no kind `\(name)`; see --help")
                }
                return kind
            }
            guard !options.kinds.isEmpty else { throw UsageError("--only names no kind") }
        }
        options.runs = try arguments.number("runs", in: 1...100) ?? options.runs
        options.seconds = Double(try arguments.number("seconds", in: 1...3_600) ?? 2)
        let progress = Progress()
        options.progress = { progress.show($0) }
        let report = try withBenchStore(arguments.string("store")) { engine in
            options.engine = engine
            return try StoreBench.run(options)
        }
        progress.end()
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        return report.failures.isEmpty ? ExitStatus.success : ExitStatus.failure
    }

    private static func benchPublish(_ arguments: Arguments) throws -> Int32 {
        var options = PublishBenchOptions()
        options.devices = try arguments.number("devices", in: 1...60_000) ?? options.devices
        // The backend API takes 512 connections.
        options.inFlight = try arguments.number("in-flight", in: 1...448) ?? options.inFlight
        options.rates = try benchNumbers("rate", arguments) ?? options.rates
        options.behind = try benchNumbers("behind", arguments) ?? options.behind
        options.group = try arguments.number("group", in: 1...10_000) ?? options.group
        options.runs = try arguments.number("runs", in: 1...100) ?? options.runs
        options.seconds = try arguments.number("seconds", in: 1...600) ?? options.seconds
        options.floor = arguments.string("floor")
        if let floor = options.floor, !FileManager.default.fileExists(atPath: floor) {
            throw UsageError("--floor: there is no \(floor)")
        }
        options.hasPeers = arguments.has("peers")
        options.nodes = try benchNumbers("nodes", in: 1...16, arguments) ?? options.nodes
        options.keepsFolder = arguments.has("keep")
        options.executable = try arguments.string("server") ?? ownExecutable()
        guard FileManager.default.isExecutableFile(atPath: options.executable) else {
            throw UsageError("--server: \(options.executable) is no program")
        }
        options.progress = { Terminal.complain($0) }
        let report = try PublishBench.run(options)
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        return report.isWhole ? ExitStatus.success : ExitStatus.failure
    }

    private static func benchNumbers(
        _ name: String, in range: ClosedRange<Int> = 1...100_000, _ arguments: Arguments
    ) throws -> [Int]? {
        try arguments.string(name)?.split(separator: ",").map { text in
            guard let number = Int(text), range.contains(number) else {
                throw UsageError(
                    "--\(name) must be numbers from \(range.lowerBound) to "
                        + "\(range.upperBound), not `\(text)`")
            }
            return number
        }
    }

    private static func benchSize(_ text: String) throws -> Int {
        switch text {
        case "small": return BenchScale.small.sessions
        case "full": return BenchScale.full.sessions
        default:
            let range = BenchScale.range
            guard let size = Int(text), range.contains(size) else {
                throw UsageError(
                    "--scale must be small, full or a number from \(range.lowerBound) to "
                        + "\(range.upperBound), not `\(text)`")
            }
            return size
        }
    }

    /// - Parameter store: a file's name, an engine in memory, or nothing: a file that goes
    ///   afterwards.
    private static func withBenchStore(
        _ store: String?, _ body: (BenchEngine) throws -> BenchReport
    ) throws -> BenchReport {
        let files = FileManager.default
        switch store {
        case "memory": return try body(.memory)
        case "distant": return try body(.distant)
        case let file?:
            guard !files.fileExists(atPath: file) else {
                throw UsageError("--store: \(file) exists; the store is made anew")
            }
            return try body(.file(file))
        case nil:
            let folder = files.temporaryDirectory
                .appendingPathComponent("rouse-bench-\(UUID().uuidString.prefix(8))")
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? files.removeItem(at: folder) }
            return try body(.file(folder.appendingPathComponent("store.db").path))
        }
    }
}
