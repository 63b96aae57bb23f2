import DeviceModel
import Model

/// The numbers behind people, phones and the network. Apple publishes none of them, so they are
/// ours to set; Fleet.md beside this says what each stands for, and a run's JSON holds them.
public struct FleetModel: Codable, Equatable, Sendable {
    // MARK: People

    /// Share of users with a second device.
    public var secondDevice = 0.25
    /// Of a day's openings, those of the first device.
    public var firstDeviceOpens = 0.8
    /// Hours from UTC and how many live there.
    public var zoneHours = [-8, -5, -3, 0, 1, 2, 3, 5, 8, 9]
    public var zoneWeights = [8.0, 16, 8, 8, 20, 10, 8, 8, 10, 4]
    /// A user's messages a day: half have less than the median.
    public var messagesMedian = 9.0
    public var messagesSigma = 1.0
    public var messagesMax = 300.0
    /// Messages come in bursts of one conversation, this many in the mean, so far apart.
    public var burstMean = 3.0
    public var burstGapSeconds = 25.0
    /// In the mean; the k-th gets 1/k of what the first gets.
    public var conversationsMean = 8.0
    /// By local hour.
    public var messageHours = [
        2.0, 1, 0.6, 0.4, 0.4, 0.6, 1.5, 3, 4, 4.5, 5, 5, 6, 5.5, 5, 5, 5.5, 6.5, 7.5, 8, 8.5, 8,
        6, 4,
    ]
    public var openHours = [
        1.5, 0.6, 0.3, 0.2, 0.2, 0.8, 3, 6, 6, 5, 5, 5, 6.5, 5.5, 5, 5, 5.5, 6.5, 7, 7.5, 8, 8, 7,
        4,
    ]
    /// Openings of the app a day.
    public var opensMedian = 7.0
    public var opensSigma = 0.9
    /// Who hardly ever opens it.
    public var rareShare = 0.04
    public var rareOpens = 0.1
    /// How long the app stays in front.
    public var visitSecondsMedian = 60.0
    public var visitSecondsSigma = 1.0
    /// Who swipes the app away nearly each time, and how often the others do.
    public var swiperShare = 0.08
    public var swiperQuits = 0.9
    public var othersQuit = 0.02
    public var alertsDeniedShare = 0.06

    // MARK: Phones

    public var refreshOffShare = 0.06
    public var lowPowerAlwaysShare = 0.03
    public var lowPowerPerDay = 0.25
    public var lowPowerHours = 2.5
    public var rebootsPerDay = 0.05
    /// The system takes a suspended app out of memory after so long, in the mean.
    public var memoryHours = 6.0
    /// Without network: short gaps, nights, and those who are off all the time.
    public var gapsPerDay = 3.0
    public var gapMinutes = 6.0
    public var nightOffShare = 0.12
    public var offShare = 0.003
    /// What the system lets a phone do, and how many phones are such: `DeviceRules.everyday` with
    /// these wakes an hour and a day.
    public var wakesPerHour: [UInt16] = [3, 1, 8]
    public var wakesPerDay: [UInt16] = [40, 12, 100]
    public var wakesWeights = [60.0, 20, 20]

    // MARK: Network

    /// A device's own median from APNs' acceptance of a silent push to its arrival.
    public var silentSecondsMedian = 3.0
    public var silentSecondsDevices = 1.1
    public var silentSecondsSigma = 0.7
    /// Priority 5 may be grouped and delivered in bursts: so many are, up to so late.
    public var groupedShare = 0.08
    public var groupedSeconds = 240.0
    public var alertSecondsMedian = 0.6
    public var alertSecondsSigma = 0.6
    /// From being started to HELLO, and how often a started app does not get there.
    public var helloSecondsMedian = 1.5
    public var helloSecondsSigma = 0.6
    public var launchSeconds = 1.0
    public var helloFails = 0.04
    /// From HELLO, or from a DELTA, to the ACK.
    public var syncSecondsMedian = 0.25
    public var syncSecondsSigma = 0.5

    public init() {}

    /// The rules of a class of phones.
    func rules(_ place: Int) -> DeviceRules {
        var rules = DeviceRules.everyday
        rules.silentPerHour = wakesPerHour[place]
        rules.silentPerDay = wakesPerDay[place]
        return rules
    }
}

/// When the simulated time begins: late enough for everything that lies before it.
let fleetStart = Timestamp(milliseconds: 10_000 * DeviceRules.day)

extension Timestamp {
    /// Later than everything.
    static let never = Timestamp(milliseconds: .max)
}

/// In whole milliseconds, at least one.
func milliseconds(_ seconds: Double) -> Milliseconds {
    Milliseconds(max(1, min(seconds * 1_000, 1e15)))
}
