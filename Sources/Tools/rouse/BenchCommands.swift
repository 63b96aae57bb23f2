import Bench
import Foundation
import Glibc

/// `rouse bench`: parts of the server measured alone.
extension Rouse {
    static let benchCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "bench store", summary: "measure what each request costs the writer",
                options: [
                    CommandOption(
                        "scale", "small|full|N",
                        "sessions, and messages of one user: 2000, 1000000 or N (default small)"),
                    CommandOption("only", "KIND[,KIND]", "these kinds alone (default: all)"),
                    CommandOption(
                        "store", "FILE|memory",
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
                ],
                notes: """
                    It fills a store of its own and drives its writer as the server's thread does,
                    without sockets: groups of requests, carried out by the rules in one transaction
                    which is on disk when it returns; between transactions the journal is moved when
                    it has grown by 16 MiB (`checkpoint`). Few rows are made by the rules, the many
                    are copies of these.

                    A row is a kind of request, or the turns of a duty that follow it. `held` is how
                    long the writer carried the transaction out, with reading from the file, and
                    does nothing else; `commit` is writing the journal and waiting for the disk.
                    Rows, statements and bytes are of one request, percentiles are of all
                    transactions of a run, the figures are the median of the runs.

                    Not measured: waiting in queues, telling connections, JSON and frames, other
                    threads at the same time. Members of the large conversation hold no entries
                    about each other. What else the machine does shows in the times, less in `cpu`.
                    Measure with a release build. Kinds:

                    \(benchKinds)
                    """),
            run: { try benchStore($0) })
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
        options.scale = try benchScale(arguments.string("scale") ?? "small")
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
        let isTerminal = isatty(2) == 1
        options.progress = { line in
            if isTerminal {
                FileHandle.standardError.write(Data("\r\u{1B}[K\(line)".utf8))
            } else {
                Terminal.complain(line)
            }
        }
        let report = try withBenchStore(arguments.string("store")) { path in
            options.path = path
            return try StoreBench.run(options)
        }
        if isTerminal { Terminal.complain("") }
        if arguments.has("json") {
            Terminal.complain(report.text)
            Terminal.print(report.json)
        } else {
            Terminal.print(report.text)
        }
        return report.failures.isEmpty ? ExitStatus.success : ExitStatus.failure
    }

    private static func benchScale(_ text: String) throws -> BenchScale {
        switch text {
        case "small": return .small
        case "full": return .full
        default:
            let range = BenchScale.range
            guard let size = Int(text), range.contains(size) else {
                throw UsageError(
                    "--scale must be small, full or a number from \(range.lowerBound) to "
                        + "\(range.upperBound), not `\(text)`")
            }
            return BenchScale(size)
        }
    }

    /// - Parameter store: a file's name, `memory`, or nothing: a file that goes afterwards.
    private static func withBenchStore(
        _ store: String?, _ body: (String?) throws -> BenchReport
    ) throws -> BenchReport {
        let files = FileManager.default
        switch store {
        case "memory": return try body(nil)
        case let file?:
            guard !files.fileExists(atPath: file) else {
                throw UsageError("--store: \(file) exists; the store is made anew")
            }
            return try body(file)
        case nil:
            let folder = files.temporaryDirectory
                .appendingPathComponent("rouse-bench-\(UUID().uuidString.prefix(8))")
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? files.removeItem(at: folder) }
            return try body(folder.appendingPathComponent("store.db").path)
        }
    }
}
