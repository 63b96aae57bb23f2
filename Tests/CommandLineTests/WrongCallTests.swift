import Foundation
import Testing

/// Whatever somebody calls wrongly, what they read is words: no name of a type, no case of an
/// enumeration, no error of a library as it prints itself.
@Suite struct WrongCallTests {
    /// What a person must not be shown.
    static let leaks: [String] = [
        #"\b[a-z][A-Za-z]*\(""#,  // unavailable("...
        #"\b[a-z]+[A-Z][A-Za-z]*\("#,  // invalidCertificate(
        #"\b[A-Z][A-Za-z]*Error\b"#, #"\bNS[A-Z][A-Za-z]+"#, "Error Domain", #"Optional\("#,
        "CodingKey", "Swift\\.", "Foundation", "Fatal error", #"\.swift\b"#, "Cannot initialize",
        "UserInfo", #"\brouse [a-z -]*: *\n"#,
    ]

    static func leak(in text: String) throws -> String? {
        for pattern in leaks {
            let found = try Regex(pattern).wordBoundaryKind(.simple)
            if let match = text.firstMatch(of: found) { return String(text[match.range]) }
        }
        return nil
    }

    /// Exit statuses that `rouse(1)` names.
    static let statuses: Set<Int32> = [1, 64, 65, 69, 73, 78]

    private func judge(_ words: [String], _ program: Program) throws {
        let outcome = try program.rouse(words)
        let call = "rouse " + words.joined(separator: " ")
        #expect(Self.statuses.contains(outcome.status), "\(call): \(outcome.status)")
        #expect(!outcome.errors.isEmpty || !outcome.output.isEmpty, "\(call) says nothing")
        if let leak = try Self.leak(in: outcome.all) {
            Issue.record("\(call) shows `\(leak)`:\n\(outcome.all.prefix(1_000))")
        }
        #expect(outcome.errors.split(separator: "\n").count < 80, "\(call): \(outcome.errors)")
    }

