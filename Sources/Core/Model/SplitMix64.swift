/// A small generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
///
/// For jitter and for numbers that must differ but need not be secret; never for credentials.
public struct SplitMix64: RandomNumberGenerator, Equatable, Sendable {
    private var state: UInt64

    /// The same seed gives the same numbers.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0...bound.
    public mutating func upTo(_ bound: UInt64) -> UInt64 {
        bound == 0 ? 0 : UInt64.random(in: 0...bound, using: &self)
    }
}
