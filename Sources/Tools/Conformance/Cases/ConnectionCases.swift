import Model
import Wire

extension Conformance {
    /// Sends the frame so often, in one piece: who is still sending when the server has waited
    /// long enough after its CLOSE would lose that. Steps over the answers to CLOSE 1002.
    private static func flood(_ peer: Peer, _ count: UInt16, _ body: FrameBody) throws {
        try peer.send(bytes: (1...count).flatMap { Frame(body, request: $0).encoded })
        while true {
            guard case .frame(let frame)? = try peer.next() else {
                throw CaseEnd.failed("\(count) frames were not answered by CLOSE")
            }
            switch frame.body {
            case .pong, .error: continue
            case .close(let close):
                try requireEqual(close.code, Code.rateLimited.rawValue, "CLOSE")
                return try peer.expectEnd(after: "CLOSE")
            default: throw CaseEnd.failed("\(frame.summary) came, CLOSE was expected")
            }
        }
    }

    static let connectionCases: [ConformanceCase] = [
        .must(
            "connection.ping", "PING gets PONG with its number, at any time after HELLO",
            ["CON-6: MUST be answered by PONG with the same request number"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            for request in [0, 1, 65_535] as [UInt16] {
                try anna.peer.send(.ping(Ping(nextMs: 60_000)), request: request)
                let pong = try anna.peer.expect(.pong, request: request)
                try require(pong.nextMs > 0, "PONG promises no next frame (CON-5)")
            }
        },
        .must(
            "connection.ping-flood", "PINGs without end are closed with 1002",
            ["CON-18: MUST close with 1002 a connection on which more of them came"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try flood(anna.peer, 200, .ping(Ping(nextMs: 60_000)))
        },
        .must(
            "connection.ping-flood-before-login", "a stranger's PINGs are closed sooner",
            ["CON-18: strangers are allowed few"]
        ) { t in
            let (peer, _) = try t.challenged()
            try flood(peer, 60, .ping(Ping(nextMs: 60_000)))
        },
        .must(
            "connection.error-flood", "a client that does not heed ERRORs is closed with 1002",
            ["CON-19: MUST close with 1002 a connection"]
        ) { t in
            // A feature that was not agreed on (FRM-42).
            let anna = try t.device(of: t.user("anna"))
            try flood(anna.peer, 200, .signal(Signal()))
        },
        .must(
            "connection.pong-unasked", "a PONG that nobody asked for is taken", ["CON-5"],
            bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try anna.peer.send(.pong(Pong(nextMs: 60_000)), request: 9)
            try anna.peer.expectAlive()
        },
        .must(
            "connection.app-state", "every app state is taken and answered by nothing",
            ["CON-1", "CON-2"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            for phase in AppPhase.allCases {
                try anna.peer.send(
                    .appState(
                        AppState(
                            phase: phase, remainingMs: 5_000, notifications: .off,
                            backgroundRefresh: .on, lowPower: .off)))
            }
            try anna.peer.expectAlive()
        },
        .must(
            "connection.error-goes-on", "an ERROR answers its request and the connection goes on",
            ["FRM-10", "CON-10: the connection MUST go on"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try anna.peer.send(.ack(Ack(applied: 1 << 50)), request: 44)
            let error = try anna.peer.expectError(.ackAhead, request: 44)
            try requireEqual(error.name, Code.ackAhead.name, "name")
            try anna.peer.expectAlive()
            try requireEqual(try anna.syncAnswer().entries.count, 0, "entries")
        },
        .must(
            "connection.retry-classes",
            "ERROR, CLOSE and results carry the retry class of their "
                + "code",
            [
                "CON-10: MUST NOT send anything after it, and MUST close the socket",
                "CON-11: Both MUST carry a code and a retry class",
            ]
        ) { t in
            func same(_ code: UInt32, _ retry: RetryClass) throws {
                let expected = Code(rawValue: code)?.retryClass
                try requireEqual(retry, expected ?? .none, "retry class of \(code)")
            }
            let anna = try t.device(of: t.user("anna"))
            try anna.peer.send(.ack(Ack(applied: 1 << 50)), request: 44)
            let error = try anna.peer.expectError(.ackAhead, request: 44)
            try same(error.code, error.retry)
            let result = try anna.mutate(
                send([text("x")], to: t.newID(), t.newID()))
            try same(result.code, result.retry)
            try anna.peer.send(.authenticate(Authenticate(identityToken: "x")))
            let close = try anna.peer.expectClose(.protocolViolation)
            try same(close.code, close.retry)
            var hello = t.hello(t.newID())
            hello.versionMax = 0
            let old = try greeted(t, hello)
            let upgrade = try old.expectClose(.upgradeRequired)
            try same(upgrade.code, upgrade.retry)
            let (peer, _) = try t.challenged()
            try peer.send(.authenticate(Authenticate(identityToken: "a.b.c")))
            let refusal = try peer.expectError(.tokenInvalid, request: 0)
            try same(refusal.code, refusal.retry)
        },
        .must(
            "connection.close-ends", "after the client's CLOSE the server ends the connection",
            ["CON-10", "CON-12"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try anna.peer.send(
                .close(Close(code: Code.goingAway.rawValue, applied: anna.applied)))
            try anna.peer.expectEnd(after: "CLOSE")
        },
        .must(
            "connection.nothing-after-close", "what follows the client's CLOSE is not carried out",
            ["CON-10"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let close = Frame(.close(Close(code: Code.goingAway.rawValue, applied: 0))).encoded
            let mutate = Frame(
                .mutate(Mutation(number: 1, operation: create(t.newID()))), request: 5
            ).encoded
            try anna.peer.send(bytes: close + mutate)
            try anna.peer.expectEnd(after: "CLOSE")
            try settingUp("again") { try anna.reconnect() }
            try requireEqual(anna.welcome.mutationFloor, 0, "mutation floor")
        },
        .must(
            "connection.close-applied", "`applied` in CLOSE counts as in an ACK",
            ["CON-12: which MUST count as in an ACK"]
        ) { t in
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") {
                try anna.say("one", in: conversation)
                _ = try ben.peer.expect(.syncRequest)
                ben.apply(try ben.syncAnswer())
            }
            // No ACK: only CLOSE says that it was applied.
            try ben.close()
            try anna.poll(until: "the receipt") {
                $0.receipt(of: ben.user, in: conversation)?.deliveredThrough == 1
            }
        },
        .must(
            "connection.keepalive", "WELCOME asks for a keepalive below what balancers drop",
            ["CON-7"]
        ) { t in
            let anna = try t.device(of: t.user("anna"), isSynced: false)
            let asked = anna.welcome.keepaliveMs
            try require(asked > 0 && asked < 240_000, "keepalive of \(asked) ms")
        },
        .must(
            "connection.promise-broken", "30 s after a shorter promise was missed: 5003",
            ["CON-5", "CON-7: The server MUST close with 5003 30 s after"], seconds: 70, timer: true
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try anna.peer.send(.ping(Ping(nextMs: 1_000)), request: 5)
            try anna.peer.expect(.pong, request: 5)
            let started = ContinuousClock.now
            try anna.peer.expectClose(.idle, within: .seconds(50))
            let waited = started.duration(to: .now)
            try require(waited > .seconds(28), "closed after \(waited)")
        },
        .must(
            "connection.promise-renewed", "a shorter promise counts until the next frame only",
            ["CON-7: MUST count until its next frame"], seconds: 70, timer: true
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try anna.peer.send(.ping(Ping(nextMs: 1_000)), request: 5)
            try anna.peer.expect(.pong, request: 5)
            try anna.peer.send(.ping(Ping(nextMs: 120_000)), request: 6)
            try anna.peer.expect(.pong, request: 6)
            try anna.peer.expectNothing(for: .seconds(40))
            try anna.peer.expectAlive()
        },
        .must(
            "connection.error-tells-nothing",
            "an error is the same whether an object out of reach "
                + "exists or not", ["HIS-3", "CON-13: An error MUST NOT tell whether"]
        ) { t in
            let carl = try t.device(of: t.user("carl"))
            let (anna, _, conversation) = try t.pair()
            let message = try settingUp("a message") { try anna.say("one", in: conversation) }
            var answers: [MutationResult] = []
            for (id, object) in [(conversation, message), (t.newID(), t.newID())] {
                var results = [
                    try carl.mutate(send([text("x")], to: id, t.newID())),
                    try carl.mutate(
                        .muteConversation(MuteConversation(conversation: id, muted: true))),
                    try carl.mutate(
                        .editMessage(EditMessage(message: object, parts: [text("x")]))),
                    try carl.mutate(
                        .deleteMessage(DeleteMessage(message: object, forEveryone: true))),
                    try carl.mutate(
                        .deleteConversation(DeleteConversation(conversation: id))),
                ]
                for index in results.indices {
                    results[index].number = 0
                    results[index].object = []
                }
                if answers.isEmpty {
                    answers = results
                } else {
                    try requireEqual(results, answers, "answers for ids that are nobody's")
                }
            }
        },
        ConformanceCase.must(
            "connection.drain",
            "DRAIN names slot and deadline, the session goes on until 5001; who "
                + "is not logged in gets 5000",
            [
                "CON-8: The session MUST go on", "CON-8: MUST be closed with 5000",
                "CON-9: the server MUST close with 5001",
            ], seconds: 120, timer: true
        ) { t in
            guard let drain = t.server.drain else {
                throw CaseEnd.skipped("nobody told how to make the server drain")
            }
            let anna = try t.device(of: t.user("anna"))
            let (waiting, _) = try t.challenged()
            try settingUp("drain") { try drain() }
            try waiting.expectClose(.goingAway)
            let told = try anna.peer.expect(.drain)
            let started = ContinuousClock.now
            try require(told.deadlineMs > 0, "no deadline")
            try require(told.place != .unspecified, "no place")
            try anna.peer.expectAlive()
            _ = try anna.createConversation(with: [])
            let deadline = Duration.milliseconds(Int64(told.deadlineMs))
            try anna.peer.expectClose(.drainDeadline, within: deadline + .seconds(10))
            try require(
                started.duration(to: .now) > deadline - .seconds(2), "closed before the deadline")
        }.last(),
    ]
}
