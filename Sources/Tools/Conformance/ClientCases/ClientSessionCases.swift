import Crypto
import Model
import Wire

// session.md: how a client logs in, keeps its credential, and gives way.
let clientSessionCases: [ClientCase] = [
    .must(
        "session.client-hello", "HELLO comes first, and names app, device and role",
        [
            "SES-1: It MUST send HELLO as its first frame",
            "SES-2: HELLO MUST carry `app`, `device` and `role`",
        ]
    ) { trial in
        try trial.tell("foreground")
        let hello = try trial.accept().greet()
        try requireEqual(hello.app, ClientTrial.app, "app")
        try require(hello.device != nil, "HELLO names no device")
        try requireEqual(hello.role, .app, "role")
        try require(hello.versionMin <= 1 && hello.versionMax >= 1, "it does not speak version 1")
    },
    .must(
        "session.client-login", "after a CHALLENGE the SYNC comes again, as a frame",
        [
            "SES-8: client MUST send it again, as a SYNC frame, after WELCOME",
            "SES-9",
        ]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        trial.feed.say("before", in: conversation)
        try trial.tell("foreground")
        let link = try trial.accept()
        try link.greet()
        try require(link.hello.sessionToken.isEmpty, "a new client has a session token")
        try link.challenge(.first)
        try link.welcome()
        _ = try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["before"], "what it holds")
    },
    .must(
        "session.client-token-durable", "a session token outlives the client's process",
        ["SES-12: The client MUST store it durably before it uses it", "SES-14"]
    ) { trial in
        let link = try trial.open()
        let device = link.hello.device
        try trial.restart()
        try trial.tell("foreground")
        let hello = try trial.accept().greet()
        try require(trial.tokens.contains(hello.sessionToken), "it presents no token it was given")
        try requireEqual(hello.device, device, "the device")
    },
    .should(
        "session.client-token-newest", "a client presents the newest token",
        ["SES-12: SHOULD present the newest one it stored"]
    ) { trial in
        let first = try trial.open()
        let old = trial.tokens
        first.peer.cut()
        let second = try trial.accept()
        try second.logIn()
        try second.settle()
        second.peer.cut()
        let hello = try trial.accept().greet()
        try require(!old.contains(hello.sessionToken), "it presents the token before the newest")
        try require(trial.tokens.contains(hello.sessionToken), "it presents no token it was given")
    },
    .must(
        "session.client-expired", "a client whose token has expired logs in on the same connection",
        ["SES-8: client MUST send it again, as a SYNC frame, after WELCOME"]
    ) { trial in
        let first = try trial.open()
        trial.tokens = []
        first.peer.cut()
        let link = try trial.accept()
        try link.greet()
        try require(!link.hello.sessionToken.isEmpty, "it presents no token")
        try link.challenge(.expired)
        try link.welcome()
        try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        link.peer.cut()
        let hello = try trial.accept().greet()
        try require(trial.tokens.contains(hello.sessionToken), "it does not present the new token")
    },
    .must(
        "session.client-challenged", "asked in mid-session who it is, a client sends nothing twice",
        ["SES-21: MUST NOT be sent again on this connection", "SES-22"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        try trial.tell("send \(conversation) \(trial.newMessage()) while asked")
        try link.pump(until: "MUTATE") { !$0.mutations.isEmpty }
        let old = trial.tokens
        trial.tokens = []
        try link.challenge(.revoked, request: 0)
        try link.welcome(request: 0)
        try link.serve(for: .seconds(2))
        try requireEqual(link.mutations.count, 1, "times the open mutation was sent")
        let (mutation, request) = link.mutations[0]
        try link.peer.send(.mutationResult(trial.take(mutation)), request: request)
        try trial.waitState("no mutation waits") { $0.pending?.isEmpty ?? false }
        link.peer.cut()
        let hello = try trial.accept().greet()
        try require(!old.contains(hello.sessionToken), "it presents the token before the second")
    },
    .must(
        "session.client-superseded", "a superseded client stays away until it is needed",
        ["SES-16: MUST NOT connect again before its next foreground"], seconds: 60
    ) { trial in
        let link = try trial.open()
        try trial.tell("background 60000")
        try link.serve(for: .milliseconds(300))
        try link.end(Code.superseded.rawValue)
        try trial.expectNoConnection(for: .seconds(7), "though it was superseded")
        try trial.tell("foreground")
        try trial.accept().logIn()
    },
    .should(
        "session.client-superseded-once", "in the foreground it looks once more, and only once",
        ["SES-16: it SHOULD connect once more after 5 to 10 s"], seconds: 75, timer: true
    ) { trial in
        let link = try trial.open()
        try link.end(Code.superseded.rawValue)
        let start = ContinuousClock.now
        let again = try trial.accept(within: .seconds(14))
        let waited = start.duration(to: .now)
        try require(waited > .milliseconds(4_700), "it came back after \(waited)")
        try require(waited < .seconds(11), "it came back after \(waited)")
        try again.logIn()
        try again.settle()
        try again.end(Code.superseded.rawValue)
        try trial.expectNoConnection(for: .seconds(11), "after the second 5002 in a minute")
    },
    .must(
        "session.client-superseded-often", "superseded again and again, a client logs in anew",
        ["SES-16: MUST log in anew with an identity token"], seconds: 75
    ) { trial in
        var link = try trial.open()
        for _ in 0..<6 {
            try trial.waitState("it has logged in") { $0.connected == true }
            try link.end(Code.superseded.rawValue)
            try trial.waitState("the connection's end is noticed") { $0.connected == false }
            try trial.tell("refresh")
            link = try trial.accept()
            try link.logIn()
            try link.settle()
        }
        try require(link.hello.sessionToken.isEmpty, "it still presents its session token")
    },
    .must(
        "session.client-logout", "a client that logged out takes CLOSE 2004 as the result",
        ["MSG-7", "SES-16"]
    ) { trial in
        let link = try trial.open()
        link.answersMutations = false
        try trial.tell("logout")
        try link.pump(until: "MUTATE") { !$0.mutations.isEmpty }
        guard case .forgetDevice? = link.mutations.first?.mutation.operation else {
            throw CaseEnd.failed("it does not say that it logs out")
        }
        try link.end(Code.revoked.rawValue)
        try trial.expectNoConnection(for: .seconds(7), "though it had logged out")
        try trial.tell("foreground")
        let hello = try trial.accept().greet()
        try require(hello.sessionToken.isEmpty, "it kept the session token")
        try require(hello.sync?.mutations.isEmpty ?? true, "it would log out again")
    },
    .must(
        "session.client-wake", "a client that a push woke says which wake it was",
        ["SES-19", "PSH-1: A client MUST work if every push is lost"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        try trial.tell("sleep")
        try link.expectEnd("going to sleep")
        trial.feed.say("asleep", in: conversation)
        // The first push is lost: the app comes to the foreground by itself.
        try trial.tell("foreground")
        let second = try trial.accept()
        try second.logIn()
        try second.settle()
        try requireEqual(try trial.texts(in: conversation), ["asleep"], "what it holds")
        try require(second.hello.wake == nil, "it names a wake that never came")
        try trial.tell("sleep")
        try second.expectEnd("going to sleep")
        let wake: WakeID = ScriptedFeed.newID()
        try trial.tell("wake \(wake) 25000")
        let hello = try trial.accept().greet()
        try requireEqual(hello.wake, wake, "the wake of HELLO")
        try requireEqual(hello.appState?.phase, .background, "the phase of HELLO")
    },
]
