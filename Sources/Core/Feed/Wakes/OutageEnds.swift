import Model
import Wake

// When the server was last back from an outage, and what waits a while after that. A clock that is
// ahead looks like an outage: what is over by it may be over only there.

extension WakeRules {
    /// `alive_at` is written so often.
    static let aliveInterval: Milliseconds = 2_000
    static let outageName = "outage_end"
    /// After an outage, or what looks like one to a clock that is ahead, what its time has ended is
    /// kept for so long: it may be shown or go on if the clock is set back.
    private static let endPause: Milliseconds = 10 * 60_000

    /// When we were last back from an outage; `nil`: none is known.
    static func outageEnd(
        in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> Timestamp? {
        try snapshot.record(MetaRecord.self, [.text(Self.outageName)])
            .map { min(Timestamp(milliseconds: $0.number), now) }
    }

    /// Until when nothing ends for good because its time is over; `nil`: it does.
    static func endsWait(
        in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> Timestamp? {
        let alive = try snapshot.record(MetaRecord.self, [.text(MetaRecord.aliveName)])
        if let alive {
            let absence = now.since(Timestamp(milliseconds: alive.number))
            // Nobody has noticed it yet.
            if absence > Self.aliveInterval + Self.gapTolerance { return now + Self.endPause }
        }
        guard let end = try outageEnd(in: snapshot, now: now), now < end + Self.endPause else {
            return nil
        }
        return end + Self.endPause
    }
}
