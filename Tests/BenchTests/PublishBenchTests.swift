import Foundation
import Scenario
import Testing

/// `rouse bench publish` as a person runs it. No figure of time is judged.
@Suite struct PublishBenchTests {
    static let smallest = [
        "--devices", "5", "--in-flight", "4", "--rate", "20", "--group", "3", "--runs", "1",
        "--seconds", "1", "--behind", "7", "--json",
    ]

    static func report(_ run: StoreBenchTests.Outcome) throws -> PublishBenchReport {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(PublishBenchReport.self, from: Data(run.output.utf8))
    }

    static let kinds = ["login", "closed", "open", "fan-out", "storm", "idle"]

    static func keepsFeeds(_ target: String) -> Bool {
        target == "rouse" || target.hasSuffix("on postgres")
    }

    /// Every row says what was done, in an order that holds whatever the machine does.
    static func check(_ rows: [PublishRow], of target: String) throws {
        let own = rows.filter { $0.target == target }
        #expect(own.map(\.kind) == kinds + (keepsFeeds(target) ? ["behind"] : []))
        for row in own {
            guard row.kind != "idle" else {
                // A second of each, in which nothing may have cost anything that is seen.
                #expect(row.count == 5 && row.group == 5 && row.processorMicroseconds >= 0)
                continue
            }
            let answer = try #require(row.answer)
            #expect(0 < answer.p50 && answer.p50 <= answer.p99 && answer.p99 <= answer.worst)
            #expect(row.perSecond > 0 && row.residentBytes > 1_000_000 && !row.isCut, "\(row)")
            let sum = row.threads.values.reduce(0, +)
            let cost = row.processorMicroseconds
            #expect(row.runs > 1 || abs(sum - cost) <= 0.01 * cost)
            guard row.kind != "behind" else {
                // Above what coming back costs by itself: of so few entries that may be nothing.
                #expect(cost >= 0 && row.toolMicroseconds >= 0)
                // Each of the five was sent all seven.
                #expect(row.count == 35 && row.entries == 7 && row.delivery == nil)
                continue
            }
            #expect(cost > 0 && row.toolMicroseconds > 0 && !row.threads.isEmpty)
            guard row.kind != "login", row.kind != "storm" else {
                #expect(row.count == 5 && row.delivery == nil)
                continue
            }
            let delivery = try #require(row.delivery, "no device got anything")
            #expect(0 < delivery.p50 && delivery.p50 <= delivery.p99)
        }
        // More than the first ones: each that ends is followed by another.
        #expect(own.dropFirst().first.map { $0.count > 4 && $0.inFlight == 4 } == true)
        // Whole messages, each to all three.
        let fanOut = try #require(own.first { $0.kind == "fan-out" })
        #expect(fanOut.group == 3 && fanOut.count >= 3 && fanOut.count % 3 == 0)
        #expect(try #require(fanOut.last).p50 >= #require(fanOut.delivery).p50)
        // A schedule of one second.
        #expect(own.dropFirst(2).first.map { $0.count == 20 && $0.rate == 20 } == true)
    }

    @Test("each kind, as a table and as JSON, and nothing is left")
    func everyKind() throws {
        let run = try StoreBenchTests.bench(Self.smallest, command: "publish")
        #expect(run.status == 0, "\(run.complaint)")
        let report = try Self.report(run)
        #expect(report.devices == 5 && report.ratios.isEmpty && report.floorMissing == nil)
        #expect(report.rows.count == Self.kinds.count + 1 && report.peersMissing.isEmpty)
        try Self.check(report.rows, of: "rouse")
        for row in report.rows where ["closed", "open"].contains(row.kind) {
            #expect(Set(["store", "http"]).isSubset(of: row.threads.keys), "\(row.threads)")
            #expect(row.threads.keys.contains { $0.hasPrefix("sync-") }, "\(row.threads)")
            // Message, conversation, entry, key, unread and user; ACKs share their commits.
            #expect(try #require(row.rowsWritten) >= 5)
            #expect(try #require(row.rowsRead) >= 5 && #require(row.commits) > 0)
            #expect(try #require(row.statements) >= 5 && #require(row.journalBytes) > 4_096)
        }
        for name in [
            "login 32", "closed 4", "open 20/s", "fan-out 3", "storm 256", "idle 5", "behind 7",
        ] {
            #expect(run.complaint.contains("\n\(name) "), "no row \(name)")
        }
    }

    static let floor = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("floor/floor.c").path

