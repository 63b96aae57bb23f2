import Model

/// Whether a class of pushes needs another connection. Pure.
struct LaneGrowth: Equatable {
    let after: Milliseconds
    let spacing: Milliseconds
    private var pressedSince: Instant?
    private var grownAt: Instant?

    init(after: Milliseconds, spacing: Milliseconds) {
        self.after = after
        self.spacing = spacing
    }

    /// - Parameter isPressed: every stream is taken, and more waits.
    /// - Returns: whether to grow now.
    mutating func observe(isPressed: Bool, now: Instant) -> Bool {
        guard isPressed else {
            pressedSince = nil
            return false
        }
        let since = pressedSince ?? now
        pressedSince = since
        if let grownAt, now.since(grownAt) < spacing { return false }
        guard now.since(since) >= after else { return false }
        grownAt = now
        pressedSince = nil
        return true
    }
}
