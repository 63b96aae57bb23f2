import DeviceModel
import Wake

/// What came of a run, in whole numbers, so that parts of it add up in any order.
struct Tally: Equatable, Sendable {
    // Messages, each in exactly one of the eight below.
    var messages: UInt64 = 0
    /// The app was in front when it came.
    var live: UInt64 = 0
    /// First told by the woken app itself.
    var local: UInt64 = 0
    /// First told by an alert push.
    var alerted: UInt64 = 0
    /// The person opened the app before, and something to tell it was under way.
    var opened: UInt64 = 0
    /// The person came upon it: nothing was under way any more.
    var cameUpon: UInt64 = 0
    /// At the end not told, and something is under way.
    var pending: UInt64 = 0
    /// At the end not told, and nothing is under way.
    var untold: UInt64 = 0
    /// The user lets none of the devices show anything.
    var denied: UInt64 = 0

    /// Messages that found the app on no screen.
    var asleep: UInt64 = 0
    /// Of these, once for each device.
    var awaited: UInt64 = 0
    /// From publish to the first moment the person could see it.
    var told = DelayHistogram()
    /// From publish to the device's acknowledgement.
    var arrived = DelayHistogram()

    // Pushes.
    var silent: UInt64 = 0
    var alerts: UInt64 = 0
    var badges: UInt64 = 0
    /// Silent pushes that made the app sync something new.
    var silentUsed: UInt64 = 0
    /// Alerts of a message that the device's screen showed already, or that was read.
    var repeated: UInt64 = 0
    /// Alerts at a moment at which the device would have let a silent push start the app.
    var needless: UInt64 = 0
    var demotions: UInt64 = 0
    var recoveries: UInt64 = 0
    /// By `WakeOutcome.rawValue`.
    var outcomes = [UInt64](repeating: 0, count: 16)
    /// Alerts by `AlertCause.rawValue`.
    var causes = [UInt64](repeating: 0, count: 16)
    /// Silent pushes that did not start the app, by why.
    var fates = [UInt64](repeating: 0, count: Fate.allCases.count)
    var devices: UInt64 = 0
    var users: UInt64 = 0

    /// Why a silent push started nothing.
    enum Fate: Int, CaseIterable {
        case noCoverage, forceQuit, refreshOff, forgotten, superseded, discarded, stillHeld
        case inFront

        var name: String {
            switch self {
            case .noCoverage: "no_coverage"
            case .forceQuit: "force_quit"
            case .refreshOff: "refresh_off"
            case .forgotten: "forgotten"
            case .superseded: "superseded"
            case .discarded: "discarded"
            case .stillHeld: "still_held"
            case .inFront: "in_front"
            }
        }
    }

    mutating func count(_ fate: Fate) { fates[fate.rawValue] += 1 }

    static func += (sum: inout Self, more: Self) {
        for path in sums { sum[keyPath: path] += more[keyPath: path] }
        sum.told += more.told
        sum.arrived += more.arrived
        for index in sum.outcomes.indices { sum.outcomes[index] += more.outcomes[index] }
        for index in sum.causes.indices { sum.causes[index] += more.causes[index] }
        for index in sum.fates.indices { sum.fates[index] += more.fates[index] }
    }

    private static var sums: [WritableKeyPath<Self, UInt64>] {
        [
            \.messages, \.live, \.local, \.alerted, \.opened, \.cameUpon, \.pending, \.untold,
            \.denied, \.asleep, \.awaited, \.silent, \.alerts, \.badges, \.silentUsed,
            \.repeated, \.needless, \.demotions, \.recoveries, \.devices, \.users,
        ]
    }

    var pushes: UInt64 { silent + alerts + badges }

    /// Where each message ended; their sum is `messages`.
    var ends: UInt64 {
        live + local + alerted + opened + cameUpon + pending + untold + denied
    }
}
