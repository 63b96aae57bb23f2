import APNsSimulator
import EventLoop
import Foundation
import Model
import Testing

/// An app that applies a long row of messages, some in each turn of the loop, as fast as it may.
/// Used on the simulator's thread.
final class TalkativeApp: DeviceApp {
    static let conversation = "00000000-0000-0000-0000-0000000000cc"
    let loop: Loop
    let hooks: DeviceAppHooks
    let count: UInt64
    let obeysHold: Bool
    /// Arrives when it is held for the first time, and when everything is told.
    let pause: Latch
    let end: Latch
    private var told: UInt64 = 0
    private var isHeld = false
    private var wasHeld = false
    private var isMoving = false
    private var isEnded = false

    init(
        loop: Loop, hooks: DeviceAppHooks, count: UInt64, obeysHold: Bool, pause: Latch, end: Latch
    ) {
        self.loop = loop
        self.hooks = hooks
        self.count = count
        self.obeysHold = obeysHold
        self.pause = pause
        self.end = end
    }

    func enterForeground() { move() }
    func tapped(_ notification: ScreenNotification) {}

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld && obeysHold
        if isHeld, !wasHeld {
            wasHeld = true
            pause.arrive()
        }
        move()
    }

    private func move() {
        guard !isHeld, !isMoving, told < count else { return }
        isMoving = true
        loop.nextTurn { [self] in
            isMoving = false
            guard !isEnded else { return }
            for _ in 0..<10 where told < count && !isHeld { tell() }
            if told == count {
                if !wasHeld { pause.arrive() }
                end.arrive()
            }
            move()
        }
    }

    private func tell() {
        told += 1
        var event = SimulatorEvent(.applied)
        event.messages = [
            SimulatorEvent.AppliedMessage(
                conversation: Self.conversation,
                message: MessageID(high: 7, low: told).description, position: told, seq: told,
                sender: String(repeating: "x", count: 1_000), alerted: false)
        ]
        hooks.tell(event)
        hooks.tell(SimulatorEvent(.synced))
    }

    func run(wake: WakeID?, remainingMilliseconds: Milliseconds) {}
    func notify(wake: WakeID?) {}
    func enterBackground(remainingMilliseconds: Milliseconds) {}
    func suspend() {}
    func terminate() { isEnded = true }
    func networkChanged(isUp: Bool) {}
    func createConversation(_ conversation: ConversationID, participants: [String]) {}
    func addParticipants(_ users: [String], to conversation: ConversationID) {}
    func send(
        _ text: String, title: String?, as message: MessageID, to conversation: ConversationID
    ) {}
    func read(_ conversation: ConversationID, through position: UInt64) {}
    func read(_ conversation: ConversationID, only position: UInt64) {}
    func change(_ change: AppChange) {}
    func forget() {}
    var status: DeviceAppStatus { DeviceAppStatus() }
    func checkDigest() {}
    func messages(
        _ conversation: ConversationID, above position: UInt64, limit: Int
    ) -> [StoredMessage] { [] }
}

struct SubscriptionTests {
    /// Far more than socket and log hold together.
    static let count: UInt64 = 6_000

    /// A simulator with a short log and one talkative app, and a subscriber that has not read yet.
    struct Scene {
        let harness: SimulatorHarness
        let reader: SimulatorClient
        let pause = Latch()
        let end = Latch()

        init(
            obeysHold: Bool = true, isLossless: Bool = true, patience: UInt64 = 60_000
        ) throws {
            harness = try SimulatorHarness {
                $0.logLimit = 256
                $0.subscriberPatience = patience
            }
            reader = try SimulatorClient(path: harness.directory + "/control")
            try reader.subscribe(kinds: [.applied], isLossless: isLossless)
            let (pause, end) = (pause, end)
            harness.onSimulator { simulator in
                _ = try? simulator.addDevice(
                    "phone", topic: CheckFixture.topic, environment: .production
                ) { _, hooks in
                    TalkativeApp(
                        loop: simulator.loop, hooks: hooks, count: SubscriptionTests.count,
                        obeysHold: obeysHold, pause: pause, end: end)
                }
            }
            try harness.client.call(ControlRequest(.deviceOpen, device: "phone"))
        }

