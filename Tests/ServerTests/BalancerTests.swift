import Foundation
import Glibc
import PostgresPeer
import Testing

/// Nodes behind a real HAProxy, which passes TLS through.
@Suite(
    .enabled(if: Balancer.isInstalled, "haproxy is not installed"),
    .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
struct BalancerTests {
    @Test("a device logs in through the balancer, and counts with its own address")
    func throughTheBalancer() throws {
        let server = try RealServer(settings: ["listen.proxy_networks=\(Balancer.source)/32"])
        let balancer = try Balancer([server])
        defer { balancer.stop() }
        let (output, status) = try server.runPeer(
            "client.py", ["--host", balancer.address], port: Balancer.port)
        #expect(status == 0 && output.contains("came back: ok"), "\(output)\n\(server.log)")
        server.stop()
        let ended = server.log.split(separator: "\n").filter {
            $0.contains("event=connection.closed") && $0.contains("user=bob")
        }
        #expect(!ended.isEmpty)
        #expect(ended.allSatisfy { $0.contains("peer=127.0.0.1 ") }, "\(ended)")
    }

    @Test("a header of somebody who is no balancer is refused, and the log says so")
    func spoofed() throws {
        let server = try RealServer()
        let balancer = try Balancer([server])
        defer { balancer.stop() }
        let (_, status) = try server.runPeer(
            "client.py", ["--host", balancer.address], port: Balancer.port)
        #expect(status != 0)
        server.stop()
        #expect(server.log.contains("event=proxy.refused"))
        #expect(server.log.contains("not of listen.proxy_networks"))
    }

    @Test(
        "two nodes behind the balancer are one server",
        .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
    func twoNodes() throws {
        let settings = [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=balanced",
            "listen.proxy_networks=\(Balancer.source)",
        ]
        let first = try RealServer(settings: settings)
        // One certificate, as behind one name.
        let second = try RealServer(
            settings: settings + [
                "tls.certificate_file=\(first.path("server.pem"))",
                "tls.key_file=\(first.path("server.key"))",
            ], besides: first)
        let balancer = try Balancer([first, second])
        defer { balancer.stop() }
        for _ in 0..<3 {
            let (output, status) = try first.runPeer(
                "client.py", ["--host", balancer.address], port: Balancer.port)
            #expect(status == 0 && output.contains("came back: ok"), "\(output)")
        }
        first.stop()
        second.stop()
        for server in [first, second] {
            #expect(server.log.contains("user=anna") || server.log.contains("user=bob"))
        }
    }

    @Test(
        "devices get through while the balancer does not know yet that a node was killed",
        .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
    func killed() throws {
        let settings = [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=balanced_killed",
            "listen.proxy_networks=\(Balancer.source)",
        ]
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        let balancer = try Balancer([first, second])
        defer { balancer.stop() }
        // The node with the fewest connections is the next one's: that is the dead one now.
        kill(second.identifier, SIGKILL)
        let (output, status) = try first.runPeer(
            "client.py", ["--host", balancer.address], port: Balancer.port)
        #expect(status == 0 && output.contains("came back: ok"), "\(output)")
    }
}

/// HAProxy as `Deploy/haproxy.cfg` has it, on an address of this machine that nobody else uses.
final class Balancer {
    static let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/sbin/haproxy")
    /// Where it connects from.
    static let source = "127.0.0.9"
    static let port = 17_443

    let address: String
    private let arguments: [String]
    private let environment: [String: String]
    private var process = Process()

    /// - Parameter servers: One or two.
    convenience init(_ servers: [RealServer]) throws {
        try self.init(
            [servers[0], servers[servers.count - 1]].map {
                (UInt16($0.devicePort), UInt16($0.apiPort))
            })
    }

    /// - Parameters:
    ///   - nodes: Ports of their devices and APIs: two, or more.
    ///   - folder: Where its settings go if they are more than two.
    init(
        _ nodes: [(devices: UInt16, api: UInt16)], folder: URL? = nil, connections: Int = 100
    ) throws {
        let number = UInt32.random(in: 0..<(1 << 22)) + (1 << 16)
        address = "127.\(number >> 16 & 0x7f).\(number >> 8 & 0xff).\(number & 0xfe | 1)"
        var file = ChatLog.root.appendingPathComponent("Deploy/haproxy.cfg")
        if let folder, nodes.count > 2 {
            var text = try String(contentsOf: file, encoding: .utf8)
            for number in 3...nodes.count {
                text += "    server node\(number) \"${ROUSE_NODE_\(number)}\" "
                text += "port \"${ROUSE_API_\(number)}\"\n"
            }
            file = folder.appendingPathComponent("haproxy.cfg")
            try Data(text.utf8).write(to: file)
        }
        arguments = ["-db", "-f", file.path]
        var environment = ProcessInfo.processInfo.environment
        environment["ROUSE_DEVICES"] = "\(address):\(Self.port)"
        environment["ROUSE_SOURCE"] = Self.source
        environment["ROUSE_CONNECTIONS"] = "\(connections)"
        for (number, node) in nodes.enumerated() {
            environment["ROUSE_NODE_\(number + 1)"] = "127.0.0.1:\(node.devices)"
            environment["ROUSE_API_\(number + 1)"] = "\(node.api)"
        }
        self.environment = environment
        try start()
    }

    /// Returns when it listens; also again, after `stop`.
    func start() throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/sbin/haproxy")
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        try waitUntilItListens()
    }

    private func waitUntilItListens() throws {
        for _ in 0..<200 {
            let probe = Process()
            probe.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            probe.arguments = [
                "-c",
                "import socket; socket.create_connection(('\(address)', \(Self.port)), 1).close()",
            ]
            probe.standardError = FileHandle.nullDevice
            try probe.run()
            probe.waitUntilExit()
            if probe.terminationStatus == 0 { return }
            guard process.isRunning else { throw ProgramFailure("haproxy ended") }
            Thread.sleep(forTimeInterval: 0.05)
        }
        throw ProgramFailure("haproxy does not listen")
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
