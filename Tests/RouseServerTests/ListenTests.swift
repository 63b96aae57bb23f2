import BackendAPI
import EventLoop
import Foundation
import Model
import SyncService
import Telemetry
import Testing

@testable import RouseServer

@Suite struct ListenTests {
    private func plain(_ text: String) throws -> PlainListener? {
        try Server.plainListener(
            try Configuration(text: text, name: "rouse.conf", environment: [:]))
    }

    @Test("without TLS only where it was asked for, and only on private addresses")
    func plainPort() throws {
        #expect(try plain("") == nil)
        #expect(try plain("listen.plain_port = off") == nil)
        #expect(
            try plain("listen.plain_port = 7000") == PlainListener(host: "127.0.0.1", port: 7000))
        #expect(
            try plain("listen.plain_port = 0\nlisten.plain_host = 10.1.2.3")
                == PlainListener(host: "10.1.2.3", port: 0))
        for host in ["0.0.0.0", "::", "8.8.8.8", "example.org"] {
            #expect(throws: ServerError.self) {
                try plain("listen.plain_port = 1\nlisten.plain_host = \(host)")
            }
        }
        #expect(throws: ConfigurationError.self) { try plain("listen.plain_port = on") }
    }

    @Test("an agent only where it was asked for, and only on private addresses")
    func agentPort() throws {
        func agent(_ text: String) throws -> BackendAPI.Agent? {
            let configuration = try Configuration(text: text, name: "rouse.conf", environment: [:])
            let told = Server.problems(configuration).filter { $0.keys.contains("node.agent_host") }
            do {
                let agent = try Server.agent(configuration) {
                    NodeLoad(connections: 0, limit: 1)
                }
                // --check-config says the same as the start.
                #expect(told.isEmpty)
                return agent
            } catch {
                #expect(told.map(\.text) == ["\(error)"])
                throw error
            }
        }
        #expect(try agent("") == nil)
        #expect(try agent("node.agent_port = off\nnode.agent_host = 8.8.8.8") == nil)
        let found = try #require(try agent("node.agent_port = 7490\nnode.agent_host = 10.1.2.3"))
        #expect(found.host == "10.1.2.3" && found.port == 7490)
        #expect(try agent("node.agent_port = 0")?.host == "127.0.0.1")
        for host in ["0.0.0.0", "::", "8.8.8.8", "example.org"] {
            #expect(throws: ServerError.self) {
                try agent("node.agent_port = 1\nnode.agent_host = \(host)")
            }
        }
        #expect(throws: ConfigurationError.self) { try agent("node.agent_port = on") }
    }

    @Test("the agent's share is one of what the server takes")
    func limit() throws {
        let told = try Configuration(
            text: "limits.connections = 100", name: "rouse.conf", environment: [:])
        #expect(Server.connectionsLimit(told, 1_000) == 100)
        #expect(try Server.connectionsMax(told, 1_000) == 100)
        var open = Configuration()
        open.loops = 1
        #expect(Server.connectionsLimit(open, 1_000) == 605)
        #expect(try Server.connectionsMax(open, 1_000) == 605)
        #expect(throws: ServerError.self) { try Server.connectionsMax(told, 300) }
    }

    @Test("whatever devices take, the others have the places that they are told to have")
    func shares() throws {
        for (descriptors, loops) in [
            (320, 1), (320, 15), (400, 1), (1_024, 63), (20_000, 1), (1_000_000, 63),
        ] {
            var configuration = Configuration()
            configuration.loops = loops
            let shares = Server.shares(configuration, descriptors)
            let taken = shares.backends + shares.console + shares.own + shares.devices
            #expect(taken == descriptors && shares.devices >= descriptors / 8)
            // Probes and backends connect at any size.
            #expect(shares.backends >= 40 && shares.console >= 10)
            // What one loop takes, and some seventy that any server has.
            #expect(shares.own >= 70 + 6 * loops)
        }
        #expect(Server.shares(Configuration(), 20_000).backends == 512)
        var many = Configuration()
        many.webhookDeliveries = 256
        let room = Server.shares(Configuration(), 20_000).devices
        #expect(Server.shares(many, 20_000).devices == room - 256 + 32)
    }

    @Test("a supervisor's sockets are all served, or the start is refused")
    func inherited() throws {
        func taken(_ names: String) throws -> [Int32?] {
            let count = names.split(separator: ":").count
            let sockets = try Server.inherited(
                Supervisor(
                    environment: [
                        "LISTEN_PID": "7", "LISTEN_FDS": "\(count)", "LISTEN_FDNAMES": names,
                    ], process: 7))
            return [sockets.devices, sockets.api]
        }
        #expect(try taken("devices:api") == [3, 4])
        #expect(try taken("api") == [nil, 3])
        #expect(try taken("whatever") == [3, nil])
        for wrong in ["devices:devices", "api:devices:api", "whatever:whatever", "devices:other"] {
            #expect(throws: ConfigurationError.self, "\(wrong)") { try taken(wrong) }
        }
    }

    @Test("rates are those of the configuration; 0 is none")
    func rates() throws {
        let rates = Server.deviceRates(
            try Configuration(
                text: """
                    limits.user_mutations = 7
                    limits.user_reads = 3
                    limits.address_connections = 0
                    """,
                name: "rouse.conf", environment: [:]))
        #expect(rates.userMutations.perSecond == 7 && rates.userMutations.burst == 70)
        #expect(rates.userReads.perSecond == 3 && rates.userReads.burst == 30)
        #expect(rates.addressConnections == .none)
        #expect(rates.appRequests == .none)
    }
}

