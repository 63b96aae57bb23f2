import Foundation
import Testing

/// What peers that hold what they can cost the real server.
@Suite struct FloodTests {
    @Test(
        "200 stopped readers, half frames, silent and half connects: bounded memory, each its code",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func flood() throws {
        // Nobody is given up for his silence before he has filled his window.
        let server = try RealServer(settings: ["timers.keepalive=3600"])
        defer { server.stop() }
        let (output, status) = try server.runPeer("flood.py")
        #expect(status == 0 && output.contains("others are still served: ok"), "\(output)")
        // The peers that do not read cannot tell: the server counts why connections ended.
        var expected: [String: Int] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 3, let count = Int(words[2]) {
                expected[String(words[1]), default: 0] += count
            }
        }
        #expect(
            expected == ["5003": 200, "5007": 400, "1003,5009": 200, "tls-deadline": 200],
            "\(output)")
        let metrics = String(decoding: try server.metrics(), as: UTF8.self)
        var ended: [String: Int] = [:]
        for line in metrics.split(separator: "\n") {
            let words = line.split(separator: " ")
            if let count = words.last.flatMap({ Int($0) }) { ended[String(words[0])] = count }
        }
        for (reasons, count) in expected {
            let counted = reasons.split(separator: ",").map { reason in
                reason == "tls-deadline"
                    ? ended["rouse_tls_failures_total{stage=\"deadline\"}"] ?? 0
                    : ended["rouse_connections_closed_total{code=\"\(reason)\"}"] ?? 0
            }
            #expect(counted.reduce(0, +) == count, "\(reasons): \(ended)")
        }
        // Of so many strangers the log names some, and says of how many it does not.
        #expect(server.log.contains("event=log.left_out"), "\(server.log.suffix(2000))")
    }
}
