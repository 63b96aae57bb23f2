public import Model

/// How often in a row pushes of one device were answered with what is worth another try: faults of
/// APNs and what it asks for, and apart from them answers that are none of its own. A push is given
/// up for many of the latter, and never for the former.
///
/// One number, so that rows of a version that counted them together can be read: these count as
/// faults.
public struct RefusalCount: StoredNumber, Equatable {
    public private(set) var faults: UInt64
    public private(set) var unknown: UInt64

    private static let bits: UInt64 = 32
    private static let faultsMax: UInt64 = 1 << bits - 1
    private static let unknownMax: UInt64 = 255

    public init(faults: UInt64 = 0, unknown: UInt64 = 0) {
        self.faults = min(faults, Self.faultsMax)
        self.unknown = min(unknown, Self.unknownMax)
    }

    public init?(rawValue: UInt64) {
        self.init(faults: rawValue & Self.faultsMax, unknown: rawValue >> Self.bits)
    }

    public var rawValue: UInt64 { unknown << Self.bits | faults }

    /// One more answer that was worth another try.
    mutating func add(isUnknown: Bool) {
        self =
            isUnknown
            ? RefusalCount(faults: faults, unknown: unknown + 1)
            : RefusalCount(faults: faults + 1, unknown: unknown)
    }
}
