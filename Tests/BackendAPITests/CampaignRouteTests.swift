import Feed
import Foundation
import Model
import Testing
import Wake

/// The campaigns' and tags' part of `SpecificationTests`.
extension SpecificationTests {
    private static let all = "/v1/campaigns"
    private static let campaign = "0190a1b2-c3d4-7123-8456-789abcdef030"
    private static let one = "/v1/campaigns/\(campaign)"
    private static let absent = "/v1/campaigns/\(unknown)"
    private static let good = #"{"id":"\#(campaign)","push":{"body":"hi"}}"#
    private static let userTags = "/v1/users/anna/tags"
    private static let tagged = #"{"add":["vip","a.b:c-d_9"],"remove":["x"]}"#
    private static let device = DeviceID(high: 0x0190_0000_0000_7000, low: 0x8000_0000_0000_0A01)
    private static let deviceTags = "/v1/users/anna/devices/\(device)/tags"
    private static let fates = one + "/users/anna"

    /// A request that changes something, and what it takes.
    private static let changes: [(path: String, body: String)] =
        [(all, good), (userTags, tagged), (deviceTags, tagged)]
        + ["pause", "resume", "cancel"].map { (one + "/" + $0, "") }
    private static let gets = [one, fates, userTags, deviceTags]

    func administerCampaigns(_ server: TestServer, _ key: String, other: String) throws {
        func send(
            _ method: String, _ path: String, _ body: String = "", key: String? = key,
            _ headers: [String: String] = [:]
        ) throws -> Exchange {
            try server.send(method, path, key: key, headers: headers, body)
        }
        #expect(try send("GET", Self.all).json["campaigns"].count == 0)
        for path in Self.gets { #expect(try send("GET", path).status == 404) }
        for (path, body) in Self.changes.dropFirst() {
            #expect(try send("POST", path, body).status == 404)
        }
        _ = try server.openDevice("campaigner", user: "anna", device: Self.device)
        try makeCampaigns(server, key)
        try changeTags(server, key)
        let paused = try send("POST", Self.one + "/pause", "", key: key, ["idempotency-key": "p"])
        #expect(try paused.json["state"].string == "paused")
        #expect(try send("POST", Self.one + "/resume").json["state"].string == "scheduled")
        let fate = try send("GET", Self.fates).json["devices"][0]
        #expect(fate["push"].string == "none" && fate["reason"].string == "tokenless")
        try refuseCampaigns(server, key, other: other)
        let cancelled = try send(
            "POST", Self.one + "/cancel", "", key: key, ["idempotency-key": "c"])
        #expect(try cancelled.json["state"].string == "cancelled")
        for control in ["pause", "resume"] {
            let refused = try send("POST", Self.one + "/" + control)
            #expect(refused.status == 409 && refused.body.contains("make another one"))
        }
        let mismatch = try send(
            "POST", Self.one + "/cancel", "", key: key, ["idempotency-key": "p"])
        #expect(mismatch.status == 409)
        let piece = try send("GET", Self.all + "?limit=1")
        let next = try #require(try piece.json["next"].string)
        #expect(try send("GET", Self.all + "?cursor=\(next)").json["campaigns"].count >= 1)
        #expect(try send("GET", Self.all + "?cursor=x").status == 400)
        // Above the limit of those that are not over.
        let more = try (0..<40).map { _ in
            try send("POST", Self.all, #"{"push":{"body":"x"},"start":"\#(Self.later)"}"#).status
        }
        #expect(more.first == 201 && more.last == 422)
    }

    /// Three weeks from now: the API takes 30 days.
    private static let later = Date(timeIntervalSinceNow: 21 * 86_400).formatted(.iso8601)

    private func makeCampaigns(_ server: TestServer, _ key: String) throws {
        let later = #","start":"\#(Self.later)"}"#
        let scheduled = String(Self.good.dropLast()) + later
        let once = ["idempotency-key": "make"]
        let made = try server.send("POST", Self.all, key: key, headers: once, scheduled)
        #expect(made.status == 201)
        let again = try server.send("POST", Self.all, key: key, headers: once, scheduled)
        #expect(again.body == made.body)
        #expect(try server.send("POST", Self.all, key: key, scheduled).status == 409)
        let full = """
            {"name":"spring","push":{"title":"T","body":"hi","texts":{"de":{"body":"Hallo"}}},
             "audience":{"topics":["a"],"clients":["ios"],"locales":["de"],
              "time_zones":["Europe/"],"version_min":"2","version_max":"3.1",
              "seen_within_seconds":60,"unseen_for_seconds":5,"tags":["a"],"any_tags":["b"],
              "no_tags":["c"],"reachability":["wakeable"]},
             "start":"\(Self.later)","rate":7,"canary":{"share":150,"wait_seconds":60},
             "stop_percent":10,"expiration_seconds":0}
            """
        let other = try server.send("POST", Self.all, key: key, full)
        #expect(other.status == 201, "\(other.body)")
        let id = try #require(try other.json["id"].string)
        let shown = try server.send("GET", Self.all + "/" + id, key: key).json
        #expect(shown["state"].string == "scheduled" && shown["rate"].number == 7)
        #expect(shown["audience"]["time_zones"][0].string == "Europe/")
        #expect(shown["push"]["locales"][0].string == "de")
        let local = #"{"push":{"body":"hi"},"local_start":"\#(Self.later.dropLast())"}"#
        let told = try server.send("POST", Self.all, key: key, local)
        #expect(try told.json["local_start"].string?.hasPrefix(Self.later.dropLast()) == true)
        let dry = #"{"push":{"body":"x"},"dry_run":true,"canary":{"share":100}}"#
        let count = try server.send("POST", Self.all, key: key, dry)
        #expect(count.status == 200)
        #expect(try count.json["devices"].number == 0)
        #expect(try count.json["left_out"]["tokenless"].number == 1)
        #expect(try server.send("GET", Self.all, key: key).json["campaigns"].count == 3)
    }

    private func changeTags(_ server: TestServer, _ key: String) throws {
        let many = (0..<70).map { "\"t\($0)\"" }.joined(separator: ",")
        for path in [Self.userTags, Self.deviceTags] {
            let once = [
                "idempotency-key": "tag \(path.count)".replacingOccurrences(of: " ", with: "")
            ]
            for _ in 0..<2 {
                #expect(
                    try server.send("POST", path, key: key, headers: once, Self.tagged).status
                        == 204)
            }
            let other = try server.send("POST", path, key: key, headers: once, "{}")
            #expect(other.status == 409)
            let tags = try server.send("GET", path, key: key).json["tags"]
            #expect(tags.count == 2 && tags[0].string == "a.b:c-d_9")
            #expect(
                try server.send("POST", path, key: key, #"{"add":[\#(many)]}"#).status == 422)
        }
    }

    private func refuseCampaigns(_ server: TestServer, _ key: String, other: String) throws {
        for body in [
            "{}", #"{"push":{}}"#, #"{"push":{"body":"x"},"rate":0}"#,
            #"{"push":{"body":"x"},"start":"tomorrow"}"#,
            #"{"push":{"body":"x"},"start":"\#(Self.later)","local_start":"2026-12-01T09:00:00"}"#,
            #"{"push":{"body":"x"},"local_start":"2026-12-01T09:00:00Z"}"#,
            #"{"push":{"body":"x"},"start":"2100-01-01T00:00:00Z"}"#,
            #"{"push":{"body":"x"},"canary":{}}"#,
            #"{"push":{"body":"x"},"local_start":"\#(Self.later.dropLast())","#
                + #""canary":{"share":5}}"#,
            #"{"push":{"body":"x"},"audience":{"tags":["no space"]}}"#,
            #"{"push":{"body":"x"},"audience":{"reachability":["asleep"]}}"#,
            #"{"push":{"body":"x"},"audience":{"version_min":"new"},"dry_run":true}"#,
            #"{"push":{"body":"x"},"audience":{"version_min":""},"dry_run":true}"#,
            #"{"push":{"body":"x"},"audience":{"version_max":""},"dry_run":true}"#,
            #"{"push":{"body":"x"},"audience":{"country":["at"]}}"#,
        ] {
            #expect(try server.send("POST", Self.all, key: key, body).status == 400, "\(body)")
        }
        let big = String(repeating: " ", count: 600 * 1024)
        for (path, body) in Self.changes {
            #expect(try server.send("POST", path, body).status == 401)
            #expect(try server.send("POST", path + "?x=1", key: key, body).status == 400)
            if path != Self.all {
                #expect(try server.send("POST", path, key: other, body).status == 404)
            }
            guard !body.isEmpty else { continue }
            let plain = ["content-type": "text/plain"]
            #expect(
                try server.send("POST", path, key: key, headers: plain, body).status == 415)
            #expect(try server.send("POST", path, key: key, #"{"extra":1}"#).status == 400)
            #expect(try server.send("POST", path, key: key, big).status == 413)
        }
        for path in [Self.all] + Self.gets {
            #expect(try server.send("GET", path, key: "rk_wrong").status == 401)
            #expect(try server.send("GET", path + "?x=1", key: key).status == 400)
            if path != Self.all {
                #expect(try server.send("GET", path, key: other).status == 404)
            }
        }
        #expect(try server.send("GET", Self.absent, key: key).status == 404)
        let long = #"{"push":{"body":"\#(String(repeating: "x", count: 3_000))"}}"#
        #expect(try server.send("POST", Self.all, key: key, long).status == 413)
    }

    func failCampaigns(_ server: TestServer, _ key: String) throws {
        for (error, status) in [
            (StoreError.full("test"), 507), (.unavailable("test"), 503), (.corrupt("test"), 500),
        ] {
            server.faults.failWrites(error)
            for (path, body) in Self.changes {
                #expect(try server.send("POST", path, key: key, body).status == status)
            }
        }
        server.faults.failWrites(nil)
        for (error, status) in [(StoreError.unavailable("test"), 503), (.corrupt("test"), 500)] {
            server.faults.failReads(error)
            for path in [Self.all] + Self.gets {
                #expect(try server.send("GET", path, key: key).status == status)
            }
        }
        server.faults.failReads(nil)
    }

    /// Operators see and do the same for any app.
    @Test("campaigns are administered through the admin socket too")
    func adminCampaigns() throws {
        let server = try TestServer()
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let path = "/apps/shop/campaigns"
        #expect(try server.admin("POST", path, Self.good).status == 201)
        #expect(try server.admin("GET", path).json["campaigns"].count == 1)
        let paused = try server.admin("POST", path + "/\(Self.campaign)/pause")
        #expect(try paused.json["state"].string == "paused")
        #expect(try server.admin("GET", "/apps/other/campaigns").status == 404)
    }
}
