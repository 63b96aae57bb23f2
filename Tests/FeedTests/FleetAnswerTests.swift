import DeviceModel
import Feed
import Model
import Testing
import Wake
import Wire

@testable import Fleet

/// The policy lab and the server's rules agree on lives in which phones answer: two devices of a
/// user come when they are woken, in time or late, read what the other has not, and lose the
/// network.
///
/// The lab lives the life and keeps what its server heard. The rules over a store hear the same
/// at the same time, and must send the same pushes and think the same of both devices.
@Suite struct FleetAnswerTests {
    typealias Sent = FleetAgreementTests.Sent

    /// Chance as in the lab, and phones whose pushes are late more often.
    static let model: FleetModel = {
        var model = FleetModel()
        model.groupedShare = 0.15
        return model
    }()
    static let seconds: UInt64 = 3_600

    /// How a run went on one side.
    struct Account: Equatable {
        var pushes: [Sent] = []
        /// What became of silent pushes.
        var outcomes: [String: Int] = [:]
        var devices: [Standing] = []
    }

    struct Standing: Equatable {
        let reachability: ReachabilityState
        let grace: Milliseconds
        let source: GraceSource
        let silentBudget: UInt64
    }

    // MARK: the lives

    static func life(seed: UInt64) -> UserLife {
        var draws = Draws(seed, 77)
        // The second one mostly comes too late for half a minute of grace.
        let devices = [2.0, 30].map {
            DeviceTraits(
                rules: .unlimited, openedAt: fleetStart, silentMedian: $0, helloMedian: 2)
        }
        var life = UserLife(devices: devices, seed: seed)
        func add(_ second: UInt64, _ kind: LifeEvent.Kind, of device: Int = 0) {
            guard second + 5 < seconds else { return }
            life.events.append(
                LifeEvent(at: fleetStart + second * 1_000, device: device, kind: kind))
        }
        var second: UInt64 = 30
        while second < seconds {
            second += 1 + UInt64(draws.exponential(mean: draws.isTrue(0.5) ? 8 : 150))
            add(second, .message(conversation: 1 + draws.number() % 3))
        }
        for device in 0...1 {
            var from: UInt64 = 0
            while from < seconds {
                from += 100 + UInt64(draws.exponential(mean: 700))
                let length = 20 + UInt64(draws.exponential(mean: 60))
                if draws.isTrue(0.4) {
                    // The network goes while its user looks at it, and comes back.
                    add(from + 8, .coverage(false), of: device)
                    add(from + 8 + length, .coverage(true), of: device)
                }
                add(from, .open, of: device)
                add(from + length + 15, .leave, of: device)
                from += length + 30
                if draws.isTrue(0.3) {
                    // Swiped away before the app sleeps, or after.
                    add(from - (draws.isTrue(0.5) ? 13 : 0), .forceQuit, of: device)
                } else if draws.isTrue(0.4) {
                    add(from, .coverage(false), of: device)
                    from += 10 + UInt64(draws.exponential(mean: 200))
                    add(from, .coverage(true), of: device)
                }
            }
        }
        life.events.sort { $0.at < $1.at }
        return life
    }

    // MARK: the lab

    static func simulated(_ life: UserLife, _ policy: WakePolicy) -> (Account, UserWorld) {
        var world = UserWorld(life: life, policy: policy, model: model)
        world.sent = []
        world.heard = []
        world.run(until: fleetStart + seconds * 1_000)
        var account = Account(pushes: inOrder(FleetAgreementTests.pushes(of: world)))
        for outcome in WakeOutcome.allCases where outcome != .pending {
            let late = Int(world.tally.outcomes[Int(WakeOutcome.late.rawValue)])
            // A late one was counted as a no-show before.
            let count =
                Int(world.tally.outcomes[Int(outcome.rawValue)])
                - (outcome == .noShow ? late : 0)
            if count > 0 { account.outcomes[outcome.name] = count }
        }
        account.devices = world.devices.map {
            let (habit, policy) = ($0.machine.habit, $0.machine.appPolicy)
            return Standing(
                reachability: $0.machine.state, grace: $0.machine.policy.grace,
                source: habit.graceSource(policy, app: $0.machine.appGrace),
                silentBudget: $0.machine.policy.silentBudget)
        }
        return (account, world)
    }

    /// What leaves for both devices at one moment leaves in either order.
    private static func inOrder(_ pushes: [Sent]) -> [Sent] {
        let places = pushes.enumerated().sorted {
            ($0.element.at, $0.element.device, $0.offset)
                < ($1.element.at, $1.element.device, $1.offset)
        }
        return places.map(\.element)
    }

