import Model
import Wire

/// A user's feed, its row locked: entries appended to it get the next numbers.
struct OpenFeed {
    var user: UserRecord
    /// As stored; `nil`: not yet.
    fileprivate let before: UserRecord?
    fileprivate(set) var kinds: UInt32 = 0
    fileprivate(set) var visible: [EntryRecord] = []
}

extension UserRecord {
    /// The entry at the head is a message whose delivery will be told. With nothing else to tell,
    /// what lies between is passed over: conversations without receipts cost the coalescer nothing.
    fileprivate mutating func awaitReceipt() {
        if receiptHead <= receipted { receipted = head - 1 }
        receiptHead = head
    }

    /// The highest `seq` to tell of when the devices have stored everything up to `applied`.
    func receiptable(_ applied: UInt64) -> UInt64 { min(applied, receiptHead) }
}

extension ConversationID {
    /// Of an entry that belongs to no conversation; nobody may choose it (MSG-1).
    static var none: ConversationID { ConversationID(high: 0, low: 0) }
}

/// What a feed is told of: one object, of which it holds at most one entry.
struct FeedObject {
    var kind: EntryKind
    var conversation: ConversationID
    /// As in `EntryRecord.object`.
    var object: [UInt8]
    var version: UInt64
    var position: UInt64 = 0

    static func conversation(_ record: ConversationRecord) -> FeedObject {
        FeedObject(
            kind: .conversation, conversation: record.conversation, object: [], version: 1)
    }

    static func participant(_ record: ParticipantRecord) -> FeedObject {
        FeedObject(
            kind: .participant, conversation: record.conversation,
            object: Array(record.user.name.utf8), version: record.version)
    }

    static func message(_ record: MessageRecord) -> FeedObject {
        FeedObject(
            kind: .message, conversation: record.conversation, object: record.message.bytes,
            version: record.version, position: record.position)
    }

    static func receipt(_ record: ReceiptRecord) -> FeedObject {
        FeedObject(
            kind: .receipt, conversation: record.conversation,
            object: Array(record.user.name.utf8), version: record.version)
    }

    static func metadata(_ record: MetadataRecord) -> FeedObject {
        FeedObject(
            kind: .metadata, conversation: record.conversation, object: [],
            version: record.version)
    }

    static func settings(_ record: SettingsRecord) -> FeedObject {
        FeedObject(
            kind: .conversationSettings, conversation: record.conversation, object: [],
            version: record.version)
    }

    static func block(_ record: BlockRecord) -> FeedObject {
        FeedObject(
            kind: .block, conversation: .none, object: Array(record.other.name.utf8),
            version: record.version)
    }

    static func readMark(_ record: ReadMarkRecord) -> FeedObject {
        FeedObject(
            kind: .readMark, conversation: record.conversation, object: [],
            version: record.version)
    }
}

extension Work {
    /// Locks the user's row. A user the store has not seen gets one: whoever is named takes part,
    /// whether or not a device of theirs ever logged in (and naming a user tells nothing about
    /// that). The epoch half of such a user is drawn at the first login.
    func openFeed(_ app: AppID, _ user: UserID) throws(RuleFailure) -> OpenFeed {
        let known = try record(UserRecord.self, [.app(app), .user(user)], lock: .wait)
        return OpenFeed(
            user: known ?? UserRecord(app: app, user: user, epochHalf: 0, createdAt: now),
            before: known)
    }

    /// Writes the user's row if it changed and notes the change for the hub.
    func close(_ feed: OpenFeed) throws(RuleFailure) {
        if feed.user != feed.before { try put(feed.user) }
        for entry in feed.visible {
            effects.note(
                try waking { () throws(StoreError) in
                    try WakeRules.feedGrew(entry, in: self.transaction, now: self.now)
                })
        }
        guard feed.kinds != 0 else { return }
        effects.note(
            FeedChange(
                app: feed.user.app, user: feed.user.user, head: feed.user.head,
                kinds: feed.kinds))
    }

    /// Appends the object's state. An older entry of the same object is superseded: deleted in
    /// the same transaction, so that no snapshot holds none or both (protocol: feed).
    ///
    /// - Parameter tellsReceipts: it is a message whose delivery the author is told of.
    func append(
        _ object: FeedObject, to feed: inout OpenFeed, isVisible: Bool = false,
        tellsReceipts: Bool = false
    ) throws(RuleFailure) {
        let (app, user) = (feed.user.app, feed.user.user)
        // Versions rise with each change: the first has nothing to supersede. But metadata is told
        // as it is when a job runs, to a newcomer too, so that a version may come twice.
        if object.version > 1 || object.kind == .metadata {
            try supersede(object, in: feed.user)
        }
        feed.user.head += 1
        if isVisible { feed.user.visibleHead = feed.user.head }
        if tellsReceipts { feed.user.awaitReceipt() }
        feed.kinds |= 1 << UInt32(truncatingIfNeeded: object.kind.rawValue)
        let entry = EntryRecord(
            app: app, user: user, seq: feed.user.head, kind: object.kind,
            conversation: object.conversation, object: object.object, version: object.version,
            isVisible: isVisible, position: object.position)
        try put(entry)
        if isVisible { feed.visible.append(entry) }
    }

    private func supersede(
        _ object: FeedObject, in user: UserRecord
    ) throws(RuleFailure) {
        let older = try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(user.app), .user(user.user), .unsigned(object.kind.rawValue),
                    .identifier(object.conversation), .blob(object.object),
                ],
                limit: 1))
        for entry in older {
            try delete(EntryRecord.self, [.app(user.app), .user(user.user), .unsigned(entry.seq)])
        }
    }

    /// Whether a message may alert: somebody else's, with push text, in a conversation that is
    /// not muted, not already read.
    func isVisible(_ message: MessageRecord, to user: UserID) throws(RuleFailure) -> Bool {
        guard message.sender != user.name else { return false }
        guard !message.pushTitle.isEmpty || !message.pushBody.isEmpty else { return false }
        if try isMuted(message.conversation, for: user, message.app) { return false }
        let mark = try record(
            ReadMarkRecord.self,
            [.app(message.app), .user(user), .identifier(message.conversation)])
        return try
            !(mark.map { mark throws(RuleFailure) in try positions(of: mark) }?
            .contains(message.position) ?? false)
    }
}
