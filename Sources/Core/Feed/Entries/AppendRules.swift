import Model
import Wake
import Wire

/// A user's feed, its row locked: entries appended to it get the next numbers.
struct OpenFeed {
    var user: UserRecord
    /// As stored; `nil`: not yet.
    let before: UserRecord?
    fileprivate(set) var kinds: UInt32 = 0
    fileprivate(set) var visible: [(entry: EntryRecord, urgency: Urgency)] = []
    fileprivate(set) var useful: [EntryRecord] = []
    fileprivate(set) var timed: [(entry: EntryRecord, told: TimedAlert)] = []
    fileprivate(set) var replaced: [(older: EntryRecord, newer: EntryRecord)] = []
    fileprivate(set) var withdrawn: [EntryRecord] = []
    /// What was appended, for sessions that lack nothing else; `nil`: they have to read it.
    var tail: [FeedTail.Element]? = []
    /// The highest entry that was taken away or replaced.
    fileprivate(set) var replacedThrough: UInt64 = 0
    /// Of the first message with one.
    fileprivate(set) var trace: TraceContext?
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

/// What a feed is told of: one object, of which it holds at most one entry.
struct FeedObject {
    var kind: EntryKind
    var conversation: ConversationID
    /// As in `EntryRecord.object`.
    var object: [UInt8]
    var version: UInt64
    var position: UInt64 = 0
    /// Kinds of entries it takes the place of.
    var supersedes: [EntryKind]
    /// Such an entry may exist. Versions rise with each change: the first has nothing to supersede.
    /// But metadata is told as it is when a job runs, to a newcomer too, so that a version may come
    /// twice.
    var mayExist: Bool
    /// It only says that something is gone: not kept for ever (SYN-30), unless it is the user's
    /// own membership, beside which the feed still holds the conversation (SYN-35).
    var isEnd = false
    /// The message it is, where others than its sender are to read it (SYN-27).
    var unread: MessageRecord?
    /// What its entry shows, where no read of the store is needed to tell; `nil`: it is.
    var shown: ShownObject?
    var trace: TraceContext?

    fileprivate func isMembership(of user: UserID) -> Bool {
        kind == .participant && object == Array(user.name.utf8)
    }

    init(
        kind: EntryKind, conversation: ConversationID, object: [UInt8], version: UInt64,
        position: UInt64 = 0, supersedes: [EntryKind]? = nil, isEnd: Bool = false,
        mayExist: Bool? = nil
    ) {
        self.kind = kind
        self.conversation = conversation
        self.object = object
        self.version = version
        self.position = position
        self.supersedes = supersedes ?? [kind]
        self.mayExist = mayExist ?? (version > 1)
        self.isEnd = isEnd
    }

    /// - Parameter version: in the feed it is for: a conversation that its user deleted comes back.
    static func conversation(_ record: ConversationRecord, version: UInt64) -> FeedObject {
        FeedObject(
            kind: .conversation, conversation: record.conversation, object: [],
            version: version)
    }

    /// A deleted conversation. It stays beside the conversation's entry that a later message
    /// brings back: a device that was away has to learn of both.
    static func conversationTombstone(_ member: ParticipantRecord) -> FeedObject {
        FeedObject(
            kind: .tombstone, conversation: member.conversation, object: [],
            version: member.conversationVersion, supersedes: [.conversation, .tombstone],
            isEnd: true)
    }

    /// - Parameter version: above every one of the message that its feed has had.
    static func tombstone(_ record: MessageRecord, version: UInt64) -> FeedObject {
        FeedObject(
            kind: .tombstone, conversation: record.conversation, object: record.message.bytes,
            version: version, position: record.position, supersedes: [.message, .tombstone],
            isEnd: true)
    }

    static func participant(_ record: ParticipantRecord) -> FeedObject {
        FeedObject(
            kind: .participant, conversation: record.conversation,
            object: Array(record.user.name.utf8), version: record.version,
            isEnd: record.leftRevision != nil,
            mayExist: record.isBack || record.leftRevision != nil)
    }

