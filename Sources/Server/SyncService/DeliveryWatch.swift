import Feed
import Model
import SyncServer
import Telemetry

/// Measures how long the messages of one connection take: from the commit until the device is told,
/// and until it has acknowledged. One message at a time, the first of those that are not
/// acknowledged, so that a frame costs a comparison, and a connection that is far behind counts
/// with its longest wait.
struct DeliveryWatch {
    private var times: DeliveryMetrics.App?
    /// The head that the message has made; 0: none is measured.
    private var head: UInt64 = 0
    private var committedAt = Instant(milliseconds: 0)
    private var isTold = false
    private var trace: TraceContext?

    /// What has come about, for the log.
    enum Step: String {
        case told = "message.told"
        case applied = "message.applied"
    }

    /// The session has begun. Extensions are not measured: their acknowledgements are the app's to
    /// make.
    mutating func begin(_ times: @autoclosure () -> DeliveryMetrics.App, _ key: SessionKey) {
        if key.role == .app { self.times = times() }
    }

    mutating func changed(_ change: FeedChange, at: Instant) {
        guard head == 0, times != nil,
            change.kinds & 1 << UInt32(EntryKind.message.rawValue) != 0
        else { return }
        (head, committedAt, isTold) = (change.head, at, false)
        trace = change.trace
    }

    var isMeasuring: Bool { head > 0 }

    /// After each input of the session.
    ///
    /// - Parameter tell: is told of a message that belongs to a trace.
    mutating func look(
        _ progress: FeedProgress, now: Instant,
        tell: (Step, TraceContext, Milliseconds) -> Void
    ) {
        guard head > 0, let times else { return }
        // Another history has begun, in which the message has another place.
        guard progress.head >= head else {
            head = 0
            return
        }
        let waited = now.since(committedAt)
        if !isTold, max(progress.told, progress.applied) >= head {
            isTold = true
            times.toldByFrame.observe(milliseconds: waited)
            if let trace { tell(.told, trace, waited) }
        }
        if progress.applied >= head {
            times.applied.observe(milliseconds: waited)
            if let trace { tell(.applied, trace, waited) }
            head = 0
        }
    }
}
