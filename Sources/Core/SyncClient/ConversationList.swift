public import Model
public import Wire

/// All conversations, as a list on a screen, and how it follows what is applied.
///
/// It reads from the store only what a change may have changed: a message of somebody else above
/// all others costs no read.
public struct ConversationList: Sendable {
    private var known: [ConversationID: ReadConversation] = [:]

    public init() {}

    /// The one in which something happened last comes first.
    public var rows: [ConversationRow] {
        known.values.map(\.row).sorted {
            ($0.lastActivity, $0.id) > ($1.lastActivity, $1.id)
        }
    }

    /// Reads everything anew.
    ///
    /// - Parameter sent: the numbers of the mutations that are on their way.
    public mutating func reload(
        from store: TableLocalStore, sent: Set<UInt64>
    ) throws(LocalStoreError) {
        let found = try store.readConversations(sent: sent)
        known = Dictionary(uniqueKeysWithValues: found.map { ($0.row.id, $0) })
    }

    /// Follows entries that were applied.
    public mutating func applied(
        _ entries: [Entry], in store: TableLocalStore, sent: Set<UInt64>
    ) throws(LocalStoreError) {
        var touched: [ConversationID: [Entry]] = [:]
        for entry in entries {
            guard let conversation = entry.conversation else { continue }
            touched[conversation, default: []].append(entry)
        }
        for (conversation, entries) in touched where !append(entries, to: conversation) {
            try read(conversation, from: store, sent: sent)
        }
    }

    /// Reads a conversation anew: something of this device has changed in it.
    public mutating func read(
        _ conversation: ConversationID, from store: TableLocalStore, sent: Set<UInt64>
    ) throws(LocalStoreError) {
        known[conversation] = try store.readConversation(conversation, sent: sent)
    }

    /// Reads those anew whose newest message the server has not answered, or has just answered.
    public mutating func readPending(
        from store: TableLocalStore, sent: Set<UInt64>
    ) throws(LocalStoreError) {
        for conversation in known.filter({ $0.value.hasPending }).keys {
            try read(conversation, from: store, sent: sent)
        }
    }

    /// Whether the entries say all that is to be known: messages of others above every other, and
    /// nothing else.
    private mutating func append(
        _ entries: [Entry], to conversation: ConversationID
    ) -> Bool {
        guard var one = known[conversation], !one.hasPending else { return false }
        for entry in entries {
            guard let row = MessageRow(entry, one.reading), !row.isOwn,
                let position = row.position, position > one.newest
            else { return false }
            one.newest = position
            one.row.last = row
            if row.isUnread { one.row.unread = min(one.row.unread + 1, ConversationRow.unreadMax) }
        }
        known[conversation] = one
        return true
    }
}