    /// The message as it is now: a tombstone if it was deleted for everyone.
    static func present(_ record: MessageRecord) -> FeedObject {
        record.deletedAt == nil
            ? message(record) : tombstone(record, version: record.version)
    }

    fileprivate static func message(_ record: MessageRecord) -> FeedObject {
        var object = FeedObject(
            kind: .message, conversation: record.conversation, object: record.message.bytes,
            version: record.version, position: record.position)
        object.unread = record
        object.shown = .message(record)
        object.trace = record.trace
        return object
    }

    /// What is told now: the entry holds it, for others are told later of what comes then.
    static func receipt(_ record: ReceiptRecord) -> FeedObject {
        var object = FeedObject(
            kind: .receipt, conversation: record.conversation,
            object: Array(record.user.name.utf8), version: record.version,
            position: record.announcedDelivered)
        object.shown = .receipt(record)
        return object
    }

    static func metadata(_ record: MetadataRecord) -> FeedObject {
        FeedObject(
            kind: .metadata, conversation: record.conversation, object: [],
            version: record.version, mayExist: true)
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
        var object = FeedObject(
            kind: .readMark, conversation: record.conversation, object: [],
            version: record.version)
        object.shown = .readMark(record)
        return object
    }

    /// The entry itself says whether its user has read it: by its version.
    static func announcement(_ record: AnnouncementRecord, isRead: Bool) -> FeedObject {
        var object = FeedObject(
            kind: .announcement, conversation: .none, object: record.announcement.bytes,
            version: isRead ? 2 : 1)
        if !isRead { object.shown = .announcement(record) }
        return object
    }

    /// - Parameter entry: of the announcement in the feed it is for.
    static func tombstone(of entry: EntryRecord) -> FeedObject {
        FeedObject(
            kind: .tombstone, conversation: entry.conversation, object: entry.object,
            version: entry.version + 1, supersedes: [entry.kind, .tombstone], isEnd: true)
    }
}

extension Work {
    /// Locks the user's row. A user the store has not seen gets one: whoever is named takes part,
    /// whether or not a device of theirs ever logged in (and naming a user tells nothing about
    /// that). The epoch half of such a user is drawn at the first login.
    ///
    /// - Throws: a conflict where the app is on its way out: a row made anew would begin the feed
    ///   again, over entries that have not gone yet. What goes on in the background passes it over.
    func openFeed(_ app: AppID, _ user: UserID) throws(RuleFailure) -> OpenFeed {
        let known = try record(UserRecord.self, [.app(app), .user(user)], lock: .wait)
        if known == nil, try self.app(app) == nil {
            throw .store(.conflict("\(app.name) is being removed"))
        }
        return OpenFeed(
            user: known ?? UserRecord(app: app, user: user, epochHalf: 0, createdAt: now),
            before: known)
    }

    /// Writes the user's row if it changed and notes the change for the hub.
    func close(_ feed: OpenFeed) throws(RuleFailure) {
        if feed.user != feed.before { try put(feed.user) }
        for (entry, urgency) in feed.visible {
            try noteWakes(try wakeRules.feedGrew(entry, urgency: urgency))
        }
        for (entry, told) in feed.timed {
            try noteWakes(try wakeRules.timedCame(entry, told, zones: zones))
        }
        for entry in feed.useful {
            try noteWakes(
                try wakeRules.usefulCame(feed.user.app, feed.user.user, entry.visibleChange))
        }
        for (older, newer) in feed.replaced {
            try noteWakes(try wakeRules.entryReplaced(older, by: newer))
        }
        for entry in feed.withdrawn {
            try noteWakes(try wakeRules.entryWithdrawn(entry))
        }
        guard feed.kinds != 0 || feed.replacedThrough > 0 else { return }
        var change = FeedChange(
            app: feed.user.app, user: feed.user.user, head: feed.user.head,
            kinds: feed.kinds, isUrgent: feed.visible.contains { $0.urgency == .urgent })
        change.replacedThrough = feed.replacedThrough
        change.trace = feed.trace
        change.tail = tail(of: feed, after: feed.before?.head ?? 0)
        effects.note(change)
    }

