public import Model

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The clocks of the device that the app runs on.
public struct DeviceClock: RouseClock {
    private let start = ContinuousClock.now

    public init() {}

    public var now: Instant {
        let passed = start.duration(to: .now).components
        let milliseconds = passed.seconds * 1_000 + passed.attoseconds / 1_000_000_000_000_000
        return Instant(milliseconds: UInt64(max(0, milliseconds)))
    }

    public var wall: Timestamp {
        Timestamp(milliseconds: UInt64(max(0, Date().timeIntervalSince1970 * 1_000)))
    }

    public func sleep(until moment: Instant) async throws {
        let left = Int64(clamping: moment.since(now))
        try await Task.sleep(for: .milliseconds(left), clock: .continuous)
    }
}
