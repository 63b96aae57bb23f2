import APNsSimulator
import Failpoints
import Feed
import Foundation
import Model
import SQLiteStore
import Wake

@testable import Scenario

/// The acts: everything that makes the server write, in an order that brings each failpoint.
///
/// Anna has a phone that stays open, Ben one that sleeps, Clara a phone that is swiped away and a
/// tablet, Dora one that is removed and logs out.
extension Story {
    static let room = "0190a1b2-c3d4-7000-8000-0000000000a0"
    static let memory = "0190a1b2-c3d4-7000-8000-0000000000c0"
    static let crowd = "0190a1b2-c3d4-7000-8000-0000000000b0"
    static let members = ["anna", "ben", "clara", "tablet"]

    func play() throws {
        try start()
        try setUp()
        try everybodyOnline()
        try timedAlert()
        try writingClients()
        try backendChanges()
        try clientChanges()
        try sleepers()
        try readElsewhere()
        try campaign()
        try comeBack()
        try farewell()
        try waitScheduled()
        if point != nil, !hasDied { try waitForDeath() }
        try judge()
    }

    // MARK: Set-up

    private func setUp() throws {
        struct New: Encodable {
            let id: String
            let participants: [String]
        }
        let gone = try makeApp("gone", grace: 1)
        use(apiKey: gone.secret)
        try ask("POST", "/v1/conversations", New(id: Self.room, participants: ["nobody"]), key: "1")
        _ = try operate("POST", "/apps/gone/suspend")
        _ = try operate("POST", "/apps/gone/resume")
        try webhookChanges()
        _ = try operate("DELETE", "/apps/gone/issuer-keys/\(World.issuerKeyID)", or: 404)
        _ = try operate("DELETE", "/apps/gone/api-keys/\(gone.id)", or: 404)
        _ = try operate("DELETE", "/apps/gone/push/production", or: 404)
        _ = try operate("DELETE", "/apps/gone", or: 404)
        // A process that has just started looks for what is past its retention.
        if isAbout(.retention) { try drainAndStart() }
        use(apiKey: try makeApp("story", grace: 1).secret)
        _ = try operate(
            "POST", "/apps/story/webhooks",
            NewWebhook(url: "http://127.0.0.1:\(world.receiver.port)/\(name)"), or: 409)
        try ask(
            "POST", "/v1/conversations", New(id: Self.room, participants: ["anna", "ben"]),
            key: "make")
        try ask(
            "POST", "/v1/conversations/\(Self.room)/participants",
            ["users": ["clara", "dora"]], key: "add")
        struct Announcement: Encodable {
            let users: [String]
            let parts: [[String: String]]
        }
        struct Change: Encodable {
            var path = ["theme", "colour"]
            var value = "green"
        }
        try ask(
            "PATCH", "/v1/conversations/\(Self.room)/metadata", ["changes": [Change()]],
            key: "metadata")
        try ask(
            "POST", "/v1/announcements",
            Announcement(users: ["clara", "dora"], parts: [["mime_type": "a/b", "text": "x"]]),
            key: "announce")
        try ask(
            "POST", "/v1/conversations", New(id: Self.memory, participants: ["zoe"]),
            key: "memory")
        _ = try ask("DELETE", "/v1/users/zoe", or: 404)
        try scheduleChanges()
        if isAbout(.fanOut) {
            // Everybody is told of everybody: too many entries for the request itself.
            try ask(
                "POST", "/v1/conversations",
                New(id: Self.crowd, participants: Self.crowdUsers), key: "crowd")
        }
    }

    private static let crowdUsers = (0..<46).map { "user\($0)" }

    private func isAbout(_ kind: Failpoint.CommitKind) -> Bool {
        if case .commit(_, kind) = point { true } else { false }
    }

    // MARK: Online

    private func everybodyOnline() throws {
        for (device, user) in [
            ("anna", "anna"), ("ben", "ben"), ("clara", "clara"), ("tablet", "clara"),
            ("dora", "dora"),
        ] {
            try addDevice(device, user: user)
            try tell(device, .deviceOpen)
        }
        for device in devices.keys.sorted() {
            try waitServer(device, "online, with a push token") {
                $0.reachability == "online" && $0.pushToken.isHeld
            }
        }
        try publish("first", to: Self.room)
        for device in Self.members { try waitHolds(device, "first", in: Self.room) }
        // In the background it is asked to sync; in the foreground it was sent the message.
        try tell("ben", .deviceBackground) { $0.runMs = 120_000 }
        try waitServer("ben", "in the background") {
            $0.sessions.contains { $0.dormantAt != nil }
        }
        try publish("second", to: Self.room)
        for device in Self.members { try waitHolds(device, "second", in: Self.room) }
    }

