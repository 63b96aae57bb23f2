import Foundation
import Testing

@testable import BackendAPI

/// Lists whose rows become many bytes: JSON has six for a control character.
@Suite struct PageBytesTests {
    private static let room = "/v1/conversations/0190a1b2-c3d4-7123-8456-789abcdef012"
    private static let bytesMax = 1 << 20

    private func message(_ text: String) throws -> String {
        let body = ["parts": [["mime_type": "text/plain", "text": text]]]
        return String(decoding: try JSONEncoder().encode(body), as: UTF8.self)
    }

    /// All rows of a list by `id`, and the largest piece of it.
    private func walk(
        _ server: TestServer, _ key: String, _ path: String, _ name: String
    ) throws -> (ids: [String], bytes: Int) {
        var ids: [String] = []
        var bytes = 0
        var next: String? = ""
        while let cursor = next {
            let mark = path.contains("?") ? "&" : "?"
            let answer = try server.send(
                "GET", path + (cursor.isEmpty ? "" : "\(mark)cursor=\(cursor)"), key: key)
            try #require(answer.status == 200, "\(answer.body.prefix(200))")
            bytes = max(bytes, answer.body.utf8.count)
            let page = try answer.json
            try #require(page[name].count > 0)
            for index in 0..<page[name].count {
                ids.append(try #require(page[name][index]["id"].string))
            }
            next = page["next"].string
        }
        return (ids, bytes)
    }

    @Test("a list of messages is bounded in JSON, and goes on behind the last one that it gave")
    func messages() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let made = try server.send(
            "POST", "/v1/conversations", key: key,
            #"{"id":"\#(Self.room.suffix(36))","participants":["anna","ben"]}"#)
        try #require(made.status == 201)
        var sent: [String] = []
        for number in 0..<8 {
            let text = String(repeating: number % 2 == 0 ? "\u{1}" : "\"", count: 60_000)
            let answer = try server.send("POST", Self.room + "/messages", key: key, message(text))
            try #require(answer.status == 201)
            sent.append(try #require(try answer.json["id"].string))
        }
        let rising = try walk(
            server, key, Self.room + "/messages?order=ascending&limit=100", "messages")
        #expect(rising.ids == sent)
        #expect(rising.bytes <= Self.bytesMax)
        let falling = try walk(server, key, Self.room + "/messages?limit=100", "messages")
        #expect(falling.ids == sent.reversed())
        #expect(falling.bytes <= Self.bytesMax)
    }

    @Test("so are a user's conversations, whose newest messages they hold")
    func conversations() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        var made: [String] = []
        for _ in 0..<6 {
            let answer = try server.send(
                "POST", "/v1/conversations", key: key, #"{"participants":["anna"]}"#)
            let id = try #require(try answer.json["id"].string)
            made.append(id)
            let text = String(repeating: "\u{1}", count: 60_000)
            let sent = try server.send(
                "POST", "/v1/conversations/\(id)/messages", key: key, message(text))
            try #require(sent.status == 201)
        }
        let all = try walk(server, key, "/v1/users/anna/conversations", "conversations")
        #expect(all.ids == made.sorted())
        #expect(all.bytes <= Self.bytesMax)
    }

    @Test("and campaigns")
    func campaigns() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let body = String(repeating: "\u{1}", count: 2_000)
        let push = try JSONEncoder().encode(["push": ["body": body]])
        let new = String(decoding: push, as: UTF8.self)
        var made: Set<String> = []
        for _ in 0..<100 {
            let answer = try server.send("POST", "/v1/campaigns", key: key, new)
            try #require(answer.status == 201, "\(answer.body.prefix(200))")
            let id = try #require(try answer.json["id"].string)
            made.insert(id)
            // Few may be under way.
            try server.send("POST", "/v1/campaigns/\(id)/cancel", key: key)
        }
        let all = try walk(server, key, "/v1/campaigns?limit=200", "campaigns")
        #expect(all.ids.count == made.count)
        #expect(Set(all.ids) == made)
        #expect(all.bytes <= Self.bytesMax)
    }
}
