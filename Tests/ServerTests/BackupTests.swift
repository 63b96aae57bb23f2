import Client
import Foundation
import Glibc
import Model
import SQLiteStore
import SyncClient
import Testing
import Wire

@testable import Scenario

/// `rouse backup` and `rouse restore` with the real binary, and what devices make of it.
@Suite(.serialized) struct BackupTests {
    struct Report: Decodable {
        let bytes: UInt64
        let apps: UInt64
        let users: UInt64
        let devices: UInt64
        let conversations: UInt64
        let messages: UInt64
        let kept: String?
    }

    private static func report(_ outcome: Program.Outcome) throws -> Report {
        try #require(outcome.status == 0, "\(outcome.status): \(outcome.errors)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Report.self, from: Data(outcome.output.utf8))
    }

    @Test(
        """
        a backup made while writing goes on, lost messages and mutations, a restore: every device \
        repairs, keeps what the server has, and sends what it lost
        """)
    func story() throws {
        let stage = try BackupStage()
        let file = stage.path("monday.backup")
        for number in 0..<5 { try stage.publish("early-\(number)") }
        let phone = try stage.addPhone("alice", snapshots: true)
        let tablet = try stage.addPhone("alice", snapshots: false)
        let other = try stage.addPhone("bob", snapshots: true)
        let early = (0..<5).map { "early-\($0)" }
        try stage.wait("first sync") { try stage.phones.allSatisfy { try $0.texts() == early } }
        let first = try stage.send("alice-early", from: phone)
        try stage.wait("a mutation before the backup") { phone.heard.results[first] == 0 }
        try stage.wait("it came to bob") { try other.texts().contains("alice-early") }

        // Writing goes on while the copy is made.
        let before = 6
        let copying = Process()
        copying.executableURL = URL(fileURLWithPath: Program.path)
        copying.arguments = ["backup", "--store", stage.server.storePath, file, "--json"]
        let output = Pipe()
        copying.standardOutput = output
        try copying.run()
        var during = 0
        while copying.isRunning || during < 3 {
            try stage.publish("during-\(during)")
            during += 1
        }
        copying.waitUntilExit()
        let made = try Self.report(
            Program.Outcome(
                status: copying.terminationStatus,
                output: String(
                    decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self),
                errors: ""))
        #expect(made.apps == 1 && made.users == 3 && made.devices == 3 && made.conversations == 1)
        #expect((before...before + during).contains(Int(made.messages)))
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)

        // What the restore loses: acknowledged, and on the devices.
        for number in 0..<3 { try stage.publish("late-\(number)") }
        let lost = try (0..<3).map { try stage.send("alice-late-\($0)", from: phone) }
        try stage.wait("mutations after the backup are acknowledged") {
            lost.allSatisfy { phone.heard.results[$0] == 0 }
        }
        try stage.wait("they are everywhere") {
            try stage.phones.allSatisfy { try $0.texts().contains("alice-late-2") }
        }
        try other.client.read(BackupStage.talk, through: 3)
        stage.server.kill()
        let pending = try stage.send("alice-pending", from: phone)
        let held = try stage.send("bob-pending", from: other)

        let restored = try Self.report(
            Program.run(["restore", "--store", stage.server.storePath, file, "--json"]))
        #expect(restored.messages == made.messages)
        let kept = try #require(restored.kept)
        #expect(FileManager.default.fileExists(atPath: kept))
        try stage.server.start()
        for phone in stage.phones { phone.client.networkChanged() }

