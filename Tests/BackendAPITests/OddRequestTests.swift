import Feed
import Foundation
import Model
import Testing
import Wake

@testable import BackendAPI

/// What a backend seldom means: it is refused in words, or stands in the description.
@Suite struct OddRequestTests {
    private static let id = "0190a1b2-c3d4-7123-8456-789abcdef012"

    private func withShop(_ body: (TestServer, String) throws -> Void) throws {
        let server = try TestServer()
        defer { server.stop() }
        try body(server, try server.makeApp("shop"))
    }

    private struct Operation {
        let method: String
        let path: String
        var takesBody = false
    }

    /// The operations of an app's backend, as the description lists them.
    private static func operations() throws -> [Operation] {
        let file = SpecificationTests.root.appendingPathComponent("Protocol/backend-api.yaml")
        let text = try String(contentsOf: file, encoding: .utf8)
        var all: [Operation] = []
        var path = ""
        for line in text.split(separator: "\n").drop(while: { $0 != "paths:" }) {
            if line.hasPrefix("components:") { break }
            if let found = line.wholeMatch(of: #/  (/.*):/#) { path = String(found.1) }
            if let found = line.wholeMatch(of: #/    (get|put|post|delete|patch):/#) {
                all.append(Operation(method: found.1.uppercased(), path: path))
            }
            if line == "      requestBody:" { all[all.count - 1].takesBody = true }
        }
        return all.filter { $0.path.hasPrefix("/v1/") }
    }

    @Test("a body is refused wherever the description lists none, and there alone")
    func bodies() throws {
        let operations = try Self.operations()
        #expect(operations.count { $0.takesBody } > 12)
        #expect(operations.count { !$0.takesBody } > 30)
        try withShop { server, key throws in
            for operation in operations {
                let path = operation.path.replacing(#/\{[a-z_]+\}/#, with: Self.id)
                let answer = try server.send(operation.method, path, key: key, "{}")
                let words = "\(operation.method) takes no body here"
                #expect(
                    answer.body.contains(words) != operation.takesBody,
                    "\(operation.method) \(path): \(answer.status) \(answer.body)")
                if !operation.takesBody { #expect(answer.status == 400) }
                // Who has no key learns nothing of it.
                #expect(try server.send(operation.method, path, "{}").status == 401)
            }
        }
    }

    /// The operations of the admin API that take a body; all others refuse one.
    private static let adminBodies: Set = [
        "POST /apps", "PATCH /apps/{app}", "PUT /apps/{app}/issuer-keys/{kid}",
        "PUT /apps/{app}/push/{environment}", "PUT /apps/{app}/push/{environment}/{name}",
        "POST /console/tokens", "POST /apps/{app}/campaigns",
        "POST /apps/{app}/users/{user}/tags", "POST /apps/{app}/users/{user}/devices/{device}/tags",
        "POST /apps/{app}/webhooks", "PATCH /apps/{app}/webhooks/{webhook}",
        "POST /apps/{app}/webhooks/{webhook}/secrets",
    ]

    @Test("an operator's body is refused wherever none is taken, and there alone")
    func operatorBodies() throws {
        let routes = BackendAPI.adminRoutes.routes
        #expect(Self.adminBodies.isSubset(of: routes.map { "\($0.method) \($0.template)" }))
        try withShop { server, _ throws in
            for route in routes where route.query != nil {
                let path = route.template.replacing("{app}", with: "shop")
                    .replacing(#/\{[a-z_]+\}/#, with: Self.id)
                let answer = try server.admin(route.method, path, "{}")
                let taken = Self.adminBodies.contains("\(route.method) \(route.template)")
                #expect(
                    answer.body.contains("\(route.method) takes no body here") != taken,
                    "\(route.method) \(path): \(answer.status) \(answer.body)")
                if !taken { #expect(answer.status == 400) }
            }
            #expect(try server.admin("GET", "/apps/shop").json["is_suspended"].flag == false)
            #expect(try server.send("GET", "/livez", "{}").status == 200)
        }
    }

    @Test("a parameter that is there and empty is refused")
    func emptyParameters() throws {
        try withShop { server, key throws in
            for path in [
                "/v1/users?prefix=", "/v1/users?prefix", "/v1/users?limit=", "/v1/users?cursor=",
                "/v1/conversations/\(Self.id)/messages?order=", "/v1/scheduled?state=",
                "/v1/push/feedback?after=", "/v1/messages/\(Self.id)/explain?user=",
            ] {
                let answer = try server.send("GET", path, key: key)
                #expect(answer.status == 400, "\(path): \(answer.body)")
            }
            let revoke = "/v1/users/anna/sessions/revoke?reauthenticate="
            #expect(try server.send("POST", revoke, key: key).status == 400)
        }
    }

    @Test("a reference's end is kept as it was given, also one that has passed, or refused")
    func references() throws {
        try withShop { server, key throws in
            let made = try server.send(
                "POST", "/v1/conversations", key: key,
                #"{"id":"\#(Self.id)","participants":["anna"]}"#)
            #expect(made.status == 201)
            func publish(_ end: String) throws -> Exchange {
                let digest = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
                let reference =
                    #"{"url":"https://x.example/1","size":9,"digest":"\#(digest)","#
                    + #""expires_at":"\#(end)"}"#
                return try server.send(
                    "POST", "/v1/conversations/\(Self.id)/messages", key: key,
                    #"{"parts":[{"mime_type":"a/b","reference":\#(reference)}]}"#)
            }
            for end in ["1970-01-01T00:00:00.001Z", "2020-01-01T00:00:00.000Z"] {
                let published = try publish(end)
                #expect(published.status == 201, "\(published.body)")
                let id = try #require(try published.json["id"].string)
                let shown = try server.send("GET", "/v1/messages/\(id)", key: key)
                let reference = try shown.json["parts"][0]["reference"]
                #expect(reference["expires_at"].string == end)
            }
            let refused = try publish("1970-01-01T00:00:00Z")
            #expect(refused.status == 400)
            #expect(refused.body.contains("expires_at: must be after 1970-01-01T00:00:00Z"))
        }
    }

    @Test("a user whom only an announcement named is one whose blocks can be set")
    func announced() throws {
        try withShop { server, key throws in
            let block = "/v1/users/anna/blocks/ben"
            #expect(try server.send("PUT", block, key: key).status == 404)
            let announced = try server.send(
                "POST", "/v1/announcements", key: key,
                #"{"users":["anna"],"parts":[{"mime_type":"a/b","text":""}]}"#)
            #expect(announced.status == 201)
            #expect(try server.send("GET", "/v1/users/anna", key: key).status == 200)
            #expect(try server.send("PUT", block, key: key).status == 204)
            let blocks = try server.send("GET", "/v1/users/anna/blocks", key: key)
            #expect(try blocks.json["blocks"][0]["user"].string == "ben")
        }
    }

    @Test("an idempotency key belongs to the path as it was written")
    func writtenPaths() throws {
        try withShop { server, key throws in
            _ = try server.openDevice("shop", user: "anna")
            let once = ["idempotency-key": "once"]
            for (path, status) in [
                ("/v1/users/anna/blocks/ben", 204), ("/v1/users/anna/blocks/ben", 204),
                ("/v1/users/%61nna/blocks/ben", 409), ("/v1/users/anna/blocks/be%6e", 409),
            ] {
                #expect(try server.send("PUT", path, key: key, headers: once).status == status)
            }
            #expect(try server.send("PUT", "/v1/users/%61nna/blocks/ben", key: key).status == 204)
        }
    }

    @Test("an address to which no delivery can come is refused with what is wrong with it")
    func webhooks() throws {
        let long = String(repeating: "a", count: 64)
        let flaws: [(url: String, words: String)] = [
            ("ftp://h/", "begin with http"), ("//h/", "begin with http"), ("h.example", "begin"),
            ("https://u:p@h/", "user or password"), ("https://@h/", "user or password"),
            ("https://h/#f", "fragment"), ("https://h/#", "fragment"), ("https://h?#", "fragment"),
            ("https://h/a b", "blanks"), (" https://h/", "blanks"), ("https://h/\u{e9}", "ASCII"),
            ("https://h:0/", "port"), ("https://h:65536/", "port"), ("https://h:+80/", "port"),
            ("https://h:99999999999999999999/", "port"), ("https://h:8a/", "port"),
            ("https://", "name a host"), ("https:///x", "name a host"), ("https://?x", "host"),
            ("https://:80/", "name a host"), ("https://a..b/", "host of letters"),
            ("https://.h/", "host of letters"), ("https://-h/", "host of letters"),
            ("https://\(long).example/", "host of letters"), ("https://[zz]/", "brackets"),
            ("https://[::1/", "host of letters"), ("https://[127.0.0.1]/", "brackets"),
            ("https://%31%32%37.0.0.1/", "host of letters"), ("https://h%00/", "host of letters"),
            ("https://ex<a>mple/", "host of letters"), ("https://h\\\\.evil/", "host of letters"),
            ("https://::1/", "brackets"),
            ("https://h/" + String(repeating: "a", count: 2_048), "2048 bytes"),
        ]
        try withShop { server, key throws in
            for (url, words) in flaws {
                let answer = try server.send(
                    "POST", "/v1/webhooks", key: key, #"{"url":"\#(url)"}"#)
                #expect(answer.status == 400, "\(url): \(answer.body)")
                let detail = try answer.json["detail"].string ?? ""
                #expect(detail.hasPrefix("url: ") && detail.contains(words), "\(url): \(detail)")
            }
            for url in [
                "https://h", "HTTPS://H/", "http://h.example.:8080/a?b=c", "http://my_host:/",
                "https://[2001:db8::1]:443/x", "https://192.0.2.1/", "https://xn--nxa.example/%20",
                "https://h/a@b:c",
            ] {
                let answer = try server.send(
                    "POST", "/v1/webhooks", key: key, #"{"url":"\#(url)"}"#)
                #expect(answer.status == 201, "\(url): \(answer.body)")
            }
        }
    }

    @Test("an app whose name hides something is not made; one that is there already goes on")
    func names() throws {
        let server = try TestServer()
        defer { server.stop() }
        for (name, words) in [
            (" shop", "a blank"), ("shop ", "a blank"), (" ", "a blank"), ("\u{a0}x", "a blank"),
            ("sh\u{200b}op", "U+200B"), ("\u{feff}shop", "U+FEFF"), ("shop\u{200d}", "U+200D"),
            ("sh\u{202e}op", "U+202E"), ("a\u{3164}b", "U+3164"), ("a\u{2028}b", "U+2028"),
            ("a\u{85}b", "U+0085"),
        ] {
            let made = try server.admin("POST", "/apps", #"{"app":"\#(name)"}"#)
            #expect(made.status == 400, "\(name.debugDescription): \(made.body)")
            let detail = try made.json["detail"].string ?? ""
            #expect(detail.hasPrefix("app: ") && detail.contains(words), "\(detail)")
        }
        for name in ["Sh op", "-x", "\u{5e97}", "\u{e9}t\u{e9}", "e\u{301}"] {
            #expect(try server.admin("POST", "/apps", #"{"app":"\#(name)"}"#).status == 201)
        }
        let old = "sh\u{200b}op "
        _ = try server.commit([
            .administer(.putApp(AppRecord(app: AppID(old), createdAt: Timestamp(milliseconds: 1))))
        ])
        let path = "/apps/sh%E2%80%8Bop%20"
        #expect(try server.admin("GET", path).json["app"].string == old)
        #expect(try server.admin("PATCH", path, #"{"grace_seconds":9}"#).status == 200)
        let key = try server.admin("POST", path + "/api-keys").json["secret"].string
        let made = try server.send(
            "POST", "/v1/conversations", key: try #require(key), #"{"participants":["anna"]}"#)
        #expect(made.status == 201)
        #expect(try server.admin("DELETE", path).status == 204)
    }
}
