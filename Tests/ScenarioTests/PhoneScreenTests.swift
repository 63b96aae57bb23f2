import APNsSimulator
import Foundation
import Testing

@testable import Scenario

/// What stands on the screens of phones that run the app: real server, simulator and sockets,
/// judged by the screen alone.
@Suite(.serialized) struct PhoneScreenTests {
    @Test("one wake shows three, one read elsewhere goes, and a kill in the middle loses nothing")
    func screens() throws {
        var options = DemoOptions()
        options.executable =
            URL(fileURLWithPath: CommandLine.arguments[0])
            .deletingLastPathComponent().appendingPathComponent("rouse").path
        let story = [
            Demo.story[0],
            Demo.Chapter("three", "Three arrive by one silent wake", Demo.threeOfOneWake),
            Demo.Chapter(
                "read", "One is read elsewhere, the app was killed", Demo.readElsewhereAfterAKill),
            Demo.Chapter(
                "announced", "An announcement stays when nothing is unread any more",
                Demo.announcementBesideNoUnread),
            Demo.Chapter(
                "taken-back", "A backend takes back what it announced by mistake",
                Demo.announcementTakenBack),
            Demo.Chapter("muted", "A backend mutes a talk for its user", Demo.mutedByTheBackend),
            Demo.Chapter(
                "blocked", "A backend blocks somebody for its user", Demo.blockedByTheBackend),
            Demo.Chapter("meanwhile", "A mute came and went meanwhile", Demo.mutedMeanwhile),
            Demo.Chapter("killed", "A kill in the middle of a wake", Demo.killedInTheMiddle),
            Demo.Chapter("alerted", "Alerted, and then woken", Demo.alertedAndSynced),
        ]
        let report = try Demo.run(options, story)
        #expect(report.ok, "\(report.failedStep ?? ""): \(report.failure ?? "")")
        #expect(report.steps == story.count)
    }
}

extension Demo {
    private func sleep(_ device: String) throws(ScenarioError) {
        try command(ControlRequest(.deviceBackground, device: device))
        try command(ControlRequest(.deviceSuspend, device: device))
        try serverSays(device, "sleeps") { $0.reachability == "wakeable" && $0.sessions.isEmpty }
    }

    private func lowPower(_ device: String, _ isOn: Bool) throws(ScenarioError) {
        var request = ControlRequest(.deviceLowPower, device: device)
        request.on = isOn
        try command(request)
    }

    private func require(_ isTrue: Bool, _ what: String) throws(ScenarioError) {
        if !isTrue { throw ScenarioError(what) }
    }

    /// The place of an event in what happened in this step.
    private func place(
        _ device: String, _ kind: SimulatorEvent.Kind,
        where fits: (SimulatorEvent) -> Bool = { _ in true }
    ) throws(ScenarioError) -> UInt64 {
        guard
            let found = events.last(where: { $0.device == device && $0.kind == kind && fits($0) })
        else { throw ScenarioError("\(device): no \(kind.rawValue)") }
        return found.n
    }

    func threeOfOneWake() throws(ScenarioError) {
        try sleep(Self.ben)
        // The phone keeps the silent push back until all three are written.
        try lowPower(Self.ben, true)
        let texts = ["One", "Two", "Three"]
        var messages: [PublishedMessage] = []
        for text in texts { messages.append(try publish(text, to: Self.benTalk)) }
        try see(Self.ben, .held, "keeps the silent push back")
        try lowPower(Self.ben, false)
        for message in messages {
            try seeApplied(Self.ben, message)
            try seeOwn(Self.ben, message)
        }
        try see(Self.ben, .completed, "says that it is done") { $0.reason == "new_data" }
        try see(Self.ben, .state, "sleeps again") { $0.state == "suspended" }
        try screenShows(Self.ben, texts, icon: 3)
        try catchUp()
        let wakes = events.filter { $0.device == Self.ben && $0.kind == .wake }
        try require(wakes.count == 1, "\(wakes.count) wakes")
        // Entries, then the screen, then the system's handler, then no more run time.
        let completed = try place(Self.ben, .completed)
        try require(try place(Self.ben, .applied) < place(Self.ben, .shown), "shown first")
        try require(try place(Self.ben, .shown) < completed, "completed before it was shown")
        try require(try place(Self.ben, .badge) < completed, "completed before the icon")
        try require(try completed < place(Self.ben, .state), "suspended before it was done")
        lastRead = messages[0].position
    }

