import Model

/// Whether a peer that was told something is still there (sync.md, SYN-23: only `applied`
/// answers). Runs while something told is uncovered.
struct SuspectWatch: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case fine
        /// Send PING; the session counts as dormant until it covers what it was told.
        case ping
        case close
    }

    /// Since when something told is uncovered without `applied` having risen; `nil`: nothing is.
    private(set) var toldSince: Instant?
    /// The session was found silent and has not covered what it was told since.
    private(set) var isSuspect = false
    private var lastSign = Instant(milliseconds: 0)
    private var pingedAt: Instant?
    private var lookAt: Instant?

    /// When `look` is due next.
    func deadline(_ limits: SessionLimits) -> Instant? {
        guard toldSince != nil else { return nil }
        if let pingedAt { return pingedAt + limits.suspectPing }
        return min(lastSign + limits.suspectAfter, lookAt ?? lastSign + limits.suspectAfter)
    }

    /// Something was told, or `applied` rose.
    mutating func update(isCovered: Bool, rose: Bool, limits: SessionLimits, now: Instant) {
        if isCovered {
            toldSince = nil
            pingedAt = nil
            lookAt = nil
        } else if toldSince == nil || rose {
            toldSince = now
            lastSign = now
            pingedAt = nil
            lookAt = now + limits.progressLook
        }
    }

    /// The peer was asked to come at `turn` (SYN-26): until then it owes no answer.
    mutating func excuse(until turn: Instant) {
        guard toldSince != nil else { return }
        toldSince = turn
        lastSign = turn
        pingedAt = nil
        lookAt = turn
    }

    /// A frame came. `isWeak`: PING, PONG, SIGNAL or APP_STATE, which do not count for ever.
    mutating func frameCame(isWeak: Bool, limits: SessionLimits, now: Instant) {
        guard let toldSince else { return }
        if isWeak && now.since(toldSince) > limits.suspectPatience { return }
        lastSign = max(lastSign, now)
        pingedAt = nil
    }

    /// The peer's TCP took bytes; `outstanding` is what it still has to take. A kernel takes
    /// bytes for an app that sleeps: once the patience is over, or after the PING, they count
    /// only while more than a PING is under way.
    mutating func bytesTaken(outstanding: Int, limits: SessionLimits, now: Instant) {
        guard let toldSince else { return }
        let isTransfer = outstanding > limits.pingBytes
        let isEarly = pingedAt == nil && now.since(toldSince) <= limits.suspectPatience
        guard isTransfer || isEarly else { return }
        lastSign = max(lastSign, now)
        pingedAt = nil
    }

    mutating func look(limits: SessionLimits, now: Instant) -> Verdict {
        guard toldSince != nil else { return .fine }
        if let pingedAt {
            return now.since(pingedAt) >= limits.suspectPing ? .close : .fine
        }
        lookAt = now + limits.progressLook
        guard now.since(lastSign) >= limits.suspectAfter else { return .fine }
        pingedAt = now
        isSuspect = true
        return .ping
    }

    /// The PING has not left yet: its time to be answered begins anew.
    mutating func wait(now: Instant) { pingedAt = now }

    /// The session covered what it was told.
    mutating func trust() { isSuspect = false }
}
