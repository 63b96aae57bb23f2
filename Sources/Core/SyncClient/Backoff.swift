import Model

/// When to try again (connection.md, CON-14): full jitter, so that clients that lost the same
/// server do not come back together.
struct Backoff: Equatable, Sendable {
    private var failures: UInt64 = 0

    /// A delay for the next attempt.
    mutating func next(
        wasHealthy: Bool, isForeground: Bool, limits: ClientLimits, random: inout SplitMix64
    ) -> Milliseconds {
        if wasHealthy {
            failures = 0
            return random.upTo(limits.backoffHealthy)
        }
        let cap = isForeground ? limits.backoffForeground : limits.backoffBackground
        var bound = limits.backoffFirst
        for _ in 0..<min(failures, 32) where bound < cap { bound *= 2 }
        failures += 1
        return random.upTo(min(bound, cap))
    }

    /// Network change, foreground, push: from the start.
    mutating func reset() { failures = 0 }
}
