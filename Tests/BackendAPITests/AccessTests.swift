import BackendAPI
import EventLoop
import Feed
import Foundation
import Glibc
import Model
import Testing

/// Suspension and rates at the API.
@Suite struct AccessTests {
    @Test("a suspended app's backend is refused whatever it asks, until the app is resumed")
    func suspendedApp() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let other = try server.makeApp("other")
        let path = "/v1/users/anna/devices"
        #expect(try server.admin("POST", "/apps/shop/suspend").status == 204)
        let refused = try server.send("GET", path, key: key)
        #expect(refused.status == 403)
        #expect(try refused.json["code"].number == 2005)
        #expect(try server.send("GET", path, key: other).status == 200)
        #expect(try server.admin("GET", "/apps/shop").body.contains(#""is_suspended":true"#))
        #expect(try server.admin("POST", "/apps/shop/resume").status == 204)
        #expect(try server.send("GET", path, key: key).status == 200)
        #expect(try server.admin("POST", "/apps/none/suspend").status == 404)
    }

    @Test("an operator reaches the users of every app")
    func users() throws {
        let server = try TestServer()
        defer { server.stop() }
        _ = try server.makeApp("shop")
        for verb in ["suspend", "resume", "sessions/revoke"] {
            let path = "/apps/shop/users/anna/\(verb)"
            #expect(try server.admin("POST", path).status == 404)
        }
        _ = try server.openDevice(
            "shop", user: "anna", push: nil, device: DeviceID(high: 1, low: 1))
        for verb in ["suspend", "resume", "sessions/revoke"] {
            let path = "/apps/shop/users/anna/\(verb)"
            #expect(try server.admin("POST", path).status == 204)
        }
    }

    @Test("an app that has much under way leaves room for the others")
    func share() throws {
        let server = try TestServer(appCallsMax: 1)
        defer { server.stop() }
        let noisy = try server.makeApp("noisy")
        let quiet = try server.makeApp("quiet")
        let held = server.faults.holdNextWrite()
        let answered = Latch()
        let port = server.api.port
        Thread.detachNewThread {
            _ = try? HTTPClient.send(
                "POST", "/v1/conversations",
                headers: [
                    "authorization": "Bearer \(noisy)", "content-type": "application/json",
                ],
                body: #"{"participants":["anna"]}"#, to: .port(port))
            answered.arrive()
        }
        held.entered.wait()
        let path = "/v1/users/anna/devices"
        let refused = try server.send("GET", path, key: noisy)
        #expect(refused.status == 429)
        #expect(refused.headers["retry-after"] == "1")
        #expect(try server.send("GET", path, key: quiet).status == 200)
        held.open.arrive()
        answered.wait()
        #expect(try server.send("GET", path, key: noisy).status == 200)
    }

    /// A conversation whose list of messages is nearly a mebibyte, for a client that has asked for
    /// it and reads nothing.
    private func unread(_ server: TestServer, _ key: String) throws -> (path: String, Int32) {
        let made = try server.send(
            "POST", "/v1/conversations", key: key, #"{"participants":["anna"]}"#)
        let path = "/v1/conversations/\(try #require(try made.json["id"].string))/messages"
        let text = String(repeating: "x", count: 60_000)
        for _ in 0..<16 {
            let sent = try server.send(
                "POST", path, key: key,
                #"{"parts":[{"mime_type":"text/plain","text":"\#(text)"}]}"#)
            try #require(sent.status == 201)
        }
        let client = try HTTPClient.connect(to: .port(server.api.port), receiveBuffer: 4_096)
        let request =
            "GET \(path) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            + "Authorization: Bearer \(key)\r\n\r\n"
        try #require(send(client, request, request.utf8.count, 0) == request.utf8.count)
        // The answer has begun to arrive.
        var first: UInt8 = 0
        try #require(recv(client, &first, 1, Int32(MSG_PEEK)) == 1)
        return (path, client)
    }

    private func readAll(_ client: Int32) -> Int {
        var part = [UInt8](repeating: 0, count: 65_536)
        var bytes = 0
        while case let count = recv(client, &part, part.count, 0), count > 0 { bytes += count }
        return bytes
    }

    @Test("what an app does not read of its answers is bounded, and leaves room for the others")
    func untakenBytes() throws {
        let server = try TestServer(appAnswerBytesMax: 1_200_000)
        defer { server.stop() }
        let noisy = try server.makeApp("noisy")
        let quiet = try server.makeApp("quiet")
        let (path, client) = try unread(server, noisy)
        defer { close(client) }
        let refused = try server.send("GET", path, key: noisy)
        try #require(refused.status == 429)
        #expect(refused.headers["retry-after"] == "1")
        #expect(try refused.json["detail"].string?.contains("1200000 bytes") == true)
        // What answers with little is taken all the same.
        #expect(try server.send("GET", "/v1/users/anna", key: noisy).status == 200)
        let users = "/v1/users/anna/conversations"
        #expect(try server.send("GET", users, key: quiet).status == 404)
        #expect(try server.send("GET", "/livez").status == 200)
        #expect(readAll(client) > 900_000)
        try wait { try server.send("GET", path, key: noisy).status == 200 }
    }

    @Test("a request is under way until its answer is taken")
    func untakenCalls() throws {
        let server = try TestServer(appCallsMax: 1)
        defer { server.stop() }
        let noisy = try server.makeApp("noisy")
        let (_, client) = try unread(server, noisy)
        let path = "/v1/users/anna"
        #expect(try server.send("GET", path, key: noisy).status == 429)
        // The reader goes, and has read nothing.
        close(client)
        try wait { try server.send("GET", path, key: noisy).status == 200 }
    }

    @Test("above its rate an app is told 429 and when to come back; another app is not")
    func rate() throws {
        let server = try TestServer(appRequests: RateLimit(perSecond: 1, burst: 2))
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let other = try server.makeApp("other")
        let path = "/v1/users/anna/devices"
        var answers: [Int] = []
        var wait: String?
        for _ in 0..<50 {
            let answer = try server.send("GET", path, key: key)
            answers.append(answer.status)
            if answer.status == 429 { wait = answer.headers["retry-after"] }
        }
        #expect(answers.prefix(2) == [200, 200])
        #expect(answers.contains(429))
        #expect(wait == "1")
        #expect(try server.send("GET", path, key: other).status == 200)
    }
}
