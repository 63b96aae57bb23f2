import Feed
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
