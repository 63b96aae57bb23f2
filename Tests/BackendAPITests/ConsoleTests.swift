import BackendAPI
import Crypto
import EventLoop
import Feed
import Foundation
import Model
import Testing

/// A browser at the console, without a screen.
struct ConsoleVisitor {
    let server: TestServer
    var cookie = ""
    var csrf = ""

    func send(
        _ method: String, _ path: String, _ body: String = "", headers: [String: String] = [:]
    ) throws -> Exchange {
        var all = headers
        if !cookie.isEmpty, all["cookie"] == nil { all["cookie"] = "rouse_console=\(cookie)" }
        if !csrf.isEmpty, all["x-rouse-csrf"] == nil { all["x-rouse-csrf"] = csrf }
        if !body.isEmpty, all["content-type"] == nil { all["content-type"] = "application/json" }
        return try HTTPClient.send(
            method, path, headers: all, body: body,
            to: .port(try #require(server.api.consolePort)))
    }

    func login(_ token: String, headers: [String: String] = [:]) throws -> Exchange {
        try send("POST", "/console/login", #"{"token":"\#(token)"}"#, headers: headers)
    }

    /// Logs in with a token of this role.
    static func entered(_ server: TestServer, role: String) throws -> ConsoleVisitor {
        var visitor = ConsoleVisitor(server: server)
        let answer = try visitor.login(try server.consoleToken(role).secret)
        try #require(answer.status == 200, "\(answer.body)")
        let line = try #require(answer.headers["set-cookie"])
        visitor.cookie = cookieValue(line)
        visitor.csrf = try #require(try answer.json["csrf"].string)
        return visitor
    }
}

extension TestServer {
    func consoleToken(
        _ role: String, label: String = "anna"
    ) throws -> (id: String, secret: String) {
        let made = try admin(
            "POST", "/console/tokens", #"{"role":"\#(role)","label":"\#(label)"}"#)
        try #require(made.status == 201, "\(made.body)")
        return (
            try #require(try made.json["id"].string), try #require(try made.json["secret"].string)
        )
    }
}

/// The console as a browser meets it: who gets in, what they may, and what is written down.
@Suite struct ConsoleTests {
    let server: TestServer

    init() throws { server = try TestServer(hasConsole: true) }

    private var nobody: ConsoleVisitor { ConsoleVisitor(server: server) }

    @Test("its pages come from this server alone, and no other page may hold them")
    func pages() throws {
        defer { server.stop() }
        for path in ["/", "/console"] {
            let answer = try nobody.send("GET", path)
            #expect(answer.status == 308 && answer.headers["location"] == "/console/")
        }
        let page = try nobody.send("GET", "/console/")
        #expect(page.status == 200)
        #expect(!page.body.contains("<script>") && !page.body.contains(" style="))
        #expect(!page.body.contains("<style") && !page.body.contains("//cdn"))
        let policy = try #require(page.headers["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self';"))
        #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
        let files = page.body.matches(of: #//console/files/([a-z.]+)/#).map { String($0.1) }
        #expect(files.count == 3)
        let scripts = try ["app.js"].flatMap { name in
            try nobody.send("GET", "/console/files/\(name)").body
                .matches(of: #/from "\./([a-z.]+)"/#).map { String($0.1) }
        }
        #expect(scripts.count == 11)
        for file in files + scripts {
            let answer = try nobody.send("GET", "/console/files/\(file)")
            #expect(answer.status == 200 && !answer.body.isEmpty, "\(file)")
            #expect(answer.headers["x-content-type-options"] == "nosniff")
        }
        // Refusals, too.
        for (method, path, status) in [
            ("GET", "/console/files/none.js", 404), ("GET", "/v1/devices", 404),
            ("POST", "/console/", 405), ("GET", "/console/login", 405),
            ("GET", "/console/session", 204), ("GET", "/console/api/apps", 401),
            ("GET", "/console/live", 401), ("POST", "/console/logout", 401),
            ("PUT", "/console/api/apps", 401), ("GET", "/console/files/..%2Fapp.js", 404),
        ] {
            let answer = try nobody.send(method, path)
            #expect(answer.status == status, "\(method) \(path)")
            #expect(answer.headers["x-frame-options"] == "DENY", "\(method) \(path)")
            #expect(answer.headers["content-security-policy"] == policy, "\(method) \(path)")
        }
    }

    @Test("a token lets an operator in until it is revoked; a wrong one does not")
    func login() throws {
        defer { server.stop() }
        #expect(try nobody.login("rct_wrong").status == 401)
        let token = try server.consoleToken("read-only")
        #expect(token.secret.hasPrefix("rct_") && token.secret.utf8.count == 47)
        #expect(try !server.admin("GET", "/console/tokens").body.contains(token.secret))
        let answer = try nobody.login(token.secret)
        let line = try #require(answer.headers["set-cookie"])
        for part in ["; Path=/console", "; HttpOnly", "; SameSite=Strict"] {
            #expect(line.contains(part))
        }
        #expect(!line.contains("Secure"))
        let proxied = try nobody.login(token.secret, headers: ["x-forwarded-proto": "https"])
        #expect(try #require(proxied.headers["set-cookie"]).hasSuffix("; Secure"))
        let cookie = cookieValue(line)
        let visitor = ConsoleVisitor(
            server: server, cookie: cookie, csrf: try #require(try answer.json["csrf"].string))
        let session = try visitor.send("GET", "/console/session")
        #expect(try session.json["role"].string == "read-only")
        #expect(try session.json["label"].string == "anna")
        #expect(try visitor.send("GET", "/console/api/apps").status == 200)
        #expect(try server.admin("DELETE", "/console/tokens/\(token.id)").status == 204)
        #expect(try visitor.send("GET", "/console/api/apps").status == 401)
        #expect(try visitor.send("GET", "/console/live").status == 401)
        #expect(try nobody.login(token.secret).status == 401)
    }

    @Test("two consoles on one host, such as two tunnels, leave each other's cookie alone")
    func twoOfOneHost() throws {
        defer { server.stop() }
        let nobody = ConsoleVisitor(server: server)
        let token = try server.consoleToken("read-only").secret
        let answer = try nobody.login(token, headers: ["host": "127.0.0.1:7490"])
        let line = try #require(answer.headers["set-cookie"])
        #expect(line.hasPrefix("rouse_console_7490="))
        let both = "rouse_console_7491=other; rouse_console_7490=\(cookieValue(line))"
        func status(_ port: Int) throws -> Int {
            try nobody.send(
                "GET", "/console/api/apps",
                headers: ["host": "127.0.0.1:\(port)", "cookie": both]
            ).status
        }
        #expect(try status(7490) == 200)
        #expect(try status(7491) == 401)
    }

    @Test("a session ends with its token's time, and when its operator logs out")
    func sessionEnds() throws {
        defer { server.stop() }
        let visitor = try ConsoleVisitor.entered(server, role: "read-only")
        let out = try visitor.send("POST", "/console/logout")
        #expect(out.status == 204)
        #expect(out.headers["set-cookie"]?.contains("Max-Age=0") == true)
        #expect(try visitor.send("GET", "/console/session").status == 204)
        let secret = "rct_short"
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        _ = try server.commit([
            .administer(
                .putConsoleToken(
                    ConsoleTokenRecord(
                        tokenID: "ct_short", hash: Digest.sha256(Array(secret.utf8)), label: "",
                        role: .admin, createdAt: now, expiresAt: now + 1_000)))
        ])
        let answer = try nobody.login(secret)
        let line = try #require(answer.headers["set-cookie"])
        let short = ConsoleVisitor(
            server: server,
            cookie: cookieValue(line))
        var statuses: Set<Int> = []
        while !statuses.contains(204) {
            statuses.insert(try short.send("GET", "/console/session").status)
        }
        #expect(statuses.isSubset(of: [200, 204]))
        let over = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        // The session's clock and the wall's show their milliseconds apart.
        #expect(over + 1 >= now + 1_000)
    }

    @Test("who may look changes nothing")
    func roles() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let reader = try ConsoleVisitor.entered(server, role: "read-only")
        let changes: [(String, String, String)] = [
            ("POST", "apps", #"{"app":"other"}"#), ("PATCH", "apps/shop", #"{"grace_seconds":9}"#),
            ("DELETE", "apps/shop", ""), ("POST", "apps/shop/api-keys", ""),
            ("POST", "apps/shop/campaigns", #"{"push":{"body":"x"},"dry_run":true}"#),
        ]
        for (method, path, body) in changes {
            let answer = try reader.send(method, "/console/api/\(path)", body)
            #expect(answer.status == 403, "\(method) \(path): \(answer.body)")
        }
        #expect(try reader.send("GET", "/console/api/apps").json["apps"].count == 1)
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let changed = try admin.send(
            "PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#)
        #expect(changed.status == 200)
        #expect(try reader.send("GET", "/console/api/apps/shop").json["grace_seconds"].number == 9)
        // A session must not make what outlives it.
        #expect(
            try admin.send("POST", "/console/api/console/tokens", #"{"role":"admin"}"#).status
                == 405)
    }

    @Test("a change that another page sends is refused")
    func forgery() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let host = "test"
        let foreign: [[String: String]] = [
            ["origin": "http://evil.example"], ["origin": "null"],
            ["sec-fetch-site": "cross-site"], ["sec-fetch-site": "same-site"],
        ]
        for headers in foreign {
            let answer = try admin.send(
                "PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#, headers: headers)
            #expect(answer.status == 403, "\(headers)")
            #expect(answer.body.contains("foreign_site"), "\(headers)")
        }
        for csrf in ["wrong", String(admin.csrf.dropLast()) + "!"] {
            let answer = try admin.send(
                "PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#,
                headers: ["x-rouse-csrf": csrf])
            #expect(answer.status == 403 && answer.body.contains("other_session"), "\(csrf)")
        }
        var bare = admin
        bare.csrf = ""
        #expect(try bare.send("DELETE", "/console/api/apps/shop").status == 403)
        #expect(try bare.send("POST", "/console/logout").status == 403)
        let token = try server.consoleToken("admin").secret
        #expect(
            try nobody.login(token, headers: ["origin": "http://evil.example"]).status == 403)
        #expect(
            try nobody.login(token, headers: ["content-type": "text/plain"]).status == 400)
        let own = ["origin": "http://\(host)", "sec-fetch-site": "same-origin"]
        #expect(try nobody.login(token, headers: own).status == 200)
        #expect(
            try admin.send(
                "PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#, headers: own
            ).status == 200)
    }

    @Test("a page of an earlier login is told so, and neither looks nor changes as the later one")
    func otherLogin() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        var later = try ConsoleVisitor.entered(server, role: "read-only")
        // The browser has one cookie for all its pages.
        later.csrf = admin.csrf
        for (method, path) in [
            ("GET", "/console/api/apps"), ("POST", "/console/api/apps/shop/suspend"),
        ] {
            let answer = try later.send(method, path)
            #expect(answer.status == 403)
            #expect(try answer.json["type"].string == "urn:rouse:problem:other_session")
        }
        #expect(try later.send("POST", "/console/logout").status == 403)
        #expect(try later.send("GET", "/console/session").json["role"].string == "read-only")
    }

    @Test("users are opened whose names are the steps of a path")
    func dots() throws {
        defer { server.stop() }
        let app = try server.makeApp("shop")
        let names = [".", "..", "~.", "~..", "~~.", "...", "~", "~x"]
        let list = names.map { "\"\($0)\"" }.joined(separator: ",")
        let made = try server.send(
            "POST", "/v1/conversations", key: app, #"{"participants":[\#(list)]}"#)
        #expect(made.status == 201)
        let reader = try ConsoleVisitor.entered(server, role: "read-only")
        for name in names {
            // As api.js writes it.
            let isStep = [".", ".."].contains(String(name.drop { $0 == "~" }))
            let answer = try reader.send(
                "GET", "/console/api/apps/shop/users/\(isStep ? "~" + name : name)")
            #expect(try answer.json["user"].string == name)
        }
    }

    @Test("who guesses waits, and keeps nobody out who has a token")
    func guessing() throws {
        defer { server.stop() }
        let token = try server.consoleToken("admin").secret
        for _ in 0..<9 { #expect(try nobody.login("rct_guess").status == 401) }
        // One that is right clears the slate.
        #expect(try nobody.login(token).status == 200)
        for _ in 0..<10 { #expect(try nobody.login("rct_guess").status == 401) }
        for _ in 0..<3 {
            let answer = try nobody.login("rct_guess")
            #expect(answer.status == 429)
            let wait = try #require(answer.headers["retry-after"].flatMap { Int($0) })
            #expect((1...60).contains(wait))
        }
        #expect(try nobody.login(token).status == 200)
    }

    @Test("every change is in the audit log before it is made, without secrets")
    func audit() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let secret = "whs_" + String(repeating: "s", count: 30)
        #expect(
            try admin.send(
                "POST", "/console/api/apps/shop/webhooks",
                #"{"url":"https://shop.example/a?key=hidden","secret":"\#(secret)"}"#
            ).status == 201)
        #expect(
            try admin.send(
                "POST", "/console/api/apps/shop/campaigns",
                #"{"push":{"body":"hello"},"dry_run":true}"#
            ).status == 200)
        #expect(
            try admin.send(
                "PATCH", "/console/api/apps/shop", #"{"grace_seconds":0}"#
            ).status == 400)
        let log = try admin.send("GET", "/console/api/audit")
        for word in [secret, "hidden", "dry_run"] { #expect(!log.body.contains(word)) }
        let changes = try log.json["changes"]
        let actions = (0..<changes.count).map { changes[$0]["action"].string ?? "" }
        #expect(
            actions == [
                "PATCH /apps/shop", "POST /apps/shop/webhooks", "POST /console/tokens",
                "POST /apps/shop/api-keys", "POST /apps",
            ])
        #expect(changes[0]["status"].number == 400 && changes[1]["status"].number == 201)
        #expect(changes[0]["detail"].string == "grace_seconds=0")
        #expect(
            changes[1]["detail"].string
                == "secret=(not kept), url=https://shop.example/a")
        #expect(changes[1]["actor"].string?.hasSuffix(" (anna)") == true)
        #expect(changes[1]["address"].string == "127.0.0.1")
        #expect(changes[4]["actor"].string == "admin socket")
        let piece = try admin.send("GET", "/console/api/audit?limit=2")
        let next = try #require(try piece.json["next"].string)
        let rest = try admin.send("GET", "/console/api/audit?limit=2&cursor=\(next)")
        #expect(try rest.json["changes"][0]["action"].string == "POST /console/tokens")
    }

    @Test("no word in a body hides a change, and no secret is kept under another name")
    func auditOfOddBodies() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        func newest() throws -> JSONTree {
            try admin.send("GET", "/console/api/audit?limit=1").json["changes"][0]
        }
        let body = #"{"dry_run":true}"#
        #expect(try admin.send("POST", "/console/api/apps/shop/webhooks", body).status == 400)
        #expect(try newest()["action"].string == "POST /apps/shop/webhooks")
        let key = #"{"private_key":"-----BEGIN PRIVATE KEY-----\nMIGH","x":"whs_abc"}"#
        _ = try admin.send("PUT", "/console/api/apps/shop/push/production", key)
        #expect(try newest()["detail"].string == "private_key=(not kept), x=(not kept)")
        // A name that is repeated for each of many members costs no more than one.
        let name = String(repeating: "n", count: 100_000)
        let many = [String](repeating: "0", count: 16_000).joined(separator: ",")
        _ = try admin.send("PATCH", "/console/api/apps/shop", #"{"\#(name)":[\#(many)]}"#)
        #expect(try newest()["action"].string == "PATCH /apps/shop")
        let turned = "%E2%80%AEpohs"
        _ = try admin.send("POST", "/console/api/apps/\(turned)/suspend")
        #expect(try newest()["action"].string?.contains("\u{202e}") == false)
    }

    @Test("a body is refused where nobody reads it, and nothing is done")
    func bodies() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        for (method, path) in [
            ("POST", "/console/logout"), ("GET", "/console/session"), ("GET", "/console/live"),
            ("GET", "/console/"), ("GET", "/"), ("POST", "/console/api/apps/shop/suspend"),
            ("DELETE", "/console/api/apps/shop"),
        ] {
            let answer = try admin.send(method, path, #"{"reason":"spam"}"#)
            #expect(answer.status == 400, "\(method) \(path): \(answer.status)")
            #expect(answer.body.contains("\(method) takes no body here"), "\(answer.body)")
        }
        let app = try admin.send("GET", "/console/api/apps/shop")
        #expect(try app.json["is_suspended"].flag == false)
        #expect(try admin.send("GET", "/console/session").status == 200)
    }

    @Test("what cannot be written down is not done")
    func unwritten() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        // Of the three writes of a change: the note, the change, and what came of it.
        server.faults.failNextWrite(.full("test"))
        #expect(
            try admin.send("PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#).status
                == 507)
        let app = try admin.send("GET", "/console/api/apps/shop")
        #expect(try app.json["grace_seconds"].number != 9)
        #expect(try admin.send("GET", "/console/api/audit").json["changes"].count == 3)
        server.faults.failReads(.unavailable("test"))
        #expect(try admin.send("GET", "/console/session").status == 503)
        #expect(try nobody.login(try server.consoleToken("admin").secret).status == 503)
        server.faults.failReads(nil)
    }

    @Test("live numbers come as events: what there is at once, then each as it is taken")
    func live() throws {
        defer { server.stop() }
        let begun = Int(SystemClock.monotonicMilliseconds()) - 60_000
        let visitor = try ConsoleVisitor.entered(server, role: "read-only")
        func event(_ id: String?) throws -> (name: String, id: String, data: JSONTree) {
            let answer = try visitor.send(
                "GET", "/console/live", headers: id.map { ["last-event-id": $0] } ?? [:])
            #expect(answer.status == 200)
            #expect(answer.headers["content-type"] == "text/event-stream")
            var fields: [String: String] = [:]
            for line in answer.body.split(separator: "\n") {
                let parts = line.split(separator: " ", maxSplits: 1)
                fields[String(parts[0])] = String(parts[1])
            }
            return (
                try #require(fields["event:"]), try #require(fields["id:"]),
                try JSONTree(try #require(fields["data:"]))
            )
        }
        let history = try event(nil)
        #expect(history.name == "history" && history.data.count >= 1)
        let next = try event(history.id)
        #expect(next.name == "sample" && next.id != history.id)
        #expect(try #require(next.data["at"].number) > (try #require(history.data[0]["at"].number)))
        // The page draws by a clock that nobody sets.
        let places = [history.data[0]["monotonic"].number, next.data["monotonic"].number]
        #expect(try #require(places[1]) > (try #require(places[0])))
        #expect(try #require(places[0]) >= begun)
        #expect(next.data["queue_ages"].names.contains("webhooks"))
        // Of the process before, and one that makes no sense.
        for id in ["old-1", "x", "\(next.id)9"] { #expect(try event(id).name == "history") }
    }

    @Test("a node tells of itself; a credential that is not there is not examined")
    func nodes() throws {
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let nodes = try admin.send("GET", "/console/api/nodes")
        #expect(try nodes.json["server"]["is_shared"].flag == false)
        #expect(try nodes.json["nodes"].count == 0)
        let path = "/console/api/apps/shop/push/development/default/check"
        #expect(try admin.send("POST", path).status == 404)
        try server.addPushCredential(to: "shop")
        // No gateway runs here.
        #expect(try admin.send("POST", path).status == 503)
    }
}

/// The value in a `Set-Cookie` line.
private func cookieValue(_ line: String) -> String {
    String(line.drop { $0 != "=" }.dropFirst().prefix { $0 != ";" })
}
