import Model
import Wake

/// What all devices of the app have learned of grace, at each time of a run: what a device goes by
/// whose own wakes are too few.
///
/// Users are lived one after the other, and this is the only thing that passes between them. So
/// it is found out beforehand, by a trial: the first users are lived, the latencies of their wakes
/// are put in order, and the core's own sample is taken of them.
struct SharedGrace: Equatable {
    /// A wake that brought its app.
    struct Arrival {
        let at: Timestamp
        let wake: WakeID
        let latency: Milliseconds
    }

    private struct Step: Equatable {
        let from: Timestamp
        let grace: Milliseconds?
    }

    private var steps: [Step] = []

    init(_ arrivals: [Arrival], policy: WakePolicy) {
        var latencies = AppLatencies()
        let inOrder = arrivals.sorted { ($0.at, $0.wake.low) < ($1.at, $1.wake.low) }
        for arrival in inOrder where latencies.isSampled(arrival.wake) {
            latencies.came(after: arrival.latency, now: arrival.at)
            let grace = latencies.grace(policy)
            if grace != steps.last?.grace { steps.append(Step(from: arrival.at, grace: grace)) }
        }
    }

    /// `nil`: too little was known by then.
    func grace(at now: Timestamp) -> Milliseconds? {
        var (low, high) = (0, steps.count)
        while low < high {
            let middle = (low + high) / 2
            if steps[middle].from <= now { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : steps[low - 1].grace
    }
}
