import Model
public import Wire

// Read receipts that no entry need come back for.
extension TableLocalStore {
    public func endReads(
        _ answered: [ReadReceipt]
    ) throws(LocalStoreError) -> [ReadReceipt] {
        let ended = try read { snapshot throws(StoreError) in
            let user = try Self.fact(Fact.user, snapshot)?.bytes ?? []
            var ended: [ReadReceipt] = []
            for receipt in answered where try Self.isPending(receipt, snapshot) {
                if try Self.isOver(receipt, for: user, snapshot) { ended.append(receipt) }
            }
            return ended
        }
        guard !ended.isEmpty else { return [] }
        return try write { transaction throws(StoreError) in
            for receipt in ended {
                try transaction.delete(LocalReadRecord.self, [.blob(receipt.subject)])
                if let id = receipt.announcement { try Self.noteRead(id, transaction) }
            }
            return ended
        }
    }

    /// Not one that has grown since it was sent.
    private static func isPending(
        _ receipt: ReadReceipt, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard let row = try snapshot.record(LocalReadRecord.self, [.blob(receipt.subject)])
        else { return false }
        let pending: ReadReceipt = try decoded(row.receipt)
        return pending.normalized == receipt.normalized
    }

    /// Whether the server may have passed it over.
    private static func isOver(
        _ receipt: ReadReceipt, for user: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard let conversation = receipt.conversation?.bytes else { return true }
        guard let entry = try snapshot.entry(.conversation, of: conversation) else {
            // Something of it may be here before itself (SYN-4).
            return try snapshot.record(LocalOrphanRecord.self, [.blob(conversation)]) == nil
        }
        if case .tombstone = entry.body { return true }
        return try reach(of: user, in: conversation, snapshot) == nil
    }

    /// An announcement that the person has read shows as read, also if the server knows nothing of
    /// it any more. Its own entry, when one comes, is newer, or of another history.
    private static func noteRead(
        _ announcement: MessageID, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard
            var row = try transaction.record(
                LocalEntryRecord.self,
                LocalEntryRecord.key(.announcement, [], announcement.bytes))
        else { return }
        var entry: Entry = try decoded(row.entry)
        guard case .announcement(var state) = entry.body, !state.read else { return }
        state.read = true
        entry.body = .announcement(state)
        row.entry = entry.encoded
        try transaction.put(row)
    }
}
