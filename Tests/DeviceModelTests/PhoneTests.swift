import DeviceModel
import Model
import Testing

struct PhoneTests {
    // MARK: Held pushes

    @Test func theNewestHeldPushComesWhenLowPowerEnds() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.push(PhoneFixture.silent(1))
        fixture.push(PhoneFixture.silent(2))
        #expect(
            fixture.taken() == [
                .held(handle: 1, .lowPower), .dropped(handle: 1, .superseded),
                .held(handle: 2, .lowPower),
            ])
        fixture.change { $0.setLowPower(false, rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .received(handle: 2, .didReceiveRemote, obstacle: nil),
                .run(handle: 2, remaining: 30_000, launches: false),
            ])
        #expect(fixture.phone.held == nil)
    }

    @Test(arguments: [PushEffect.State.forceQuit, .notRunning, .rebooted])
    func leavingMemoryDiscardsTheHeldPush(_ state: PushEffect.State) {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.push(PhoneFixture.silent(1))
        fixture.events = []
        fixture.change { phone, _, _, events in
            switch state {
            case .forceQuit: phone.forceQuit(into: &events)
            case .notRunning: phone.kill(into: &events)
            default: phone.reboot(into: &events)
            }
        }
        #expect(fixture.taken() == [.terminate, .dropped(handle: 1, .discarded)])
    }

    @Test func openingTheAppDeliversTheHeldPush() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.push(PhoneFixture.silent(1))
        fixture.events = []
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .enterForeground, .received(handle: 1, .didReceiveRemote, obstacle: nil),
                .notify(handle: 1),
            ])
    }

    @Test func anEndedObstacleUncoversTheNext() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.silentPerHour = 1
        fixture.push(PhoneFixture.silent(1))
        let spentAt = fixture.now
        fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.push(PhoneFixture.silent(2))
        fixture.events = []
        fixture.change { $0.setLowPower(false, rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken() == [])
        #expect(fixture.phone.nextDeadline == spentAt + DeviceRules.hour)
    }

    // MARK: Budgets

    @Test func anHourHasItsWakesAndTheNextHourLetsTheHeldOneGo() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.silentPerHour = 3
        let start = fixture.now
        for handle in 1...5 as ClosedRange<UInt64> {
            fixture.push(PhoneFixture.silent(handle))
            fixture.change { phone, _, _, events in phone.suspend(into: &events) }
            fixture.now = fixture.now + 60_000
        }
        let woken = fixture.taken().compactMap { event -> UInt64? in
            if case .run(let handle, _, _) = event { handle } else { nil }
        }
        #expect(woken == [1, 2, 3])
        #expect(fixture.phone.nextDeadline == start + DeviceRules.hour)
        fixture.now = start + (DeviceRules.hour - 1)
        fixture.change { $0.expire(rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken() == [])
        fixture.now = start + DeviceRules.hour
        fixture.change { $0.expire(rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .received(handle: 5, .didReceiveRemote, obstacle: nil),
                .run(handle: 5, remaining: 30_000, launches: false),
            ])
    }

    @Test func theDayOutlastsTheHours() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.silentPerDay = 2
        let start = fixture.now
        for handle in 1...3 as ClosedRange<UInt64> {
            fixture.push(PhoneFixture.silent(handle))
            fixture.change { phone, _, _, events in phone.suspend(into: &events) }
            fixture.now = fixture.now + 2 * DeviceRules.hour
        }
        #expect(fixture.taken().last == .held(handle: 3, .daySpent))
        #expect(fixture.phone.nextDeadline == start + DeviceRules.day)
    }

    @Test func theContentOfAnAlertSpendsToo() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.silentPerHour = 1
        fixture.push(PhonePush(.alertWithContent, handle: 1))
        fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        fixture.push(PhoneFixture.silent(2))
        #expect(fixture.taken().last == .held(handle: 2, .hourSpent))
    }

    @Test func openingTheAppRemembersIt() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.forgottenAfter = DeviceRules.day
        fixture.now = fixture.now + 2 * DeviceRules.day
        fixture.push(PhoneFixture.silent(1))
        #expect(fixture.taken() == [.dropped(handle: 1, .disallowed)])
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        fixture.events = []
        fixture.push(PhoneFixture.silent(2))
        #expect(fixture.phone.state == .background)
    }

    @Test func zeroAnHourIsLegitimate() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.rules.silentPerHour = 0
        fixture.push(PhoneFixture.silent(1))
        #expect(fixture.taken() == [.held(handle: 1, .hourSpent)])
        #expect(fixture.phone.nextDeadline == nil)
    }

    // MARK: The storage slot

    func stored(_ handle: UInt64, expires: UInt64 = .max) -> PhonePush {
        PhonePush(.alert, handle: handle, identifier: handle, expires: expires)
    }

    func offline() -> PhoneFixture {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { $0.setCoverage(false, rules: $1, now: $2, into: &$3) }
        fixture.events = []
        return fixture
    }

    @Test func theSlotHoldsOneAndTheNewerWins() {
        var fixture = offline()
        fixture.push(stored(1))
        fixture.push(stored(2))
        #expect(
            fixture.taken() == [
                .stored(handle: 1, replaced: nil), .stored(handle: 2, replaced: 1),
            ])
        fixture.change { $0.setCoverage(true, rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .networkChanged(isUp: true), .received(handle: 2, .none, obstacle: nil),
                .shown(handle: 2, identifier: 2),
            ])
        #expect(fixture.phone.slot == nil)
    }

    /// The trap of a silent push that may be stored: it takes the alert's place.
    @Test func aStoredSilentPushReplacesAnAlert() {
        var fixture = offline()
        fixture.push(stored(1))
        fixture.push(PhonePush(.silent, handle: 2, expires: .max, priority: 5))
        fixture.change { $0.setCoverage(true, rules: $1, now: $2, into: &$3) }
        #expect(fixture.phone.screen.isEmpty)
    }

    @Test func expirationZeroIsTriedOnce() {
        var fixture = offline()
        fixture.push(stored(1))
        fixture.push(PhoneFixture.silent(2))
        #expect(fixture.taken().last == .dropped(handle: 2, .notStored))
        #expect(fixture.phone.slot?.handle == 1)
    }

    @Test func theOlderMayBeKept() {
        var fixture = offline()
        fixture.rules.keepsOlderPermille = 20
        fixture.push(stored(1), chance: 0)
        fixture.push(stored(2), chance: 1_019)
        #expect(fixture.phone.slot?.handle == 1)
        #expect(fixture.taken().last == .dropped(handle: 2, .olderKept))
        fixture.push(stored(3), chance: 20)
        #expect(fixture.phone.slot?.handle == 3)
    }

    @Test func storedPushesExpire() {
        var fixture = offline()
        fixture.push(stored(1, expires: fixture.now.milliseconds + 1_000))
        #expect(fixture.phone.nextDeadline == fixture.now + 1_000)
        fixture.now = fixture.now + 1_000
        fixture.change { $0.expire(rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken().last == .dropped(handle: 1, .expired))
        fixture.push(stored(2, expires: fixture.now.milliseconds))
        #expect(fixture.taken() == [.dropped(handle: 2, .expired)])
        // Without an expiration: 30 days.
        fixture.push(stored(3))
        #expect(fixture.phone.nextDeadline == fixture.now + 30 * DeviceRules.day)
    }

    // MARK: The screen

    func screenful() -> PhoneFixture {
        var fixture = PhoneFixture(in: .suspended)
        fixture.push(PhonePush(.alert, handle: 1, identifier: 11, badge: 1))
        fixture.push(PhonePush(.alert, handle: 2, identifier: 0, badge: 2))
        fixture.push(PhonePush(.alert, handle: 3, identifier: 13, badge: 3))
        fixture.events = []
        return fixture
    }

    @Test func theRunningAppRemovesEachByItsIdentifier() {
        var fixture = screenful()
        fixture.change { phone, _, _, events in
            #expect(phone.remove(identifier: 11, into: &events) == false)
        }
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        fixture.change { phone, _, _, events in
            #expect(phone.remove(identifier: 11, into: &events) == true)
            #expect(phone.remove(identifier: 11, into: &events) == false)
            // One without a collapse id cannot be named.
            #expect(phone.remove(identifier: 0, into: &events) == false)
        }
        #expect(fixture.taken() == [.enterForeground, .removed(handle: 1, identifier: 11)])
        #expect(fixture.phone.screen.map(\.handle) == [2, 3])
    }

    @Test func badgeZeroRemovesAllAtOnce() {
        var fixture = screenful()
        fixture.push(PhonePush(.badge, handle: 4, badge: 0, priority: 5))
        #expect(
            fixture.taken() == [
                .received(handle: 4, .none, obstacle: nil), .badge(0), .cleared,
            ])
        #expect(fixture.phone.screen.isEmpty)
        // From 0 to 0 nothing changes.
        fixture.push(PhonePush(.alert, handle: 5, identifier: 15))
        fixture.push(PhonePush(.badge, handle: 6, badge: 0, priority: 5))
        #expect(fixture.phone.screen.map(\.handle) == [5])
    }

    @Test func onlyARunningAppShowsAndSetsTheBadge() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { phone, rules, _, events in
            #expect(phone.showLocal(handle: 1, identifier: 1, rules: rules, into: &events) == false)
            #expect(phone.setBadge(1, into: &events) == false)
        }
        #expect(fixture.taken() == [])
        fixture.push(PhoneFixture.silent(2))
        fixture.events = []
        fixture.change { phone, rules, _, events in
            #expect(phone.showLocal(handle: 3, identifier: 1, rules: rules, into: &events) == true)
            #expect(phone.setBadge(1, into: &events) == true)
        }
        #expect(fixture.taken() == [.shown(handle: 3, identifier: 1), .badge(1)])
    }

    @Test func withoutPermissionNothingAppears() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.phone.setAlertsAllowed(false)
        fixture.push(PhonePush(.alertWithContent, handle: 1, identifier: 1, badge: 1))
        #expect(
            fixture.taken() == [
                .received(handle: 1, .didReceiveRemote, obstacle: nil),
                .run(handle: 1, remaining: 30_000, launches: false),
            ])
    }

    // MARK: As a value

    @Test func aMillionFitIntoMemory() {
        #expect(MemoryLayout<Phone>.stride <= 208)
        #expect(MemoryLayout<PhonePush>.stride <= 40)
    }

    /// A schedule of everything, from a seed: the same twice, and whatever happens the model
    /// keeps its own rules.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func randomSchedules(_ seed: UInt64) {
        var first = Schedule(seed: seed)
        var second = Schedule(seed: seed)
        for _ in 0..<2_000 {
            first.step()
            second.step()
            #expect(first.violation == nil)
            if first.violation != nil { return }
        }
        #expect(first.fixture.phone == second.fixture.phone)
        #expect(first.wakes > 0)
    }
}

