import DeviceModel
import Model
import Testing

/// The callback table, written down a second time and held against what a phone does.
struct CallbackTableTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let state: PushEffect.State
        let kind: PushEffect.Kind
        let callback: PushEffect.Callback
        /// S: shows, B: badge, W: gets its 30 seconds, L: is launched for it.
        let does: String

        init(
            _ state: PushEffect.State, _ kind: PushEffect.Kind, _ callback: PushEffect.Callback,
            _ does: String
        ) {
            self.state = state
            self.kind = kind
            self.callback = callback
            self.does = does
        }

        var testDescription: String { "\(state.rawValue) \(kind.rawValue)" }
    }

    static let rows: [Row] = [
        Row(.foreground, .silent, .didReceiveRemote, ""),
        Row(.foreground, .alert, .willPresent, "B"),
        Row(.foreground, .alertWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.foreground, .badge, .willPresent, "B"),
        Row(.foreground, .badgeWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.foreground, .nothing, .none, ""),
        Row(.inactive, .silent, .didReceiveRemote, ""),
        Row(.inactive, .alert, .willPresent, "B"),
        Row(.inactive, .alertWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.inactive, .badge, .willPresent, "B"),
        Row(.inactive, .badgeWithContent, .willPresentAndDidReceiveRemote, "B"),
        Row(.inactive, .nothing, .none, ""),
        Row(.background, .silent, .didReceiveRemote, "W"),
        Row(.background, .alert, .none, "SB"),
        Row(.background, .alertWithContent, .didReceiveRemote, "SBW"),
        Row(.background, .badge, .none, "B"),
        Row(.background, .badgeWithContent, .didReceiveRemote, "BW"),
        Row(.background, .nothing, .none, ""),
        Row(.suspended, .silent, .didReceiveRemote, "W"),
        Row(.suspended, .alert, .none, "SB"),
        Row(.suspended, .alertWithContent, .didReceiveRemote, "SBW"),
        Row(.suspended, .badge, .none, "B"),
        Row(.suspended, .badgeWithContent, .didReceiveRemote, "BW"),
        Row(.suspended, .nothing, .none, ""),
        Row(.notRunning, .silent, .launchAndDidReceiveRemote, "LW"),
        Row(.notRunning, .alert, .none, "SB"),
        Row(.notRunning, .alertWithContent, .launchAndDidReceiveRemote, "SBLW"),
        Row(.notRunning, .badge, .none, "B"),
        Row(.notRunning, .badgeWithContent, .launchAndDidReceiveRemote, "BLW"),
        Row(.notRunning, .nothing, .none, ""),
        Row(.forceQuit, .silent, .none, ""),
        Row(.forceQuit, .alert, .none, "SB"),
        Row(.forceQuit, .alertWithContent, .none, "SB"),
        Row(.forceQuit, .badge, .none, "B"),
        Row(.forceQuit, .badgeWithContent, .none, "B"),
        Row(.forceQuit, .nothing, .none, ""),
        Row(.rebooted, .silent, .launchAndDidReceiveRemote, "LW"),
        Row(.rebooted, .alert, .none, "SB"),
        Row(.rebooted, .alertWithContent, .launchAndDidReceiveRemote, "SBLW"),
        Row(.rebooted, .badge, .none, "B"),
        Row(.rebooted, .badgeWithContent, .launchAndDidReceiveRemote, "BLW"),
        Row(.rebooted, .nothing, .none, ""),
    ]

    @Test(arguments: rows)
    func eachCell(_ row: Row) {
        var fixture = PhoneFixture(in: row.state)
        #expect(fixture.phone.state == row.state)
        fixture.push(PhonePush(row.kind, handle: 7, identifier: 9, badge: 2))
        var expected: [PhoneEvent] = [
            .received(handle: 7, row.callback, obstacle: nil)
        ]
        if row.does.contains("B") { expected.append(.badge(2)) }
        if row.does.contains("S") { expected.append(.shown(handle: 7, identifier: 9)) }
        if row.does.contains("W") {
            expected.append(
                .run(handle: 7, remaining: 30_000, launches: row.does.contains("L")))
        } else if row.state == .foreground || row.state == .inactive, row.callback != .none {
            expected.append(.notify(handle: 7))
        }
        #expect(fixture.events == expected)
        let runs = row.does.contains("W")
        #expect(fixture.phone.state == (runs ? .background : row.state))
        if runs { #expect(fixture.phone.runsUntil == fixture.now + 30_000) }
    }

    @Test func theTableIsWhole() {
        let cells = PushEffect.State.allCases.count * PushEffect.Kind.allCases.count
        #expect(Self.rows.count == cells)
        #expect(PushEffect.table.count == cells)
        #expect(Set(PushEffect.table.map { "\($0.state) \($0.kind)" }).count == cells)
    }
}

