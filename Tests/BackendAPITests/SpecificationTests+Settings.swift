import Feed
import Foundation
import Model
import Testing

/// Mutes and blocks: their part of `SpecificationTests`, and how they are listed.
extension SpecificationTests {
    private static let mute = "/v1/users/anna/conversations/\(conversation)/mute"
    private static let block = "/v1/users/anna/blocks/ben"

    static let settingReads = [
        "/v1/users/anna/blocks", "/v1/users/anna/mutes", "/v1/users/anna/messages",
    ]

    /// Requests that change something, and what they take.
    static let settingChanges: [(method: String, path: String, body: String)] = [
        ("PUT", mute, "{}"), ("DELETE", mute, ""), ("PUT", block, ""), ("DELETE", block, ""),
    ]

    /// A backend sets for Anna what her devices could.
    func setForUsers(_ server: TestServer, _ key: String, other: String) throws {
        func send(
            _ method: String, _ path: String, _ body: String = "", key: String? = key,
            _ headers: [String: String] = [:]
        ) throws -> Exchange {
            try server.send(method, path, key: key, headers: headers, body)
        }
        for (method, path, body) in Self.settingChanges {
            #expect(try send(method, path, body, key: nil).status == 401)
            #expect(try send(method, path + "?x=1", body).status == 400)
            #expect(try send(method, path, body, key: other).status == 404)
            // The word was used for another address.
            let used = ["idempotency-key": "end"]
            #expect(try send(method, path, body, key: key, used).status == 409)
            let big = String(repeating: " ", count: 600 * 1024)
            #expect(try send(method, path, big).status == 413)
            for headers in [["idempotency-key": method + path], [:], [:]] {
                #expect(try send(method, path, body, key: key, headers).status == 204)
            }
            let elsewhere = path.replacingOccurrences(of: "anna", with: "nobody")
            #expect(try send(method, elsewhere, body).status == 404)
        }
        for body in [#"{"until":1}"#, #"{"util":"2036-01-01T00:00:00Z"}"#] {
            let answer = try server.send("PUT", Self.mute, key: key, isMisshapen: true, body)
            #expect(answer.status == 400)
        }
        let past = try send("PUT", Self.mute, #"{"until":"2020-01-01T00:00:00Z"}"#)
        #expect(try past.status == 400 && past.json["detail"].string == "until has passed")
        let plain = ["content-type": "text/plain"]
        #expect(try send("PUT", Self.mute, "{}", key: key, plain).status == 415)
        let ended = Self.mute.replacingOccurrences(of: Self.conversation, with: Self.ended)
        for (method, body) in [("PUT", "{}"), ("DELETE", "")] {
            #expect(try send(method, ended, body).status == 410)
        }
        #expect(try send("PUT", "/v1/users/anna/blocks/anna").status == 400)
        try blockMany(server, key)
        try listSettings(server, key, other: other)
    }

    private func blockMany(_ server: TestServer, _ key: String) throws {
        let requests = (0..<1000).map { number in
            StoreRequest.block(
                app: AppID("shop"),
                BlockChange(UserID("ben"), UserID("b\(number)"), isBlocked: true),
                idempotency: nil)
        }
        #expect(try server.commit(requests).allSatisfy { $0 == .done })
        #expect(try server.send("PUT", "/v1/users/ben/blocks/anna", key: key).status == 422)
    }

    private func listSettings(_ server: TestServer, _ key: String, other: String) throws {
        for path in Self.settingReads {
            #expect(try server.send("GET", path, key: "rk_wrong").status == 401)
            #expect(try server.send("GET", path + "?x=1", key: key).status == 400)
            #expect(try server.send("GET", path, key: other).status == 404)
        }
        for name in ["ben", "carl", "dora"] {
            let path = "/v1/users/anna/blocks/\(name)"
            #expect(try server.send("PUT", path, key: key).status == 204)
        }
        let end = "2036-01-01T00:00:00Z"
        #expect(
            try server.send("PUT", Self.mute, key: key, #"{"until":"\#(end)"}"#).status == 204)
        let made = try server.send(
            "POST", "/v1/conversations", key: key, #"{"participants":["anna"]}"#)
        let second = try #require(try made.json["id"].string)
        let path = Self.mute.replacingOccurrences(of: Self.conversation, with: second)
        #expect(try server.send("PUT", path, key: key, "{}").status == 204)
        #expect(try server.send("DELETE", Self.block, key: key).status == 204)
        let blocks = try server.send("GET", Self.settingReads[0], key: key).json["blocks"]
        #expect(blocks.count == 2 && blocks[0]["user"].string == "carl")
        let mutes = try server.send("GET", Self.settingReads[1], key: key).json["mutes"]
        #expect(mutes.count == 2)
        #expect(mutes[0]["conversation_id"].string == Self.conversation)
        #expect(mutes[0]["until"].string == "2036-01-01T00:00:00.000Z")
        #expect(mutes[1]["conversation_id"].string == second && mutes[1]["until"].string == nil)
        for path in Self.settingReads {
            let piece = try server.send("GET", path + "?limit=1", key: key)
            let next = try #require(try piece.json["next"].string)
            #expect(try server.send("GET", path + "?cursor=\(next)", key: key).status == 200)
            // A place in another list is none in this one.
            let elsewhere = "/v1/users/ben/blocks?cursor=\(next)"
            #expect(try server.send("GET", elsewhere, key: key).status == 400)
        }
        for (method, path, _) in Self.settingChanges where method == "DELETE" {
            #expect(try server.send(method, path, key: key).status == 204)
        }
    }
}
