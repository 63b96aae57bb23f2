import Foundation
import SyncServer
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

    @Test(
        "tokens made by another library: the good one lets in, each bad one has its code",
        .enabled(if: hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func tokens() throws {
        let service = try Service()
        defer { service.stop() }
        let (output, status) = try service.runPeer("tokens.py", [])
        #expect(status == 0, "\(output)")
        #expect(output.contains("every bad token was refused: ok"), "\(output)")
    }

    @Test(
        "half frames, garbage and silence: each is closed with its code, memory stays",
        .enabled(if: hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func abuse() throws {
        var limits = SessionLimits()
        limits.helloDeadline = 2_000
        limits.loginDeadline = 2_000
        let service = try Service(limits: limits)
        defer { service.stop() }
        let (output, status) = try service.runPeer("abuse.py", [])
        #expect(status == 0, "\(output)")
        #expect(output.contains("nobody was kept: ok"), "\(output)")
    }

    @Test(
        "typing reaches the other participant who looks, and nobody else",
        .enabled(if: hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func signals() throws {
        let service = try Service()
        defer { service.stop() }
        let (output, status) = try service.runPeer("signals.py", [])
        #expect(status == 0 && output.contains("nobody else did: ok"), "\(output)")
    }

    @Test(
        "a commit that fails lets no result leave and is shown to nobody",
        .enabled(if: hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func failedCommit() throws {
        let service = try Service()
        defer { service.stop() }
        let (output, status) = try service.runPeer("failed_commit.py", [])
        #expect(status == 0, "\(output)")
        #expect(output.contains("sent again it is there once: ok"), "\(output)")
    }
}
