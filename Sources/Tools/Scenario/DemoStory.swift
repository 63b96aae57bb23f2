import APNsSimulator
import Crypto
import FoundationEssentials

/// The steps. Anna writes through her app's backend; Ben and Clara have a phone and a tablet each.
/// A device is silently woken at most twice a minute, so each story of a wake has a device of its
/// own.
extension Demo {
    struct Chapter {
        let name: String
        let title: String
        let play: (Demo) throws(ScenarioError) -> Void

        init(
            _ name: String, _ title: String,
            _ play: @escaping (Demo) -> () throws(ScenarioError) -> Void
        ) {
            self.name = name
            self.title = title
            self.play = { demo throws(ScenarioError) in try play(demo)() }
        }
    }

    static var story: [Chapter] {
        [
            Chapter("set-up", "An app, four devices that log in, two conversations", setUp),
            Chapter(
                "online",
                "An app that runs unseen is asked to sync, and shows the message itself", online),
            Chapter(
                "sleeping", "A sleeping device is woken silently, syncs in time and shows it",
                sleeping),
            Chapter("three", "Three messages arrive by one silent wake", three),
            Chapter(
                "read-elsewhere", "One of the five is read on the tablet: exactly that one goes",
                readElsewhere),
            Chapter("tap", "A tap opens the conversation that the message is of", tap),
            Chapter(
                "force-quit",
                "A force-quit device stays silent; after the grace it is unreachable and alerted",
                forceQuit),
            Chapter("alerted-at-once", "The next message alerts it at once", alertedAtOnce),
            Chapter("badge", "Both are read on the other device: a badge push clears it", badge),
            Chapter("alerted-again", "One more message alerts it again", alertedAgain),
            Chapter(
                "recovery", "It opens the app, syncs, recovers and holds what the other one holds",
                recovery),
        ]
    }

    static let benTalk = "0190a1b2-c3d4-7000-8000-0000000000b0"
    static let tripTalk = "0190a1b2-c3d4-7000-8000-0000000000b1"
    static let claraTalk = "0190a1b2-c3d4-7000-8000-0000000000c0"
    static let ben = "ben-phone"
    static let benTablet = "ben-tablet"
    static let phone = "clara-phone"
    static let tablet = "clara-tablet"
    private static let issuerKeyID = "demo-issuer"
    private static let pushKeyID = "DEMOKEY001"
    private static let team = "DEMOTEAM01"

    // MARK: - Set-up

    func setUp() throws(ScenarioError) {
        say("server", "devices on port \(server.devicePort), backend API on \(server.apiPort)")
        say("apns", "simulated on port \(simulator.port)")
        let issuer = PrivateKey.generate(.p256)
        let signer = PrivateKey.generate(.p256)
        let authority = folder.appendingPathComponent("authority.pem")
        let issuerFile = folder.appendingPathComponent("issuer.key")
        let authorityPEM: String
        do {
            try Data(issuer.pem.utf8).write(to: issuerFile)
            authorityPEM = try String(contentsOf: authority, encoding: .utf8)
        } catch {
            throw ScenarioError(ErrorWords.of(error))
        }
        try backend.setUp(
            policy: ["grace_seconds": Self.grace / 1_000], issuer: issuer.publicKey,
            issuerKeyID: Self.issuerKeyID)
        try backend.setPush(
            AppBackend.Push(
                keyID: Self.pushKeyID, team: Self.team, privateKeyPEM: signer.pem,
                topics: [Self.topic], host: "127.0.0.1", port: simulator.port,
                trustedCertificatesPEM: authorityPEM))
        say("backend", "made the app `\(Self.app)`, grace \(Self.grace / 1_000) s")
        try addSigner(signer)
        // Before the devices: their first sync brings them all there is.
        try backend.createConversation(Self.benTalk, participants: ["anna", "ben"])
        try backend.createConversation(Self.tripTalk, participants: ["anna", "ben"])
        try backend.createConversation(Self.claraTalk, participants: ["anna", "clara"])
        let devices = [
            (Self.ben, "ben"), (Self.benTablet, "ben"), (Self.phone, "clara"),
            (Self.tablet, "clara"),
        ]
        for (device, user) in devices {
            var create = ControlRequest(.deviceCreate, device: device)
            create.topic = Self.topic
            create.user = user
            create.app = Self.app
            create.host = "127.0.0.1"
            create.serverName = "localhost"
            create.port = server.devicePort
            create.trust = authority.path
            create.issuerKey = issuerFile.path
            create.issuerKid = Self.issuerKeyID
            self.devices[device] = try command(create).deviceId
            try command(ControlRequest(.deviceOpen, device: device))
            try see(device, .synced, "logged in and is in sync")
            try serverSays(device, "is online and has a push token") {
                $0.reachability == "online" && $0.pushToken.isHeld
            }
        }
    }

