import Model
import Wire

/// The DELTAs sent and not yet acknowledged, and the page size that follows from how fast the
/// ACKs come (sync.md, SYN-20). A list of (to, bytes), never a difference of seq: pages skip
/// numbers.
///
/// Invariant: `deltas` is sorted by `to`; at most `limits.windowDeltas` elements.
struct DeliveryWindow: Equatable, Sendable {
    private struct Sent: Equatable, Sendable {
        var to: UInt64
        var bytes: Int
        var at: Instant
    }

    private var deltas: [Sent] = []
    private(set) var unacknowledgedBytes = 0
    private(set) var pageBytes: Int

    init(_ limits: SessionLimits) { pageBytes = limits.pageBytesMin }

    var unacknowledgedCount: Int { deltas.count }

    /// Bytes the next pushed page may have; `nil`: the window is full. Pages are not cut short to
    /// use up what little is left.
    func room(_ limits: SessionLimits) -> Int? {
        guard deltas.count < limits.windowDeltas else { return nil }
        let left = limits.windowBytes - unacknowledgedBytes
        return left >= limits.pageBytesMin || deltas.isEmpty ? min(pageBytes, left) : nil
    }

    mutating func sent(to: UInt64, bytes: Int, now: Instant) {
        deltas.append(Sent(to: to, bytes: bytes, at: now))
        unacknowledgedBytes += bytes
    }

    /// Frees every DELTA with `to` at or below `applied`.
    mutating func acknowledged(_ applied: UInt64, _ limits: SessionLimits, now: Instant) {
        let covered = deltas.prefix { $0.to <= applied }
        guard let slowest = covered.first else { return }
        if now.since(slowest.at) <= limits.quickAck {
            pageBytes = min(pageBytes * 2, limits.pageBytesMax)
        } else {
            pageBytes = max(pageBytes / 2, limits.pageBytesMin)
        }
        for delta in covered { unacknowledgedBytes -= delta.bytes }
        deltas.removeFirst(covered.count)
    }

    /// The client said anew where it stands: what was sent above that is sent again.
    mutating func restart() {
        deltas = []
        unacknowledgedBytes = 0
    }
}

extension SessionLimits {
    /// Room for a DELTA's own fields and the results of a full SYNC beside its entries.
    fileprivate var pageBytesMax: Int {
        max(min(windowBytes, afterWelcome.bodyBytes - (8 << 10)), 1)
    }

    fileprivate var pageBytesMin: Int { min(firstPageBytes, pageBytesMax) }
}
