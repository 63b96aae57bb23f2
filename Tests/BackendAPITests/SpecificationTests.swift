import BackendAPI
import Crypto
import EventLoop
import Feed
import Foundation
import Glibc
import Model
import Testing
import Wire

@testable import Wake

/// Plays every route and every status of `Protocol/backend-api.yaml` against a real server and
/// lets `check_openapi.py` compare: what the file says must have happened, and what happened
/// must be in the file.
@Suite(.serialized) struct SpecificationTests {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    static let conversation = "0190a1b2-c3d4-7123-8456-789abcdef012"
    static let unknown = "0190a1b2-c3d4-7123-8456-000000000000"

    /// A route that changes something, and bodies for it.
    struct Write {
        var method = "POST"
        let path: String
        let good: String
        /// One that is above a limit.
        let large: String
        /// What is refused while the conversation's changes wait; `nil`: `good` is.
        var busy: String?
    }

    static let ended = "0190a1b2-c3d4-7123-8456-789abcdef016"
    static let buried = "0190a1b2-c3d4-7123-8456-789abcdef017"
    static let withdrawn = "0190a1b2-c3d4-7123-8456-789abcdef018"

    /// Routes without a body.
    static let deletions = ["/v1/messages/\(messageID)", "/v1/conversations/\(conversation)"]

    /// Routes that change something and take no body.
    static let bare = ["sessions/revoke", "suspend", "resume"].map { "/v1/users/anna/\($0)" }

