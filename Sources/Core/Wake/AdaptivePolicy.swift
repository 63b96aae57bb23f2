public import Model

/// What an app may choose beyond one grace and one budget for all devices. As made it is the
/// classic policy: one missed wake demotes, grace and budget are the app's.
public struct AdaptivePolicy: StoredBytes, Equatable {
    /// In per cent: the part of a device's wakes that came within its grace. 0: the app's grace.
    /// A device that has too few of its own goes by those of all devices of its app.
    public var graceQuantile: UInt64 = 0
    /// Bounds of a learned grace.
    public var graceMin: Milliseconds = 20_000
    public var graceMax: Milliseconds = 300_000
    /// Wakes that must have come before their latencies count.
    public var graceSamples: UInt64 = 8
    /// Bounds of a device's own silent budget; 0 and 0: the app's. It begins at the app's,
    /// is halved by a no-show and grows by one with each wake that synced in time.
    public var budgetMin: UInt64 = 0
    public var budgetMax: UInt64 = 0
    /// So many misses of the last `demotionOf` wakes demote.
    public var demotionMisses: UInt64 = 1
    public var demotionOf: UInt64 = 1
    /// A device not heard of for so long is presumed gone; 0: never.
    public var goneAfter: Milliseconds = 0
    /// A device that missed so many of its last `doubtOf` wakes is doubted: it is alerted at once,
    /// whatever its user opened since. 0: none is.
    public var doubtMisses: UInt64 = 0
    public var doubtOf: UInt64 = 4
    /// A silent push is tried again when the last one to a doubted device is so old.
    public var doubtRetry: Milliseconds = 12 * 3_600_000

    public init() {}

    /// A device presumed gone gets one alert in this time.
    public static let goneInterval: Milliseconds = 7 * 86_400_000

    public var isBudgetAdaptive: Bool { budgetMax > 0 }

    /// The quantile of latencies in tenths of a second, by nearest rank, within the bounds; `nil`:
    /// nothing is to be learned, or they are too few. What took as long as the upper bound or
    /// longer was held back by the phone, and says nothing of how long those take that come.
    func learnedGrace(from latencies: [UInt16]) -> Milliseconds? {
        guard graceQuantile > 0 else { return nil }
        let sorted = latencies.filter { Milliseconds($0) * WakeHabit.unit < graceMax }.sorted()
        guard UInt64(sorted.count) >= graceSamples else { return nil }
        let rank = (UInt64(sorted.count) * graceQuantile + 99) / 100
        let value = sorted[min(sorted.count, max(1, Int(rank))) - 1]
        // A latency in tenths stands for all that begin with it.
        return min(max((Milliseconds(value) + 1) * WakeHabit.unit, graceMin), graceMax)
    }

    /// What makes no sense; `nil`: nothing.
    public var problem: String? {
        if graceQuantile > 100 { return "a grace quantile above 100" }
        if graceMin > graceMax { return "the least grace is above the most" }
        if graceSamples == 0 || graceSamples > UInt64(WakeHabit.latenciesMax) {
            return "grace samples must be 1 to \(WakeHabit.latenciesMax)"
        }
        if budgetMin > budgetMax { return "the least silent budget is above the most" }
        if budgetMax > UInt64(SilentBudget.capacity) {
            return "a silent budget above \(SilentBudget.capacity)"
        }
        if isBudgetAdaptive, budgetMin == 0 {
            return "a silent budget that shrinks to 0 could never grow again"
        }
        if demotionMisses == 0 || demotionMisses > demotionOf {
            return "demotion takes 1 to all of the wakes it looks at"
        }
        if doubtMisses > doubtOf { return "doubt takes no more than the wakes it looks at" }
        if doubtOf > UInt64(WakeHabit.outcomesMax) {
            return "doubt looks at \(WakeHabit.outcomesMax) wakes at most"
        }
        if demotionOf > UInt64(WakeHabit.outcomesMax) {
            return "demotion looks at \(WakeHabit.outcomesMax) wakes at most"
        }
        return nil
    }

    /// The form in a row; empty: classic.
    public var encoded: [UInt8] {
        if self == AdaptivePolicy() { return [] }
        var fields = FieldBytes()
        for (index, value) in numbers.enumerated() {
            fields.add(UInt8(index + 1), number: value)
        }
        return fields.bytes
    }

    /// `nil`: the bytes are cut off. Unknown fields are passed over.
    public init?(encoded: [UInt8]) {
        self.init()
        let isWhole = FieldBytes.forEach(in: encoded) { tag, bytes in
            let number = FieldBytes.number(bytes)
            switch tag {
            case 1: graceQuantile = number
            case 2: graceMin = number
            case 3: graceMax = number
            case 4: graceSamples = number
            case 5: budgetMin = number
            case 6: budgetMax = number
            case 7: demotionMisses = number
            case 8: demotionOf = number
            case 9: goneAfter = number
            case 10: doubtMisses = number
            case 11: doubtOf = number
            case 12: doubtRetry = number
            default: break
            }
        }
        guard isWhole else { return nil }
    }