@Suite struct CheckTests {
    /// `nil`: sound, as far as paths go.
    private func complaint(_ text: String) throws -> String? {
        let configuration = try Configuration(text: text, name: "rouse.conf", environment: [:])
        do {
            try Server.checkPaths(configuration)
            return nil
        } catch let error as ServerError {
            return error.description
        }
    }

    @Test("paths that cannot work are found before the start")
    func paths() throws {
        let folder = FileManager.default.temporaryDirectory.path
        #expect(try complaint("store.path = \(folder)/rouse-check.db") == nil)
        #expect(try complaint("store.path = \"\"")?.contains("store.path") == true)
        #expect(try complaint("store.path = /dev/full")?.contains("not a plain file") == true)
        #expect(try complaint("store.path = \(folder)/a\0b")?.contains("store.path") == true)
        #expect(try complaint("store.path = \(folder)")?.contains("not a plain file") == true)
        let long = "\(folder)/" + String(repeating: "s", count: 200)
        #expect(
            try complaint("store.path = \(folder)/a.db\nadmin.socket = \(long)")?
                .contains("admin.socket") == true)
        #expect(
            try complaint("store.path = \(folder)/a.db\nadmin.socket = /nonexistent/a")?
                .contains("admin.socket") == true)
        // A file that is there is somebody's: it would have to go for the socket.
        for taken in [#filePath, folder] {
            #expect(
                try complaint("store.path = \(folder)/a.db\nadmin.socket = \(taken)")?
                    .contains("admin.socket: \(taken) is there, and no socket") == true)
        }
    }

    @Test("a key file that others may read is warned of")
    func keyFile() throws {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-key-\(UUID().uuidString).pem").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        for (mode, count) in [(0o600, 0), (0o400, 0), (0o644, 1), (0o640, 1)] {
            try? FileManager.default.removeItem(atPath: path)
            FileManager.default.createFile(
                atPath: path, contents: Data(), attributes: [.posixPermissions: mode])
            let configuration = try Configuration(
                text: "tls.key_file = \(path)", name: "rouse.conf", environment: [:])
            #expect(Server.warnings(configuration).count == count)
        }
    }

    @Test(
        "ports meet at one address, and at one that is a part of the other",
        arguments: [
            ("listen.port = 1\napi.port = 1", ["api.port"]),
            ("listen.port = 1\napi.port = 2", []),
            ("listen.port = 0\napi.port = 0", []),
            ("listen.port = 1\nlisten.host = 10.0.0.1\napi.port = 1", []),
            ("listen.port = 1\nlisten.host = 0.0.0.0\napi.port = 1", ["api.port"]),
            ("listen.port = 1\nlisten.host = 0.0.0.0\napi.host = ::1\napi.port = 1", []),
            ("listen.port = 1\nlisten.host = ::\napi.port = 1", ["api.port"]),
            ("listen.port = 1\napi.host = ::\napi.port = 1", ["api.port"]),
            ("listen.port = 1\napi.host = localhost\napi.port = 1", ["api.port"]),
            ("listen.port = 1\nlisten.plain_port = 1", ["listen.plain_port"]),
            (
                "listen.port = 1\napi.port = 2\nconsole.port = 2\nnode.agent_port = 1",
                ["console.port", "node.agent_port"]
            ),
        ])
    func meeting(_ text: String, _ keys: [String]) throws {
        let configuration = try Configuration(text: text, name: "rouse.conf", environment: [:])
        #expect(Server.meetingDoors(configuration).map { $0.keys[0] } == keys)
    }
}
