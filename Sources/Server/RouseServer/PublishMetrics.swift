import Feed
import StoreService
import Telemetry

/// What was published, counted as it is committed. From the writer's thread.
final class PublishMetrics: Sendable {
    private let published: CounterFamily

    init(_ metrics: Metrics) {
        published = metrics.counters(
            "rouse_published_total",
            "Messages and announcements committed, by backends, devices and schedules, each once.",
            labels: ["kind"])
    }

    func note(_ effects: PublishEffects) {
        if effects.messages > 0 { published["message"].add(UInt64(effects.messages)) }
        if effects.announcements > 0 {
            published["announcement"].add(UInt64(effects.announcements))
        }
    }
}
