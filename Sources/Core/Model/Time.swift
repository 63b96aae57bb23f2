/// A moment of the process's monotonic clock, in milliseconds from an arbitrary start.
/// Machines take it as an argument; none holds a clock.
public struct Instant: Hashable, Comparable, Sendable {
    public var milliseconds: UInt64

    public init(milliseconds: UInt64) { self.milliseconds = milliseconds }

    public static func + (instant: Instant, duration: Milliseconds) -> Instant {
        let (sum, overflow) = instant.milliseconds.addingReportingOverflow(duration)
        return Instant(milliseconds: overflow ? .max : sum)
    }

    /// How long after `earlier`; 0 if it is not.
    public func since(_ earlier: Instant) -> Milliseconds {
        milliseconds > earlier.milliseconds ? milliseconds - earlier.milliseconds : 0
    }

    public static func < (left: Self, right: Self) -> Bool {
        left.milliseconds < right.milliseconds
    }
}

/// A duration in milliseconds.
public typealias Milliseconds = UInt64

/// A moment of the store's clock, in milliseconds since 1970. Durable times are of this kind.
public struct Timestamp: Hashable, Comparable, Sendable {
    public var milliseconds: UInt64

    public init(milliseconds: UInt64) { self.milliseconds = milliseconds }

    public static func + (time: Timestamp, duration: Milliseconds) -> Timestamp {
        let (sum, overflow) = time.milliseconds.addingReportingOverflow(duration)
        return Timestamp(milliseconds: overflow ? .max : sum)
    }

    /// `duration` earlier, not before 1970.
    public static func - (time: Timestamp, duration: Milliseconds) -> Timestamp {
        Timestamp(milliseconds: time.milliseconds > duration ? time.milliseconds - duration : 0)
    }

    /// How long after `earlier`; 0 if it is not.
    public func since(_ earlier: Timestamp) -> Milliseconds {
        milliseconds > earlier.milliseconds ? milliseconds - earlier.milliseconds : 0
    }

    public static func < (left: Self, right: Self) -> Bool {
        left.milliseconds < right.milliseconds
    }
}
