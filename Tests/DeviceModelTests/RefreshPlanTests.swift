import DeviceModel
import Model
import Testing

/// Background App Refresh: the app asks, the system plans.
struct RefreshPlanTests {
    private func plan(_ fixture: inout PhoneFixture, in delay: Milliseconds) -> Bool {
        fixture.phone.planRefresh(
            notBefore: fixture.now + delay, rules: fixture.rules, now: fixture.now)
    }

    private func pass(_ fixture: inout PhoneFixture, _ time: Milliseconds) -> [PhoneEvent] {
        fixture.now = fixture.now + time
        fixture.change { $0.expire(rules: $1, now: $2, into: &$3) }
        return fixture.taken()
    }

    private static let run = PhoneEvent.run(handle: 0, remaining: 30_000, launches: false)

    @Test func itComesOnceAndNotBeforeItsTime() {
        var fixture = PhoneFixture(in: .suspended)
        #expect(plan(&fixture, in: 60_000))
        #expect(fixture.phone.nextDeadline == fixture.now + 60_000)
        #expect(pass(&fixture, 59_999) == [])
        #expect(pass(&fixture, 1) == [Self.run])
        #expect(fixture.phone.state == .background)
        _ = pass(&fixture, 30_000)
        #expect(fixture.phone.nextDeadline == nil)
        #expect(pass(&fixture, DeviceRules.day) == [])
    }

    @Test func theNextOneHasItsDistance() {
        var fixture = PhoneFixture(in: .suspended)
        #expect(plan(&fixture, in: 0))
        #expect(pass(&fixture, 0) == [Self.run])
        #expect(plan(&fixture, in: 60_000))
        #expect(pass(&fixture, 30_000) == [.suspend])
        #expect(pass(&fixture, 869_999) == [])
        #expect(pass(&fixture, 1) == [Self.run])
    }

    @Test func anAppThatWasTakenOutOfMemoryIsLaunched() {
        var fixture = PhoneFixture(in: .notRunning)
        #expect(plan(&fixture, in: 0))
        #expect(
            pass(&fixture, 0) == [.run(handle: 0, remaining: 30_000, launches: true)])
    }

    enum Hindrance: CaseIterable, Sendable {
        case inFront, covered, running, noCoverage, lowPower, notOpenedForLong, restarted
    }

    @Test(arguments: Hindrance.allCases)
    func whatIsInTheWayPasses(_ hindrance: Hindrance) {
        var fixture = PhoneFixture(in: .suspended)
        #expect(plan(&fixture, in: 60_000))
        switch hindrance {
        case .inFront, .covered:
            fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
            if hindrance == .covered {
                fixture.change { phone, _, _, events in phone.cover(into: &events) }
            }
        case .running: fixture.push(PhoneFixture.silent(1))
        case .noCoverage:
            fixture.change { $0.setCoverage(false, rules: $1, now: $2, into: &$3) }
        case .lowPower: fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        case .notOpenedForLong: fixture.rules.forgottenAfter = 1_000
        case .restarted: fixture.change { phone, _, _, events in phone.reboot(into: &events) }
        }
        if hindrance == .running { fixture.rules.runTime = DeviceRules.day }
        if hindrance == .running { fixture.push(PhoneFixture.silent(2)) }
        _ = fixture.taken()
        #expect(pass(&fixture, 60_000) == [])
        let again = fixture.now + 900_000
        #expect(fixture.phone.refreshAt == again)
        // It goes, and what was asked for comes.
        fixture.rules.forgottenAfter = nil
        fixture.rules.runTime = DeviceRules.unlimited.runTime
        fixture.change { $0.setCoverage(true, rules: $1, now: $2, into: &$3) }
        fixture.change { $0.setLowPower(false, rules: $1, now: $2, into: &$3) }
        fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
        fixture.change { phone, _, _, events in phone.suspend(into: &events) }
        _ = fixture.taken()
        #expect(pass(&fixture, 900_000) == [Self.run])
    }

    @Test func aForceQuitEndsTheWishAndARestartDoesNot() {
        var fixture = PhoneFixture(in: .suspended)
        #expect(plan(&fixture, in: 60_000))
        fixture.change { phone, _, _, events in phone.reboot(into: &events) }
        #expect(fixture.phone.refreshAt != nil)
        fixture.change { phone, _, _, events in phone.forceQuit(into: &events) }
        #expect(fixture.phone.refreshAt == nil)
    }

    @Test func theUsersSwitchRefusesAndEndsIt() {
        var fixture = PhoneFixture(in: .suspended)
        #expect(plan(&fixture, in: 60_000))
        fixture.change { $0.setBackgroundRefresh(false, rules: $1, now: $2, into: &$3) }
        #expect(!plan(&fixture, in: 0))
        #expect(pass(&fixture, 60_000) == [])
        #expect(fixture.phone.refreshAt == nil)
    }
}
