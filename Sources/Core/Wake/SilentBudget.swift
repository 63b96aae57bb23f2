public import Model

/// The silent pushes a device was sent of late. iOS drops what comes more often than "two or
/// three per hour" (Apple: Pushing background updates to your App).
///
/// Invariant: at most `capacity` times, rising.
public struct SilentBudget: Equatable, Sendable {
    /// A bound for policies that allow more.
    public static let capacity = 32

    public private(set) var times: [Timestamp]

    public init() { times = [] }

    /// Reads the form stored in a device's row, 8 bytes a time; what does not fit is left out.
    public init(encoded: [UInt8]) {
        times = []
        for start in stride(from: 0, to: encoded.count - encoded.count % 8, by: 8) {
            var value: UInt64 = 0
            for byte in encoded[start..<start + 8] { value = value << 8 | UInt64(byte) }
            times.append(Timestamp(milliseconds: value))
        }
        times = Array(times.sorted().suffix(Self.capacity))
    }

    /// The form stored in a device's row.
    public var encoded: [UInt8] {
        times.flatMap { time in
            stride(from: 56, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: time.milliseconds >> UInt64($0))
            }
        }
    }

    public enum Verdict: Equatable, Sendable {
        case allowed
        /// The last one is too recent; a token is left.
        case wait(until: Timestamp)
        case exhausted
    }

    /// Whether a silent push may leave now.
    public func verdict(now: Timestamp, policy: WakePolicy) -> Verdict {
        let recent = times.filter { isRecent($0, now: now, policy: policy) }.map { min($0, now) }
        let most = min(policy.silentBudget, UInt64(Self.capacity))
        if UInt64(recent.count) >= most { return .exhausted }
        if let last = recent.last, last + policy.silentSpacing > now {
            return .wait(until: last + policy.silentSpacing)
        }
        return .allowed
    }

    /// When a silent push may leave that must leave a token to others: at once, or when tokens
    /// have come back. `nil`: never, the budget is too small.
    public func spareTime(now: Timestamp, policy: WakePolicy) -> Timestamp? {
        let most = min(policy.silentBudget, UInt64(Self.capacity))
        guard most > 1 else { return nil }
        let recent = times.filter { isRecent($0, now: now, policy: policy) }.map { min($0, now) }
        var earliest = now
        if UInt64(recent.count) + 1 >= most {
            // So many must have become old that two tokens are left.
            let index = recent.count + 1 - Int(most)
            earliest = max(earliest, recent[index] + policy.silentWindow)
        }
        if let last = recent.last { earliest = max(earliest, last + policy.silentSpacing) }
        return earliest
    }

    /// When a silent push last left.
    public var last: Timestamp? { times.last }

    /// Spends a token; times that do not count any more go.
    public mutating func spend(now: Timestamp, policy: WakePolicy) {
        let recent = times.filter { isRecent($0, now: now, policy: policy) }
        times = Array((recent + [now]).sorted().suffix(Self.capacity))
    }

    /// Gives a token back: the push it was spent for has not left us.
    public mutating func refund(_ time: Timestamp) {
        if let index = times.lastIndex(of: time) { times.remove(at: index) }
    }

    /// Times ahead of `now` are of a clock that was ahead: they count from now on.
    public mutating func mendClock(now: Timestamp) { times = times.map { min($0, now) } }

    /// A time ahead of `now` counts as of now.
    private func isRecent(_ time: Timestamp, now: Timestamp, policy: WakePolicy) -> Bool {
        time > now || now.since(time) < policy.silentWindow
    }
}