    static let writes = [
        Write(
            path: "/v1/conversations", good: #"{"participants":["anna","ben"]}"#,
            large: #"{"participants":[\#(users)]}"#),
        Write(
            path: "/v1/conversations/\(conversation)/participants", good: #"{"users":["dora"]}"#,
            large: #"{"users":[\#(users)]}"#, busy: #"{"users":["newcomer"]}"#),
        Write(
            path: "/v1/conversations/\(conversation)/messages",
            good: #"{"parts":[{"mime_type":"text/plain","text":"hi"}]}"#,
            large: #"{"parts":[\#(list(33, #"{"mime_type":"a/b","text":""}"#))]}"#),
        Write(
            method: "PATCH", path: "/v1/conversations/\(conversation)/metadata",
            good: #"{"changes":[{"path":["theme","colour"],"value":"green"}]}"#,
            large: #"{"changes":[\#(list(65, #"{"path":["a"],"value":"b"}"#))]}"#),
        Write(
            path: "/v1/announcements",
            good: #"{"users":["anna"],"parts":[{"mime_type":"text/plain","text":"hi"}]}"#,
            large: #"{"users":["anna"],"parts":[\#(list(33, #"{"mime_type":"a/b","text":""}"#))]}"#,
            busy: #"{"users":[\#(users)],"parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        ),
        Write(
            path: "/v1/conversations/\(conversation)/participants/remove",
            good: #"{"users":["dora"]}"#, large: #"{"users":[\#(users)]}"#,
            busy: #"{"users":["ben"]}"#),
        Write(
            method: "PUT", path: "/v1/messages/\(messageID)",
            good: #"{"parts":[{"mime_type":"text/plain","text":"bye"}]}"#,
            large: #"{"parts":[\#(list(33, #"{"mime_type":"a/b","text":""}"#))]}"#),
    ]

    private static let users = (0..<300).map { "\"u\($0)\"" }.joined(separator: ",")

    private static func list(_ count: Int, _ item: String) -> String {
        Array(repeating: item, count: count).joined(separator: ",")
    }

    /// Where only the object's own app finds something, and, last, where everyone finds a list.
    static func reads(_ device: DeviceID) -> [String] {
        let here = "/v1/conversations/\(conversation)"
        return [
            "/v1/devices/\(device)/wakes", "/v1/devices/\(device)", here,
            here + "/participants", here + "/messages", here + "/receipts",
            "/v1/messages/\(messageID)", "/v1/users/anna", "/v1/users/anna/conversations",
            "/v1/messages/\(messageID)/explain", "/v1/users/anna/devices", "/v1/push/feedback",
            "/v1/users", "/v1/conversations",
        ]
    }

    static let messageID = "0190a1b2-c3d4-7123-8456-789abcdef013"

    @Test("every route and status of the file, and no other, is what the server does")
    func fileAndServerAgree() throws {
        let device = DeviceID(high: 0x0190_0000_0000_7000, low: 0x8000_0000_0000_0001)
        let server = try TestServer(wakes: Self.wakes(of: device))
        defer { server.stop() }
        let key = try server.makeApp("shop")
        try prepare(server, device)
        let gets = Self.reads(device)
        try succeed(server, key, gets)
        try refuse(server, key, gets, other: try server.makeApp("other"))
        try schedule(server, key, other: try server.makeApp("fifth"))
        try takeBack(server, key, other: try server.makeApp("sixth"))
        try setForUsers(server, key, other: try server.makeApp("seventh"))
        try deleteUser(server, key, other: try server.makeApp("third"))
        try administerWebhooks(server, key, other: try server.makeApp("fourth"))
        try administerCampaigns(
            server, try server.makeApp("campaigner"), other: try server.makeApp("bystander"))
        try refuseWhateverIsAsked(server)
        try refuseBeforeRouting(server, key)
        try fillFanOut(server, key)
        try fail(server, key, gets)
        try failWebhooks(server, key)
        try failCampaigns(server, key)
        try stopping(server, key, gets)
        try check(server.transcript)
    }

    /// One row with everything and one with as little as there can be.
    private static func wakes(of device: DeviceID) -> [WakeHistoryRecord] {
        [UInt64](1...2).map { number in
            let time = Timestamp(milliseconds: 1_795_000_000_000 + number)
            let all = number == 2
            return WakeHistoryRecord(
                app: AppID("shop"), user: UserID("anna"), device: device,
                wake: WakeID(high: 7, low: number), kind: all ? .badge : .silent, seq: number,
                conversation: ConversationID(high: 1, low: 1), message: MessageID(high: 1, low: 1),
                queuedAt: time, sentAt: time, acceptedAt: all ? time : nil,
                connectedAt: all ? time : nil, syncedAt: all ? time : nil,
                outcome: all ? .connectedNotSynced : .pending, status: all ? 429 : 0,
                reason: all ? "TooManyRequests" : "", badge: all ? 3 : nil,
                expiresAt: time + 2_592_000_000)
        }
    }

    /// A device with a push token and everything else an answer can hold.
    private func prepare(_ server: TestServer, _ device: DeviceID) throws {
        try server.addPushCredential(to: "shop")
        _ = try server.openDevice(
            "shop", user: "anna",
            push: PushRegistration(
                token: [1, 2, 3], environment: .development, topic: "org.example.app"),
            device: device)
    }

    private func succeed(_ server: TestServer, _ key: String, _ gets: [String]) throws {
        let named =
            #"{"id":"\#(Self.conversation)","participants":["anna","ben"]}"#
        #expect(try server.send("POST", Self.writes[0].path, key: key, named).status == 201)
        let full = """
            {"id":"\(Self.messageID)","sender":"anna","push":{"title":"A","body":"hi"},
             "parts":[{"mime_type":"image/png","content":"iVBORw0KGgo="},
              {"mime_type":"video/mp4","reference":{"url":"https://example.org/1","size":9,
               "digest":"n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
               "expires_at":"2027-01-01T00:00:00Z"}}]}
            """
        #expect(try server.send("POST", Self.writes[2].path, key: key, full).status == 201)
        for write in Self.writes.dropFirst() {
            let isMade = write.path.hasSuffix("s") && !write.path.hasSuffix("participants")
            let status = isMade ? 201 : 200
            #expect(
                try server.send(write.method, write.path, key: key, write.good).status == status)
        }
        try delete(server, key)
        let distinct = """
            {"participants":["anna","ben"],"distinct":true,"receipts_off":true,
             "metadata":[{"path":["title"],"value":"Trip"}]}
            """
        #expect(try server.send("POST", Self.writes[0].path, key: key, distinct).status == 201)
        for path in gets { #expect(try server.send("GET", path, key: key).status == 200) }
        for path in gets[3...5] + gets[8...8] + gets[12...13] {
            let piece = try server.send("GET", path + "?limit=1", key: key)
            let next = try #require(try piece.json["next"].string, "\(path): there is more")
            let rest = try server.send("GET", path + "?cursor=\(next)", key: key)
            #expect(rest.status == 200)
            #expect(try rest.json["next"].string == nil)
        }
        try dropToken(server, key)
        try removeDevice(server, key)
        let wakes = try server.send("GET", gets[0] + "?limit=2", key: key).json["wakes"]
        #expect(wakes.count == 2)
        #expect(wakes[0]["outcome"].string == "connected-not-synced", "newest first")
        #expect(wakes[1]["outcome"].string == "pending")
        #expect(try server.send("GET", gets[0] + "?limit=1", key: key).json["wakes"].count == 1)
        for path in Self.bare + [Self.bare[0] + "?reauthenticate=true"] {
            #expect(try server.send("POST", path, key: key).status == 204)
        }
        for path in ["/livez", "/readyz", "/metrics", "/openapi.yaml", "/docs"] {
            #expect(try server.send("GET", path).status == 200)
        }
    }

    /// A device whose token APNs calls dead, and what the backend reads of it.
    private func dropToken(_ server: TestServer, _ key: String) throws {
        let device = Self.carlsDevice
        let opened = try server.commit([
            .openSession(
                OpenSession(
                    app: AppID("shop"), device: device, role: .app,
                    credential: .identity(UserID("carl")), newTokenHash: device.bytes,
                    freshEpochHalf: 7, boot: BootID(high: 9, low: 9),
                    push: PushRegistration(
                        token: [9, 9], environment: .development, topic: "org.example.app")))
        ])
        guard case .opened(let answer)? = opened.first else {
            Issue.record("not logged in: \(opened)")
            return
        }
        _ = try server.commit([
            .endSession(EndSession(session: answer.session, applied: 0, expectedWithin: 0))
        ])
        let room = #"{"participants":["anna","carl"]}"#
        let made = try server.send("POST", Self.writes[0].path, key: key, room)
        let id = try #require(try made.json["id"].string)
        let text =
            #"{"sender":"anna","push":{"body":"hi"},"#
            + #""parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        #expect(
            try server.send("POST", "/v1/conversations/\(id)/messages", key: key, text).status
                == 201)
        let answers = try server.commit([
            .claimPushes(
                ClaimPushes(
                    boot: BootID(high: 9, low: 9), streams: 8,
                    ids: (0..<8).map { WakeID(high: 77, low: $0) }))
        ])
        guard case .pushes(let claimed)? = answers.first,
            let job = claimed.jobs.first(where: { $0.key.device == device })
        else {
            Issue.record("nothing was claimed: \(answers)")
            return
        }
        let dead = PushReply.answered(
            status: 410, reason: "Unregistered",
            timestamp: Timestamp(milliseconds: UInt64(Date().timeIntervalSince1970 * 1_000) + 1))
        _ = try server.commit([
            .finishPush(FinishPush(key: job.key, id: job.request.id, reply: dead))
        ])
        let told = try server.send("GET", "/v1/push/feedback?after=0&limit=1", key: key)
        let dropped = try told.json["dropped"][0]
        #expect(dropped["device"].string == device.description)
        #expect(dropped["reason"].string == "Unregistered")
        #expect(dropped["token_sha256"].string == Hex.encode(Digest.sha256([9, 9])))
        let next = try #require(try told.json["next"].string)
        let rest = try server.send("GET", "/v1/push/feedback?after=\(next)", key: key)
        #expect(try rest.json["dropped"].count == 0 && rest.json["next"].string == next)
        #expect(
            try server.send("GET", "/v1/push/feedback?after=x", key: key).status == 400)
    }

    /// A message, and a conversation with another in it, which are then refused as gone.
    private func delete(_ server: TestServer, _ key: String) throws {
        let made = #"{"id":"\#(Self.ended)","participants":["anna"]}"#
        #expect(try server.send("POST", Self.writes[0].path, key: key, made).status == 201)
        let body = #"{"id":"\#(Self.buried)","parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        let messages = "/v1/conversations/\(Self.ended)/messages"
        #expect(try server.send("POST", messages, key: key, body).status == 201)
        let other = body.replacingOccurrences(of: Self.buried, with: Self.withdrawn)
        #expect(try server.send("POST", messages, key: key, other).status == 201)
        let withdrawn = "/v1/messages/\(Self.withdrawn)"
        for _ in 0..<2 {
            #expect(try server.send("DELETE", withdrawn, key: key).status == 204)
        }
        let shown = try server.send("GET", withdrawn, key: key)
        #expect(shown.status == 200)
        #expect(try shown.json["deleted_at"].string != nil)
        let conversation = "/v1/conversations/\(Self.ended)"
        let once = ["idempotency-key": "end"]
        for _ in 0..<2 {
            #expect(
                try server.send("DELETE", conversation, key: key, headers: once).status == 204)
        }
        for path in [conversation, "/v1/messages/\(Self.buried)"] {
            #expect(try server.send("DELETE", path, key: key).status == 410)
        }
        for write in Self.writes.dropFirst() {
            let path = write.path.replacingOccurrences(of: Self.conversation, with: Self.ended)
                .replacingOccurrences(of: Self.messageID, with: Self.buried)
            guard path != write.path else { continue }
            #expect(try server.send(write.method, path, key: key, write.good).status == 410)
        }
    }

    private func refuseDeletions(
        _ server: TestServer, _ key: String, other: String
    ) throws {
        for path in Self.deletions {
            #expect(try server.send("DELETE", path).status == 401)
            #expect(try server.send("DELETE", path + "?x=1", key: key).status == 400)
            #expect(try server.send("DELETE", path, key: other).status == 404)
            // The word was used for another address.
            let once = ["idempotency-key": "end"]
            #expect(
                try server.send("DELETE", path, key: key, headers: once).status == 409)
            let big = String(repeating: " ", count: 600 * 1024)
            #expect(try server.send("DELETE", path, key: key, big).status == 413)
        }
    }

    /// Bodies that are refused for their form: the file must say so, too.
    private static var misshapen: [(write: Int, body: String)] {
        var all = [
            (0, "{}"), (0, #"{"participants":"anna"}"#),
            (0, #"{"participants":["anna"],"distinct":"yes"}"#),
            (4, #"{"users":["anna"],"parts":[{"mime_type":"a/b","text":""}],"urgency":"now"}"#),
        ]
        let digest = "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="
        let reference = #"{"url":"https://example.org/1","size":9,"digest":"\#(digest)"}"#
        let parts = [
            #"{"mime_type":"text/plain"}"#, #"{"text":"hi"}"#,
            #"{"mime_type":"text/plain","text":1}"#,
            #"{"mime_type":"text/plain","text":"hi","content":"aGk="}"#,
            #"{"mime_type":"text/plain","text":"hi","reference":\#(reference)}"#,
        ]
        for part in parts {
            let body = #"{"parts":[\#(part)]}"#
            all += [(2, body), (6, body)]
        }
        let members = [
            #""zone":"UTC""#, #""loc_args":["a"]"#, #""title_loc_args":[]"#, #""sound":1"#,
            #""sound":{"critical":false}"#, #""sound":{"name":"a.caf"}"#,
            #""texts":{"de":{"x":""}}"#, #""interruption_level":"loud""#, #""ttl_seconds":0"#,
            #""bdy":"hi""#,
        ]
        for member in members {
            let push = #"{"body":"hi",\#(member)}"#
            all.append((2, #"{"parts":[{"mime_type":"a/b","text":""}],"push":\#(push)}"#))
        }
        let changes = [
            #"{"path":["a"]}"#, #"{"path":["a"],"value":"b","removed":true}"#,
            #"{"path":["a"],"removed":false}"#, #"{"value":"b"}"#,
        ]
        for change in changes { all.append((3, #"{"changes":[\#(change)]}"#)) }
        return all
    }

    private func refuse(
        _ server: TestServer, _ key: String, _ gets: [String], other: String
    ) throws {
        try refuseDeletions(server, key, other: other)
        for (write, body) in Self.misshapen {
            let (method, path) = (Self.writes[write].method, Self.writes[write].path)
            let answer = try server.send(method, path, key: key, isMisshapen: true, body)
            #expect(answer.status == 400, "\(body)")
        }
        for write in Self.writes {
            func send(
                _ body: String, key: String? = key, path: String = write.path,
                _ headers: [String: String] = [:]
            ) throws -> Int {
                try server.send(write.method, path, key: key, headers: headers, body).status
            }
            #expect(try send(write.good, key: nil) == 401)
            #expect(try send("{}") == 400)
            #expect(try send(write.good, ["content-type": "text/plain"]) == 415)
            #expect(try send(write.large) == 422)
            let once = ["idempotency-key": UUID().uuidString]
            #expect(try send(write.good, once) < 300)
            #expect(try send(write.good + " ", once) == 409)
            let elsewhere = write.path.replacingOccurrences(
                of: Self.conversation, with: Self.unknown
            ).replacingOccurrences(of: Self.messageID, with: Self.unknown)
            guard elsewhere != write.path else { continue }
            #expect(try send(write.good, path: elsewhere) == 404)
            #expect(try send(write.good, key: other) == 404)
        }
        for path in Self.bare {
            #expect(try server.send("POST", path, key: "rk_wrong").status == 401)
            #expect(try server.send("POST", path + "?x=1", key: key).status == 400)
            #expect(try server.send("POST", path, key: other).status == 404)
        }
        let maybe = Self.bare[0] + "?reauthenticate=maybe"
        #expect(try server.send("POST", maybe, key: key).status == 400)
        for path in gets {
            #expect(try server.send("GET", path, key: "rk_wrong").status == 401)
            #expect(try server.send("GET", path + "?x=1", key: key).status == 400)
            if !gets[10...].contains(path) {
                #expect(try server.send("GET", path, key: other).status == 404)
            }
        }
        let stranger = #"{"sender":"zoe","parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        #expect(try server.send("POST", Self.writes[2].path, key: key, stranger).status == 403)
        #expect(try server.send("DELETE", Self.writes[0].path, key: key).status == 405)
        #expect(try server.send("POST", "/livez").status == 405)
        #expect(try server.send("GET", "/v2", key: key).status == 404)
        #expect(try server.send("HEAD", "/livez").status == 200)
        server.reasons.set(["draining"])
        #expect(try server.send("GET", "/readyz").status == 503)
        server.reasons.set([])
    }

    private static let doomed = "/v1/users/doomed"

    private func deleteUser(_ server: TestServer, _ key: String, other: String) throws {
        func send(
            _ path: String = Self.doomed, key: String? = key, _ headers: [String: String] = [:]
        ) throws -> Int {
            try server.send("DELETE", path, key: key, headers: headers).status
        }
        let made = #"{"participants":["doomed","spared"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: key, made).status == 201)
        #expect(try send(key: nil) == 401)
        #expect(try send("/v1/users/a%0Ab") == 400)
        #expect(try send("/v1/users/nobody") == 404)
        #expect(try send(key: other) == 404)
        let once = ["idempotency-key": "delete"]
        #expect(try send(key: key, once) == 202)
        #expect(try send(key: key, once) == 202)
        #expect(try send("/v1/users/spared", key: key, once) == 409)
        #expect(try server.send("GET", Self.doomed, key: key).status == 404)
        #expect(try server.send("POST", "/v1/conversations", key: key, made).status == 403)
        let add = #"{"users":["doomed"]}"#
        #expect(try server.send("POST", Self.writes[1].path, key: key, add).status == 403)
    }

    private func refuseBeforeRouting(_ server: TestServer, _ key: String) throws {
        let big = String(repeating: " ", count: 600 * 1024)
        for write in Self.writes {
            #expect(try server.send(write.method, write.path, key: key, big).status == 413)
        }
        #expect(
            try server.sendRaw(
                "POST /v1/conversations HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\n\r\n",
                "POST", "/v1/conversations"
            ).status == 413)
        let head = "GET /v1/devices/x HTTP/1.1\r\n"
        #expect(
            try server.sendRaw(
                head + "host: a\r\nhost: b\r\n\r\n", "GET", "/v1/devices/x"
            ).status == 400)
        let long = String(repeating: "x", count: 17 * 1024)
        #expect(
            try server.sendRaw(
                head + "host: a\r\nlong: \(long)\r\n\r\n", "GET", "/v1/devices/x"
            ).status == 431)
        #expect(
            try server.sendRaw(
                "GET /\(String(repeating: "x", count: 100_000)) HTTP/1.1\r\nhost: a\r\n\r\n",
                "GET", "/"
            ).status == 414)
        #expect(
            try server.sendRaw(
                "POST /v1/conversations HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
                "POST", "/v1/conversations"
            ).status == 501)
    }

    /// Nobody serves the fan-out here, so changes of a large conversation wait until no more fit.
    private func fillFanOut(_ server: TestServer, _ key: String) throws {
        let id = try #require(ConversationID(text: Self.conversation))
        let app = AppID("shop")
        var requests = (0..<2).map { half in
            StoreRequest.addParticipants(
                app: app,
                AddParticipants(
                    conversation: id, users: (0..<200).map { "crowd\(half * 200 + $0)" }),
                idempotency: nil)
        }
        requests += (0..<1100).map { number in
            let message = SendMessage(
                conversation: id, message: MessageID(high: 9, low: UInt64(number)),
                parts: [Part(mimeType: "text/plain", content: [65])])
            return .publish(
                app: app, Publication(message: message, sender: ""), idempotency: nil)
        }
        let crowd = (0..<300).map { "crowd\($0)" }
        requests += (0..<600).map { number in
            .announce(
                app: app,
                Announcement(
                    announcement: MessageID(high: 10, low: UInt64(number)), users: crowd,
                    parts: [Part(mimeType: "text/plain", content: [65])]), idempotency: nil)
        }
        let answers = try server.commit(requests)
        #expect(
            answers[requests.count - 601]
                == .refused(.rateLimited, detail: "too many changes of the conversation wait"))
        #expect(
            answers.last == .refused(.rateLimited, detail: "too many announcements wait"))
        for write in Self.writes.dropFirst() {
            let body = write.busy ?? write.good
            #expect(try server.send(write.method, write.path, key: key, body).status == 429)
        }
        for path in Self.deletions {
            #expect(try server.send("DELETE", path, key: key).status == 429)
        }
    }

    private func fail(_ server: TestServer, _ key: String, _ gets: [String]) throws {
        let writes: [(StoreError, Int)] = [
            (.full("test"), 507), (.unavailable("test"), 503), (.conflict("test"), 503),
            (.corrupt("test"), 500),
        ]
        for (error, status) in writes {
            server.faults.failWrites(error)
            for write in Self.writes {
                #expect(
                    try server.send(write.method, write.path, key: key, write.good).status
                        == status)
            }
            #expect(try server.send("DELETE", Self.doomed, key: key).status == status)
            let others = [
                Self.scheduledPath, Self.announcementPath, Self.devicePath(Self.carlsDevice),
            ]
            for path in Self.deletions + others {
                #expect(try server.send("DELETE", path, key: key).status == status)
            }
            for path in Self.bare {
                #expect(try server.send("POST", path, key: key).status == status)
            }
            for (method, path, body) in Self.settingChanges {
                #expect(try server.send(method, path, key: key, body).status == status)
            }
            #expect(try server.send("GET", "/readyz").status == 503)
        }
        server.faults.failWrites(nil)
        for (error, status) in [(StoreError.unavailable("test"), 503), (.corrupt("test"), 500)] {
            server.faults.failReads(error)
            for path in gets + Self.settingReads + ["/v1/scheduled", Self.scheduledPath] {
                #expect(try server.send("GET", path, key: key).status == status)
            }
        }
        server.faults.failReads(nil)
    }

    /// While an answer is still under way, a stopping server refuses what is new.
    private func stopping(_ server: TestServer, _ key: String, _ gets: [String]) throws {
        let held = server.faults.holdNextWrite()
        let (port, good) = (server.api.port, Self.writes[0])
        let pending = Background {
            try HTTPClient.send(
                "POST", good.path,
                headers: ["authorization": "Bearer \(key)", "content-type": "application/json"],
                body: good.good, to: .port(port))
        }
        #expect(held.entered.wait(seconds: 60))
        let api = server.api
        let stop = Background { api.stop(milliseconds: 60_000) }
        // Begun on another thread; until then the door is open.
        try wait { try HTTPClient.send("GET", "/livez", to: .port(port)).status == 503 }
        for path in gets + ["/livez", "/readyz", "/metrics", "/openapi.yaml", "/docs"] {
            #expect(try server.send("GET", path, key: key).status == 503)
        }
        held.open.arrive()
        let answered = try pending.value()
        #expect(answered.status == 201, "what was under way is answered")
        server.note(answered)
        try stop.value()
    }

    private func check(_ transcript: [Exchange]) throws {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-transcript-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try JSONEncoder().encode(transcript).write(to: file)
        let process = Process()
        // Debian's own, which has the packages.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [
            Self.root.appendingPathComponent("Tests/peers/check_openapi.py").path,
            Self.root.appendingPathComponent("Protocol/backend-api.yaml").path, file.path,
        ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(String(decoding: text, as: UTF8.self))")
    }
}