    /// Appends the object's state. An older entry of the same object is superseded: deleted in
    /// the same transaction, so that no snapshot holds none or both (protocol: feed).
    ///
    /// - Parameter tellsReceipts: it is a message whose delivery the author is told of.
    func append(
        _ object: FeedObject, to feed: inout OpenFeed, attention: Attention = .none,
        tellsReceipts: Bool = false
    ) throws(RuleFailure) {
        if feed.user.deletingSince != nil { return }
        if object.mayExist {
            for kind in object.supersedes {
                if let older = try entry(of: kind, like: object, in: feed.user) {
                    try delete(older, from: &feed)
                }
            }
        }
        let entry = try write(
            object, to: &feed, isVisible: attention.isVisible, firstSeq: nil)
        addToTail(object, at: entry, of: &feed)
        if feed.trace == nil { feed.trace = object.trace }
        if tellsReceipts { feed.user.awaitReceipt() }
        switch attention {
        case .none: break
        case .useful:
            feed.user.usefulHead = entry.seq
            feed.useful.append(entry)
        case .visible(let urgency): feed.visible.append((entry, urgency))
        case .timed(let told): feed.timed.append((entry, told))
        }
    }

    /// The newest entry is a message of this participant's, or the conversation a user joins:
    /// the conversation moves to the front of the user's conversations.
    ///
    /// The order is that of the newest messages, exactly, though a conversation that is in front
    /// already costs no write: while it stays there no other has an entry of these kinds, so the
    /// `seq` at which it came to the front is above the last one of every other conversation.
    ///
    /// - Parameter participant: written by the caller afterwards.
    func moveToFront(_ participant: inout ParticipantRecord, in feed: inout OpenFeed) {
        let id = participant.conversation.bytes
        guard feed.user.deletingSince == nil,
            feed.user.activeConversation != id || participant.activity == 0
        else { return }
        feed.user.activeConversation = id
        participant.activity = feed.user.head
    }

    /// Puts the new state of a message, or the end of an announcement, into the place of `older`,
    /// its entry so far. It alerts nobody anew, and whoever lacks the older one still lacks a
    /// visible entry.
    ///
    /// - Parameter isHidden: Its user has deleted it for themselves: it had come all the same, and
    ///   its author hears so.
    func replace(
        _ older: EntryRecord, with object: FeedObject, isVisible: Bool, isHidden: Bool = false,
        in feed: inout OpenFeed
    ) throws(RuleFailure) {
        if feed.user.deletingSince != nil { return }
        try delete(older, from: &feed)
        feed.tail = nil
        let isUntold = older.seq > feed.user.receipted && older.seq <= feed.user.receiptHead
        let entry = try write(
            object, to: &feed, isVisible: isVisible && older.isVisible, firstSeq: older.firstSeq)
        if object.kind == .message { feed.user.movedHead = feed.user.head }
        if isUntold, object.kind == .message || isHidden { feed.user.awaitReceipt() }
        if entry.unreadPosition != older.unreadPosition {
            try stored(
                try transaction.entryChanged(
                    entry.app, entry.user, entry.conversation, at: older.position,
                    isToBeRead: entry.unreadPosition != nil, now: now))
        }
        feed.replaced.append((older, entry))
    }

    /// Takes a message's entry away; nothing comes into its place.
    func withdraw(_ entry: EntryRecord, from feed: inout OpenFeed) throws(RuleFailure) {
        if feed.user.deletingSince != nil { return }
        try delete(entry, from: &feed)
        feed.withdrawn.append(entry)
    }

