import Foundation
import Testing

/// Weeks of a person's life with the app, two of the fixed ones in every run. One seed:
/// ROUSE_WEEK=N, and ROUSE_EVENTS=N of it; all fixed ones and fresh ones: ROUSE_WEEKS=500.
@Suite struct WeekTests {
    static let fixed: [UInt64] = Array(1...3)

    /// What so many weeks together must have come through. Eleven miss one of the rarer ones now
    /// and then.
    private static let enough = 30
    static let mustReach = [
        "a wake", "a background refresh", "killed in the middle", "a wake before first unlock",
        "a device restarted", "a device is swiped away", "a device loses the app to others",
        "a device flies", "a device is tapped", "a device gets a new version", "another token",
        "a conversation muted or not", "a conversation left", "an edit", "a message withdrawn",
        "something read on a device", "a push lost", "a push delayed", "a push doubled",
        "a push dropped", "a push: alert", "a push: background", "completed: new_data",
        "completed: no_data", "completed: failed", "the server killed", "a notification judged",
        "a notification that must stand", "an icon judged", "a list judged",
        "an open conversation judged", "an alert judged, the app force_quit",
        "an alert shown in front", "a tidy screen judged, the app foreground",
        "a tidy screen judged, the app suspended",
    ]

    /// What every run lives.
    private static let few = 2

    @Test func screensTellTheTruthForAWeek() async throws {
        let environment = ProcessInfo.processInfo.environment
        let events = environment["ROUSE_EVENTS"].flatMap(Int.init) ?? 200
        var seeds = Self.fixed
        if let seed = environment["ROUSE_WEEK"].flatMap(UInt64.init) {
            seeds = [seed]
        } else {
            let count = environment["ROUSE_WEEKS"].flatMap(Int.init) ?? 0
            if count == 0 { seeds = Array(seeds.prefix(Self.few)) }
            seeds += (0..<count).map { _ in UInt64.random(in: 1_000...UInt64(UInt32.max)) }
        }
        var reached = Reached()
        var (steps, judged, happened) = (0, 0, 0)
        for seed in seeds {
            let week = try Week(seed: seed)
            do {
                try await week.run(events: events)
            } catch {
                Issue.record("ROUSE_WEEK=\(seed) ROUSE_EVENTS=\(week.events): \(error)")
                // What led to it, since interleaved tasks may lead elsewhere the next time.
                print(week.log.suffix(150).joined(separator: "\n"))
            }
            // A run of one seed tells its story.
            if seeds.count == 1 { print(week.log.joined(separator: "\n")) }
            steps += week.clock.steps
            judged += week.judged
            happened += week.events
            reached.add(week.reached)
            if seeds.count > 10 {
                print("lived the week \(seed): \(week.events) events, \(week.judged) times judged")
                fflush(nil)
            }
        }
        print(
            "lived \(seeds.count) weeks, \(happened) events, \(judged) times judged, \(steps) "
                + "steps; fresh: \(seeds.dropFirst(Self.fixed.count))")
        for (name, count) in reached.counts.sorted(by: { $0.key < $1.key }) {
            print("  \(name): \(count)")
        }
        if seeds.count >= Self.enough, events >= 200 {
            for name in Self.mustReach where reached[name] == 0 {
                Issue.record("never reached: \(name)")
            }
        }
    }
}
