import Model
import Wake

/// The alert rows of one device in memory: what the store keeps in its table, without what only
/// a store needs.
struct AlertBook {
    struct Alert: WaitingAlert {
        let seq: UInt64
        let conversation: ConversationID
        var queuedAt: Timestamp
        var sentAt: Timestamp?
        var phase: AlertPhase
        var summary: AlertSummary = .none
        var isUrgent = false
        let cause: AlertCause

        /// As APNs' slot has it: what was queued later speaks for the others.
        func isNewer(than other: Alert) -> Bool {
            (queuedAt, seq) > (other.queuedAt, other.seq)
        }
    }

    /// By `seq`, rising.
    private(set) var alerts: [Alert] = []

    var isEmpty: Bool { alerts.isEmpty }

    mutating func removeAll() { alerts.removeAll(keepingCapacity: true) }

    func index(of seq: UInt64) -> Int? {
        let place = place(of: seq)
        return place < alerts.count && alerts[place].seq == seq ? place : nil
    }

    /// Where an alert of `seq` is, or would be.
    private func place(of seq: UInt64) -> Int {
        guard let last = alerts.last, last.seq >= seq else { return alerts.count }
        var low = 0
        var high = alerts.count
        while low < high {
            let middle = (low + high) / 2
            if alerts[middle].seq < seq { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func insert(_ alert: Alert) { alerts.insert(alert, at: place(of: alert.seq)) }

    subscript(_ index: Int) -> Alert {
        get { alerts[index] }
        set { alerts[index] = newValue }
    }

    /// Takes those at or below `seq` out.
    mutating func removeCovered(through seq: UInt64) -> ArraySlice<Alert> {
        let count = place(of: seq + 1)
        let covered = alerts[..<count]
        alerts.removeFirst(count)
        return covered
    }

    /// The newest that waits, of one conversation or of all.
    func newestQueued(of conversation: ConversationID? = nil) -> Int? {
        alerts.lastIndex {
            $0.phase == .queued && (conversation == nil || $0.conversation == conversation)
        }
    }

    func lastSent(of conversation: ConversationID) -> Timestamp? {
        alerts.lazy.filter { $0.conversation == conversation }.compactMap(\.sentAt).max()
    }
}
