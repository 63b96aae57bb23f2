import Glibc

/// Chance from a seed (SplitMix64). Each thing that is drawn has a stream of its own, so that no
/// draw depends on the policy, on other users, or on which thread came first.
struct Draws {
    private var state: UInt64

    init(_ seed: UInt64, _ stream: UInt64) {
        state = Self.mixed(Self.mixed(seed) ^ (stream &* 0x9E37_79B9_7F4A_7C15))
    }

    static func mixed(_ number: UInt64) -> UInt64 {
        var value = number &+ 0x9E37_79B9_7F4A_7C15
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func number() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// From 0 up to, not including, 1.
    mutating func unit() -> Double { Double(number() >> 11) * 0x1p-53 }

    mutating func isTrue(_ share: Double) -> Bool { unit() < share }

    mutating func uniform(_ from: Double, _ to: Double) -> Double { from + (to - from) * unit() }

    mutating func exponential(mean: Double) -> Double { -mean * log(1 - unit()) }

    /// Half of what is drawn lies below `median`; `sigma` is the deviation of the logarithm.
    mutating func logNormal(median: Double, sigma: Double) -> Double {
        let radius = (-2 * log(1 - unit())).squareRoot()
        return median * exp(sigma * radius * cos(2 * Double.pi * unit()))
    }

    /// An index, as often as its weight says.
    mutating func index(of weights: [Double]) -> Int {
        var left = unit() * weights.reduce(0, +)
        for (index, weight) in weights.enumerated() {
            if left < weight { return index }
            left -= weight
        }
        return max(0, weights.count - 1)
    }
}
