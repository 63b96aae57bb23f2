import Foundation
import Testing

/// What messages say of names, numbers and files.
@Suite struct WordsTests {
    @Test("a configuration may begin with a byte order mark")
    func mark() throws {
        let program = try Program()
        try program.write("\u{FEFF}listen.port = 7444\n", "rouse.conf")
        let shown = try program.rouse("serve", "--config", "rouse.conf", "--print-config")
        #expect(shown.status == 0, "\(shown.errors)")
        #expect(shown.output.contains("listen.port = 7444"))
    }

    @Test("what cannot be read is told with the reason")
    func reasons() throws {
        let program = try Program()
        try program.write("", "folder/x")
        for line in [
            "serve --config folder --check-config",
            "serve --set webhooks.ca_file=folder --check-config",
            "serve --set tls.key_file=folder --check-config",
            "campaign create shop --push folder",
        ] {
            let refused = try program.rouse(words: line)
            #expect(refused.errors.contains(/folder: .*[Ii]s a directory/), "\(refused.errors)")
        }
    }

    @Test("a command that a message names can be run as it stands")
    func quoted() throws {
        let program = try Program()
        try program.write("", "it's here/x")
        let path = program.path("it's here/rouse.db")
        let made = try program.rouse("app", "create", "shop", "--new-store", "--store", path)
        #expect(made.status == 0, "\(made.errors)")
        let held = try program.run([
            "/usr/bin/flock", "\(path).lock", Program.path, "app", "list", "--store", path,
        ])
        #expect(held.errors.contains("it'\\''s here/rouse.db.lock'` names it"), "\(held.errors)")
    }

    @Test(
        "the next steps of a new app can be run as they stand, whatever its name",
        arguments: ["shop", "-x", "--json", "it's a shop"])
    func nextSteps(name: String) throws {
        let program = try Program()
        let made = try program.rouse("app", "create", "--new-store", "--", name)
        #expect(made.status == 0, "\(made.errors)")
        let steps = made.output.split(separator: "\n").filter { $0.contains("rouse app ") }
        #expect(steps.count == 3)
        let step = try #require(steps.first { $0.contains("api-key create") })
        // Behind the line stands what it is for.
        let line = String(step.prefix(upTo: try #require(step.range(of: "  its")).lowerBound))
            .replacing("rouse app", with: "\"$R\" app")
        let key = try program.run(["/bin/bash", "-c", line], settings: ["R": Program.path])
        #expect(key.status == 0 && key.output.hasPrefix("rk_"), "\(line): \(key.all)")
        // So can what is said of a secret that is lost.
        let lost = try program.run(
            ["/bin/bash", "-c", "\"$R\" app api-key create -- \"$N\" > /dev/full"],
            settings: ["R": Program.path, "N": name])
        let advice = String(lost.errors.split(separator: "`").dropFirst().first ?? "")
            .replacing("rouse app", with: "\"$R\" app")
        let end = try program.run(["/bin/bash", "-c", advice], settings: ["R": Program.path])
        #expect(end.status == 0, "\(advice): \(end.all)")
    }

    @Test("a time out of its range is told as a time")
    func times() throws {
        let program = try Program()
        let refused = try program.rouse(
            "app", "create", "shop", "--new-store", "--grace", "5000h")
        #expect(refused.errors.contains("--grace must be a time from 1s to "), "\(refused.errors)")
        #expect(!refused.errors.contains("number"), "\(refused.errors)")
    }

    @Test(
        "names that a terminal would obey or turn round are shown by their numbers there",
        .enabled(if: Program.find("script") != nil, "script is not installed"))
    func names() throws {
        let program = try Program()
        // No such app is made any more; one of an earlier version may be there.
        let name = "sh\u{202E}op"
        let made = try program.rouse("app", "create", "--new-store", "shop")
        #expect(made.status == 0, "\(made.errors)")
        let refused = try program.rouse("app", "create", name)
        #expect(refused.status == 1, "\(refused.all)")
        #expect(refused.errors.contains("APP must not hold U+202E"), "\(refused.errors)")
        let renamed = try program.run([
            "/usr/bin/python3", "-c",
            "import sqlite3, sys\nstore = sqlite3.connect(sys.argv[1])\n"
                + "store.execute('UPDATE app SET app = ?', sys.argv[2:])\nstore.commit()",
            program.path("rouse.db"), name,
        ])
        #expect(renamed.status == 0, "\(renamed.errors)")
        let piped = try program.rouse("app", "list")
        #expect(piped.output.contains(name), "\(piped.output)")
        let shown = try program.run([
            Program.find("script") ?? "", "-qec", "\(Program.path) app list", "/dev/null",
        ])
        #expect(shown.output.contains(#"sh\u{202E}op"#), "\(shown.output)")
    }
}
