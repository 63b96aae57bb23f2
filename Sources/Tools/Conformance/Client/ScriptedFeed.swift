import Crypto
import Model
import Wire

/// The feed of the one user a scripted server knows: what it has, and DELTAs of it.
struct ScriptedFeed {
    var epoch: Epoch
    private(set) var entries: [Entry] = []
    private(set) var head: UInt64 = 0
    private var positions: [ConversationID: UInt64] = [:]

    init() { epoch = Self.newID() }

    static func newID<Noun>() -> Identifier<Noun> {
        // 16 bytes always make an identifier.
        Identifier(Random.bytes(16)) ?? Identifier(high: 1, low: 1)
    }

    var end: Cursor { Cursor(epoch: epoch, seq: head) }

    func cursor(_ seq: UInt64) -> Cursor { Cursor(epoch: epoch, seq: seq) }

    /// Another history: nothing of the old one is left.
    mutating func restart() {
        epoch = Self.newID()
        entries = []
        head = 0
        positions = [:]
    }

    /// Appends an entry under the next number, or one further on.
    @discardableResult
    mutating func append(_ entry: Entry, leaving gap: UInt64 = 0) -> UInt64 {
        head += 1 + gap
        var entry = entry
        entry.seq = head
        entries.append(entry)
        return head
    }

    @discardableResult
    mutating func addConversation(
        _ conversation: ConversationID = newID(), of users: [String]
    ) -> ConversationID {
        append(Self.state(of: conversation, by: users.first ?? ""))
        for user in users {
            append(
                Entry(
                    conversation: conversation, version: 1,
                    body: .participant(ParticipantState(user: user))))
        }
        return conversation
    }

    static func state(of conversation: ConversationID, by user: String) -> Entry {
        Entry(
            conversation: conversation, object: conversation.bytes, version: 1,
            body: .conversationState(ConversationState(createdMs: 1, creator: user)))
    }

    /// A line of somebody's, at the next position.
    @discardableResult
    mutating func say(
        _ text: String, in conversation: ConversationID, by sender: String = "ben",
        id: MessageID = newID(), leaving gap: UInt64 = 0
    ) -> MessageID {
        let entry = nextMessage(text, in: conversation, by: sender, id: id)
        append(entry, leaving: gap)
        return id
    }

    mutating func nextMessage(
        _ text: String, in conversation: ConversationID, by sender: String, id: MessageID
    ) -> Entry {
        let position = (positions[conversation] ?? 0) + 1
        positions[conversation] = position
        return Entry(
            conversation: conversation, object: id.bytes, version: 1,
            body: .message(
                MessageState(
                    position: position, sender: sender, sentMs: position,
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))])))
    }

    /// The DELTA of everything above a cursor, or of at most so many entries.
    func delta(from cursor: Cursor?, limit: Int = .max, floor: UInt64 = 0) -> Delta {
        let known = cursor.map { $0.epoch == epoch && $0.seq <= head } ?? false
        let start = known ? (cursor?.seq ?? 0) : 0
        let above = entries.filter { $0.seq > start }
        let given = Array(above.prefix(limit))
        let more = given.count < above.count
        var delta = Delta(
            entries: given, from: self.cursor(start),
            to: self.cursor(more ? (given.last?.seq ?? start) : head), head: head, more: more,
            mutationFloor: floor)
        if !known {
            let reason: ResetReason =
                if let cursor { cursor.epoch == epoch ? .cursorAhead : .epochChanged } else {
                    .noCursor
                }
            delta.reset = Reset(reason: reason)
        }
        return delta
    }

    /// What was said in a conversation, by position.
    func texts(in conversation: ConversationID) -> [String] {
        entries.compactMap { entry in
            guard entry.conversation == conversation, case .message(let message) = entry.body
            else { return nil }
            return String(decoding: message.parts.first?.content ?? [], as: UTF8.self)
        }
    }
}
