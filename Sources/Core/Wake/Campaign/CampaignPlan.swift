public import Model

/// When a campaign begins and how fast it goes. Durations in milliseconds.
public struct CampaignPlan: Equatable, Sendable {
    /// When the first push may leave. With `isLocal` it is what clocks on walls show then, as if
    /// they showed UTC: each device has its own moment.
    public var startsAt: Timestamp
    public var isLocal: Bool
    /// Pushes in any second of the store's clock.
    public var rate: UInt64
    /// The devices that get it first, in ten-thousandths; 0: nobody does.
    public var canaryShare: UInt64
    /// Goes on by itself so long after the canary share has its answers, if few were rejected;
    /// `nil`: waits for a resume.
    public var canaryWait: Milliseconds?
    /// It stops itself when so many of a hundred of its latest answers reject; 0: never.
    public var stopPercent: UInt64
    /// How long APNs may store a push; `nil`: as the app's alerts.
    public var expiration: Milliseconds?

    public init(
        startsAt: Timestamp, isLocal: Bool = false, rate: UInt64 = Self.rateUsual,
        canaryShare: UInt64 = 0, canaryWait: Milliseconds? = nil,
        stopPercent: UInt64 = Self.stopPercentUsual, expiration: Milliseconds? = nil
    ) {
        self.startsAt = startsAt
        self.isLocal = isLocal
        self.rate = rate
        self.canaryShare = canaryShare
        self.canaryWait = canaryWait
        self.stopPercent = stopPercent
        self.expiration = expiration
    }

    public static let rateUsual: UInt64 = 500
    public static let rateMax: UInt64 = 100_000
    public static let stopPercentUsual: UInt64 = 25
    public static let shareWhole: UInt64 = 10_000
    /// A campaign that is not over so long after its start is cancelled.
    public static let lifetime: Milliseconds = 30 * 86_400_000
    /// A start that is over for no longer is one that was meant for now: clocks differ, and the
    /// request took its time.
    public static let lateness: Milliseconds = 10 * 60_000
    /// What a wall shows is at most so many minutes ahead of UTC: `DeviceRecord.utcOffset` is
    /// the minutes east of it, plus these.
    public static let offsetUTC: UInt64 = 1_440

    /// What makes no sense; `nil`: nothing.
    public func problem(now: Timestamp) -> String? {
        if rate == 0 || rate > Self.rateMax {
            return "rate: must be 1 to \(Self.rateMax) pushes a second"
        }
        if canaryShare >= Self.shareWhole {
            return "canary: a share of all devices leaves none to come after it"
        }
        if canaryShare > 0, isLocal {
            return "canary: a share that goes first and a local start time exclude each other; "
                + "send the share as a campaign of its own, by tags"
        }
        if canaryShare == 0, canaryWait != nil { return "canary: a wait without a share" }
        if stopPercent > 100 { return "stop_percent: must be 0 to 100" }
        if startsAt > now + Self.lifetime { return "start: more than 30 days ahead" }
        // Clock 0 is the west-most there may be: no wall shows the start later.
        if moment(onClock: 0) + Self.lateness < now {
            return "start: is in the past; leave it out to begin at once"
        }
        return nil
    }

    /// When clocks so far ahead of UTC, as `DeviceRecord.utcOffset`, show the start.
    public func moment(onClock clock: UInt64) -> Timestamp {
        guard isLocal else { return startsAt }
        // Minutes from the east-most clock there may be, which is two days before the last.
        let base = startsAt.milliseconds + Self.offsetUTC * 60_000
        return Timestamp(milliseconds: base - min(base, clock * 60_000))
    }

    /// What a device's clock is ahead of UTC when it shows the start: by the zone it has named,
    /// for the offset it told is that of its last connection; where nobody knows the zone, by that.
    public func clock(zone: String, told: UInt64, zones: any ZoneClock) -> UInt64 {
        guard !zone.isEmpty, zones.offset(of: zone, at: startsAt) != nil else { return told }
        let local = LocalMoment(wall: startsAt.milliseconds, isDaily: false)
        let moment = local.instant(
            zone: zone, offset: told, published: startsAt, zones: zones)
        let east =
            (Int64(clamping: startsAt.milliseconds) - Int64(clamping: moment.milliseconds)) / 60_000
        return UInt64(clamping: max(1, min(east + Int64(Self.offsetUTC), 2_880)))
    }

    /// Whether a device is of the share that goes first: the same each time it is asked, and
    /// others of the next campaign.
    public func isCanary(_ device: DeviceID, of campaign: CampaignID) -> Bool {
        guard canaryShare > 0 else { return false }
        // FNV-1a, 64 bits.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in device.bytes + campaign.bytes {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return (hash ^ hash >> 32) % Self.shareWhole < canaryShare
    }
}

/// The latest answers to a campaign's pushes, and whether rejections have jumped among them. The
/// gateway's breaker does the same for a credential, of tokens that APNs had accepted; this one
/// looks at all of a campaign's, and outlives the process.
public struct RejectionTrend: StoredBytes, Equatable {
    /// The newest first, from the lowest bit; 1: rejected.
    private var bits: (high: UInt64, low: UInt64) = (0, 0)
    public private(set) var answers = 0

    public init() {}

    /// Answers looked at.
    public static let answersMax = 128
    /// Rejections that make a jump, at least.
    public static let rejectionsMin = 10

    public var rejections: Int { bits.high.nonzeroBitCount + bits.low.nonzeroBitCount }

    public mutating func add(isRejected: Bool) {
        bits = (bits.high << 1 | bits.low >> 63, bits.low << 1 | (isRejected ? 1 : 0))
        answers = min(answers + 1, Self.answersMax)
    }

    /// - Parameter percent: `CampaignPlan.stopPercent`.
    public func isJump(percent: UInt64) -> Bool {
        percent > 0 && rejections >= Self.rejectionsMin
            && UInt64(rejections) * 100 >= percent * UInt64(answers)
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.bits == right.bits && left.answers == right.answers
    }

    /// The form in a row.
    public var encoded: [UInt8] {
        answers == 0
            ? [] : Identifier<Never>(high: bits.high, low: bits.low).bytes + [UInt8(answers)]
    }

    /// `nil`: the bytes are of something else.
    public init?(encoded: [UInt8]) {
        self.init()
        if encoded.isEmpty { return }
        guard encoded.count == 17, let pair = Identifier<Never>(encoded[..<16]),
            Int(encoded[16]) <= Self.answersMax
        else { return nil }
        bits = (pair.high, pair.low)
        answers = Int(encoded[16])
    }
}
