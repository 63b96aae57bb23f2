public import Model

/// What is said to one request, and what is done with it.
public struct Answer: Equatable, Sendable {
    public var status: Int
    /// Apple's word for a refusal; `nil` with 200.
    public var reason: String?
    /// Since when the token is dead; with 410 only, in milliseconds.
    public var timestamp: Timestamp?
    /// The request's own id, or a made one: present in every answer.
    public var apnsID: String
    /// For the log only.
    public var lints: [Lint]
    /// What goes to the device; `nil` for refusals, dead tokens that still get 200, and payloads
    /// that cannot be used.
    public var delivery: PushDelivery?
    /// The check that failed, for the log.
    public var check: Check?

    /// JSON of the body; empty with 200.
    public var body: [UInt8] {
        guard let reason else { return [] }
        guard let timestamp else { return Array(#"{"reason":"\#(reason)"}"#.utf8) }
        return Array(#"{"reason":"\#(reason)","timestamp":\#(timestamp.milliseconds)}"#.utf8)
    }
}

/// One push that APNs has accepted for a device.
public struct PushDelivery: Equatable, Sendable {
    /// In lower-case hexadecimal.
    public var token: String
    public var topic: String
    public var apnsID: String
    /// `alert`, `background`, ...; a missing one counts as `alert`.
    public var pushType: String
    public var priority: Int
    /// Seconds since 1970 until which it is stored; 0: one attempt; `nil`: 30 days.
    public var expiration: UInt64?
    public var collapseID: String?
    public var content: PushContent

    public init(
        token: String, topic: String, apnsID: String, pushType: String, priority: Int = 10,
        expiration: UInt64? = nil, collapseID: String? = nil, content: PushContent
    ) {
        self.token = token
        self.topic = topic
        self.apnsID = apnsID
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.content = content
    }
}
