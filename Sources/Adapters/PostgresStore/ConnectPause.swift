import Model

/// How long to wait after a connection that did not come about. Meanwhile every call is refused
/// at once: a server that is away must not hold each of them for the time a connection takes.
struct ConnectPause {
    private var until: UInt64 = 0
    private var length: UInt64 = 50
    private var error: StoreError?

    /// Milliseconds of the longest.
    private static let lengthMax: UInt64 = 2_000

    /// The error of the last attempt, until another attempt is due.
    var refusal: StoreError? {
        PostgresSession.monotonicClock() < until ? error : nil
    }

    /// Nodes that lost the same server do not come back in the same moment.
    mutating func note(_ error: StoreError) {
        self.error = error
        until = PostgresSession.monotonicClock() + UInt64.random(in: (length / 2)...length)
        length = min(2 * length, Self.lengthMax)
    }
}
