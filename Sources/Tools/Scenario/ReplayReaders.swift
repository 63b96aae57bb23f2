import EventLoop
import Model

/// The nicks of a log that read what comes, on one of their devices; who they are and when they
/// read is seeded.
struct ReplayReaders {
    /// Something that its user does with a device, a little later.
    struct Plan {
        enum Kind {
            case read
            case putAway
        }

        let device: Int
        let kind: Kind
        let due: UInt64
    }

    /// How much is read at once.
    enum Choice {
        case through(UInt64)
        case only(UInt64)
    }

    /// From opening an app to reading in it, and from there to putting it away, in milliseconds.
    static let pause: UInt64 = 400

    private var random: SeededRandom
    /// By the number of the user's phone: that of the device it reads on.
    private(set) var places: [Int: Int] = [:]
    private(set) var marks: [Int: ReadMarks] = [:]
    var plans: [Plan] = []
    /// Times that somebody read.
    private(set) var reads = 0

    init(seed: UInt64) { random = SeededRandom(seed: seed ^ 0x7265_6164) }

    /// Half of all nicks read, half of these on a tablet.
    mutating func habit() -> (reads: Bool, onTablet: Bool) {
        let chance = random.next() % 4
        return (chance < 2, chance == 0)
    }

    mutating func add(_ phone: Int, readsOn device: Int) { places[phone] = device }

    func isRead(_ position: UInt64, by phone: Int) -> Bool {
        marks[phone]?.contains(position) ?? false
    }

    /// Somebody with a tablet who takes it up now; `nil`: nobody does, as mostly.
    mutating func takesTabletUp() -> Int? {
        guard random.next() % 12 == 0 else { return nil }
        let tablets = places.filter { $0.key != $0.value }.keys.sorted()
        guard !tablets.isEmpty else { return nil }
        return places[tablets[Int(random.next() % UInt64(tablets.count))]]
    }

    /// What a user reads of what is on the device; `nil`: nothing new is there.
    ///
    /// - Parameter unread: positions of others' messages, ascending.
    mutating func choose(_ phone: Int, of unread: [UInt64]) -> Choice? {
        guard let last = unread.last else { return nil }
        reads += 1
        let any = unread[Int(random.next() % UInt64(unread.count))]
        switch random.next() % 4 {
        case 0:
            marks[phone, default: ReadMarks()].read(only: any)
            return .only(any)
        case 1:
            marks[phone, default: ReadMarks()].read(through: any)
            return .through(any)
        default:
            marks[phone, default: ReadMarks()].read(through: last)
            return .through(last)
        }
    }

    mutating func due(_ now: UInt64) -> [Plan] {
        let due = plans.filter { $0.due <= now }
        if !due.isEmpty { plans.removeAll { $0.due <= now } }
        return due
    }
}

extension Replay {
    /// A second device of a user, in the order of devices.
    func addTablet(of phone: Int, _ user: String) throws {
        let tablet = addDevice(of: user, phone: phone)
        readers.add(phone, readsOn: tablet)
        try fleet?.add(user: user, device: DeviceID(high: random.next(), low: random.next()))
        fleet?.open(tablet)
        ledger.opened(tablet, at: SystemClock.monotonicMilliseconds())
    }

    /// Whoever has come to the own device reads there a little later.
    func planReading(on device: Int) {
        let phone = ledger.user(of: device)
        guard !options.isAwake, readers.places[phone] == device,
            !readers.plans.contains(where: { $0.device == device })
        else { return }
        loop.updateNow()
        let due = loop.now + ReplayReaders.pause
        readers.plans.append(.init(device: device, kind: .read, due: due))
        // At the end all stay open.
        guard phone != device, !settling.hasBegun else { return }
        readers.plans.append(
            .init(device: device, kind: .putAway, due: due + ReplayReaders.pause))
    }

    /// Somebody takes the tablet up, perhaps.
    func takeTabletUp() {
        guard !options.isAwake, let tablet = readers.takesTabletUp(), isAdded[tablet] else {
            return
        }
        wakeUp(tablet)
        planReading(on: tablet)
    }

    func carryOutPlans(_ now: UInt64) {
        for plan in readers.due(now) {
            switch plan.kind {
            case .putAway: fallAsleep(plan.device)
            case .read: read(on: plan.device)
            }
        }
    }

    private func read(on device: Int) {
        guard let fleet = fleet as? SimulatorFleet, !isAsleep[device], isAdded[device] else {
            return
        }
        let phone = ledger.user(of: device)
        let unread = ledger.others(on: device).compactMap { ledger.position(of: $0) }
            .filter { !readers.isRead($0, by: phone) }.sorted()
        guard let choice = readers.choose(phone, of: unread) else { return }
        fleet.read(device, conversation, choice)
    }
}