    private func writingClients() throws {
        let made = try tell("anna", .deviceConversation) { $0.users = ["ben"] }
        guard let talk = made.conversation else { throw StoryError("no conversation") }
        try tell("anna", .deviceParticipants) {
            $0.conversation = talk
            $0.users = ["clara"]
        }
        for text in ["from anna 1", "from anna 2"] {
            try tell("anna", .deviceSend) {
                $0.conversation = talk
                $0.text = text
            }
        }
        try wait("anna's mutations are answered") {
            try status("anna").app?.hasUnanswered == false
        }
        for device in ["anna", "clara", "tablet"] {
            try waitHolds(device, "from anna 2", in: talk)
        }
        self.talk = talk
        try read("tablet", talk)
        try read("tablet", Self.room)
    }

    func read(_ device: String, _ conversation: String) throws {
        let last = try messages(device, in: conversation).last?.position ?? 0
        try tell(device, .deviceRead) {
            $0.conversation = conversation
            $0.through = last
        }
    }

    // MARK: Asleep

    private func sleepers() throws {
        // What was read elsewhere and has not come would be fetched by a silent push of its own,
        // and the message behind an unanswered one of those is alerted without a demotion.
        for device in ["ben", "clara"] {
            try waitServer(device, "not behind") { !$0.feed.isBehind }
        }
        try tell("ben", .deviceSuspend)
        try tell("clara", .deviceBackground)
        try tell("clara", .deviceSuspend)
        try tell("clara", .deviceForceQuit)
        for device in ["ben", "clara"] {
            // An app that was frozen while it said good-bye leaves its socket behind.
            try waitServer(device, "asleep") {
                $0.sessions.allSatisfy { $0.dormantAt != nil } && $0.reachability != "online"
            }
        }
        let third = try publish("third", to: Self.room)
        try waitHolds("ben", "third", in: Self.room)
        try waitServer("clara", "unreachable") { $0.reachability == "unreachable" }
        try waitShows("clara", third)
        try waitShows("clara", try publish("fourth", to: Self.room))
    }

    private func readElsewhere() throws {
        try waitHolds("tablet", "fourth", in: Self.room)
        try read("tablet", Self.room)
        var seen = ""
        do {
            try wait("clara's icon shows nothing") {
                let report = try status("clara")
                seen = "badge \(report.badge), \(report.shown) shown"
                return report.badge == 0 && report.shown == 0
            }
        } catch let error as StoryError {
            let screen = try tell("clara", .deviceScreen).screen ?? []
            let facts = try facts("clara")
            throw StoryError("\(error); \(seen), \(screen), the server says \(facts as Any)")
        }
        try waitShows("clara", try publish("fifth", to: Self.room))
    }

    private func comeBack() throws {
        for device in ["ben", "clara"] { try tell(device, .deviceOpen) }
        for device in Self.members {
            try waitHolds(device, "fifth", in: Self.room)
            try waitServer(device, "online and not behind") {
                $0.reachability == "online" && !$0.feed.isBehind
            }
        }
    }

    /// Dora is asked who she is, kept out for a moment, and logged out everywhere.
    private func access() throws {
        try waitTimedAlert()
        let dora = "/apps/story/users/dora"
        _ = try operate("POST", dora + "/sessions/revoke?reauthenticate=true")
        try waitServer("dora", "online, for she has said who she is") {
            $0.reachability == "online" && $0.sessions.contains { $0.dormantAt == nil }
        }
        _ = try operate("POST", dora + "/suspend")
        try waitServer("dora", "kept out") { $0.reachability != "online" }
        _ = try operate("POST", dora + "/resume")
        try wait("dora is let in again") {
            // One that is told to open before it has read CLOSE 2005 takes that for the answer,
            // and does not come by itself (SES-24): she opens it again.
            if try status("dora").app?.isOnline == false { try tell("dora", .deviceOpen) }
            return try facts("dora")?.reachability == "online"
        }
        _ = try operate("POST", dora + "/sessions/revoke")
        try tell("dora", .deviceOpen)
        try waitServer("dora", "back, with a push token") {
            $0.reachability == "online" && $0.pushToken.isHeld
        }
    }

    /// Dora's phone is removed and comes back; then she logs out.
    private func farewell() throws {
        try access()
        guard let id = devices["dora"] else { throw StoryError("no device of Dora's") }
        _ = try operate("DELETE", "/apps/story/devices/\(id)", or: 404)
        try tell("dora", .deviceOpen)
        try waitServer("dora", "back, with a push token") {
            $0.reachability == "online" && $0.pushToken.isHeld
        }
        try waitHolds("dora", "fifth", in: Self.room)
        try tell("dora", .deviceForget)
        try wait("dora is logged out") { try isForgotten("dora") }
        if !hasDied { try drainAndStart() }
    }

    /// Some points come by themselves, or at the orderly end.
    private func waitForDeath() throws {
        try wait("the server dies at its point") {
            if !server.isRunning { try revive() }
            return hasDied
        }
    }
}
