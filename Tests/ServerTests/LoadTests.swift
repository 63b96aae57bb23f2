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
