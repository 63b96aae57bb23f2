import Foundation
import Model
import Testing

/// The webhooks' part of `SpecificationTests`.
extension SpecificationTests {
    private static let all = "/v1/webhooks"
    private static let webhook = "0190a1b2-c3d4-7123-8456-789abcdef020"
    private static let one = "/v1/webhooks/\(webhook)"
    private static let absent = "/v1/webhooks/\(unknown)"
    private static let good = #"{"id":"\#(webhook)","url":"https://shop.example/rouse?a=b"}"#
    private static let secret = String(repeating: "s", count: 24)

    /// A request that changes something, and what it takes.
    private static let changes: [(method: String, path: String, body: String)] = [
        ("POST", all, good), ("PATCH", one, #"{"active":true}"#), ("POST", one + "/secrets", "{}"),
        ("DELETE", one + "/secrets/second", ""), ("DELETE", one + "/secrets/newest", ""),
        ("POST", one + "/test", ""), ("DELETE", one, ""),
    ]

    func administerWebhooks(_ server: TestServer, _ key: String, other: String) throws {
        func send(
            _ method: String, _ path: String, _ body: String = "", key: String? = key,
            _ headers: [String: String] = [:]
        ) throws -> Exchange {
            try server.send(method, path, key: key, headers: headers, body)
        }
        #expect(try send("GET", Self.all).json["webhooks"].count == 0)
        for (method, path, body) in Self.changes.dropFirst() {
            #expect(try send(method, path, body).status == 404)
        }
        #expect(try send("GET", Self.one).status == 404)
        let made = try send("POST", Self.all, Self.good)
        #expect(made.status == 201)
        let drawn = try #require(try made.json["secret"].string)
        #expect(drawn.hasPrefix("whs_") && drawn.utf8.count == 47)
        #expect(try send("POST", Self.all, Self.good).status == 409)
        let shown = try send("GET", Self.one)
        #expect(shown.status == 200 && !shown.body.contains(drawn))
        #expect(try shown.json["state"].string == "active")
        #expect(try shown.json["events"].count == 11)
        #expect(try send("GET", Self.all).json["webhooks"].count == 1)
        try tryOut(server, key)
        let narrowed = try send(
            "PATCH", Self.one, #"{"events":["message.read"],"active":false}"#)
        #expect(narrowed.status == 200)
        #expect(try narrowed.json["state"].string == "off")
        #expect(try narrowed.json["events"].count == 1)
        let off = try send("POST", Self.one + "/test")
        #expect(off.status == 409)
        #expect(try off.json["detail"].string?.hasPrefix("the webhook is off, ") == true)
        let given = #"{"secret":"\#(Self.secret)"}"#
        let rotated = try send("POST", Self.one + "/secrets", given)
        #expect(rotated.status == 201)
        #expect(try rotated.json["secret"].string == nil, "given, not drawn")
        #expect(try send("POST", Self.one + "/secrets", "{}").status == 422)
        for _ in 0..<2 {
            #expect(try send("DELETE", Self.one + "/secrets/second").status == 200)
        }
        for _ in 0..<2 {
            #expect(try send("DELETE", Self.one + "/secrets/newest").status == 200)
        }
        #expect(try send("POST", Self.one + "/secrets", "{}").json["secret"].string != nil)
        try refuseWebhooks(server, key, other: other)
        let answers = try (0..<16).map { _ in
            try send("POST", Self.all, #"{"url":"http://shop.example"}"#).status
        }
        #expect(answers == Array(repeating: 201, count: 15) + [422])
        #expect(try send("DELETE", Self.one).status == 204)
        #expect(try send("GET", Self.one).status == 404)
    }

    /// A test is no kind that can be asked for, and while one waits there is no second.
    private func tryOut(_ server: TestServer, _ key: String) throws {
        let asked = #"{"events":["webhook.test"]}"#
        #expect(try server.send("PATCH", Self.one, key: key, asked).status == 400)
        let first = try server.send("POST", Self.one + "/test", key: key)
        #expect(first.status == 202)
        #expect(try server.send("POST", Self.one + "/test", key: key).body == first.body)
        let number = try #require(try first.json["number"].number)
        let id = try #require(try first.json["id"].string)
        #expect(id.hasSuffix(String(UInt64(number), radix: 16)))
    }

    private func refuseWebhooks(_ server: TestServer, _ key: String, other: String) throws {
        let urls = [
            "ftp://shop.example/", "shop.example", "https://", "https://a:b@shop.example/",
            "https://a@shop.example/", "https://shop.example/#x", "https://shop.example/\\u00e9",
            "https://shop.example/" + String(repeating: "x", count: 2048),
            "https://shop.example:0/", "https://shop.example:65536/", "https://shop.example:x/",
        ]
        for url in urls {
            let body = #"{"url":"\#(url)"}"#
            #expect(try server.send("POST", Self.all, key: key, body).status == 400, "\(url)")
            #expect(try server.send("PATCH", Self.one, key: key, body).status == 400, "\(url)")
        }
        for body in [
            "{}", #"{"url":"http://a","events":[]}"#, #"{"url":"http://a","events":["x"]}"#,
            #"{"url":"http://a","secret":"short"}"#, #"{"url":"http://a","extra":1}"#,
        ] {
            #expect(try server.send("POST", Self.all, key: key, body).status == 400, "\(body)")
        }
        let big = String(repeating: " ", count: 600 * 1024)
        for (method, path, body) in Self.changes {
            #expect(try server.send(method, path, body).status == 401)
            #expect(try server.send(method, path + "?x=1", key: key, body).status == 400)
            if path != Self.all {
                #expect(try server.send(method, path, key: other, body).status == 404)
            }
            guard !body.isEmpty else { continue }
            let plain = ["content-type": "text/plain"]
            #expect(
                try server.send(method, path, key: key, headers: plain, body).status == 415)
            #expect(try server.send(method, path, key: key, #"{"extra":1}"#).status == 400)
            #expect(try server.send(method, path, key: key, big).status == 413)
        }
        for path in [Self.all, Self.one] {
            #expect(try server.send("GET", path, key: "rk_wrong").status == 401)
            #expect(try server.send("GET", path + "?x=1", key: key).status == 400)
        }
        #expect(try server.send("GET", Self.all, key: other).json["webhooks"].count == 0)
        #expect(try server.send("GET", Self.absent, key: key).status == 404)
    }

    func failWebhooks(_ server: TestServer, _ key: String) throws {
        for (error, status) in [
            (StoreError.full("test"), 507), (.unavailable("test"), 503), (.corrupt("test"), 500),
        ] {
            server.faults.failWrites(error)
            for (method, path, body) in Self.changes {
                #expect(try server.send(method, path, key: key, body).status == status)
            }
        }
        server.faults.failWrites(nil)
        for (error, status) in [(StoreError.unavailable("test"), 503), (.corrupt("test"), 500)] {
            server.faults.failReads(error)
            for path in [Self.all, Self.one] {
                #expect(try server.send("GET", path, key: key).status == status)
            }
        }
        server.faults.failReads(nil)
    }

    /// Operators see and do the same for any app.
    @Test("webhooks are administered through the admin socket too")
    func adminRoutes() throws {
        let server = try TestServer()
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let path = "/apps/shop/webhooks"
        let made = try server.admin("POST", path, Self.good)
        #expect(made.status == 201)
        #expect(try server.admin("GET", path).json["webhooks"].count == 1)
        #expect(try server.admin("GET", "/apps/other/webhooks").status == 404)
        #expect(try server.admin("DELETE", path + "/\(Self.webhook)").status == 204)
        #expect(try server.admin("GET", path).json["webhooks"].count == 0)
    }
}
