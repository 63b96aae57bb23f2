import Foundation
import Glibc
import Testing

/// What `rouse backup` replaces, and what it leaves alone.
@Suite struct BackupTargetTests {
    /// What `lstat` tells of a name.
    private func kind(_ name: String, _ program: Program) -> mode_t {
        var status = stat()
        return lstat(program.path(name), &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    private func prepared() throws -> Program {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        return program
    }

    @Test("a plain file is replaced with --force, and only with it")
    func plain() throws {
        let program = try prepared()
        try program.write("old", "copy")
        let kept = try program.rouse("backup", "copy")
        #expect(kept.status == 73 && kept.errors.contains("--force"), "\(kept.errors)")
        #expect(try program.rouse("backup", "copy", "--force").status == 0)
        #expect(try program.rouse("backup", "--verify", "copy").status == 0)
    }

    @Test(
        "a backup that a signal ends leaves nothing behind, and the next one is whole",
        arguments: [SIGINT, SIGTERM, SIGHUP])
    func ended(_ signal: Int32) throws {
        let program = try prepared()
        // Large enough that its copy is in the making for some time.
        let ballast = try program.run([
            "/usr/bin/python3", "-c",
            """
            import sqlite3, sys
            store = sqlite3.connect(sys.argv[1])
            store.execute("CREATE TABLE ballast (bytes BLOB)")
            store.executemany("INSERT INTO ballast VALUES (zeroblob(8000000))", [()] * 25)
            store.commit()
            """,
            program.path("rouse.db"),
        ])
        try #require(ballast.status == 0, "\(ballast.errors)")
        let partial = program.path("copy.partial")
        let backup = Process()
        backup.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        // Whoever runs the tests may have it ignore signals.
        backup.arguments = [
            "-c",
            "import os, signal, sys\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_DFL)\n"
                + "os.execv(sys.argv[1], sys.argv[1:])",
            Program.path, "backup", "--store", program.path("rouse.db"), program.path("copy"),
        ]
        backup.standardError = FileHandle.nullDevice
        try backup.run()
        var status = stat()
        while backup.isRunning, stat(partial, &status) != 0 || status.st_size < 1 << 20 {
            usleep(500)
        }
        kill(backup.processIdentifier, signal)
        backup.waitUntilExit()
        #expect(backup.terminationReason == .uncaughtSignal)
        #expect(backup.terminationStatus == signal)
        let left = try FileManager.default.contentsOfDirectory(atPath: program.folder.path)
        #expect(!left.contains { $0.hasPrefix("copy") }, "\(left)")
        #expect(try program.rouse("backup", "copy").status == 0)
        #expect(try program.rouse("backup", "--verify", "copy").status == 0)
    }

    @Test("pipes, devices and directories are not replaced")
    func special() throws {
        let program = try prepared()
        #expect(mkfifo(program.path("pipe"), 0o600) == 0)
        try program.write("", "directory/file")
        var names = [("pipe", S_IFIFO, "named pipe"), ("directory", S_IFDIR, "directory")]
        // The device /dev/null under another name.
        if mknod(program.path("null"), S_IFCHR | 0o666, 1 << 8 | 3) == 0 {
            names.append(("null", S_IFCHR, "device"))
        }
        for (name, type, words) in names {
            for flags in [["--force"], []] {
                let refused = try program.rouse(["backup", name] + flags)
                #expect(refused.status == 73, "\(name): \(refused.status)")
                #expect(refused.errors.contains("is a \(words)"), "\(refused.errors)")
                #expect(kind(name, program) == type, "\(name)")
                #expect(!program.exists("\(name).partial"))
            }
        }
    }

    @Test("a symbolic link is neither replaced nor followed, whether or not it leads anywhere")
    func links() throws {
        let program = try prepared()
        try program.write("old", "file")
        for target in ["file", "gone"] {
            #expect(symlink(target, program.path("to-\(target)")) == 0)
            let refused = try program.rouse("backup", "--force", "to-\(target)")
            #expect(refused.status == 73, "\(refused.status)")
            #expect(refused.errors.contains("is a symbolic link"), "\(refused.errors)")
            #expect(kind("to-\(target)", program) == S_IFLNK)
        }
        #expect(try String(contentsOfFile: program.path("file"), encoding: .utf8) == "old")
        #expect(!program.exists("gone"))
    }
}
