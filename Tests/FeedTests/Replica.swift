import Feed
import Model
import Wire

/// What a device keeps of a feed (SYN-5): of each object the newest version.
struct Replica {
    let user: ExactText
    private(set) var cursor: UInt64 = 0
    private(set) var epoch: Epoch?
    private(set) var objects: [ReplicaKey: Entry] = [:]

    init(of user: String) { self.user = ExactText(user) }

    mutating func apply(_ page: Page) {
        epoch = page.epoch
        cursor = page.to
        for entry in page.entries { keep(entry) }
    }

    mutating func apply(_ page: SnapshotPage) {
        if let start = page.start {
            cursor = start.seq
            epoch = start.epoch
        }
        for entry in page.entries + page.conversations.flatMap(\.entries) { keep(entry) }
    }

    private mutating func keep(_ entry: Entry) {
        let key = ReplicaKey(entry)
        if let held = objects[key], held.version > entry.version {
            // MSG-36: but for the position up to which its user deleted the conversation.
            guard case .tombstone(let state) = entry.body, state.conversation, !state.forEveryone
            else { return }
        } else {
            objects[key] = entry
        }
        // MSG-38: nobody is told of the others any more.
        if case .conversationState(let state) = entry.body, state.participants > 0 {
            objects = objects.filter { other, held in
                guard case .participant(let member) = held.body,
                    other.conversation == key.conversation
                else { return true }
                return user == ExactText(member.user)
            }
        }
        guard case .tombstone(let state) = entry.body, state.conversation,
            let id = entry.conversation
        else { return }
        // MSG-36, MSG-37: with the conversation everything in it goes, up to the position.
        objects = objects.filter { other, held in
            guard held.conversation == id, other != key else { return true }
            guard case .message(let message) = held.body else { return false }
            return !state.forEveryone && message.position > state.position
        }
    }

    /// A conversation that it shows to its user, and whether the user takes part as it knows.
    func own(_ id: ConversationID) -> ParticipantState? {
        let key = ReplicaKey(kind: .participant, conversation: id, object: Array(user.text.utf8))
        guard case .participant(let state) = objects[key]?.body else { return nil }
        return state
    }

    /// Those who take part as it knows.
    func participants(of id: ConversationID) -> [String] {
        objects.values.compactMap { held in
            guard held.conversation == id, case .participant(let state) = held.body,
                !state.removed
            else { return nil }
            return state.user
        }
    }

    func isLarge(_ id: ConversationID) -> Bool {
        let key = ReplicaKey(kind: .conversation, conversation: id, object: [])
        guard case .conversationState(let state) = objects[key]?.body else { return false }
        return state.participants > 0
    }

    func holds(_ id: ConversationID) -> Bool {
        let key = ReplicaKey(kind: .conversation, conversation: id, object: [])
        if case .conversationState = objects[key]?.body { return true }
        return false
    }

    func holds(announcement id: MessageID) -> Bool {
        let none = ConversationID(high: 0, low: 0)
        return objects[
            ReplicaKey(kind: .announcement, conversation: none, object: id.bytes)] != nil
    }

    /// What it shows of conversations in which its user takes part, of announcements and blocks,
    /// by object: that must not depend on how the replica came to hold it.
    ///
    /// - Parameter conversations: where the user takes part.
    func shown(in conversations: Set<ConversationID>, now: Timestamp) -> [ReplicaKey: Entry] {
        var shown: [ReplicaKey: Entry] = [:]
        for (key, entry) in objects {
            var entry = entry
            entry.seq = 0
            entry.alerted = false
            switch entry.body {
            case .announcement, .block: break
            case .participant(let state):
                guard conversations.contains(key.conversation), !state.removed else { continue }
            case .message(let state):
                guard conversations.contains(key.conversation),
                    let own = own(key.conversation), own.joinedPosition < state.position
                else { continue }
            case .conversationSettings(var state):
                guard conversations.contains(key.conversation) else { continue }
                // It ends by itself, and nobody is told.
                if state.mutedUntilMs > 0 { state.muted = now.milliseconds < state.mutedUntilMs }
                entry.body = .conversationSettings(state)
            case .conversationState(var state):
                guard conversations.contains(key.conversation) else { continue }
                // MSG-53: the name of a user who was deleted goes, and nobody is told.
                state.creator = ""
                entry.body = .conversationState(state)
            case .metadata, .readMark:
                guard conversations.contains(key.conversation) else { continue }
            case .tombstone, .receipt, nil: continue
            }
            shown[key] = entry
        }
        return shown
    }
}

/// SYN-3: what an entry is about.
struct ReplicaKey: Hashable {
    enum Kind {
        case conversation, participant, message, receipt, readMark, metadata, announcement
        case settings, block, none
    }

    var kind: Kind
    var conversation: ConversationID
    var object: [UInt8]
}

extension ReplicaKey {
    init(_ entry: Entry) {
        let none = ConversationID(high: 0, low: 0)
        conversation = entry.conversation ?? none
        object = []
        switch entry.body {
        case .conversationState: kind = .conversation
        case .participant(let state):
            kind = .participant
            object = Array(state.user.utf8)
        case .message:
            kind = .message
            object = entry.object
        case .receipt(let state):
            kind = .receipt
            object = Array(state.user.utf8)
        case .readMark: kind = .readMark
        case .tombstone(let state):
            let kindOfOne: Kind = entry.conversation == nil ? .announcement : .message
            kind = state.conversation ? .conversation : kindOfOne
            object = state.conversation ? [] : entry.object
        case .metadata: kind = .metadata
        case .announcement:
            kind = .announcement
            object = entry.object
        case .conversationSettings: kind = .settings
        case .block(let state):
            kind = .block
            object = Array(state.user.utf8)
        case nil: kind = .none
        }
    }
}
