import Foundation
import Testing

/// Settings as the commands take them: where paths start, what is wrong, what is shown.
@Suite struct SettingsTests {
    /// Certificates in `place/tls`, and a configuration beside them.
    private func prepare(_ program: Program, _ text: String = "") throws {
        #expect(try program.rouse("dev", "certificates", "place/tls").status == 0)
        try program.write(
            """
            tls.certificate_file = tls/server.pem
            tls.key_file = tls/server.key
            \(text)
            """, "place/rouse.conf")
    }

    @Test("relative paths of a file start where the file stands, whoever reads it from where")
    func paths() throws {
        let program = try Program()
        try prepare(program)
        let checked = try program.rouse(
            "serve", "--config", "place/rouse.conf", "--check-config")
        #expect(checked.status == 0, "\(checked.errors)")
        let made = try program.rouse(
            "app", "create", "shop", "--new-store", "--config", "place/rouse.conf")
        #expect(made.status == 0, "\(made.errors)")
        #expect(program.exists("place/rouse.db") && !program.exists("rouse.db"))
        // From another folder, and by the whole path, it is the same store.
        try program.write("", "elsewhere/x")
        let listed = try program.run(
            [Program.path, "app", "list", "--config", program.path("place/rouse.conf")],
            below: "elsewhere")
        #expect(listed.output.contains("shop"), "\(listed.errors)")
        #expect(!program.exists("elsewhere/rouse.db"))
        // What the command line and the environment say starts where the command is run.
        let shown = try program.run(
            [
                Program.path, "serve", "--config", "../place/rouse.conf", "--set",
                "store.path=mine.db", "--print-config",
            ], settings: ["ROUSE_WEBHOOKS_CA_FILE": "ca.pem"], below: "elsewhere"
        ).output
        #expect(shown.contains("store.path = mine.db\n"))
        #expect(shown.contains("webhooks.ca_file = ca.pem\n"))
        #expect(shown.contains("tls.key_file = ../place/tls/server.key\n"))
    }

    @Test("no command makes a store that nobody asked for")
    func noSecondStore() throws {
        let program = try Program()
        for words in [
            ["app", "create", "shop"], ["app", "list"], ["push", "status"], ["push", "check"],
            ["campaign", "list", "shop"], ["backup", "copy"],
            ["explain", "--app", "a", "--message", "m"],
        ] {
            let refused = try program.rouse(words)
            #expect(refused.status != 0, "\(words)")
            #expect(refused.errors.contains("rouse.db"), "\(words): \(refused.errors)")
            #expect(!program.exists("rouse.db"), "\(words)")
        }
        let refused = try program.rouse("app", "create", "shop")
        #expect(refused.errors.contains("--new-store") && refused.errors.contains("--config"))
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        let other = try program.rouse("app", "create", "other", "--store", "rouse.db")
        #expect(other.status == 0)
        #expect(other.output.contains("rouse app api-key create other --store rouse.db"))
        #expect(try program.rouse("app", "list").output.contains("other"))
    }

