import Bench
import Foundation
import Testing

/// `rouse bench store` as a person runs it. No figure of time is judged.
@Suite struct StoreBenchTests {
    struct Outcome {
        let status: Int32
        let output: String
        let complaint: String

        var report: BenchReport {
            get throws {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                return try decoder.decode(BenchReport.self, from: Data(output.utf8))
            }
        }
    }

    static func bench(
        _ arguments: [String], command: String = "store", variables: [String: String] = [:]
    ) throws -> Outcome {
        let files = FileManager.default
        let folder = files.temporaryDirectory
            .appendingPathComponent("bench-test-\(UUID().uuidString.prefix(8))")
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
        process.arguments = ["bench", command] + arguments
        process.currentDirectoryURL = folder
        process.environment = ProcessInfo.processInfo.environment
            .merging(["TMPDIR": folder.path]) { _, own in own }
            .merging(variables) { _, own in own }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: complaint)
        try process.run()
        process.waitUntilExit()
        // A store that it made for itself is gone.
        let left = try files.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasPrefix("rouse-bench-") }
        #expect(left.isEmpty)
        return Outcome(
            status: process.terminationStatus,
            output: try String(contentsOf: output, encoding: .utf8),
            complaint: try String(contentsOf: complaint, encoding: .utf8))
    }

    @Test("every kind, and in it every request that is said to be measured there")
    func everyKind() throws {
        let run = try Self.bench(["--runs", "1", "--seconds", "60", "--json"])
        #expect(run.status == 0, "\(run.complaint)")
        let report = try run.report
        #expect(report.scale == .small && report.store == "file" && report.failures.isEmpty)
        let rows = Dictionary(grouping: report.rows, by: \.kind)
        for kind in BenchKind.allCases {
            let own = try #require(rows[kind.rawValue], "nothing of \(kind.rawValue)")
            #expect(run.complaint.contains("\n\(kind.rawValue)"))
            for row in own {
                #expect(row.transactions > 0 && row.rowsRead > 0 && !row.isCut, "\(row)")
                #expect(row.held.worst > 0 && row.held.p50 <= row.held.worst, "\(row)")
            }
        }
        for request in BenchRequest.allCases {
            guard case .kinds(let kinds) = request.place else { continue }
            for kind in kinds {
                let driven = rows[kind.rawValue, default: []].flatMap(\.requests)
                #expect(
                    driven.contains(request.rawValue),
                    "\(kind.rawValue) is said to measure \(request.rawValue)")
            }
        }
    }

    @Test("the counts are those of what was asked")
    func counts() throws {
        let kinds = "publish,publish-100,group-publish,page"
        let run = try Self.bench(["--runs", "2", "--only", kinds, "--json", "--scale", "3000"])
        #expect(run.status == 0, "\(run.complaint)")
        let rows = try run.report.rows
        func row(_ kind: BenchKind, _ part: String = "") throws -> BenchRow {
            try #require(rows.first { $0.kind == kind.rawValue && $0.part == part })
        }
        let alone = try row(.publish)
        #expect(alone.runs == 2 && alone.group == 1)
        // Message, conversation, key, and for each of two an entry and the user.
        #expect(alone.rowsWritten >= 7 && alone.rowsWritten < 16)
        // Each write is a statement, BEGIN and COMMIT are two, and a frame holds a page.
        #expect(try #require(alone.statements) > alone.rowsWritten + 2)
        #expect(try #require(alone.journalBytes) >= 4_096 + 24)
        let hundred = try row(.publishHundred)
        #expect(hundred.group == 100 && hundred.rowsWritten < 16)
        #expect(try #require(hundred.journalBytes) < #require(alone.journalBytes))
        #expect(try #require(hundred.statements) < #require(alone.statements))
        // Of the whole transaction, not of one of its requests.
        #expect(try #require(hundred.statementsMost) > #require(alone.statementsMost))
        // 300 members: an entry and a head for each.
        let fanOut = try row(.groupPublish, "fan-out")
        let each = Double(fanOut.transactions) / Double(fanOut.runs)
        #expect(fanOut.rowsWritten * each >= 600)
        #expect(fanOut.requests == ["continueFanOut"])
        let page = try row(.page)
        #expect(page.rowsWritten == 0 && page.statements == nil)
    }

    @Test("in memory, and fetched from there, as a table", arguments: ["memory", "distant"])
    func memory(engine: String) throws {
        let run = try Self.bench(
            [
                "--store", engine, "--only", "alive,tag,group-publish", "--runs", "1",
                "--participants", "301",
            ])
        #expect(run.status == 0, "\(run.complaint)")
        let kinds = run.output.split(separator: "\n").prefix { !$0.isEmpty }
            .compactMap { $0.split(separator: " ").first.map(String.init) }
        #expect(kinds.starts(with: ["kind", "tag", "alive", "group-publish"]))
        let holds = run.output.split(separator: "\n").drop { !$0.hasPrefix("Longest holds") }
        #expect(holds.dropFirst().prefix(2).allSatisfy { $0.contains(": at most ") })
        #expect(run.complaint.contains("fill: "))
        // An entry and a head for each, and the members' rows.
        let fanOut = holds.first { $0.contains("group-publish: fan-out: at most") }
        let rows = fanOut?.split(separator: " ").compactMap { Int($0) }.last ?? 0
        #expect(rows >= 602, "\(fanOut ?? "")")
    }

    @Test("a kind that there is not, a file that there is")
    func refused() throws {
        let unknown = try Self.bench(["--only", "publish,telegraph"])
        #expect(unknown.status == 64 && unknown.complaint.contains("telegraph"))
        let existing = try Self.bench(["--store", "/dev/null"])
        #expect(existing.status == 64 && existing.complaint.contains("/dev/null exists"))
        let few = try Self.bench(["--participants", "7"])
        #expect(few.status == 64 && few.complaint.contains("300"))
        let size = try Self.bench(["--scale", "7"])
        #expect(size.status == 64 && size.complaint.contains("2000"))
    }
}
