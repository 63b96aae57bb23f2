import APNsSimulator
import Crypto
import DeviceModel
import Testing

/// The device model behind the control API and real pushes.
struct DeviceControlTests {
    let harness: SimulatorHarness
    let token: String
    let provider: Provider

    init() throws {
        harness = try SimulatorHarness()
        token = try harness.device("phone")
        provider = try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
    }

    func silent() throws {
        try provider.answer(
            try provider.push(to: token, authorization: harness.providerToken))
    }

    @discardableResult
    func call(
        _ command: ControlRequest.Command, _ change: (inout ControlRequest) -> Void = { _ in }
    ) throws -> ControlResponse {
        var request = ControlRequest(command, device: "phone")
        change(&request)
        return try harness.client.call(request)
    }

    @Test func aHeldPushComesWhenLowPowerEnds() throws {
        try call(.deviceLowPower) { $0.on = true }
        try silent()
        let held = try harness.event { $0.kind == .held }
        #expect(held?.obstacle == .lowPower)
        let status = try call(.deviceStatus).status
        #expect(status?.held == true)
        #expect(status?.lowPower == true)
        try call(.deviceLowPower) { $0.on = false }
        let received = try harness.event { $0.kind == .received }
        #expect(received?.apnsId == held?.apnsId)
        #expect(received?.callback == PushEffect.Callback.didReceiveRemote.rawValue)
    }

    @Test func theHoursBudgetComesBackWithTheClock() throws {
        try call(.deviceRules) {
            $0.rules = DeviceRules()
            $0.rules?.silentPerHour = 1
        }
        try silent()
        _ = try harness.event { $0.kind == .wake }
        try call(.deviceSuspend)
        try silent()
        let held = try harness.event { $0.kind == .held }
        #expect(held?.obstacle == .hourSpent)
        let response = try call(.clock) { $0.advanceMs = 3_600_000 }
        #expect(response.now != nil)
        let wake = try harness.event(after: held?.n ?? 0) { $0.kind == .wake }
        #expect(wake != nil)
    }

    @Test func aKilledAppIsLaunchedAndARebootForgetsTheForceQuit() throws {
        try call(.deviceKill)
        try silent()
        let launched = try harness.event { $0.kind == .received }
        #expect(launched?.callback == PushEffect.Callback.launchAndDidReceiveRemote.rawValue)
        try call(.deviceForceQuit)
        try silent()
        let ignored = try harness.event(after: launched?.n ?? 0) { $0.kind == .received }
        #expect(ignored?.callback == PushEffect.Callback.none.rawValue)
        try call(.deviceReboot)
        #expect(try call(.deviceStatus).status?.state == .rebooted)
        try silent()
        let woken = try harness.event(after: ignored?.n ?? 0) { $0.kind == .received }
        #expect(woken?.callback == PushEffect.Callback.launchAndDidReceiveRemote.rawValue)
    }

    @Test func switchesThatDrop() throws {
        try call(.deviceRefresh) { $0.on = false }
        try silent()
        let dropped = try harness.event { $0.kind == .dropped }
        #expect(dropped?.reason == PhoneEvent.Loss.disallowed.rawValue)
        try call(.deviceAlerts) { $0.on = false }
        try provider.answer(
            try provider.push(
                to: token, authorization: harness.providerToken,
                headers: [("apns-push-type", "alert"), ("apns-priority", "10")],
                body: #"{"aps":{"alert":"Hi"}}"#))
        _ = try harness.event { $0.kind == .received }
        let status = try call(.deviceStatus).status
        #expect(status?.shown == 0)
        #expect(status?.alertsAllowed == false)
        #expect(status?.backgroundRefresh == false)
    }

    private func alert(_ id: String) throws {
        try provider.answer(
            try provider.push(
                to: token, authorization: harness.providerToken,
                headers: [
                    ("apns-push-type", "alert"), ("apns-priority", "10"), ("apns-collapse-id", id),
                ],
                body: #"{"aps":{"alert":"Hi"},"rouse":{"o":"\#(id)"}}"#))
    }

    @Test func buttonsAndDismissalsAreToldToTheApp() throws {
        for id in ["a", "b", "c", "d"] { try alert(id) }
        try call(.deviceForceQuit)
        func respond(
            _ command: ControlRequest.Command, _ id: String,
            _ change: (inout ControlRequest) -> Void
        ) throws {
            try call(command) {
                $0.identifier = id
                change(&$0)
            }
        }
        try respond(.deviceTap, "a") { $0.action = "REPLY" }
        let acted = try #require(try harness.event { $0.kind == .acted })
        #expect(acted.action == "REPLY" && acted.identifier == "a")
        #expect(
            acted.calls == [
                "application(_:didFinishLaunchingWithOptions:)",
                "userNotificationCenter(_:didReceive:withCompletionHandler:)",
            ])
        #expect(try call(.deviceStatus).status?.state == .background)
        try respond(.deviceDismiss, "b") { $0.on = true }
        #expect(try harness.event { $0.kind == .dismissed }?.identifier == "b")
        try call(.deviceSuspend)
        try respond(.deviceDismiss, "c") { _ in }
        #expect(try call(.deviceStatus).status?.state == .suspended)
        try respond(.deviceTap, "d") {
            $0.action = "OPEN"
            $0.foreground = true
        }
        #expect(try call(.deviceStatus).status?.state == .foreground)
        #expect(try call(.deviceScreen).screen == [])
        #expect(throws: SimulatorClientError.self) { try respond(.deviceTap, "d") { _ in } }
    }

    @Test func aPushIsShownAsItCame() throws {
        try alert("a")
        let received = try harness.event { $0.kind == .received }
        #expect(received?.payload == #"{"aps":{"alert":"Hi"},"rouse":{"o":"a"}}"#)
        #expect(received?.userInfo == #"{"rouse":{"o":"a"}}"#)
        #expect(received?.calls == [])
        try call(.deviceOpen)
        try call(.deviceCover)
        #expect(try call(.deviceStatus).status?.state == .inactive)
        try silent()
        let told = try harness.event { $0.kind == .received && $0.apnsId != received?.apnsId }
        #expect(
            told?.calls == ["application(_:didReceiveRemoteNotification:fetchCompletionHandler:)"])
    }

    @Test func aRestartedPhoneIsLockedUntilItIsUnlocked() throws {
        try call(.deviceReboot) { $0.locked = true }
        #expect(try call(.deviceStatus).status?.locked == true)
        try call(.deviceUnlock)
        #expect(try call(.deviceStatus).status?.locked == false)
        try call(.deviceRules) {
            $0.rules = DeviceRules()
            $0.rules?.wakesAfterRestart = false
        }
        try silent()
        #expect(try harness.event { $0.kind == .dropped } != nil)
    }

    @Test func aBackgroundRefreshIsPlanned() throws {
        try call(.devicePlanRefresh) { $0.delayMs = 60_000 }
        #expect(try call(.deviceStatus).status?.refreshAt != nil)
        try call(.clock) { $0.advanceMs = 60_000 }
        #expect(try harness.event { $0.kind == .wake } != nil)
        try call(.deviceRefresh) { $0.on = false }
        #expect(throws: SimulatorClientError.self) { try call(.devicePlanRefresh) }
    }
}
