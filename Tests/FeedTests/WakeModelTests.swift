import Foundation
import Testing
import Wake

@Suite struct WakeModelTests {
    /// Random lives keep every promise of waking.
    @Test func randomSchedulesKeepThePromises() throws {
        var counts: [String: Int] = [:]
        // In the last one a push is answered when its device has another token.
        for seed in Array(1...9) + [23] {
            let model = try WakeModel(seed: UInt64(seed))
            try model.run(steps: 600)
            #expect(model.violations == [], "seed \(seed)")
            expectFewPushes(model)
            counts.merge(model.counts) { $0 + $1 }
        }
        // The schedules are worth something only if all of it happened.
        for word in [
            "publish", "connect", "read", "silent", "alert", "badge", "campaign", "summary",
            "demotion", "crash", "no budget", "behind at the end", "in sync at the end",
            "dead at the end", "timed at the end", "token death", "token change",
            "unregistered", "bad token", "late burial", "old answer", "429", "not sent",
            "edit by its sender", "edit by the backend", "deletion by its sender",
            "deletion by the backend", "timed", "urgent", "passive", "range", "read range",
            "refresh off", "suspension", "clock back", "clock ahead",
        ] {
            #expect(counts[word, default: 0] > 0, "\(word): \(counts)")
        }
    }

    /// Pushes are bounded by what they are for.
    private func expectFewPushes(_ model: WakeModel) {
        func count(_ name: String) -> Int { model.counts[name, default: 0] }
        // Three phones are told, and one in six pushes is repeated.
        #expect(count("alert") <= 3 * count("publish") * 5 / 4 + 4)
        #expect(
            count("badge") <= 3 * (count("read") + count("deletion")) + count("alert")
                + count("connect") + 4)
    }

    /// `ROUSE_WAKE_LIVES` says how many more lives are led; a third of them are busy, and a third
    /// slow. 160 take some minutes.
    @Test func moreSchedulesKeepThePromises() throws {
        let environment = ProcessInfo.processInfo.environment
        let lives = environment["ROUSE_WAKE_LIVES"].flatMap(UInt64.init) ?? 6
        for number in 0..<lives {
            let kinds = [100, WakeModel.firstBusySeed, WakeModel.firstSlowSeed]
            let seed = number / 3 + kinds[Int(number % 3)]
            let model = try WakeModel(seed: seed)
            try model.run(steps: 600)
            #expect(model.violations == [], "seed \(seed)")
        }
    }

    /// Nor do they depend on the policy: what a device learns is only when, not whether.
    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func learningDevicesKeepThePromises(seed: UInt64) throws {
        let model = try WakeModel(seed: seed, adaptive: Self.adaptive(seed: seed))
        try model.run(steps: 600)
        #expect(model.violations == [])
        for word in ["publish", "connect", "read", "silent"] {
            #expect(model.counts[word, default: 0] > 0, "\(word)")
        }
    }

    static func adaptive(seed: UInt64) -> AdaptivePolicy {
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
        return adaptive
    }

    /// Each rule that is taken away is missed by a check.
    @Test(arguments: [
        (Sabotage.sweepWritesNoWake, "was not told"), (.publishWritesNoWake, "was not told"),
        (.deletionIsForgotten, "is deleted"), (.editIsForgotten, "which it has"),
        (.iconIsTakenForKnown, "shows"),
        (.badgeIsForgotten, "shows"),
        (.unreadIsMiscounted, "is told"), (.timedAlertIsLost, "was not told"),
        (.timedAlertIsEarly, "before its time"),
        (.budgetIsForgotten, "silent push"), (.refundIsForgotten, "for want of more"),
        (.burstIsNotRefunded, "got a summary"), (.claimSeesNoSession, "beside the session"),
        (.claimSeesNoSuspension, "suspended user"), (.alertsOvertakeTheWake, "overtook"),
        (.refreshIsTakenForOn, "ignores it"), (.restIsForgotten, "left alone"),
        (.allRestForOne, "changed phone"), (.newTokenRests, "rests for the old one"),
        (.alertIsForgotten, "twice"), (.flightIsForgotten, "in flight"),
        (.campaignIsForgotten, "campaign twice"), (.helloIsForgotten, "came and was demoted"),
        (.usefulNoShowDemotes, "for nothing to see"), (.deadTokenIsKept, "calls dead"),
        (.presentedTokenIsDropped, "has presented since"), (.oldTokenIsKept, "old token"),
        (.oldTokensAlertCounts, "about an old token"),
        (.gapIsNotSeen, "because we were down"), (.setBackIsNotSeen, "waits for another clock"),
    ])
    func aMissingRuleIsNoticed(sabotage: Sabotage, sign: String) throws {
        for seed in sabotage.firstSeed...sabotage.firstSeed + 40 {
            let model = try WakeModel(seed: UInt64(seed), sabotage: sabotage)
            try model.run(steps: 600)
            if model.violations.contains(where: { $0.contains(sign) }) { return }
        }
        Issue.record("nothing was noticed")
    }
}
