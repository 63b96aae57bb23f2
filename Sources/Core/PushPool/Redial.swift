import Model

/// When the next connection of one class of a credential may be begun: a class whose connections
/// fail waits ever longer, however well another one does. Apple takes repeated connects and
/// disconnects for an attack. Pure.
struct Redial: Equatable {
    let delay: Milliseconds
    let delayMax: Milliseconds
    let soundAge: Milliseconds
    /// Connections in a row that came to nothing.
    private(set) var failures = 0
    /// Connections in a row that had an answer, and did not last.
    private var shortLived = 0
    private(set) var nextAt: Instant?

    init(delay: Milliseconds, delayMax: Milliseconds, soundAge: Milliseconds) {
        self.delay = delay
        self.delayMax = delayMax
        self.soundAge = soundAge
    }

    /// A connection ended, or takes no more streams.
    ///
    /// - Parameters:
    ///   - age: since its handshake.
    ///   - hasAnswered: whether a push was answered on it.
    ///   - chance: any number: servers that lost APNs together do not return together.
    mutating func lost(age: Milliseconds, hasAnswered: Bool, chance: UInt64, now: Instant) {
        if hasAnswered, age >= soundAge { return worked() }
        var wait = delay
        if hasAnswered {
            // APNs answers, if only to refuse: that makes nobody wait longer each time, and the
            // first one is replaced at once. `ConnectRate` says how often.
            failures = 0
            shortLived += 1
            guard shortLived > 1 else {
                nextAt = nil
                return
            }
        } else {
            failures += 1
            wait = min(delay << UInt64(min(failures - 1, 16)), delayMax)
        }
        nextAt = now + wait / 2 + chance % (wait / 2 + 1)
    }

    /// A connection has proved sound.
    mutating func worked() {
        failures = 0
        shortLived = 0
        nextAt = nil
    }
}