    @Test("the floor beside it, and every figure as a ratio to the floor's")
    func besideTheFloor() throws {
        let run = try StoreBenchTests.bench(
            Self.smallest + ["--floor", Self.floor], command: "publish")
        #expect(run.status == 0, "\(run.complaint)")
        let report = try Self.report(run)
        #expect(report.floorMissing == nil && report.rows.count == 2 * Self.kinds.count + 1)
        for target in ["rouse", "floor"] { try Self.check(report.rows, of: target) }
        #expect(report.ratios.map(\.kind) == Self.kinds)
        for ratio in report.ratios {
            let rows = report.rows.filter { $0.kind == ratio.kind }
            let (own, floor) = (try #require(rows.first), try #require(rows.last))
            guard ratio.kind != "idle" else { continue }
            #expect(own.target == "rouse" && floor.target == "floor")
            #expect(own.threads.keys.contains("store"))
            #expect(floor.threads.keys.contains("log") || ratio.deliveryP50 == nil)
            let processor = own.processorMicroseconds / floor.processorMicroseconds
            #expect(abs(try #require(ratio.processor) / processor - 1) < 0.01)
            #expect((ratio.perSecond ?? 0) > 0 && (ratio.answerP50 ?? 0) > 0)
            #expect(["login", "storm"].contains(ratio.kind) || (ratio.deliveryP99 ?? 0) > 0)
        }
        #expect(run.complaint.components(separatedBy: "x floor ").count == Self.kinds.count + 1)
    }

    @Test("without a compiler the floor is left out, and that is said")
    func withoutCompiler() throws {
        let run = try StoreBenchTests.bench(
            Self.smallest + ["--floor", Self.floor], command: "publish",
            variables: ["CC": "no-such-compiler"])
        #expect(run.status == 0, "\(run.complaint)")
        let report = try Self.report(run)
        #expect(report.floorMissing?.contains("no-such-compiler") == true)
        #expect(report.rows.count == Self.kinds.count + 1 && report.ratios.isEmpty)
        #expect(run.complaint.contains("no floor: "))
    }

    @Test("brokers beside it, or that they are not there")
    func besidePeers() throws {
        let run = try StoreBenchTests.bench(Self.smallest + ["--peers"], command: "publish")
        #expect(run.status == 0, "\(run.complaint)")
        let report = try Self.report(run)
        for (name, program) in [("mosquitto", "mosquitto"), ("redis", "redis-server")] {
            if report.peersMissing.contains("\(program) is not installed") {
                #expect(run.complaint.contains("left out: \(program)"))
                #expect(!report.rows.contains { $0.target == name })
            } else {
                try Self.check(report.rows, of: name)
            }
        }
    }

    @Test("nodes on PostgreSQL beside it, whose share is told; or that it is not there")
    func besideNodes() throws {
        let run = try StoreBenchTests.bench(
            Self.smallest + ["--nodes", "1,2"], command: "publish")
        #expect(run.status == 0, "\(run.complaint)")
        let report = try Self.report(run)
        guard report.peersMissing.isEmpty else {
            #expect(report.peersMissing == ["PostgreSQL is not installed"])
            try Test.cancel("PostgreSQL is not installed")
        }
        for target in ["rouse", "1 on postgres", "2 on postgres"] {
            try Self.check(report.rows, of: target)
            for row in report.rows where row.target == target && row.kind == "closed" {
                // It does nothing of what is committed to SQLite.
                let share = row.threads["postgres"] ?? 0
                #expect(target == "rouse" ? share == 0 : share > 0, "\(row.threads)")
                #expect(try #require(row.rowsWritten) >= 5 && #require(row.commits) > 0)
                // A file answers at once. Else at least one fetch, and COMMIT.
                let trips = row.roundTripsPerCommit
                #expect(target == "rouse" ? trips == nil : (2..<20) ~= (trips ?? 0), "\(row)")
                let statements = row.statementsPerCommit
                #expect(target == "rouse" ? statements == nil : statements ?? 0 > 5, "\(row)")
            }
        }
        // Rows of one kind stand together.
        #expect(report.rows.prefix(3).map(\.kind) == ["login", "login", "login"])
    }

    @Test("numbers that cannot be, and a floor that is not there")
    func refused() throws {
        for arguments in [
            ["--rate", "fast"], ["--rate", "0"], ["--in-flight", "449"], ["--floor", "none.c"],
            ["--behind", "0"], ["--nodes", "0"], ["--nodes", "17"], ["--server", "none"],
        ] {
            let run = try StoreBenchTests.bench(arguments, command: "publish")
            #expect(run.status == 64 && run.complaint.contains(arguments[0]))
        }
    }
}
