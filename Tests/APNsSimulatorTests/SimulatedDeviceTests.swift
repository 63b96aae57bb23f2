import APNsSimulator
import DeviceModel
import Model
import RouseClient
import Synchronization
import Testing

struct SimulatedDeviceTests {
    let now = Timestamp(milliseconds: 1_700_000_000_000)

    func silent(_ id: String = "s", wake: String? = "w1") -> PushDelivery {
        PushDelivery(
            token: "ab", topic: "t", apnsID: id, pushType: "background", priority: 5,
            expiration: 0, content: PushContent(contentAvailable: true, wake: wake))
    }

    func alert(
        _ id: String, body: String = "Hi", badge: UInt64? = nil, collapse: String? = nil,
        expiration: UInt64? = nil
    ) -> PushDelivery {
        PushDelivery(
            token: "ab", topic: "t", apnsID: id, pushType: "alert", expiration: expiration,
            collapseID: collapse,
            content: PushContent(
                title: "Anna", body: body, badge: badge, contentAvailable: true, wake: "w2"))
    }

    func local(_ identifier: String, _ title: String) -> ScreenNotification {
        ScreenNotification(
            identifier: identifier, title: title, body: "x", threadID: nil, shownAtMs: 0,
            isLocal: true)
    }

    @Test func aSilentPushGivesASuspendedAppThirtySeconds() {
        var device = SimulatedDevice()
        let actions = device.push(silent(), now: now)
        #expect(
            actions == [
                .received(silent(), .didReceiveRemote),
                .run(wake: "w1", remainingMilliseconds: 30_000),
            ])
        #expect(device.state == .background)
        #expect(device.nextDeadline == now + 30_000)
        #expect(device.expire(now: now + 29_999) == [])
        #expect(device.expire(now: now + 30_000) == [.suspend])
        #expect(device.state == .suspended)
        #expect(device.nextDeadline == nil)
    }

    @Test func anAppThatHasFinishedSleepsAtOnce() {
        var device = SimulatedDevice()
        _ = device.push(silent(), now: now)
        #expect(device.finished(now: now + 100) == [.suspend])
        #expect(device.finished(now: now + 200) == [])
        _ = device.open(now: now + 300)
        #expect(device.finished(now: now + 400) == [])
        #expect(device.state == .foreground)
    }

    @Test func aForceQuitAppIsWokenByNothingAndShowsAlerts() {
        var device = SimulatedDevice()
        _ = device.open(now: now)
        #expect(device.forceQuit(now: now) == [.terminate])
        #expect(device.push(silent(), now: now) == [.received(silent(), .none)])
        let push = alert("a", badge: 3, collapse: "m1")
        let shown = ScreenNotification(
            identifier: "m1", title: "Anna", body: "Hi", threadID: nil,
            shownAtMs: now.milliseconds, isLocal: false)
        #expect(
            device.push(push, now: now) == [.received(push, .none), .badge(3), .shown(shown)])
        #expect(device.screen == [shown])
        #expect(device.badge == 3)
        #expect(device.state == .forceQuit)
        #expect(device.open(now: now) == [.enterForeground])
        #expect(device.state == .foreground)
        // Opening alone takes nothing off the screen.
        #expect(device.screen == [shown])
    }

    @Test func anAlertShowsAndWakesASuspendedApp() {
        var device = SimulatedDevice()
        let actions = device.push(alert("a"), now: now)
        #expect(actions.contains(.run(wake: "w2", remainingMilliseconds: 30_000)))
        #expect(device.screen.map(\.body) == ["Hi"])
    }

    @Test func anAppInFrontIsGivenTheAlertInstead() {
        var device = SimulatedDevice()
        _ = device.open(now: now)
        let push = alert("a", badge: 2, collapse: "m1")
        let asked = ScreenNotification(
            identifier: "m1", title: "Anna", body: "Hi", threadID: nil,
            shownAtMs: now.milliseconds, isLocal: false)
        #expect(
            device.push(push, now: now) == [
                .received(push, .willPresentAndDidReceiveRemote), .badge(2),
                .notify(wake: "w2", shows: asked),
            ])
        #expect(device.screen.isEmpty)
        // The app has answered that it is to be shown.
        #expect(device.present(asked, now: now) == [.shown(asked)])
        #expect(device.screen == [asked])
        _ = device.suspend(now: now)
        #expect(device.present(asked, now: now) == [])
        // A silent push shows nothing.
        _ = device.open(now: now)
        #expect(device.push(silent(), now: now).last == .notify(wake: "w1"))
    }

    /// As the server's are: with a sound, and through the extension.
    func sounding(_ id: String, isMutable: Bool = true) -> PushDelivery {
        var push = alert(id, collapse: "m1")
        push.content.mutableContent = isMutable
        push.content.payload = Array(
            #"{"aps":{"alert":"Hi","sound":"default"},"rouse":{"o":"m1"}}"#.utf8)
        return push
    }

    @Test func whatStandsAlreadyIsReplacedWithoutASound() {
        func sounds(_ actions: [DeviceAction]) -> [String?] {
            actions.compactMap { action in
                guard case .shown(let shown) = action else { return nil }
                return shown.look.sound?.name ?? "none"
            }
        }
        var device = SimulatedDevice()
        device.hasExtension = true
        #expect(sounds(device.push(sounding("a"), now: now)) == ["default"])
        #expect(sounds(device.push(sounding("b"), now: now)) == ["none"])
        #expect(device.screen.count == 1)
        #expect(device.screen.first?.look.interruptionLevel == "passive")
        #expect(device.screen.first?.look.userInfo == #"{"rouse":{"o":"m1","q":true}}"#)
        // Without the payload's leave the extension is not asked.
        #expect(sounds(device.push(sounding("c", isMutable: false), now: now)) == ["default"])
        // What the person has done with is told anew.
        _ = device.respond(.dismissed(isTold: false), to: "m1", now: now)
        #expect(sounds(device.push(sounding("d"), now: now)) == ["default"])
        // The app's own counts as much.
        var own = SimulatedDevice()
        own.hasExtension = true
        _ = own.push(silent(), now: now)
        _ = own.showLocal(local("m1", "Anna"), now: now)
        #expect(sounds(own.push(sounding("e"), now: now)) == ["none"])
        // With a file that it shares with the app, what was put aside is none that is told anew.
        let told = Told()
        own.told = told
        var other = sounding("g")
        other.collapseID = "m2"
        #expect(sounds(own.push(other, now: now)) == ["default"])
        _ = own.respond(.dismissed(isTold: false), to: "m2", now: now)
        #expect(sounds(own.push(other, now: now)) == ["none"])
        own.hasExtension = false
        #expect(sounds(own.push(sounding("f"), now: now)) == ["default"])
    }

    private final class Told: ToldRecord {
        private let identifiers = Mutex<Set<String>>([])

        func contains(_ identifier: String) -> Bool {
            identifiers.withLock { $0.contains(identifier) }
        }

        func note(_ identifier: String) { identifiers.withLock { _ = $0.insert(identifier) } }
    }

    @Test func theSameCollapseIDReplaces() {
        var device = SimulatedDevice()
        _ = device.push(alert("a", body: "one", collapse: "m1"), now: now)
        _ = device.push(alert("b", body: "two", collapse: "m2"), now: now)
        _ = device.push(alert("c", body: "three", collapse: "m1"), now: now)
        #expect(device.screen.map(\.body) == ["two", "three"])
        // Without one each stands alone.
        _ = device.push(alert("d", body: "four"), now: now)
        _ = device.push(alert("e", body: "five"), now: now)
        #expect(device.screen.count == 4)
    }

    @Test func badgeZeroClearsTheScreenOnce() {
        var device = SimulatedDevice()
        _ = device.push(alert("a", badge: 2, collapse: "m1"), now: now)
        var clear = alert("b", expiration: 0)
        clear.content = PushContent(badge: 0)
        #expect(device.push(clear, now: now) == [.received(clear, .none), .badge(0), .cleared])
        #expect(device.screen.isEmpty)
        // Already 0: what the app showed itself stays.
        _ = device.open(now: now)
        _ = device.showLocal(local("l", ""), now: now)
        _ = device.suspend(now: now)
        #expect(device.push(clear, now: now) == [.received(clear, .none)])
        #expect(device.screen.count == 1)
    }

    @Test func aLocalNotificationReplacesTheRemoteOneAndCanBeRemoved() {
        var device = SimulatedDevice()
        _ = device.push(alert("a", collapse: "m1"), now: now)
        _ = device.showLocal(local("m1", "Anna"), now: now)
        #expect(device.screen.map(\.isLocal) == [true])
        #expect(device.remove(identifier: "m1", now: now) == [.removed(identifier: "m1")])
        #expect(device.remove(identifier: "m1", now: now) == [])
    }

    @Test func oneSlotWithoutCoverage() {
        var device = SimulatedDevice()
        #expect(device.setCoverage(false, now: now) == [.networkChanged(isUp: false)])
        #expect(device.setCoverage(false, now: now) == [])
        #expect(device.push(silent(), now: now) == [.dropped(silent(), .notStored)])
        let first = alert("a", collapse: "m1")
        let second = alert("b", collapse: "m2", expiration: now.milliseconds / 1_000 + 60)
        #expect(device.push(first, now: now) == [.stored(first, replaced: nil)])
        #expect(device.push(second, now: now) == [.stored(second, replaced: "a")])
        #expect(device.screen.isEmpty)
        let actions = device.setCoverage(true, now: now + 1_000)
        #expect(actions.first == .networkChanged(isUp: true))
        #expect(actions.contains(.received(second, .didReceiveRemote)))
        #expect(device.screen.map(\.identifier) == ["m2"])
        #expect(device.slot == nil)
    }

    @Test func aStoredPushExpires() {
        var device = SimulatedDevice()
        _ = device.setCoverage(false, now: now)
        let push = alert("a", expiration: now.milliseconds / 1_000 + 60)
        _ = device.push(push, now: now)
        #expect(device.nextDeadline == now + 60_000)
        #expect(device.expire(now: now + 59_999) == [])
        #expect(device.expire(now: now + 60_000) == [.dropped(push, .expired)])
        // The slot's time can pass unseen, too.
        let other = alert("b", expiration: now.milliseconds / 1_000 + 100)
        _ = device.push(other, now: now + 60_000)
        #expect(
            device.setCoverage(true, now: now + 100_000) == [
                .networkChanged(isUp: true), .dropped(other, .expired),
            ])
    }

    @Test func expirationInThePastIsNotStored() {
        var device = SimulatedDevice()
        _ = device.setCoverage(false, now: now)
        let push = alert("a", expiration: 5)
        #expect(device.push(push, now: now) == [.dropped(push, .expired)])
        let far = alert("b", expiration: .max)
        #expect(device.push(far, now: now) == [.stored(far, replaced: nil)])
    }

    @Test func theAppCannotNameWhatHasNoCollapseID() {
        var device = SimulatedDevice()
        _ = device.push(alert("a"), now: now)
        _ = device.push(alert("b", collapse: "m2"), now: now)
        #expect(device.screen.map(\.identifier) == ["unnamed-1", "m2"])
        #expect(device.remove(identifier: "unnamed-1", now: now) == [])
        #expect(device.remove(identifier: "m2", now: now) == [.removed(identifier: "m2")])
        #expect(device.screen.map(\.identifier) == ["unnamed-1"])
    }

    @Test func whatTheDeviceKeepsIsRememberedWhole() {
        var device = SimulatedDevice(rules: .unlimited)
        _ = device.setLowPower(true, now: now)
        #expect(device.push(silent(), now: now) == [.held(silent(), .lowPower)])
        #expect(device.held == silent())
        #expect(
            device.setLowPower(false, now: now) == [
                .received(silent(), .didReceiveRemote),
                .run(wake: "w1", remainingMilliseconds: 30_000),
            ])
        #expect(device.held == nil)
    }

    @Test func kindsOfPush() {
        func kind(_ type: String, _ content: PushContent) -> PushEffect.Kind {
            PushEffect.kind(
                of: PushDelivery(
                    token: "ab", topic: "t", apnsID: "i", pushType: type, content: content))
        }
        #expect(kind("background", PushContent(contentAvailable: true)) == .silent)
        #expect(kind("background", PushContent(badge: 1)) == .nothing)
        #expect(kind("alert", PushContent(contentAvailable: true)) == .nothing)
        #expect(kind("alert", PushContent(body: "x")) == .alert)
        #expect(kind("alert", PushContent(body: "x", contentAvailable: true)) == .alertWithContent)
        #expect(kind("alert", PushContent(badge: 0)) == .badge)
        #expect(kind("alert", PushContent(badge: 0, contentAvailable: true)) == .badgeWithContent)
    }

    @Test func leavingTheAppGivesItAShortTime() {
        var device = SimulatedDevice()
        #expect(device.background(now: now) == [])
        _ = device.open(now: now)
        #expect(device.background(now: now) == [.enterBackground(remainingMilliseconds: 5_000)])
        #expect(device.expire(now: now + 5_000) == [.suspend])
    }

    @Test func theScreenIsBounded() {
        var device = SimulatedDevice()
        _ = device.forceQuit(now: now)
        for number in 0..<501 {
            _ = device.push(alert("\(number)", collapse: "m\(number)"), now: now)
        }
        #expect(device.screen.count == 500)
        #expect(device.screen.first?.identifier == "m1")
    }
}