    @Test("all mistakes of a file are told at once, each with its line")
    func mistakes() throws {
        let program = try Program()
        try prepare(
            program,
            """
            listen.prot = 1
            listen.port = many
            limits.user_reads
            loops = 1
            loops = 2
            webhooks.allow_networks = here
            store.postgres = postgresql://rouse:hunter2@[db/rouse
            webhooks.ca_file = gone.pem
            """)
        let checked = try program.run(
            [
                Program.path, "serve", "--config", "place/rouse.conf", "--check-config", "--set",
                "timers.drian=5",
            ], settings: ["ROUSE_LOG_LEVL": "info"])
        #expect(checked.status == 78)
        let told = checked.errors
        for line in [
            "place/rouse.conf:3: unknown key `listen.prot`; did you mean `listen.port`?",
            "place/rouse.conf:4: listen.port must be a port, 0 to 65535, not `many`",
            "place/rouse.conf:5: expected `key = value`, found `limits.user_reads`",
            "place/rouse.conf:7: loops is set already at place/rouse.conf:6; keep one",
            "place/rouse.conf:8: webhooks.allow_networks: here is not a list of networks",
            "place/rouse.conf:9: store.postgres: libpq cannot read it",
            "place/rouse.conf:10: webhooks.ca_file: cannot read place/gone.pem",
            "environment: ROUSE_LOG_LEVL names no setting; did you mean ROUSE_LOG_LEVEL?",
            "--set timers.drian: unknown key `timers.drian`; did you mean `timers.drain`?",
        ] { #expect(told.contains("\n  \(line)"), "\(line)\n---\n\(told)") }
        #expect(told.hasPrefix("rouse serve: 9 mistakes:\n"), "\(told)")
        #expect(!told.contains("hunter2"))
        // The same is said where the server would start, and nothing was made.
        let served = try program.rouse("serve", "--config", "place/rouse.conf")
        #expect(served.status == 78 && served.errors.contains("7 mistakes:"), "\(served.errors)")
        #expect(!program.exists("place/rouse.db"))
    }

    @Test(
        "no password is printed",
        arguments: [
            "postgresql://rouse:hunter2@db.example/rouse?sslmode=verify-full",
            "postgresql://rouse@db.example/rouse?password=hunter2",
            "host=db.example user=rouse password='hunter2 x' dbname=rouse",
            "postgresql://rouse:hunter2@[db/rouse",
        ])
    func passwords(_ address: String) throws {
        let program = try Program()
        try program.write("store.postgres = \"\(address)\"\n", "rouse.conf")
        let shown = try program.rouse("serve", "--config", "rouse.conf", "--print-config")
        #expect(shown.status == 0 && shown.output.contains("store.postgres = "))
        #expect(!shown.all.contains("hunter2"), "\(shown.all)")
        if !address.contains("[") {
            #expect(shown.output.contains("host=db.example") && shown.output.contains("***"))
        }
    }

    @Test("a mistake is told without the secret that stands in it")
    func secretMistakes() throws {
        let secret = "postgresql://rouse:hunter2@db/rouse?sslmoode=require"
        let program = try Program()
        try program.write("store.postgres: \(secret)\n", "colon.conf")
        for words in [
            ["--set", "store.postgres=\(secret)"], ["--set", "store.postgers=\(secret)"],
            ["--set", "store.postgres \(secret)"], ["--config", "colon.conf"],
        ] {
            let told = try program.rouse(["serve", "--check-config"] + words)
            #expect(told.status == 78 && told.errors.contains("store.postg"), "\(told.all)")
            #expect(!told.all.contains("hunter2"), "\(told.all)")
        }
    }

    @Test("a store where relative paths started once is not left for an empty one")
    func formerStore() throws {
        let program = try Program()
        try prepare(program)
        try program.write("", "rouse.db")
        let told = try program.rouse("serve", "--config", "place/rouse.conf", "--check-config")
        #expect(told.status == 78, "\(told.all)")
        #expect(told.errors.contains("place/rouse.db") && told.errors.contains(" rouse.db "))
    }

    @Test("an address without a password is shown as it is")
    func address() throws {
        let address = "postgresql://rouse@db/rouse?passfile=/etc/rouse/pgpass"
        let shown = try Program().rouse(
            "serve", "--set", "store.postgres=\(address)", "--print-config")
        #expect(shown.output.contains("store.postgres = \(address)\n"), "\(shown.all)")
    }

    @Test("the settings in force as JSON are the same, key by key, and hold no password")
    func asJSON() throws {
        let program = try Program()
        try program.write(
            """
            store.postgres = "postgresql://rouse:hunter2@db.example/rouse"
            api.host = "::1"
            timers.drain = 2m
            """, "rouse.conf")
        let words = ["serve", "--config", "rouse.conf", "--print-config"]
        let shown = try program.rouse(words + ["--json"])
        #expect(shown.status == 0 && !shown.all.contains("hunter2"), "\(shown.all)")
        #expect(shown.output.split(separator: "\n").count == 1, "one object, one line")
        let settings = try JSONDecoder().decode(
            [String: String].self, from: Data(shown.output.utf8))
        #expect(settings["api.host"] == "::1" && settings["timers.drain"] == "2m")
        let lines = try program.rouse(words).output.split(separator: "\n")
        #expect(settings.count == lines.count && lines.count > 40)
        for line in lines {
            let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            let value = settings[String(parts[0])] ?? "missing"
            let said = String(parts.count > 2 ? parts[2] : "")
            #expect(said == value || said.hasPrefix("\""), "\(line): \(value)")
        }
    }

    @Test("numbers are shown with their units, and taken with or without")
    func units() throws {
        let program = try Program()
        try program.write(
            """
            timers.drain = 2m
            timers.keepalive = 90
            limits.receiving_bytes = 32MiB
            limits.user_reads = 7/s
            webhooks.deactivate_after = 1d
            """, "rouse.conf")
        let shown = try program.rouse("serve", "--config", "rouse.conf", "--print-config")
        #expect(shown.status == 0, "\(shown.errors)")
        for line in [
            "timers.drain = 2m", "timers.keepalive = 90s", "limits.receiving_bytes = 32MiB",
            "limits.user_reads = 7/s", "webhooks.deactivate_after = 1d",
            "limits.user_mutations = 100/s", "limits.app_requests = 0",
        ] { #expect(shown.output.contains("\n\(line)\n"), "\(line)") }
        try program.write(shown.output, "again.conf")
        let again = try program.rouse("serve", "--config", "again.conf", "--print-config")
        #expect(again.output == shown.output)
        for wrong in ["timers.drain=2w", "limits.receiving_bytes=1KiB", "timers.drain=2h"] {
            let refused = try program.rouse("serve", "--set", wrong, "--print-config")
            #expect(refused.status == 78 && refused.errors.contains("must be"), "\(wrong)")
        }
    }
}
