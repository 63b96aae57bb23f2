import Foundation
import Testing

/// The real binary, its own server and clients, real chat as traffic.
@Suite(.serialized) struct ReplayTests {
    struct Report: Decodable {
        let messages: Int
        let acknowledged: Int
        let deliveries: Int
        let lost: Int
        let duplicated: Int
        let out_of_order: Int
        let silent_wakes: Int
        let demotions: Int
        let alerts: Int
        let recoveries: Int
        let kills: [Kill]

        struct Kill: Decodable { let unanswered_mutations: Int }
    }

    func replay(_ log: String, _ words: [String]) throws -> (Program.Outcome, Report?) {
        let outcome = try Program.run(
            ["replay", try ChatLog(log).path, "--json"] + words, seconds: 600)
        let line = outcome.output.split(separator: "\n").last ?? ""
        return (outcome, try? JSONDecoder().decode(Report.self, from: Data(line.utf8)))
    }

    @Test("awake: every line reaches every device once and in order, over kills of the server")
    func awake() throws {
        let (outcome, report) = try replay(
            "2007-06-04.txt",
            ["--awake", "--lines", "160", "--factor", "240", "--kill-server", "2"])
        #expect(outcome.status == 0, "\(outcome.errors.suffix(2000))")
        let found = try #require(report)
        #expect(found.messages > 50 && found.acknowledged == found.messages)
        #expect(found.lost == 0 && found.duplicated == 0 && found.out_of_order == 0)
        #expect(found.kills.count == 2 && found.deliveries > found.messages)
    }

    @Test("one entry kept from one device is noticed, and the run fails")
    func suppressed() throws {
        let (outcome, report) = try replay(
            "2007-06-04.txt",
            ["--awake", "--lines", "40", "--factor", "2000", "--suppress", "100"])
        #expect(outcome.status == 1)
        #expect(try #require(report).lost == 1)
    }
}
