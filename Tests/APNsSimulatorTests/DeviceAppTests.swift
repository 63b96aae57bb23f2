import APNsSimulator
import Crypto
import EventLoop
import Foundation
import Model
import Testing

/// What an app was told, as text. Used on the simulator's thread, read after `onSimulator`.
final class RecordingApp: DeviceApp {
    let record: (String) -> Void
    let hooks: DeviceAppHooks

    init(hooks: DeviceAppHooks, record: @escaping (String) -> Void) {
        self.hooks = hooks
        self.record = record
    }

    func run(wake: WakeID?, remainingMilliseconds: Milliseconds) {
        record("run \(wake.map { $0.description } ?? "-") \(remainingMilliseconds)")
        // It has nothing to do.
        hooks.finished()
    }
    func notify(wake: WakeID?) { record("notify \(wake.map { $0.description } ?? "-")") }
    func enterForeground() { record("foreground") }
    func tapped(_ notification: ScreenNotification) { record("tapped \(notification.identifier)") }
    func enterBackground(remainingMilliseconds: Milliseconds) {
        record("background \(remainingMilliseconds)")
    }
    func suspend() { record("suspend") }
    func terminate() { record("terminate") }
    func networkChanged(isUp: Bool) { record("network \(isUp)") }
    func hold(_ isHeld: Bool) { record("hold \(isHeld)") }
    func createConversation(_ conversation: ConversationID, participants: [String]) {}
    func addParticipants(_ users: [String], to conversation: ConversationID) {}
    func send(
        _ text: String, title: String?, as message: MessageID, to conversation: ConversationID
    ) throws(DeviceAppError) {
        record("send \(text)")
        if text == "no" { throw DeviceAppError("the app says no") }
    }
    func read(_ conversation: ConversationID, through position: UInt64) {
        record("read \(position)")
    }
    func read(_ conversation: ConversationID, only position: UInt64) {
        record("read only \(position)")
    }
    func change(_ change: AppChange) { record("change \(change)") }
    func forget() { record("forget") }
    var status: DeviceAppStatus { DeviceAppStatus() }
    func checkDigest() { record("digest") }
    func messages(
        _ conversation: ConversationID, above position: UInt64, limit: Int
    ) -> [StoredMessage] { [] }
}

/// Texts from one thread for another.
final class Transcript: @unchecked Sendable {
    // @unchecked: `lines` is only touched while holding `lock`.
    private let lock = Lock()
    private var lines: [String] = []

    func add(_ line: String) { lock.withLock { lines.append(line) } }
    var all: [String] { lock.withLock { lines } }
}

struct DeviceAppTests {
    static let wake = "00000000-0000-0000-0000-0000000000ff"

    func addDevice(_ harness: SimulatorHarness, _ transcript: Transcript) throws -> String {
        let token = Transcript()
        harness.onSimulator { simulator in
            let made = try? simulator.addDevice(
                "phone", topic: CheckFixture.topic, environment: .production
            ) { _, hooks in
                RecordingApp(hooks: hooks) { transcript.add($0) }
            }
            token.add(made ?? "")
        }
        return try #require(token.all.first)
    }

    @Test func aSilentPushRunsTheAppAndItsEndSuspendsIt() throws {
        let harness = try SimulatorHarness()
        let transcript = Transcript()
        let token = try addDevice(harness, transcript)
        let provider = try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
        let body = #"{"aps":{"content-available":1},"rouse":{"w":"\#(Self.wake)"}}"#
        let authorization = harness.providerToken
        try provider.answer(
            try provider.push(to: token, authorization: authorization, body: body))
        #expect(try harness.event { $0.state == "suspended" } != nil)
        #expect(transcript.all == ["run \(Self.wake) 30000", "suspend"])
        let wakes = try harness.event { $0.kind == .wake }
        #expect(wakes?.wake == Self.wake)

        try harness.client.call(ControlRequest(.deviceForceQuit, device: "phone"))
        try provider.answer(
            try provider.push(to: token, authorization: authorization, body: body))
        let received = try harness.event { $0.kind == .received && $0.state == "force_quit" }
        #expect(received?.callback == "none")
        #expect(transcript.all == ["run \(Self.wake) 30000", "suspend", "terminate"])
    }

    @Test func whatIsKilledInTheMiddleOfAPushDoesNotRunAfterwards() throws {
        let harness = try SimulatorHarness()
        let transcript = Transcript()
        let token = try addDevice(harness, transcript)
        let provider = try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
        var kill = ControlRequest(.deviceKill, device: "phone")
        kill.at = .shown
        try harness.client.call(kill)
        let body =
            #"{"aps":{"content-available":1,"alert":{"body":"Hello"}},"#
            + #""rouse":{"w":"\#(Self.wake)"}}"#
        try provider.answer(
            try provider.push(
                to: token, authorization: harness.providerToken,
                headers: [("apns-push-type", "alert"), ("apns-priority", "10")], body: body))
        #expect(try harness.event { $0.state == "not_running" && $0.kind == .state } != nil)
        #expect(transcript.all == ["run \(Self.wake) 30000", "suspend", "terminate"])
    }

