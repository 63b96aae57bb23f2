import Model
import Wire

/// What a client has applied of its feed, and where the server broke the feed's rules.
struct Replica {
    /// Tells objects apart (SYN-3).
    struct Key: Hashable {
        var kind: String
        var conversation: ConversationID?
        var object: [UInt8]
        var user: String
    }

    /// Every entry in the order it came.
    private(set) var log: [Entry] = []
    private(set) var objects: [Key: Entry] = [:]
    /// What SYN-1 to SYN-4 and SYN-11 forbid, as it was met.
    private(set) var violations: [String] = []
    private var lastSeq: UInt64 = 0
    private var lastPosition: [ConversationID: UInt64] = [:]
    private var known: Set<ConversationID> = []

    /// Begins anew: after a reset the feed comes from its start.
    mutating func reset() {
        lastSeq = 0
        lastPosition = [:]
        known = []
    }

    mutating func apply(_ entry: Entry) {
        if entry.seq <= lastSeq {
            violations.append("entry \(entry.seq) comes after \(lastSeq)")
        }
        lastSeq = max(lastSeq, entry.seq)
        log.append(entry)
        judgeOrder(entry)
        let key = Self.key(of: entry)
        if let old = objects[key], old.version >= entry.version { return }
        objects[key] = entry
    }

    private mutating func judgeOrder(_ entry: Entry) {
        guard let conversation = entry.conversation else { return }
        switch entry.body {
        case .conversationState: known.insert(conversation)
        case .participant(let state):
            if !known.contains(conversation) {
                violations.append("participant \(state.user) comes before its conversation")
            }
        case .message(let message):
            if !known.contains(conversation) {
                violations.append("message \(message.position) comes before its conversation")
            }
            let last = lastPosition[conversation] ?? 0
            if message.position <= last, message.editedMs == 0 {
                violations.append("message \(message.position) comes after message \(last)")
            }
            lastPosition[conversation] = max(last, message.position)
        default: break
        }
    }

    private static func key(of entry: Entry) -> Key {
        var key = Key(
            kind: "", conversation: entry.conversation, object: entry.object, user: "")
        switch entry.body {
        case .conversationState: key.kind = "conversation"
        case .participant(let state):
            key.kind = "participant"
            key.user = state.user
        case .message: key.kind = "message"
        case .receipt(let state):
            key.kind = "receipt"
            key.user = state.user
        case .readMark: key.kind = "read mark"
        case .tombstone: key.kind = "tombstone"
        case .metadata: key.kind = "metadata"
        case .announcement: key.kind = "announcement"
        case .conversationSettings: key.kind = "settings"
        case .block(let state):
            key.kind = "block"
            key.user = state.user
        case nil: key.kind = "unknown"
        }
        return key
    }

    // MARK: Looking

    func knows(_ conversation: ConversationID) -> Bool {
        objects.values.contains {
            guard case .conversationState = $0.body else { return false }
            return $0.conversation == conversation
        }
    }

    /// The conversation's own entry.
    func conversation(_ id: ConversationID) -> ConversationState? {
        for entry in entries(of: id) {
            if case .conversationState(let state) = entry.body { return state }
        }
        return nil
    }

    /// By position.
    func messages(in conversation: ConversationID) -> [MessageState] {
        entries(of: conversation).compactMap { entry in
            if case .message(let message) = entry.body { message } else { nil }
        }.sorted { $0.position < $1.position }
    }

    func texts(in conversation: ConversationID) -> [String] {
        messages(in: conversation).map { message in
            String(decoding: message.parts.first?.content ?? [], as: UTF8.self)
        }
    }

    /// How often a message's entry came, over all DELTAs.
    func arrivals(of message: MessageID) -> Int {
        log.count { entry in
            if case .message = entry.body { entry.object == message.bytes } else { false }
        }
    }

    /// Names of the participants there are.
    func participants(of conversation: ConversationID) -> [String] {
        entries(of: conversation).compactMap { entry in
            if case .participant(let state) = entry.body, !state.removed { state.user } else { nil }
        }.sorted()
    }

    func entries(of conversation: ConversationID) -> [Entry] {
        objects.values.filter { $0.conversation == conversation }.sorted { $0.seq < $1.seq }
    }

    func readMark(of conversation: ConversationID) -> ReadMarkState? {
        for entry in entries(of: conversation) {
            if case .readMark(let mark) = entry.body { return mark }
        }
        return nil
    }

    func receipt(of user: String, in conversation: ConversationID) -> ReceiptState? {
        for entry in entries(of: conversation) {
            if case .receipt(let state) = entry.body, state.user == user { return state }
        }
        return nil
    }
}
