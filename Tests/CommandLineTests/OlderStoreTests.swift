import Foundation
import Testing

/// What the commands make of a store of the first schema.
@Suite struct OlderStoreTests {
    /// A folder with a copy of the kept file of the first schema, as `rouse.db`.
    private func older() throws -> Program {
        let program = try Program()
        let kept = Program.root.appendingPathComponent("Tests/schemas/1/server.db")
        try FileManager.default.copyItem(atPath: kept.path, toPath: program.path("rouse.db"))
        return program
    }

    /// How many schemas the file has had.
    private func schema(_ program: Program, _ name: String = "rouse.db") throws -> String {
        try program.run([
            "/usr/bin/python3", "-c",
            """
            import sqlite3, sys
            store = sqlite3.connect(sys.argv[1])
            print(store.execute("SELECT count(*) FROM schema_migration").fetchone()[0], end="")
            """, program.path(name),
        ]).output
    }

    static let reading: [String] = [
        "app list", "app show a", "app policy a", "app api-key list a", "app webhook list a",
        "app webhook show a w", "app devices a u", "app device show a d", "campaign list a",
        "campaign show a c", "campaign count a", "console audit", "console token list",
        "push status", "push check", "explain --app a --message m",
    ]

    @Test("what only reads refuses an older store and leaves it as it is", arguments: reading)
    func readers(line: String) throws {
        let program = try older()
        let refused = try program.rouse(words: line)
        #expect(refused.status == 65, "\(line): \(refused.status) \(refused.errors)")
        #expect(refused.errors.contains("schema 1") && refused.errors.contains("`rouse migrate`"))
        #expect(try schema(program) == "1", "\(line)")
    }

    @Test("every command that asks the store without changing it is among those that refuse")
    func isWhole() throws {
        let words: Set<Substring> = ["list", "show", "status", "count", "audit", "explain"]
        let known = Self.reading
        for command in try TableCommand.all(Program()) {
            guard words.contains(command.name.split(separator: " ").last ?? ""),
                command.name != "node list"
            else { continue }
            #expect(known.contains { $0.hasPrefix(command.name) }, "\(command.name)")
        }
    }

    @Test("what writes says to which schema it brings the store")
    func writers() throws {
        let program = try older()
        let made = try program.rouse("app", "create", "shop")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.errors.contains("is brought from schema 1 to "), "\(made.errors)")
        let again = try program.rouse("app", "create", "shop-2")
        #expect(again.status == 0 && !again.errors.contains("schema"), "\(again.errors)")
        #expect(try program.rouse("app", "list").status == 0)
    }

    @Test("`rouse migrate` brings a file up to date, once, and says what there was to do")
    func migrate() throws {
        let program = try older()
        let moved = try program.rouse("migrate", "--store", "rouse.db")
        #expect(moved.status == 0, "\(moved.errors)")
        #expect(moved.output.contains("brought from schema 1 to "), "\(moved.output)")
        let again = try program.rouse("migrate", "--store", "rouse.db")
        #expect(again.status == 0 && again.output.contains("already"), "\(again.output)")
        let json = try program.rouse("migrate", "--store", "rouse.db", "--json")
        #expect(json.output == #"{"change":"none","store":"rouse.db"}"# + "\n", "\(json.output)")
        #expect(try program.rouse("migrate", "--store", "gone.db").status == 69)
        #expect(!program.exists("gone.db"))
    }

    @Test("an import whose database cannot be had leaves the file as it is")
    func refusedImport() throws {
        let program = try older()
        let refused = try program.rouse(
            "import", "rouse.db", "--set", "store.postgres=postgresql://127.0.0.1:1/rouse")
        #expect(refused.status == 69, "\(refused.status)")
        #expect(refused.errors.hasPrefix("rouse import: "), "\(refused.errors)")
        #expect(try schema(program) == "1")
    }

    @Test("the server's log tells of a store that it made, and of one that it brought up to date")
    func events() throws {
        let new = try ServedProgram()
        let made = "level=warning event=store.created store=rouse.db"
        #expect(new.log.contains { $0.contains(made) })
        #expect(!new.log.contains { $0.contains("event=store.migrated") })
        let old = try ServedProgram(prepare: { program in
            let kept = Program.root.appendingPathComponent("Tests/schemas/1/server.db")
            try FileManager.default.copyItem(atPath: kept.path, toPath: program.path("rouse.db"))
        })
        #expect(old.log.contains { $0.contains("event=store.migrated from=1 to=") })
        #expect(!old.log.contains { $0.contains("event=store.created") })
    }
}