    // MARK: the server

    /// The server's rules, told what the lab's server heard.
    final class Server {
        let pushes: Pushes
        private let rooms: [ConversationID]
        private let start: Timestamp
        private var sessions: [SessionKey?] = [nil, nil]
        /// The network is gone, and since when something is told that will not be answered.
        private var isBroken = [false, false]
        private var toldAt: [Timestamp?] = [nil, nil]
        private var isSuspect = [false, false]
        private var last: [ConversationID: UInt64] = [:]
        private var places: [MessageID: UInt64] = [:]
        private(set) var found: [Sent] = []
        /// The wakes of each device, by the number of the push.
        private var wakes: [[WakeID]] = [[], []]
        private var nextID: UInt64 = 0

        init(_ policy: WakePolicy) throws {
            let pushes = try Pushes()
            try FleetAgreementTests.put(policy, in: pushes.world)
            rooms = try (1...3).map { _ in try pushes.world.converse(["anna", "bob"]) }
            for index in 0...1 {
                let session = try Self.open(index, wake: nil, pushes)
                try pushes.acknowledge(session, try pushes.head("bob"))
                try pushes.end(session, within: 0)
            }
            try pushes.run(0)
            self.pushes = pushes
            start = pushes.world.now
        }

        private static func open(
            _ index: Int, wake: WakeID?, _ pushes: Pushes
        ) throws -> SessionKey {
            let token = UInt8(index + 1)
            let device = DeviceID(high: 2, low: UInt64(token))
            return try pushes.open("bob", device, wake: wake, token: token).session
        }

        private var now: Timestamp { pushes.world.now }

        /// - Parameter number: of the push that a HELLO names.
        private func hear(_ word: UserWorld.Word, number: Int?) throws {
            switch word {
            case .message(let conversation):
                let room = rooms[Int(conversation) - 1]
                let record = try pushes.world.publish("text", to: room, from: "anna")
                places[record.message] = UInt64(places.count) + 1
                last[room] = record.position
                for index in 0...1 where isBroken[index] && toldAt[index] == nil {
                    toldAt[index] = now
                }
            case .hello(let index, _):
                let wake = number.flatMap { $0 < wakes[index].count ? wakes[index][$0] : nil }
                sessions[index] = try Self.open(index, wake: wake, pushes)
                mend(index)
            case .acknowledged(let index, let isRead):
                guard let session = sessions[index] else { return }
                let reads = rooms.compactMap { room in
                    last[room].map { ReadReceipt(conversation: room, through: $0) }
                }
                try pushes.acknowledge(
                    session, try pushes.head("bob"), reads: isRead ? reads : [])
            case .slept(let index): try end(index, within: 0)
            case .closed(let index): try end(index, within: 10_000)
            case .networkLost(let index): isBroken[index] = true
            }
        }

        private func mend(_ index: Int) {
            (isBroken[index], toldAt[index], isSuspect[index]) = (false, nil, false)
        }

        private func end(_ index: Int, within: Milliseconds) throws {
            guard let session = sessions[index] else { return }
            try pushes.end(session, within: within)
            sessions[index] = nil
            mend(index)
        }

        /// What was told and is not covered 10 s later makes the session suspect, and 5 s after
        /// that it ends (SYN-23).
        private func suspect() throws {
            for index in 0...1 {
                guard let told = toldAt[index], let session = sessions[index] else { continue }
                if now >= told + 15_000 {
                    try end(index, within: 0)
                } else if now >= told + 10_000, !isSuspect[index] {
                    isSuspect[index] = true
                    try pushes.world.ask(
                        .changeAppState(
                            ChangeAppState(session: session, appState: nil, dormantAfter: 0)))
                }
            }
        }

        /// When something is due by itself; the server says every few seconds that it is there.
        private func next() throws -> Timestamp {
            var next = now + 4_000
            for row in try pushes.world.all(WakeRecord.self) {
                for time in [row.due, row.deadline].compactMap(\.self) {
                    next = min(next, max(time, now + 1))
                }
            }
            for row in try pushes.world.all(SessionRecord.self) {
                if let time = row.expectedUntil { next = min(next, max(time, now + 1)) }
            }
            for told in toldAt.compactMap(\.self) {
                next = min(next, told + (now < told + 10_000 ? 10_000 : 15_000))
            }
            return next
        }

        private func send() throws {
            while true {
                let jobs = try claim()
                if jobs.isEmpty { return }
                for job in jobs {
                    let push = try FleetAgreementTests.sent(job, at: now.since(start), places)
                    found.append(push)
                    wakes[push.device].append(job.request.id)
                    try pushes.finish(job)
                }
            }
        }