    private func addSigner(_ signer: PrivateKey) throws(ScenarioError) {
        var app = ControlRequest(.appAdd)
        app.topic = Self.topic
        app.team = Self.team
        try command(app)
        var key = ControlRequest(.keyAdd)
        key.kid = Self.pushKeyID
        key.team = Self.team
        key.publicKey = signer.publicKeyPEM
        try command(key)
        guard options.revokesKey else { return }
        var revoke = ControlRequest(.keyRevoke)
        revoke.kid = Self.pushKeyID
        try command(revoke)
    }

    // MARK: - Online and asleep

    /// In the foreground it would be sent the message itself; one that finishes something in the
    /// background is asked.
    private func online() throws(ScenarioError) {
        var leave = ControlRequest(.deviceBackground, device: Self.ben)
        leave.runMs = 120_000
        try command(leave)
        try serverSays(Self.ben, "runs in the background, with its connection") {
            $0.reachability == "online" && $0.sessions.contains { $0.dormantAt != nil }
        }
        let message = try publish("Are you there?", to: Self.benTalk)
        try see(Self.ben, .syncRequest, "is asked to sync")
        try seeApplied(Self.ben, message)
        try seeOwn(Self.ben, message)
        try serverSays(Self.ben, "is not behind") { !$0.feed.isBehind }
        try expectNone(Self.ben, .push, "a push was sent beside the connection")
    }

    private func sleeping() throws(ScenarioError) {
        try command(ControlRequest(.deviceSuspend, device: Self.ben))
        try serverSays(Self.ben, "sleeps; it can be woken") {
            $0.reachability == "wakeable" && $0.sessions.isEmpty
        }
        let message = try publish("Dinner at eight?", to: Self.benTalk)
        try seePush(Self.ben, "background")
        let wake = try see(Self.ben, .wake, "is woken")
        try seeApplied(Self.ben, message)
        try seeOwn(Self.ben, message)
        try see(Self.ben, .state, "sleeps again") { $0.state == "suspended" && $0.n > wake.n }
        try serverRecords("silent", about: message, to: Self.ben, as: "synced")
        try expectNone(Self.ben, .push, "it was alerted, though it came") { $0.pushType == "alert" }
    }

    /// A phone in Low Power Mode keeps the silent push back until all three are written.
    private func three() throws(ScenarioError) {
        try lowPower(Self.ben, true)
        let messages = [
            try publish("Bring wine", to: Self.benTalk),
            try publish("The train goes at six", to: Self.tripTalk),
            try publish("Window seats", to: Self.tripTalk),
        ]
        try see(Self.ben, .held, "in Low Power Mode: keeps the silent push back")
        try lowPower(Self.ben, false)
        try see(Self.ben, .wake, "is charged: is woken")
        for message in messages { try seeOwn(Self.ben, message) }
        try see(Self.ben, .completed, "tells the system that it is done: new data") {
            $0.reason == "new_data"
        }
        try see(Self.ben, .state, "sleeps again") { $0.state == "suspended" }
        let wakes = events.count { $0.device == Self.ben && $0.kind == .wake }
        guard wakes == 1 else { throw ScenarioError("\(Self.ben) was woken \(wakes) times") }
        try screenShows(
            Self.ben,
            [
                "Are you there?", "Dinner at eight?", "Bring wine", "The train goes at six",
                "Window seats",
            ], icon: 5)
        try expectNone(Self.ben, .push, "it was alerted, though it came") { $0.pushType == "alert" }
    }

    private func lowPower(_ device: String, _ isOn: Bool) throws(ScenarioError) {
        var request = ControlRequest(.deviceLowPower, device: device)
        request.on = isOn
        try command(request)
    }

