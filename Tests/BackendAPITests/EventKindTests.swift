import Foundation
import Testing

/// An app that is registered with the kinds of its events (MSG-56).
@Suite struct EventKindTests {
    private static let room = "0190a1b2-c3d4-7123-8456-789abcdef0aa"
    private static let parts = #""parts":[{"mime_type":"text/plain","text":"x"}]"#

    /// Every way in which a backend can name an event.
    private static let ways: [(path: String, body: String)] = [
        ("/v1/conversations/\(room)/messages", parts),
        ("/v1/conversations/\(room)/messages", parts + #","send_at":"\#(later)""#),
        ("/v1/announcements", parts + #","users":["anna"]"#),
        ("/v1/announcements", parts + #","users":["anna"],"send_at":"\#(later)""#),
        ("/v1/campaigns", #""dry_run":true"#),
        ("/v1/campaigns", #""name":"c""#),
    ]
    private static var later: String {
        ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: 86_400))
    }

    private func with(_ body: (TestServer, String) throws -> Void) throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let room = #"{"id":"\#(Self.room)","participants":["anna"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: key, room).status == 201)
        try body(server, key)
    }

    private func publish(
        _ way: (path: String, body: String), _ event: String?, _ server: TestServer, _ key: String,
        _ headers: [String: String] = [:]
    ) throws -> Exchange {
        let named = event.map { #","event":"\#($0)""# } ?? ""
        return try server.send(
            "POST", way.path, key: key, headers: headers,
            #"{\#(way.body),"push":{"body":"x"\#(named)}}"#)
    }

    @Test("another kind is refused on every way, and the refusal names the known ones")
    func everyWay() throws {
        try with { server, key throws in
            for way in Self.ways {
                #expect(try publish(way, "ordre", server, key).status < 300, "none is registered")
            }
            let set = try server.admin(
                "PATCH", "/apps/shop", #"{"event_kinds":["order","chat"]}"#)
            #expect(set.status == 200)
            for way in Self.ways {
                let refused = try publish(way, "ordre", server, key)
                #expect(refused.status == 422, "\(way)")
                let problem = try refused.json
                #expect(problem["type"].string == "urn:rouse:problem:unknown_kind")
                #expect(problem["code"].number == 4010)
                #expect(
                    problem["detail"].string
                        == "event: ordre is none of the app's kinds: order, chat")
                #expect(try publish(way, "order", server, key).status < 300, "\(way)")
                #expect(try publish(way, nil, server, key).status < 300, "\(way)")
            }
        }
    }

    @Test("what was published stays: the same request again is answered as before")
    func repetition() throws {
        try with { server, key throws in
            let once = ["idempotency-key": "1"]
            let first = try publish(Self.ways[0], "offer", server, key, once)
            _ = try server.admin("PATCH", "/apps/shop", #"{"event_kinds":["order"]}"#)
            let again = try publish(Self.ways[0], "offer", server, key, once)
            #expect(first.status == 201 && again.status == 201)
            #expect(first.body == again.body)
        }
    }

    @Test("who repeats what was published without a key is told that it exists")
    func repetitionByID() throws {
        try with { server, key throws in
            let id = "0190a1b2-c3d4-7123-8456-789abcdef0"
            for (number, way) in Self.ways.enumerated() where number != 4 {
                let named = (path: way.path, body: way.body + #","id":"\#(id)b\#(number)""#)
                #expect(try publish(named, "offer", server, key).status < 300, "\(way)")
                _ = try server.admin("PATCH", "/apps/shop", #"{"event_kinds":["order"]}"#)
                let again = try publish(named, "offer", server, key)
                #expect(again.status == 409, "\(way): \(again.body)")
                _ = try server.admin("PATCH", "/apps/shop", #"{"event_kinds":[]}"#)
            }
        }
    }

    @Test("the kinds are shown, kept, and taken back; nonsense is named")
    func administered() throws {
        try with { server, _ throws in
            func kinds(_ answer: Exchange) throws -> [String?] {
                let list = try answer.json["event_kinds"]
                return (0..<list.count).map { list[$0].string }
            }
            #expect(try kinds(server.admin("GET", "/apps/shop")) == [])
            let set = #"{"event_kinds":["order","Bestellung №"]}"#
            #expect(
                try kinds(server.admin("PATCH", "/apps/shop", set)) == ["order", "Bestellung №"])
            _ = try server.admin("PATCH", "/apps/shop", #"{"silent_budget":1}"#)
            #expect(
                try kinds(server.admin("GET", "/apps/shop")) == ["order", "Bestellung №"])
            let long = String(repeating: "x", count: 129)
            let many = (0..<257).map { "\"k\($0)\"" }.joined(separator: ",")
            for bad in [
                #"[""]"#, #"["a\nb"]"#, #"["a","a"]"#, #"["\#(long)"]"#, "[\(many)]", "7", "[7]",
            ] {
                let refused = try server.admin(
                    "PATCH", "/apps/shop", #"{"event_kinds":\#(bad)}"#)
                #expect(refused.status == 400, "\(bad)")
                #expect(refused.body.contains("event_kinds"), "\(refused.body)")
            }
            #expect(try kinds(server.admin("PATCH", "/apps/shop", #"{"event_kinds":[]}"#)) == [])
        }
    }
}