    @Test("what leaks is seen")
    func seen() throws {
        for text in [
            #"rouse serve: unavailable("rouse.db.lock is locked")"#,
            "Error Domain=NSCocoaErrorDomain Code=260", "DecodingError.dataCorrupted: x",
            "user Optional(\"anna\")", "certificate: keyMismatch(2)", "Foo.swift:12: Fatal error",
        ] { #expect(try Self.leak(in: text) != nil, "\(text)") }
        for text in [
            "rouse serve: the store cannot be used: rouse.db is locked (SQLite 5)",
            "--key x.pem is a private key; give its public half (openssl pkey -in x.pem -pubout)",
            "an app has at most 32 campaigns (it has 32)",
        ] { #expect(try Self.leak(in: text) == nil, "\(text)") }
    }

    @Test("every command refuses what is wrong with its own line, in words")
    func ofTheTable() throws {
        let program = try Program()
        var calls = 0
        for command in try TableCommand.all(program) {
            var wrong = [command.words + ["--frobnicate"], command.words + ["-x"]]
            let needed = command.operands.filter { !$0.hasPrefix("[") }
            if !needed.isEmpty { wrong.append(command.words) }
            if !command.operands.contains(where: { $0.hasSuffix("...]") }) {
                let many = Array(repeating: "x", count: command.operands.count + 1)
                wrong.append(command.words + many)
            }
            for option in command.options {
                let operands = needed.map { _ in "x" }
                guard let value = option.value else {
                    if option.name == "json" {
                        wrong.append(command.words + operands + ["--json=yes"])
                    }
                    continue
                }
                if option.name == command.options.first?.name {
                    wrong.append(command.words + operands + ["--\(option.name)"])
                }
                if value.allSatisfy({ $0.isLowercase || "|-0123456789".contains($0) }) {
                    wrong.append(command.words + operands + ["--\(option.name)", "Wrong"])
                }
            }
            for words in wrong { try judge(words, program) }
            calls += wrong.count
        }
        #expect(calls >= 200)
    }

    @Test("files that are not what they should be are refused in words")
    func files() throws {
        let program = try Program()
        try program.write("this is no JSON, no PEM, no store and no log\n", "text")
        try program.write("{\"app\": 3}", "wrong.json")
        try program.write("\u{0}\u{1}\u{2}", "bytes")
        try program.write("listen.port = x\n", "wrong.conf")
        try program.write("x", "folder/x")
        #expect(try program.rouse("dev", "certificates", "tls").status == 0)
        #expect(try program.rouse("dev", "key", "key").status == 0)
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        try program.write(
            "tls.certificate_file = tls/server.pem\ntls.key_file = key.pem\n", "mismatch.conf")
        try program.write(
            "tls.certificate_file = text\ntls.key_file = tls/server.key\n", "nopem.conf")
        try program.write(
            """
            tls.certificate_file = tls/server.pem
            tls.key_file = tls/server.key
            listen.port = 0
            api.port = 0
            """, "right.conf")
        for line in Self.fileCalls {
            try judge(line.split(separator: " ").map(String.init), program)
        }
    }

    static let fileCalls: [String] = [
        "serve", "serve --config gone", "serve --config folder", "serve --config bytes",
        "serve --config wrong.conf", "serve --config mismatch.conf", "serve --config nopem.conf",
        "serve --config right.conf --set store.path=text",
        "serve --config right.conf --set store.path=folder",
        "serve --config right.conf --set store.path=gone/rouse.db",
        "serve --config right.conf --set listen.host=nonsense",
        "serve --config right.conf --set api.host=nonsense",
        "serve --config right.conf --set listen.port=1 --set listen.host=192.0.2.1",
        "serve --config right.conf --set store.postgres=nonsense",
        "serve --config right.conf --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "serve --config right.conf --set listen.prot=1:1:",
        "serve --config right.conf --set webhooks.ca_file=gone --check-config",
        "app list --store gone", "app list --store text", "app list --store folder",
        "app list --socket gone", "app list --socket text", "app list --config wrong.conf",
        "app create shop", "app show gone", "app set gone --grace 3",
        "app set shop", "app set shop --grace 99999999999999999999",
        "app policy gone --preset adaptive", "app policy shop --grace-quantile 101",
        "app remove shop", "app suspend gone", "app user revoke gone anna",
        "app device show shop nonsense", "app devices gone anna",
        "app issuer-key add shop --kid k --key gone",
        "app issuer-key add shop --kid k --key text",
        "app issuer-key add shop --kid k --key key.pem",
        "app issuer-key add shop --kid k --key bytes", "app issuer-key remove shop gone",
        "app api-key revoke shop gone",
        "app push set shop --environment production --key text --key-id A --team T --topic a.b",
        "app push set shop --environment production --key key.pem",
        "app push set shop --environment production --key key.pem --certificate text",
        "app push set shop --environment production --key gone --certificate text",
        "app push remove shop --environment production",
        "app webhook add shop --url nonsense", "app webhook add shop --url http://x --event y",
        "app webhook show shop gone", "app webhook set shop gone --active no",
        "push check", "push check --store text", "push status --config wrong.conf",
        "backup copy --store gone", "backup copy --store text", "backup --verify text",
        "backup --verify gone", "backup gone/copy", "restore text", "restore gone",
        "import gone --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "import rouse.db --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "import rouse.db", "export new.db", "migrate", "node list", "node drain", "node drain a",
        "node rebalance", "node resume a --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "migrate --set store.postgres=nonsense",
        "export new.db --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "node list --set store.postgres=postgresql://127.0.0.1:1/rouse",
        "campaign create shop --push gone", "campaign create shop --push text",
        "campaign create shop --push wrong.json", "campaign create shop --body x --start soon",
        "campaign create shop --body x --seen-within soon", "campaign show shop gone",
        "campaign pause shop gone", "campaign create shop", "campaign count gone",
        "explain", "explain --app shop --message gone", "explain --app gone --message x",
        "dev certificates text", "dev certificates tls", "dev certificates c --name a:b",
        "dev key key", "dev key text/key", "dev identity-token --key text --kid k",
        "dev identity-token --key gone --kid k --app a --user u --nonce n",
        "dev identity-token --key key.pem --kid k --app a --user u --nonce n --lifetime soon",
        "apns-simulator", "apns-simulator --certificates tls",
        "apns-simulator --certificate text --key text --control s",
        "apns-simulator --certificate gone --key gone --control s",
        "apns-simulator --certificates tls --control gone/s",
        "apns-simulator --certificates text --control s",
        "apns-simulator --certificates tls --control s --clock-offset soon",
        "apns-simulator tell x", "apns-simulator tell x --control gone",
        "apns-simulator tell x --control text",
        "replay gone", "replay folder", "replay text", "replay bytes", "replay text --factor x",
        "fleet --traffic gone", "fleet --traffic bytes", "fleet --policy gone",
        "fleet --policy classic/grace_seconds=x", "fleet --svg gone/x --devices 10",
        "fleet --devices 0", "bench store --only gone", "bench store --scale x",
        "bench store --store text", "bench publish --floor gone", "bench publish --rate x",
        "load idle --connections x", "load push --payload 1", "load first-sync --runs 0",
        "demo --patience x", "conform", "conform --credentials gone --port 1",
        "conform --credentials text --port 1", "conform --credentials wrong.json --port 1",
        "conform --credentials folder --port 1", "conform --coverage --protocol gone",
        "conform --clauses --protocol folder", "conform --self --vectors gone --only nothing",
        "conform client", "conform client --client gone --only nothing",
        "conform driver --port 1", "conform driver --port 1 --ca gone",
        "conform driver --port 1 --ca text --key gone",
        "help gone", "man gone", "man --to text", "man serve --to x", "completion fish",
        "gone", "--gone",
    ]

    @Test("conform refuses a case that there is not, and says so in the format asked for")
    func conform() throws {
        let program = try Program()
        for words in ["conform --list", "conform client --list"] {
            let list = try program.rouse(words: "\(words) --only nosuchcase")
            #expect(list.status == 1)
            #expect(list.errors.contains("no case is called nosuchcase"))
        }
        struct Problem: Decodable {
            let type: String
            let exitStatus: Int32
            let detail: String
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        for words in [
            "--credentials gone --port 1 --format json", "--self --only nosuchcase --format=json",
        ] {
            let refused = try program.rouse(words: "conform \(words)")
            let problem = try decoder.decode(Problem.self, from: Data(refused.output.utf8))
            #expect(problem.type == "urn:rouse:problem:command")
            #expect(problem.exitStatus == refused.status)
            #expect(refused.errors.contains(problem.detail))
        }
        let people = try program.rouse(words: "conform --credentials gone --port 1")
        #expect(people.output.isEmpty)
    }

    @Test("what a running server and a simulator refuse, they refuse in words")
    func ofTheRunning() throws {
        let program = try Program()
        #expect(try program.rouse("dev", "certificates", "tls").status == 0)
        let simulator = Process()
        simulator.executableURL = URL(fileURLWithPath: Program.path)
        simulator.arguments = [
            "apns-simulator", "--certificates", program.path("apns"), "--control",
            program.path("s"), "--json", "--with-parent",
        ]
        let (input, output) = (Pipe(), Pipe())
        simulator.standardInput = input
        simulator.standardOutput = output
        try simulator.run()
        defer {
            simulator.terminate()
            simulator.waitUntilExit()
        }
        #expect(!output.fileHandleForReading.availableData.isEmpty)
        for command in [
            "x", "{}", "[]", #"{"cmd":3}"#, #"{"cmd":"frobnicate"}"#, #"{"cmd":"app_add"}"#,
            #"{"cmd":"app_add","topic":7}"#, #"{"cmd":"device_open","device":"nobody"}"#,
            #"{"cmd":"device_create","device":"a","trust":"/gone"}"#,
            #"{"cmd":"key_add","kid":"K","team":"T","publicKey":"x"}"#, #"{"cmd":null}"#,
        ] {
            try judge(["apns-simulator", "tell", "--control", program.path("s"), command], program)
        }
    }
}
