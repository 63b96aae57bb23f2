import Feed
import Model
import StoreService
import Telemetry
import Wake

/// What came of wakes, counted as it is committed. From the writer's thread.
final class WakeMetrics: Sendable {
    private let outcomes: CounterFamily
    private let demotions: Counter
    private let recoveries: Counter
    private let alertsSaved: Counter
    private let alertsTimed: Counter
    private let campaignPushes: CounterFamily
    private let campaignsStopped: Counter
    private let latencies: [WakeLatency.Stage: Histogram]

    init(_ metrics: Metrics) {
        outcomes = metrics.counters(
            "rouse_wakes_total", "Silent pushes by what came of them.", labels: ["outcome"])
        demotions = metrics.counter(
            "rouse_wake_demotions_total", "Devices that missed a wake: alerts from then on.")
        recoveries = metrics.counter(
            "rouse_wake_recoveries_total", "Such devices that have synced again.")
        alertsSaved = metrics.counter(
            "rouse_alerts_saved_total", "Silent pushes that brought a message without an alert.")
        alertsTimed = metrics.counter(
            "rouse_alerts_timed_total", "Alerts whose own time has come.")
        campaignPushes = metrics.counters(
            "rouse_campaign_pushes_total",
            "Answers to pushes of campaigns: accepted, refused for good, or to be sent again.",
            labels: ["outcome"])
        campaignsStopped = metrics.counter(
            "rouse_campaigns_stopped_total",
            "Campaigns that stopped themselves because their pushes were rejected.")
        latencies = Dictionary(
            uniqueKeysWithValues: WakeLatency.Stage.allCases.map { stage in
                (
                    stage,
                    metrics.histogram(
                        "rouse_wake_\(stage.rawValue)_seconds",
                        "From sending a silent push until it was \(stage.rawValue).")
                )
            })
        let outcomes = self.outcomes
        metrics.reading(
            "rouse_wake_no_show_ratio", "Of silent pushes whose grace is over, those not heeded."
        ) {
            // One that comes late was a no-show first.
            let missed = outcomes[WakeOutcome.noShow.name].current
            let heeded =
                outcomes[WakeOutcome.synced.name].current
                + outcomes[WakeOutcome.connectedNotSynced.name].current
            return missed + heeded == 0 ? 0 : Double(missed) / Double(missed + heeded)
        }
    }

    func note(_ effects: WakeEffects) {
        demotions.add(UInt64(effects.demotions))
        recoveries.add(UInt64(effects.recoveries))
        alertsTimed.add(UInt64(effects.released))
        for outcome in effects.outcomes {
            outcomes[outcome.name].add()
            if outcome == .synced { alertsSaved.add() }
        }
        for event in effects.campaigns { campaignPushes[event.kind.name].add() }
        campaignsStopped.add(UInt64(effects.campaignsStopped))
        for latency in effects.latencies {
            latencies[latency.stage]?.observe(milliseconds: latency.duration)
        }
    }
}

extension CampaignEvent.Kind {
    fileprivate var name: String {
        switch self {
        case .accepted: "accepted"
        case .refused: "refused"
        case .again: "again"
        }
    }
}
