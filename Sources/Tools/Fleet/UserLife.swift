import DeviceModel
import Glibc
import Model

/// What happens to a user by itself, whatever the policy: the same for all of them, so that they
/// are compared on one and the same life.
struct LifeEvent: Equatable {
    enum Kind: Equatable {
        /// Somebody else's, with a push text.
        case message(conversation: UInt64)
        case open
        case leave
        case forceQuit
        case kill
        case reboot
        case coverage(Bool)
        case lowPower(Bool)
    }

    var at: Timestamp
    /// Breaks ties.
    var serial: UInt32 = 0
    /// Of the user's devices; not of a message.
    var device = 0
    var kind: Kind
}

/// What a device is like.
struct DeviceTraits {
    var rules: DeviceRules
    var openedAt: Timestamp
    var isRefreshOff = false
    var areAlertsDenied = false
    /// Seconds.
    var silentMedian: Double
    var helloMedian: Double
}

struct UserLife {
    var devices: [DeviceTraits] = []
    /// In order.
    var events: [LifeEvent] = []
    /// For the chances of pushes and connections.
    var seed: UInt64 = 0
}

/// Draws lives. A value, because the draws of one user do not touch another's.
struct LifeMaker {
    let model: FleetModel
    let recorded: RecordedTraffic?
    let seed: UInt64
    let days: Int
    private let messageDay: DayShape
    private let openDay: DayShape

    init(model: FleetModel, recorded: RecordedTraffic?, seed: UInt64, days: Int) {
        self.model = model
        self.recorded = recorded
        self.seed = seed
        self.days = days
        messageDay = DayShape(model.messageHours)
        openDay = DayShape(model.openHours)
    }

    private var end: Timestamp { fleetStart + UInt64(days) * DeviceRules.day }

    /// - Parameter devicesMax: the user has no more.
    func life(of user: UInt64, devicesMax: Int) -> UserLife {
        var draws = Draws(seed, user)
        var life = UserLife(seed: draws.number())
        let count = devicesMax > 1 && draws.isTrue(model.secondDevice) ? 2 : 1
        let zone = model.zoneHours[draws.index(of: model.zoneWeights)]
        let isRare = draws.isTrue(model.rareShare)
        let opens =
            isRare
            ? model.rareOpens
            : draws.logNormal(median: model.opensMedian, sigma: model.opensSigma)
        let denies = draws.isTrue(model.alertsDeniedShare)
        for _ in 0..<count { life.devices.append(traits(&draws, opens: opens, denies: denies)) }
        addMessages(to: &life, &draws, zone: zone)
        addVisits(to: &life, &draws, zone: zone, opens: opens)
        for device in 0..<count { addTroubles(to: &life, &draws, device: device, zone: zone) }
        for index in life.events.indices { life.events[index].serial = UInt32(index) }
        life.events.sort { ($0.at, $0.serial) < ($1.at, $1.serial) }
        return life
    }

    private func traits(
        _ draws: inout Draws, opens: Double, denies: Bool
    ) -> DeviceTraits {
        let days = draws.exponential(mean: min(20, 0.7 / opens))
        return DeviceTraits(
            rules: model.rules(draws.index(of: model.wakesWeights)),
            openedAt: fleetStart - milliseconds(days * 86_400),
            isRefreshOff: draws.isTrue(model.refreshOffShare), areAlertsDenied: denies,
            silentMedian: min(
                120,
                draws.logNormal(
                    median: model.silentSecondsMedian, sigma: model.silentSecondsDevices)),
            helloMedian: model.helloSecondsMedian)
    }

    // MARK: Messages

    private func addMessages(to life: inout UserLife, _ draws: inout Draws, zone: Int) {
        if let recorded {
            return recorded.add(to: &life.events, &draws, days: days)
        }
        let perDay = min(
            model.messagesMax,
            draws.logNormal(median: model.messagesMedian, sigma: model.messagesSigma))
        let most = 1 + Int(draws.exponential(mean: model.conversationsMean - 1))
        let weights = (1...min(most, 200)).map { 1 / Double($0) }
        forEachTime(messageDay, perDay: perDay / model.burstMean, zone: zone, &draws) {
            time, draws in
            let conversation = UInt64(draws.index(of: weights) + 1)
            var at = time
            repeat {
                if at >= fleetStart, at < end {
                    life.events.append(
                        LifeEvent(at: at, kind: .message(conversation: conversation)))
                }
                at = at + milliseconds(draws.exponential(mean: model.burstGapSeconds))
            } while !draws.isTrue(1 / model.burstMean)
        }
    }

    /// Times as often as the day's shape says, in order, a little before the start included.
    private func forEachTime(
        _ shape: DayShape, perDay: Double, zone: Int, _ draws: inout Draws,
        _ body: (Timestamp, inout Draws) -> Void
    ) {
        guard perDay > 0 else { return }
        let most = Double(days + 1)
        var day = -1.0
        while true {
            day += draws.exponential(mean: 1 / perDay)
            guard day < most else { return }
            let whole = day.rounded(.down)
            let hours = (whole * 24) + shape.hour(at: day - whole) - Double(zone)
            let base = Double(fleetStart.milliseconds)
            let at = Timestamp(milliseconds: UInt64(base + hours * 3_600_000))
            if at < end { body(at, &draws) }
        }
    }

