import Foundation
import Testing

/// How commands that refuse something end, and what they say to programs.
@Suite struct RefusalTests {
    struct Problem: Decodable {
        let type: String
        let title: String
        let detail: String
        let exitStatus: Int32
    }

    @Test(
        "with --json a refusal is one JSON object, whatever its status",
        arguments: [
            ("app list --frobnicate --json", 64), ("app list --store gone --json", 69),
            ("backup x --store junk --json", 65), ("backup pipe --store junk --json", 73),
            ("app list --json --config wrong.conf", 78), ("migrate --json --store gone", 69),
            ("node list --json", 78), ("backup --json x --config pg.conf", 78),
            ("restore --json x --config pg.conf", 78), ("fleet --json --traffic junk", 65),
            ("fleet --json --traffic gone", 65), ("fleet --json --devices 10 --svg .", 73),
            ("replay --json junk", 65), ("bogus --json", 64), ("--json", 64), ("app --json", 64),
            ("app bogus --json", 64), ("app creat --json x", 64), ("help bogus --json", 64),
            ("serve --check-config --json", 78), ("serve --bogus --json", 64),
        ])
    func json(line: String, status: Int32) throws {
        let program = try Program()
        try program.write("no store", "junk")
        try program.write("listen.port = x\n", "wrong.conf")
        try program.write("store.postgres = postgresql://rouse@db/rouse\n", "pg.conf")
        #expect(symlink("junk", program.path("pipe")) == 0)
        let refused = try program.rouse(words: line)
        #expect(refused.status == status, "\(refused.all)")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let problem = try decoder.decode(Problem.self, from: Data(refused.output.utf8))
        #expect(problem.exitStatus == status && !problem.title.isEmpty)
        #expect(refused.errors.contains(problem.detail), "\(refused.errors)")
        #expect(problem.type == "urn:rouse:problem:command")
    }

    @Test("sound settings are one JSON object with --json, and what is wrong beside them in it")
    func soundSettings() throws {
        struct Found: Decodable {
            let isSound: Bool
            let warnings: [String]
        }
        let program = try Program()
        #expect(try program.rouse("dev", "certificates", "tls").status == 0)
        try program.write(ServedProgram.base, "rouse.conf")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        for (mode, count) in [(0o600, 0), (0o644, 1)] {
            #expect(chmod(program.path("tls/server.key"), mode_t(mode)) == 0)
            let sound = try program.rouse(
                "serve", "--config", "rouse.conf", "--check-config", "--json")
            #expect(sound.status == 0, "\(sound.all)")
            let found = try decoder.decode(Found.self, from: Data(sound.output.utf8))
            let warnings = found.warnings.filter { $0.hasPrefix("tls.key_file") }
            #expect(found.isSound && warnings.count == count, "\(sound.output)")
        }
    }

    @Test("the table of commands is that of the ones asked for")
    func tables() throws {
        let program = try Program()
        let all = try TableCommand.all(program)
        for words in ["serve", "app", "app api-key"] {
            let table = try program.rouse(words: "help \(words) --json").output
            let found = try JSONDecoder().decode([TableCommand].self, from: Data(table.utf8))
            let wanted = all.map(\.name).filter { $0 == words || $0.hasPrefix("\(words) ") }
            #expect(found.map(\.name) == wanted && !wanted.isEmpty)
        }
    }

    @Test(
        "a log that holds no message ends with 65, for whoever reads it",
        arguments: ["/dev/null", "junk", "folder", "gone"])
    func logs(file: String) throws {
        let program = try Program()
        try program.write("no log", "junk")
        try program.write("no log", "folder/x")
        for line in ["replay \(file)", "fleet --traffic \(file)"] {
            let refused = try program.rouse(words: line)
            #expect(refused.status == 65, "\(line): \(refused.all)")
        }
        #expect(try program.rouse("replay", "/dev/null").errors.contains("holds no line"))
    }

    @Test("a word that is not UTF-8 is refused, and none is made in its place")
    func notText() throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        let shell = ["/bin/bash", "-c", #""$0" app create $'z\xff\xfe' --json"#, Program.path]
        let refused = try program.run(shell)
        #expect(refused.status == 64 && refused.errors.contains("not UTF-8"), "\(refused.all)")
        #expect(refused.output.contains(#""exit_status":64"#))
        #expect(!(try program.rouse("app", "list").output.contains("z")))
    }

    @Test(
        "a command that refuses what is no store leaves nothing beside it",
        arguments: ["app list --store", "app set x --grace 3 --store", "migrate --store"])
    func noStore(line: String) throws {
        let program = try Program()
        try program.write("this is no store, whoever takes it for one", "junk")
        try program.write("x", "folder/x")
        for file in ["junk", "folder"] {
            let refused = try program.rouse(words: "\(line) \(file)")
            #expect(refused.status == 69, "\(refused.all)")
            #expect(refused.errors.contains(file))
            #expect(!program.exists("\(file).lock") && !program.exists("\(file)-wal"))
        }
    }

    @Test(
        "a key that cannot be read says what is there instead",
        arguments: [
            ("gone", "no such file"), ("folder", "directory"), ("empty", "empty"),
            ("bytes", "not text"),
        ])
    func keys(file: String, said: String) throws {
        let program = try Program()
        try program.write("x", "folder/x")
        try program.write("", "empty")
        try program.write("\u{0}\u{1}", "bytes")
        let refused = try program.rouse(words: "app issuer-key add shop --kid k --key \(file)")
        #expect(refused.status == 1)
        #expect(refused.errors.lowercased().contains(said), "\(refused.errors)")
    }

    @Test("what a server refuses is printed once, as the server tells it")
    func ofTheServer() throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        let refused = try program.rouse("app", "show", "gone", "--json")
        #expect(refused.status == 1)
        #expect(refused.output.split(separator: "\n").count == 1, "\(refused.output)")
        #expect(refused.output.contains(#""status":404"#), "\(refused.output)")
    }

    @Test(
        "an output that cannot be made ends with 73",
        arguments: [
            "man --to /proc/x", "dev certificates /proc/x", "dev key /proc/x/key",
            "apns-simulator --certificates /proc/x --control s",
        ])
    func outputs(line: String) throws {
        let refused = try Program().rouse(words: line)
        #expect(refused.status == 73, "\(refused.status): \(refused.errors)")
        #expect(refused.errors.contains("/proc/x"), "\(refused.errors)")
    }

    @Test(
        "a message begins with the whole name of its command",
        arguments: [
            "node drain a --set store.postgres=postgresql://127.0.0.1:1/rouse",
            "migrate --store gone", "backup x --store gone", "export x.db",
        ])
    func names(line: String) throws {
        let refused = try Program().rouse(words: line)
        let name = line.hasPrefix("node") ? "node drain" : String(line.prefix { $0 != " " })
        #expect(refused.errors.hasPrefix("rouse \(name): "), "\(refused.errors)")
    }
}