    @Test func aTapOpensTheAppWithItsNotification() throws {
        let harness = try SimulatorHarness()
        let transcript = Transcript()
        let token = try addDevice(harness, transcript)
        let provider = try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
        try harness.client.call(ControlRequest(.deviceForceQuit, device: "phone"))
        try provider.answer(
            try provider.push(
                to: token, authorization: harness.providerToken,
                headers: [
                    ("apns-push-type", "alert"), ("apns-priority", "10"),
                    ("apns-collapse-id", "m1"),
                ],
                body: #"{"aps":{"alert":"Hi"},"rouse":{"t":"order","w":"x"},"shop":7}"#))
        #expect(try harness.event { $0.kind == .shown } != nil)
        var tap = ControlRequest(.deviceTap, device: "phone")
        tap.identifier = "m2"
        #expect(throws: SimulatorClientError.self) { try harness.client.call(tap) }
        tap.identifier = "m1"
        try harness.client.call(tap)
        let tapped = try harness.event { $0.kind == .tapped }
        #expect(tapped?.callback == "launchAndDidReceiveResponse")
        #expect(tapped?.userInfo == #"{"rouse":{"t":"order"},"shop":7}"#)
        #expect(transcript.all == ["terminate", "foreground", "tapped m1"])
        #expect(try harness.event { $0.kind == .removed && $0.identifier == "m1" } != nil)
        // It has gone from the screen.
        #expect(throws: SimulatorClientError.self) { try harness.client.call(tap) }
        var read = ControlRequest(.deviceRead, device: "phone")
        read.conversation = Self.wake
        read.position = 5
        try harness.client.call(read)
        #expect(transcript.all.last == "read only 5")
    }

    @Test func theUsersDoingsReachTheApp() throws {
        let harness = try SimulatorHarness()
        let transcript = Transcript()
        let token = try addDevice(harness, transcript)
        func call(_ command: ControlRequest.Command) throws {
            try harness.client.call(ControlRequest(command, device: "phone"))
        }
        try call(.deviceOpen)
        let provider = try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
        try provider.answer(
            try provider.push(to: token, authorization: harness.providerToken))
        #expect(try harness.event { $0.kind == .received } != nil)
        try call(.deviceBackground)
        try call(.deviceSuspend)
        var coverage = ControlRequest(.deviceCoverage, device: "phone")
        coverage.on = false
        try harness.client.call(coverage)
        var send = ControlRequest(.deviceSend, device: "phone")
        send.conversation = Self.wake
        send.text = "hello"
        #expect(try harness.client.call(send).message != nil)
        send.text = "no"
        #expect(throws: SimulatorClientError.refused("the app says no")) {
            try harness.client.call(send)
        }
        send.conversation = "nonsense"
        #expect(throws: SimulatorClientError.refused("`conversation` is no UUID")) {
            try harness.client.call(send)
        }
        #expect(
            transcript.all == [
                "foreground", "notify -", "background 5000", "suspend", "network false",
                "send hello", "send no",
            ])
    }

    @Test func appsWithAClientNeedTheirSettings() throws {
        let harness = try SimulatorHarness()
        var request = ControlRequest(.deviceCreate, device: "phone")
        request.topic = CheckFixture.topic
        request.user = "anna"
        request.app = "demo"
        request.host = "127.0.0.1"
        #expect(throws: SimulatorClientError.refused("`port` is missing")) {
            try harness.client.call(request)
        }
        request.port = 1
        request.trust = "/nonexistent/ca.pem"
        #expect(throws: SimulatorClientError.refused("cannot read /nonexistent/ca.pem")) {
            try harness.client.call(request)
        }
        let trust = URL(fileURLWithPath: harness.directory).appendingPathComponent("ca.pem")
        let authority = try #require(SimulatorHarness.certificates).authorityPEM
        try Data(authority.utf8).write(to: trust)
        request.trust = trust.path
        #expect(throws: SimulatorClientError.refused("`issuerKid` is missing")) {
            try harness.client.call(request)
        }
        let form = "`identityURL` must be like http://127.0.0.1:8700/identity"
        for text in ["", "127.0.0.1:8700", "https://localhost/identity", "http://a:99999/"] {
            request.identityURL = text
            #expect(throws: SimulatorClientError.refused(form), "\(text)") {
                try harness.client.call(request)
            }
        }
        request.identityURL = "http://127.0.0.1:1/identity"
        request.issuerKey = "issuer.pem"
        let both = "`identityURL` and `issuerKey` are two ways to a token"
        #expect(throws: SimulatorClientError.refused(both)) {
            try harness.client.call(request)
        }
        #expect(try harness.client.call(ControlRequest(.devices)).devices == [])
    }
}
