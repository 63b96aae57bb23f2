import Feed
import Telemetry

/// What the sender counts.
final class WebhookMetrics: Sendable {
    let deliveries: CounterFamily
    let events: Counter
    let deactivations: Counter
    let open: Gauge
    let pending: Gauge
    let oldestSeconds: Gauge
    let deactivated: Gauge
    let claimFailures: Counter
    let finishFailures: Counter
    let answerSeconds: Histogram

    init(_ metrics: Metrics) {
        deliveries = metrics.counters(
            "rouse_webhook_deliveries_total", "Attempts by the class of their answers.",
            labels: ["answer"])
        events = metrics.counter(
            "rouse_webhook_events_delivered_total", "Events in deliveries that were taken.")
        deactivations = metrics.counter(
            "rouse_webhook_deactivations_total", "Webhooks deactivated by the server.")
        open = metrics.gauge("rouse_webhook_deliveries_open", "Attempts under way.")
        pending = metrics.gauge(
            "rouse_webhook_events_pending", "Events kept until every webhook has them.")
        oldestSeconds = metrics.gauge(
            "rouse_webhook_oldest_event_seconds",
            "Age of the oldest of them that a webhook which is not deactivated is to get.")
        deactivated = metrics.gauge(
            "rouse_webhooks_deactivated", "Webhooks that the server deactivated.")
        claimFailures = metrics.counter(
            "rouse_webhook_claim_failures_total", "Claims that the store failed.")
        finishFailures = metrics.counter(
            "rouse_webhook_finish_failures_total", "Answers that the store failed to take.")
        answerSeconds = metrics.histogram(
            "rouse_webhook_answer_seconds", "From the start of an attempt to its answer.")
    }

    /// A closed set: a receiver cannot add to it.
    static func label(_ answer: DeliveryAnswer) -> String {
        switch answer {
        case .answered(410, _): "410"
        case .answered(429, _): "429"
        case .answered(503, _): "503"
        case .answered(let status, _) where (200..<600).contains(status): "\(status / 100)xx"
        case .answered: "other"
        case .failed: "none"
        case .notSent: "not_sent"
        }
    }
}
