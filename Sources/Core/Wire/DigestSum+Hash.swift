/// What a digest counts (HIS-30).
public enum DigestKind: UInt8, Sendable {
    case conversation = 1
    case readMark = 2
    case message = 3
}

extension DigestSum {
    /// Counts one object: adds its hash, modulo 2^64 (HIS-31). The order of objects does not
    /// matter.
    public mutating func add(_ kind: DigestKind, id: [UInt8], version: UInt64) {
        count &+= 1
        hash &+= Self.hash(kind, id: id, version: version)
    }

    /// FNV-1a (64 bits) over kind, id and version, then the finalizer of SplitMix64: a sum of
    /// bare FNV values would hide changes that cancel out in their last steps.
    public static func hash(_ kind: DigestKind, id: [UInt8], version: UInt64) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func take(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        take(kind.rawValue)
        for byte in id { take(byte) }
        for shift in stride(from: 56, through: 0, by: -8) {
            take(UInt8(truncatingIfNeeded: version >> UInt64(shift)))
        }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }
}
