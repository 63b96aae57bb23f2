import EventLoop
import Foundation
import Glibc
import PostgresPeer

@testable import Scenario

/// Three nodes, the database under them and the balancer in front of them, and what can be done
/// to each.
final class NodeFaultStage: ReplayServers, @unchecked Sendable {
    // @unchecked: what changes is touched by one thread at a time, the replay's before its first
    // fault and after its last, and between them that of the fault under way.
    private static let nodeCount = 3
    private static let schema = "faults"
    /// Milliseconds for anything to come about.
    private static let patience: UInt64 = 40_000

    private let folder: URL
    private let nodes: [ServerProcess]
    private let primary: PostgresMachine
    private let standby: PostgresMachine
    /// The one that takes writes.
    private var database: PostgresMachine
    private var balancer: Balancer?
    private(set) var host = ""
    private(set) var apis: [HTTPCall.Place] = []

    /// - Parameter folder: Holds `server.pem` and `server.key` by the time of `start`.
    init(folder: URL) throws {
        self.folder = folder
        nodes = (1...Self.nodeCount).map { number in
            let own = folder.appendingPathComponent("node-\(number)")
            let node = ServerProcess(executable: URL(fileURLWithPath: Program.path), folder: own)
            node.drainSeconds = 1
            return node
        }
        // PostgreSQL's user has to get into it.
        let place = FileManager.default.temporaryDirectory.path
        let name = "\(place)/rouse-faults-\(ProcessInfo.processInfo.processIdentifier)"
        primary = PostgresMachine(folder: "\(name)-1", port: try Self.freePort())
        standby = PostgresMachine(folder: "\(name)-2", port: try Self.freePort())
        database = primary
        databaseFolders = ["\(name)-1", "\(name)-2"]
    }

    private let databaseFolders: [String]

    deinit {
        kill()
        for folder in databaseFolders { try? FileManager.default.removeItem(atPath: folder) }
    }

    // MARK: What the replay sees

    var port: UInt16 { UInt16(Balancer.port) }
    var first: ServerProcess { nodes[0] }
    var hasPublisher: Bool { true }

    func start() throws {
        for folder in databaseFolders { try? FileManager.default.removeItem(atPath: folder) }
        try primary.create()
        try primary.start()
        for node in nodes {
            try FileManager.default.createDirectory(
                at: node.folder, withIntermediateDirectories: true)
            for file in ["server.pem", "server.key"] {
                try FileManager.default.copyItem(
                    at: folder.appendingPathComponent(file),
                    to: node.folder.appendingPathComponent(file))
            }
            try start(node)
        }
        apis = nodes.map { .tcp(host: "127.0.0.1", port: $0.apiPort) }
        let balancer = try Balancer(
            nodes.map { ($0.devicePort, $0.apiPort) }, folder: folder, connections: 2_000)
        self.balancer = balancer
        host = balancer.address
    }

    private var address: String {
        "host=127.0.0.1,127.0.0.1 port=\(primary.port),\(standby.port) user=rouse "
            + "dbname=postgres target_session_attrs=read-write"
    }

    private var settings: [String: String] {
        [
            "ROUSE_STORE_POSTGRES": address, "ROUSE_STORE_SCHEMA": Self.schema,
            "ROUSE_LISTEN_PROXY_NETWORKS": Balancer.source,
        ]
    }

    private func start(_ node: ServerProcess) throws {
        let name = node.folder.lastPathComponent
        let own = ["ROUSE_NODE_NAME": name, "ROUSE_ADMIN_SOCKET": node.adminSocket]
        try node.start(settings: settings.merging(own) { $1 })
    }

    func stop() {
        for node in nodes { node.stop() }
    }

    func kill() {
        for node in nodes { node.kill() }
        balancer?.stop()
        balancer = nil
        try? primary.kill()
        try? standby.kill()
    }

    /// The store as an operator takes it out.
    func facts() throws -> ServerFacts {
        let file = folder.appendingPathComponent("exported.db").path
        var words = ["export", file]
        for setting in ["store.postgres=\(address)", "store.schema=\(Self.schema)"] {
            words += ["--set", setting]
        }
        var outcome = try Program.run(words)
        let limit = SystemClock.monotonicMilliseconds() + Self.patience
        // The nodes' leases have to end.
        while outcome.status != 0, SystemClock.monotonicMilliseconds() < limit {
            Thread.sleep(forTimeInterval: 0.5)
            outcome = try Program.run(words)
        }
        guard outcome.status == 0 else { throw ScenarioError(outcome.errors) }
        return try ServerFacts(path: file)
    }

