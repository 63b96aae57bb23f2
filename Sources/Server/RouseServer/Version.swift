import Telemetry

extension Server {
    /// The program's.
    public static let version = "0.1.0"

    static func register(_ metrics: Metrics, place: StorePlace) {
        metrics.gauges(
            "rouse_build_info", "1, with what runs here as labels.", labels: ["version", "store"]
        )[version, place.isShared ? "postgresql" : "file"].set(1)
        ProcessMetrics.register(metrics)
    }
}
