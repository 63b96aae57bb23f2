import Crypto
import Model
import Wire

extension Conformance {
    static let sessionCases = openingCases + credentialCases + roleCases

    /// Sends HELLO on a new connection.
    static func greeted(_ t: Trial, _ hello: Hello, request: UInt16 = 1) throws -> Peer {
        let peer = try t.connect(t.delivery)
        try peer.send(.hello(hello), request: request)
        return peer
    }

    private static let serverFrames: [FrameType] = [
        .challenge, .welcome, .delta, .syncRequest, .mutationResult, .page, .snapshotPage,
        .digestResult, .drain, .error,
    ]

    // MARK: - Opening

    static let openingCases: [ConformanceCase] = [
        .must(
            "session.tls", "TLS 1.3 with `rouse/1`, and nobody comes in without that name",
            ["FRM-40", "SES-1: without that name the server MUST refuse the handshake"]
        ) { t in
            try require(try t.handshake(protocols: ["rouse/1"]), "`rouse/1` was refused")
            try require(!(try t.handshake(protocols: ["http/1.1"])), "`http/1.1` was taken")
            try require(!(try t.handshake(protocols: ["rouse/2"])), "`rouse/2` was taken")
            try require(!(try t.handshake(protocols: [])), "no name was taken")
        },
        .must(
            "session.hello-first", "before HELLO nothing but CLOSE is taken",
            [
                "SES-1: MUST send HELLO as its first frame",
                "SES-5: MUST be answered with CLOSE 5004",
            ], bytes: true
        ) { t in
            let first: [FrameBody] = [
                .sync(SyncFrame()), .ack(Ack()), .mutate(Mutation(number: 1)),
                .appState(AppState()), .authenticate(Authenticate(identityToken: "x")),
                .ping(Ping(nextMs: 1000)), .pong(Pong()), .fetch(Fetch()),
            ]
            for body in first {
                let peer = try t.connect(t.delivery)
                try peer.send(body, request: 1)
                do {
                    try peer.expectClose(.protocolViolation)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("\(body.type.name) first: \(reason)")
                }
            }
        },
        .must(
            "session.close-before-hello", "CLOSE before HELLO ends the connection in order",
            ["SES-5"], bytes: true
        ) { t in
            let peer = try t.connect(t.delivery)
            try peer.send(.close(Close(code: Code.goingAway.rawValue)))
            try peer.expectEnd(after: "CLOSE")
        },
        .must(
            "session.hello-timeout", "no complete HELLO within 10 s of TLS closes with 5007",
            ["SES-1: MUST close with 5007 a connection on which no complete HELLO arrived"],
            seconds: 30, timer: true
        ) { t in
            let silent = try t.connect()
            try silent.expectClose(.helloTimeout, within: .seconds(20))
        },
        .must(
            "session.hello-trickle", "bytes that arrive do not extend the time for HELLO",
            ["SES-1: Bytes that arrive MUST NOT extend the deadline"], seconds: 30, timer: true
        ) { t in
            let peer = try t.connect()
            let bytes = Frame(.hello(t.hello(t.newID())), request: 1).encoded
            let started = ContinuousClock.now
            for byte in bytes.prefix(bytes.count - 1) {
                try peer.send(bytes: [byte])
                if let arrival = try peer.next(within: .milliseconds(900)) {
                    guard case .frame(let frame) = arrival, case .close(let close) = frame.body
                    else { throw CaseEnd.failed("half a HELLO was answered") }
                    try requireEqual(close.code, Code.helloTimeout.rawValue, "CLOSE")
                    let waited = started.duration(to: .now)
                    try require(waited > .seconds(8), "closed after \(waited)")
                    return
                }
                if started.duration(to: .now) > .seconds(18) { break }
            }
            throw CaseEnd.failed("the connection is open after 18 s")
        },
        .must(
            "session.hello-fields", "HELLO without app, device or role closes with 4002",
            [
                "SES-2: HELLO MUST carry `app`, `device` and `role`",
                "SES-2: a missing one MUST be answered with CLOSE 4002",
            ], bytes: true
        ) { t in
            let whole = t.hello(t.newID())
            var changes: [(String, Hello)] = []
            var changed = whole
            changed.app = ""
            changes.append(("app", changed))
            changed = whole
            changed.device = nil
            changes.append(("device", changed))
            changed = whole
            changed.role = .unspecified
            changes.append(("role", changed))
            for (name, hello) in changes {
                let peer = try greeted(t, hello)
                do {
                    try peer.expectClose(.missingField)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("without \(name): \(reason)")
                }
            }
        },
        .must(
            "session.app-name", "an app name that cannot be one closes with 4000",
            ["SES-2: another one MUST be answered with CLOSE 4000"],
            bytes: true
        ) { t in
            for name in [String(repeating: "a", count: 65), "a\u{1}b", "a\nb", "\u{7F}"] {
                var hello = t.hello(t.newID())
                hello.app = name
                try greeted(t, hello).expectClose(.malformed)
            }
        },
        .must(
            "session.client-name", "a long client name is cut, not refused", ["SES-2"]
        ) { t in
            var hello = t.hello(t.newID())
            hello.clientName = String(repeating: "ü", count: 2000)
            hello.clientVersion = String(repeating: "9", count: 2000)
            try greeted(t, hello).expect(.challenge)
        },
        .must(
            "session.version", "the highest common version is taken; without one: 5005",
            [
                "SES-3: MUST answer with the highest version that both speak",
                "SES-3: MUST close with 5005", "FRM-40",
            ], bytes: true
        ) { t in
            for (low, high) in [(2, 9), (0, 0), (7, 2)] as [(UInt32, UInt32)] {
                var hello = t.hello(t.newID())
                hello.versionMin = low
                hello.versionMax = high
                try greeted(t, hello).expectClose(.upgradeRequired)
            }
            var hello = t.hello(t.newID())
            hello.versionMin = 0
            hello.versionMax = 99
            let peer = try greeted(t, hello)
            let challenge = try peer.expect(.challenge)
            let token = try t.issuer.token(user: t.user("anna"), nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            try requireEqual(try peer.expect(.welcome).version, 1, "version")
        },
        .must(
            "session.features", "WELCOME names only features that were asked for and exist",
            ["SES-4: WELCOME MUST name the agreed set"]
        ) { t in
            let anna = Device(trial: t, user: t.user("anna"), id: t.newID(), role: .app)
            anna.features = ["no-such-feature", "live"]
            try anna.logIn()
            try requireEqual(anna.welcome.features, ["live"], "features")
            let ben = Device(trial: t, user: t.user("ben"), id: t.newID(), role: .app)
            try ben.logIn()
            try requireEqual(ben.welcome.features, [], "features")
        },
        .must(
            "session.live-not-agreed", "without `live` in WELCOME no DELTA comes unasked",
            ["SES-4: MUST NOT use a feature that WELCOME does not name", "SYN-21"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") { try anna.say("one", in: conversation) }
            let asked = try ben.peer.expect(.syncRequest)
            try require(asked.head > ben.applied, "SYNC_REQUEST names no new head")
            for frame in ben.peer.passed + (try ben.peer.frames(during: .milliseconds(300))) {
                if case .delta = frame.body { throw CaseEnd.failed("\(frame.summary) unasked") }
            }
        },
        .must(
            "session.before-welcome",
            "from HELLO to WELCOME nothing but AUTHENTICATE, PING, PONG and CLOSE is taken",
            ["SES-5: MUST be answered with CLOSE 5004"], bytes: true
        ) { t in
            let wrong: [FrameBody] = [
                .hello(t.hello(t.newID())), .sync(SyncFrame()), .ack(Ack()),
                .mutate(Mutation(number: 1)), .appState(AppState()), .fetch(Fetch()),
            ]
            for body in wrong {
                let (peer, _) = try t.challenged(nil, t.delivery)
                try peer.send(.pong(Pong(nextMs: 60_000)))
                try peer.expectAlive()
                try peer.send(body, request: 2)
                do {
                    try peer.expectClose(.protocolViolation)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("\(body.type.name) after HELLO: \(reason)")
                }
            }
        },
        .must(
            "session.server-frames", "frames that only a server sends close with 5004",
            ["SES-5: MUST be answered with CLOSE 5004"], bytes: true
        ) { t in
            for type in serverFrames {
                let (peer, _) = try t.challenged(nil, t.delivery)
                try peer.send(bytes: RawFrame(type).bytes)
                do {
                    try peer.expectClose(.protocolViolation)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("\(type.name): \(reason)")
                }
            }
        },
        .must(
            "session.server-frames-later", "also after WELCOME",
            ["SES-5: MUST be answered with CLOSE 5004"]
        ) { t in
            for type in serverFrames {
                let anna = try t.device(of: t.user("anna"), isSynced: false)
                try anna.peer.send(bytes: RawFrame(type).bytes)
                do {
                    try anna.peer.expectClose(.protocolViolation)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("\(type.name): \(reason)")
                }
            }
        },
        .must(
            "session.once", "a second HELLO, and AUTHENTICATE after WELCOME, close with 5004",
            ["SES-5: MUST be answered with CLOSE 5004"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false, delivery: t.delivery)
            try anna.peer.send(.hello(anna.hello), request: 9)
            try anna.peer.expectClose(.protocolViolation)
            let ben = try t.device(of: t.user("ben"), isSynced: false, delivery: t.delivery)
            try ben.peer.send(.authenticate(Authenticate(identityToken: "x")))
            try ben.peer.expectClose(.protocolViolation)
        },
        .must(
            "session.welcome", "WELCOME carries all it must",
            ["SES-12", "SES-20: WELCOME MUST also carry"]
        ) { t in
            let user = t.user("anna")
            let anna = try t.device(of: user, isSynced: false)
            let welcome = anna.welcome
            try requireEqual(welcome.version, 1, "version")
            try requireEqual(welcome.user, user, "user")
            try require(welcome.serverTimeMs > 1_600_000_000_000, "no server time")
            try require(welcome.epoch != nil, "no epoch")
            try require(welcome.keepaliveMs > 0, "no keepalive")
            try require(welcome.sessionToken.count >= 16, "a session token below 128 bits")
            try require(welcome.sessionTokenLifetimeMs > 0, "no lifetime of the session token")
            try require(!welcome.node.isEmpty, "no name of the node")
            let limits = welcome.limits ?? AdvertisedLimits()
            try require(
                limits.windowBytes > 0 && limits.windowDeltas > 0
                    && limits.mutationsUnanswered > 0 && limits.messageBytes > 0
                    && limits.participantsPerRequest > 0, "a limit is missing: \(limits)")
            try requireEqual(welcome.mutationFloor, 0, "a new device's mutation floor")
        },
    ]

    // MARK: - Devices and roles

    static let roleCases: [ConformanceCase] = [
        .must(
            "session.supersede", "a newer connection of the device closes the older with 5002",
            ["SES-15: MUST close the older with 5002"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let older = anna.peer
            try settingUp("again") { try anna.reconnect() }
            try older.expectClose(.superseded)
            try anna.peer.expectAlive()
        },
        .must(
            "session.no-supersede-unauthenticated",
            "a connection that is not authenticated supersedes nothing",
            ["SES-15: MUST NOT supersede any"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let (peer, challenge) = try t.challenged(anna.id)
            if t.issuer.key != nil {
                var draft = TokenDraft(t.issuer, user: anna.user, nonce: challenge.nonce)
                draft.set("aud", "\"another\"")
                try peer.send(
                    .authenticate(Authenticate(identityToken: try t.issuer.token(draft))))
                try settingUp("refusal") { try peer.expectError(.tokenInvalid, request: 0) }
            }
            try anna.peer.expectAlive()
        },
        .must(
            "session.two-devices", "two devices of a user do not disturb each other", ["SES-15"]
        ) { t in
            let user = t.user("anna")
            let first = try t.device(of: user)
            let second = try t.device(of: user)
            try first.peer.expectAlive()
            try second.peer.expectAlive()
        },
        .must(
            "session.device-moves", "logging in as another user logs the former one out",
            ["SES-14: MUST log the former one out"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let token = anna.sessionToken
            let ben = try t.device(of: t.user("ben"), id: anna.id)
            try requireEqual(ben.welcome.user, ben.user, "user")
            try anna.peer.expectClose(.revoked)
            let peer = try greeted(t, t.hello(anna.id, token: token))
            let challenge = try peer.expect(.challenge)
            try requireEqual(challenge.reason, .revoked, "reason")
        },
        .must(
            "session.extension-beside", "an extension's session does not displace the app's",
            ["SES-15", "SES-17: It MUST NOT displace the app's session"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(
                of: anna.user, id: anna.id, role: .extension, isSynced: false)
            try beside.peer.expectAlive()
            try anna.peer.expectAlive()
        },
        .must(
            "session.extension-refusals", "an extension may not sync on, read, mutate or tell",
            ["SES-17: MUST be refused with ERROR 4003"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(
                of: anna.user, id: anna.id, role: .extension, isSynced: false)
            let refused: [FrameBody] = [
                .sync(SyncFrame(mode: .advance)),
                .mutate(
                    Mutation(
                        number: 1,
                        operation: .createConversation(
                            CreateConversation(conversation: t.newID())))),
                .appState(AppState(phase: .foreground)),
                .ack(Ack(reads: [ReadReceipt(conversation: t.newID(), through: 1)])),
            ]
            for (index, body) in refused.enumerated() {
                let request = UInt16(20 + index)
                try beside.peer.send(body, request: request)
                do {
                    try beside.peer.expectError(.forbidden, request: request)
                } catch CaseEnd.failed(let reason) {
                    throw CaseEnd.failed("\(body.type.name): \(reason)")
                }
            }
            try beside.peer.expectAlive()
        },
        .must(
            "session.extension-user", "an extension cannot log in as another user than the app",
            ["SES-17: it MUST NOT log in as another user"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let peer = try greeted(t, t.hello(anna.id, role: .extension))
            let challenge = try peer.expect(.challenge)
            let token = try t.issuer.token(user: t.user("ben"), nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            try peer.expectClose(.forbidden)
            try anna.peer.expectAlive()
        },
        .must(
            "session.extension-token",
            "the app's token opens an extension's session, and its token no app's",
            ["SES-12: MUST get one that only lets an extension in", "SES-17"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let first = try greeted(
                t, t.hello(anna.id, role: .extension, token: anna.sessionToken))
            let welcome = try first.expect(.welcome)
            let second = try greeted(
                t, t.hello(anna.id, role: .extension, token: welcome.sessionToken))
            try second.expect(.welcome)
            let third = try greeted(t, t.hello(anna.id, token: welcome.sessionToken))
            let challenge = try third.expect(.challenge)
            try requireEqual(challenge.reason, .revoked, "reason")
        },
    ]
}
