import Model
import Testing

@testable import Wake

@Suite struct WakeHabitTests {
    private func policy(_ change: (inout AdaptivePolicy) -> Void) -> WakePolicy {
        var adaptive = AdaptivePolicy()
        change(&adaptive)
        return WakePolicy(adaptive: adaptive)
    }

    @Test func theClassicPolicyLearnsNothing() {
        var habit = WakeHabit()
        for _ in 0..<40 { habit.came(after: 1_000) }
        for _ in 0..<20 { habit.ended(missed: true, policy: WakePolicy()) }
        #expect(habit.grace(WakePolicy()) == 60_000)
        #expect(habit.silentBudget(WakePolicy()) == 3)
        #expect(habit.isDemoted(by: AdaptivePolicy()))
    }

    @Test func graceIsAQuantileOfItsOwnLatencies() {
        let policy = policy {
            $0.graceQuantile = 90
            $0.graceMin = 1_000
            $0.graceSamples = 10
        }
        var habit = WakeHabit()
        for second in 1...9 { habit.came(after: Milliseconds(second) * 1_000) }
        // Not enough are known.
        #expect(habit.grace(policy) == 60_000)
        habit.came(after: 50_000)
        // Of ten the ninth; a tenth of a second more for what was cut off.
        #expect(habit.grace(policy) == 9_100)
        var all = policy
        all.adaptive.graceQuantile = 100
        #expect(habit.grace(all) == 50_100)
        // Old ones go.
        for _ in 0..<32 { habit.came(after: 3_000) }
        #expect(habit.grace(all) == 3_100)
    }

    @Test func theRankOfAQuantileIsRoundedUp() {
        let policy = policy { $0.graceQuantile = 85 }
        var habit = WakeHabit()
        for second in 21...28 { habit.came(after: Milliseconds(second) * 1_000) }
        // 6.8 of eight: the seventh.
        #expect(habit.grace(policy) == 27_100)
    }

    @Test func graceStaysWithinItsBounds() {
        let policy = policy {
            $0.graceQuantile = 95
            $0.graceSamples = 1
        }
        var habit = WakeHabit()
        habit.came(after: 500)
        #expect(habit.grace(policy) == 20_000)
        habit = WakeHabit()
        habit.came(after: 299_990)
        #expect(habit.grace(policy) == 300_000)
        // A bound may lie within a tenth of a second.
        var odd = policy
        odd.adaptive.graceMax = 299_950
        habit = WakeHabit()
        habit.came(after: 299_920)
        #expect(habit.grace(odd) == 299_950)
        // What took as long or longer was held back: nothing is known still.
        habit = WakeHabit()
        habit.came(after: 300_000)
        #expect(habit.grace(policy) == 60_000)
        habit = WakeHabit()
        habit.came(after: .max)
        #expect(habit.grace(policy) == 60_000)
    }

    @Test func theBudgetIsHalvedByAMissAndGrowsByOne() {
        let policy = policy {
            $0.budgetMin = 1
            $0.budgetMax = 6
        }
        var habit = WakeHabit()
        func after(_ outcomes: String) -> [UInt64] {
            outcomes.map {
                habit.ended(missed: $0 == "x", policy: policy)
                return habit.silentBudget(policy)
            }
        }
        #expect(habit.silentBudget(policy) == 3)
        #expect(after("ooooo") == [4, 5, 6, 6, 6])
        #expect(after("xxxx") == [3, 1, 1, 1])
        #expect(after("oxoo") == [2, 1, 2, 3])
    }

    @Test func soManyOfTheLastWakesDemote() {
        let policy = policy {
            $0.demotionMisses = 2
            $0.demotionOf = 3
        }
        var habit = WakeHabit()
        func after(_ outcomes: String) -> String {
            String(
                outcomes.map {
                    habit.ended(missed: $0 == "x", policy: policy)
                    return habit.isDemoted(by: policy.adaptive) ? "D" : "-"
                })
        }
        #expect(after("xoox") == "----")
        #expect(after("ox") == "-D")
        habit.forgive()
        #expect(after("xx") == "-D")
        #expect(after("ooo") == "D--")
    }

    @Test func theRowIsSmallAndComesBackAsItWas() {
        let policy = policy {
            $0.budgetMin = 1
            $0.budgetMax = 6
        }
        #expect(WakeHabit().encoded == [])
        #expect(WakeHabit(encoded: []) == WakeHabit())
        var habit = WakeHabit()
        for step in 0..<100 {
            habit.came(after: Milliseconds(step) * 777)
            habit.ended(missed: step % 3 == 0, policy: policy)
            #expect(habit.encoded.count <= 72)
            #expect(WakeHabit(encoded: habit.encoded) == habit)
        }
        // A torn row is no reason to stop.
        for count in 0..<habit.encoded.count {
            _ = WakeHabit(encoded: Array(habit.encoded.prefix(count)))
        }
        _ = WakeHabit(encoded: Array(repeating: 255, count: 500))
    }

    @Test func aPolicyComesBackAsItWasAndNonsenseIsNamed() {
        #expect(AdaptivePolicy().encoded == [])
        #expect(AdaptivePolicy().problem == nil)
        var all = AdaptivePolicy()
        all.graceQuantile = 95
        all.graceMin = 5_000
        all.graceMax = 6_000
        all.graceSamples = 3
        all.budgetMin = 1
        all.budgetMax = 7
        all.demotionMisses = 2
        all.demotionOf = 5
        all.goneAfter = 86_400_000
        all.doubtMisses = 3
        all.doubtOf = 5
        all.doubtRetry = 3_600_000
        #expect(AdaptivePolicy(encoded: all.encoded) == all)
        #expect(all.problem == nil)
        #expect(AdaptivePolicy(encoded: [1, 0, 0]) == nil)
        let nonsense: [(inout AdaptivePolicy) -> Void] = [
            { $0.graceQuantile = 101 }, { $0.graceMin = 300_001 }, { $0.graceSamples = 0 },
            { $0.graceSamples = 33 }, { $0.budgetMin = 1 }, { $0.budgetMax = 33 },
            { $0.budgetMax = 2 }, { $0.demotionMisses = 0 }, { $0.demotionMisses = 2 },
            { $0.demotionOf = 17 }, { $0.doubtMisses = 5 }, { $0.doubtOf = 17 },
        ]
        for change in nonsense {
            var policy = AdaptivePolicy()
            change(&policy)
            #expect(policy.problem != nil, "\(policy)")
        }
    }
}
