public import Model
public import Wire

/// A message as an app shows it.
public struct MessageRow: Equatable, Sendable, Identifiable {
    public var id: MessageID
    public var conversation: ConversationID
    /// Its place in the conversation; `nil`: the server has not given it one that is known here.
    public var position: UInt64?
    /// What an edit is made from; 0: none is known, as with one that waits for its answer.
    public var version: UInt64
    public var sender: String
    /// By the server's clock; of one that the server has not answered, by this device's.
    public var sentAt: Timestamp
    /// `nil`: it is as it was sent.
    public var editedAt: Timestamp?
    public var parts: [Part]
    public var push: PushText?
    public var isOwn: Bool
    /// SYN-27, as of what this device knows.
    public var isUnread: Bool
    /// `nil`: of another user.
    public var delivery: Delivery?
    /// This user has edited it, and the server has not answered: `parts` and `push` are the edit's.
    public var isEditQueued = false
    /// What this user wanted to make of it last, and the server did not carry out; shown until it
    /// is discarded or changed anew.
    public var refusedChange: RefusedChange?
    /// The feed has told of it; `false`: it is shown because this device has sent it.
    public var isTold = true

    /// For a preview; the store gives the others.
    public init(
        id: MessageID, conversation: ConversationID, position: UInt64? = nil, version: UInt64 = 0,
        sender: String, sentAt: Timestamp, editedAt: Timestamp? = nil, parts: [Part],
        push: PushText? = nil, isOwn: Bool = false, isUnread: Bool = false,
        delivery: Delivery? = nil
    ) {
        self.id = id
        self.conversation = conversation
        self.position = position
        self.version = version
        self.sender = sender
        self.sentAt = sentAt
        self.editedAt = editedAt
        self.parts = parts
        self.push = push
        self.isOwn = isOwn
        self.isUnread = isUnread
        self.delivery = delivery
    }

    public var reference: MessageReference {
        MessageReference(conversation: conversation, message: id)
    }

    /// Its parts of the type `text/plain`, a line each.
    public var text: String { parts.text }
}

extension [Part] {
    var text: String {
        filter(\.isText).map { String(decoding: $0.content, as: UTF8.self) }
            .joined(separator: "\n")
    }
}

extension Part {
    /// What `MessageRow.text` shows.
    public var isText: Bool { mimeType == "text/plain" || mimeType.hasPrefix("text/plain;") }
}

/// The newest messages of a conversation that are on this device.
public struct MessageWindow: Equatable, Sendable {
    /// By position, oldest first; then what this device has sent and the feed has not told of,
    /// in the order it was sent. Edits and deletions of this device count at once, before the
    /// server has answered them. What was deleted is left out.
    public var rows: [MessageRow] = []
    /// Older ones than the first of `rows` are on this device.
    public var hasOlder = false
    /// Older ones than all that are on this device may be at the server only.
    public var mayFetchOlder = false

    public init() {}
}

extension MessageRow {
    init?(_ entry: Entry, _ reading: Reading) {
        guard case .message(let state) = entry.body, let id = MessageID(entry.object),
            let conversation = entry.conversation
        else { return nil }
        let isOwn = state.sender.isExactly(reading.user)
        self.init(
            id: id, conversation: conversation, position: state.position, version: entry.version,
            sender: state.sender, sentAt: Timestamp(milliseconds: state.sentMs),
            editedAt: state.editedMs > 0 ? Timestamp(milliseconds: state.editedMs) : nil,
            parts: state.parts, push: state.push, isOwn: isOwn,
            isUnread: reading.isUnread(state), delivery: nil)
    }

    init(_ pending: PendingMessage, sender: String, delivery: Delivery) {
        self.init(
            id: pending.reference.message, conversation: pending.reference.conversation,
            position: pending.position, version: 0, sender: sender, sentAt: pending.sentAt,
            editedAt: nil, parts: pending.send.parts, push: pending.send.push, isOwn: true,
            isUnread: false, delivery: delivery)
        isTold = false
    }
}

/// What decides whether a message of a conversation is unread (SYN-27), with what this device has
/// said of it and the server has not yet.
struct Reading: Sendable {
    var user: String
    /// The user sees messages above this position.
    var joined: UInt64 = 0
    /// Whether the user takes part still.
    var isMember = true
    var through: UInt64 = 0
    var ranges: [InclusiveRange] = []

    init(
        of conversation: [UInt8], by user: String, _ snapshot: any StoreSnapshot
    ) throws(StoreError) {
        self.user = user
        let own = try snapshot.entry(.participant, of: conversation, Array(user.utf8))
        if case .participant(let state) = own?.body {
            (joined, isMember) = (state.joinedPosition, !state.removed)
        }
        if case .readMark(let state) = try snapshot.entry(.readMark, of: conversation)?.body {
            (through, ranges) = (state.through, state.ranges)
        }
        if let row = try snapshot.record(LocalReadRecord.self, [.blob(conversation)]) {
            let receipt: ReadReceipt = try TableLocalStore.decoded(row.receipt)
            through = max(through, receipt.through)
            ranges += receipt.ranges
        }
    }

    /// Nothing at or below it is unread.
    var floor: UInt64 { isMember ? max(through, joined) : .max }

    func isUnread(_ message: MessageState) -> Bool {
        guard message.push != nil, message.position > floor, !message.sender.isExactly(user)
        else { return false }
        return !ranges.contains { $0.first <= message.position && message.position <= $0.last }
    }
}
