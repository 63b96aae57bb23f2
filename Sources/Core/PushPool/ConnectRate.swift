import Model
import Wake

/// How many connections of a credential may be begun in a time, whatever its classes want: Apple
/// takes a pattern of connects and disconnects for an attack. Pure.
///
/// A few may be begun at once, and then one each `every`. Probes and campaigns, which have time,
/// leave half of the few to the others, and wakes leave one to alerts, so that a class whose
/// connections end again and again does not keep these from theirs.
struct ConnectRate: Equatable {
    let burst: UInt64
    let every: Milliseconds
    /// When as many may be begun at once as ever.
    private var fullAt = Instant(milliseconds: 0)

    init(burst: Int, every: Milliseconds) {
        self.burst = UInt64(max(2, burst))
        self.every = max(1, every)
    }

    /// When the next connection of a class may be begun; `nil`: now.
    func nextAt(_ kind: PushClass, now: Instant) -> Instant? {
        let hasTime = kind == .probe || kind == .campaign
        let most = hasTime ? burst - burst / 2 : kind == .wake ? burst - 1 : burst
        let spent = fullAt.since(now)
        let bearable = (most - 1) * every
        return spent <= bearable ? nil : now + (spent - bearable)
    }

    mutating func began(now: Instant) {
        fullAt = (fullAt > now ? fullAt : now) + every
    }
}
