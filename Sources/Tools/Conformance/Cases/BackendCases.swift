import Crypto
import Model
import Wire

// What a backend does to its users, seen from their connections.
extension Conformance {
    /// Whether a session token still lets its device in.
    private static func isGood(_ token: [UInt8], of device: Device, _ t: Trial) throws -> Bool {
        let peer = try t.connect()
        try peer.send(.hello(t.hello(device.id, token: token)), request: 1)
        guard case .frame(let frame)? = try peer.next() else {
            throw CaseEnd.failed("HELLO got no answer")
        }
        switch frame.body {
        case .welcome: return true
        case .challenge: return false
        default: throw CaseEnd.failed("HELLO was answered with \(frame.summary)")
        }
    }

    /// Anna, whose server asks in mid-session who she is, and Ben.
    private static func askedAgain(
        _ t: Trial
    ) throws -> (anna: Device, ben: Device, ConversationID, Challenge) {
        let backend = try t.backend()
        let (anna, ben, conversation) = try t.pair()
        try settingUp("in sync") { try anna.syncToHead() }
        try backend.call("POST", "/v1/users/\(anna.user)/sessions/revoke?reauthenticate=true")
        let challenge = try anna.peer.expect(.challenge, request: 0)
        return (anna, ben, conversation, challenge)
    }

