import Crypto
import FoundationEssentials
import Model
import Wire

extension Conformance {
    /// A token changed by `change`, and what the server must say to it.
    private static func refused(
        _ t: Trial, _ what: String, _ code: Code,
        _ change: (inout TokenDraft) throws -> Void
    ) throws {
        let (peer, challenge) = try t.challenged(nil, t.delivery)
        let user = t.user("anna")
        var draft = TokenDraft(t.issuer, user: user, nonce: challenge.nonce)
        try change(&draft)
        try peer.send(.authenticate(Authenticate(identityToken: try t.issuer.token(draft))))
        do {
            try peer.expectError(code, request: 0)
        } catch CaseEnd.failed(let reason) {
            throw CaseEnd.failed("\(what): \(reason)")
        }
        // The socket stays, and the same CHALLENGE may be answered again.
        try settingUp("after \(what)") {
            let token = try t.issuer.token(user: user, nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            try peer.expect(.welcome)
        }
    }

    /// A token changed by `change`, which lets in.
    private static func taken(
        _ t: Trial, _ what: String, _ change: (inout TokenDraft) throws -> Void
    ) throws {
        let (peer, challenge) = try t.challenged()
        var draft = TokenDraft(t.issuer, user: t.user("anna"), nonce: challenge.nonce)
        try change(&draft)
        try peer.send(.authenticate(Authenticate(identityToken: try t.issuer.token(draft))))
        do {
            try peer.expect(.welcome)
        } catch CaseEnd.failed(let reason) {
            throw CaseEnd.failed("\(what): \(reason)")
        }
    }

    private static var now: Int { Int(Date().timeIntervalSince1970) }

    static let credentialCases: [ConformanceCase] = [
        .must(
            "session.challenge", "HELLO without a token gets CHALLENGE: 32 bytes, a time, `first`",
            ["SES-8: MUST answer CHALLENGE on the same connection"], bytes: true
        ) { t in
            let peer = try greeted(t, t.hello(t.newID()), request: 4711)
            let challenge = try peer.expect(.challenge, request: 4711)
            try requireEqual(challenge.nonce.count, 32, "bytes of the nonce")
            try require(challenge.lifetimeMs > 0, "no lifetime")
            try requireEqual(challenge.reason, .first, "reason")
        },
        .must(
            "session.challenge-fresh", "each CHALLENGE has a nonce of its own", ["SES-8", "SES-11"]
        ) { t in
            var seen: Set<[UInt8]> = []
            for _ in 0..<4 {
                let peer = try greeted(t, t.hello(t.newID()))
                seen.insert(try peer.expect(.challenge).nonce)
            }
            try requireEqual(seen.count, 4, "different nonces")
        },
        .must(
            "session.challenge-revoked", "a token that is none gets CHALLENGE with `revoked`",
            ["SES-8: MUST answer CHALLENGE on the same connection"], bytes: true
        ) { t in
            for token in [[1], [UInt8](repeating: 7, count: 32), Random.bytes(32)] as [[UInt8]] {
                let peer = try greeted(t, t.hello(t.newID(), token: token))
                try requireEqual(try peer.expect(.challenge).reason, .revoked, "reason")
            }
        },
        .must(
            "session.request-numbers",
            "CHALLENGE and WELCOME carry HELLO's number, whatever "
                + "AUTHENTICATE carries",
            ["FRM-10", "SES-8: MUST carry the request number of HELLO"], bytes: true
        ) { t in
            let peer = try greeted(t, t.hello(t.newID()), request: 300)
            let challenge = try peer.expect(.challenge, request: 300)
            let token = try t.issuer.token(user: t.user("anna"), nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)), request: 5)
            try peer.expect(.welcome, request: 300)
        },
        .must(
            "session.token-login", "the session token logs in at once",
            ["SES-7: MUST answer with WELCOME"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let peer = try greeted(t, t.hello(anna.id, token: anna.sessionToken), request: 8)
            let welcome = try peer.expect(.welcome, request: 8)
            try requireEqual(welcome.user, anna.user, "user")
        },
        .must(
            "session.token-device", "a session token is good for its own device only",
            ["SES-7: MUST NOT accept it from another device or app"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let stranger = try greeted(t, t.hello(t.newID(), token: anna.sessionToken))
            try requireEqual(try stranger.expect(.challenge).reason, .revoked, "reason")
            // Another known device of the same user is another device, too.
            let other = try t.device(of: anna.user)
            let known = try greeted(t, t.hello(other.id, token: anna.sessionToken))
            try requireEqual(try known.expect(.challenge).reason, .revoked, "reason")
        },
        .must(
            "session.token-app", "a session token is good for its own app only",
            ["SES-7: MUST NOT accept it from another device or app"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            var hello = t.hello(anna.id, token: anna.sessionToken)
            hello.app = "no-such-app-\(Hex.encode(Random.bytes(4)))"
            let peer = try greeted(t, hello)
            guard case .frame(let frame) = try peer.next() else {
                throw CaseEnd.failed("no answer to HELLO")
            }
            if case .welcome = frame.body { throw CaseEnd.failed("another app got WELCOME") }
        },
        .must(
            "session.token-new", "each WELCOME brings a session token of its own",
            ["SES-12: WELCOME MUST carry a new `session_token`"]
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false)
            var seen: Set<[UInt8]> = [anna.sessionToken]
            for _ in 0..<3 {
                try settingUp("again") { try anna.reconnect() }
                seen.insert(anna.sessionToken)
            }
            try requireEqual(seen.count, 4, "different session tokens")
        },
        .must(
            "session.token-kept", "the former token stays good until the new one has been used",
            ["SES-12: MUST stay valid until the new one has been used"]
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false)
            let former = anna.sessionToken
            // The answers get lost: the device still has the former one.
            for _ in 0..<2 {
                let peer = try greeted(t, t.hello(anna.id, token: former))
                try peer.expect(.welcome)
                peer.cut()
            }
        },
        .must(
            "session.inline-sync", "the SYNC inside HELLO is answered under HELLO's number",
            ["FRM-10", "SES-8: MUST carry the request number of HELLO"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            var hello = anna.hello
            hello.sync = anna.syncFrame
            let peer = try greeted(t, hello, request: 21)
            try peer.expect(.welcome, request: 21)
            let delta = try peer.expect(.delta, request: 21)
            try requireEqual(delta.from, anna.cursor, "from")
            try requireEqual(delta.to, anna.cursor, "to")
        },
        .must(
            "session.inline-sync-dropped",
            "a SYNC inside a HELLO that was challenged is dropped",
            ["SES-8: MUST be dropped unread"]
        ) { t in
            let anna = Device(trial: t, user: t.user("anna"), id: t.newID(), role: .app)
            var hello = anna.hello
            let conversation: ConversationID = t.newID()
            hello.sync = SyncFrame(
                mode: .advance,
                mutations: [
                    Mutation(
                        number: 1,
                        operation: .createConversation(
                            CreateConversation(conversation: conversation)))
                ])
            let peer = try greeted(t, hello)
            let challenge = try peer.expect(.challenge)
            let token = try t.issuer.token(user: anna.user, nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            let welcome = try peer.expect(.welcome)
            try requireEqual(welcome.mutationFloor, 0, "mutation floor: the SYNC was taken")
            try peer.expectNothing(for: .milliseconds(300))
            try peer.send(.sync(SyncFrame(mode: .advance)), request: 2)
            let delta = try peer.expect(.delta, request: 2)
            try requireEqual(delta.entries.count, 0, "entries of a new user")
        },
        .must(
            "session.identity", "identity tokens in every form the text allows let in",
            ["SES-11", "SES-9: Other members MUST be ignored"]
        ) { t in
            try taken(t, "audience as an array") {
                $0.set("aud", "[\"another\",\(TokenDraft.quoted(t.app))]")
            }
            try taken(t, "no iat") { $0.set("iat", nil) }
            try taken(t, "nbf now") { $0.set("nbf", "\(now)") }
            try taken(t, "nbf within the skew") { $0.set("nbf", "\(now + 30)") }
            try taken(t, "expired within the skew") { $0.set("exp", "\(now - 30)") }
            try taken(t, "a fraction") { $0.set("exp", "\(now + 100).25") }
            try taken(t, "other members") {
                $0.set("scope", "{\"a\":[1,2,{\"b\":null}]}")
                $0.setHeader("typ", "\"JWT\"")
            }
        },
        .must(
            "session.identity-refused",
            "a token that is not one for this app: 2001, and the "
                + "socket stays",
            [
                "SES-9: that names a member twice, MUST be refused",
                "SES-11: MUST be refused with ERROR 2001", "SES-11: the socket MUST stay",
            ], bytes: true, seconds: 60
        ) { t in
            try refused(t, "another audience", .tokenInvalid) { $0.set("aud", "\"another\"") }
            try refused(t, "no audience", .tokenInvalid) { $0.set("aud", nil) }
            try refused(t, "an audience without the app", .tokenInvalid) {
                $0.set("aud", "[\"another\"]")
            }
            try refused(t, "an unknown kid", .tokenInvalid) { $0.setHeader("kid", "\"nobody\"") }
            try refused(t, "no kid", .tokenInvalid) { $0.setHeader("kid", nil) }
            try refused(t, "another key", .tokenInvalid) { draft in
                draft.key = t.issuer.key?.kind == .p256 ? .generate(.p256) : .generate(.ed25519)
            }
            try refused(t, "an empty sub", .tokenInvalid) { $0.set("sub", "\"\"") }
            try refused(t, "no sub", .tokenInvalid) { $0.set("sub", nil) }
            try refused(t, "a sub of 129 bytes", .tokenInvalid) {
                $0.set("sub", TokenDraft.quoted(String(repeating: "a", count: 129)))
            }
            try refused(t, "a control character", .tokenInvalid) { $0.set("sub", "\"a\\u0001\"") }
            try refused(t, "an empty iss", .tokenInvalid) { $0.set("iss", "\"\"") }
            try refused(t, "no exp", .tokenInvalid) { $0.set("exp", nil) }
            try refused(t, "exp as text", .tokenInvalid) { $0.set("exp", "\"\(now + 99)\"") }
            try refused(t, "nbf in the future", .tokenInvalid) { $0.set("nbf", "\(now + 600)") }
            try refused(t, "iat in the future", .tokenInvalid) { $0.set("iat", "\(now + 600)") }
            try refused(t, "crit", .tokenInvalid) { $0.setHeader("crit", "[\"exp\"]") }
            try refused(t, "a member twice", .tokenInvalid) {
                $0.claims.append(("aud", TokenDraft.quoted(t.app)))
            }
        },
        .must(
            "session.algorithm", "the algorithm is the key's: another one, and none, are refused",
            ["SES-10: MUST refuse a token whose `alg` is not the algorithm of the key"]
        ) { t in
            try refused(t, "alg none", .tokenInvalid) {
                $0.setHeader("alg", "\"none\"")
                $0.isUnsigned = true
            }
            try refused(t, "alg HS256", .tokenInvalid) { $0.setHeader("alg", "\"HS256\"") }
            try refused(t, "alg of another key", .tokenInvalid) { draft in
                let isES256 = t.issuer.key?.kind == .p256
                draft.setHeader("alg", isES256 ? "\"EdDSA\"" : "\"ES256\"")
            }
            try refused(t, "no signature", .tokenInvalid) { $0.isUnsigned = true }
        },
        .must(
            "session.identity-garbage", "text that is no token: 2001",
            ["SES-11: MUST be refused with ERROR 2001"], bytes: true
        ) { t in
            for text in ["", ".", "..", "a.b.c", String(repeating: "a", count: 9000)] {
                let (peer, _) = try t.challenged(nil, t.delivery)
                try peer.send(.authenticate(Authenticate(identityToken: text)))
                try peer.expectError(.tokenInvalid, request: 0)
            }
        },
        .must(
            "session.nonce", "a token over another connection's nonce: 2003",
            [
                "SES-9",
                "SES-11: A nonce MUST NOT be good for more than one successful login",
            ]
        ) { t in
            let (_, other) = try t.challenged()
            try refused(t, "another connection's nonce", .nonceExpired) {
                $0.set("nonce", "\"\(Base64URL.encode(other.nonce))\"")
            }
            try refused(t, "a nonce of no connection", .nonceExpired) {
                $0.set("nonce", "\"\(Base64URL.encode(Random.bytes(32)))\"")
            }
        },
        .must(
            "session.expired", "a token more than 60 s past its time: 2002",
            ["SES-9", "SES-11"]
        ) { t in
            try refused(t, "expired", .expired) { $0.set("exp", "\(now - 120)") }
        },
        .must(
            "session.refusal-order", "first what it is (2001), then its nonce (2003), then its age",
            ["SES-11"]
        ) { t in
            try refused(t, "another app, expired", .tokenInvalid) {
                $0.set("aud", "\"another\"")
                $0.set("exp", "\(now - 120)")
            }
            try refused(t, "another nonce, expired", .nonceExpired) {
                $0.set("nonce", "\"\(Base64URL.encode(Random.bytes(32)))\"")
                $0.set("exp", "\(now - 120)")
            }
        },
        .must(
            "session.three-refusals", "the third refusal closes with 2001",
            ["SES-11: The third refusal MUST be CLOSE 2001"], bytes: true
        ) { t in
            let (peer, _) = try t.challenged(nil, t.delivery)
            for _ in 0..<2 {
                try peer.send(.authenticate(Authenticate(identityToken: "a.b.c")))
                try peer.expectError(.tokenInvalid, request: 0)
            }
            try peer.send(.authenticate(Authenticate(identityToken: "a.b.c")))
            try peer.expectClose(.tokenInvalid)
        },
        .must(
            "session.login-timeout", "no login within 60 s of CHALLENGE closes with 2000",
            [
                "SES-11: MUST close with 2000 a connection that is not logged in 60 s after",
                "SES-11: bytes that arrive MUST NOT extend the deadline",
            ],
            seconds: 90, timer: true
        ) { t in
            let (peer, _) = try t.challenged()
            let started = ContinuousClock.now
            // Frames do not extend it.
            while started.duration(to: .now) < .seconds(50) {
                try peer.expectAlive()
                if let arrival = try peer.next(within: .seconds(2)) {
                    guard case .frame(let frame) = arrival else {
                        throw CaseEnd.failed("the connection ended before its time")
                    }
                    throw CaseEnd.failed("\(frame.summary) came before the time was over")
                }
            }
            try peer.expectClose(.authRequired, within: .seconds(25))
        },
        .must(
            "session.push-topic",
            "a topic that is not the app's: ERROR 2010, and the session "
                + "goes on",
            [
                "SES-18: MUST be one of those configured",
                "SES-18: the server MUST answer ERROR 2010 after WELCOME",
            ]
        ) { t in
            let anna = Device(trial: t, user: t.user("anna"), id: t.newID(), role: .app)
            anna.push = PushRegistration(
                token: Random.bytes(32), environment: .production, topic: "no.such.topic")
            try anna.logIn()
            try requireEqual(anna.welcome.pushTokenHeld, false, "push_token_held")
            try anna.peer.expectError(.pushTokenRefused, request: 1)
            try anna.peer.expectAlive()
        },
        .must(
            "session.push-held", "a token for a configured topic is held, and detached elsewhere",
            [
                "SES-18: WELCOME MUST say in `push_token_held`",
                "SES-18: registering it MUST detach it elsewhere",
            ]
        ) { t in
            guard let push = t.server.credentials.push else {
                throw CaseEnd.skipped("the credentials name no push topic")
            }
            let anna = Device(trial: t, user: t.user("anna"), id: t.newID(), role: .app)
            anna.push = PushRegistration(
                token: Random.bytes(32),
                environment: push.environment == "development" ? .development : .production,
                topic: push.topic)
            try anna.logIn()
            try requireEqual(anna.welcome.pushTokenHeld, true, "push_token_held")
            let ben = Device(trial: t, user: t.user("ben"), id: t.newID(), role: .app)
            ben.push = anna.push
            try ben.logIn()
            try requireEqual(ben.welcome.pushTokenHeld, true, "push_token_held")
            anna.push = nil
            try anna.reconnect()
            try requireEqual(anna.welcome.pushTokenHeld, false, "push_token_held elsewhere")
        },
    ]
}
