import BackendAPI
import EventLoop
import Feed
import Foundation
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
