import Client
import Foundation
import Model
import PostgresPeer
import SyncClient
import Testing
import Wire

@testable import Scenario

/// A database that is recovered to an earlier moment, and what devices make of it that have seen
/// what it has lost.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct RecoveryTests {
    /// A primary, and what it is recovered to.
    private final class Databases {
        let primary: PostgresMachine
        let recovered: PostgresMachine
        private let folders: [String]

        init() throws {
            let name =
                FileManager.default.temporaryDirectory
                .appendingPathComponent(
                    "rouse-recovery-\(ProcessInfo.processInfo.processIdentifier)"
                )
                .path
            folders = ["\(name)-1", "\(name)-2"]
            for folder in folders { try? FileManager.default.removeItem(atPath: folder) }
            primary = PostgresMachine(folder: folders[0], port: try NodeFaultStage.freePort())
            recovered = PostgresMachine(folder: folders[1], port: try NodeFaultStage.freePort())
            try primary.create()
            try primary.start()
        }

        deinit {
            for machine in [primary, recovered] { try? machine.kill() }
            for folder in folders { try? FileManager.default.removeItem(atPath: folder) }
        }

        /// What a server keeps its store in.
        static func settings(_ machine: PostgresMachine) -> [(name: String, value: String)] {
            [
                (
                    "store.postgres",
                    "host=127.0.0.1 port=\(machine.port) user=rouse dbname=postgres"
                ), ("store.schema", "recovered"),
            ]
        }

        static func variables(_ machine: PostgresMachine) -> [String: String] {
            Dictionary(
                uniqueKeysWithValues: settings(machine).map { name, value in
                    let variable = name.uppercased().replacingOccurrences(of: ".", with: "_")
                    return ("ROUSE_\(variable)", value)
                })
        }

        static func words(_ machine: PostgresMachine) -> [String] {
            settings(machine).flatMap { ["--set", "\($0.name)=\($0.value)"] }
        }
    }

    private struct Drawn: Decodable {
        let users: Int
        let tokens: Int
    }

    @Test(
        "after a recovery to a point in time and a new epoch, devices that were ahead miss nothing")
    func pointInTime() throws {
        let databases = try Databases()
        let (primary, recovered) = (databases.primary, databases.recovered)
        let stage = try BackupStage(settings: Databases.variables(primary))
        let early = (0..<5).map { "early-\($0)" }
        for text in early { try stage.publish(text) }
        let phone = try stage.addPhone("alice", snapshots: true)
        try stage.addPhone("alice", snapshots: false)
        let other = try stage.addPhone("bob", snapshots: true)
        try stage.wait("first sync") { try stage.phones.allSatisfy { try $0.texts() == early } }
        try recovered.follow(primary)
        _ = try primary.query("SELECT pg_create_restore_point('monday')")

        // What the recovery loses: acknowledged, and on the devices.
        for number in 0..<3 { try stage.publish("late-\(number)") }
        let lost = try (0..<3).map { try stage.send("alice-late-\($0)", from: phone) }
        try stage.wait("they are everywhere") {
            try lost.allSatisfy { phone.heard.results[$0] == 0 }
                && stage.phones.allSatisfy { try $0.texts().count == 11 }
        }
        let early69 = try Program.run(["epoch", "new"] + Databases.words(primary))
        #expect(early69.status == 69 && early69.errors.contains("stop the nodes first"))
        stage.server.kill()
        try primary.stop()
        try recovered.recover(primary, to: "monday")
        try recovered.start()
        try stage.wait("the recovery ends") {
            try recovered.query("SELECT pg_is_in_recovery()") == "f"
        }

        // The lease of the node that served then has to end.
        var drawn = Program.Outcome(status: 1, output: "", errors: "")
        try stage.wait("nobody serves the database") {
            drawn = try Program.run(["epoch", "new", "--json"] + Databases.words(recovered))
            return drawn.status == 0
        }
        let told = try JSONDecoder().decode(Drawn.self, from: Data(drawn.output.utf8))
        #expect(told.users == 3 && told.tokens > 0)
        try stage.start(settings: Databases.variables(recovered))
        // Under the numbers that the devices hold of what was lost.
        for number in 0..<3 { try stage.publish("after-\(number)") }
        for phone in stage.phones { phone.client.networkChanged() }
        try stage.wait("every device was told that history changed") {
            stage.phones.allSatisfy { $0.heard.resets.contains(.epochChanged) }
        }
        let expected = Set(early + (0..<3).flatMap { ["after-\($0)", "alice-late-\($0)"] })
        try stage.wait("every device shows what there is, and what its author sent again") {
            try stage.phones.allSatisfy {
                try Set($0.texts()) == expected && $0.client.isInSync && !$0.client.hasUnanswered
            }
        }
        for phone in stage.phones {
            let texts = try phone.texts()
            #expect(texts.count == expected.count, "twice: \(texts)")
        }
        withExtendedLifetime((databases, other)) {}
    }
}
