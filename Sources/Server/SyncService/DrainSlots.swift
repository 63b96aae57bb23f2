import Model

/// When each of many clients is to connect again after a drain: one after the other over the time
/// there is, so that the next server is not stormed. Chance alone would leave crowds.
enum DrainSlots {
    /// The turn of the connection `number` (from 0) of `count`, in milliseconds: at least
    /// 0 and below `time`.
    static func slot(_ number: Int, of count: Int, within time: Milliseconds) -> Milliseconds {
        precondition(number >= 0 && number < count, "connection \(number) of \(count)")
        let (product, overflow) = time.multipliedReportingOverflow(by: UInt64(number))
        // So long a drain need not be divided to the millisecond.
        return overflow ? time / UInt64(count) * UInt64(number) : product / UInt64(count)
    }
}

/// What the connections of one loop are told while its node drains: when to come back, at the
/// latest by when they are closed.
struct DrainPlan {
    /// When the process ends; `nil`: it goes on without devices.
    let ends: Instant?
    /// Other nodes take the devices, so that nobody has to wait for this process's successor.
    let isElsewhere: Bool
    /// Connections that were told; each has the turn after the one before.
    private var told = 0

    /// How long the next process may take until it listens. No slot lies before: who came too
    /// early would be refused and back off, for longer than the restart takes.
    static let restartTime: Milliseconds = 2_000
    /// How long a balancer may take to find that this node is not ready: who came sooner could be
    /// sent here again.
    static let noticeTime: Milliseconds = 2_000
    /// After its slot a connection is closed, if the process does not end before.
    static let farewellTime: Milliseconds = 10_000
    /// Clients a second and loop that come back; a handshake and a login cost about 1 ms.
    static let returnsPerSecond: UInt64 = 250

    init(ends: Instant?, isElsewhere: Bool) {
        precondition(ends != nil || isElsewhere, "a node that goes on sends its devices elsewhere")
        (self.ends, self.isElsewhere) = (ends, isElsewhere)
    }

    /// The next connection of `count`.
    mutating func next(of count: Int, now: Instant) -> (deadline: Milliseconds, slot: Milliseconds)
    {
        let count = max(1, count)
        let spread = 1_000 * UInt64(count) / Self.returnsPerSecond
        let turn = DrainSlots.slot(told % count, of: count, within: spread)
        told += 1
        let left = ends.map { $0 > now ? $0.since(now) : 0 }
        let slot = (isElsewhere ? Self.noticeTime : (left ?? 0) + Self.restartTime) + turn
        return (left ?? slot + Self.farewellTime, slot)
    }
}