        /// With ids of which an app's sample takes every one, as the lab does for a single user.
        private func claim() throws -> [PushJob] {
            let ids = (0..<4).map { _ in
                nextID += 1
                return WakeID(high: 5, low: nextID << 32)
            }
            let answer = try pushes.world.ask(
                .claimPushes(ClaimPushes(boot: pushes.boot, streams: ids.count, ids: ids)))
            guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
            return claimed.jobs
        }

        /// Lives through what was heard, until the end.
        func run(
            _ words: [(at: Milliseconds, word: UserWorld.Word, number: Int?)],
            until end: Milliseconds
        ) throws {
            var words = words[...]
            while true {
                let heard = words.first.map { start + $0.at }
                let time = min(try next(), heard ?? start + end)
                guard time < start + end else { return }
                pushes.world.pass(time.since(now))
                while let word = words.first, start + word.at <= time {
                    words.removeFirst()
                    try hear(word.word, number: word.number)
                    try send()
                }
                try suspect()
                try pushes.tick()
                try send()
            }
        }
    }

    static func served(_ world: UserWorld, _ policy: WakePolicy) throws -> Account {
        let server = try Server(policy)
        var numbers: [[UInt64: Int]] = [[:], [:]]
        for sent in world.sent ?? [] {
            numbers[sent.device][sent.push.handle] = numbers[sent.device].count
        }
        try server.run(
            (world.heard ?? []).map { heard in
                var number: Int?
                if case .hello(let device, let wake?) = heard.word {
                    number = numbers[device][wake]
                }
                return (heard.at.since(fleetStart), heard.word, number)
            }, until: seconds * 1_000)
        var account = Account(pushes: inOrder(server.found))
        for low in 1...2 as ClosedRange<UInt64> {
            let view = try server.pushes.view(DeviceID(high: 2, low: low))
            account.devices.append(
                Standing(
                    reachability: view.reachability, grace: view.policy.grace,
                    source: view.graceSource, silentBudget: view.policy.silentBudget))
        }
        for wake in try server.pushes.world.all(WakeHistoryRecord.self)
        where wake.kind == .silent && wake.outcome != .pending {
            account.outcomes[wake.outcome.name, default: 0] += 1
        }
        return account
    }

    @Test(
        "the lab and the server agree on phones that answer",
        arguments: WakePolicy.named.map(\.name))
    func agree(_ name: String) throws {
        var policy = try PolicyChoice(name).policy
        // More windows in the time there is, and less to be known before a grace is learned.
        policy.silentWindow = 600_000
        policy.adaptive.graceSamples = 4
        policy.adaptive.doubtRetry = 900_000
        var reached: Set<String> = []
        for seed in 1...5 as ClosedRange<UInt64> {
            let (simulated, world) = Self.simulated(Self.life(seed: seed), policy)
            let served = try Self.served(world, policy)
            let differing = zip(served.pushes, simulated.pushes).first { $0 != $1 }
            let (found, expected) = (served.pushes.count, simulated.pushes.count)
            #expect(
                served.pushes == simulated.pushes,
                "seed \(seed): \(differing.map { "\($0)" } ?? "\(found), not \(expected)")")
            #expect(served.outcomes == simulated.outcomes, "seed \(seed)")
            #expect(served.devices == simulated.devices, "seed \(seed)")
            reached.formUnion(served.outcomes.keys)
            reached.formUnion(served.pushes.map { "\($0.kind)" })
            reached.formUnion(world.heard?.map { $0.word.name } ?? [])
            reached.formUnion(served.devices.map(\.source.rawValue))
        }
        // The lives are worth something only if all of it happened.
        var expected: Set = [
            "alert", "badge", "message", "hello", "hello by a push", "acknowledged", "read",
            "slept", "closed", "network lost",
        ]
        if name != "alerts-only" {
            expected.formUnion(["silent", "synced", "no-show", "late", "superseded"])
        }
        if name == "adaptive" { expected.formUnion(["device", "app"]) }
        #expect(reached.isSuperset(of: expected), "\(expected.subtracting(reached))")
    }
}

extension UserWorld.Word {
    fileprivate var name: String {
        switch self {
        case .message: "message"
        case .hello(_, let wake): wake == nil ? "hello" : "hello by a push"
        case .acknowledged(_, let isRead): isRead ? "read" : "acknowledged"
        case .slept: "slept"
        case .closed: "closed"
        case .networkLost: "network lost"
        }
    }
}
