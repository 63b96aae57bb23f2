public import Model
public import Wire

/// A message or an announcement that was applied and of which the person was not told.
public struct OwedEntry: Equatable, Sendable {
    public var object: MessageID
    /// `nil`: an announcement.
    public var conversation: ConversationID?
    /// As it is stored now; `nil`: it is gone.
    public var entry: Entry?
    /// The server alerted of it, or an earlier text of it was here and is owed no more, and it was
    /// edited since: what stands takes the new text, and nothing is shown anew (MSG-33).
    public var wasAlerted = false
}

// What the app owes its user: written in the transaction that makes an entry durable, so that a
// process that is killed before it has shown a notification leaves word to the next one.
extension TableLocalStore {
    /// Of more than this the oldest are told by the icon's number alone.
    static let owedMax = 512

    /// Oldest first. Empty unless the store was made to keep them.
    public func owed() throws(LocalStoreError) -> [OwedEntry] {
        guard keepsOwed else { return [] }
        return try read { snapshot throws(StoreError) in
            var owed: [OwedEntry] = []
            for one in try Self.owedKeys(snapshot) {
                owed.append(
                    OwedEntry(
                        object: one.object, conversation: one.conversation,
                        entry: try Self.entry(of: one.object, in: one.conversation, snapshot),
                        wasAlerted: one.wasAlerted))
            }
            return owed
        }
    }

    /// The person was told of these, or need not be.
    public func settle(_ objects: [MessageID]) throws(LocalStoreError) {
        guard keepsOwed, !objects.isEmpty else { return }
        let settled = Set(objects)
        try write { transaction throws(StoreError) in
            let keys = try Self.owedKeys(transaction)
            let left = keys.filter { !settled.contains($0.object) }
            if left.count < keys.count { try Self.putOwed(left, transaction) }
        }
    }

    /// Edited messages that were here with a text before these entries are kept: their user was
    /// told of them, or did not need to be.
    static func told(
        _ entries: [Entry], _ transaction: any StoreTransaction
    ) throws(StoreError) -> Set<[UInt8]> {
        var told: Set<[UInt8]> = []
        for entry in entries {
            guard case .message(let message) = entry.body, message.editedMs > 0,
                let row = LocalEntryRecord(entry, round: 0),
                let known = try transaction.record(LocalEntryRecord.self, row.key)
            else { continue }
            let before: Entry = try decoded(known.entry)
            if before.mayNotify { told.insert(entry.object) }
        }
        return told
    }

    /// - Parameters:
    ///   - told: as `told` has said before they were kept.
    ///   - history: up to here the feed came with a first sync or a reset (PSH-8).
    static func owe(
        _ applied: [Entry], told: Set<[UInt8]>, above history: UInt64?,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard applied.contains(where: { $0.mayNotify }) else { return }
        let user = String(decoding: try fact(Fact.user, transaction)?.bytes ?? [], as: UTF8.self)
        var through: UInt64 = 0
        if let history {
            through = history
        } else {
            through = try fact(Fact.history, transaction)?.number ?? 0
        }
        let news = applied.filter {
            $0.mayNotify && ($0.isEditOfAlerted || $0.isNews(to: user, above: through))
        }
        guard !news.isEmpty else { return }
        var keys = try owedKeys(transaction)
        for entry in news {
            guard let object = MessageID(entry.object) else { continue }
            // Owed still, it was not told when it came: it is told as new.
            let isOwed = keys.contains { $0.object == object && !$0.wasAlerted }
            keys.removeAll { $0.object == object }
            keys.append(
                OwedKey(
                    object: object, conversation: entry.conversation,
                    wasAlerted: (entry.alerted || told.contains(entry.object)) && !isOwed))
        }
        try putOwed(Array(keys.suffix(owedMax)), transaction)
    }

    private struct OwedKey {
        var object: MessageID
        var conversation: ConversationID?
        var wasAlerted = false
    }

    /// One row holds all: 16 bytes of the object, a byte with 1 if it has a conversation and 2 if
    /// it was alerted, and 16 of the conversation.
    private static let owedBytes = 33

    private static func owedKeys(_ snapshot: any StoreSnapshot) throws(StoreError) -> [OwedKey] {
        let bytes = try fact(Fact.owed, snapshot)?.bytes ?? []
        guard bytes.count % owedBytes == 0 else {
            throw .corrupt("what is owed has \(bytes.count) bytes")
        }
        return stride(from: 0, to: bytes.count, by: owedBytes).compactMap { start in
            guard let object = MessageID(Array(bytes[start..<start + 16])) else { return nil }
            let conversation = ConversationID(Array(bytes[start + 17..<start + owedBytes]))
            return OwedKey(
                object: object, conversation: bytes[start + 16] & 1 == 1 ? conversation : nil,
                wasAlerted: bytes[start + 16] & 2 == 2)
        }
    }

    private static func putOwed(
        _ keys: [OwedKey], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard !keys.isEmpty else {
            return try transaction.delete(LocalStateRecord.self, [.text(Fact.owed)])
        }
        let none = [UInt8](repeating: 0, count: 16)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(keys.count * owedBytes)
        for key in keys {
            bytes += key.object.bytes
            bytes.append((key.conversation == nil ? 0 : 1) | (key.wasAlerted ? 2 : 0))
            bytes += key.conversation?.bytes ?? none
        }
        try transaction.put(LocalStateRecord(name: Fact.owed, bytes: bytes))
    }
}
