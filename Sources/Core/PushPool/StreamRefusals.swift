import Model

/// How a connection holds back while APNs does nothing with pushes on it (REFUSED_STREAM), and is
/// not going away. Pure.
///
/// After each round of refusals half of the streams are used, and from the second round on
/// without an answer nothing is sent for a while, which doubles; then one push asks. An answer
/// ends the wait, and gives a stream back.
struct StreamRefusals: Equatable {
    let delay: Milliseconds
    let delayMax: Milliseconds
    /// Rounds since the last answer.
    private(set) var rounds = 0
    /// Until when nothing is sent.
    private(set) var until: Instant?
    /// Streams used; `nil`: as many as APNs allows.
    private(set) var most: Int?
    /// The last push that had been sent when the round began.
    private var lastTag: UInt64 = 0

    init(delay: Milliseconds, delayMax: Milliseconds) {
        self.delay = delay
        self.delayMax = delayMax
    }

    func rests(now: Instant) -> Bool { until.map { now < $0 } ?? false }

    /// APNs did nothing with pushes.
    ///
    /// - Parameters:
    ///   - tag: the newest of them.
    ///   - lastTag: the newest that was sent.
    ///   - open: streams that were open then.
    /// - Returns: for how long nothing is sent from now on, if that is longer than before.
    mutating func refused(
        _ tag: UInt64, lastTag: UInt64, open: Int, now: Instant
    ) -> Milliseconds? {
        // Those that were under way together are refused together.
        guard tag > self.lastTag else { return nil }
        self.lastTag = lastTag
        rounds += 1
        most = max(1, min(most ?? .max, open) / 2)
        guard rounds > 1 else { return nil }
        let wait = min(delay << UInt64(min(rounds - 2, 16)), delayMax)
        let isLonger = rounds == 2 || wait > min(delay << UInt64(min(rounds - 3, 16)), delayMax)
        until = now + wait
        return isLonger ? wait : nil
    }

    /// - Parameter allowed: streams that APNs allows.
    mutating func answered(allowed: Int) {
        rounds = 0
        until = nil
        most = most.flatMap { $0 + 1 < allowed ? $0 + 1 : nil }
    }
}