        try stage.wait("every device was told that history changed") {
            stage.phones.allSatisfy { $0.heard.resets.contains(.epochChanged) }
        }
        // Alice's own goes behind what is sent again, and so has another number then.
        try stage.wait("pending mutations are answered") {
            other.heard.results[held] != nil && !phone.client.hasUnanswered
                && phone.heard.results.keys.contains { $0 > pending }
        }
        #expect(other.heard.results[held] == 0)
        #expect(phone.heard.results.allSatisfy { $0.value == 0 })
        try stage.wait("the author's lost messages are sent again") {
            try stage.phones.allSatisfy { phone in
                let texts = try phone.texts()
                return (0..<3).allSatisfy { texts.contains("alice-late-\($0)") }
                    && texts.contains("alice-pending") && texts.contains("bob-pending")
                    && phone.client.isInSync && !phone.client.hasUnanswered
            }
        }
        // What is still on its way, a receipt say, makes a comparison say nothing: then it is asked
        // for again.
        for phone in stage.phones { phone.heard.digests = [] }
        var attempts = 0
        while attempts < 20,
            !stage.phones.allSatisfy({ $0.heard.digests.last?.isComparable == true })
        {
            attempts += 1
            let missing = stage.phones.filter { $0.heard.digests.last?.isComparable != true }
            for phone in missing { phone.heard.digests = [] }
            for phone in missing { phone.client.checkDigest() }
            try stage.wait("digests") { missing.allSatisfy { !$0.heard.digests.isEmpty } }
        }
        for phone in stage.phones {
            let texts = try phone.texts()
            #expect(texts.count == Set(texts).count, "twice: \(texts)")
            #expect(early.allSatisfy { texts.contains($0) }, "lost: \(texts)")
            #expect(texts.contains("alice-early"))
            #expect(!texts.contains("late-0"), "what the backend lost is shown: \(texts)")
            let digest = try #require(phone.heard.digests.last)
            #expect(digest.isComparable && digest.isEqual, "\(phone.user) \(digest)")
            #expect(digest.objects >= 10)
        }
        withExtendedLifetime(tablet) {}
    }

    /// A store with `messages` messages that no server has open, and a backup of it with fewer.
    private static func storeAndBackup() throws -> (BackupStage, store: String, backup: String) {
        let stage = try BackupStage()
        for number in 0..<4 { try stage.publish("one-\(number)") }
        let file = stage.path("good.backup")
        let made = try report(
            Program.run(["backup", "--store", stage.server.storePath, file, "--json"]))
        #expect(made.messages == 4)
        for number in 0..<3 { try stage.publish("two-\(number)") }
        stage.server.kill()
        return (stage, stage.server.storePath, file)
    }

    /// Every file of the store, by name.
    private static func files(of store: String) throws -> [String: Data] {
        var found: [String: Data] = [:]
        for suffix in ["", "-wal"] {
            found[suffix] = FileManager.default.contents(atPath: store + suffix)
        }
        return found
    }

    @Test("what is no sound backup is refused in words, and the store is as it was")
    func refusals() throws {
        let (stage, store, good) = try Self.storeAndBackup()
        let before = try Self.files(of: store)
        let whole = try #require(FileManager.default.contents(atPath: good))
        func variant(_ name: String, _ bytes: Data) throws -> String {
            try bytes.write(to: URL(fileURLWithPath: stage.path(name)))
            return stage.path(name)
        }
        var damaged = whole
        for index in 4096 * 3..<4096 * 3 + 2000 { damaged[index] = 0xA5 }
        let foreign = stage.path("foreign.db")
        let table = Table("note", key: [Column("id", .integer)], values: [])
        try SQLiteStore(path: foreign, tables: [table]).close()
        let other = stage.path("other.backup")
        try SQLiteBackup.copy(store: foreign, to: other, replaces: false) { _ in }
        let cases = [
            (try variant("cut", whole.prefix(whole.count - 5000)), "cut off"),
            (try variant("empty", Data()), "no SQLite database"),
            (try variant("text", Data(repeating: 65, count: 8192)), "no SQLite database"),
            (try variant("damaged", damaged), "damaged"),
            (other, "a migration is missing"),
            (store, "no backup made by"),
            (stage.path("nowhere"), "No such file"),
        ]
        for (file, words) in cases {
            for command in [["restore", "--store", store, file], ["backup", "--verify", file]] {
                let outcome = try Program.run(command)
                #expect(outcome.status == 65, "\(command): \(outcome.errors)")
                #expect(outcome.errors.contains(words), "\(command): \(outcome.errors)")
            }
        }
        #expect(try Self.files(of: store) == before)

        // A backup is not served as if it were the store; nothing is overwritten unasked.
        let served = try Program.run(["app", "list", "--store", good])
        #expect(served.status != 0 && served.errors.contains("rouse restore"), "\(served.errors)")
        let again = try Program.run(["backup", "--store", store, good])
        #expect(again.status == 73 && again.errors.contains("--force"), "\(again.errors)")
        #expect(FileManager.default.contents(atPath: good) == whole)
        let forced = try Program.run(["backup", "--store", store, good, "--force", "--json"])
        #expect(try Self.report(forced).messages == 7)
        let missing = try Program.run(["backup", "--store", stage.path("none.db"), good])
        #expect(missing.status == 69, "\(missing.errors)")

        try stage.server.start()
        let running = try Program.run(["restore", "--store", store, good])
        #expect(running.status == 69 && running.errors.contains("locked"), "\(running.errors)")
    }

    @Test(
        "kill -9 at every step of a backup and of a restore leaves the old or the new, whole",
        .enabled(if: Strace.works, "strace cannot trace here"))
    func kills() throws {
        let (stage, store, good) = try Self.storeAndBackup()
        let target = stage.path("again.backup")
        let old = try Data(contentsOf: URL(fileURLWithPath: good))
        // What a restore begins from, with a journal that was not moved.
        let journal = FileManager.default.contents(atPath: "\(store)-wal")
        let database = try Data(contentsOf: URL(fileURLWithPath: store))
        #expect(journal?.isEmpty == false, "the story needs a journal")

        var outcomes: Set<String> = []
        let backups = try Self.killAtEachStep(
            of: ["backup", "--store", store, target, "--force"]
        ) {
            try old.write(to: URL(fileURLWithPath: target))
        } judge: { step in
            let found = try Self.report(Program.run(["backup", "--verify", target, "--json"]))
            #expect([4, 7].contains(found.messages), "after step \(step)")
            outcomes.insert("backup \(found.messages)")
        }
        let restores = try Self.killAtEachStep(of: ["restore", "--store", store, good]) {
            for suffix in ["-wal", "-shm", ".restored"] {
                try? FileManager.default.removeItem(atPath: store + suffix)
            }
            try database.write(to: URL(fileURLWithPath: store))
            if let journal { try journal.write(to: URL(fileURLWithPath: "\(store)-wal")) }
        } judge: { step in
            // Opening it ends what was left to do.
            let opened = try Program.run(["app", "list", "--store", store])
            #expect(opened.status == 0, "after step \(step): \(opened.errors)")
            try? FileManager.default.removeItem(atPath: stage.path("look"))
            let found = try Self.report(
                Program.run(["backup", "--store", store, stage.path("look"), "--json"]))
            #expect([4, 7].contains(found.messages), "after step \(step)")
            outcomes.insert("restore \(found.messages)")
        }
        #expect(outcomes == ["backup 4", "backup 7", "restore 4", "restore 7"])
        #expect(backups >= 3 && restores >= 6, "\(backups), \(restores)")
    }

    /// Runs the command again and again, killed at its first, second, … call that changes names
    /// or makes something durable, until it ends by itself.
    /// - Returns: how many steps it has.
    private static func killAtEachStep(
        of command: [String], prepare: () throws -> Void, judge: (Int) throws -> Void
    ) throws -> Int {
        let calls =
            "rename,renameat,renameat2,link,linkat,unlink,unlinkat,fsync,fdatasync,ftruncate"
        for step in 1..<200 {
            try prepare()
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/strace")
            process.arguments =
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
                    "inject=\(calls):signal=SIGKILL:when=\(step)", Program.path,
                ] + command
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            try judge(step)
            if process.terminationReason == .exit, process.terminationStatus == 0 {
                return step - 1
            }
        }
        throw ProgramFailure("more steps than there can be")
    }
}
