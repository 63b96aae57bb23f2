import Crypto
import Foundation
import Testing

/// `rouse app` and `rouse dev` as an operator runs them: the real program.
@Suite struct CommandTests {
    /// What a run of the program gave.
    struct Run {
        let status: Int32
        let output: String
        let complaint: String
    }

    let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-command-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    private func rouse(_ arguments: String...) throws -> Run { try run(arguments) }

    private func run(_ arguments: [String]) throws -> Run {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            .deletingLastPathComponent().appendingPathComponent("rouse")
        process.arguments = arguments
        process.currentDirectoryURL = directory
        let (output, complaint) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = complaint
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let errors = complaint.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Run(
            status: process.terminationStatus, output: String(decoding: text, as: UTF8.self),
            complaint: String(decoding: errors, as: UTF8.self))
    }

    private func remove() { try? FileManager.default.removeItem(at: directory) }

    @Test("an app is set up on the file alone")
    func offline() throws {
        defer { remove() }
        let nothing = try rouse("app", "list")
        #expect(nothing.status == 69 && nothing.complaint.contains("there is no store at rouse.db"))
        #expect(try rouse("app", "list", "--socket", "nothing.sock").status == 69)
        #expect(try rouse("push", "check").status == 69)
        #expect(try rouse("import", "rouse.db").status == 78)
        #expect(try rouse("app", "create", "shop", "--grace", "90", "--new-store").status == 0)
        #expect(try rouse("dev", "key", "keys/issuer").status == 0)
        #expect(try rouse("dev", "key", "keys/issuer").status == 73)
        let wrong = try rouse(
            "app", "issuer-key", "add", "shop", "--kid", "k", "--key", "keys/issuer.pem")
        #expect(wrong.status == 1)
        #expect(wrong.complaint.contains("private key"))
        let right = try rouse(
            "app", "issuer-key", "add", "shop", "--kid", "k", "--key", "keys/issuer.pub.pem")
        #expect(right.status == 0)
        let key = try rouse("app", "api-key", "create", "shop")
        #expect(key.output.hasPrefix("rk_") && key.output.count == 47)
        #expect(
            try rouse(
                "app", "push", "set", "shop", "--environment", "production", "--key",
                "keys/issuer.pem", "--key-id", "A", "--team", "T", "--topic", "org.example"
            ).status == 0)
        let status = try rouse("push", "status")
        #expect(status.status == 69 && status.complaint.contains("no server is running"))
        let shown = try rouse("app", "show", "shop", "--json")
        let app = try JSONTree(shown.output)
        #expect(app["grace_seconds"].number == 90)
        #expect(app["issuer_keys"][0]["algorithm"].string == "ES256")
        #expect(app["push"][0]["topics"][0].string == "org.example")
        #expect(try rouse("app", "show", "shop").output.contains("grace: 90"))
        #expect(try rouse("app", "remove", "shop").status == 64)
        #expect(try rouse("app", "remove", "shop", "--yes").status == 0)
        #expect(try rouse("app", "list").output.contains("no apps"))
    }

    @Test("console tokens are made and revoked on the file alone, and the audit log tells of it")
    func console() throws {
        defer { remove() }
        #expect(try rouse("app", "create", "shop", "--new-store").status == 0)
        #expect(try rouse("console", "token", "list").output == "no console tokens\n")
        let made = try rouse(
            "console", "token", "--role", "admin", "--expires", "2h", "--label", "anna")
        #expect(made.status == 0 && made.output.hasPrefix("rct_") && made.output.count == 48)
        #expect(made.complaint.contains(", admin, until "), "\(made.complaint)")
        for (setting, way) in [
            ("7490", "http://127.0.0.1:7490/console/"), ("off", "the console is off"),
        ] {
            try "store.path = rouse.db\nconsole.port = \(setting)\n".write(
                to: directory.appendingPathComponent("rouse.conf"), atomically: true,
                encoding: .utf8)
            let told = try rouse("console", "token", "--config", "rouse.conf").complaint
            #expect(told.contains(way), "\(told)")
        }
        let token = try JSONTree(try rouse("console", "token", "list", "--json").output)["tokens"]
        #expect(token[0]["role"].string == "admin" && token[0]["label"].string == "anna")
        #expect(token[1]["role"].string == "read-only" && token[2]["label"].string == "")
        let id = try #require(token[0]["id"].string)
        for (words, complaint) in [
            (["--role", "owner"], "read-only or admin"), (["--expires", "soon"], "from 1m to 30d"),
            (["--expires", "31d"], "from 1m to 30d"),
            (["--label", String(repeating: "x", count: 65)], "--label must have 0 to 64 bytes"),
        ] {
            let wrong = try run(["console", "token"] + words)
            #expect(wrong.status != 0 && wrong.complaint.contains(complaint), "\(wrong)")
        }
        #expect(try rouse("console", "token", "revoke", id).status == 0)
        let gone = try rouse("console", "token", "revoke", id)
        #expect(gone.status == 1 && gone.complaint.contains("no such console token"))
        let audit = try rouse("console", "audit", "--limit", "3").output
        #expect(audit.split(separator: "\n").count == 4, "\(audit)")
        #expect(audit.contains("command on the store") && audit.contains("404"), "\(audit)")
        #expect(!audit.contains(made.output.dropLast()))
        let two = try JSONTree(try rouse("console", "audit", "--limit", "2", "--json").output)
        #expect(try two["changes"].count == 2 && two["next"].string != nil)
    }

    @Test("a store that a server has open is changed through the server")
    func online() throws {
        defer { remove() }
        let server = try TestServer()
        defer { server.stop() }
        let store = server.directory.appendingPathComponent("store.db").path
        let made = try rouse("app", "create", "shop", "--store", store)
        #expect(made.status == 0)
        #expect(made.complaint.contains("a server has \(store) open"))
        #expect(try server.admin("GET", "/apps/shop").status == 200)
        let listed = try rouse("app", "list", "--socket", server.adminSocket)
        #expect(listed.output.contains("shop"))
        let device = try server.openDevice("shop", user: "anna")
        let changes = try rouse(
            "console", "audit", "--limit", "1", "--json", "--socket", server.adminSocket)
        #expect(try JSONTree(changes.output)["changes"].count == 1)
        let devices = try rouse("app", "devices", "shop", "anna", "--socket", server.adminSocket)
        #expect(devices.output.contains("\(device)"))
        let shown = try rouse(
            "app", "device", "show", "shop", "\(device)", "--socket", server.adminSocket)
        #expect(shown.output.contains("of anna: online"))
        #expect(
            try rouse(
                "app", "device", "remove", "shop", "\(device)", "--socket", server.adminSocket
            ).status == 0)
        let refused = try rouse("app", "create", "shop", "--store", store)
        #expect(refused.status == 1)
        #expect(refused.complaint.contains("the app shop exists"))
    }

    @Test("a store that is open without a socket is not touched")
    func locked() throws {
        defer { remove() }
        let server = try TestServer(hasAdminSocket: false)
        defer { server.stop() }
        let store = server.directory.appendingPathComponent("store.db").path
        let refused = try rouse("app", "list", "--store", store)
        #expect(refused.status == 69)
        #expect(refused.complaint.contains("another process has this database open"))
        #expect(refused.complaint.contains("`fuser \(store).lock` names it"))
        #expect(refused.complaint.contains("--socket"))
        let nobody = try rouse("app", "list", "--socket", store + ".nobody")
        #expect(nobody.status == 69)
        #expect(nobody.complaint.contains("is `rouse serve` running?"))
    }

    @Test("development keys sign tokens that verify, and nothing is overwritten")
    func development() throws {
        defer { remove() }
        for (kind, algorithm) in [("p256", "ES256"), ("ed25519", "EdDSA"), ("rsa", "RS256")] {
            #expect(try rouse("dev", "key", kind, "--kind", kind).status == 0)
            let token = try rouse(
                "dev", "identity-token", "--key", "\(kind).pem", "--kid", "k", "--app", "shop",
                "--user", "anna", "--nonce", "bm9uY2U"
            ).output.trimmingCharacters(in: .newlines)
            let parsed = try CompactToken(token, maximumBytes: 8192)
            let pem = try Data(contentsOf: directory.appendingPathComponent("\(kind).pub.pem"))
            #expect(parsed.verify(with: try PublicKey(pem: Array(pem))))
            #expect(parsed.declaredAlgorithm == algorithm && parsed.keyIdentifier == "k")
            let claims = try TokenMembers(json: parsed.payloadJSON)
            #expect(claims.string("sub") == "anna" && claims.string("aud") == "shop")
            #expect(claims.string("nonce") == "bm9uY2U" && claims.string("iss") != nil)
            let lifetime = (claims.integer("exp") ?? 0) - (claims.integer("iat") ?? 0)
            #expect(lifetime == 300)
        }
        #expect(try rouse("dev", "key", "p256").status == 73)
        #expect(try rouse("dev", "certificates", "certs", "--name", "sync.test").status == 0)
        #expect(try rouse("dev", "certificates", "certs").status == 73)
        let key = directory.appendingPathComponent("certs/server.key").path
        let attributes = try FileManager.default.attributesOfItem(atPath: key)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: directory.appendingPathComponent("certs/\(name)")))
        }
        _ = try TLSContext.server(
            certificateChain: try bytes("server.pem"), privateKey: try bytes("server.key"),
            protocols: [])
        #expect(try rouse("dev", "certificates", "c2", "--name", "a b").status == 64)
    }

    @Test("a campaign is counted, made, shown, held and ended")
    func campaigns() throws {
        defer { remove() }
        let server = try TestServer()
        defer { server.stop() }
        _ = try server.makeApp("shop")
        _ = try server.openDevice("shop", user: "anna")
        let socket = ["--socket", server.adminSocket]
        func campaign(_ words: String...) throws -> Run { try run(["campaign"] + words + socket) }
        let counted = try campaign("count", "shop", "--seen-within", "7d", "--canary", "1.5")
        #expect(counted.status == 0, "\(counted.complaint)")
        #expect(counted.output.hasPrefix("0 devices\n  0 of them first\n"))
        #expect(counted.output.contains("left out, tokenless: 1"))
        let id = "0190a1b2-c3d4-7123-8456-789abcdef0aa"
        let later = Date(timeIntervalSinceNow: 21 * 86_400).formatted(.iso8601)
        let words = [
            "campaign", "create", "shop", "--id", id, "--name", "spring", "--body", "hi",
            "--text", "de=Hallo=Welt", "--title", "T", "--rate", "7", "--canary", "0.5",
            "--canary-wait", "30m", "--expires", "0s", "--tag", "a", "--no-tag", "b",
            "--locale", "de", "--version-min", "2", "--reachability", "wakeable",
        ]
        let local = try run(words + ["--local-start", String(later.dropLast())] + socket)
        #expect(local.status == 1 && local.complaint.contains("exclude each other"))
        let made = try run(words + ["--start", later] + socket)
        #expect(made.status == 0 && made.output == id + "\n", "\(made.complaint)")
        #expect(try campaign("list", "shop").output.contains("scheduled"))
        let shown = try JSONTree(try campaign("show", "shop", id, "--json").output)
        #expect(shown["canary"]["share"].number == 50)
        #expect(shown["canary"]["wait_seconds"].number == 1_800)
        #expect(shown["audience"]["no_tags"][0].string == "b")
        let text = try campaign("show", "shop", id).output
        #expect(text.contains("scheduled since") && text.contains("0/0+ scheduled"))
        let user = try campaign("show", "shop", id, "--user", "anna").output
        #expect(user.contains(": none, audience-locale"))
        #expect(try campaign("pause", "shop", id).output == "campaign \(id) is paused\n")
        // Held, it is waited for no longer; and no bar is drawn where nobody looks.
        let watched = try campaign("show", "shop", id, "--watch").output
        #expect(watched.contains("paused since") && !watched.contains("\r"))
        #expect(try campaign("resume", "shop", id).output.hasSuffix("is scheduled\n"))
        #expect(try campaign("cancel", "shop", id).output.hasSuffix("is cancelled\n"))
        #expect(try campaign("resume", "shop", id).status == 1)
        for words in [["--canary", "100"], ["--seen-within", "7"], ["--canary-wait", "1m"]] {
            let wrong = try run(["campaign", "create", "shop", "--body", "x"] + words + socket)
            #expect(wrong.status == 64, "\(words)")
        }
        for name in ["create", "count", "list", "show", "pause", "resume", "cancel"] {
            let help = try run(["campaign", name, "--help"])
            #expect(help.status == 0 && help.output.contains("examples:"))
        }
    }

    @Test("words that are no command are told the commands that begin so")
    func offers() throws {
        defer { remove() }
        let group = try rouse("app", "api-key", "--help")
        #expect(group.status == 0)
        #expect(group.output.contains("app api-key revoke"))
        #expect(!group.output.contains("app create"))
        #expect(try rouse("app", "frobnicate").complaint.contains("app push set"))
        #expect(try rouse("app", "frobnicate").status == 64)
        #expect(try rouse("frobnicate").complaint.contains("no command `frobnicate`"))
    }
}
