import Foundation
import Testing

/// Backups that another version of the program has made, or is to make.
@Suite struct OlderBackupTests {
    /// A folder with a copy of the kept file of the first schema, as `rouse.db`, without its rows:
    /// they were made to try each column, and mean nothing together.
    private func older() throws -> Program {
        let program = try Program()
        let kept = Program.root.appendingPathComponent("Tests/schemas/1/server.db")
        try FileManager.default.copyItem(atPath: kept.path, toPath: program.path("rouse.db"))
        try python(
            """
            names = store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in names:
                if name != "schema_migration":
                    store.execute(f'DELETE FROM "{name}"')
            """, on: "rouse.db", program)
        return program
    }

    @discardableResult
    private func python(_ text: String, on name: String, _ program: Program) throws -> String {
        let beginning = "import sqlite3, sys\nstore = sqlite3.connect(sys.argv[1])"
        let all = "\(beginning)\n\(text)\nstore.commit()"
        let outcome = try program.run(["/usr/bin/python3", "-c", all, program.path(name)])
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output
    }

    private func schema(_ name: String, _ program: Program) throws -> String {
        try python(
            "print(store.execute('SELECT count(*) FROM schema_migration').fetchone()[0], end='')",
            on: name, program)
    }

    @Test("a backup of the first schema is made, verified without a change, and restored")
    func older1() throws {
        let program = try older()
        let made = try program.rouse("backup", "copy")
        #expect(made.status == 0, "\(made.errors)")
        #expect(try schema("rouse.db", program) == "1")
        let bytes = FileManager.default.contents(atPath: program.path("copy"))
        let verified = try program.rouse("backup", "--verify", "copy")
        #expect(verified.status == 0 && verified.output.contains("schema 1"), "\(verified.all)")
        let json = try program.rouse("backup", "--verify", "copy", "--json")
        #expect(json.output.contains(#""schema":1"#), "\(json.output)")
        let restored = try program.rouse("restore", "copy", "--store", "new.db")
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(restored.output.contains("brought from schema 1 to "), "\(restored.output)")
        #expect(FileManager.default.contents(atPath: program.path("copy")) == bytes)
        #expect(try schema("new.db", program) != "1")
        #expect(try program.rouse("app", "create", "shop", "--store", "new.db").status == 0)
    }

    @Test("what is of a newer schema, or no store, is refused by its own name, with 65")
    func refused() throws {
        let program = try older()
        #expect(try program.rouse("migrate", "--store", "rouse.db").status == 0)
        #expect(try program.rouse("backup", "copy").status == 0)
        let newer = """
            count = store.execute('SELECT count(*) FROM schema_migration').fetchone()[0]
            store.execute('INSERT INTO schema_migration VALUES (?, ?, 0)', (count + 1, 'later'))
            """
        try python(newer, on: "rouse.db", program)
        try python(newer, on: "copy", program)
        try program.write("this is no store\n", "junk")
        for (line, words) in [
            ("backup other", "rouse.db has schema "), ("backup --verify copy", "copy has schema "),
            ("restore copy --store new.db", "copy has schema "),
            ("backup other --store junk", "junk is no SQLite database"),
            ("backup other --store copy", "copy is itself a backup"),
        ] {
            let refused = try program.rouse(words: line)
            #expect(refused.status == 65, "\(line): \(refused.status)")
            #expect(refused.errors.contains(words), "\(line): \(refused.errors)")
            #expect(!refused.errors.contains(".partial"), "\(refused.errors)")
            #expect(!program.exists("other") && !program.exists("new.db"))
        }
    }
}
