import Foundation
import Testing

/// A client in another language, written from Protocol/ alone, against the real device port.
@Suite struct PeerTests {
    static let hasPeer =
        ["/usr/lib/python3/dist-packages/google/protobuf", "/usr/lib/python3/dist-packages/jwt"]
        .allSatisfy { FileManager.default.fileExists(atPath: $0) }

    @Test(
        "a Python client logs in, syncs, sends, gets a sync-request, reads, comes back",
        .enabled(if: hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func python() throws {
        let service = try Service()
        defer { service.stop() }
        let (output, status) = try service.runPeer("client.py", [])
        #expect(status == 0, "\(output)")
        #expect(output.contains("came back: ok"), "\(output)")
    }

    @Test("a peer that is told CLOSE and keeps its socket open does not stop its loop")
    func keptOpen() throws {
        let service = try Service()
        defer { service.stop() }
        let (output, status) = try service.runPeer("keep_open.py", [])
        #expect(status == 0 && output.contains("served: ok"), "\(output)")
    }
}