        /// Positions of the messages told, up to the last one or the stream's end.
        func positions() throws -> [UInt64] {
            var positions: [UInt64] = []
            var lost: UInt64 = 0
            while positions.last != SubscriptionTests.count, let told = next() {
                lost += told.lost
                positions += told.event.messages?.map(\.position) ?? []
            }
            #expect(lost == 0)
            return positions
        }

        private func next() -> (event: SimulatorEvent, lost: UInt64)? {
            (try? reader.event(timeoutMilliseconds: 10_000)) ?? nil
        }
    }

    @Test func devicesWaitForASlowReaderThatIsToMissNothing() throws {
        let scene = try Scene()
        // It reads only when the devices wait for it, or when it is too late.
        scene.pause.wait()
        #expect(try scene.positions() == Array(1...Self.count))
    }

    @Test func otherReadersMissWhatTheLogNoLongerHolds() throws {
        let scene = try Scene(isLossless: false)
        scene.end.wait()
        var lost: UInt64 = 0
        var seen: UInt64 = 0
        while let told = try scene.reader.event(timeoutMilliseconds: 10_000) {
            lost += told.lost
            seen += 1
            if told.event.messages?.last?.position == Self.count { break }
        }
        #expect(lost > 0 && seen < Self.count)
    }

    @Test func aStreamThatCannotBeWholeEnds() throws {
        let scene = try Scene(obeysHold: false)
        scene.end.wait()
        let positions = try scene.positions()
        #expect(positions.count < Self.count && !positions.isEmpty)
        #expect(positions == Array(1...UInt64(positions.count)))
    }

    @Test func nobodyWaitsForEverForAReader() throws {
        let scene = try Scene(patience: 50)
        // Only the end of the subscription lets the app come to its end.
        scene.end.wait()
        #expect(try scene.positions().count < Self.count)
        #expect(try scene.harness.client.call(ControlRequest(.devices)).devices == ["phone"])
    }

    @Test func aSubscriberGetsOnlyTheKindsItWants() throws {
        let harness = try SimulatorHarness()
        _ = try harness.device("phone")
        let reader = try SimulatorClient(path: harness.directory + "/control")
        try reader.subscribe(kinds: [.coverage])
        try harness.client.call(ControlRequest(.deviceOpen, device: "phone"))
        var request = ControlRequest(.deviceCoverage, device: "phone")
        for isOn in [false, true] {
            request.on = isOn
            try harness.client.call(request)
            try harness.client.call(ControlRequest(.deviceSuspend, device: "phone"))
        }
        #expect(try reader.event(timeoutMilliseconds: 10_000)?.event.state == "off")
        #expect(try reader.event(timeoutMilliseconds: 10_000)?.event.state == "on")
        let counts = try harness.client.call(ControlRequest(.counts)).counts
        #expect(counts?["coverage"] == 2 && counts?["state"] == 2)
    }

    @Test func manyDeliveriesComeOnOneLine() throws {
        let scene = try Scene(isLossless: false)
        scene.end.wait()
        let reader = try SimulatorClient(path: scene.harness.directory + "/control")
        let answer = try reader.exchange(
            line: #"{"cmd":"events","kinds":["applied"],"compact":true}"#)
        #expect(answer.contains(#""ok":true"#))
        var rows: [AppliedBatch.Row] = []
        var lines = 0
        while rows.last?.position != Self.count {
            let line = try #require(try reader.nextLine(timeoutMilliseconds: 10_000))
            let response = try JSONDecoder().decode(ControlResponse.self, from: Data(line.utf8))
            let batch = try #require(response.applied)
            #expect(batch.conversation == TalkativeApp.conversation)
            rows += try #require(batch.rows)
            lines += 1
        }
        let first = try #require(rows.first)
        #expect(rows.map(\.position) == Array(first.position...Self.count))
        #expect(rows.allSatisfy { $0.device == "phone" && $0.uptime > 0 })
        #expect(first.message == MessageID(high: 7, low: first.position).description)
        #expect(lines < rows.count)
    }
}
