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
        // The peers that do not read cannot tell: the log says why each connection ended.
        var expected: [String: Int] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 3, let count = Int(words[2]) {
                expected[String(words[1]), default: 0] += count
            }
        }
        #expect(expected == ["5003": 200, "5007": 400, "5009": 200, "tls-deadline": 200])
        var logged: [String: Int] = [:]
        for line in server.log.split(separator: "\n")
        where line.contains("event=connection.closed") {
            let reason = line.split(separator: " ").first { $0.hasPrefix("reason=") }
            logged[String(reason?.dropFirst("reason=".count) ?? ""), default: 0] += 1
        }
        for (reason, count) in expected { #expect(logged[reason] == count, "\(logged)") }
    }
}
