import Foundation
import Testing

/// A balancer that ends TLS itself and passes on what was in it.
@Suite(
    .enabled(if: Balancer.isInstalled, "haproxy is not installed"),
    .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
struct TerminatingBalancerTests {
    @Test("a device logs in through a balancer that ends its TLS, and counts with its own address")
    func terminated() throws {
        let port = try NodeFaultStage.freePort()
        let server = try RealServer(settings: [
            "listen.plain_port=\(port)", "listen.proxy_networks=\(Balancer.source)/32",
        ])
        let balancer = try TerminatingBalancer(of: server, passingTo: port)
        defer { balancer.stop() }
        let (output, status) = try server.runPeer(
            "client.py", ["--host", "127.0.0.1"], port: balancer.port)
        #expect(status == 0 && output.contains("came back: ok"), "\(output)\n\(server.log)")
        server.stop()
        let ended = server.log.split(separator: "\n").filter {
            $0.contains("event=connection.closed") && $0.contains("user=bob")
        }
        #expect(!ended.isEmpty)
        #expect(ended.allSatisfy { $0.contains("peer=127.0.0.1 ") }, "\(ended)")
    }

    @Test("what comes without TLS from somebody who is no balancer is refused in the log")
    func noBalancer() throws {
        let port = try NodeFaultStage.freePort()
        let server = try RealServer(settings: ["listen.plain_port=\(port)"])
        let balancer = try TerminatingBalancer(of: server, passingTo: port)
        defer { balancer.stop() }
        let (_, status) = try server.runPeer(
            "client.py", ["--host", "127.0.0.1"], port: balancer.port)
        #expect(status != 0)
        server.stop()
        #expect(server.log.contains("event=proxy.refused"))
    }
}

/// HAProxy with the certificate of a server.
private final class TerminatingBalancer {
    let port: Int
    private let proxy: HAProxy

    init(of server: RealServer, passingTo plain: Int) throws {
        port = try NodeFaultStage.freePort()
        // HAProxy wants the chain and its key in one file.
        let both = try ["server.pem", "server.key"]
            .map { try String(contentsOfFile: server.path($0), encoding: .utf8) }.joined()
        try Data(both.utf8).write(to: URL(fileURLWithPath: server.path("both.pem")))
        let settings = """
            global
                maxconn 100
            defaults
                mode tcp
                timeout connect 5s
                timeout client 1m
                timeout server 1m
            frontend devices
                bind 127.0.0.1:\(port) ssl crt \(server.path("both.pem")) alpn rouse/1
                default_backend nodes
            backend nodes
                server one 127.0.0.1:\(plain) send-proxy-v2 source \(Balancer.source)

            """
        let file = server.path("terminating.cfg")
        try Data(settings.utf8).write(to: URL(fileURLWithPath: file))
        proxy = HAProxy([file], address: "127.0.0.1", port: port)
        try proxy.start()
    }

    func stop() { proxy.stop() }
}
