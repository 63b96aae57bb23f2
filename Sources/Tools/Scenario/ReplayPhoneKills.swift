import APNsSimulator
import EventLoop

/// Sleeping phones whose app the system kills in the middle of a wake.
struct PhoneKills {
    /// Where in a wake: as soon as this has happened.
    private static let moments: [SimulatorEvent.Kind] = [
        .online, .delta, .applied, .shown, .badge, .synced, .completed, .applied, .shown, .removed,
    ]

    let wanted: Int
    /// By kind: at each of these moments so many were killed.
    private(set) var done: [SimulatorEvent.Kind: Int] = [:]
    private var waiting: [Int: SimulatorEvent.Kind] = [:]
    /// Devices whose app was ended, which may hold what it could not tell of.
    private var victims: Set<Int> = []
    private var random: SeededRandom

    init(wanted: Int, seed: UInt64) {
        self.wanted = wanted
        random = SeededRandom(seed: seed ^ 0x6B69_6C6C)
    }

    var count: Int { done.values.reduce(0, +) }

    /// Whom to kill next, and where; spread over the log.
    ///
    /// - Parameter share: of the log that is over.
    mutating func next(
        share: Double, among sleepers: [Int]
    ) -> (device: Int, at: SimulatorEvent.Kind)? {
        // One that has waited long is woken with something else: some more wait than are left.
        guard count < wanted, waiting.count < 2 * (wanted - count),
            Double(count) <= share * Double(wanted) * 1.25
        else { return nil }
        let free = sleepers.filter { waiting[$0] == nil }
        guard !free.isEmpty else { return nil }
        let device = free[Int(random.next() % UInt64(free.count))]
        let moment = Self.moments[Int(random.next() % UInt64(Self.moments.count))]
        waiting[device] = moment
        return (device, moment)
    }

    /// Killed, or swiped away.
    mutating func ended(_ device: Int) { victims.insert(device) }

    mutating func takeVictims() -> Set<Int> {
        defer { victims = [] }
        return victims
    }

    /// The system has taken a device's app out of memory.
    mutating func killed(_ device: Int) {
        guard let moment = waiting.removeValue(forKey: device) else { return }
        done[moment, default: 0] += 1
    }
}

extension Replay {
    func killPhones() {
        let share = Double(nextEvent) / Double(max(1, log.events.count))
        let sleepers = isAsleep.indices.filter { isAsleep[$0] && !isSwipedAway[$0] }
        guard let fleet = fleet as? SimulatorFleet,
            let (device, moment) = phoneKills.next(share: share, among: sleepers)
        else { return }
        fleet.kill(device, at: moment)
    }

    /// An app that is ended once something is durable has told nobody of it: its store does.
    ///
    /// - Returns: whether nothing is left to ask.
    func askVictims() -> Bool {
        guard let fleet = fleet as? SimulatorFleet else { return true }
        for device in phoneKills.takeVictims() {
            askedVictims += 1
            fleet.messages(device, conversation) { [unowned self] held in
                self.askedVictims -= 1
                let now = SystemClock.monotonicMilliseconds()
                for (message, position) in held {
                    self.ledger.found(device, message, position: position, at: now)
                }
            }
        }
        return askedVictims == 0
    }
}
