import DeviceModel
import Model
import Testing

/// The table of CHECKS.md, row by row as a person lives it: in each of eight states a push comes,
/// and is tapped or not, or its user presses a button or clears it.
struct SourceTableTests {
    /// The states of the table; `locked` is a phone that was restarted and not unlocked.
    enum Place: String, CaseIterable, Sendable {
        case foreground, inactive, background, suspended, notRunning, forceQuit, rebooted, locked

        var state: PushEffect.State {
            switch self {
            case .foreground: .foreground
            case .inactive: .inactive
            case .background: .background
            case .suspended: .suspended
            case .notRunning: .notRunning
            case .forceQuit: .forceQuit
            case .rebooted, .locked: .rebooted
            }
        }
    }

    /// A push and what its user does with it.
    enum Deed: String, CaseIterable, Sendable {
        case none, tap, opening, quiet, told, cleared

        var response: NotificationResponse? {
            switch self {
            case .none: nil
            case .tap: .opened
            case .opening: .action(opensApp: true)
            case .quiet: .action(opensApp: false)
            case .told: .dismissed(isTold: true)
            case .cleared: .dismissed(isTold: false)
            }
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let place: Place
        let push: PushEffect.Kind
        /// What the system calls, by its first words; `run`: the app gets its 30 seconds, `screen`:
        /// the notification appears.
        let comes: String
        /// The same for a tap, a button that opens, one that does not, and a dismissal that is
        /// told; `front`: the app comes to the front, `unlock`: the phone is unlocked.
        let tapped: String
        let quiet: String

        init(
            _ place: Place, _ push: PushEffect.Kind, _ comes: String, _ tapped: String = "",
            _ quiet: String = ""
        ) {
            (self.place, self.push, self.comes) = (place, push, comes)
            (self.tapped, self.quiet) = (tapped, quiet)
        }

        var testDescription: String { "\(place) \(push.rawValue)" }
    }

    static let rows: [Row] = [
        Row(.foreground, .silent, "remote"),
        Row(.foreground, .alert, "willPresent", "front didReceive", "didReceive"),
        Row(
            .foreground, .alertWithContent, "willPresent remote", "front didReceive", "didReceive"),
        Row(.inactive, .silent, "remote"),
        Row(.inactive, .alert, "willPresent", "front didReceive", "didReceive"),
        Row(.inactive, .alertWithContent, "willPresent remote", "front didReceive", "didReceive"),
        Row(.background, .silent, "remote run"),
        Row(.background, .alert, "screen", "front didReceive", "run didReceive"),
        Row(
            .background, .alertWithContent, "remote screen run", "front didReceive",
            "run didReceive"),
        Row(.suspended, .silent, "remote run"),
        Row(.suspended, .alert, "screen", "front didReceive", "run didReceive"),
        Row(
            .suspended, .alertWithContent, "remote screen run", "front didReceive",
            "run didReceive"),
        Row(.notRunning, .silent, "launch remote run"),
        Row(.notRunning, .alert, "screen", "front launch didReceive", "run launch didReceive"),
        Row(
            .notRunning, .alertWithContent, "launch remote screen run", "front didReceive",
            "run didReceive"),
        Row(.forceQuit, .silent, ""),
        Row(.forceQuit, .alert, "screen", "front launch didReceive", "run launch didReceive"),
        Row(
            .forceQuit, .alertWithContent, "screen", "front launch didReceive",
            "run launch didReceive"),
        Row(.rebooted, .silent, "launch remote run"),
        Row(.rebooted, .alert, "screen", "front launch didReceive", "run launch didReceive"),
        Row(
            .rebooted, .alertWithContent, "launch remote screen run", "front didReceive",
            "run didReceive"),
        Row(.locked, .silent, "launch remote run"),
        Row(
            .locked, .alert, "screen", "unlock front launch didReceive", "run launch didReceive"),
        Row(
            .locked, .alertWithContent, "launch remote screen run", "unlock front didReceive",
            "run didReceive"),
    ]

    private static func words(_ calls: [String]) -> [String] {
        let names = [
            "application(_:didFinishLaunchingWithOptions:)": "launch",
            "application(_:didReceiveRemoteNotification:fetchCompletionHandler:)": "remote",
            "userNotificationCenter(_:willPresent:withCompletionHandler:)": "willPresent",
            "userNotificationCenter(_:didReceive:withCompletionHandler:)": "didReceive",
        ]
        return calls.map { names[$0] ?? $0 }
    }