    // MARK: Visits

    private func addVisits(
        to life: inout UserLife, _ draws: inout Draws, zone: Int, opens: Double
    ) {
        let quits = draws.isTrue(model.swiperShare) ? model.swiperQuits : model.othersQuit
        let count = life.devices.count
        var free = fleetStart
        forEachTime(openDay, perDay: opens, zone: zone, &draws) { time, draws in
            let device = count > 1 && !draws.isTrue(model.firstDeviceOpens) ? 1 : 0
            let length = draws.logNormal(
                median: model.visitSecondsMedian, sigma: model.visitSecondsSigma)
            let swipes = draws.isTrue(quits)
            let later = milliseconds(draws.uniform(2, 10))
            let kept = milliseconds(draws.exponential(mean: model.memoryHours * 3_600))
            guard time >= free, time < end else { return }
            let left = time + milliseconds(min(length, 3_600))
            free = left + 15_000
            func add(_ at: Timestamp, _ kind: LifeEvent.Kind) {
                life.events.append(LifeEvent(at: at, device: device, kind: kind))
            }
            add(time, .open)
            add(left, .leave)
            if swipes { add(left + later, .forceQuit) } else { add(left + kept, .kill) }
        }
    }

    // MARK: Troubles

    private func addTroubles(
        to life: inout UserLife, _ draws: inout Draws, device: Int, zone: Int
    ) {
        func add(_ at: Timestamp, _ kind: LifeEvent.Kind) {
            guard at < end else { return }
            life.events.append(LifeEvent(at: max(at, fleetStart), device: device, kind: kind))
        }
        for (from, to) in outages(&draws, zone: zone) {
            add(from, .coverage(false))
            add(to, .coverage(true))
        }
        if draws.isTrue(model.lowPowerAlwaysShare) {
            add(fleetStart, .lowPower(true))
        } else {
            let times = episodes(
                &draws, perDay: model.lowPowerPerDay, hours: model.lowPowerHours)
            for (from, to) in Self.merged(times) {
                add(from, .lowPower(true))
                add(to, .lowPower(false))
            }
        }
        for (at, _) in episodes(&draws, perDay: model.rebootsPerDay, hours: 1) {
            add(at, .reboot)
        }
    }

    private typealias Span = (from: Timestamp, to: Timestamp)

    private func episodes(
        _ draws: inout Draws, perDay: Double, hours: Double
    ) -> [Span] {
        guard perDay > 0 else { return [] }
        var spans: [Span] = []
        var at = fleetStart
        while true {
            at = at + milliseconds(draws.exponential(mean: 86_400 / perDay))
            guard at < end else { return spans }
            spans.append((at, at + milliseconds(draws.exponential(mean: hours * 3_600))))
        }
    }

    private func outages(_ draws: inout Draws, zone: Int) -> [Span] {
        if draws.isTrue(model.offShare) { return [(fleetStart, end)] }
        var spans = episodes(
            &draws, perDay: model.gapsPerDay, hours: model.gapMinutes / 60)
        if draws.isTrue(model.nightOffShare) {
            for day in -1...days {
                let midnight = Double(day * 24 - zone)
                let from = midnight + draws.uniform(-1.5, 0.5)
                let to = midnight + draws.uniform(6, 8)
                let base = Double(fleetStart.milliseconds)
                spans.append(
                    (
                        Timestamp(milliseconds: UInt64(base + from * 3_600_000)),
                        Timestamp(milliseconds: UInt64(base + to * 3_600_000))
                    ))
            }
        }
        return Self.merged(spans).filter { $0.to > fleetStart }
    }

    private static func merged(_ spans: [Span]) -> [Span] {
        var found: [Span] = []
        for span in spans.sorted(by: { $0.from < $1.from }) {
            if let last = found.last, span.from <= last.to {
                found[found.count - 1].to = max(last.to, span.to)
            } else {
                found.append(span)
            }
        }
        return found
    }
}

/// How a day's events lie over its hours.
struct DayShape {
    /// The share before each hour's end, rising to 1.
    private let ends: [Double]

    init(_ weights: [Double]) {
        let total = weights.reduce(0, +)
        var sum = 0.0
        ends = weights.map { weight in
            sum += weight / total
            return sum
        }
    }

    /// The hour of the day before which `share` of a day's events lie.
    func hour(at share: Double) -> Double {
        let index = ends.firstIndex { share < $0 } ?? ends.count - 1
        let start = index == 0 ? 0 : ends[index - 1]
        let width = ends[index] - start
        return Double(index) + (width > 0 ? min(1, (share - start) / width) : 0)
    }
}
