import DeviceModel
import Feed
import Model
import Testing
import Wake
import Wire

@testable import Fleet

/// The policy lab keeps rows in arrays where the server keeps them in a store. On one and the
/// same life both must send the same pushes at the same time.
@Suite struct FleetAgreementTests {
    /// A push as both can tell it.
    struct Sent: Equatable, CustomStringConvertible {
        /// Since the beginning.
        let at: Milliseconds
        let device: Int
        let kind: PushKind
        /// The position of the message it is of; 0: none.
        let message: UInt64
        let badge: UInt64?
        let isStored: Bool

        var description: String {
            let time = Double(at) / 1_000
            return "\(time) s, device \(device): \(kind) of \(message), "
                + "badge \(badge.map { "\($0)" } ?? "-")" + (isStored ? ", stored" : "")
        }
    }

    /// Whole seconds everywhere: HELLO takes 2 s and an ACK 1 s.
    static let model: FleetModel = {
        var model = FleetModel()
        model.groupedShare = 0
        model.silentSecondsSigma = 0
        model.alertSecondsSigma = 0
        model.helloSecondsSigma = 0
        model.helloFails = 0
        model.syncSecondsMedian = 1
        model.syncSecondsSigma = 0
        return model
    }()
    static let seconds: UInt64 = 2_400

    /// A phone whose app nothing starts but its user, now and then.
    struct Script {
        var messages: [(second: UInt64, conversation: UInt64)] = []
        var visits: [(from: UInt64, to: UInt64)] = []

        init(seed: UInt64) {
            var draws = Draws(seed, 99)
            var second: UInt64 = 10
            while second < FleetAgreementTests.seconds {
                second += 1 + UInt64(draws.exponential(mean: draws.isTrue(0.6) ? 8 : 150))
                messages.append((second, 1 + draws.number() % 3))
            }
            var from: UInt64 = 0
            while true {
                from += 200 + UInt64(draws.exponential(mean: 500))
                let to = from + 10 + UInt64(draws.exponential(mean: 30))
                guard to + 10 < FleetAgreementTests.seconds else { return }
                visits.append((from, to))
                from = to
            }
        }
    }

    static func simulated(_ script: Script, _ policy: WakePolicy) -> [Sent] {
        let traits = DeviceTraits(
            rules: .everyday, openedAt: fleetStart, silentMedian: 1, helloMedian: 2)
        var life = UserLife(devices: [traits], seed: 1)
        func add(_ second: UInt64, _ kind: LifeEvent.Kind) {
            life.events.append(LifeEvent(at: fleetStart + second * 1_000, kind: kind))
        }
        add(0, .forceQuit)
        for message in script.messages {
            add(message.second, .message(conversation: message.conversation))
        }
        for visit in script.visits {
            add(visit.from, .open)
            add(visit.to, .leave)
            add(visit.to + 6, .forceQuit)
        }
        life.events.sort { $0.at < $1.at }
        var world = UserWorld(life: life, policy: policy, model: model)
        world.sent = []
        world.run(until: fleetStart + seconds * 1_000)
        return pushes(of: world)
    }

    static func pushes(of world: UserWorld) -> [Sent] {
        // Positions among messages: read marks have a place in the feed, too.
        var positions: [UInt64: UInt64] = [:]
        for (index, entry) in world.entries.enumerated() where entry.conversation != nil {
            positions[UInt64(index) + 1] = UInt64(positions.count) + 1
        }
        return (world.sent ?? []).map { sent in
            let kind: PushKind =
                switch sent.push.kind {
                case .silent: .silent
                case .badgeWithContent: .badge
                default: .alert
                }
            return Sent(
                at: sent.at.since(fleetStart), device: sent.device, kind: kind,
                message: kind == .alert ? positions[sent.push.identifier] ?? 0 : 0,
                badge: kind == .silent ? nil : UInt64(sent.push.badge),
                isStored: sent.push.expires != 0)
        }
    }

