import DeviceModel
import Model
import Testing
import Wake

@testable import Fleet

/// Single lives small enough to work out by hand: every delay is its median.
@Suite struct WorldTests {
    /// Silent pushes take 3 s, alerts 0.6 s, HELLO 1.5 s, an ACK 0.25 s.
    static let model: FleetModel = {
        var model = FleetModel()
        model.groupedShare = 0
        model.silentSecondsSigma = 0
        model.alertSecondsSigma = 0
        model.helloSecondsSigma = 0
        model.syncSecondsSigma = 0
        model.helloFails = 0
        return model
    }()

    static func traits() -> DeviceTraits {
        DeviceTraits(
            rules: .everyday, openedAt: fleetStart - 3_600_000, silentMedian: 3, helloMedian: 1.5)
    }

    /// Seconds since the start.
    typealias Happening = (seconds: Double, kind: LifeEvent.Kind)

    static func tally(
        policy: WakePolicy = WakePolicy(), devices: [DeviceTraits] = [traits()],
        hours: UInt64 = 24, _ happenings: Happening..., second: [Happening] = []
    ) -> Tally {
        var life = UserLife(devices: devices, seed: 7)
        for (device, happenings) in [happenings, second].enumerated() {
            for happening in happenings {
                life.events.append(
                    LifeEvent(
                        at: fleetStart + UInt64(happening.seconds * 1_000), device: device,
                        kind: happening.kind))
            }
        }
        life.events.sort { $0.at < $1.at }
        var world = UserWorld(life: life, policy: policy, model: model)
        world.run(until: fleetStart + hours * 3_600_000)
        #expect(world.tally.ends == world.tally.messages)
        return world.tally
    }

    static let message = LifeEvent.Kind.message(conversation: 1)

    static func policy(_ name: String) throws -> WakePolicy { try PolicyChoice(name).policy }

    /// The only delay of a histogram, to the width of its bucket.
    static func only(_ delays: DelayHistogram) -> Milliseconds? {
        delays.count == 1 ? delays.quantile(1, of: 1) : nil
    }

    static func isNear(_ value: Milliseconds?, _ expected: Milliseconds) -> Bool {
        value.map { $0 >= expected && $0 <= expected + expected / 64 + 1 } ?? false
    }

    @Test("a sleeping app is woken and tells by itself: 3 + 1.5 + 0.25 s")
    func woken() {
        let tally = Self.tally((100, Self.message))
        #expect(tally.silent == 1 && tally.silentUsed == 1 && tally.alerts == 0)
        #expect(tally.local == 1 && tally.asleep == 1)
        #expect(Self.isNear(Self.only(tally.told), 4_750))
        #expect(Self.isNear(Self.only(tally.arrived), 4_750))
        #expect(tally.outcomes[Int(WakeOutcome.synced.rawValue)] == 1)
    }

    @Test("an app swiped away is told of by an alert when grace is over: 60 + 0.6 s")
    func forceQuit() {
        let tally = Self.tally((10, .forceQuit), (100, Self.message), (3_000, Self.message))
        #expect(tally.silent == 1 && tally.silentUsed == 0 && tally.demotions == 1)
        #expect(tally.fates[Tally.Fate.forceQuit.rawValue] == 1)
        // The second alert at once: the device is known to be unreachable.
        #expect(tally.alerts == 2 && tally.alerted == 2 && tally.needless == 0)
        #expect(Self.isNear(tally.told.quantile(0.5, of: 2), 600))
        #expect(Self.isNear(tally.told.quantile(1, of: 2), 60_600))
        #expect(tally.arrived.count == 0 && tally.awaited == 2)
    }

    @Test("the grace of the policy is what is waited for")
    func grace() throws {
        let tally = Self.tally(
            policy: try Self.policy("classic/grace_seconds=10"), (10, .forceQuit),
            (100, Self.message))
        #expect(Self.isNear(Self.only(tally.told), 10_600))
    }

    @Test("an alert to a device that a silent push would have woken is needless")
    func alertsOnly() throws {
        let tally = Self.tally(policy: try Self.policy("alerts-only"), (100, Self.message))
        #expect(tally.silent == 0 && tally.alerts == 1 && tally.needless == 1)
        #expect(tally.alerted == 1 && Self.isNear(Self.only(tally.told), 600))
        // The alert wakes the app as well: 0.6 + 1.5 + 0.25 s.
        #expect(Self.isNear(Self.only(tally.arrived), 2_350))
    }