    static let backendCases: [ConformanceCase] = [
        .must(
            "session.asked-again",
            "asked in mid-session, nothing is brought or carried out before the answer",
            ["SES-21", "SES-22"], seconds: 60
        ) { t in
            let (anna, ben, conversation, challenge) = try askedAgain(t)
            try requireEqual(challenge.reason, .revoked, "reason")
            try settingUp("a message") { try ben.say("meanwhile", in: conversation) }
            let sync = anna.request()
            try anna.peer.send(.sync(anna.syncFrame), request: sync)
            let fetch = anna.request()
            try anna.peer.send(.fetch(Fetch(conversation: conversation)), request: fetch)
            try anna.peer.expectError(.unavailable, request: fetch)
            for frame in try anna.peer.frames(during: .seconds(1)) {
                throw CaseEnd.failed("\(frame.summary) came before the answer")
            }
            let old = anna.sessionToken
            try anna.authenticate(challenge)
            let welcome = try anna.peer.expect(.welcome, request: 0)
            try require(welcome.sessionToken != old, "the session token is the old one")
            anna.apply(try anna.peer.expect(.delta, request: sync))
            try anna.acknowledge()
            try requireEqual(anna.replica.texts(in: conversation), ["meanwhile"], "what came")
            try require(!(try isGood(old, of: anna, t)), "the older session token lets in")
            try require(
                try isGood(welcome.sessionToken, of: anna, t), "the new session token does not")
        },
        .must(
            "session.asked-again-other", "asked in mid-session, another user is no answer: 2006",
            ["SES-22"]
        ) { t in
            let (anna, ben, _, challenge) = try askedAgain(t)
            let token = try t.issuer.token(user: ben.user, nonce: challenge.nonce)
            try anna.peer.send(.authenticate(Authenticate(identityToken: token)))
            try anna.peer.expectClose(.deviceMismatch)
        },
        .must(
            "session.asked-again-silent", "asked in mid-session, no answer for 60 s closes: 2000",
            ["SES-22: MUST close with 2000"], seconds: 100, timer: true
        ) { t in
            let (anna, _, _, _) = try askedAgain(t)
            try anna.peer.expectClose(.authRequired, within: .seconds(75))
        },
        .must(
            "session.revoked", "revoked, every session of a user ends, and no token lets in",
            ["SES-23: MUST close all of them at once with 2004"]
        ) { t in
            let backend = try t.backend()
            let user = t.user("anna")
            let devices = [try t.device(of: user), try t.device(of: user)]
            let other = try t.device(of: t.user("ben"))
            try backend.call("POST", "/v1/users/\(user)/sessions/revoke")
            for device in devices {
                try device.peer.expectClose(.revoked)
                try require(
                    !(try isGood(device.sessionToken, of: device, t)), "its token lets in")
            }
            try other.peer.expectAlive()
        },
        .must(
            "session.suspended", "while a user is suspended nobody gets in; the feed grows",
            ["SES-24"]
        ) { t in
            let backend = try t.backend()
            let (anna, ben, conversation) = try t.pair()
            try settingUp("in sync") { try anna.syncToHead() }
            try backend.call("POST", "/v1/users/\(anna.user)/suspend")
            try anna.peer.expectClose(.suspended)
            let refused = try t.connect()
            try refused.send(.hello(t.hello(anna.id, token: anna.sessionToken)), request: 1)
            try refused.expectClose(.suspended)
            let (peer, challenge) = try t.challenged()
            let token = try t.issuer.token(user: anna.user, nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            try peer.expectClose(.suspended)
            try settingUp("a message") { try ben.say("meanwhile", in: conversation) }
            try backend.call("POST", "/v1/users/\(anna.user)/resume")
            try require(!(try anna.logIn()), "its session token is good no more")
            try anna.syncToHead()
            try requireEqual(anna.replica.texts(in: conversation), ["meanwhile"], "what came")
        },
        .must(
            "messaging.announcement",
            "an announcement comes to the listed users, and is read once for all their devices",
            ["MSG-50", "MSG-51", "MSG-52"]
        ) { t in
            let backend = try t.backend()
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(of: anna.user)
            let ben = try t.device(of: t.user("ben"))
            let id: MessageID = t.newID()
            try backend.call(
                "POST", "/v1/announcements",
                "{\"id\":\"\(id)\",\"users\":[\(TokenDraft.quoted(anna.user))],\"parts\":"
                    + "[{\"mime_type\":\"text/plain\",\"text\":\"news\"}],"
                    + "\"push\":{\"title\":\"conform\",\"body\":\"news\"}}")
            func found(_ replica: Replica) -> (entry: Entry, state: AnnouncementState)? {
                for entry in replica.objects.values {
                    if case .announcement(let state) = entry.body, entry.object == id.bytes {
                        return (entry, state)
                    }
                }
                return nil
            }
            for device in [anna, beside] {
                try device.pump(until: "the announcement") { found($0) != nil }
                try device.syncToHead()
            }
            guard let first = found(anna.replica) else { return }
            try require(first.entry.conversation == nil, "it belongs to a conversation")
            try requireEqual(first.state.parts.first?.content, Array("news".utf8), "its part")
            try require(!first.state.read, "it is read already")
            try requireEqual(anna.unread, 0, "unread on the icon")
            try anna.peer.send(
                .ack(Ack(applied: anna.applied, reads: [ReadReceipt(announcement: id)])))
            for device in [anna, beside] {
                try device.pump(until: "that it was read") { found($0)?.state.read == true }
                let version = found(device.replica)?.entry.version
                try requireEqual(version, first.entry.version + 1, "its version")
            }
            // One that never came to the user is passed over.
            try ben.peer.send(
                .ack(Ack(applied: ben.applied, reads: [ReadReceipt(announcement: id)])))
            try ben.peer.expectAlive()
            try ben.syncToHead()
            try require(found(ben.replica) == nil, "it came to a user who was not listed")
        },
        .must(
            "messaging.announcement-taken-back",
            "an announcement that its backend takes back goes from the feeds of all who have it",
            ["MSG-57: MUST take its place in the feed", "MSG-57: it MUST NOT come any more"]
        ) { t in try takeBack(t) },
        .must(
            "messaging.user-deleted", "a deleted user is gone; the name is a new user's",
            ["MSG-53"], seconds: 60
        ) { t in
            let backend = try t.backend()
            let (anna, ben, conversation) = try t.pair()
            try settingUp("a message") {
                try anna.say("last words", in: conversation)
                try ben.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            }
            let epoch = anna.welcome.epoch
            try backend.call("DELETE", "/v1/users/\(anna.user)")
            try anna.peer.expectClose(.revoked)
            try ben.pump(until: "the removal and the tombstone") { replica in
                let isGone = replica.log.contains { entry in
                    if case .tombstone(let state) = entry.body {
                        state.position == 1 && entry.conversation == conversation
                    } else {
                        false
                    }
                }
                return isGone && !replica.participants(of: conversation).contains(anna.user)
            }
            let again = try reborn(anna.user, t)
            try require(again.welcome.epoch != epoch, "the epoch is the old user's")
            try again.syncToHead()
            try require(again.replica.log.isEmpty, "the new user has the old one's feed")
        },
    ]

    private static func takeBack(_ t: Trial) throws {
        let backend = try t.backend()
        let anna = try t.device(of: t.user("anna"))
        let ben = try t.device(of: t.user("ben"))
        let users = [anna.user, ben.user]
        let id: MessageID = t.newID()
        try backend.call(
            "POST", "/v1/announcements",
            "{\"id\":\"\(id)\",\"users\":["
                + users.map { TokenDraft.quoted($0) }.joined(separator: ",") + "],\"parts\":"
                + "[{\"mime_type\":\"text/plain\",\"text\":\"mistake\"}],"
                + "\"push\":{\"title\":\"conform\",\"body\":\"mistake\"}}")
        func entries(_ replica: Replica) -> [Entry] {
            replica.log.filter { $0.object == id.bytes }
        }
        for device in [anna, ben] {
            try device.pump(until: "the announcement") { !entries($0).isEmpty }
            try device.syncToHead()
        }
        // One of the two has read it.
        try anna.peer.send(
            .ack(Ack(applied: anna.applied, reads: [ReadReceipt(announcement: id)])))
        try anna.pump(until: "that it was read") { entries($0).count == 2 }
        try backend.call("DELETE", "/v1/announcements/\(id)")
        for device in [anna, ben] {
            let before = entries(device.replica).last?.version ?? 0
            try device.pump(until: "the tombstone") { entries($0).last?.body?.isTombstone == true }
            guard let last = entries(device.replica).last, case .tombstone(let state) = last.body
            else { return }
            try require(last.conversation == nil, "it belongs to a conversation")
            try require(last.version > before, "version \(last.version), after \(before)")
            try require(state.forEveryone && !state.conversation, "it is not for everyone")
            try require(state.deletedMs > 0, "it does not say when")
        }
        // What is read of it now is passed over, and a device that comes anew is shown nothing.
        try ben.peer.send(.ack(Ack(applied: ben.applied, reads: [ReadReceipt(announcement: id)])))
        try ben.peer.expectAlive()
        let late = try t.device(of: ben.user)
        try late.syncToHead()
        try require(
            entries(late.replica).allSatisfy { $0.body?.isTombstone == true },
            "a device that came later was shown it")
    }

    /// Logs in as a user who was deleted; refused with 1001 until that is carried out.
    private static func reborn(_ user: String, _ t: Trial) throws -> Device {
        while true {
            let (peer, challenge) = try t.challenged()
            let token = try t.issuer.token(user: user, nonce: challenge.nonce)
            try peer.send(.authenticate(Authenticate(identityToken: token)))
            guard case .frame(let frame)? = try peer.next() else {
                throw CaseEnd.failed("a login got no answer")
            }
            if case .welcome = frame.body { return try t.device(of: user, isSynced: false) }
            guard case .close(let close) = frame.body, close.code == Code.unavailable.rawValue
            else { throw CaseEnd.failed("the login was answered with \(frame.summary)") }
            try t.clock.check()
            _ = try peer.next(within: .milliseconds(200))
        }
    }
}

extension Entry.Body {
    fileprivate var isTombstone: Bool { if case .tombstone = self { true } else { false } }
}
