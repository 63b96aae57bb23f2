import EventLoop
import Telemetry

/// What the gateway counts.
final class GatewayMetrics: Sendable {
    let pushes: CounterFamily
    let streamsOpen: Gauge
    let streamsAllowed: Gauge
    let waiting: Gauge
    let goAways: CounterFamily
    let connections: CounterFamily
    let tokensMade: Counter
    let paused: Gauge
    let claimFailures: Counter
    let finishFailures: Counter
    let claimSeconds: Histogram
    let answerSeconds: Histogram
    /// When the oldest provider token in use was made, in monotonic milliseconds; 0: none.
    let oldestToken = Gauge()

    init(_ metrics: Metrics) {
        pushes = metrics.counters(
            "rouse_pushes_total", "Pushes by class, HTTP status and reason of their answers.",
            labels: ["kind", "status", "reason"])
        streamsOpen = metrics.gauge("rouse_push_streams_open", "Pushes without an answer yet.")
        streamsAllowed = metrics.gauge(
            "rouse_push_streams_allowed", "Streams that APNs allows on the open connections.")
        waiting = metrics.gauge("rouse_push_waiting", "Claimed pushes that wait for a stream.")
        goAways = metrics.counters(
            "rouse_push_goaways_total", "Connections that APNs asked to end.",
            labels: ["reason"])
        connections = metrics.counters(
            "rouse_push_connections_total", "Connections to APNs by what came of them.",
            labels: ["outcome"])
        tokensMade = metrics.counter(
            "rouse_push_provider_tokens_total", "Provider tokens made.")
        paused = metrics.gauge("rouse_push_credentials_paused", "Credentials that APNs refuses.")
        claimFailures = metrics.counter(
            "rouse_push_claim_failures_total", "Claims that the store failed.")
        finishFailures = metrics.counter(
            "rouse_push_finish_failures_total", "Answers that the store failed to take.")
        claimSeconds = metrics.histogram(
            "rouse_push_claim_seconds", "From the doorbell or timer to the claimed pushes.")
        answerSeconds = metrics.histogram(
            "rouse_push_answer_seconds", "From the claim of a push to its answer.")
        metrics.reading(
            "rouse_push_provider_token_age_seconds", "Age of the oldest provider token in use."
        ) { [oldestToken] in
            let made = UInt64(clamping: oldestToken.current)
            let now = SystemClock.monotonicMilliseconds()
            return made == 0 || now < made ? 0 : Double(now - made) / 1000
        }
    }
}
