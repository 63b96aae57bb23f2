import EventLoop

/// What holds of every frame of a server, whatever a case is about. Each has a case of its own,
/// which judges what all cases of the run have seen.
enum Invariant: String, Sendable, CaseIterable {
    /// Versions of an object rise, and a number of the feed is the same entry for all devices.
    case feed
    /// `head`, `to` and `more` fit each other, and the head does not go back.
    case head
    /// A reset begins at 0 and answers a SYNC.
    case reset
    /// The icon's number is what the feed comes to.
    case unread
    /// The floor is what was taken.
    case floor
    /// PAGE and SNAPSHOT_PAGE give what the feed gives, and nothing older.
    case history
}

/// What a run has seen of a server that breaks an invariant. Used from the threads of all cases.
final class Witness: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var found: [Invariant: String] = [:]  // guarded by `lock`

    /// The first time that it was broken, in words.
    func first(_ invariant: Invariant) -> String? { lock.withLock { found[invariant] } }

    func saw(_ invariant: Invariant, _ what: String) {
        lock.withLock { if found[invariant] == nil { found[invariant] = what } }
    }
}
