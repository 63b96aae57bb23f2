public import Wake

/// A policy to try: one of the core's, as it is or with some of its numbers changed. What the
/// numbers mean, and whether they make sense, the core says.
public struct PolicyChoice: Equatable, Sendable {
    public let name: String
    public let policy: WakePolicy

    public init(name: String, policy: WakePolicy) {
        self.name = name
        self.policy = policy
    }

    /// Why a choice is none.
    public struct Mistake: Error, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// Reads `NAME` or `NAME/key=number/...`; the keys are those of `rouse app set`.
    public init(_ text: String) throws(Mistake) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let known = WakePolicy.named.map(\.name)
        guard let named = WakePolicy.named.first(where: { $0.name == parts[0] }) else {
            throw Mistake(
                description:
                    "no policy `\(parts[0])`: there are \(known.joined(separator: ", "))")
        }
        var policy = named.policy
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", omittingEmptySubsequences: false)
            guard pair.count == 2, let field = Self.fields.first(where: { $0.key == pair[0] })
            else {
                throw Mistake(
                    description: "`\(part)` changes no policy; numbers to change are "
                        + Self.fields.map(\.key).joined(separator: ", "))
            }
            guard let number = UInt64(pair[1]), field.range.contains(number) else {
                throw Mistake(
                    description: "\(field.key) is a number from \(field.range.lowerBound) to "
                        + "\(field.range.upperBound), not `\(pair[1])`")
            }
            policy[keyPath: field.path] = number * field.factor
        }
        if let problem = policy.adaptive.problem {
            throw Mistake(description: "\(text): \(problem)")
        }
        self.init(name: text, policy: policy)
    }

    private struct Field: Sendable {
        let key: String
        let range: ClosedRange<UInt64>
        let path: any WritableKeyPath<WakePolicy, UInt64> & Sendable
        var factor: UInt64 = 1

        init(
            _ key: String, _ range: ClosedRange<UInt64>,
            _ path: any WritableKeyPath<WakePolicy, UInt64> & Sendable, times factor: UInt64 = 1
        ) {
            self.key = key
            self.range = range
            self.path = path
            self.factor = factor
        }
    }

    /// As the admin interface has them.
    private static let fields = [
        Field("grace_seconds", 1...3_600, \.grace, times: 1_000),
        Field("silent_budget", 0...32, \.silentBudget),
        Field("silent_window_seconds", 1...86_400, \.silentWindow, times: 1_000),
        Field("silent_spacing_seconds", 0...86_400, \.silentSpacing, times: 1_000),
        Field("alert_expiration_seconds", 0...2_592_000, \.alertExpiration, times: 1_000),
        Field("grace_quantile", 0...100, \.adaptive.graceQuantile),
        Field("grace_min_seconds", 1...3_600, \.adaptive.graceMin, times: 1_000),
        Field("grace_max_seconds", 1...3_600, \.adaptive.graceMax, times: 1_000),
        Field("grace_samples", 1...32, \.adaptive.graceSamples),
        Field("silent_budget_min", 0...32, \.adaptive.budgetMin),
        Field("silent_budget_max", 0...32, \.adaptive.budgetMax),
        Field("demotion_misses", 1...16, \.adaptive.demotionMisses),
        Field("demotion_of", 1...16, \.adaptive.demotionOf),
        Field("gone_after_days", 0...3_650, \.adaptive.goneAfter, times: 86_400_000),
        Field("doubt_misses", 0...16, \.adaptive.doubtMisses),
        Field("doubt_of", 1...16, \.adaptive.doubtOf),
        Field("doubt_retry_hours", 1...8_760, \.adaptive.doubtRetry, times: 3_600_000),
    ]
}

extension PolicyChoice {
    /// The policy's numbers, as the admin interface has them.
    public var numbers: [(key: String, number: UInt64)] {
        Self.fields.map { (key: $0.key, number: policy[keyPath: $0.path] / $0.factor) }
    }

    /// Of the core's policies.
    public static var names: [String] { WakePolicy.named.map(\.name) }
}
