import Feed
import Model
import Wake

/// Refusals of tokens that APNs had accepted, until it is clear whether it is the tokens that are
/// wrong: later pushes of the same topic that are taken show it, at once in a stream of pushes,
/// so that what came of them is written down in the order of the answers. Pure.
///
/// Each holds its device's lease, so there are no more than pushes under way.
struct Verdicts {
    struct Verdict {
        let push: HeldPush
        let reply: PushReply
        let since: Instant
        var topic: String { push.job.request.topic }
    }

    /// Acceptances that clear one refusal: more refusals than that trip the breaker.
    let share: Int
    let delay: Milliseconds
    private var held: [Verdict] = []
    /// Acceptances of a topic since its oldest refusal that is held.
    private var credits: [String: Int] = [:]

    init(share: Int, delay: Milliseconds) {
        self.share = share
        self.delay = delay
    }

    var isEmpty: Bool { held.isEmpty }

    mutating func add(_ push: HeldPush, _ reply: PushReply, now: Instant) {
        held.append(Verdict(push: push, reply: reply, since: now))
    }

    /// A push to a token that APNs had accepted was taken.
    ///
    /// - Returns: the refusal that this clears, if it clears one.
    mutating func taken(_ topic: String) -> Verdict? {
        guard let first = held.firstIndex(where: { $0.topic == topic }) else { return nil }
        let count = (credits[topic] ?? 0) + 1
        guard count >= share else {
            credits[topic] = count
            return nil
        }
        let cleared = held.remove(at: first)
        credits[topic] = held.contains { $0.topic == topic } ? 0 : nil
        return cleared
    }

    /// Those about which nothing more will be learned: one alone after a moment, and several in a
    /// row that none was taken between only when their leases come to an end.
    mutating func due(reserve: Milliseconds, now: Instant) -> [Verdict] {
        guard held.contains(where: { now.since($0.since) >= delay }) else { return [] }
        var ready: [Verdict] = []
        for verdict in held where now.since(verdict.since) >= delay {
            let isDoubtful =
                credits[verdict.topic] == nil
                && held.count { $0.topic == verdict.topic } > 1
            if !isDoubtful || verdict.push.leaseEnd(reserve: reserve) <= now {
                ready.append(verdict)
            }
        }
        let ids = Set(ready.map(\.push.job.key))
        held.removeAll { ids.contains($0.push.job.key) }
        for topic in Set(ready.map(\.topic)) where !held.contains(where: { $0.topic == topic }) {
            credits[topic] = nil
        }
        return ready
    }

    mutating func takeAll() -> [Verdict] {
        defer {
            held = []
            credits = [:]
        }
        return held
    }
}
