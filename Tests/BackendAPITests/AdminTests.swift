import BackendAPI
import Crypto
import EventLoop
import Foundation
import Glibc
import Model
import Testing

/// The admin API over its socket.
@Suite struct AdminTests {
    private func with(_ body: (TestServer) throws -> Void) throws {
        let server = try TestServer()
        defer { server.stop() }
        try body(server)
    }

    private func json(_ value: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: value), as: UTF8.self)
    }

    @Test("only this user reaches the socket, and it goes with the server")
    func socketFile() throws {
        try with { server throws in
            var status = stat()
            #expect(stat(server.adminSocket, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            server.api.stop()
            #expect(stat(server.adminSocket, &status) != 0)
        }
    }

    @Test("an app is made, shown, changed and removed")
    func apps() throws {
        try with { server throws in
            let made = try server.admin("POST", "/apps", #"{"app":"a b/c","grace_seconds":90}"#)
            #expect(made.status == 201)
            #expect(try made.json["silent_budget"].number == 3)
            #expect(try server.admin("POST", "/apps", #"{"app":"a b/c"}"#).status == 409)
            let changed = try server.admin("PATCH", "/apps/a%20b%2Fc", #"{"silent_budget":0}"#)
            #expect(changed.status == 200)
            let shown = try server.admin("GET", "/apps/a%20b%2Fc").json
            #expect(shown["silent_budget"].number == 0)
            #expect(shown["grace_seconds"].number == 90)
            #expect(try server.admin("GET", "/apps").json["apps"].count == 1)
            #expect(try server.admin("DELETE", "/apps/a%20b%2Fc").status == 204)
            #expect(try server.admin("GET", "/apps/a%20b%2Fc").status == 404)
            #expect(try server.admin("GET", "/apps").json["apps"].count == 0)
        }
    }

    @Test(
        "a policy outside its range is refused by name",
        arguments: [
            ("grace_seconds", "0"), ("grace_seconds", "3601"), ("silent_budget", "33"),
            ("silent_budget", "-1"), ("silent_budget", "1.5"), ("silent_budget", "\"3\""),
            ("session_token_seconds", "59"), ("alert_expiration_seconds", "2592001"),
            ("receipt_participants_max", "99999999999999999999"), ("speed", "1"),
        ])
    func ranges(_ field: String, _ value: String) throws {
        try with { server throws in
            let answer = try server.admin("POST", "/apps", #"{"app":"shop","\#(field)":\#(value)}"#)
            #expect(answer.status == 400)
            #expect(try answer.json["detail"].string?.hasPrefix("\(field): ") == true)
            #expect(try server.admin("GET", "/apps").json["apps"].count == 0)
        }
    }

    @Test("issuer keys are checked, kept under their kid, and never replaced in silence")
    func issuerKeys() throws {
        try with { server throws in
            _ = try server.makeApp("shop")
            let path = "/apps/shop/issuer-keys/k%2F1"
            let key = PrivateKey.generate(.ed25519)
            let body = try json(["public_key_pem": key.publicKeyPEM])
            let added = try server.admin("PUT", path, body)
            #expect(added.status == 201)
            #expect(try added.json["algorithm"].string == "EdDSA")
            #expect(try server.admin("PUT", path, body).status == 200, "the same again")
            let other = try json(["public_key_pem": PrivateKey.generate(.p256).publicKeyPEM])
            #expect(try server.admin("PUT", path, other).status == 409)
            for pem in [key.pem, "nonsense", "", Self.smallRSA] {
                let bad = try server.admin(
                    "PUT", "/apps/shop/issuer-keys/k2", try json(["public_key_pem": pem]))
                #expect(bad.status == 400, "\(pem)")
            }
            #expect(try server.admin("DELETE", path).status == 204)
            #expect(try server.admin("DELETE", path).status == 404)
            for number in 0..<16 {
                let path = "/apps/shop/issuer-keys/n\(number)"
                #expect(try server.admin("PUT", path, body).status == 201)
            }
            #expect(try server.admin("PUT", "/apps/shop/issuer-keys/n16", body).status == 422)
        }
    }

    /// RSA of 1024 bits, made with `openssl genpkey`.
    private static let smallRSA = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC8+dNQAbYknR6uEybjzcWs5sKF
        HgJo6xjpm7Z0LyKKnQbUfMqrTjduXbePl/voCH9bf4Dc+DPkv9Hfv2/YrQbyYVz0
        pmDjuM1EjXtSiCgW2q5OKjn2S1212AhK1w/tm21729GRxZ9Ex9jT4ONELigrpkoL
        IVkzV6p/Vv3hDULnAQIDAQAB
        -----END PUBLIC KEY-----
        """

    @Test("two API keys may be live; their secrets are told once and kept as hashes")
    func apiKeys() throws {
        try with { server throws in
            let first = try server.makeApp("shop")
            let second = try server.admin("POST", "/apps/shop/api-keys")
            let secret = try #require(try second.json["secret"].string)
            #expect(secret.hasPrefix("rk_") && secret != first)
            let third = try server.admin("POST", "/apps/shop/api-keys")
            #expect(third.status == 422)
            for path in ["/apps", "/apps/shop", "/apps/shop/api-keys"] {
                let body = try server.admin("GET", path).body
                #expect(!body.contains(first) && !body.contains(secret))
            }
            for name in try FileManager.default.contentsOfDirectory(
                atPath: server.directory.path) where !name.hasSuffix(".admin")
            {
                let file = server.directory.appendingPathComponent(name)
                let bytes = try Data(contentsOf: file)
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name)")
            }
            for key in [first, secret] {
                #expect(try server.send("GET", "/v1/users/a/devices", key: key).status == 200)
            }
        }
    }

    @Test("a policy beyond the classic one is shown and kept, and nonsense is named")
    func learnedPolicies() throws {
        let server = try TestServer()
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let classic = try server.admin("GET", "/apps/shop").json
        #expect(classic["grace_quantile"].number == 0)
        #expect(classic["demotion_misses"].number == 1)
        // What an app has that chose nothing.
        #expect(classic["grace_seconds"].number == 30)
        #expect(classic["silent_spacing_seconds"].number == 30)
        #expect(classic["alert_expiration_seconds"].number == 2_592_000)
        #expect(classic["doubt_misses"].number == 3 && classic["doubt_of"].number == 4)
        #expect(classic["doubt_retry_hours"].number == 12)
        let body =
            #"{"grace_quantile":95,"grace_min_seconds":5,"demotion_misses":2,"#
            + #""demotion_of":3,"silent_budget_min":1,"silent_budget_max":6,"gone_after_days":28}"#
        #expect(try server.admin("PATCH", "/apps/shop", body).status == 200)
        let shown = try server.admin("GET", "/apps/shop").json
        #expect(shown["grace_quantile"].number == 95)
        #expect(shown["grace_min_seconds"].number == 5)
        #expect(shown["grace_max_seconds"].number == 300)
        #expect(shown["demotion_of"].number == 3)
        #expect(shown["silent_budget_max"].number == 6)
        #expect(shown["gone_after_days"].number == 28)
        let refused = try server.admin("PATCH", "/apps/shop", #"{"demotion_of":1}"#)
        #expect(refused.status == 400)
        #expect(try refused.json["detail"].string?.contains("demotion takes") ?? false)
        #expect(try server.admin("GET", "/apps/shop").json["demotion_of"].number == 3)
        #expect(try server.admin("PATCH", "/apps/shop", #"{"grace_quantile":101}"#).status == 400)
    }

    @Test("a push credential that is to be new replaces none")
    func newPushCredential() throws {
        try with { server throws in
            _ = try server.makeApp("shop")
            func put(_ path: String, _ keyID: String) throws -> Exchange {
                try server.admin(
                    "PUT", "/apps/shop/push/\(path)",
                    try json([
                        "key_id": keyID, "team": "TEAM123456", "topics": ["org.example.app"],
                        "private_key_pem": PrivateKey.generate(.p256).pem,
                    ]))
            }
            func keys() throws -> [String?] {
                let push = try server.admin("GET", "/apps/shop").json["push"]
                return (0..<push.count).map { push[$0]["key_id"].string }
            }
            #expect(try put("production/voip?new=true", "FIRST12345").status == 200)
            let again = try put("production/voip?new=true", "OTHER12345")
            #expect(again.status == 409)
            #expect(again.headers["content-type"] == "application/problem+json")
            #expect(try again.json["type"].string == "urn:rouse:problem:id_in_use")
            #expect(try again.json["detail"].string?.contains("replace it") == true)
            #expect(try keys() == ["FIRST12345"])
            // Of another name or for another environment it is new.
            #expect(try put("production/other?new=true", "OTHER12345").status == 200)
            #expect(try put("development/voip?new=true", "THIRD12345").status == 200)
            #expect(try put("production?new=true", "PLAIN12345").status == 200)
            #expect(try put("production?new=true", "PLAIN12345").status == 409)
            // Who does not ask for that replaces it, as ever.
            for query in ["", "?new=false"] {
                #expect(try put("production/voip\(query)", "LATER12345").status == 200)
            }
            #expect(try keys().contains("LATER12345") && !(try keys().contains("FIRST12345")))
            #expect(try put("production/voip?new=1", "FALSE12345").status == 400)
        }
    }

    @Test("push credentials are checked, and the private key is never told")
    func pushCredentials() throws {
        try with { server throws in
            _ = try server.makeApp("shop")
            let key = PrivateKey.generate(.p256)
            let authority = try DevelopmentCertificates(names: ["localhost"]).authorityPEM
            var body: [String: Any] = [
                "key_id": "ABC1234567", "team": "TEAM123456", "private_key_pem": key.pem,
                "topics": ["org.example.app"], "host": "localhost", "port": 8443,
                "trusted_certificates_pem": authority,
            ]
            let path = "/apps/shop/push/production"
            let set = try server.admin("PUT", path, try json(body))
            #expect(set.status == 200)
            #expect(try set.json["has_trusted_certificates"].flag == true)
            let secret = key.pem.split(separator: "\n")[1]
            for path in ["/apps", "/apps/shop"] {
                #expect(!(try server.admin("GET", path).body.contains(secret)))
            }
            #expect(!set.body.contains(secret))
            let mistakes: [(String, Any)] = [
                ("private_key_pem", PrivateKey.generate(.ed25519).pem),
                ("private_key_pem", key.publicKeyPEM), ("topics", [String]()),
                ("topics", ["a\nb"]), ("port", 0), ("port", 65_536), ("host", ""),
                ("team", "a b"), ("key_id", ""), ("trusted_certificates_pem", "nonsense"),
            ]
            for (field, value) in mistakes {
                var wrong = body
                wrong[field] = value
                let answer = try server.admin("PUT", path, try json(wrong))
                #expect(answer.status == 400)
                #expect(try answer.json["detail"].string?.hasPrefix("\(field): ") == true)
            }
            body["host"] = nil
            body["port"] = nil
            let sandbox = try server.admin("PUT", "/apps/shop/push/development", try json(body))
            #expect(try sandbox.json["host"].string == "api.sandbox.push.apple.com")
            #expect(try sandbox.json["port"].number == 443)
            #expect(try server.admin("PUT", "/apps/shop/push/beta", try json(body)).status == 400)
            #expect(try server.admin("DELETE", path).status == 204)
            #expect(try server.admin("DELETE", path).status == 404)
            #expect(try server.admin("GET", "/apps/shop").json["push"].count == 1)
        }
    }

    @Test("a client certificate stands beside a key, names its topics, and is checked")
    func pushCertificates() throws {
        try with { server throws in
            _ = try server.makeApp("shop")
            try server.addPushCredential(to: "shop")
            let authority = try DevelopmentCertificates(names: ["localhost"])
            let own = try authority.issuePushClient(
                topics: ["org.example.app", "org.example.app.voip"], isForProduction: false)
            var body: [String: Any] = [
                "private_key_pem": own.privateKeyPEM, "certificate_pem": own.certificatePEM,
            ]
            let path = "/apps/shop/push/development/old-way"
            let set = try server.admin("PUT", path, try json(body))
            #expect(set.status == 200, "\(set.body)")
            #expect(try set.json["kind"].string == "certificate")
            #expect(try set.json["name"].string == "old-way")
            #expect(try set.json["topics"].count == 2)
            #expect(try server.admin("GET", "/apps/shop").json["push"].count == 2)
            let other = PrivateKey.generate(.p256).pem
            let bare = try authority.issueClient(name: "nobody")
            let mistakes: [([String: Any], String)] = [
                (["private_key_pem": other], "private_key_pem: "),
                (["topics": ["org.example.other"]], "topics: "),
                (["key_id": "ABC1234567"], "key_id: "),
                (["certificate_pem": "nonsense"], "certificate_pem: "),
                (
                    [
                        "certificate_pem": bare.certificatePEM,
                        "private_key_pem": bare.privateKeyPEM,
                    ], "certificate_pem: "
                ),
            ]
            for (change, place) in mistakes {
                let wrong = body.merging(change) { $1 }
                let answer = try server.admin("PUT", path, try json(wrong))
                #expect(answer.status == 400)
                #expect(try answer.json["detail"].string?.hasPrefix(place) == true, "\(change)")
            }
            #expect(
                try server.admin("PUT", "/apps/shop/push/production", try json(body)).status
                    == 400, "it is for development only")
            body["topics"] = ["org.example.app"]
            #expect(try server.admin("PUT", path, try json(body)).json["topics"].count == 1)
            #expect(try server.admin("PUT", path + "!", try json(body)).status == 400)
            #expect(try server.admin("DELETE", path).status == 204)
            #expect(try server.admin("DELETE", path).status == 404)
            #expect(try server.admin("GET", "/apps/shop").json["push"].count == 1)
            #expect(try server.admin("GET", "/push").json["credentials"].count == 0)
        }
    }

    @Test("removing a device ends its session and takes its push token")
    func devices() throws {
        try with { server throws in
            let key = try server.makeApp("shop")
            let device = try server.openDevice("shop", user: "anna smith")
            let list = try server.admin("GET", "/apps/shop/users/anna%20smith/devices").json
            #expect(list["devices"][0]["id"].string == "\(device)")
            #expect(try server.admin("GET", "/apps/shop/devices/\(device)").status == 200)
            #expect(try server.admin("DELETE", "/apps/shop/devices/\(device)").status == 204)
            #expect(try server.admin("DELETE", "/apps/shop/devices/\(device)").status == 404)
            #expect(try server.send("GET", "/v1/devices/\(device)", key: key).status == 404)
        }
    }

    @Test("of two that make the same app at once, one is told that it exists")
    func turns() throws {
        try with { server throws in
            let held = server.faults.holdNextWrite()
            let socket = server.adminSocket
            let calls = (0..<4).map { _ in
                Background {
                    try HTTPClient.send(
                        "POST", "/apps", headers: ["content-type": "application/json"],
                        body: #"{"app":"shop"}"#, to: .path(socket)
                    ).status
                }
            }
            #expect(held.entered.wait(seconds: 60))
            held.open.arrive()
            var statuses: [Int] = []
            for call in calls { statuses.append(try call.value()) }
            #expect(statuses.sorted() == [201, 409, 409, 409])
        }
    }

    @Test("the admin API is not on the backend's port, nor the other way round")
    func apart() throws {
        try with { server throws in
            #expect(try server.send("GET", "/apps").status == 404)
            #expect(try server.admin("GET", "/livez").status == 404)
        }
    }
}