    func readElsewhereAfterAKill() throws(ScenarioError) {
        try command(ControlRequest(.deviceKill, device: Self.ben))
        var read = ControlRequest(.deviceRead, device: Self.benTablet)
        read.conversation = Self.benTalk
        read.through = lastRead
        try command(read)
        try see(Self.benTablet, .badge, "its user reads the first") { $0.badge == 2 }
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, ["Two", "Three"], icon: 2)
        try expectNone(Self.ben, .shown, "something was shown")
    }

    /// The icon's change to 0 takes the system's list away, and an announcement does not count.
    func announcementBesideNoUnread() throws(ScenarioError) {
        let parcel = "Your parcel is at the door"
        try backend.announce(parcel, to: ["ben"])
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, ["Two", "Three", parcel], icon: 2)
        var read = ControlRequest(.deviceRead, device: Self.benTablet)
        read.conversation = Self.benTalk
        read.through = lastRead + 2
        try command(read)
        try see(Self.benTablet, .badge, "its user reads all") { $0.badge == 0 }
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .badge, "has nothing to count") { $0.badge == 0 }
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, [parcel], icon: 0)
    }

    /// It goes from the screen, and what is right stays.
    func announcementTakenBack() throws(ScenarioError) {
        let parcel = "Your parcel is at the door"
        let mistake = try backend.announce("Everything is free", to: ["ben"])
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .shown, "shows the mistake") { $0.identifier == mistake }
        try screenShows(Self.ben, [parcel, "Everything is free"], icon: 0)
        try backend.takeBack(announcement: mistake)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .removed, "removes it") { $0.identifier == mistake }
        try screenShows(Self.ben, [parcel], icon: 0)
    }

    /// The phone has what came meanwhile, shows none of it, and counts it when the mute has ended.
    func mutedByTheBackend() throws(ScenarioError) {
        let parcel = "Your parcel is at the door"
        try backend.mute("ben", Self.benTalk, true)
        let quiet = try publish("Psst", to: Self.benTalk)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try seeApplied(Self.ben, quiet)
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, [parcel], icon: 0)
        try expectNone(Self.ben, .push, "it was woken")
        try backend.mute("ben", Self.benTalk, false)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .badge, "counts it") { $0.badge == 1 }
        try screenShows(Self.ben, [parcel], icon: 1)
    }

    /// What was sent while the block lasted does not come after it either.
    func blockedByTheBackend() throws(ScenarioError) {
        let parcel = "Your parcel is at the door"
        try backend.block("ben", "anna", true)
        let unheard = try publish("Can you hear me?", to: Self.benTalk)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, [parcel], icon: 1)
        try backend.block("ben", "anna", false)
        let heard = try publish("And now?", to: Self.benTalk)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try seeOwn(Self.ben, heard)
        try screenShows(Self.ben, [parcel, "And now?"], icon: 2)
        try expectNone(Self.ben, .applied, "it came") { event in
            event.messages?.contains { $0.message == unheard.id } ?? false
        }
    }

    /// What came during the mute fills more than a page, and is told of neither then nor later: it
    /// counts alone (PSH-9).
    func mutedMeanwhile() throws(ScenarioError) {
        try backend.mute("ben", Self.benTalk, true)
        for number in 1...120 { _ = try publish("Quiet \(number)", to: Self.benTalk) }
        try backend.mute("ben", Self.benTalk, false)
        try command(ControlRequest(.deviceFetch, device: Self.ben))
        try see(Self.ben, .badge, "counts them") { $0.badge == 122 }
        try see(Self.ben, .completed, "refreshes itself")
        try screenShows(Self.ben, ["Your parcel is at the door", "And now?"], icon: 122)
        try expectNone(Self.ben, .shown, "it tells of them")
    }

    func killedInTheMiddle() throws(ScenarioError) {
        try sleep(Self.phone)
        var kill = ControlRequest(.deviceKill, device: Self.phone)
        kill.at = .applied
        try command(kill)
        let message = try publish("Are you there?", to: Self.claraTalk)
        try seeApplied(Self.phone, message)
        try see(Self.phone, .state, "is killed with the message in its store") {
            $0.state == "not_running"
        }
        try screenShows(Self.phone, [], icon: 1)
        try expectNone(Self.phone, .completed, "it was done")
        try command(ControlRequest(.deviceFetch, device: Self.phone))
        try seeOwn(Self.phone, message)
        try see(Self.phone, .completed, "has told what it owed")
        try screenShows(Self.phone, ["Are you there?"], icon: 1)
        try expectNone(Self.phone, .push, "it was alerted") { $0.pushType == "alert" }
    }

    func alertedAndSynced() throws(ScenarioError) {
        try sleep(Self.tablet)
        try lowPower(Self.tablet, true)
        let message = try publish("Dinner at eight?", to: Self.claraTalk)
        try see(Self.tablet, .held, "keeps the silent push back")
        try seeAlert(Self.tablet, message)
        try lowPower(Self.tablet, false)
        try seeApplied(Self.tablet, message)
        try see(Self.tablet, .completed, "has synced")
        try catchUp()
        let shown = events.filter {
            $0.device == Self.tablet && $0.kind == .shown && $0.identifier == message.id
        }
        try require(shown.count == 1, "it was shown \(shown.count) times")
        try screenShows(Self.tablet, ["Dinner at eight?"], icon: 2)
    }
}
