import EventLoop
import Foundation
import Model
import Wake

/// The time zones that the system knows.
final class SystemZones: ZoneClock {
    /// Zones are kept once they were asked for; there are fewer names than this.
    private static let keptMax = 2_048

    private let lock = Lock()
    private nonisolated(unsafe) var known: [ExactText: TimeZone?] = [:]  // guarded by `lock`

    func offset(of zone: String, at time: Timestamp) -> Int64? {
        let found = lock.withLock { () -> TimeZone? in
            let name = ExactText(zone)
            if let found = known[name] { return found }
            let found = TimeZone(identifier: zone)
            if known.count < Self.keptMax { known[name] = .some(found) }
            return found
        }
        guard let found else { return nil }
        let date = Date(timeIntervalSince1970: Double(time.milliseconds / 1_000))
        return Int64(found.secondsFromGMT(for: date))
    }
}
