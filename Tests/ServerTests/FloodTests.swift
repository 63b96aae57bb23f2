import Foundation
import Testing

/// What peers that hold what they can cost the real server.
@Suite struct FloodTests {
    @Test(
        "200 stopped readers, half frames, silent and half connects: bounded memory, each its code",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func flood() throws {
        let server = try RealServer()
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
        let log = server.log
        for (reason, count) in expected {
            let found = log.split(separator: "\n").count {
                $0.contains("event=connection.closed") && $0.contains(" reason=\(reason) ")
            }
            #expect(found == count, "\(reason)")
        }
    }
}
