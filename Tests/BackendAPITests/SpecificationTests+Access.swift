import BackendAPI
import Model
import Testing

extension SpecificationTests {
    static let carlsDevice = DeviceID(high: 0x0190_0000_0000_7000, low: 0x8000_0000_0000_00FF)

    static func devicePath(_ device: DeviceID) -> String { "/v1/devices/\(device)" }

    /// A device that was lost: it is logged out, and the user's other device is not.
    func removeDevice(_ server: TestServer, _ key: String) throws {
        let (lost, kept) = (DeviceID(high: 8, low: 1), DeviceID(high: 8, low: 2))
        for device in [lost, kept] {
            _ = try server.openDevice("shop", user: "dora", device: device)
        }
        let path = Self.devicePath(lost)
        let other = try server.makeApp("elsewhere")
        #expect(try server.send("DELETE", path).status == 401)
        #expect(try server.send("DELETE", path + "?x=1", key: key).status == 400)
        #expect(try server.send("DELETE", path, key: other).status == 404)
        #expect(try server.send("DELETE", path, key: key).status == 204)
        #expect(try server.send("DELETE", path, key: key).status == 404)
        let devices = try server.send("GET", "/v1/users/dora/devices", key: key).json["devices"]
        #expect(devices.count == 1)
        #expect(try devices[0]["id"].string == kept.description)
    }

    /// Every route that answered so far, asked by a suspended app, and by one that asks too much.
    func refuseWhateverIsAsked(_ server: TestServer) throws {
        var routes: [String: Exchange] = [:]
        for exchange in server.transcript
        where exchange.status < 300 && exchange.path.hasPrefix("/v1/") {
            routes["\(exchange.method) \(exchange.path)"] = exchange
        }
        let suspended = try server.makeApp("suspended")
        #expect(try server.admin("POST", "/apps/suspended/suspend").status == 204)
        let eager = try server.makeApp("eager")
        for route in routes.values {
            func ask(_ key: String) throws -> Exchange {
                try server.send(route.method, route.path, key: key, route.requestBody)
            }
            let refused = try ask(suspended)
            #expect(refused.status == 403, "\(route.method) \(route.path)")
            #expect(try refused.json["type"].string?.hasSuffix("suspended") == true)
            server.api.change(appRequests: RateLimit(perSecond: 1, burst: 1))
            defer { server.api.change(appRequests: .none) }
            // Until the bucket is empty, which takes a request or two.
            for _ in 0..<50 where try ask(eager).status != 429 {}
        }
    }
}
