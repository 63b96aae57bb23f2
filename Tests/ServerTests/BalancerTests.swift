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

/// What HAProxy makes of the nodes' agent.
@Suite(.enabled(if: Balancer.isInstalled, "haproxy is not installed"))
struct BalancerAgentTests {
    @Test("a fuller node weighs less, and one that ends gets nobody from its signal on")
    func weightAndEnd() throws {
        let agent = "node.agent_port=0"
        let first = try RealServer(settings: [agent, "limits.connections=4", "timers.drain=8s"])
        let second = try RealServer(settings: [agent])
        let balancer = try Balancer([first, second])
        defer { balancer.stop() }
        try balancer.wait("both are empty") { $0["one"]?.weight == 100 && $0["two"]?.weight == 100 }
        let visitors = try Visitors(2, of: first)
        try balancer.wait("one is half full") { $0["one"]?.weight == 50 }
        #expect(kill(first.identifier, SIGTERM) == 0)
        try balancer.wait("one drains") { $0["one"]?.drains == true }
        #expect(kill(first.identifier, 0) == 0, "it was the process that said so")
        let two = try balancer.states()["two"]
        #expect(two == Balancer.State(isUp: true, drains: false, weight: 100))
        visitors.leave()
    }

    @Test(
        "a node that an operator drains gets nobody, and is back once it is resumed",
        .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
    func drainAndResume() throws {
        let settings = [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=balanced_agent",
        ]
        let own = ["node.agent_port=0", "node.name="]
        let first = try RealServer(settings: settings + [own[0], own[1] + "one"])
        let second = try RealServer(settings: settings + [own[0], own[1] + "two"], besides: first)
        let balancer = try Balancer([first, second])
        defer { balancer.stop() }
        try balancer.wait("both are there") { $0.values.allSatisfy { $0.isUp && !$0.drains } }
        func order(_ word: String) throws {
            let words = ["node", word, "one"] + settings.flatMap { ["--set", $0] }
            let ordered = try Program.run(words)
            try #require(ordered.status == 0, "\(ordered.errors)")
        }
        try order("drain")
        try balancer.wait("one drains") { $0["one"]?.drains == true }
        #expect(try balancer.states()["two"]?.drains == false)
        try order("resume")
        let back = Balancer.State(isUp: true, drains: false, weight: 100)
        try balancer.wait("one is back") { $0["one"] == back }
    }

    /// Strangers that came as far as TLS, and stay for the 10 s that they have to say who they are.
    private final class Visitors {
        private let process = Process()
        /// They leave when this end is gone, as it is when the test's process is.
        private let input = Pipe()

        init(_ count: Int, of server: RealServer) throws {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            process.arguments = [
                "-c",
                """
                import socket, ssl, sys
                context = ssl.create_default_context(cafile=sys.argv[1])
                context.set_alpn_protocols(["rouse/1"])
                held = []
                for _ in range(int(sys.argv[3])):
                    plain = socket.create_connection(("127.0.0.1", int(sys.argv[2])), 10)
                    held.append(context.wrap_socket(plain, server_hostname="localhost"))
                sys.stdin.read()
                """,
                server.path("ca.pem"), "\(server.devicePort)", "\(count)",
            ]
            process.standardInput = input
            try process.run()
        }

        deinit { leave() }

        func leave() {
            // Another child may have inherited the pipe's end: closing it ends nothing for certain.
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            process.waitUntilExit()
        }
    }
}

/// HAProxy as `Deploy/haproxy.cfg` has it, on an address of this machine that nobody else uses.
final class Balancer {
    static let isInstalled = FileManager.default.isExecutableFile(atPath: HAProxy.path)
    /// Where it connects from.
    static let source = "127.0.0.9"
    static let port = 17_443

    let address: String
    private let proxy: HAProxy
    /// Where it tells how it stands with the nodes; `nil`: nowhere.
    private let socket: String?

    /// - Parameter servers: One or two. It asks their agents if they have any.
    convenience init(_ servers: [RealServer]) throws {
        let both = [servers[0], servers[servers.count - 1]]
        let agents = both.filter { $0.agentPort != 0 }.map(\.agentPort)
        try self.init(
            both.map { (UInt16($0.devicePort), UInt16($0.apiPort)) }, folder: servers[0].folder,
            agents: agents.count == both.count ? agents : [])
    }

