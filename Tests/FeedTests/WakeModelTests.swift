import Testing
import Wake

@Suite struct WakeModelTests {
    /// Random lives keep every promise of waking.
    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func randomSchedulesKeepThePromises(seed: UInt64) throws {
        let model = try WakeModel(seed: seed)
        try model.run(steps: 800)
        #expect(model.violations == [])
        // The schedule is worth something only if all of it happened.
        for word in ["publish", "connect", "read", "silent"] {
            #expect(model.counts[word, default: 0] > 0, "\(word)")
        }
        // Pushes are bounded by what they are for.
        let published = model.counts["publish", default: 0]
        let read = model.counts["read", default: 0]
        let connects = model.counts["connect", default: 0]
        #expect(model.counts["alert", default: 0] <= 2 * published + 2 * published / 4 + 4)
        #expect(
            model.counts["badge", default: 0]
                <= 2 * read + model.counts["alert", default: 0] + connects + 4)
    }

    /// Nor do they depend on the policy: what a device learns is only when, not whether.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func learningDevicesKeepThePromises(seed: UInt64) throws {
        var adaptive = AdaptivePolicy()
        adaptive.graceQuantile = 90
        // Not below the classic one: the model holds demotions to it.
        adaptive.graceMin = 20_000
        adaptive.graceMax = 60_000
        adaptive.graceSamples = 4
        adaptive.budgetMin = 1
        adaptive.budgetMax = 6
        adaptive.demotionMisses = seed % 2 + 1
        adaptive.demotionOf = 3
        let model = try WakeModel(seed: seed, adaptive: adaptive)
        try model.run(steps: 800)
        #expect(model.violations == [])
        for word in ["publish", "connect", "read", "silent"] {
            #expect(model.counts[word, default: 0] > 0, "\(word)")
        }
    }

    /// Over all seeds everything occurs.
    @Test func theSchedulesReachEverything() throws {
        var counts: [String: Int] = [:]
        for seed in 1...4 {
            let model = try WakeModel(seed: UInt64(seed))
            try model.run(steps: 800)
            counts.merge(model.counts) { $0 + $1 }
        }
        for word in ["demotion", "crash", "alert", "badge", "behind at the end"] {
            #expect(counts[word, default: 0] > 0, "\(word): \(counts)")
        }
    }

    /// Each rule that is taken away is missed by a check.
    @Test(arguments: [
        (Sabotage.sweepWritesNoWake, "was not told"), (.publishWritesNoWake, "was not told"),
        (.gapIsNotSeen, "because we were down"), (.budgetIsForgotten, "silent push"),
        (.claimSeesNoSession, "beside the session"), (.alertIsForgotten, "twice"),
        (.flightIsForgotten, "in flight"), (.badgeIsForgotten, "shows"),
        (.helloIsForgotten, "came and was demoted"),
    ])
    func aMissingRuleIsNoticed(sabotage: Sabotage, sign: String) throws {
        for seed in 1...40 {
            let model = try WakeModel(seed: UInt64(seed), sabotage: sabotage)
            try model.run(steps: 800)
            if model.violations.contains(where: { $0.contains(sign) }) { return }
        }
        Issue.record("nothing was noticed")
    }
}