    private static func words(_ events: [PhoneEvent]) -> String {
        events.flatMap { event -> [String] in
            switch event {
            case .received(_, let callback, _): words(callback.calls)
            case .responded(_, _, let callback): words(callback.calls)
            case .run: ["run"]
            case .shown: ["screen"]
            case .enterForeground: ["front"]
            case .unlocked: ["unlock"]
            default: []
            }
        }.joined(separator: " ")
    }

    private func fixture(_ place: Place) -> PhoneFixture {
        guard place == .locked else { return PhoneFixture(in: place.state) }
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { phone, _, _, events in phone.reboot(isLocked: true, into: &events) }
        fixture.events = []
        return fixture
    }

    @Test(arguments: rows, Deed.allCases)
    func eachRow(_ row: Row, _ deed: Deed) {
        var fixture = fixture(row.place)
        fixture.push(PhonePush(row.push, handle: 7, identifier: 9))
        #expect(Self.words(fixture.taken()) == row.comes)
        guard let response = deed.response, row.push != .silent else { return }
        if fixture.phone.screen.isEmpty {
            // An app in front may have it shown; its user then finds it in the list.
            fixture.change { phone, rules, _, events in
                _ = phone.showLocal(handle: 7, identifier: 9, rules: rules, into: &events)
            }
            _ = fixture.taken()
        }
        fixture.change {
            #expect($0.respond(response, to: 7, rules: $1, now: $2, into: &$3))
        }
        let came = Self.words(fixture.taken())
        switch deed {
        case .cleared: #expect(came == "")
        case .tap, .opening: #expect(came == row.tapped)
        default: #expect(came == row.quiet)
        }
        #expect(fixture.phone.screen.isEmpty)
        if response.opensApp {
            #expect(fixture.phone.state == .foreground && !fixture.phone.isLocked)
        } else if row.place == .locked {
            #expect(fixture.phone.isLocked)
        }
    }

    @Test func theTableIsWhole() {
        #expect(Self.rows.count == Place.allCases.count * 3)
        #expect(Set(Self.rows.map { "\($0.place) \($0.push)" }).count == Self.rows.count)
    }

    /// One method told of all.
    @Test func theOlderNames() {
        let remote = "application(_:didReceiveRemoteNotification:fetchCompletionHandler:)"
        for callback in [
            PushEffect.Callback.willPresent, .didReceiveRemote, .willPresentAndDidReceiveRemote,
            .didReceiveResponse,
        ] { #expect(callback.olderCalls == [remote]) }
        for callback in [
            PushEffect.Callback.launchAndDidReceiveRemote, .launchAndDidReceiveResponse,
        ] { #expect(callback.olderCalls.count == 2 && callback.olderCalls.last == remote) }
        #expect(PushEffect.Callback.none.olderCalls == [])
    }

    /// As Apple's older text has it, until its user opens the app.
    @Test func neverWokenAfterARestartByTheOlderRule() {
        var fixture = PhoneFixture(in: .rebooted)
        fixture.rules.wakesAfterRestart = false
        fixture.push(PhoneFixture.silent(1))
        fixture.push(PhonePush(.alertWithContent, handle: 2, identifier: 9))
        #expect(
            fixture.taken() == [
                .dropped(handle: 1, .disallowed),
                .received(handle: 2, .none, obstacle: .restarted),
                .shown(handle: 2, identifier: 9),
            ])
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        _ = fixture.taken()
        fixture.push(PhoneFixture.silent(3))
        #expect(Self.words(fixture.taken()) == "remote run")
    }

    @Test func aCoveredAppComesBackOrGoes() {
        var fixture = PhoneFixture(in: .foreground)
        fixture.change { phone, _, _, events in phone.cover(into: &events) }
        #expect(fixture.taken() == [.resignActive])
        #expect(fixture.phone.state == .inactive)
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken() == [.enterForeground])
        fixture.change { phone, _, _, events in phone.cover(into: &events) }
        fixture.change { $0.background(now: $2, runTime: $1.leaveTime, into: &$3) }
        #expect(fixture.taken() == [.resignActive, .enterBackground(remaining: 5_000)])
    }
}