    static func put(_ policy: WakePolicy, in world: World) throws {
        var app = try #require(try world.all(AppRecord.self).first)
        app.grace = policy.grace
        app.silentBudget = policy.silentBudget
        app.silentWindow = policy.silentWindow
        app.silentSpacing = policy.silentSpacing
        app.alertExpiration = policy.alertExpiration
        app.adaptive = policy.adaptive
        try world.expectDone(.putApp(app))
    }

    static func served(_ script: Script, _ policy: WakePolicy) throws -> [Sent] {
        let phone = DeviceID(high: 2, low: 1)
        let pushes = try Pushes()
        let world = pushes.world
        try put(policy, in: world)
        let rooms = try (1...3).map { _ in try world.converse(["anna", "bob"]) }
        var session: SessionKey? = try pushes.open("bob", phone).session
        if let session {
            try pushes.acknowledge(session, try pushes.head("bob"))
            try pushes.end(session, within: 0)
        }
        session = nil
        try pushes.run(0)
        var found: [Sent] = []
        var places: [MessageID: UInt64] = [:]
        var last: [ConversationID: UInt64] = [:]
        var acknowledgeAt: UInt64?
        var count = 0
        var visits = script.visits[...]
        for second in 0..<seconds {
            for message in script.messages where message.second == second {
                let room = rooms[Int(message.conversation) - 1]
                let record = try world.publish("text", to: room, from: "anna")
                places[record.message] = UInt64(places.count) + 1
                last[room] = record.position
                if session != nil { acknowledgeAt = min(acknowledgeAt ?? .max, second + 1) }
            }
            if let visit = visits.first {
                if second == visit.from + 2 {
                    session = try pushes.open("bob", phone).session
                    acknowledgeAt = second + 1
                }
                if second == visit.to + 5, let ended = session {
                    try pushes.end(ended, applied: 0, within: 0)
                    (session, acknowledgeAt) = (nil, nil)
                    visits.removeFirst()
                }
            }
            if acknowledgeAt == second, let open = session {
                acknowledgeAt = nil
                let isInFront = visits.first.map { second < $0.to } ?? false
                let reads = rooms.compactMap { room in
                    last[room].map { ReadReceipt(conversation: room, through: $0) }
                }
                try pushes.acknowledge(
                    open, try pushes.head("bob"), reads: isInFront ? reads : [])
                if !isInFront {
                    // Nothing is left to do in the background.
                    try pushes.end(open, applied: 0, within: 0)
                    session = nil
                    visits.removeFirst()
                }
            }
            try pushes.run(0)
            for job in pushes.sent[count...] {
                found.append(try sent(job, at: second * 1_000, places))
            }
            count = pushes.sent.count
            world.pass(1_000)
        }
        return found
    }

    static func sent(
        _ job: PushJob, at time: Milliseconds, _ places: [MessageID: UInt64]
    ) throws -> Sent {
        let collapse = job.request.collapseID.flatMap { MessageID(text: $0) }
        let badge = job.word.firstMatch(of: #/badge (\d+)/#).flatMap { UInt64($0.1) }
        return Sent(
            at: time, device: Int(job.key.device.low) - 1, kind: job.kind,
            message: job.kind == .alert ? collapse.flatMap { places[$0] } ?? 0 : 0, badge: badge,
            isStored: job.request.expiration != 0)
    }

    @Test(
        "the lab sends what the server sends",
        arguments: WakePolicy.named.map(\.name), 1...3 as ClosedRange<UInt64>)
    func agree(_ name: String, _ seed: UInt64) throws {
        var policy = try PolicyChoice(name).policy
        // More windows in the time there is.
        policy.silentWindow = 600_000
        let script = Script(seed: seed)
        let served = try Self.served(script, policy)
        let simulated = Self.simulated(script, policy)
        #expect(served.count > 20 && served.contains { $0.kind == .alert })
        #expect(served.contains { $0.kind == .silent } == (name != "alerts-only"))
        let differing = zip(served, simulated).first { $0 != $1 }
        #expect(served == simulated, "\(differing.map { "\($0)" } ?? "one is longer")")
    }
}