/// The obstacles: which lets go, holds or drops, with every kind of push that would wake.
struct WakeObstacleTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let obstacle: WakeObstacle
        let silent: WakeObstacle.Verdict

        var testDescription: String { obstacle.rawValue }
    }

    static let rows = [
        Row(obstacle: .restarted, silent: .dropped),
        Row(obstacle: .refreshOff, silent: .dropped),
        Row(obstacle: .forgotten, silent: .dropped),
        Row(obstacle: .lowPower, silent: .held),
        Row(obstacle: .priorityOne, silent: .held),
        Row(obstacle: .hourSpent, silent: .held),
        Row(obstacle: .daySpent, silent: .held),
    ]

    func fixture(_ obstacle: WakeObstacle) -> PhoneFixture {
        var fixture = PhoneFixture(in: obstacle == .restarted ? .rebooted : .suspended)
        switch obstacle {
        case .restarted: fixture.rules.wakesAfterRestart = false
        case .refreshOff:
            fixture.change { $0.setBackgroundRefresh(false, rules: $1, now: $2, into: &$3) }
        case .lowPower: fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        case .forgotten:
            fixture.rules.forgottenAfter = 1_000
            fixture.now = fixture.now + 1_001
        case .priorityOne: break
        case .hourSpent, .daySpent:
            if obstacle == .hourSpent { fixture.rules.silentPerHour = 1 }
            if obstacle == .daySpent { fixture.rules.silentPerDay = 1 }
            fixture.push(PhonePush(.silent, handle: 1, priority: 5))
            fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        }
        fixture.events = []
        return fixture
    }

    func push(_ kind: PushEffect.Kind, _ obstacle: WakeObstacle) -> PhonePush {
        PhonePush(
            kind, handle: 7, identifier: 9, badge: 2, priority: obstacle == .priorityOne ? 1 : 5)
    }

    @Test(arguments: rows)
    func aSilentPush(_ row: Row) {
        var fixture = fixture(row.obstacle)
        fixture.push(push(.silent, row.obstacle))
        switch row.silent {
        case .held:
            #expect(fixture.events == [.held(handle: 7, row.obstacle)])
            #expect(fixture.phone.held?.handle == 7)
        case .dropped:
            #expect(fixture.events == [.dropped(handle: 7, .disallowed)])
            #expect(fixture.phone.held == nil)
        }
        #expect(fixture.phone.state == (row.obstacle == .restarted ? .rebooted : .suspended))
    }

    @Test(arguments: rows)
    func anAlertAppearsAndDoesNotWake(_ row: Row) {
        var fixture = fixture(row.obstacle)
        fixture.push(push(.alertWithContent, row.obstacle))
        #expect(
            fixture.events == [
                .received(handle: 7, .none, obstacle: row.obstacle), .badge(2),
                .shown(handle: 7, identifier: 9),
            ])
        #expect(fixture.phone.state == (row.obstacle == .restarted ? .rebooted : .suspended))
    }

    @Test(arguments: rows)
    func anAppInFrontIsToldAllTheSame(_ row: Row) {
        var fixture = fixture(row.obstacle)
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        fixture.events = []
        fixture.push(push(.silent, row.obstacle))
        #expect(
            fixture.events == [
                .received(handle: 7, .didReceiveRemote, obstacle: nil), .notify(handle: 7),
            ])
    }

    @Test func theTableIsWhole() {
        #expect(Self.rows.map(\.obstacle) == WakeObstacle.allCases)
        for row in Self.rows { #expect(row.obstacle.silent == row.silent) }
    }
}
