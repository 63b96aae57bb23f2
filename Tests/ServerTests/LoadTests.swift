import Foundation
import Testing

/// The load tool measures; that it does is all a test can ask.
@Suite struct LoadTests {
    struct Report: Decodable {
        struct Memory: Decodable {
            let resident: Int
            let anonymous: Int
        }
        let connections: Int
        let before: Memory
        let after: Memory
        let bytesPerConnection: Int
    }

    struct FirstSync: Decodable {
        struct Cost: Decodable {
            let bytesReceived: Int
            let bytesSent: Int
        }
        struct Row: Decodable {
            let history: Int
            let bySnapshot: Bool
            let loggedIn: Cost
            let usable: Cost
            let whole: Cost
            let messagesOnDevice: Int
        }
        let rows: [Row]
    }

    struct Push: Decodable {
        struct Run: Decodable {
            let accepted: Int
            let refused: Int?
            let sentBytes: Int?
        }
        struct Wakes: Decodable {
            struct Times: Decodable {
                let count: Int
                let median: Double
            }
            let alone: Times
            let beside: Times
            let campaignAnswers: Int
        }
        let gateway: Run
        let certificate: Run
        let h2load: Run?
        let wakes: Wakes
    }

    @Test("push: every push of each sender is accepted, and wakes get through beside a campaign")
    func push() throws {
        let outcome = try Program.run([
            "load", "push", "--pushes", "2000", "--wakes", "20", "--json",
        ])
        try #require(outcome.status == 0, "\(outcome.errors)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(Push.self, from: Data(outcome.output.utf8))
        #expect(report.gateway.accepted == 2_000 && report.certificate.accepted == 2_000)
        if let foreign = report.h2load {
            // It may open 100 streams before it has read the SETTINGS that allow it one, and does
            // not send again what was refused.
            let refused = try #require(foreign.refused)
            #expect(foreign.accepted + refused == 2_000 && refused < 100)
        }
        // A provider token is sent with each push, some 200 bytes.
        let (token, certificate) = (report.gateway.sentBytes, report.certificate.sentBytes)
        #expect(try #require(token) > #require(certificate) + 2_000 * 100)
        #expect(report.wakes.alone.count == 20 && report.wakes.alone.median > 0)
        #expect(report.wakes.beside.count > 0 && report.wakes.campaignAnswers > 0)
        #expect(outcome.errors.contains("wakes beside a campaign"))
    }

    @Test("push: a campaign that ends before the wakes ends the measurement, too")
    func shortCampaign() throws {
        let outcome = try Program.run([
            "load", "push", "--pushes", "300", "--wakes", "400", "--json",
        ])
        try #require(outcome.status == 0, "\(outcome.errors)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(Push.self, from: Data(outcome.output.utf8))
        #expect(report.wakes.alone.count == 400)
        #expect((1..<400).contains(report.wakes.beside.count))
    }

    /// Bytes only, and far from what they are; FirstSyncTests counts the frames exactly.
    @Test("first-sync: on the wire a device is usable at a price that the history does not raise")
    func firstSync() throws {
        var usable: [Int] = []
        for history in [10, 600] {
            let outcome = try Program.run([
                "load", "first-sync", "--messages", "\(history)", "--conversations", "4",
                "--runs", "1", "--json",
            ])
            #expect(outcome.status == 0, "\(outcome.errors)")
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let report = try decoder.decode(FirstSync.self, from: Data(outcome.output.utf8))
            try #require(report.rows.count == 2)
            let (snapshot, feed) = (report.rows[0], report.rows[1])
            #expect(snapshot.bySnapshot && !feed.bySnapshot && feed.history == history)
            #expect(snapshot.messagesOnDevice == min(history, 80))
            #expect(feed.messagesOnDevice == history)
            #expect(snapshot.loggedIn.bytesReceived > 500)
            #expect(snapshot.usable.bytesReceived > snapshot.loggedIn.bytesReceived)
            #expect(snapshot.whole.bytesReceived >= snapshot.usable.bytesReceived)
            // Login and one page of 32 KiB.
            #expect(snapshot.usable.bytesReceived < 48 << 10)
            usable.append(snapshot.usable.bytesReceived)
            if history == 600 {
                #expect(feed.whole.bytesReceived > 3 * snapshot.whole.bytesReceived)
            }
        }
        #expect(usable[1] > usable[0])
    }

    @Test("idle: so many devices log in over TLS, and the server's memory is told")
    func idle() throws {
        let outcome = try Program.run([
            "load", "idle", "--connections", "300", "--idle", "1", "--json",
        ])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let report = try decoder.decode(Report.self, from: Data(outcome.output.utf8))
        #expect(report.connections == 300)
        // An SSL object alone has some 10 KiB.
        #expect(report.bytesPerConnection > 5_000)
        #expect(report.after.anonymous > report.before.anonymous)
        #expect(report.after.resident > report.after.anonymous)
    }
}
