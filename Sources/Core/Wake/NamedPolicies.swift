// Policies an app may start from.

extension WakePolicy {
    /// By name, the default first.
    public static let named: [(name: String, policy: WakePolicy)] = [
        ("doubt", .standard), ("classic", WakePolicy()), ("adaptive", .adaptive),
        ("k-of-n", .patient), ("alerts-only", .alertsOnly),
    ]

    /// What an app has that chooses none: half a minute of grace and between two silent pushes,
    /// and a device that missed 3 of its last 4 wakes is alerted at once.
    public static let standard: WakePolicy = {
        var policy = WakePolicy(grace: 30_000, silentSpacing: 30_000)
        policy.adaptive.doubtMisses = 3
        return policy
    }()

    /// Grace as each device's own wakes need it, and as many silent pushes as it answers.
    private static let adaptive: WakePolicy = {
        var policy = WakePolicy()
        policy.adaptive.graceQuantile = 85
        policy.adaptive.graceMax = 60_000
        policy.adaptive.budgetMin = 1
        policy.adaptive.budgetMax = 8
        return policy
    }()

    /// One miss is told and forgiven, two of three demote.
    private static let patient: WakePolicy = {
        var policy = WakePolicy()
        policy.adaptive.demotionMisses = 2
        policy.adaptive.demotionOf = 3
        return policy
    }()

    /// No silent push ever.
    private static let alertsOnly: WakePolicy = {
        var policy = WakePolicy()
        policy.silentBudget = 0
        return policy
    }()
}
