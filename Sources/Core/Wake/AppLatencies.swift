public import Model

/// How long it took the devices of an app to come when they were woken, of late and over all of
/// them: what a device goes by whose own wakes are too few to say.
///
/// A sample, because a row that every wake of an app changed would be waited for by all of them.
/// Which wakes are looked at is told by their random ids, so that neither quick nor slow ones are
/// preferred; how many of them follows the app, so that the row changes about once in
/// `interval`, however many devices there are.
public struct AppLatencies: Equatable, Sendable {
    public static let samplesMax = 256
    /// About this lies between two samples of a busy app.
    public static let interval: Milliseconds = 60_000
    /// The most that `thinning` becomes: one wake of 16,777,216 is looked at then.
    private static let thinningMax: UInt8 = 24

    /// In tenths of a second, oldest first.
    public private(set) var samples: [UInt16] = []
    /// When the newest was taken.
    public private(set) var takenAt: Timestamp
    /// The sample: one wake in 2 to the power of this number is looked at.
    private var thinning: UInt8 = 0

    public init() { takenAt = .zero }

    /// - Parameter encoded: what `encoded` gave; what does not fit is left out.
    public init(encoded: [UInt8], takenAt: Timestamp) {
        self.takenAt = takenAt
        thinning = min(encoded.first ?? 0, Self.thinningMax)
        samples = WakeHabit.latencies(in: encoded.dropFirst()).suffix(Self.samplesMax)
    }

    /// At most 513 bytes.
    public var encoded: [UInt8] { [thinning] + WakeHabit.bytes(of: samples) }

    /// Whether this wake is one of those looked at.
    public func isSampled(_ wake: WakeID) -> Bool { wake.low & ((1 << UInt64(thinning)) - 1) == 0 }

    /// A wake that is looked at brought its app, so long after APNs had taken it.
    public mutating func came(after latency: Milliseconds, now: Timestamp) {
        samples = (samples + [WakeHabit.tenths(latency)]).suffix(Self.samplesMax)
        // After a time to come the clock was set back: nothing is known of the rate.
        let since = takenAt <= now ? now.since(takenAt) : Self.interval
        if since < Self.interval / 2 {
            thinning = min(thinning + 1, Self.thinningMax)
        } else {
            var quiet = since / Self.interval
            while quiet >= 2, thinning > 0 {
                thinning -= 1
                quiet /= 2
            }
        }
        takenAt = now
    }

    /// The grace for a device that has none of its own; `nil`: too little is known.
    public func grace(_ policy: WakePolicy) -> Milliseconds? {
        policy.adaptive.learnedGrace(from: samples)
    }
}

/// Whose wakes say how long one may go unanswered.
public enum GraceSource: String, Sendable, CaseIterable {
    /// The device's own.
    case device
    /// The latencies of all devices of the app.
    case app
    /// Nobody's latencies: the grace is as the policy has it.
    case policy
}
