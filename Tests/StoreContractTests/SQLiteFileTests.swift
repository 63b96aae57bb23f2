import Foundation
import Model
import Testing

@testable import SQLiteStore

/// What the engine in a file promises about that file.
@Suite struct SQLiteFileTests {
    let thing = Sample.thing

    private func open(
        _ folder: String, tables: [Table] = Sample.tables, migrations: [Migration]? = nil,
        options: SQLiteOptions = SQLiteOptions()
    ) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(
            path: "\(folder)/store.db", tables: tables, migrations: migrations, options: options)
    }

    private func size(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? -1
    }

    /// The text of the `.unavailable` that `body` throws; empty for anything else.
    private func refusal(_ body: () throws(StoreError) -> Void) -> String {
        if case .unavailable(let text)? = caught(body) { text } else { "" }
    }

    @Test("reopening keeps the data; a clean close leaves no journal")
    func reopen() throws {
        try withFolder { folder throws in
            var rows: [[ColumnValue]] = []
            for id in UInt8(1)...3 {
                let store = try open(folder)
                #expect(try store.rows(thing) == rows)
                rows.append(Sample.row("a", [id], note: "n", due: 1))
                try store.put(thing, rows[rows.count - 1])
                store.close()
                #expect(size("\(folder)/store.db-wal") <= 0)
            }
        }
    }

    @Test("a backup is written over no file of its store, under whatever name")
    func backupOntoStore() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try open(folder)
            defer { store.close() }
            try store.put(thing, Sample.row("a", [1]))
            let files = FileManager.default
            try files.createSymbolicLink(
                atPath: "\(folder)/symbolic", withDestinationPath: path)
            try files.linkItem(atPath: path, toPath: "\(folder)/hard")
            let names = [
                path, "\(folder)/./store.db", "\(path)-wal", "\(path)-shm", "\(path).lock",
                "\(folder)/symbolic", "\(folder)/hard",
            ]
            for name in names {
                let text = refusal { () throws(StoreError) in
                    try SQLiteBackup.copy(store: path, to: name, replaces: true) { _ in }
                }
                #expect(text.contains("name another one"), "\(name): \(text)")
            }
            // A database of this name would take the copy for its journal.
            for name in ["other.db-wal", "other.db-shm", "other.db-journal"] {
                let text = refusal { () throws(StoreError) in
                    try SQLiteBackup.copy(store: path, to: "\(folder)/\(name)", replaces: false) {
                        _ in
                    }
                }
                #expect(text.contains("name another one") && size("\(folder)/\(name)") == -1)
            }
            try store.put(thing, Sample.row("a", [2]))
            #expect(try store.rows(thing).count == 2)
            try SQLiteBackup.copy(store: path, to: "\(folder)/copy", replaces: false) { _ in }
            try SQLiteBackup.copy(store: path, to: "\(folder)/copy", replaces: true) { _ in }
        }
    }

    @Test("a second opener is refused, and told by which file")
    func secondOpener() throws {
        try withFolder { folder throws in
            let store = try open(folder)
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("\(folder)/store.db.lock is locked"))
            try store.put(thing, Sample.row("a", [1]))
            store.close()
        }
    }

    @Test("the file cannot be opened twice by another name, or after its lock file went")
    func otherNames() throws {
        try withFolder { folder throws in
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            let files = FileManager.default
            try files.linkItem(atPath: "\(folder)/store.db", toPath: "\(folder)/hard.db")
            try files.createSymbolicLink(
                atPath: "\(folder)/soft.db", withDestinationPath: "\(folder)/store.db")
            for name in ["hard.db", "soft.db"] {
                let text = refusal { () throws(StoreError) in
                    _ = try SQLiteStore(path: "\(folder)/\(name)", tables: Sample.tables)
                }
                #expect(text.contains("perhaps by another name"), "\(name): \(text)")
            }
            try files.removeItem(atPath: "\(folder)/store.db.lock")
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("perhaps by another name"), "\(text)")
            try store.put(thing, Sample.row("a", [2]))
            store.close()
        }
    }

    @Test("a store that is open is not restored, by another name or after its lock file went")
    func restoredWhileOpen() throws {
        try withFolder { folder throws in
            let (path, copy) = ("\(folder)/store.db", "\(folder)/copy")
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            try SQLiteBackup.copy(store: path, to: copy, replaces: false) { _ in }
            let files = FileManager.default
            try files.linkItem(atPath: path, toPath: "\(folder)/hard.db")
            try files.removeItem(atPath: "\(path).lock")
            for name in [path, "\(folder)/hard.db"] {
                let text = refusal { () throws(StoreError) in try restore(copy, name) }
                #expect(text.contains("perhaps by another name"), "\(name): \(text)")
            }
            try store.put(thing, Sample.row("a", [2]))
            // Nor is a restore brought to its end that was broken off before.
            try restore(copy, "\(folder)/other.db")
            try files.copyItem(atPath: "\(folder)/other.db", toPath: "\(path).restored")
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("perhaps by another name"), "\(text)")
            try files.removeItem(atPath: "\(path).restored")
            try store.put(thing, Sample.row("a", [3]))
            store.close()
            try restore(copy, path)
            let restored = try open(folder)
            defer { restored.close() }
            #expect(try restored.rows(thing).count == 1)
        }
    }

    @Test("only what a restore has made takes a store's place, and nothing else has its names")
    func namesOfRestores() throws {
        try withFolder { folder throws in
            let (path, copy) = ("\(folder)/store.db", "\(folder)/copy")
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            for name in ["\(path).restored", "\(path).restoring", "\(folder)/x.lock"] {
                let text = refusal { () throws(StoreError) in
                    try SQLiteBackup.copy(store: path, to: name, replaces: true) { _ in }
                }
                #expect(text.contains("name another one") && size(name) == -1, "\(text)")
            }
            try SQLiteBackup.copy(store: path, to: copy, replaces: false) { _ in }
            store.close()
            let files = FileManager.default
            // A backup, or anything else, under the name: the store stays.
            try files.copyItem(atPath: copy, toPath: "\(path).restored")
            for _ in 0..<2 {
                let text = refusal { () throws(StoreError) in _ = try open(folder) }
                #expect(text.contains("move it away"), "\(text)")
                let backup = refusal { () throws(StoreError) in
                    try SQLiteBackup.copy(store: path, to: copy + "2", replaces: false) { _ in }
                }
                #expect(backup.contains("move it away"), "\(backup)")
                try Data("notes".utf8).write(to: URL(fileURLWithPath: "\(path).restored"))
            }
            try files.removeItem(atPath: "\(path).restored")
            try files.moveItem(atPath: copy, toPath: "\(path).restoring")
            let text = refusal { () throws(StoreError) in try restore("\(path).restoring", path) }
            #expect(text.contains("rename it") && size("\(path).restoring") > 0, "\(text)")
            // A store that has the name under which a copy is made.
            try files.moveItem(atPath: path, toPath: "\(folder)/x.partial")
            let partial = refusal { () throws(StoreError) in
                try SQLiteBackup.copy(
                    store: "\(folder)/x.partial", to: "\(folder)/x", replaces: false
                ) { _ in }
            }
            #expect(partial.contains("name another one"), "\(partial)")
            let again = try SQLiteStore(path: "\(folder)/x.partial", tables: Sample.tables)
            defer { again.close() }
            #expect(try again.rows(thing).count == 1)
        }
    }

    @Test("a restore by a link's name is refused: the store behind it would stay as it was")
    func restoredByLink() throws {
        try withFolder { folder throws in
            let (path, copy, link) = ("\(folder)/store.db", "\(folder)/copy", "\(folder)/link.db")
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            try SQLiteBackup.copy(store: path, to: copy, replaces: false) { _ in }
            try store.put(thing, Sample.row("a", [2]))
            store.close()
            let files = FileManager.default
            try files.createSymbolicLink(atPath: link, withDestinationPath: path)
            let text = refusal { () throws(StoreError) in try restore(copy, link) }
            #expect(text.contains("not a plain file"), "\(text)")
            #expect(try files.destinationOfSymbolicLink(atPath: link) == path)
            // What a restore has kept is no backup, and how it is put back is said.
            try restore(copy, path)
            let kept = refusal { () throws(StoreError) in
                _ = try SQLiteBackupFile(path: "\(path).old")
            }
            #expect(kept.contains("put back by hand"), "\(kept)")
        }
    }

    private func restore(_ backup: String, _ path: String) throws(StoreError) {
        _ = try SQLiteBackup.restore(
            backup, to: path, tables: Sample.tables, keepingOldAs: ".old"
        ) { _ throws(StoreError) in }
    }

    @Test("a restore that fails when it is decided says that the next start ends it")
    func decidedRestore() throws {
        try withFolder { folder throws in
            let (path, copy) = ("\(folder)/store.db", "\(folder)/copy")
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            try SQLiteBackup.copy(store: path, to: copy, replaces: false) { _ in }
            try store.put(thing, Sample.row("a", [2]))
            store.close()
            let files = FileManager.default
            // It cannot be removed as a file is.
            try files.createDirectory(
                atPath: "\(path)-shm/x", withIntermediateDirectories: true)
            let text = refusal { () throws(StoreError) in try restore(copy, path) }
            #expect(text.contains("the next start of the server ends it"), "\(text)")
            #expect(text.contains("\(path).old"), "\(text)")
            try files.removeItem(atPath: "\(path)-shm")
            let restored = try open(folder)
            #expect(try restored.rows(thing).count == 1)
            restored.close()
            let kept = try SQLiteStore(path: "\(path).old", tables: Sample.tables)
            defer { kept.close() }
            #expect(try kept.rows(thing).count == 2)
        }
    }

    @Test("a journal without its database is no empty store", arguments: [false, true])
    func journalAlone(_ isEmpty: Bool) throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            let files = FileManager.default
            try files.copyItem(atPath: path, toPath: "\(folder)/moved")
            try files.copyItem(atPath: "\(path)-wal", toPath: "\(folder)/moved-wal")
            store.close()
            try files.moveItem(atPath: "\(folder)/moved-wal", toPath: "\(path)-wal")
            try files.removeItem(atPath: path)
            if isEmpty { try Data().write(to: URL(fileURLWithPath: path)) }
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("put the file back"), "\(text)")
            let other = refusal { () throws(StoreError) in try restore("\(folder)/moved", path) }
            #expect(other.contains("put the file back"), "\(other)")
            if isEmpty { try files.removeItem(atPath: path) }
            try files.moveItem(atPath: "\(folder)/moved", toPath: path)
            let again = try open(folder)
            defer { again.close() }
            #expect(try again.rows(thing).count == 1)
        }
    }

    @Test(
        "nothing is written to files that are not at their path any more",
        arguments: ["", "-wal", "-shm"])
    func deleted(_ suffix: String) throws {
        try withFolder { folder throws in
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1]))
            let path = "\(folder)/store.db\(suffix)"
            try FileManager.default.moveItem(atPath: path, toPath: "\(folder)/moved")
            for _ in 0..<2 {
                let text = refusal { () throws(StoreError) in
                    try store.put(thing, Sample.row("a", [2]))
                }
                #expect(text.contains("was deleted or replaced while it is open"), "\(text)")
            }
            try FileManager.default.moveItem(atPath: "\(folder)/moved", toPath: path)
            try store.put(thing, Sample.row("a", [3]))
            store.close()
        }
    }

    @Test("a closed or dropped store lets the next one open")
    func lockEnds() throws {
        try withFolder { folder throws in
            do {
                let dropped = try open(folder)
                try dropped.put(thing, Sample.row("a", [1]))
            }
            let closed = try open(folder)
            #expect(try closed.rows(thing).count == 1)
            closed.close()
            let next = try open(folder)
            #expect(try next.rows(thing).count == 1)
            next.close()
        }
    }

    @Test("only the owner can read its files")
    func mode() throws {
        try withFolder { folder throws in
            let store = try open(folder)
            defer { store.close() }
            try store.put(thing, Sample.row("a", [1]))
            for name in ["store.db", "store.db-wal", "store.db-shm", "store.db.lock"] {
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: "\(folder)/\(name)")
                #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            }
        }
    }

    @Test("a path that cannot be opened is unavailable and not a trap")
    func badPath() throws {
        try withFolder { folder throws in
            #expect(!refusal { () throws(StoreError) in _ = try open("\(folder)/none") }.isEmpty)
            try FileManager.default.createDirectory(
                atPath: "\(folder)/store.db", withIntermediateDirectories: false)
            #expect(!refusal { () throws(StoreError) in _ = try open(folder) }.isEmpty)
        }
    }

    // MARK: Migrations

    private static let firstThing = Table(
        "thing", key: [Column("id", .integer)], values: [Column("name", .text)])
    private static let secondThing = Table(
        "thing", key: [Column("id", .integer)],
        values: [Column("name", .text), Column("due", .integer, optional: true)],
        indexes: [TableIndex("thing_by_due", on: "due", present: "due")])
    private static let first = Migration(1, "create the tables", [.create([firstThing])])
    private static let second = Migration(
        2, "remember when things are due",
        [
            .addColumns(secondThing, [Column("due", .integer, optional: true)]),
            .createIndex(secondThing, "thing_by_due"),
            .sql("UPDATE thing SET due = id * 10 WHERE id > 1"),
        ])

    @Test("a migration brings old data to the new tables, once")
    func migration() throws {
        try withFolder { folder throws in
            let old = try open(folder, tables: [Self.firstThing])
            for id in Int64(1)...2 { try old.put(Self.firstThing, [.integer(id), .text("n")]) }
            old.close()
            for _ in 0..<2 {
                let new = try open(
                    folder, tables: [Self.secondThing], migrations: [Self.first, Self.second])
                let due = try new.rows(Self.secondThing, Scan(index: "thing_by_due", limit: 9))
                #expect(due == [[.integer(2), .text("n"), .integer(20)]])
                #expect(try new.rows(Self.secondThing).count == 2)
                new.close()
            }
            let text = refusal { () throws(StoreError) in
                _ = try open(folder, tables: [Self.firstThing])
            }
            #expect(text.contains("schema 2, this program knows 1"))
        }
    }

    @Test("columns that say since when they are there come to an old file, with their indexes")
    func laterColumns() throws {
        let later = Table(
            "thing", key: [Column("id", .integer)],
            values: [
                Column("name", .text), Column("due", .integer, optional: true, since: 2),
                Column("place", .text, optional: true, since: 3),
            ],
            indexes: [
                TableIndex("thing_by_name", on: "name"),
                TableIndex("thing_by_place", on: "place", "due", present: "place"),
            ])
        let first = later.asOf(schema: 1)
        #expect(first.indexes.map(\.name) == ["thing_by_name"])
        try withFolder { folder throws in
            let old = try open(folder, tables: [first])
            try old.put(first, [.integer(1), .text("n")])
            old.close()
            for _ in 0..<2 {
                let new = try open(folder, tables: [later])
                #expect(try new.rows(later) == [[.integer(1), .text("n"), .null, .null]])
                try new.put(later, [.integer(2), .text("m"), .integer(5), .text("p")])
                let placed = try new.rows(later, Scan(index: "thing_by_place", limit: 9))
                #expect(placed == [[.integer(2), .text("m"), .integer(5), .text("p")]])
                try new.write { transaction throws(StoreError) in
                    try transaction.delete(later, key: [.integer(2)])
                }
                new.close()
            }
            let text = refusal { () throws(StoreError) in
                _ = try open(folder, tables: [first])
            }
            #expect(text.contains("schema 3, this program knows 1"))
        }
        try withFolder { folder throws in
            let new = try open(folder, tables: [later])
            try new.put(later, [.integer(1), .text("n"), .integer(2), .text("p")])
            #expect(try new.rows(later).count == 1)
            new.close()
        }
    }

    @Test("a migration that fails changes nothing and can be run again")
    func failedMigration() throws {
        try withFolder { folder throws in
            try open(folder, tables: [Self.firstThing]).close()
            let broken = Migration(
                2, "remember when things are due", Self.second.changes + [.sql("nonsense")])
            #expect(throws: StoreError.self) {
                try open(folder, tables: [Self.secondThing], migrations: [Self.first, broken])
            }
            let old = try open(folder, tables: [Self.firstThing])
            try old.put(Self.firstThing, [.integer(5), .text("n")])
            old.close()
            let new = try open(
                folder, tables: [Self.secondThing], migrations: [Self.first, Self.second])
            #expect(try new.rows(Self.secondThing) == [[.integer(5), .text("n"), .integer(50)]])
            new.close()
        }
    }

    @Test("tables that changed without a migration, or another program's file, are refused")
    func foreignSchema() throws {
        try withFolder { folder throws in
            try open(folder, tables: [Self.firstThing]).close()
            let missing = refusal { () throws(StoreError) in
                _ = try open(folder, tables: [Self.secondThing])
            }
            #expect(missing.contains("a migration is missing"))
            let more = refusal { () throws(StoreError) in
                _ = try open(folder, tables: [Self.firstThing, Sample.order])
            }
            #expect(more.contains("has no order: a migration is missing"))
            let renamed = Migration(1, "something else", [.create([Self.firstThing])])
            let other = refusal { () throws(StoreError) in
                _ = try open(folder, tables: [Self.firstThing], migrations: [renamed])
            }
            #expect(other.contains("create the tables"))
        }
        try withFolder { folder throws in
            let connection = try Connection(
                path: "\(folder)/store.db", mode: .writer, busyTimeout: 0)
            try connection.execute("CREATE TABLE theirs (a)")
            connection.close()
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("of something else"))
        }
    }

    // MARK: Damage

    @Test("a file that is no database, or a damaged one, is refused and left as it is")
    func damage() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            try Data(repeating: 0x41, count: 8192).write(to: URL(fileURLWithPath: path))
            let text = refusal { () throws(StoreError) in _ = try open(folder) }
            #expect(text.contains("restore a backup"))
            #expect {
                _ = try open(folder)
            } throws: { error in
                (error as? StoreError)?.isDamage ?? false
            }
            #expect(!StoreError.unavailable(path).isDamage && !StoreError.full(text).isDamage)
            #expect(
                FileManager.default.contents(atPath: path) == Data(repeating: 0x41, count: 8192))
        }
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try open(folder)
            for id in UInt8(0)...200 {
                let data = [UInt8](repeating: id, count: 500)
                try store.put(thing, Sample.row("a", [id], due: 1, data: data))
            }
            store.close()
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            for page in stride(from: 8, to: 24, by: 1) {
                try file.seek(toOffset: UInt64(page) * 4096)
                file.write(Data(repeating: 0xee, count: 64))
            }
            try file.close()
            var options = SQLiteOptions()
            options.check = .always
            let text = refusal { () throws(StoreError) in _ = try open(folder, options: options) }
            #expect(text.contains("is damaged"))
            // Without the check it opens; the first statement that meets the damage says so, and
            // from then on every call does.
            options.check = .never
            let damaged = try open(folder, options: options)
            defer { damaged.close() }
            #expect(!refusal { () throws(StoreError) in _ = try damaged.rows(thing) }.isEmpty)
            let after = refusal { () throws(StoreError) in
                try damaged.put(Sample.order, [.integer(1), .text("")])
            }
            #expect(after.contains("restore a backup"))
        }
    }

    @Test("a row of another form is corrupt; other rows can be read")
    func corruptRow() throws {
        try withFolder { folder throws in
            let store = try open(folder)
            try store.put(thing, Sample.row("a", [1], note: "n"), Sample.row("b", [1]))
            store.close()
            let connection = try Connection(
                path: "\(folder)/store.db", mode: .writer, busyTimeout: 0)
            try connection.execute(
                "UPDATE thing SET note = CAST(x'ff' AS TEXT) WHERE app = 'a'")
            connection.close()
            let opened = try open(folder)
            defer { opened.close() }
            guard case .corrupt? = caught({ () throws(StoreError) in _ = try opened.rows(thing) })
            else {
                Issue.record("a text that is not UTF-8 was read")
                return
            }
            #expect(try opened.rows(thing, Scan(prefix: [.text("b")], limit: 9)).count == 1)
        }
    }

    @Test("another process that writes the file makes a conflict, and the store goes on")
    func foreignWriter() throws {
        try withFolder { folder throws in
            var options = SQLiteOptions()
            options.busyTimeout = 20
            let store = try open(folder, options: options)
            defer { store.close() }
            let foreign = try Connection(
                path: "\(folder)/store.db", mode: .reader, busyTimeout: 0)
            foreign.close()
            let writer = try Connection(
                path: "\(folder)/store.db", mode: .writer, busyTimeout: 0)
            writer.leaveJournal()
            try writer.execute("BEGIN IMMEDIATE")
            let error = caught { () throws(StoreError) in
                try store.put(thing, Sample.row("a", [1]))
            }
            if case .conflict? = error {} else { Issue.record("\(String(describing: error))") }
            try writer.execute("ROLLBACK")
            writer.close()
            try store.put(thing, Sample.row("a", [1]))
            #expect(try store.rows(thing).count == 1)
        }
    }
}

/// What a failed system call means for the store, and for the handle that met it.
@Suite struct FailureTests {
    /// SQLITE_IOERR_WRITE
    private let write: Int32 = 778

    @Test("a write that fails for want of space is full; for another reason it is not")
    func writes() {
        for errno in [ENOSPC, EDQUOT, EFBIG] {
            let failure = Failure(code: write, errno: errno, text: "disk I/O error", path: "x")
            guard case .full = failure.error else {
                Issue.record("errno \(errno): \(failure.error)")
                continue
            }
            #expect(!failure.distrusts)
        }
        let failure = Failure(code: write, errno: EIO, text: "disk I/O error", path: "x")
        guard case .unavailable = failure.error else {
            Issue.record("told as want of space: \(failure.error)")
            return
        }
        #expect(failure.distrusts && !failure.isDamage)
    }
}
