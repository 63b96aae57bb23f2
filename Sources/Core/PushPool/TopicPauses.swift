import Model

/// Topics that APNs does not take from one credential. Each rests by itself, and then one push
/// shows whether APNs takes it now. Pure.
///
/// There are no more than the credential has topics.
struct TopicPauses: Equatable {
    let pause: Milliseconds
    let pauseMax: Milliseconds
    private var entries: [String: Entry] = [:]

    private struct Entry: Equatable {
        var until: Instant
        var count: Int
        var reason: String
        /// One push after the pause is on its way.
        var isAsking = false
    }

    init(pause: Milliseconds, pauseMax: Milliseconds) {
        self.pause = pause
        self.pauseMax = pauseMax
    }

    /// APNs does not take a push because of its topic.
    ///
    /// - Returns: for how long the topic rests from now on; `nil`: it does already.
    mutating func refused(_ topic: String, reason: String, now: Instant) -> Milliseconds? {
        let known = entries[topic]
        if let known, known.until > now { return nil }
        let count = known?.count ?? 0
        let wait = min(pause << UInt64(min(count, 8)), pauseMax)
        entries[topic] = Entry(until: now + wait, count: count + 1, reason: reason)
        return wait
    }

    /// How many pushes of those topics can be sent that cannot have any number.
    func limits(now: Instant) -> [String: Int] {
        entries.mapValues { $0.until > now || $0.isAsking ? 0 : 1 }
    }

    /// A push is about to be sent.
    ///
    /// - Returns: whether it may be.
    mutating func take(_ topic: String, now: Instant) -> Bool {
        guard let entry = entries[topic] else { return true }
        guard entry.until <= now, !entry.isAsking else { return false }
        entries[topic]?.isAsking = true
        return true
    }

    func rests(_ topic: String, now: Instant) -> Bool {
        entries[topic].map { $0.until > now } ?? false
    }

    /// A push has come back, and what APNs said of it, if anything, was not about the topic.
    mutating func cameBack(_ topic: String) { entries[topic]?.isAsking = false }

    /// APNs has taken a push of the topic, or found fault with something it looks at later.
    ///
    /// - Returns: whether that ends a pause.
    mutating func taken(_ topic: String) -> Bool { entries.removeValue(forKey: topic) != nil }

    /// Those that rest, by name, for how long, and why.
    func resting(now: Instant) -> [(topic: String, wait: Milliseconds, reason: String)] {
        entries.sorted { $0.key < $1.key }.map {
            ($0.key, $0.value.until.since(now), $0.value.reason)
        }
    }
}
