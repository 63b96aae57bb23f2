import DeviceModel
import Model
import Testing

/// Taps on notifications: in every state the app comes to the front and hears of it once.
struct TapTests {
    @Test(arguments: [
        (PushEffect.State.foreground, PushEffect.Callback.didReceiveResponse),
        (.background, .didReceiveResponse), (.suspended, .didReceiveResponse),
        (.notRunning, .launchAndDidReceiveResponse), (.forceQuit, .launchAndDidReceiveResponse),
        (.rebooted, .launchAndDidReceiveResponse),
    ])
    func eachState(_ state: PushEffect.State, _ callback: PushEffect.Callback) {
        var fixture = PhoneFixture(in: .forceQuit)
        for handle in [7, 8] as [UInt64] {
            fixture.push(PhonePush(.alert, handle: handle, identifier: handle + 2))
        }
        // Into the state with both on the screen.
        switch state {
        case .forceQuit: break
        case .rebooted: fixture.change { phone, _, _, events in phone.reboot(into: &events) }
        default:
            fixture.change { $0.open(rules: $1, now: $2, into: &$3) }
            if state == .background {
                fixture.change { $0.background(now: $2, runTime: $1.leaveTime, into: &$3) }
            } else if state != .foreground {
                fixture.change { phone, _, _, events in phone.suspend(into: &events) }
            }
            if state == .notRunning {
                fixture.change { phone, _, _, events in phone.kill(into: &events) }
            }
        }
        #expect(fixture.phone.state == state)
        _ = fixture.taken()
        fixture.now = fixture.now + 5
        fixture.change { #expect($0.tap(handle: 7, rules: $1, now: $2, into: &$3)) }
        #expect(
            fixture.taken() == [
                .removed(handle: 7, identifier: 9), .enterForeground,
                .responded(handle: 7, .opened, callback),
            ])
        #expect(fixture.phone.state == .foreground)
        #expect(fixture.phone.openedAt == fixture.now)
        #expect(fixture.phone.screen.map(\.handle) == [8])
        // It is gone: a second tap meets nothing.
        fixture.change { #expect(!$0.tap(handle: 7, rules: $1, now: $2, into: &$3)) }
        #expect(fixture.taken() == [])
    }

    @Test func whatTheDeviceHeldComesAfterTheTap() {
        var fixture = PhoneFixture(in: .suspended)
        fixture.push(PhonePush(.alert, handle: 7, identifier: 9))
        fixture.change { $0.setLowPower(true, rules: $1, now: $2, into: &$3) }
        fixture.push(PhoneFixture.silent(8))
        _ = fixture.taken()
        fixture.change { _ = $0.tap(handle: 7, rules: $1, now: $2, into: &$3) }
        #expect(
            fixture.taken() == [
                .removed(handle: 7, identifier: 9), .enterForeground,
                .responded(handle: 7, .opened, .didReceiveResponse),
                .received(handle: 8, .didReceiveRemote, obstacle: nil), .notify(handle: 8),
            ])
    }
}
