import Model
import Wire

/// Retry classes of codes that nobody knows, and what a client does (CON-11).
private let byClass: Citation = "CON-11: A client that does not know the code MUST act by the class"

// connection.md: keepalive, drain, closing.
let clientConnectionCases: [ClientCase] = [
    .must(
        "connection.client-pong", "PING is answered by PONG with its request",
        ["CON-6: A PING MUST be answered by PONG"]
    ) { trial in
        let link = try trial.open()
        for request: UInt16 in [7, 0, 65_535] {
            try link.peer.send(.ping(Ping(nextMs: 60_000)), request: request)
            let (_, answered) = try link.expect(.pong)
            try requireEqual(answered, request, "the request of PONG")
        }
    },
    .must(
        "connection.client-keepalive", "a client sends a frame as often as WELCOME asks",
        ["CON-7: MUST send a frame at least that often"]
    ) { trial in
        let link = try trial.open { $0.keepaliveMs = 2_000 }
        let start = ContinuousClock.now
        try link.serve(for: .seconds(8))
        try require(!link.isOver, "it ended the connection")
        var last = start
        for time in link.times.filter({ $0 > start }) + [ContinuousClock.now] {
            let gap = last.duration(to: time)
            try require(gap < .seconds(3), "nothing came for \(gap)")
            last = time
        }
    },
    .must(
        "connection.client-drain",
        "after DRAIN the session goes on, and the client comes at its slot",
        [
            "CON-8: The session MUST go on",
            "CON-8: client MUST connect again `slot_ms` after the DRAIN",
        ]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        try link.peer.send(
            .drain(Drain(deadlineMs: 8_000, slotMs: 3_000, place: .sameAddressAtSlot)))
        let start = ContinuousClock.now
        trial.feed.say("meanwhile", in: conversation)
        try link.push()
        try link.settle()
        try require(start.duration(to: .now) < .seconds(2), "the session did not go on")
        let second = try trial.accept(within: .seconds(8))
        let waited = start.duration(to: .now)
        try require(
            waited > .milliseconds(2_800) && waited < .milliseconds(5_000),
            "it came after \(waited), its slot was 3 s")
        try second.logIn()
        try second.settle()
    },
    .must(
        "connection.client-drain-cut", "the slot holds also when the old connection ends before",
        ["CON-8: client MUST connect again `slot_ms` after the DRAIN", "CON-14"]
    ) { trial in
        let link = try trial.open()
        try link.peer.send(
            .drain(Drain(deadlineMs: 8_000, slotMs: 6_000, place: .sameAddressAtSlot)))
        let start = ContinuousClock.now
        try link.serve(for: .milliseconds(300))
        try link.end(Code.goingAway.rawValue)
        try trial.accept(within: .seconds(10)).logIn()
        let waited = start.duration(to: .now)
        try require(waited > .milliseconds(5_800), "it came after \(waited), its slot was 6 s")
    },
    .must(
        "connection.client-sleep", "a client that sleeps says how far it got, and nothing after it",
        [
            "CON-12: sends CLOSE 5000 with its `applied`",
            "CON-10: the sender MUST NOT send anything after it, and MUST close the socket",
        ]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        trial.feed.say("good night", in: conversation)
        let link = try trial.open()
        try trial.tell("sleep")
        try link.expectEnd("going to sleep")
        try requireEqual(link.close?.code, Code.goingAway.rawValue, "the code of its CLOSE")
        try requireEqual(link.close?.applied, trial.feed.head, "applied of its CLOSE")
        try trial.expectNoConnection(for: .seconds(6), "in its sleep")
    },
    .must(
        "connection.client-phase", "a client tells when its app goes to the background", ["CON-1"]
    ) { trial in
        let link = try trial.open()
        try trial.tell("background 20000")
        try link.pump(until: "APP_STATE") { link in
            link.appStates.contains { $0.phase == .background && $0.remainingMs <= 20_000 }
        }
    },
    .must(
        "connection.client-error", "an ERROR that nobody knows does not end the connection",
        ["CON-10: the connection MUST go on", byClass]
    ) { trial in
        let link = try trial.open()
        for request: UInt16 in [0, 999] {
            try link.peer.send(
                .error(ErrorFrame(code: 4_999, name: "news", retry: .none)), request: request)
        }
        try link.peer.send(.ping(Ping(nextMs: 60_000)), request: 3)
        _ = try link.expect(.pong)
    },
    .must(
        "connection.client-class-none", "class none: not again before the app is needed", [byClass]
    ) { trial in
        let link = try trial.open()
        try link.end(5_999, RetryClass.none)
        try trial.expectNoConnection(for: .seconds(7), "after a CLOSE of class none")
        try trial.tell("background 30000")
        try trial.tell("foreground")
        try trial.accept().logIn()
    },
    .must(
        "connection.client-class-retry-after", "class retry after: not before its time", [byClass]
    ) { trial in
        let link = try trial.open()
        try link.end(1_999, .retryAfter, after: 6_000)
        try trial.expectNoConnection(for: .milliseconds(5_800), "before its time")
        try trial.accept().logIn()
    },
    .must(
        "connection.client-class-reauthenticate", "class reauthenticate: a new login", [byClass]
    ) { trial in
        let link = try trial.open()
        try link.end(2_999, .reauthenticate)
        let again = try trial.accept()
        try again.logIn()
        try require(again.hello.sessionToken.isEmpty, "it presents the session token again")
        try again.settle()
    },
    .must(
        "connection.client-class-upgrade", "class upgrade: nothing more of this client", [byClass]
    ) { trial in
        let link = try trial.open()
        try link.end(5_998, .upgrade)
        try trial.expectNoConnection(for: .seconds(6), "after a CLOSE of class upgrade")
    },
    .must(
        "connection.client-limited", "told to wait by a code it knows, a client waits",
        ["CON-15: The client waits as long"]
    ) { trial in
        let link = try trial.open()
        try link.end(Code.rateLimited.rawValue, .retryAfter, after: 6_000)
        try trial.expectNoConnection(for: .milliseconds(5_800), "before its time")
        try trial.accept().logIn()
    },
    .should(
        "connection.client-silence", "a client gives up a connection on which nothing answers",
        ["CON-17: SHOULD give the connection up"], seconds: 100, timer: true
    ) { trial in
        let link = try trial.open { $0.keepaliveMs = 1_000 }
        link.answersPings = false
        link.answersSyncs = false
        // What it sends is read, nothing is said; the new connection comes meanwhile.
        try trial.accept(within: .seconds(80)).logIn()
        link.peer.cut()
    },
]