    /// The app that showed them is gone from memory by then: what it knows, it knows from its
    /// store.
    private func readElsewhere() throws(ScenarioError) {
        try command(ControlRequest(.deviceKill, device: Self.ben))
        try see(Self.ben, .state, "is taken out of memory") { $0.state == "not_running" }
        var read = ControlRequest(.deviceRead, device: Self.benTablet)
        read.conversation = Self.benTalk
        read.position = 2
        try command(read)
        try see(Self.benTablet, .badge, "its user reads \"Dinner at eight?\"") { $0.badge == 4 }
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .completed, "refreshes itself in the background")
        try screenShows(
            Self.ben,
            ["Are you there?", "Bring wine", "The train goes at six", "Window seats"], icon: 4)
        try expectNone(Self.ben, .shown, "something was shown")
    }

    private func tap() throws(ScenarioError) {
        let shown = try command(ControlRequest(.deviceScreen, device: Self.ben)).screen ?? []
        guard let train = shown.first(where: { $0.body == "The train goes at six" }) else {
            throw ScenarioError("\(Self.ben) does not show the train")
        }
        var tap = ControlRequest(.deviceTap, device: Self.ben)
        tap.identifier = train.identifier
        try command(tap)
        try see(Self.ben, .tapped, "its user taps \"The train goes at six\"") {
            $0.identifier == train.identifier
        }
        try see(Self.ben, .synced, "is opened, and in sync")
        let place = try report(Self.ben).app?.conversation
        guard place == Self.tripTalk else {
            throw ScenarioError("\(Self.ben) is in \(place ?? "no conversation")")
        }
        say(Self.ben, "is in the conversation of the trip")
        // The person reads the one, and is told of what comes in the other.
        let there = try publish("I have the tickets", to: Self.tripTalk)
        try seeApplied(Self.ben, there)
        var read = ControlRequest(.deviceRead, device: Self.ben)
        read.conversation = Self.tripTalk
        read.through = there.position
        try command(read)
        try see(Self.ben, .badge, "its user reads all of it") { $0.badge == 2 }
        let elsewhere = try publish("And glasses", to: Self.benTalk)
        try seeOwn(Self.ben, elsewhere)
        try screenShows(Self.ben, ["Are you there?", "Bring wine", "And glasses"], icon: 3)
        try expectNone(Self.ben, .shown, "it showed what its user looks at") {
            $0.identifier == there.id
        }
    }

    // MARK: - Force-quit

    private func forceQuit() throws(ScenarioError) {
        try command(ControlRequest(.deviceBackground, device: Self.phone))
        try command(ControlRequest(.deviceSuspend, device: Self.phone))
        try command(ControlRequest(.deviceForceQuit, device: Self.phone))
        try see(Self.phone, .state, "is swiped away") { $0.state == "force_quit" }
        try serverSays(Self.phone, "looks asleep") {
            $0.reachability == "wakeable" && $0.sessions.isEmpty
        }
        let message = try publish("Are you coming?", to: Self.claraTalk)
        try seeApplied(Self.tablet, message)
        let silent = try seePush(Self.phone, "background")
        try see(Self.phone, .received, "gets the silent push; the system starts nothing") {
            $0.pushType == "background" && $0.callback == "none"
        }
        try serverSays(Self.phone, "did not come: unreachable") {
            $0.reachability == "unreachable"
        }
        try serverRecords("silent", about: message, to: Self.phone, as: "no-show")
        let alert = try seeAlert(Self.phone, message)
        guard alert.at >= silent.at + Self.grace else {
            throw ScenarioError(
                "the alert came \(alert.at - min(alert.at, silent.at)) ms after the silent push, "
                    + "within the grace of \(Self.grace) ms")
        }
        try expectNone(Self.phone, .wake, "a force-quit app ran")
    }

    private func alertedAtOnce() throws(ScenarioError) {
        let message = try publish("We are at the station", to: Self.claraTalk)
        try seeApplied(Self.tablet, message)
        try seeAlert(Self.phone, message)
        try expectNone(Self.phone, .push, "a silent push came first") {
            $0.pushType == "background"
        }
        lastRead = message.position
    }

    // MARK: - Read elsewhere

    private func badge() throws(ScenarioError) {
        let before = try report(Self.phone)
        guard before.badge == 2, before.shown == 2 else {
            throw ScenarioError(
                "\(Self.phone) shows badge \(before.badge) and \(before.shown) alerts, not 2")
        }
        say(Self.phone, "badge 2, two alerts on the screen")
        var read = ControlRequest(.deviceRead, device: Self.tablet)
        read.conversation = Self.claraTalk
        read.through = lastRead
        try command(read)
        say(Self.tablet, "its user reads both")
        try see(Self.phone, .push, "badge push, APNs answers 200") {
            $0.status == 200 && $0.collapseId == "badge"
        }
        try see(Self.phone, .badge, "the icon's number is gone") { $0.badge == 0 }
        try see(Self.phone, .cleared, "nothing is left on the screen")
        try expectNone(Self.phone, .shown, "something was shown")
    }

    private func alertedAgain() throws(ScenarioError) {
        let message = try publish("Platform 3", to: Self.claraTalk)
        try seeApplied(Self.tablet, message)
        try seeAlert(Self.phone, message)
        let after = try report(Self.phone)
        guard after.badge == 1, after.shown == 1 else {
            throw ScenarioError(
                "\(Self.phone) shows badge \(after.badge) and \(after.shown) alerts, not 1")
        }
    }

    // MARK: - Back

    private func recovery() throws(ScenarioError) {
        try command(ControlRequest(.deviceOpen, device: Self.phone))
        try see(Self.phone, .online, "its user opens the app")
        try see(Self.phone, .synced, "is in sync")
        try serverSays(Self.phone, "is online and not behind") {
            $0.reachability == "online" && !$0.feed.isBehind
        }
        let here = try messages(Self.phone)
        let there = try messages(Self.tablet)
        guard here.count == 3, here == there else {
            throw ScenarioError(
                "\(Self.phone) holds \(here.map(\.text)), \(Self.tablet) \(there.map(\.text))")
        }
        say(Self.phone, "holds the same \(here.count) messages as \(Self.tablet)")
        try command(ControlRequest(.deviceBackground, device: Self.phone))
        try command(ControlRequest(.deviceSuspend, device: Self.phone))
        // Online lies over what it is without a session: only asleep it shows.
        try serverSays(Self.phone, "sleeps, and can be woken again: recovered") {
            $0.reachability == "wakeable"
        }
    }

    // MARK: - Sentences of the story

    func publish(
        _ text: String, to conversation: String
    ) throws(ScenarioError) -> PublishedMessage {
        say("anna", "\"\(text)\"")
        return try backend.publish(text, from: "anna", to: conversation)
    }

    func seeApplied(
        _ device: String, _ message: PublishedMessage
    ) throws(ScenarioError) {
        try see(device, .applied, "has the message, durably") { event in
            event.messages?.contains { $0.message == message.id } ?? false
        }
    }

    @discardableResult
    func seePush(
        _ device: String, _ type: String
    ) throws(ScenarioError) -> SimulatorEvent {
        try see(device, .push, "\(type) push, APNs answers 200") {
            $0.pushType == type && $0.status == 200
        }
    }

    /// - Returns: the push.
    @discardableResult
    func seeAlert(
        _ device: String, _ message: PublishedMessage
    ) throws(ScenarioError) -> SimulatorEvent {
        let push = try see(device, .push, "alert push, APNs answers 200") {
            $0.pushType == "alert" && $0.status == 200 && $0.collapseId == message.id
        }
        try see(device, .shown, "shows it on the screen") {
            $0.identifier == message.id && $0.local != true
        }
        return push
    }

    /// The app's own notification, as the person sees it.
    func seeOwn(
        _ device: String, _ message: PublishedMessage
    ) throws(ScenarioError) {
        try see(device, .shown, "shows a notification of its own") {
            $0.identifier == message.id && $0.local == true
        }
    }

    func screenShows(
        _ device: String, _ texts: [String], icon: UInt64
    ) throws(ScenarioError) {
        let shown = try command(ControlRequest(.deviceScreen, device: device)).screen ?? []
        let badge = try report(device).badge
        guard shown.map(\.body) == texts, badge == icon else {
            throw ScenarioError(
                "\(device) shows \(shown.map(\.body)) and \(badge), not \(texts) and \(icon)")
        }
        say(device, "shows \(texts.map { "\"\($0)\"" }.joined(separator: ", ")), icon \(icon)")
    }

    func expectNone(
        _ device: String, _ kind: SimulatorEvent.Kind, _ wrong: String,
        where fits: (SimulatorEvent) -> Bool = { _ in true }
    ) throws(ScenarioError) {
        try catchUp()
        if events.contains(where: { $0.device == device && $0.kind == kind && fits($0) }) {
            throw ScenarioError("\(device): \(wrong)")
        }
    }

    func report(_ device: String) throws(ScenarioError) -> DeviceReport {
        guard let status = try command(ControlRequest(.deviceStatus, device: device)).status
        else { throw ScenarioError("the simulator tells nothing of \(device)") }
        return status
    }

    /// As stored on the device.
    private func messages(_ device: String) throws(ScenarioError) -> [StoredMessage] {
        var request = ControlRequest(.deviceMessages, device: device)
        request.conversation = Self.claraTalk
        return try command(request).messages ?? []
    }
}
