public import Model

/// What is known of time zones. Their rules change by law, so they are no business of the core:
/// the rim looks them up, tests make their own.
public protocol ZoneClock: Sendable {
    /// Seconds east of UTC on the clocks of a zone (a name of IANA's database) at a moment; `nil`:
    /// there is no such zone.
    func offset(of zone: String, at time: Timestamp) -> Int64?
}

/// Knows UTC and no other zone.
public struct OnlyUTC: ZoneClock {
    public init() {}
    public func offset(of zone: String, at time: Timestamp) -> Int64? {
        zone == "UTC" ? 0 : nil
    }
}

/// When an alert is shown at the earliest, and until when.
public struct AlertTiming: Equatable, Sendable {
    public enum Moment: Equatable, Sendable {
        case at(Timestamp)
        /// On the wall of each device.
        case local(LocalMoment)
    }

    /// `nil`: at once.
    public var moment: Moment?
    /// After it no alert leaves; `nil`: there is no such time.
    public var expires: Timestamp?
    /// The same, counted from when the alert may be shown.
    public var lifetime: Milliseconds?

    public init(
        moment: Moment? = nil, expires: Timestamp? = nil, lifetime: Milliseconds? = nil
    ) {
        self.moment = moment
        self.expires = expires
        self.lifetime = lifetime
    }

    /// - Parameter shown: when the alert may be shown, or, without a moment of its own, when the
    ///   message was published.
    public func expiry(from shown: Timestamp) -> Timestamp? {
        guard let lifetime else { return expires }
        return min(expires ?? shown + lifetime, shown + lifetime)
    }
}

/// A time as a clock on a wall shows it.
public struct LocalMoment: Equatable, Sendable {
    /// Milliseconds since 1970 if the wall hung in UTC; of a time of day, since midnight.
    public var wall: UInt64
    /// A time of day: the first one after the publish.
    public var isDaily: Bool
    /// For devices that have not said where they are; empty: UTC.
    public var zone: String

    public init(wall: UInt64, isDaily: Bool, zone: String = "") {
        self.wall = wall
        self.isDaily = isDaily
        self.zone = zone
    }

    /// When it is so on a device's wall.
    ///
    /// The zone is the one the device has named, else the offset it has told, else the one named
    /// with the push, else UTC. A time that the clocks pass over is taken with the offset of
    /// before: it comes as much later as they are set forward. One that comes twice is the first
    /// (RFC 5545, 3.3.5).
    ///
    /// - Parameters:
    ///   - offset: minutes east of UTC, plus 1,440; 0: the device has not said.
    ///   - published: a time of day is the first at or after it.
    public func instant(
        zone device: String, offset: UInt64, published: Timestamp, zones: any ZoneClock
    ) -> Timestamp {
        let clock = WallClock(zone: device, offset: offset, otherwise: zone, zones: zones)
        guard isDaily else { return clock.instant(Int64(clamping: min(wall, Self.wallMax))) }
        let day: Int64 = 86_400_000
        // Far above any moment of a clock, and no sum of it overflows.
        let since = Int64(clamping: min(published.milliseconds, Self.wallMax))
        let today = (since + clock.offset(at: published)) / day
        let time = Int64(clamping: min(wall, 86_399_999))
        // Where clocks go forward at midnight, yesterday's may come today.
        for number in today - 1...today + 1 {
            let instant = clock.instant(number * day + time)
            if instant >= published { return instant }
        }
        return clock.instant((today + 2) * day + time)
    }

    /// Of the year 9999.
    static let wallMax: UInt64 = 253_402_300_799_999
}

/// The clock on one device's wall.
private struct WallClock {
    let zone: String
    let fixed: Int64
    let zones: any ZoneClock

    init(zone: String, offset: UInt64, otherwise: String, zones: any ZoneClock) {
        self.zones = zones
        let now = Timestamp(milliseconds: 0)
        if !zone.isEmpty, zones.offset(of: zone, at: now) != nil {
            (self.zone, fixed) = (zone, 0)
        } else if (1...2_880).contains(offset) {
            (self.zone, fixed) = ("", (Int64(offset) - 1_440) * 60_000)
        } else {
            (self.zone, fixed) = (otherwise, 0)
        }
    }

    /// In milliseconds, at most a day.
    func offset(at time: Timestamp) -> Int64 {
        guard !zone.isEmpty, let seconds = zones.offset(of: zone, at: time) else { return fixed }
        return max(-86_400, min(86_400, seconds)) * 1_000
    }

    func instant(_ wall: Int64) -> Timestamp {
        let day: Int64 = 86_400_000
        let before = offset(at: Self.timestamp(wall - day))
        let after = offset(at: Self.timestamp(wall + day))
        let early = Self.timestamp(wall - before)
        let late = Self.timestamp(wall - after)
        if offset(at: early) == before { return early }
        return offset(at: late) == after ? late : early
    }

    private static func timestamp(_ milliseconds: Int64) -> Timestamp {
        Timestamp(milliseconds: UInt64(max(0, milliseconds)))
    }
}
