import EventLoop

/// How long it took from a publish until a device was told, and until it had it: by app, as long as
/// these are few.
public final class DeliveryMetrics: Sendable {
    /// The name that all apps share that have no series of their own.
    private static let others = "other"

    /// The histograms of one app. Whoever observes often keeps them.
    public final class App: Sendable {
        /// To the DELTA or SYNC_REQUEST that tells a connected device.
        public let toldByFrame: Histogram
        /// To APNs' answer to a silent push.
        public let toldByWake: Histogram
        /// To APNs' answer to an alert.
        public let toldByAlert: Histogram
        /// To the ACK of a device that was connected.
        public let applied: Histogram

        init(byFrame: Histogram, byWake: Histogram, byAlert: Histogram, applied: Histogram) {
            (toldByFrame, toldByWake, toldByAlert) = (byFrame, byWake, byAlert)
            self.applied = applied
        }
    }

    private let metrics: Metrics
    private let told: HistogramFamily
    private let applied: HistogramFamily
    private let lock = Lock()
    private nonisolated(unsafe) var apps: [[UInt8]: App] = [:]  // guarded by `lock`

    public init(_ metrics: Metrics) {
        self.metrics = metrics
        told = metrics.histograms(
            "rouse_publish_told_seconds",
            "From the commit of a message until a device was told: the frame handed to a "
                + "connection, or the answer of APNs to a push. The first apps have series of "
                + "their own (metrics.apps), and all others share other.", labels: ["app", "by"])
        applied = metrics.histograms(
            "rouse_publish_applied_seconds",
            "From the commit of a message until a connected device acknowledged it; of each "
                + "connection one at a time. Apps as in rouse_publish_told_seconds.",
            labels: ["app"])
    }

    /// Those of this app; without series of its own, the ones that all such apps share.
    public subscript(_ app: String) -> App {
        lock.withLock {
            if let known = apps[Array(app.utf8)] { return known }
            let name = metrics.hasOwnSeries(app) ? app : Self.others
            if let known = apps[Array(name.utf8)] { return known }
            let made = App(
                byFrame: told[name, "frame"], byWake: told[name, "wake"],
                byAlert: told[name, "alert"], applied: applied[name])
            apps[Array(name.utf8)] = made
            return made
        }
    }
}
