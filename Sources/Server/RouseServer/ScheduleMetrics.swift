import Feed
import StoreService
import Telemetry

/// What came of messages and announcements with a time of their own. From the writer's thread.
final class ScheduleMetrics: Sendable {
    private let settled: CounterFamily
    private let pending: Gauge
    private let oldestLateSeconds: Gauge
    private let lateness: Histogram

    init(_ metrics: Metrics) {
        settled = metrics.counters(
            "rouse_scheduled_total", "Scheduled messages and announcements by what came of them.",
            labels: ["outcome"])
        pending = metrics.gauge("rouse_scheduled_pending", "Those that wait for their time.")
        oldestLateSeconds = metrics.gauge(
            "rouse_scheduled_oldest_late_seconds",
            "How long the one that is most overdue waits beyond its time.")
        lateness = metrics.histogram(
            "rouse_scheduled_lateness_seconds", "From the time asked for until it was published.")
    }

    func note(_ effects: ScheduleEffects) {
        if !effects.published.isEmpty { settled["published"].add(UInt64(effects.published.count)) }
        if effects.failed > 0 { settled["failed"].add(UInt64(effects.failed)) }
        if effects.cancelled > 0 { settled["cancelled"].add(UInt64(effects.cancelled)) }
        for duration in effects.published { lateness.observe(milliseconds: duration) }
        guard let backlog = effects.backlog else { return }
        pending.set(Int(clamping: backlog.pending))
        oldestLateSeconds.set(Int(clamping: backlog.lateness / 1_000))
    }
}
