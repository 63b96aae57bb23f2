import BackendAPI
import Feed
import Foundation
import Model
import Testing

extension SpecificationTests {
    static let scheduledPath = "/v1/scheduled/0190a1b2-c3d4-7123-8456-789abcdef019"

    /// What is published at a time: asked for, listed, shown, published and taken back.
    func schedule(_ server: TestServer, _ key: String, other: String) throws {
        let later = Date().addingTimeInterval(3_600).formatted(.iso8601)
        let parts = #""parts":[{"mime_type":"text/plain","text":"hi"}]"#
        let id = Self.scheduledPath.split(separator: "/").last ?? ""
        let messages = Self.writes[2].path
        func ask(_ path: String, _ rest: String) throws -> Exchange {
            try server.send("POST", path, key: key, #"{"# + parts + "," + rest + "}")
        }
        let made = try ask(
            messages, #""id":"\#(id)","sender":"anna","send_at":"\#(later)","push":{"body":"x"}"#)
        #expect(made.status == 202)
        #expect(try made.json["state"].string == "pending")
        #expect(try made.json["parts"].count == 0)
        #expect(
            try ask("/v1/announcements", #""users":["anna"],"send_at":"\#(later)""#).status == 202)
        #expect(try ask(messages, #""send_at":"2026-01-01T00:00:00Z""#).status == 400)
        #expect(try ask(messages, #""send_at":"tomorrow""#).status == 400)
        let first = try server.send("GET", "/v1/scheduled?limit=1", key: key)
        #expect(try first.json["scheduled"].count == 1)
        let next = try #require(try first.json["next"].string)
        let rest = try server.send("GET", "/v1/scheduled?cursor=\(next)", key: key)
        #expect(try rest.json["scheduled"].count == 1)
        let shown = try server.send("GET", Self.scheduledPath, key: key)
        #expect(shown.status == 200)
        #expect(try shown.json["parts"][0]["text"].string == "hi")
        try refuseScheduled(server, key, other: other)
        #expect(try server.send("DELETE", Self.scheduledPath, key: key).status == 204)
        #expect(try server.send("DELETE", Self.scheduledPath, key: key).status == 404)
        let due = try soon { try ask(messages, #""send_at":"\#($0)""#) }
        let lost = try soon { try ask(messages, #""sender":"ben","send_at":"\#($0)""#) }
        let ben = #"{"users":["ben"]}"#
        let members = "/v1/conversations/\(Self.conversation)/participants"
        #expect(try server.send("POST", members + "/remove", key: key, ben).status == 200)
        try wait {
            _ = try server.commit([.schedules(.publishDue(rows: 8))])
            let published = try server.send("GET", "/v1/scheduled?state=published", key: key)
            return try published.json["scheduled"].count == 1
        }
        #expect(try server.send("DELETE", "/v1/scheduled/\(due)", key: key).status == 409)
        #expect(try server.send("GET", "/v1/messages/\(due)", key: key).status == 200)
        let failed = try server.send("GET", "/v1/scheduled?state=failed", key: key)
        #expect(try failed.json["scheduled"][0]["id"].string == lost)
        #expect(try failed.json["scheduled"][0]["failure"]["name"].string == "forbidden")
        #expect(try server.send("POST", members, key: key, ben).status == 200)
    }

    /// The id of what is to be published in a moment; on a machine that is too slow for it, later.
    private func soon(_ ask: (String) throws -> Exchange) throws -> String {
        for seconds in [1.0, 10, 60] {
            let answer = try ask(Date().addingTimeInterval(seconds).formatted(.iso8601))
            if let id = try answer.json["id"].string { return id }
        }
        throw CocoaError(.featureUnsupported)
    }

    private func refuseScheduled(
        _ server: TestServer, _ key: String, other: String
    ) throws {
        let (path, list) = (Self.scheduledPath, "/v1/scheduled")
        for (method, path) in [("GET", path), ("DELETE", path), ("GET", list)] {
            #expect(try server.send(method, path).status == 401)
            #expect(try server.send(method, path + "?x=1", key: key).status == 400)
        }
        for method in ["GET", "DELETE"] {
            #expect(try server.send(method, path, key: other).status == 404)
        }
        #expect(try server.send("GET", list + "?state=gone", key: key).status == 400)
        #expect(try server.send("GET", list + "?cursor=AAAA", key: key).status == 400)
        let once = ["idempotency-key": "end"]
        #expect(try server.send("DELETE", path, key: key, headers: once).status == 409)
        let big = String(repeating: " ", count: 600 * 1024)
        #expect(try server.send("DELETE", path, key: key, big).status == 413)
    }
}