    private func write(
        _ object: FeedObject, to feed: inout OpenFeed, isVisible: Bool, firstSeq: UInt64?
    ) throws(RuleFailure) -> EntryRecord {
        feed.user.head += 1
        if isVisible { feed.user.visibleHead = feed.user.head }
        if object.kind == .readMark || object.kind == .tombstone {
            feed.user.usefulHead = feed.user.head
        }
        feed.kinds |= 1 << UInt32(truncatingIfNeeded: object.kind.rawValue)
        let entry = EntryRecord(
            app: feed.user.app, user: feed.user.user, seq: feed.user.head, kind: object.kind,
            conversation: object.conversation, object: object.object, version: object.version,
            isVisible: isVisible, position: object.position,
            firstSeq: firstSeq ?? feed.user.head,
            expiresAt: object.isEnd && !object.isMembership(of: feed.user.user)
                ? now + limits.tombstoneLifetime : nil,
            unreadPosition: object.unread?.alerts(feed.user.user) == true
                ? object.position : nil)
        try insert(entry)
        return entry
    }

    private func delete(
        _ entry: EntryRecord, from feed: inout OpenFeed
    ) throws(RuleFailure) {
        feed.replacedThrough = max(feed.replacedThrough, entry.seq)
        try delete(
            EntryRecord.self, [.app(entry.app), .user(entry.user), .unsigned(entry.seq)])
    }

    /// The feed's entry of the object under this kind.
    func entry(
        of kind: EntryKind, like object: FeedObject, in user: UserRecord
    ) throws(RuleFailure) -> EntryRecord? {
        try stored(
            try transaction.entry(
                of: kind, user.app, user.user, object.conversation, object: object.object,
                position: object.position))
    }

    /// A message comes into the user's feed: it counts as unread unless it was read already.
    ///
    /// - Parameter member: written by the caller afterwards.
    /// - Returns: what it asks for: one that alerts, or is passive, in a conversation that is not
    ///   muted, not already read.
    func receive(
        _ message: MessageRecord, by member: inout ParticipantRecord, _ user: UserRecord
    ) throws(RuleFailure) -> Attention {
        let name = user.user
        let alerts = message.alerts(name)
        guard user.deletingSince == nil, alerts || message.isUseful(name) else { return .none }
        let known = member
        let isRead = try stored(try transaction.isRead(message.position, by: known))
        if alerts, !isRead { transaction.addUnread(to: &member) }
        if now < member.mutedUntil { return try refuse(message, to: name, .muted) }
        if isRead { return try refuse(message, to: name, .readAlready) }
        guard alerts else { return .useful }
        return Attention(message.timing, message.urgency, publishedAt: message.sentAt)
    }
}

extension Work {
    /// Notes why a message asks for nothing, for whoever asks.
    private func refuse(
        _ message: MessageRecord, to user: UserID, _ reason: RefusalRecord.Reason
    ) throws(RuleFailure) -> Attention {
        try note(reason, message, user)
        return .none
    }

    func note(
        _ reason: RefusalRecord.Reason, _ message: MessageRecord, _ user: UserID
    ) throws(RuleFailure) {
        let refusal = RefusalRecord(
            app: message.app, user: user, message: message.message, reason: reason,
            refusedAt: now)
        _ = try record(RefusalRecord.self, refusal.rowKey)
        try put(refusal)
    }
}

/// What an entry asks for on devices without a session.
enum Attention {
    case none
    /// A silent push, where one can be spared.
    case useful
    case visible(Urgency)
    /// An alert at a time, and nothing before it.
    case timed(TimedAlert)

    /// Of what alerts.
    init(_ timing: AlertTiming, _ urgency: Urgency, publishedAt: Timestamp) {
        guard let moment = timing.moment else {
            self = .visible(urgency)
            return
        }
        self = .timed(
            TimedAlert(
                moment: moment, isUrgent: urgency == .urgent, publishedAt: publishedAt))
    }

    fileprivate var isVisible: Bool {
        if case .visible = self { true } else { false }
    }
}
