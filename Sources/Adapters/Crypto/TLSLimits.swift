/// Bounds of one connection.
public struct TLSLimits: Sendable {
    /// Output that may wait for `takeOutput` before `send` throws `outputFull`, in bytes.
    public var maximumPendingOutput = TLSContext.defaultMaximumPendingOutput
    /// Records without data that a peer may send ahead of its data; every 16 KiB of data earns
    /// one back.
    public var maximumSilentRecords = 64
    /// Records sent under one key before this side updates it. RFC 8446 section 5.5 allows 2^24.5
    /// of them under AES-GCM.
    public var recordsPerKey = 1 << 23
    /// The time at which certificates are judged, in milliseconds since 1970; nil is now. Tests
    /// only, as is the next.
    var checkTime: Int64?
    var maximumVersion = TLSVersion.tls13

    /// The default bounds.
    public init() {}
}