    private var numbers: [UInt64] {
        [
            graceQuantile, graceMin, graceMax, graceSamples, budgetMin, budgetMax,
            demotionMisses, demotionOf, goneAfter, doubtMisses, doubtOf, doubtRetry,
        ]
    }
}

/// What a device's wakes came to of late: at most 72 bytes in its row.
public struct WakeHabit: Equatable, Sendable {
    public static let latenciesMax = 32
    public static let outcomesMax = 16
    /// Latencies are kept in these; longer ones than 65,535 of them as so many.
    static let unit: Milliseconds = 100

    /// From APNs' acceptance to HELLO, in tenths of a second, oldest first.
    public private(set) var latencies: [UInt16] = []
    /// Whether each wake was missed, newest in the lowest bit.
    public private(set) var misses: UInt16 = 0
    /// How many of them count.
    public private(set) var outcomes: UInt8 = 0
    /// The device's own silent budget; `nil`: the app's.
    public private(set) var budget: UInt8?

    public init() {}

    /// Reads the form stored in a device's row; what does not fit is left out.
    public init(encoded: [UInt8]) {
        guard encoded.count >= 4 else { return }
        misses = UInt16(encoded[0]) << 8 | UInt16(encoded[1])
        outcomes = min(encoded[2], UInt8(Self.outcomesMax))
        budget = encoded[3] == 0 ? nil : encoded[3]
        latencies = Self.latencies(in: encoded[4...]).suffix(Self.latenciesMax)
    }

    /// The form stored in a device's row; empty: nothing is known.
    public var encoded: [UInt8] {
        if self == WakeHabit() { return [] }
        let head = [UInt8(misses >> 8), UInt8(misses & 255), outcomes, budget ?? 0]
        return head + Self.bytes(of: latencies)
    }

    static func tenths(_ latency: Milliseconds) -> UInt16 { UInt16(clamping: latency / unit) }

    static func bytes(of latencies: [UInt16]) -> [UInt8] {
        latencies.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
    }

    /// A half at the end is left out.
    static func latencies(in bytes: ArraySlice<UInt8>) -> [UInt16] {
        stride(from: bytes.startIndex, to: bytes.endIndex - bytes.count % 2, by: 2).map {
            UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
        }
    }

    /// A wake brought the app, so long after APNs had taken it.
    mutating func came(after latency: Milliseconds) {
        latencies = (latencies + [Self.tenths(latency)]).suffix(Self.latenciesMax)
    }

    mutating func ended(missed: Bool, policy: WakePolicy) {
        misses = misses << 1 | (missed ? 1 : 0)
        outcomes = min(outcomes + 1, UInt8(Self.outcomesMax))
        let adaptive = policy.adaptive
        guard adaptive.isBudgetAdaptive else { return }
        let now = silentBudget(policy)
        let next = missed ? now / 2 : now + 1
        budget = UInt8(
            clamping: min(max(next, adaptive.budgetMin), adaptive.budgetMax))
    }

    /// The device has shown that it can be reached: what it missed before counts no more.
    mutating func forgive() {
        misses = 0
        outcomes = 0
    }

    /// Whether enough of the last wakes were missed.
    func isDemoted(by adaptive: AdaptivePolicy) -> Bool {
        missed(ofLast: adaptive.demotionOf) >= adaptive.demotionMisses
    }

    /// Whether so many were missed that the next would be for nothing.
    func isDoubted(by adaptive: AdaptivePolicy) -> Bool {
        adaptive.doubtMisses > 0 && missed(ofLast: adaptive.doubtOf) >= adaptive.doubtMisses
    }

    private func missed(ofLast count: UInt64) -> UInt64 {
        let looked = min(UInt64(outcomes), count)
        let mask = looked >= 16 ? UInt16.max : (1 << UInt16(looked)) - 1
        return UInt64((misses & mask).nonzeroBitCount)
    }

    /// How long an accepted wake may go unanswered: as the device's own wakes say; until enough of
    /// them are known, as those of its app do.
    ///
    /// - Parameter app: what `AppLatencies.grace` says; `nil`: too little is known of the app, too.
    public func grace(_ policy: WakePolicy, app: Milliseconds? = nil) -> Milliseconds {
        switch graceSource(policy, app: app) {
        case .device: policy.adaptive.learnedGrace(from: latencies) ?? policy.grace
        case .app: app ?? policy.grace
        case .policy: policy.grace
        }
    }

    public func graceSource(_ policy: WakePolicy, app: Milliseconds? = nil) -> GraceSource {
        if policy.adaptive.graceQuantile == 0 { return .policy }
        if policy.adaptive.learnedGrace(from: latencies) != nil { return .device }
        return app == nil ? .policy : .app
    }

    public func silentBudget(_ policy: WakePolicy) -> UInt64 {
        let adaptive = policy.adaptive
        guard adaptive.isBudgetAdaptive else { return policy.silentBudget }
        let own = budget.map { UInt64($0) } ?? policy.silentBudget
        return min(max(own, adaptive.budgetMin), adaptive.budgetMax)
    }
}
