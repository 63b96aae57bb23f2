import Foundation
import Model
import Testing

/// What a backend gets wrong is refused, and told in words it can act by.
@Suite struct MistakeTests {
    private static let room = "0190a1b2-c3d4-7123-8456-789abcdef012"
    private static let other = "0190a1b2-c3d4-7123-8456-789abcdef0ff"
    private static let messages = "/v1/conversations/\(room)/messages"
    private static let parts = #""parts":[{"mime_type":"text/plain","text":"x"}]"#

    private func withShop(_ body: (TestServer, String) throws -> Void) throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        for id in [Self.room, Self.other] {
            let room = #"{"id":"\#(id)","participants":["anna","ben"]}"#
            try #require(try server.send("POST", "/v1/conversations", key: key, room).status == 201)
        }
        try body(server, key)
    }

    private func expect(
        _ answer: Exchange, _ status: Int, _ words: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(answer.status == status, "\(answer.body)", sourceLocation: sourceLocation)
        guard status >= 400 else { return }
        let detail = try answer.json["detail"].string ?? ""
        for word in words {
            #expect(detail.contains(word), "\(detail)", sourceLocation: sourceLocation)
        }
    }

    private static func list(_ count: Int, _ item: (Int) -> String) -> String {
        "[" + (0..<count).map(item).joined(separator: ",") + "]"
    }

    // MARK: audiences

    @Test(
        "an empty list of an audience is no broadcast",
        arguments: [
            "topics", "clients", "locales", "time_zones", "tags", "any_tags", "reachability",
        ])
    func emptyLists(_ name: String) throws {
        try withShop { server, key throws in
            for rest in ["", #","dry_run":true"#] {
                let body = #"{"push":{"body":"x"},"audience":{"\#(name)":[]}\#(rest)}"#
                try expect(
                    try server.send("POST", "/v1/campaigns", key: key, body), 400,
                    "audience.\(name)", "leave it out")
            }
            // Of those who have none of no tags are all: that is what it says.
            let all = #"{"push":{"body":"x"},"audience":{"no_tags":[]},"dry_run":true}"#
            try expect(try server.send("POST", "/v1/campaigns", key: key, all), 200)
        }
    }

    @Test("counts above their limit are 422, and what is too large is 413")
    func statuses() throws {
        try withShop { server, key throws in
            let many = Self.list(33) { "\"t\($0)\"" }
            for name in ["topics", "clients", "tags", "any_tags", "no_tags"] {
                let body = #"{"push":{"body":"x"},"audience":{"\#(name)":\#(many)}}"#
                try expect(
                    try server.send("POST", "/v1/campaigns", key: key, body), 422,
                    "audience.\(name)", "32")
            }
            let tags = Self.list(257) { "\"t\($0)\"" }
            _ = try server.openDevice("shop", user: "anna")
            for name in ["add", "remove"] {
                let body = #"{"\#(name)":\#(tags)}"#
                try expect(
                    try server.send("POST", "/v1/users/anna/tags", key: key, body), 422, name,
                    "256")
            }
            let large = String(repeating: "d", count: 3_072)
            let deep = String(repeating: "[", count: 17) + String(repeating: "]", count: 17)
            for data in [#"{"a":"\#(large)"}"#, #"{"a":\#(deep)}"#] {
                let body = #"{\#(Self.parts),"push":{"body":"x","data":\#(data)}}"#
                try expect(
                    try server.send("POST", Self.messages, key: key, body), 413, "push.data")
            }
            let reserved = #"{\#(Self.parts),"push":{"body":"x","data":{"aps":1}}}"#
            try expect(
                try server.send("POST", Self.messages, key: key, reserved), 400, "push.data")
        }
    }

    @Test("the limit of all languages together is told as one")
    func manyTexts() throws {
        try withShop { server, key throws in
            let text = String(repeating: "x", count: 1_700)
            let texts = (0..<20).map { #""de-x-\#($0)":{"body":"\#(text)"}"# }
                .joined(separator: ",")
            let push = #""push":{"body":"x","texts":{\#(texts)}}"#
            try expect(
                try server.send("POST", Self.messages, key: key, "{\(Self.parts),\(push)}"), 413,
                "push", "32768", "all together", "texts")
            try expect(
                try server.send("POST", "/v1/campaigns", key: key, "{\(push)}"), 413,
                "push", "32768", "all together")
        }
    }

    // MARK: words

    @Test("a refusal names the field and what may stand there")
    func words() throws {
        try withShop { server, key throws in
            func publish(_ fields: String) throws -> Exchange {
                try server.send("POST", Self.messages, key: key, "{\(fields)}")
            }
            let umlauts = String(repeating: "\u{e4}", count: 33)
            let metadata = #"{"changes":[{"path":["a","\#(umlauts)"],"value":"b"}]}"#
            try expect(
                try server.send(
                    "PATCH", "/v1/conversations/\(Self.room)/metadata", key: key, metadata),
                400, "path", "1 to 64 bytes")
            try expect(
                try publish(#"\#(Self.parts),"push":{"body":"x","local":"09:00","zone":"Mars"}"#),
                400, "push.zone", "Europe/Vienna")
            try expect(
                try publish(
                    #"\#(Self.parts),"urgency":"passive","push":{"body":"x","local":"09:00"}"#),
                400, "push.local", "passive")
            try expect(
                try publish(#""parts":[{"mime_type":"text/plain"}]"#), 400, "parts[0]",
                "text, content or reference")
            let long = String(repeating: "e", count: 129)
            for name in ["event", "object", "thread", "category", "target_content_id", "sound"] {
                try expect(
                    try publish(#"\#(Self.parts),"push":{"body":"x","\#(name)":"\#(long)"}"#), 413,
                    "push.\(name)", "128 bytes")
            }
            let past = #"{"push":{"body":"x"},"local_start":"2020-01-01T09:00:00"}"#
            let refused = try server.send("POST", "/v1/campaigns", key: key, past)
            try expect(refused, 400, "local_start")
            #expect(try refused.json["detail"].string?.hasPrefix("local_start") == true)
        }
    }

    @Test("an alert that would be over before it may leave is no alert")
    func ends() throws {
        try withShop { server, key throws in
            func time(_ seconds: Double) -> String {
                Date(timeIntervalSinceNow: seconds).formatted(.iso8601)
            }
            func send(_ push: String, _ rest: String = "") throws -> [Exchange] {
                let fields = #"\#(Self.parts),"push":{"body":"x",\#(push)}\#(rest)"#
                return [
                    try server.send("POST", Self.messages, key: key, "{\(fields)}"),
                    try server.send(
                        "POST", "/v1/announcements", key: key, #"{"users":["anna"],\#(fields)}"#),
                ]
            }
            let late = #","send_at":"\#(time(7_200))""#
            for answer in try send(#""expires_at":"\#(time(-120))""#) {
                try expect(answer, 400, "push.expires_at", "passed")
            }
            for answer in try send(#""at":"\#(time(3_600))","expires_at":"\#(time(3_600))""#) {
                try expect(answer, 400, "push.expires_at", "push.at")
            }
            for answer in try send(#""expires_at":"\#(time(3_600))""#, late) {
                try expect(answer, 400, "push.expires_at", "send_at")
            }
            // Clocks differ by some seconds: the message is worth more than its alert.
            for answer in try send(#""expires_at":"\#(time(-30))""#) { try expect(answer, 201) }
            for answer in try send(#""at":"\#(time(60))","expires_at":"\#(time(3_600))""#) {
                try expect(answer, 201)
            }
            for answer in try send(#""expires_at":"\#(time(9_000))""#, late) {
                try expect(answer, 202)
            }
        }
    }

    // MARK: queries

    @Test("a cursor is taken where it was given, and nowhere else")
    func cursors() throws {
        try withShop { server, key throws in
            for room in [Self.room, Self.other] {
                for _ in 0..<2 {
                    try server.send(
                        "POST", "/v1/conversations/\(room)/messages", key: key, "{\(Self.parts)}")
                }
            }
            let stranger = try server.makeApp("other")
            let later = Date(timeIntervalSinceNow: 3_600).formatted(.iso8601)
            for owner in [key, stranger] {
                let scheduled =
                    #"{"users":["anna"],\#(Self.parts),"send_at":"\#(later)"}"#
                for _ in 0..<2 {
                    try server.send("POST", "/v1/announcements", key: owner, scheduled)
                    try server.send(
                        "POST", "/v1/campaigns", key: owner,
                        #"{"push":{"body":"x"},"start":"\#(later)"}"#)
                }
            }
            let (here, there) = (
                "/v1/conversations/\(Self.room)", "/v1/conversations/\(Self.other)"
            )
            for (own, foreign, owner) in [
                (here + "/participants", there + "/participants", key),
                (here + "/messages", there + "/messages", key),
                (here + "/receipts", there + "/receipts", key),
                ("/v1/users/anna/conversations", "/v1/users/ben/conversations", key),
                ("/v1/scheduled", "/v1/scheduled", stranger),
                ("/v1/campaigns", "/v1/campaigns", stranger),
            ] {
                let first = try server.send("GET", own + "?limit=1", key: key)
                let next = try #require(try first.json["next"].string, "\(own)")
                try expect(try server.send("GET", own + "?cursor=\(next)", key: key), 200)
                try expect(
                    try server.send("GET", foreign + "?cursor=\(next)", key: owner), 400,
                    "cursor", "of this address")
            }
            // In either order, and with names and ids written in more than one way.
            let falling = try server.send("GET", here + "/messages?limit=1", key: key)
            let next = try #require(try falling.json["next"].string)
            let rising = here + "/messages?order=ascending&cursor=\(next)"
            try expect(try server.send("GET", rising, key: key), 200)
            let capitals = "/v1/conversations/\(Self.room.uppercased())/messages?cursor=\(next)"
            try expect(try server.send("GET", capitals, key: key), 200)
            let own = try server.send("GET", "/v1/users/anna/conversations?limit=1", key: key)
            let place = try #require(try own.json["next"].string)
            let same = "/v1/users/%61nna/conversations?cursor=\(place)"
            try expect(try server.send("GET", same, key: key), 200)
        }
    }

    @Test("a query is read to the letter")
    func queries() throws {
        try withShop { server, key throws in
            for query in [
                "limit=1&limit=2", "limit=1&limit=1", "limit=%2B1", "limit=+1", "limit=01",
                "limit=-1", "limit=", "order=ascending&order=descending",
            ] {
                let path = Self.messages + "?" + query
                let name = String(query.prefix { $0 != "=" })
                try expect(try server.send("GET", path, key: key), 400, name)
            }
            for after in ["+1", "%2B1", "-1", "00", ""] {
                let path = "/v1/push/feedback?after=" + after
                try expect(try server.send("GET", path, key: key), 400, "after")
            }
            for device in ["wakes?limit=1&limit=1", "wakes?limit=+1"] {
                let path = "/v1/devices/\(Self.room)/" + device
                try expect(try server.send("GET", path, key: key), 400, "limit")
            }
        }
    }

    @Test("a body that says that it is coded or in another charset is not taken")
    func codings() throws {
        try withShop { server, key throws in
            let body = "{\(Self.parts)}"
            for headers in [
                ["content-encoding": "gzip"], ["content-encoding": "identity, br"],
                ["content-type": "application/json; charset=iso-8859-1"],
                ["content-type": "application/json; charset=\"utf-16\""],
                ["content-type": "application/json; x=y; Charset=latin1"],
                ["content-type": "application/jsonp"],
            ] {
                let answer = try server.send(
                    "POST", Self.messages, key: key, headers: headers, body)
                try expect(answer, 415, "application/json")
                #expect(
                    try answer.json["type"].string == "urn:rouse:problem:unsupported_media_type")
            }
            for headers in [
                ["content-encoding": "identity"], ["content-encoding": "Identity"],
                ["content-type": "application/json;charset=utf-8"],
                ["content-type": "Application/JSON ; charset=\"UTF-8\""],
                ["content-type": "application/json; charset=utf8"],
                ["content-type": "application/json; q=1"],
            ] {
                try expect(
                    try server.send("POST", Self.messages, key: key, headers: headers, body), 201)
            }
        }
    }

    // MARK: what is read

    @Test("a backend reads that a user is suspended")
    func suspended() throws {
        try withShop { server, key throws in
            func isSuspended() throws -> Bool? {
                try server.send("GET", "/v1/users/anna", key: key).json["suspended"].flag
            }
            #expect(try isSuspended() == false)
            #expect(try server.send("POST", "/v1/users/anna/suspend", key: key).status == 204)
            #expect(try isSuspended() == true)
            #expect(try server.send("POST", "/v1/users/anna/resume", key: key).status == 204)
            #expect(try isSuspended() == false)
        }
    }

    @Test("after a lost answer the older secret goes on alone, or the same one is given again")
    func lostSecrets() throws {
        try withShop { server, key throws in
            let made = try server.send(
                "POST", "/v1/webhooks", key: key, #"{"url":"https://shop.example"}"#)
            let id = try #require(try made.json["id"].string)
            let secrets = "/v1/webhooks/\(id)/secrets"
            // The answer is lost, and with it the secret that was drawn.
            try expect(try server.send("POST", secrets, key: key, "{}"), 201)
            try expect(
                try server.send("POST", secrets, key: key, "{}"), 422, "secrets/newest",
                "secrets/second")
            for _ in 0..<2 {
                let back = try server.send("DELETE", secrets + "/newest", key: key)
                #expect(back.status == 200)
                #expect(try back.json["secret_count"].number == 1)
            }
            // One's own may be given again and again.
            let own = #"{"secret":"0123456789abcdef01234567"}"#
            for _ in 0..<2 {
                let given = try server.send("POST", secrets, key: key, own)
                #expect(given.status == 201)
                #expect(try given.json["secret_count"].number == 2)
            }
            try expect(try server.send("POST", secrets, key: key, "{}"), 422)
            #expect(try server.send("DELETE", secrets + "/second", key: key).status == 200)
            let again = try server.send("POST", secrets, key: key, own)
            #expect(again.status == 201)
            #expect(try again.json["secret_count"].number == 1)
        }
    }
}
