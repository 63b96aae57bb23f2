import EventLoop
import Feed
import Model
import PushPool
import Telemetry
import Wake

/// What the gateway counts.
final class GatewayMetrics: Sendable {
    let pushes: CounterFamily
    let bytesSent: Counter
    let connectionsOpen: GaugeFamily
    let streamsOpen: GaugeFamily
    let streamsAllowed: GaugeFamily
    let waiting: GaugeFamily
    let queueDepth: GaugeFamily
    let queueAge: GaugeFamily
    /// Milliseconds.
    let oldestStream = Gauge()
    let goAways: CounterFamily
    let streamsRefused: CounterFamily
    let connections: CounterFamily
    let tokensMade: Counter
    let paused: Gauge
    let tripped: Gauge
    let breakerTrips: Counter
    let claimFailures: Counter
    let finishFailures: Counter
    let claimSeconds: Histogram
    let answerSeconds: Histogram
    let delivery: DeliveryMetrics
    /// When the oldest provider token in use was made, in monotonic milliseconds; 0: none.
    let oldestToken = Gauge()

    init(_ metrics: Metrics) {
        pushes = metrics.counters(
            "rouse_pushes_total", "Pushes by class, HTTP status and reason of their answers.",
            labels: ["class", "status", "reason"])
        bytesSent = metrics.counter(
            "rouse_push_sent_bytes_total", "Bytes written to sockets of APNs, TLS included.")
        connectionsOpen = metrics.gauges(
            "rouse_push_connections", "Connections to APNs that take pushes.", labels: ["class"])
        streamsOpen = metrics.gauges(
            "rouse_push_streams_open", "Pushes without an answer yet.", labels: ["class"])
        streamsAllowed = metrics.gauges(
            "rouse_push_streams_allowed", "Streams that APNs allows on the open connections.",
            labels: ["class"])
        waiting = metrics.gauges(
            "rouse_push_waiting", "Claimed pushes that wait for a stream.", labels: ["class"])
        queueDepth = metrics.gauges(
            "rouse_push_queue_depth",
            "Devices with a push that is due now and not claimed; one that has to wait for a "
                + "later moment is not counted, and 10,000 stands for more.",
            labels: ["class"])
        queueAge = metrics.gauges(
            "rouse_push_queue_oldest_seconds", "How long the oldest of them is due.",
            labels: ["class"])
        goAways = metrics.counters(
            "rouse_push_goaways_total", "Connections that APNs asked to end.",
            labels: ["reason"])
        streamsRefused = metrics.counters(
            "rouse_push_streams_refused_total",
            "Pushes that APNs did nothing with (REFUSED_STREAM) on a connection that goes on.",
            labels: ["class"])
        connections = metrics.counters(
            "rouse_push_connections_total", "Connections to APNs by what came of them.",
            labels: ["outcome"])
        tokensMade = metrics.counter(
            "rouse_push_provider_tokens_total", "Provider tokens made.")
        paused = metrics.gauge("rouse_push_credentials_paused", "Credentials that APNs refuses.")
        tripped = metrics.gauge(
            "rouse_push_credentials_tripped",
            "Credentials whose tokens, accepted before, are called wrong all at once.")
        breakerTrips = metrics.counter(
            "rouse_push_breaker_trips_total", "How often that was noticed.")
        claimFailures = metrics.counter(
            "rouse_push_claim_failures_total", "Claims that the store failed.")
        finishFailures = metrics.counter(
            "rouse_push_finish_failures_total", "Answers that the store failed to take.")
        claimSeconds = metrics.histogram(
            "rouse_push_claim_seconds", "From the doorbell or timer to the claimed pushes.")
        answerSeconds = metrics.histogram(
            "rouse_push_answer_seconds", "From the claim of a push to its answer.")
        delivery = DeliveryMetrics(metrics)
        metrics.reading(
            "rouse_push_oldest_stream_seconds", "Of the push that waits longest for an answer."
        ) { [oldestStream] in Double(oldestStream.current) / 1000 }
        metrics.reading(
            "rouse_push_provider_token_age_seconds", "Age of the oldest provider token in use."
        ) { [oldestToken] in
            let made = UInt64(clamping: oldestToken.current)
            let now = SystemClock.monotonicMilliseconds()
            return made == 0 || now < made ? 0 : Double(now - made) / 1000
        }
    }

    /// APNs took a push.
    ///
    /// - Parameter wall: milliseconds since 1970.
    func told(_ job: PushJob, wall: UInt64) {
        guard let publishedAt = job.publishedAt else { return }
        let waited = Timestamp(milliseconds: wall).since(publishedAt)
        let times = delivery[job.key.app.name]
        switch job.kind {
        case .silent: times.toldByWake.observe(milliseconds: waited)
        case .alert: times.toldByAlert.observe(milliseconds: waited)
        case .badge, .campaign: break
        }
    }

    /// How it stands with all credentials.
    func gauge(_ all: [PushCredentialStatus]) {
        for lane in PushClass.allCases {
            let lanes = all.flatMap(\.lanes).filter { $0.lane == lane }
            connectionsOpen[lane.name].set(lanes.reduce(0) { $0 + $1.connections })
            streamsOpen[lane.name].set(lanes.reduce(0) { $0 + $1.open })
            streamsAllowed[lane.name].set(lanes.reduce(0) { $0 + $1.allowed })
            waiting[lane.name].set(lanes.reduce(0) { $0 + $1.waiting })
        }
        let oldest = all.flatMap(\.lanes).map(\.oldestStream).max() ?? 0
        oldestStream.set(Int(clamping: oldest))
        paused.set(all.count { $0.pausedFor != nil })
        tripped.set(all.count(where: \.isTripped))
    }

    /// How much is due.
    ///
    /// - Parameter wall: milliseconds since 1970.
    func note(_ queues: [PushQueueDepth], wall: UInt64) {
        for lane in PushClass.allCases {
            let queue = queues.first { $0.lane == lane }
            let oldest = queue?.oldest.milliseconds ?? wall
            queueDepth[lane.name].set(queue?.count ?? 0)
            queueAge[lane.name].set(
                Int(clamping: (wall > oldest ? wall - oldest : 0) / 1000))
        }
    }
}
