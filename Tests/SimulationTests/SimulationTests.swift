import Foundation
import Testing

/// Runs of the simulation. One seed: ROUSE_SEED=N; a long night: ROUSE_SIMULATIONS=10000.
struct SimulationTests {
    /// Seeds that are run each time: the first ones, and those that found something.
    static let fixed: [UInt64] =
        Array(1...12) + [14, 32, 101, 334_575_853, 1_115_160_758, 1_124_095_739]

    /// What the fixed and fresh seeds together must have come through.
    static let mustReach = [
        "the server killed", "killed with requests waiting", "a link cut", "a link half open",
        "cut inside a frame", "a hint lost", "a phone without network",
        "an app killed while it runs", "an app woken", "a commit fails: full",
        "a commit fails: conflict", "a commit fails: lostBeforeCommit",
        "a commit fails: lostAfterCommit", "a silent push", "a alert push", "a badge push",
        "a push answered 503", "a push answered 429", "a push never sent",
        "a push without an answer", "a push accepted and dropped", "an alert shown", "a demotion",
        "a recovery", "a SYNC_REQUEST", "a page with more behind it", "a publish repeated",
        "a result given again", "a session ended: superseded", "a silent phone judged",
        "messages compared", "history applied", "unread compared", "a feed read whole",
        "a removal told", "a notification of the app's own", "a notification taken away",
        "a notification judged", "an icon judged", "the icon of a phone forceQuit",
        "the icon of a phone suspended", "the screen of a phone forceQuit",
        "the screen of a phone suspended",
        "a page of a snapshot", "a digest compared", "an edit", "a message deleted for everyone",
        "a message deleted for oneself", "a conversation deleted", "a block", "a block ended",
        "a conversation muted or not", "metadata changed", "tokens revoked",
        "a user asked to log in anew", "a session asked anew", "a session logged in anew in place",
        "a user suspended", "a session ended: revoked", "a session ended: suspended",
        "a signal handed on", "a signal lost", "told: typing", "told: typingEnded",
        "a phone restored", "the server restored", "a reset: cursorTooOld",
        "a reset: epochChanged", "a number of another life", "a tail pushed",
    ]

    @Test func promisesHoldOverFaultsAndKills() throws {
        let environment = ProcessInfo.processInfo.environment
        var seeds = Self.fixed
        if let seed = environment["ROUSE_SEED"].flatMap(UInt64.init) {
            seeds = [seed]
        } else {
            let count = environment["ROUSE_SIMULATIONS"].flatMap(Int.init) ?? 4
            seeds += (0..<count).map { _ in UInt64.random(in: 1_000...UInt64(UInt32.max)) }
        }
        var reached = Reached()
        var steps = 0
        for seed in seeds {
            let simulation = try Simulation(seed: seed)
            do {
                try simulation.run()
            } catch {
                Issue.record("ROUSE_SEED=\(seed): \(error)")
            }
            steps += simulation.clock.steps
            reached.add(simulation.reached)
        }
        let fresh = seeds.dropFirst(Self.fixed.count)
        print("simulated \(seeds.count) seeds, \(steps) steps; fresh: \(fresh)")
        for (name, count) in reached.counts.sorted(by: { $0.key < $1.key }) {
            print("  \(name): \(count)")
        }
        if seeds.count > 1 {
            for name in Self.mustReach where reached[name] == 0 {
                Issue.record("never reached: \(name)")
            }
        }
    }

    /// The checkers can fail: each bug put in on purpose is found by the fixed seeds, or by others
    /// where a change of the rules has moved what these come through.
    @Test(arguments: Defect.allCases)
    func aBugIsFound(_ defect: Defect) throws {
        for seed in Self.fixed + Array(100..<200) {
            do {
                try Simulation(seed: seed, defect: defect).run()
            } catch {
                print("\(defect) found by seed \(seed): \(error)")
                return
            }
        }
        Issue.record("no seed finds \(defect)")
    }
}
