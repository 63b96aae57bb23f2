import EventLoop
import Feed
import Foundation
import Model
import StoreService
import Testing

@testable import BackendAPI

/// What a balancer's agent check gets.
@Suite struct AgentTests {
    private static let ready = Readiness(leaving: [], failure: nil)

    private func line(_ readiness: Readiness, _ connections: Int = 0, of limit: Int = 4) -> String {
        AgentAnswer.line(readiness, NodeLoad(connections: connections, limit: limit))
    }

    @Test(
        "the fuller a node the smaller its share, from all of it to 1%",
        arguments: [
            (0, 4, 100), (1, 4, 75), (3, 4, 25), (4, 4, 1), (5, 4, 1), (1, 1_000_000, 99),
            (999_999, 1_000_000, 1), (1_000_000, 1_000_000, 1), (50, 100, 50), (98, 100, 2),
            // Never more than all of it, whatever the limits are.
            (-1, 4, 100), (0, 0, 1), (Int.max, 1, 1),
        ])
    func share(_ connections: Int, _ limit: Int, _ percent: Int) {
        #expect(line(Self.ready, connections, of: limit) == "ready up \(percent)%\n")
    }

    @Test("a node that leaves drains, one whose store cannot be written or read is down")
    func states() {
        let full = StoreError.full("test")
        #expect(line(Readiness(leaving: ["draining"], failure: nil)) == "drain\n")
        #expect(line(Readiness(leaving: [], failure: full)) == "down\n")
        #expect(line(Readiness(leaving: [], failure: .unavailable("test"))) == "down\n")
        let unread = Readiness(leaving: [], failure: nil, readingFailure: .unavailable("test"))
        #expect(line(unread) == "down\n")
        #expect(unread.reasons == ["the store cannot be read"])
        let neither = Readiness(
            leaving: ["draining"], failure: full, readingFailure: .unavailable("test"))
        #expect(
            neither.reasons == [
                "draining", "the store has no space left", "the store cannot be read",
            ])
        // It goes anyway, and its devices with it.
        #expect(line(Readiness(leaving: ["draining"], failure: full)) == "drain\n")
    }

    @Test("the agent says no whenever /readyz does, and yes again with it")
    func readiness() throws {
        let server = try TestServer(
            duties: [StoreDuty(name: "alive", request: .keepAlive, interval: 20)],
            load: { NodeLoad(connections: 30, limit: 100) })
        defer { server.stop() }
        let port = try #require(server.api.agentPort)
        func agent() throws -> String { try HTTPClient.raw("", to: .port(port)) }
        func status() throws -> Int { try server.send("GET", "/readyz").status }
        #expect(try agent() == "ready up 70%\n" && status() == 200)
        server.reasons.set(["draining"])
        #expect(try agent() == "drain\n" && status() == 503)
        server.reasons.set([])
        #expect(try agent() == "ready up 70%\n" && status() == 200)
        server.faults.failWrites(.full("test"))
        try wait { try status() == 503 }
        #expect(try agent() == "down\n")
        server.faults.failWrites(nil)
        try wait { try status() == 200 }
        #expect(try agent() == "ready up 70%\n")
    }

    @Test("who connects is answered whatever it sends, and leaves nothing behind")
    func manyAtOnce() throws {
        let server = try TestServer(load: { NodeLoad(connections: 1, limit: 2) })
        defer { server.stop() }
        let port = try #require(server.api.agentPort)
        let before = try Self.descriptors()
        for _ in 0..<200 {
            #expect(try HTTPClient.raw("", to: .port(port)) == "ready up 50%\n")
        }
        // The line is there also for one who speaks first, which nobody reads.
        let chatty = try HTTPClient.raw("nodes/one please\n", to: .port(port))
        #expect(chatty == "ready up 50%\n")
        // Other tests of this process have descriptors, too.
        #expect(try Self.descriptors() < before + 100)
    }

    private static func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test("where nobody asked for an agent there is none, and a taken port is told")
    func port() throws {
        let server = try TestServer()
        defer { server.stop() }
        #expect(server.api.agentPort == nil)
        let loop = try Loop()
        defer { loop.close() }
        let agent = BackendAPI.Agent(port: server.api.port) { NodeLoad(connections: 0, limit: 1) }
        let failure = #expect(throws: AgentFailure.self) {
            try AgentPort.listen(on: loop, agent) { "" }
        }
        #expect(failure?.description.contains("EADDRINUSE") == true, "\(failure as Any)")
    }
}
