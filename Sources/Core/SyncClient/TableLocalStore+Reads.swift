import Model
public import Wire

// Read receipts, and which of them no entry need come back for.
extension TableLocalStore {
    @discardableResult
    public func addRead(_ receipt: ReadReceipt) throws(LocalStoreError) -> Bool {
        guard !receipt.subject.isEmpty else { return false }
        // An app says of each window that it is seen: mostly there is nothing to write.
        let isSaid = try read { snapshot throws(StoreError) in
            try Self.isSaid(receipt, snapshot)
        }
        guard !isSaid else { return false }
        return try write { transaction throws(StoreError) in
            var merged = receipt.normalized
            if let pending = try Self.pending(receipt.subject, transaction) {
                merged = pending
                merged.merge(receipt)
            }
            try transaction.put(
                LocalReadRecord(subject: receipt.subject, receipt: merged.encoded))
            return true
        }
    }

    /// Whether what waits, or the read mark, says at least as much.
    private static func isSaid(
        _ receipt: ReadReceipt, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        if let pending = try pending(receipt.subject, snapshot) {
            var merged = pending
            merged.merge(receipt)
            if merged.normalized == pending.normalized { return true }
        }
        return try isMarked(receipt, snapshot)
    }

    private static func pending(
        _ subject: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> ReadReceipt? {
        guard let row = try snapshot.record(LocalReadRecord.self, [.blob(subject)]) else {
            return nil
        }
        return try decoded(row.receipt)
    }

    /// Whether the user's own read mark, or the announcement, says it: the server writes no entry
    /// for it then, and none comes back. Of what is stale nobody knows whether the server has it
    /// still.
    private static func isMarked(
        _ receipt: ReadReceipt, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        let key =
            if let announcement = receipt.announcement {
                LocalEntryRecord.key(.announcement, [], announcement.bytes)
            } else {
                LocalEntryRecord.key(.readMark, receipt.conversation?.bytes ?? [])
            }
        guard let row = try snapshot.record(LocalEntryRecord.self, key),
            row.round == (try Course(snapshot)).round
        else { return false }
        let entry: Entry = try decoded(row.entry)
        switch entry.body {
        case .readMark(let mark): return receipt.isCovered(by: mark)
        case .announcement(let state): return state.read
        default: return false
        }
    }

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
        try pending(receipt.subject, snapshot)?.normalized == receipt.normalized
    }

    /// Whether the server may have passed it over.
    private static func isOver(
        _ receipt: ReadReceipt, for user: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard let conversation = receipt.conversation?.bytes else { return true }
        // Stored by a program that did not ask whether there was anything to say.
        if try isMarked(receipt, snapshot) { return true }
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