    @Test("two of three misses demote: one is told and forgiven")
    func patient() throws {
        let patient = Self.tally(
            policy: try Self.policy("k-of-n"), (10, .forceQuit), (100, Self.message),
            (8_000, Self.message), (16_000, Self.message))
        #expect(patient.silent == 2 && patient.demotions == 1 && patient.alerts == 3)
        let classic = Self.tally(
            (10, .forceQuit), (100, Self.message), (8_000, Self.message), (16_000, Self.message))
        #expect(classic.silent == 1 && classic.demotions == 1 && classic.alerts == 3)
    }

    @Test("what APNs stores is shown when the network is back, the newest speaks for all")
    func stored() {
        let tally = Self.tally(
            (10, .coverage(false)), (100, Self.message), (200, Self.message),
            (1_000, .coverage(true)))
        #expect(tally.fates[Tally.Fate.noCoverage.rawValue] == 1)
        #expect(tally.alerts == 2 && tally.alerted == 2)
        #expect(Self.isNear(tally.told.quantile(0.5, of: 2), 800_000))
        #expect(Self.isNear(tally.told.quantile(1, of: 2), 900_000))
    }

    @Test("the app in front is told at once, and costs no push")
    func live() {
        let tally = Self.tally((10, .open), (20, Self.message), (60, .leave))
        #expect(tally.live == 1 && tally.asleep == 0 && tally.pushes == 0)
    }

    @Test("who opens the app while a push is under way was not told, but not forgotten")
    func opened() {
        let tally = Self.tally((10, .forceQuit), (100, Self.message), (110, .open), (200, .leave))
        #expect(tally.opened == 1 && tally.alerts == 0 && tally.demotions == 0)
        // The silent push did nothing, the person came.
        #expect(tally.silent == 1 && tally.silentUsed == 0)
    }

    @Test("who is off all the time is pending, and untold once APNs stores nothing any more")
    func off() throws {
        let pending = Self.tally(hours: 2, (10, .coverage(false)), (100, Self.message))
        #expect(pending.pending == 1 && pending.untold == 0)
        let untold = Self.tally(
            policy: try Self.policy("classic/alert_expiration_seconds=60"), hours: 2,
            (10, .coverage(false)), (100, Self.message))
        #expect(untold.pending == 0 && untold.untold == 1)
        let cameUpon = Self.tally(
            policy: try Self.policy("classic/alert_expiration_seconds=60"), hours: 2,
            (10, .coverage(false)), (100, Self.message), (3_000, .coverage(true)),
            (3_600, .open))
        #expect(cameUpon.cameUpon == 1)
    }

    @Test("nobody is told who does not want to be")
    func denied() {
        var traits = Self.traits()
        traits.areAlertsDenied = true
        let tally = Self.tally(devices: [traits], (100, Self.message))
        #expect(tally.denied == 1 && tally.local == 0 && tally.asleep == 0)
        #expect(tally.silentUsed == 1 && tally.arrived.count == 1)
    }

    @Test("what is read on one device is cleared from the icon of the other")
    func readElsewhere() {
        let tally = Self.tally(
            devices: [Self.traits(), Self.traits()], (10, .forceQuit), (100, Self.message),
            second: [(1_000, .open), (1_100, .leave)])
        // The second woke and told at 104 s, the first was alerted at 160 s and cleared at 1,000.
        #expect(tally.silent == 2 && tally.alerts == 1 && tally.local == 1)
        #expect(tally.badges == 1 && tally.repeated == 0)
        #expect(tally.messages == 1 && tally.awaited == 2 && tally.arrived.count == 1)
    }

    @Test("a phone that grants fewer wakes than the policy spends holds a push until the hour ends")
    func spent() {
        var traits = Self.traits()
        traits.rules.silentPerHour = 1
        let tally = Self.tally(
            devices: [traits], (100, Self.message), (400, Self.message), (700, Self.message))
        #expect(tally.silent == 2 && tally.demotions == 1 && tally.recoveries == 1)
        #expect(tally.local == 1 && tally.alerted == 2 && tally.needless == 0)
        // It comes after all, an hour after the first, and the server learns how late.
        #expect(tally.silentUsed == 2 && tally.outcomes[Int(WakeOutcome.late.rawValue)] == 1)
        #expect(Self.isNear(tally.arrived.quantile(1, of: 3), 3_304_750))
    }
}
