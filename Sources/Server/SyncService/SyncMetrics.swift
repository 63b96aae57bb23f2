public import Telemetry
import Wire

/// What the device port counts.
public struct SyncMetrics: Sendable {
    let accepted: Counter
    let open: Gauge
    let handshaking: Gauge
    let handshakeFailures: CounterFamily
    let resumed: Counter
    let handshakeSeconds: Histogram
    let closes: CounterFamily
    let framesReceived: FrameCounters
    let framesSent: FrameCounters
    let storeFailures: CounterFamily
    let logins: CounterFamily
    let digests: CounterFamily
    let digestObjects: Counter
    let rateLimited: CounterFamily
    let gaveWay: CounterFamily
    let signals: CounterFamily
    let poisonPages: Counter
    let pushedByTail: Counter
    let pushedByRead: Counter
    let delivery: DeliveryMetrics

    public init(_ metrics: Metrics) {
        accepted = metrics.counter("rouse_connections_accepted_total", "Device connections.")
        open = metrics.gauge("rouse_connections_open", "Device connections open now.")
        handshaking = metrics.gauge(
            "rouse_handshakes_in_flight", "TLS handshakes under way.")
        handshakeFailures = metrics.counters(
            "rouse_tls_failures_total", "TLS connections that failed, by stage.",
            labels: ["stage"])
        resumed = metrics.counter(
            "rouse_tls_resumed_total", "TLS handshakes that went on with an earlier session.")
        handshakeSeconds = metrics.histogram(
            "rouse_tls_handshake_seconds", "From accept to the end of the TLS handshake.")
        closes = metrics.counters(
            "rouse_connections_closed_total", "CLOSE frames sent or received, by code.",
            labels: ["code"])
        framesReceived = FrameCounters(
            metrics.counters(
                "rouse_frames_received_total", "Frames from devices.", labels: ["type"]))
        framesSent = FrameCounters(
            metrics.counters(
                "rouse_frames_sent_total", "Frames to devices.", labels: ["type"]))
        storeFailures = metrics.counters(
            "rouse_session_store_failures_total", "Requests of sessions that the store failed.",
            labels: ["kind"])
        logins = metrics.counters(
            "rouse_sessions_total", "Sessions by how they began or were refused.",
            labels: ["outcome"])
        digests = metrics.counters(
            "rouse_digests_total", "Digests of clients compared at an equal cursor.",
            labels: ["result"])
        // At 0 from the start: an alert sees a rise only from a value that it has seen.
        for result in ["equal", "mismatch"] { digests[result].add(0) }
        digestObjects = metrics.counter(
            "rouse_digest_objects_total", "Objects of the server in the digests compared.")
        rateLimited = metrics.counters(
            "rouse_rate_limited_total", "Refused because a peer asked too much.",
            labels: ["what"])
        gaveWay = metrics.counters(
            "rouse_connections_gave_way_total",
            "Connections closed because what they held for longest was needed for others.",
            labels: ["what"])
        poisonPages = metrics.counter(
            "rouse_poison_pages_total",
            "Connections on which a page never acknowledged is sent entry by entry.")
        let pushed = metrics.counters(
            "rouse_deltas_pushed_total",
            "DELTAs pushed to live devices: made of what a commit handed over (tail), or of a page "
                + "that was read (read).",
            labels: ["by"])
        pushedByTail = pushed["tail"]
        pushedByRead = pushed["read"]
        delivery = DeliveryMetrics(metrics)
        signals = metrics.counters(
            "rouse_signals_total", "Signals of clients, handed on.", labels: ["kind"])
    }
}

/// The counters of a family by type of frame, looked up once: every frame counts in one.
struct FrameCounters: Sendable {
    /// By the type's byte; a byte that is no type has one that nobody can see.
    private let counters: [Counter]

    init(_ family: CounterFamily) {
        let top = FrameType.allCases.map { Int($0.rawValue) }.max() ?? 0
        let none = Counter()
        var counters = [Counter](repeating: none, count: top + 1)
        for type in FrameType.allCases { counters[Int(type.rawValue)] = family["\(type)"] }
        self.counters = counters
    }

    subscript(_ type: FrameType) -> Counter { counters[Int(type.rawValue)] }
}
