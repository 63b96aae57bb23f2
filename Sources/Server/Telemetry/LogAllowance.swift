import EventLoop

/// How many lines of one kind of event there may be in a while. What strangers and refused
/// requests cause is without end: some of it tells as much as all of it.
final class LogAllowance: Sendable {
    /// Lines of one kind in one `period`.
    static let linesMax = 100
    /// In milliseconds.
    static let period: UInt64 = 10_000
    /// Kinds remembered: their names are fixed, the limit keeps a mistake from eating memory.
    private static let kindsMax = 64

    private struct Kind {
        var since: UInt64
        var lines = 0
        var leftOut = 0
    }

    private let lock = Lock()
    private nonisolated(unsafe) var kinds: [String: Kind] = [:]  // guarded by `lock`

    /// Takes one line of this kind at this moment of a monotonic clock.
    ///
    /// - Returns: whether it may be written, and how many of the kind were left out before it.
    func take(_ kind: String, now: UInt64) -> (isAllowed: Bool, leftOut: Int) {
        lock.withLock {
            guard kinds[kind] != nil || kinds.count < Self.kindsMax else { return (true, 0) }
            var found = kinds[kind] ?? Kind(since: now)
            defer { kinds[kind] = found }
            var leftOut = 0
            if now >= found.since + Self.period {
                leftOut = found.leftOut
                found = Kind(since: now)
            }
            guard found.lines < Self.linesMax else {
                found.leftOut += 1
                return (false, 0)
            }
            found.lines += 1
            return (true, leftOut)
        }
    }

    /// The kinds of which lines were left out in periods that are over, each told once.
    func takeLeftOut(now: UInt64) -> [(kind: String, lines: Int)] {
        lock.withLock {
            var told: [(kind: String, lines: Int)] = []
            for (kind, found) in kinds
            where found.leftOut > 0 && now >= found.since + Self.period {
                told.append((kind, found.leftOut))
                kinds[kind] = Kind(since: now)
            }
            return told.sorted { $0.kind < $1.kind }
        }
    }
}