/// Random doings on one phone, and what must hold after each.
struct Schedule {
    var fixture = PhoneFixture(in: .suspended)
    private(set) var violation: String?
    private(set) var wakes = 0
    private var seed: UInt64
    private var lastHandle: UInt64 = 0
    /// When the app was woken, within the last hour.
    private var recent: [Timestamp] = []
    /// Pushes with no end yet.
    private var open: Set<UInt64> = []

    init(seed: UInt64) {
        self.seed = seed
        fixture.rules = .everyday
        fixture.rules.screenMax = 5
    }

    /// SplitMix64.
    private mutating func chance() -> UInt64 {
        seed &+= 0x9E37_79B9_7F4A_7C15
        var value = (seed ^ (seed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func step() {
        fixture.now = fixture.now + chance() % 600_000
        fixture.events = []
        fixture.change { $0.expire(rules: $1, now: $2, into: &$3) }
        let choice = chance() % 20
        let isOn = chance() % 2 == 0
        switch choice {
        case 0: fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        case 1:
            fixture.change { $0.background(now: $2, runTime: $1.leaveTime, into: &$3) }
        case 2: fixture.change { phone, _, _, events in phone.forceQuit(into: &events) }
        case 3: fixture.change { phone, _, _, events in phone.kill(into: &events) }
        case 4: fixture.change { phone, _, _, events in phone.reboot(into: &events) }
        case 5: fixture.change { $0.setCoverage(isOn, rules: $1, now: $2, into: &$3) }
        case 6: fixture.change { $0.setLowPower(isOn, rules: $1, now: $2, into: &$3) }
        case 7:
            fixture.change { $0.setBackgroundRefresh(isOn, rules: $1, now: $2, into: &$3) }
        case 8: fixture.change { phone, _, _, events in phone.finished(into: &events) }
        default: push()
        }
        judge()
    }

    private mutating func push() {
        lastHandle += 1
        open.insert(lastHandle)
        let kinds = PushEffect.Kind.allCases
        let kind = kinds[Int(chance() % UInt64(kinds.count))]
        let priorities: [UInt8] = [1, 5, 10]
        let expires: [UInt64] = [0, .max, fixture.now.milliseconds + chance() % 3_600_000]
        fixture.push(
            PhonePush(
                kind, handle: lastHandle, identifier: chance() % 4,
                expires: expires[Int(chance() % 3)], badge: Int32(chance() % 3) - 1,
                priority: priorities[Int(chance() % 3)]), chance: chance())
    }

    private mutating func judge() {
        for event in fixture.events {
            switch event {
            case .received(let handle, _, _), .dropped(let handle, _): end(handle)
            case .stored(_, let replaced?): end(replaced)
            case .run:
                wakes += 1
                recent.append(fixture.now)
            default: break
            }
        }
        let phone = fixture.phone
        recent.removeAll { fixture.now.since($0) >= DeviceRules.hour }
        // Windows begin with their first wake, so two of them may touch.
        if recent.count > 6 { violation = "\(recent.count) wakes in an hour" }
        let kept = Set([phone.slot?.handle, phone.held?.handle].compactMap { $0 })
        if kept != open { violation = "open \(open), kept \(kept)" }
        if phone.screen.count > 5 { violation = "\(phone.screen.count) on the screen" }
        let named = phone.screen.map(\.identifier).filter { $0 != 0 }
        if Set(named).count != named.count { violation = "one identifier twice" }
        if (phone.runsUntil != nil) != (phone.state == .background) { violation = "run time" }
        if phone.state == .forceQuit, phone.held != nil { violation = "held at force-quit" }
        if let next = phone.nextDeadline, next <= fixture.now { violation = "overdue" }
    }

    private mutating func end(_ handle: UInt64) {
        if open.remove(handle) == nil { violation = "push \(handle) ended twice" }
    }
}

/// Background refresh: the system runs the app now and then, without a push.
struct BackgroundRefreshTests {
    @Test(arguments: [PushEffect.State.suspended, .notRunning])
    func itRunsAnAppThatSleeps(_ state: PushEffect.State) {
        var fixture = PhoneFixture(in: state)
        fixture.change { $0.refresh(rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .run(handle: 0, remaining: 30_000, launches: state == .notRunning)
            ])
        #expect(fixture.phone.state == .background)
        #expect(fixture.phone.runsUntil == fixture.now + 30_000)
    }

    @Test(arguments: [PushEffect.State.foreground, .background, .forceQuit, .rebooted])
    func itRunsNoOther(_ state: PushEffect.State) {
        var fixture = PhoneFixture(in: state)
        fixture.change { $0.refresh(rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken().isEmpty)
    }

    @Test func theUserMayForbidIt() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.change { $0.setBackgroundRefresh(false, rules: $1, now: $2, into: &$3) }
        fixture.change { $0.refresh(rules: $1, now: $2, into: &$3) }
        fixture.change { $0.setBackgroundRefresh(true, rules: $1, now: $2, into: &$3) }
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.change { $0.refresh(rules: $1, now: $2, into: &$3) }
        #expect(fixture.taken().isEmpty)
    }
}
