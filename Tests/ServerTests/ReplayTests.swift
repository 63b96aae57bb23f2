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
        let outOfOrder: Int
        let silentWakes: Int
        let demotions: Int
        let alerts: Int
        let recoveries: Int
        let devices: Int
        let digestsEqual: Int
        let digestsUnequal: Int
        let serverDigestsUnequal: Int
        let digestObjects: Int
        let messagesOnDevices: Int
        let kills: [Kill]
        let reads: Int
        let phoneKills: Int
        let screensJudged: Int
        let screensWrong: Int
        let staleNotifications: Int
        let iconsWrong: Int
        let untold: Int

        struct Kill: Decodable { let unansweredMutations: Int }
    }

    func replay(_ log: String, _ words: [String]) throws -> (Program.Outcome, Report?) {
        let chat = try ChatLog(log)
        let outcome = try withExtendedLifetime(chat) {
            try Program.run(["replay", chat.path, "--json"] + words, seconds: 600)
        }
        let line = outcome.output.split(separator: "\n").last ?? ""
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return (outcome, try? decoder.decode(Report.self, from: Data(line.utf8)))
    }

    @Test("awake: every line reaches every device once and in order, over kills of the server")
    func awake() throws {
        let (outcome, report) = try replay(
            "2007-06-04.txt",
            ["--awake", "--lines", "160", "--factor", "240", "--kill-server", "2"])
        #expect(outcome.status == 0, "\(outcome.errors.suffix(2000))")
        let found = try #require(report)
        #expect(found.messages > 50 && found.acknowledged == found.messages)
        #expect(found.lost == 0 && found.duplicated == 0 && found.outOfOrder == 0)
        #expect(found.digestsEqual == found.devices && found.digestsUnequal == 0)
        #expect(found.digestObjects > found.messages && found.serverDigestsUnequal == 0)
        #expect(found.messagesOnDevices == found.deliveries)
        #expect(found.kills.count == 2 && found.deliveries > found.messages)
    }

    @Test("one entry kept from one device is noticed, and the run fails")
    func suppressed() throws {
        let (outcome, report) = try replay(
            "2007-06-04.txt",
            ["--awake", "--lines", "40", "--factor", "2000", "--suppress", "100"])
        #expect(outcome.status == 1)
        let found = try #require(report)
        #expect(found.lost == 1)
        #expect(found.digestsEqual == found.devices - 1 && found.digestsUnequal == 1)
    }

    @Test("an entry stored wrongly on one device is found by its digest alone, and the run fails")
    func corrupted() throws {
        let (outcome, report) = try replay(
            "2007-06-04.txt",
            ["--awake", "--lines", "40", "--factor", "2000", "--corrupt", "100"])
        #expect(outcome.status == 1)
        let found = try #require(report)
        #expect(found.lost == 0 && found.duplicated == 0 && found.outOfOrder == 0)
        #expect(found.digestsEqual == found.devices - 1 && found.digestsUnequal == 1)
        #expect(found.serverDigestsUnequal >= 1)
    }

    @Test("with sleepers: no line is lost, and every screen is right, over kills of all kinds")
    func sleepers() throws {
        // So short a stretch need not hold a demotion; what counts here is loss, and that the
        // whole loop runs: the status may be 1 only for what did not happen.
        let (outcome, report) = try replay(
            "2012-12-15.txt",
            [
                "--lines", "250", "--factor", "240", "--kill-server", "1", "--kill-phones", "8",
            ])
        let found = try #require(report, "\(outcome.errors.suffix(2000))")
        #expect(found.acknowledged == found.messages && found.messages > 100)
        #expect(found.lost == 0 && found.duplicated == 0 && found.outOfOrder == 0)
        #expect(found.silentWakes > 0, "\(outcome.errors.suffix(2000))")
        #expect(found.kills.count == 1 && found.phoneKills > 0 && found.reads > 0)
        #expect(found.digestsEqual == found.devices && found.digestsUnequal == 0)
        #expect(found.screensJudged == found.devices)
        #expect(found.screensWrong == 0 && found.staleNotifications == 0, "\(outcome.errors)")
        #expect(found.iconsWrong == 0, "\(outcome.errors)")
        // A killed server sends an alert again whose answer it has not read: that one may come
        // twice, and so may one that crosses the app's own on a busy machine.
        #expect(found.untold == 0, "\(outcome.errors)")
    }
}
