import Foundation
import Testing

/// Weeks of a person's life with the app. One seed: ROUSE_SEED=N, and ROUSE_EVENTS=N of it; more
/// of them: ROUSE_WEEKS=500.
@Suite struct WeekTests {
    static let fixed: [UInt64] = Array(1...6)

    @Test func screensTellTheTruthForAWeek() async throws {
        let environment = ProcessInfo.processInfo.environment
        let events = environment["ROUSE_EVENTS"].flatMap(Int.init) ?? 300
        var seeds = Self.fixed
        if let seed = environment["ROUSE_SEED"].flatMap(UInt64.init) {
            seeds = [seed]
        } else {
            let count = environment["ROUSE_WEEKS"].flatMap(Int.init) ?? 2
            seeds += (0..<count).map { _ in UInt64.random(in: 1_000...UInt64(UInt32.max)) }
        }
        var reached = Reached()
        var (steps, judged, happened) = (0, 0, 0)
        for seed in seeds {
            let week = try Week(seed: seed)
            do {
                try await week.run(events: events)
            } catch {
                Issue.record("ROUSE_SEED=\(seed) ROUSE_EVENTS=\(week.events): \(error)")
            }
            // A run of one seed tells its story.
            if seeds.count == 1 { print(week.log.joined(separator: "\n")) }
            steps += week.clock.steps
            judged += week.judged
            happened += week.events
            reached.add(week.reached)
        }
        print(
            "lived \(seeds.count) weeks, \(happened) events, \(judged) times judged, \(steps) "
                + "steps; fresh: \(seeds.dropFirst(Self.fixed.count))")
        for (name, count) in reached.counts.sorted(by: { $0.key < $1.key }) {
            print("  \(name): \(count)")
        }
    }
}