    func lastLogLines() -> String {
        nodes.map { "\($0.folder.lastPathComponent):\n\($0.lastLogLines(8))" }
            .joined(separator: "\n") + "\n\(database.log)"
    }

    // MARK: The faults

    /// For whoever looks into one: the names of the faults to have, with commas.
    static let chosen = ProcessInfo.processInfo.environment["NODE_FAULTS"].map {
        $0.split(separator: ",").map(String.init)
    }

    var faults: [ReplayFault] {
        allFaults.filter { Self.chosen?.contains($0.name) ?? true }
    }

    private var allFaults: [ReplayFault] {
        [
            ReplayFault(name: "kill") { [self] replay in
                for number in 0..<5 {
                    let node = nodes[number % nodes.count]
                    node.kill()
                    try start(node)
                    try waitUntilReady()
                    try replay.awaitLines(3)
                }
            },
            ReplayFault(name: "drain") { [self] replay in
                for node in nodes {
                    node.drain()
                    try start(node)
                    try waitUntilReady()
                    try replay.awaitLines(3)
                }
            },
            ReplayFault(name: "balancer") { [self] _ in
                balancer?.stop()
                try balancer?.start()
            },
            ReplayFault(name: "database-restart") { [self] _ in
                try database.stop()
                try database.start()
                try waitUntilReady()
            },
            ReplayFault(name: "database-kill") { [self] _ in
                try database.kill()
                try database.start()
                try waitUntilReady()
            },
            ReplayFault(name: "freeze") { [self] _ in try freeze(nodes[1]) },
            ReplayFault(name: "hints") { [self] in try cutHints($0) },
            ReplayFault(name: "switch") { [self] _ in try switchOver() },
        ]
    }

    /// A node that stands still past its lease, and goes on as if nothing had been.
    private func freeze(_ node: ServerProcess) throws {
        let name = node.folder.lastPathComponent
        guard let process = node.identifier else { throw ScenarioError("\(name) does not run") }
        Glibc.kill(process, SIGSTOP)
        defer { Glibc.kill(process, SIGCONT) }
        try wait("the others take \(name) for gone") {
            try database.query(
                "SELECT count(*) FROM \(Self.schema).node WHERE name = '\(name)'") == "0"
        }
        Glibc.kill(process, SIGCONT)
        try wait("\(name) is there again") {
            try database.query(
                "SELECT count(*) FROM \(Self.schema).node WHERE name = '\(name)'") == "1"
        }
        try waitUntilReady()
    }

    /// The connections that carry hints are ended, again as soon as they are back.
    private func cutHints(_ replay: FaultThread) throws {
        for _ in 0..<12 {
            try wait("hints come and go") {
                try database.query(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rouse hints'"
                ) == "\(nodes.count)"
            }
            _ = try database.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    + "WHERE application_name = 'rouse hints'")
            try replay.awaitLines(1)
        }
    }

    /// A standby that has every commit that was answered takes the killed primary's place.
    private func switchOver() throws {
        try standby.follow(primary)
        try standby.start()
        _ = try primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        _ = try primary.query("SELECT pg_reload_conf()")
        try wait("the standby follows") {
            try primary.query("SELECT sync_state FROM pg_stat_replication") == "sync"
        }
        // Each commit before this one is there when this one is.
        _ = try primary.query("CREATE TABLE public.marked (number integer)")
        try primary.kill()
        try standby.promote()
        database = standby
        try waitUntilReady()
    }

    private func waitUntilReady() throws {
        try wait("all nodes are ready") { try nodes.allSatisfy { try isReady($0) } }
    }

    private func isReady(_ node: ServerProcess) throws -> Bool {
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        curl.arguments = [
            "curl", "-fsS", "--max-time", "2", "http://127.0.0.1:\(node.apiPort)/readyz",
        ]
        curl.standardOutput = FileHandle.nullDevice
        curl.standardError = FileHandle.nullDevice
        try curl.run()
        curl.waitUntilExit()
        return curl.terminationStatus == 0
    }

    private func wait(_ what: String, until isSo: () throws -> Bool) throws {
        let limit = SystemClock.monotonicMilliseconds() + Self.patience
        while try !isSo() {
            guard SystemClock.monotonicMilliseconds() < limit else {
                throw ScenarioError("not in time: \(what)")
            }
            Thread.sleep(forTimeInterval: 0.05)
        }
    }

    /// A port of loopback that nobody uses now.
    static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw ScenarioError("no free port: \(errno)") }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
