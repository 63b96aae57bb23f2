import BackendAPI
import Model
import Testing

extension SpecificationTests {
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