    /// - Parameters:
    ///   - nodes: Ports of their devices and APIs: two, or more.
    ///   - folder: Where its settings go if they are more than two, and its socket.
    ///   - agents: Ports of the nodes' agents; empty: it asks none.
    init(
        _ nodes: [(devices: UInt16, api: UInt16)], folder: URL? = nil, connections: Int = 100,
        agents: [Int] = []
    ) throws {
        let number = UInt32.random(in: 0..<(1 << 22)) + (1 << 16)
        address = "127.\(number >> 16 & 0x7f).\(number >> 8 & 0xff).\(number & 0xfe | 1)"
        var file = ChatLog.root.appendingPathComponent("Deploy/haproxy.cfg")
        if let folder, nodes.count > 2 {
            var text = try String(contentsOf: file, encoding: .utf8)
            for number in 3...nodes.count {
                text += "    server node\(number) \"${BALANCER_NODE_\(number)}\" "
                text += "port \"${BALANCER_API_\(number)}\"\n"
            }
            file = folder.appendingPathComponent("haproxy.cfg")
            try Data(text.utf8).write(to: file)
        }
        var files = [file.path]
        socket = folder?.appendingPathComponent("balancer").path
        if let folder, let socket {
            let file = folder.appendingPathComponent("socket.cfg")
            try Data("global\n    stats socket \(socket)\n".utf8).write(to: file)
            files.append(file.path)
        }
        var environment = [
            "BALANCER_DEVICES": "\(address):\(Self.port)", "BALANCER_SOURCE": Self.source,
            "BALANCER_CONNECTIONS": "\(connections)",
        ]
        for (number, node) in nodes.enumerated() {
            environment["BALANCER_NODE_\(number + 1)"] = "127.0.0.1:\(node.devices)"
            environment["BALANCER_API_\(number + 1)"] = "\(node.api)"
        }
        for (number, agent) in agents.enumerated() {
            environment["BALANCER_AGENT_\(number + 1)"] = "\(agent)"
        }
        proxy = HAProxy(files, environment: environment, address: address, port: Self.port)
        try start()
    }

    /// Returns when it listens; also again, after `stop`.
    func start() throws { try proxy.start() }

    func stop() { proxy.stop() }

    /// What it thinks of a node.
    struct State: Equatable {
        /// It is there, and its checks find nothing wrong.
        var isUp: Bool
        /// Its agent said that it is to get nobody.
        var drains: Bool
        /// What its agent left of the 100 that it has.
        var weight: Int
    }

    /// Of each node, by its name (HAProxy's management guide, `show servers state`).
    func states() throws -> [String: State] {
        let words = try ask("show servers state nodes").split(separator: "\n").map {
            $0.split(separator: " ")
        }
        var states: [String: State] = [:]
        for row in words where row.count > 7 && row[1] == "nodes" {
            guard let operation = Int(row[5]), let administration = Int(row[6]),
                let weight = Int(row[7])
            else { throw ProgramFailure("haproxy: \(row)") }
            states[String(row[3])] = State(
                isUp: operation == 1 || operation == 2, drains: administration & 8 != 0,
                weight: weight)
        }
        return states
    }

    /// Returns when it is so.
    func wait(_ what: String, until isSo: ([String: State]) -> Bool) throws {
        for _ in 0..<400 {
            if isSo(try states()) { return }
            Thread.sleep(forTimeInterval: 0.05)
        }
        throw ProgramFailure("not so within 20 s: \(what): \(try states())")
    }

    private func ask(_ question: String) throws -> String {
        let asking = Process()
        asking.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        asking.arguments = [
            "-c",
            """
            import socket, sys
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(sys.argv[1])
                link.sendall(sys.argv[2].encode() + b"\\n")
                print(link.makefile().read())
            """,
            socket ?? "", question,
        ]
        let pipe = Pipe()
        asking.standardOutput = pipe
        try asking.run()
        let answer = pipe.fileHandleForReading.readDataToEndOfFile()
        asking.waitUntilExit()
        return String(decoding: answer, as: UTF8.self)
    }
}
