import Model
import Wire

/// Up to which positions conversations were deleted by their user, while entries are stored: a
/// peek or a PAGE may bring older messages after the tombstone (MSG-36).
///
/// Rows of an earlier round say nothing: positions belong to an epoch, and a reset tells of every
/// deletion that still counts.
struct ClearedPositions {
    let round: UInt64
    /// The conversation was deleted for everyone (MSG-37): nothing of it is kept.
    private static let everything = UInt64.max >> 1
    private var known: [[UInt8]: UInt64] = [:]

    init(round: UInt64) { self.round = round }

    /// Whether the row went with its conversation.
    mutating func covers(
        _ row: LocalEntryRecord, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard row.kind != .conversation, !row.conversation.isEmpty else { return false }
        let through = try through(row.conversation, snapshot)
        if through == Self.everything { return true }
        return row.kind == .message && row.position > 0 && row.position <= through
    }

    /// Whether the tombstone says that messages are deleted above the position up to which this
    /// device knows them to be, whatever its row says: after a reset the feed may give messages
    /// before the tombstone that ends them, which stands here with the same version.
    ///
    /// - Parameter row: of the tombstone.
    mutating func isNews(
        _ tombstone: TombstoneState, _ row: LocalEntryRecord, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        let through = try through(row.conversation, snapshot)
        guard tombstone.forEveryone else { return tombstone.position > through }
        guard through != Self.everything else { return false }
        // Behind the end nothing comes back: a newer row is of a history that has it still.
        return try snapshot.record(LocalEntryRecord.self, row.key)?.version == row.version
    }

    private mutating func through(
        _ conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> UInt64 {
        if let position = known[conversation] { return position }
        let found = try snapshot.record(
            LocalEntryRecord.self, LocalEntryRecord.key(.cleared, conversation))
        let position = found?.round == round ? found?.position ?? 0 : 0
        known[conversation] = position
        return position
    }

    /// A tombstone of the conversation was stored.
    mutating func note(
        _ tombstone: TombstoneState, _ conversation: [UInt8], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let position = tombstone.forEveryone ? Self.everything : tombstone.position
        known[conversation] = position
        try transaction.put(
            LocalEntryRecord(cleared: conversation, through: position, round: round))
    }

    /// The conversation's state was stored: it is there.
    mutating func forgetEnd(
        of conversation: [UInt8], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard try through(conversation, transaction) == Self.everything else { return }
        known[conversation] = 0
        try transaction.delete(
            LocalEntryRecord.self, LocalEntryRecord.key(.cleared, conversation))
    }
}
