import Foundation
import Testing

/// Nothing is answered before it is on disk, and what cannot be put there is refused: the real
/// binary, seen from outside.
@Suite(.serialized) struct DurabilityTests {
    @Test(
        "between a request and its answer the journal is synced: HTTP and device, 20 of each",
        .enabled(if: Strace.works, "strace cannot trace here"),
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func syncBeforeAnswer() throws {
        let server = try RealServer(tracer: { Strace.words(trace: $0.path + "/trace") })
        let (output, status) = try server.runPeer("traced.py")
        try #require(status == 0, "\(output)")
        let ports = Self.ports(output)
        server.stop()
        let text = try String(contentsOfFile: server.path("trace"), encoding: .utf8)
        let calls = SystemCalls(text)
        // What an answer begins with: the status line, or the header of a TLS record with data.
        for (peer, answer) in [("backend", "HTTP/1.1 201"), ("device", #""\27\3\3"#)] {
            let port = try #require(ports[peer], "\(output)")
            let exchanges = calls.exchanges(peerPort: port, requestBytes: 6000)
            #expect(exchanges.count == 20, "\(peer)")
            for exchange in exchanges {
                #expect(exchange.isSynced, "\(peer): \(exchange.lines.joined(separator: "\n"))")
                #expect(
                    exchange.answer.contains(answer), "\(peer): answered with \(exchange.answer)")
            }
        }
    }

    private static func ports(_ output: String) -> [String: Int] {
        var ports: [String: Int] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, let port = Int(words[1]) { ports[String(words[0])] = port }
        }
        return ports
    }

    @Test(
        "full disk: 507, not ready, nothing unacknowledged is shown; with space it goes on by itself",
        .enabled(if: SmallDisk.works, "cannot mount a file system here"),
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func fullDisk() throws {
        let disk = try SmallDisk(megabytes: 8)
        defer { disk.remove() }
        let server = try RealServer(storePath: disk.path + "/rouse.db")
        defer { server.stop() }
        let (output, status) = try server.runPeer("full_disk.py", ["--folder", disk.path])
        #expect(
            status == 0 && output.contains("once and in order: ok"),
            "\(output)\n\(server.log.suffix(2000))")
    }
}

/// A file system in memory; mounting one takes root.
struct SmallDisk {
    let path: String

    init(megabytes: Int) throws {
        path = NSTemporaryDirectory() + "rouse-disk-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let mounted = try Self.run([
            "mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path,
        ])
        guard mounted == 0 else {
            try? FileManager.default.removeItem(atPath: path)
            throw ProgramFailure("mount: \(mounted)")
        }
    }

    func remove() {
        _ = try? Self.run(["umount", path])
        try? FileManager.default.removeItem(atPath: path)
    }

    static let works: Bool = {
        guard let disk = try? SmallDisk(megabytes: 1) else { return false }
        disk.remove()
        return true
    }()

    private static func run(_ words: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
