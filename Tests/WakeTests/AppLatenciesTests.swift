import Model
import Testing

@testable import Wake

/// SplitMix64.
private struct SeededGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// What the devices of an app know together.
@Suite struct AppLatenciesTests {
    private func policy(_ change: (inout AdaptivePolicy) -> Void = { _ in }) -> WakePolicy {
        var adaptive = AdaptivePolicy()
        adaptive.graceQuantile = 85
        adaptive.graceMin = 1_000
        adaptive.graceMax = 60_000
        change(&adaptive)
        return WakePolicy(adaptive: adaptive)
    }

    private func time(_ seconds: UInt64) -> Timestamp {
        Timestamp(milliseconds: seconds * 1_000)
    }

    /// One wake a minute, each so many seconds long.
    private func latencies(_ seconds: some Sequence<UInt64>) -> AppLatencies {
        var latencies = AppLatencies()
        for (index, latency) in seconds.enumerated() {
            latencies.came(after: latency * 1_000, now: time(60 * UInt64(index + 1)))
        }
        return latencies
    }

    @Test func aDeviceOfFewWakesGoesByItsAppAndThenByItsOwn() {
        let shared = latencies([5, 5, 5, 5, 5, 5, 5, 5]).grace(policy())
        #expect(shared == 5_100)
        var habit = WakeHabit()
        for _ in 0..<7 {
            habit.came(after: 20_000)
            #expect(habit.grace(policy(), app: shared) == 5_100)
            #expect(habit.graceSource(policy(), app: shared) == .app)
        }
        // Nobody knows enough.
        #expect(habit.grace(policy(), app: nil) == 60_000)
        #expect(habit.graceSource(policy(), app: nil) == .policy)
        habit.came(after: 20_000)
        #expect(habit.grace(policy(), app: shared) == 20_100)
        #expect(habit.graceSource(policy(), app: shared) == .device)
        // A policy under which nothing is learned.
        #expect(habit.grace(WakePolicy(), app: shared) == 60_000)
        #expect(habit.graceSource(WakePolicy(), app: shared) == .policy)
    }

    @Test func theGraceOfAnAppIsAQuantileWithinTheBounds() {
        #expect(latencies(1...7).grace(policy()) == nil)
        #expect(latencies(1...20).grace(policy()) == 17_100)
        // What phones held back is left out, and does not count as known.
        #expect(latencies(Array(1...20) + [60, 90, 3_000]).grace(policy()) == 17_100)
        #expect(latencies(Array(1...7) + [60, 90, 3_000]).grace(policy()) == nil)
        #expect(latencies(Array(repeating: 0, count: 9)).grace(policy()) == 1_000)
        #expect(latencies(1...20).grace(WakePolicy()) == nil)
    }

    @Test func oldWakesGo() {
        let many = latencies(
            Array(repeating: 50, count: 300) + Array(repeating: 4, count: 256))
        #expect(many.samples.count == 256)
        #expect(many.grace(policy { $0.graceQuantile = 100 }) == 4_100)
    }

    @Test func itIsKeptInARow() {
        var known = latencies(1...300)
        // Thinned out by wakes that come close together.
        for number in 0..<10 as Range<UInt64> {
            known.came(after: 3_000, now: time(18_000) + number)
        }
        let row = known.encoded
        #expect(row.count == 513)
        #expect(AppLatencies(encoded: row, takenAt: known.takenAt) == known)
        // Whatever the bytes, there is an answer.
        for count in 0...row.count {
            _ = AppLatencies(encoded: Array(row.prefix(count)), takenAt: .zero).grace(policy())
        }
        let nonsense = AppLatencies(
            encoded: Array(repeating: 255, count: 5_000), takenAt: time(1))
        #expect(nonsense.samples.count == 256 && nonsense.grace(policy()) == nil)
        #expect(nonsense.isSampled(WakeID(high: 0, low: 0)))
    }

    /// Wakes that come at random moments, so many in a second in the mean, and in a busy app at
    /// once: the row changes about once in a minute, and quick ones are not preferred.
    @Test(arguments: [0.01, 1, 1_000])
    func aRowChangesAboutOnceInAMinuteHoweverManyCome(perSecond: Double) {
        var random = SeededGenerator(seed: 7)
        var known = AppLatencies()
        var changes = 0
        let count = Int(min(200_000, 86_400 * perSecond))
        for number in 0..<count {
            let now = Timestamp(
                milliseconds: 1_000_000 + UInt64(Double(number) * 1_000 / perSecond))
            guard known.isSampled(WakeID(high: 0, low: random.next())) else { continue }
            changes += 1
            known.came(after: random.next() % 10_000, now: now)
        }
        let minutes = Double(count) / perSecond / 60
        #expect(Double(changes) <= minutes * 2 + 24)
        #expect(changes >= min(count, Int(minutes / 4)), "\(changes) in \(minutes) minutes")
    }

    @Test func ofManyWokenAtOnceTheQuickAreNotPreferred() {
        var random = SeededGenerator(seed: 8)
        var known = AppLatencies()
        // Announcements to 5,000 devices each: they come within ten seconds, evenly.
        for round in 0..<200 as Range<UInt64> {
            for number in 0..<5_000 as Range<UInt64> {
                let latency = number * 2
                guard known.isSampled(WakeID(high: 0, low: random.next())) else { continue }
                known.came(after: latency, now: time(3_600 * (round + 1)) + latency)
            }
        }
        let grace = known.grace(policy { $0.graceQuantile = 50 }) ?? 0
        #expect(grace > 2_500 && grace < 7_500, "\(grace)")
    }

    @Test func aClockSetBackDoesNotStopIt() {
        var known = latencies(1...20)
        known.came(after: 1_000, now: time(10))
        #expect(known.takenAt == time(10) && known.samples.count == 21)
        #expect(known.isSampled(WakeID(high: 0, low: 1)))
    }
}
