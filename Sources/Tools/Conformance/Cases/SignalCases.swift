import Model
import Wire

extension Conformance {
    private static let agreed = ["live", "signal"]

    /// Signals until one comes to the other device: the server may take up to 10 s to notice that
    /// somebody is there, and may drop any (SIG-3, SIG-6).
    private static func signalled(
        _ from: Device, _ to: Device, _ signal: Signal
    ) throws -> Signal? {
        for _ in 0..<20 {
            try from.peer.send(.signal(signal))
            for frame in to.peer.passed + (try to.peer.frames(during: .milliseconds(700))) {
                if case .signal(let got) = frame.body { return got }
            }
            to.peer.passed = []
        }
        return nil
    }

    /// Nothing of `from`'s signals comes to the device from now on.
    private static func staysSilent(
        _ device: Device, while from: Device, signals signal: Signal
    ) throws {
        device.peer.passed = []
        for _ in 0..<4 {
            try from.peer.send(.signal(signal))
            for frame in device.peer.passed
                + (try device.peer.frames(during: .milliseconds(600)))
            {
                if case .signal = frame.body { throw CaseEnd.failed("a signal came") }
            }
        }
    }

    /// Two users who agreed on signals, and a conversation.
    private static func signallers(_ t: Trial) throws -> (Device, Device, ConversationID) {
        let anna = try t.device(of: t.user("anna"), features: agreed)
        let ben = try t.device(of: t.user("ben"), features: agreed)
        guard anna.welcome.features.contains("signal") else {
            throw CaseEnd.skipped("the server does not agree on `signal`")
        }
        let conversation = try settingUp("a conversation") {
            let conversation = try anna.createConversation(with: [ben.user])
            try ben.pump(until: "the conversation") { $0.knows(conversation) }
            return conversation
        }
        return (anna, ben, conversation)
    }

    static let signalCases: [ConformanceCase] = [
        .must(
            "signals.typing",
            "a signal comes to the other participant with its sender, its time "
                + "lowered, and is not stored",
            [
                "SIG-1", "SIG-2: the server MUST lower what is above 30,000",
                "SIG-3: It MUST NOT store it",
            ]
        ) { t in
            let (anna, ben, conversation) = try signallers(t)
            let sent = Signal(conversation: conversation, kind: .typing, ttlMs: 90_000)
            guard let got = try signalled(anna, ben, sent) else {
                throw CaseEnd.failed("20 signals in 14 s, and none came")
            }
            try requireEqual(got.user, anna.user, "user")
            try requireEqual(got.kind, .typing, "kind")
            try requireEqual(got.conversation, conversation, "conversation")
            try requireEqual(got.ttlMs, 30_000, "ttl_ms")
            // What is over is told apart by its kind; no time stands for 6,000.
            ben.peer.passed = []
            let away = Signal(conversation: conversation, kind: .away)
            guard let second = try signalled(anna, ben, away) else {
                throw CaseEnd.failed("20 more signals in 14 s, and none came")
            }
            try requireEqual(second.kind, .away, "kind")
            try require([0, 6_000].contains(second.ttlMs), "ttl_ms \(second.ttlMs), none was said")
            let other = try t.device(of: ben.user)
            try require(
                !other.replica.log.contains { $0.body == nil }, "an entry that is no known kind")
            try requireEqual(other.cursor, ben.cursor, "cursor of another device")
        },
        .must(
            "signals.blocked", "from the answer on no signal reaches who blocks its sender",
            ["SIG-5: MUST NOT reach a user who blocks its sender"], seconds: 60
        ) { t in
            let (anna, ben, conversation) = try signallers(t)
            let signal = Signal(conversation: conversation, kind: .typing)
            try settingUp("a signal without a block") {
                try require(try signalled(anna, ben, signal) != nil, "none came")
            }
            try does(ben, "block", .blockUser(BlockUser(user: anna.user, blocked: true)))
            try staysSilent(ben, while: anna, signals: signal)
        },
        .must(
            "signals.removed", "from the answer on no signal reaches who was removed",
            ["SIG-5: MUST NOT reach a user who blocks its sender"], seconds: 60
        ) { t in
            let (anna, ben, conversation) = try signallers(t)
            let signal = Signal(conversation: conversation, kind: .typing)
            try settingUp("a signal before the removal") {
                try require(try signalled(anna, ben, signal) != nil, "none came")
            }
            try does(
                anna, "remove",
                .removeParticipants(
                    RemoveParticipants(conversation: conversation, users: [ben.user])))
            // What came before the answer may still have been on its way.
            try ben.pump(until: "the removal") { removed($0, ben.user) }
            try staysSilent(ben, while: anna, signals: signal)
        },
        .must(
            "signals.not-agreed", "SIGNAL without the feature: 4009; without a conversation: 4002",
            ["SIG-1", "FRM-42"], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            try anna.peer.send(
                .signal(Signal(conversation: t.newID(), kind: .typing)), request: 0)
            try anna.peer.expectError(.featureNotNegotiated, request: 0)
            try anna.peer.expectAlive()
            let ben = try t.device(of: t.user("ben"), features: agreed, delivery: t.delivery)
            try ben.peer.send(.signal(Signal(kind: .typing)), request: 0)
            try ben.peer.expectError(.missingField, request: 0)
        },
    ]
}
