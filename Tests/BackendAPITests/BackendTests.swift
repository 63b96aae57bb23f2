import BackendAPI
import EventLoop
import Feed
import Foundation
import Glibc
import Model
import StoreService
import Testing
import Wire

/// What a backend relies on, over a real socket and a real store.
@Suite struct BackendTests {
    static let conversation = "0190a1b2-c3d4-7123-8456-789abcdef012"
    static let messages = "/v1/conversations/\(conversation)/messages"
    static let hello = #"{"parts":[{"mime_type":"text/plain","text":"hello"}]}"#

    private func withShop(
        _ body: (TestServer, String) throws -> Void
    ) throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let made = try server.send(
            "POST", "/v1/conversations", key: key,
            #"{"id":"\#(Self.conversation)","participants":["anna","ben"]}"#)
        try #require(made.status == 201)
        try body(server, key)
    }

    @Test("the same Idempotency-Key has one effect and one answer")
    func idempotency() throws {
        try withShop { server, key throws in
            let once = ["idempotency-key": "order-17"]
            let first = try server.send("POST", Self.messages, key: key, headers: once, Self.hello)
            let second = try server.send("POST", Self.messages, key: key, headers: once, Self.hello)
            #expect(first.status == 201)
            #expect((second.status, second.body) == (first.status, first.body))
            let other = Self.hello.replacingOccurrences(of: "hello", with: "goodbye")
            let refused = try server.send("POST", Self.messages, key: key, headers: once, other)
            #expect(refused.status == 409)
            #expect(try refused.json["type"].string == "urn:rouse:problem:idempotency_mismatch")
            let neighbour = try server.send(
                "POST", "/v1/conversations", key: key, #"{"participants":["anna"]}"#)
            let id = try #require(try neighbour.json["id"].string)
            let elsewhere = try server.send(
                "POST", "/v1/conversations/\(id)/messages", key: key, headers: once, Self.hello)
            #expect(elsewhere.status == 409, "another path is another request")
            let next = try server.send("POST", Self.messages, key: key, Self.hello)
            #expect(try next.json["position"].number == 2, "the repetition took no position")
        }
    }

    @Test("creating and adding are repeated with the answer they had, though others came between")
    func idempotencyOfConversations() throws {
        try withShop { server, key throws in
            let path = "/v1/conversations/\(Self.conversation)/participants"
            let create = ["idempotency-key": "c"]
            let add = ["idempotency-key": "a"]
            let body = #"{"participants":["x"]}"#
            let made = try server.send(
                "POST", "/v1/conversations", key: key, headers: create, body)
            let added = try server.send(
                "POST", path, key: key, headers: add, #"{"users":["carl"]}"#)
            #expect(try added.json["participant_count"].number == 3)
            try server.send("POST", path, key: key, #"{"users":["dora"]}"#)
            #expect(
                try server.send("POST", path, key: key, headers: add, #"{"users":["carl"]}"#).body
                    == added.body)
            #expect(
                try server.send("POST", "/v1/conversations", key: key, headers: create, body).body
                    == made.body)
        }
    }

    @Test(
        "an Idempotency-Key that is none is refused",
        arguments: ["", " ", "a b", "\u{e9}", String(repeating: "k", count: 256)])
    func idempotencyKeys(_ word: String) throws {
        try withShop { server, key throws in
            let answer = try server.send(
                "POST", Self.messages, key: key, headers: ["idempotency-key": word], Self.hello)
            #expect(answer.status == 400)
        }
    }

    @Test("a message is edited and deleted, a participant removed, a conversation ended")
    func changes() throws {
        try withShop { server, key throws in
            let made = try server.send("POST", Self.messages, key: key, Self.hello)
            let id = try #require(try made.json["id"].string)
            let message = "/v1/messages/\(id)"
            let edit = #"{"parts":[{"mime_type":"text/plain","text":"bye"}],"base_version":1}"#
            let once = ["idempotency-key": "edit"]
            let first = try server.send("PUT", message, key: key, headers: once, edit)
            #expect(first.status == 200)
            #expect(try first.json["version"].number == 2)
            #expect(try first.json["position"].number == 1)
            // Another edit comes between; the repetition tells of the first.
            let later = edit.replacingOccurrences(of: #":1}"#, with: #":2}"#)
            #expect(try server.send("PUT", message, key: key, later).status == 200)
            let again = try server.send("PUT", message, key: key, headers: once, edit)
            #expect((again.status, again.body) == (first.status, first.body))
            let conflict = try server.send("PUT", message, key: key, edit)
            #expect(conflict.status == 409)
            #expect(try conflict.json["type"].string == "urn:rouse:problem:version_conflict")
            #expect(
                try server.send(
                    "PUT", message, key: key, edit.replacingOccurrences(of: ":1}", with: ":0}")
                ).status == 400)
            #expect(try server.send("DELETE", message, key: key).status == 204)
            #expect(try server.send("PUT", message, key: key, later).status == 410)
            let path = "/v1/conversations/\(Self.conversation)"
            let removed = try server.send(
                "POST", path + "/participants/remove", key: key, #"{"users":["ben","zoe"]}"#)
            #expect(try removed.json["participant_count"].number == 1)
            #expect(try server.send("DELETE", path, key: key).status == 204)
            #expect(try server.send("POST", Self.messages, key: key, Self.hello).status == 410)
        }
    }

    @Test("an id given by the caller cannot be used twice")
    func ids() throws {
        try withShop { server, key throws in
            let id = "0190A1B2-c3d4-7123-8456-789abcdef099"
            let body = Self.hello.dropLast() + #","id":"\#(id)"}"#
            let first = try server.send("POST", Self.messages, key: key, String(body))
            #expect(try first.json["id"].string == id.lowercased())
            let second = try server.send("POST", Self.messages, key: key, String(body))
            #expect(second.status == 409)
            #expect(try second.json["code"].number == 3010)
        }
    }

    @Test("a list of messages is gone on with in either order")
    func eitherOrder() throws {
        try withShop { server, key throws in
            for _ in 1...4 {
                #expect(try server.send("POST", Self.messages, key: key, Self.hello).status == 201)
            }
            func positions(_ query: String) throws -> (seen: [Int], next: String) {
                let answer = try server.send("GET", Self.messages + query, key: key)
                #expect(answer.status == 200)
                let list = try answer.json["messages"]
                return (
                    try (0..<list.count).compactMap { try list[$0]["position"].number },
                    try answer.json["next"].string ?? ""
                )
            }
            let rising = try positions("?order=ascending&limit=3")
            #expect(rising.seen == [1, 2, 3])
            #expect(try positions("?order=descending&cursor=\(rising.next)").seen == [2, 1])
            let falling = try positions("?limit=3")
            #expect(falling.seen == [4, 3, 2])
            #expect(try positions("?order=ascending&cursor=\(falling.next)").seen == [3, 4])
        }
    }

    @Test("an app reaches only its own objects, and the app is the key's")
    func isolation() throws {
        try withShop { server, key throws in
            let device = try server.openDevice("shop", user: "anna")
            let other = try server.makeApp("other")
            #expect(try server.send("POST", Self.messages, key: other, Self.hello).status == 404)
            #expect(try server.send("GET", "/v1/devices/\(device)", key: other).status == 404)
            let devices = try server.send("GET", "/v1/users/anna/devices", key: other)
            #expect(try devices.json["devices"].count == 0)
            let own = try server.send("GET", "/v1/users/anna/devices", key: key)
            #expect(try own.json["devices"][0]["id"].string == "\(device)")
            // The same id is another conversation in another app.
            let same = try server.send(
                "POST", "/v1/conversations", key: other,
                #"{"id":"\#(Self.conversation)","participants":["anna"]}"#)
            #expect(same.status == 201)
        }
    }

    @Test(
        "a body that is not what the description says is refused by name",
        arguments: [
            (#"{"parts":[],"colour":1}"#, 4000, "colour"),
            (#"{"parts":[{"mime_type":"a/b","text":"x","size":1}]}"#, 4000, "parts[0].size"),
            (#"{"parts":[{"mime_type":"a/b","text":7}]}"#, 4000, "parts[0].text: must be a string"),
            (#"{"parts":{}}"#, 4000, "parts: must be an array"),
            (#"{"parts":null}"#, 4000, "not null"),
            (#"{}"#, 4002, "parts: is missing"),
            (#"{"parts":[]}"#, 4002, "no parts"),
            (
                #"{"parts":[{"mime_type":"a/b"}]}"#, 4002,
                "parts[0]: must hold text, content or reference"
            ),
            (#"{"parts":[{"mime_type":"a/b","text":"","content":""}]}"#, 4000, "beside text"),
            (#"{"parts":[{"mime_type":"a/b","content":"a"}]}"#, 4000, "base64"),
            (#"{"parts":[{"mime_type":"a/b","content":"===="}]}"#, 4000, "base64"),
            (#"{"parts":[{"mime_type":"a/b","content":"YQ======"}]}"#, 4000, "base64"),
            (#"{"parts":[{"text":"x"}]}"#, 4002, "parts[0].mime_type: is missing"),
            (#"{"id":"x","parts":[]}"#, 4000, "id: must be 36 characters"),
            (#"{"id":null,"parts":[]}"#, 4000, "not null"),
            (#"{"push":"hi","parts":[]}"#, 4000, "push: must be an object"),
            (#"{"push":{"headline":"x"},"parts":[]}"#, 4000, "push.headline"),
            (#"{"push":{"relevance":2},"parts":[]}"#, 4000, "push.relevance"),
            (#"{"push":{"loc_args":[]},"parts":[]}"#, 4000, "must not stand without loc_key"),
            (#"{"push":{"interruption_level":"x"},"parts":[]}"#, 4000, "push.interruption_level"),
            (#"{"push":{"sound":{"critical":false}},"parts":[]}"#, 4000, "push.sound.critical"),
            (#"{"push":{"data":{"aps":1}},"parts":[]}"#, 4000, "custom data named aps"),
            (#"{"push":{"texts":{"de":{"x":1}}},"parts":[]}"#, 4000, "push.texts.de.x"),
            (#"{"urgency":"now","parts":[]}"#, 4000, "urgency: must be urgent"),
            (#"{"sender":"","parts":[]}"#, 4000, "sender: must have 1 to 128 bytes"),
            ("[]", 4000, "the body must be an object"),
            ("{", 4000, "not JSON"), ("", 4000, "not JSON"), ("\"\u{0}\"", 4000, "the body"),
            (String(repeating: "[", count: 100_000), 4000, "levels deep"),
        ])
    func strictness(_ body: String, _ code: Int, _ words: String) throws {
        try withShop { server, key throws in
            let answer = try server.send(
                "POST", Self.messages, key: key, headers: ["content-type": "application/json"],
                body)
            #expect(answer.status == 400)
            #expect(try answer.json["code"].number == code)
            let detail = try answer.json["detail"].string ?? ""
            #expect(detail.contains(words), "\(detail)")
        }
    }

    @Test("a push that Apple would not take is refused when it is published, and told why")
    func pushesThatFit() throws {
        try withShop { server, key throws in
            func publish(_ push: String) throws -> (status: Int, detail: String) {
                let answer = try server.send(
                    "POST", Self.messages, key: key,
                    #"{"parts":[{"mime_type":"a/b","text":"x"}],"push":\#(push)}"#)
                return (answer.status, try answer.json["detail"].string ?? "")
            }
            let all = #"""
                {"title":"T","subtitle":"S","body":"B","title_loc_key":"TK","title_loc_args":["a"],
                 "loc_key":"K","loc_args":["1"],"more":" +%d","more_loc_key":"KM",
                 "sound":{"critical":true,"name":"a.caf","volume":0.5},"thread":"t",
                 "category":"c","interruption_level":"critical","relevance":0.25,
                 "target_content_id":"w","mutable_content":false,"event":"e","object":"o",
                 "data":{"a":[1,-2.5,18446744073709551615,true,null,{"b":"\u00e9"}]},
                 "texts":{"de":{"title":"T","subtitle":"S","body":"B","more":" (+%d)"}}}
                """#
            #expect(try publish(all).status == 201)
            let filler = String(repeating: "d", count: 2_990)
            let argument = String(repeating: "a", count: 250)
            let large = try publish(
                #"{"body":"B","data":{"d":"\#(filler)"},"#
                    + #""title_loc_key":"K","title_loc_args":["\#(argument)","\#(argument)","\#(argument)"]}"#
            )
            #expect(large.status == 413)
            #expect(large.detail.contains("bytes beside its text, of 4096"), "\(large.detail)")
            let custom = try publish(#"{"body":"B","data":{"d":"\#(filler + argument)"}}"#)
            #expect(custom.status == 413)
            #expect(custom.detail.contains("more than 3072 bytes"), "\(custom.detail)")
            let name = try publish(#"{"body":"B","thread":"\#(argument)"}"#)
            #expect(name.status == 413 && name.detail.contains("thread"), "\(name)")
        }
    }

    @Test("a message may have 64 KiB of parts, however JSON spells them, and no byte more")
    func sizes() throws {
        try withShop { server, key throws in
            func body(_ count: Int) -> String {
                let text = String(repeating: #"\u0001"#, count: count - 3)
                return #"{"parts":[{"mime_type":"a/b","text":"\#(text)"}]}"#
            }
            #expect(try server.send("POST", Self.messages, key: key, body(65_536)).status == 201)
            let large = try server.send("POST", Self.messages, key: key, body(65_537))
            #expect(large.status == 413)
            #expect(try large.json["code"].number == 4001)
        }
    }

    @Test("a revoked key is refused from the moment the revocation is answered")
    func revocation() throws {
        try withShop { server, key throws in
            let keys = try server.admin("GET", "/apps/shop/api-keys").json["api_keys"]
            let id = try #require(keys[0]["id"].string)
            #expect(try server.admin("DELETE", "/apps/shop/api-keys/\(id)").status == 204)
            let answer = try server.send("GET", "/v1/users/anna/devices", key: key)
            #expect(answer.status == 401)
            #expect(try answer.json["code"].number == 2001)
        }
    }

    @Test("the API key is one word behind the scheme, and nothing beside it")
    func authorization() throws {
        try withShop { server, key throws in
            for (field, status) in [
                ("Bearer \(key)", 200), ("bearer \(key)", 200), ("BEARER   \(key)", 200),
                ("Bearer \(key) x", 401), ("Bearer x \(key)", 401), ("Bearer", 401),
                ("Bearer \(key)x", 401), ("Basic \(key)", 401), (key, 401),
            ] {
                let answer = try server.send(
                    "GET", "/v1/users/anna/devices", headers: ["authorization": field])
                #expect(answer.status == status, "\(field.replacing(key, with: "KEY"))")
            }
        }
    }

    @Test("a removed app's key is refused, also by a request that was under way")
    func removedApp() throws {
        try withShop { server, key throws in
            let held = server.faults.holdNextWrite()
            server.post(
                .administer(.removeDevice(AppID("shop"), UserID("x"), DeviceID(high: 0, low: 0))))
            #expect(held.entered.wait(seconds: 60))
            server.post(.administer(.removeApp(AppID("shop"))))
            try wait { server.store.waitingRequests >= 1 }
            let port = server.api.port
            let pending = Background {
                try HTTPClient.send(
                    "POST", Self.messages,
                    headers: [
                        "authorization": "Bearer \(key)", "content-type": "application/json",
                    ],
                    body: Self.hello, to: .port(port))
            }
            try wait { server.store.waitingRequests >= 2 }
            held.open.arrive()
            #expect(try pending.value().status == 401)
            #expect(try server.send("GET", "/v1/users/anna/devices", key: key).status == 401)
        }
    }

    @Test("a device is shown with its cursor and push token, and the token itself is not told")
    func devices() throws {
        try withShop { server, key throws in
            try server.addPushCredential(to: "shop")
            let token = Array("a-token-of-apns".utf8)
            let device = try server.openDevice(
                "shop", user: "anna",
                push: PushRegistration(
                    token: token, environment: .development, topic: "org.example.app"))
            try server.send("POST", Self.messages, key: key, Self.hello)
            let answer = try server.send("GET", "/v1/devices/\(device)", key: key)
            let shown = try answer.json
            #expect(shown["reachability"].string == "online")
            #expect(shown["feed"]["is_behind"].flag == true)
            #expect(shown["feed"]["applied"].number == 0)
            #expect(shown["feed"]["head"].number ?? 0 > 0)
            #expect(shown["push_token"]["is_held"].flag == true)
            #expect(shown["push_token"]["topic"].string == "org.example.app")
            #expect(shown["settings"]["background_refresh"].string == "off")
            #expect(shown["settings"]["low_power"].string == "unknown")
            for spelling in [
                "a-token-of-apns", Data(token).base64EncodedString(),
                token.map { String(format: "%02x", $0) }.joined(),
            ] {
                #expect(!answer.body.contains(spelling))
            }
            let bare = try server.openDevice("shop", user: "ben")
            let other = try server.send("GET", "/v1/devices/\(bare)", key: key).json
            #expect(other["push_token"].names == ["is_held"])
        }
    }

    @Test("no answer leaves before its commit has returned")
    func answersFollowCommits() throws {
        try withShop { server, key throws in
            let held = server.faults.holdNextWrite()
            let port = server.api.port
            let pending = Background {
                try HTTPClient.send(
                    "POST", Self.messages,
                    headers: [
                        "authorization": "Bearer \(key)", "content-type": "application/json",
                    ],
                    body: Self.hello, to: .port(port))
            }
            #expect(held.entered.wait(seconds: 60))
            // The loop turns and reads are answered meanwhile; the publish is not.
            #expect(try server.send("GET", "/livez").status == 200)
            #expect(try server.send("GET", "/v1/users/anna/devices", key: key).status == 200)
            server.faults.failWrites(.full("test"))
            held.open.arrive()
            #expect(try pending.value().status == 507)
            server.faults.failWrites(nil)
            let next = try server.send("POST", Self.messages, key: key, Self.hello)
            #expect(try next.json["position"].number == 1, "nothing of the refused one is there")
        }
    }

    @Test("after a full disk the server gets ready by itself")
    func fullDisk() throws {
        // One duty finds nothing to write: that it succeeds says nothing about the disk.
        let server = try TestServer(duties: [
            StoreDuty(
                name: "retention", request: .enforceRetention(rows: 8), interval: 20),
            StoreDuty(name: "alive", request: .keepAlive, interval: 20),
        ])
        defer { server.stop() }
        server.faults.failWrites(.full("test"))
        try wait { try server.send("GET", "/readyz").status == 503 }
        let full = try server.send("GET", "/readyz").json
        #expect(full["reasons"][0].string == "the store has no space left")
        #expect(try server.send("GET", "/livez").status == 200)
        server.faults.failWrites(nil)
        try wait { try server.send("GET", "/readyz").status == 200 }
    }

    @Test("log and metrics hold no key, no text and no user's name")
    func silence() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let server = try TestServer(log: ends[1])
        let key = try server.makeApp("shop")
        let made = try server.send(
            "POST", "/v1/conversations", key: key, #"{"participants":["secretive"]}"#)
        let id = try #require(try made.json["id"].string)
        try server.send(
            "POST", "/v1/conversations/\(id)/messages", key: key,
            #"{"parts":[{"mime_type":"a/b","text":"private words"}],"push":{"body":"private"}}"#)
        try server.send("GET", "/v1/users/secretive/devices", key: key)
        try server.send("GET", "/v1/users/secretive/devices", key: key + "x")
        let metrics = try server.send("GET", "/metrics").body
        #expect(metrics.contains(#"route="/v1/users/{user}/devices",status="200"} 1"#))
        #expect(metrics.contains(#"route="/v1/users/{user}/devices",status="401"} 1"#))
        server.stop()
        close(ends[1])
        let log = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true).readDataToEndOfFile()
        let text = metrics + String(decoding: log, as: UTF8.self)
        #expect(text.contains("api.answered"))
        for secret in [key, "rk_", "private", "secretive"] {
            #expect(!text.contains(secret), "\(secret)")
        }
    }
}
