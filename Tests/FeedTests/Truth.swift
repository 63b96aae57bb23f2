import Feed
import Model
import Wire

/// Who took part when, and what was said and changed then: who must have what in the end, and
/// who may never see what.
struct Truth {
    /// A message through all its versions.
    struct Message {
        let id: MessageID
        let conversation: ConversationID
        let position: UInt64
        /// By version, from 1; `nil`: it was deleted.
        var texts: [String?]
        /// Who may see each version.
        var audiences: [Set<String>]

        var version: Int { texts.count }
        var isDeleted: Bool { texts[version - 1] == nil }
    }

    private struct Member {
        var joinedPosition: UInt64
        var isPresent: Bool
        var hasReturned = false
        /// Messages up to it are deleted for this user.
        var clearedPosition: UInt64 = 0
    }

    private var members: [ConversationID: [String: Member]] = [:]
    private(set) var messages: [Message] = []
    /// Deleted for everyone.
    private(set) var ended: Set<ConversationID> = []

    // MARK: changes

    mutating func join(_ users: [String], _ id: ConversationID) {
        let position = UInt64(messages.filter { $0.conversation == id }.count)
        for user in users {
            let former = members[id]?[user]
            members[id, default: [:]][user] = Member(
                joinedPosition: position, isPresent: true, hasReturned: former != nil,
                clearedPosition: former?.clearedPosition ?? 0)
        }
    }

    mutating func leave(_ users: [String], _ id: ConversationID) {
        for user in users { members[id]?[user]?.isPresent = false }
    }

    mutating func end(_ id: ConversationID) { ended.insert(id) }

    mutating func clear(_ id: ConversationID, of user: String) {
        members[id]?[user]?.clearedPosition =
            UInt64(messages.filter { $0.conversation == id }.count)
    }

    mutating func send(_ message: MessageID, _ text: String, _ id: ConversationID) {
        let position = UInt64(messages.filter { $0.conversation == id }.count + 1)
        messages.append(
            Message(
                id: message, conversation: id, position: position, texts: [text],
                audiences: [Set(present(id))]))
    }

    mutating func edit(_ id: MessageID, _ text: String) {
        change(id, text) { $0.joinedPosition < $1 }
    }

    /// Also for who came back: it shows nothing.
    mutating func delete(_ id: MessageID) { change(id, nil) { _, _ in true } }

    private mutating func change(
        _ id: MessageID, _ text: String?, _ concerns: (Member, UInt64) -> Bool
    ) {
        guard let number = messages.firstIndex(where: { $0.id == id }) else { return }
        let message = messages[number]
        let had = message.audiences.reduce(into: Set<String>()) { $0.formUnion($1) }
        let audience = present(message.conversation).filter { user in
            guard let member = members[message.conversation]?[user] else { return false }
            return had.contains(user) && concerns(member, message.position)
        }
        messages[number].texts.append(text)
        messages[number].audiences.append(Set(audience))
    }

    // MARK: facts

    func present(_ id: ConversationID) -> [String] {
        (members[id] ?? [:]).filter(\.value.isPresent).keys.sorted()
    }

    func isPresent(_ user: String, _ id: ConversationID) -> Bool {
        members[id]?[user]?.isPresent ?? false
    }

    func wasPresent(_ user: String, _ id: ConversationID) -> Bool {
        members[id]?[user].map { !$0.isPresent } ?? false
    }

    /// Messages that can still be changed.
    var changeable: [Message] {
        messages.filter { !$0.isDeleted && !ended.contains($0.conversation) }
    }

    func conversations(of user: String) -> Set<ConversationID> {
        Set(members.filter { $0.value[user] != nil }.keys)
    }

    /// HIS-4.
    private func isWithinReach(_ message: Message, of user: String) -> Bool {
        guard let member = members[message.conversation]?[user] else { return false }
        return member.isPresent && member.joinedPosition < message.position
    }

    private func isCleared(_ message: Message, of user: String) -> Bool {
        message.position <= members[message.conversation]?[user]?.clearedPosition ?? 0
    }

    private func message(_ object: [UInt8]) -> Message? {
        messages.first { $0.id.bytes == object }
    }

    // MARK: judgement

    /// Whether the user may see what the entry shows.
    func judge(_ entry: Entry, for user: String) -> Finding? {
        let word = "\(user) \(entry.text) version \(entry.version)"
        let text: String?
        switch entry.body {
        case .message(let state):
            text = String(decoding: state.parts.first?.content ?? [], as: UTF8.self)
        case .tombstone(let state):
            if state.conversation { return nil }
            text = nil
        default: return nil
        }
        guard let message = message(entry.object), let version = Int(exactly: entry.version),
            (1...message.version).contains(version), message.texts[version - 1] == text
        else {
            return .overshared("\(word) is not what was said")
        }
        return message.audiences[version - 1].contains(user) ? nil : .overshared(word)
    }

    /// Whether the row is shown: what changed while its user was away is left out.
    func isShown(_ row: EntryRecord, to user: String) -> Bool {
        switch row.kind {
        case .message:
            message(row.object).map {
                $0.audiences.last?.contains(user) ?? true && !isCleared($0, of: user)
            } ?? true
        // One who came back is told anew; until then what changed meanwhile is left out.
        case .metadata: isPresent(user, row.conversation)
        case .participant, .receipt:
            members[row.conversation]?[user].map { $0.isPresent && !$0.hasReturned } ?? false
        default: true
        }
    }

    /// SYN-2: an object has one entry.
    func doubled(_ rows: [EntryRecord]) -> Finding? {
        var seen: Set<String> = []
        // MSG-36: what was deleted for oneself stays told beside what came back.
        let objects = rows.filter { $0.kind != .tombstone || !$0.object.isEmpty }
        for row in objects where !seen.insert(ModelDevice.key(row)).inserted {
            return .doubled("\(row.user.name) \(row.seq) \(row.kind)")
        }
        return nil
    }

    /// Nothing of the conversation after the own removal (MSG-30).
    func late(_ rows: [EntryRecord], _ user: String) -> Finding? {
        for (id, users) in members.sorted(by: { $0.key < $1.key })
        where users[user]?.isPresent == false {
            let own = rows.first {
                $0.kind == .participant && $0.conversation == id
                    && $0.object == Array(user.utf8)
            }
            guard let own else {
                // One who was removed before the addition had come was told of neither.
                if ended.contains(id), !rows.contains(where: { $0.conversation == id }) { continue }
                return .missed("\(user) own removal")
            }
            if let late = rows.first(where: {
                $0.conversation == id && $0.seq > own.seq && $0.kind != .readMark
            }) {
                return .overshared("\(user) \(late.kind) after the removal")
            }
        }
        return nil
    }

    /// Who takes part no longer, and whose conversation ended, was told so.
    func untold(_ device: ModelDevice) -> Finding? {
        for (id, users) in members.sorted(by: { $0.key < $1.key }) {
            guard let own = users[device.user],
                case .conversationState = device.objects["c \(id)"]?.body
            else { continue }
            if !own.isPresent {
                let held = device.objects["p \(id) \(device.user)"]
                guard case .participant(let state) = held?.body, state.removed else {
                    return .untold("\(device.user) was removed from \(id)")
                }
            } else if ended.contains(id) {
                return .untold("\(device.user): \(id) ended")
            }
        }
        return nil
    }

    /// What the device lacks at rest, or holds without having a right to it.
    ///
    /// - Parameter gone: conversations its user deleted for himself, with nothing new since.
    func lacks(_ device: ModelDevice, gone: Set<ConversationID> = []) -> Finding? {
        for message in messages {
            if ended.contains(message.conversation) || isCleared(message, of: device.user) {
                continue
            }
            if device.isNew, !isWithinReach(message, of: device.user) { continue }
            let held = device.objects["m \(message.id.bytes)"]
            let rights = message.audiences.indices.filter {
                message.audiences[$0].contains(device.user)
            }
            guard let highest = rights.last else {
                if held != nil { return .overshared("\(device.user) \(message.position)") }
                continue
            }
            let isNewest = highest + 1 == message.version
            if isNewest, held?.version != UInt64(message.version) {
                return .missed("\(device.user) message \(message.position)")
            }
        }
        for (id, users) in members.sorted(by: { $0.key < $1.key })
        where !ended.contains(id) && !gone.contains(id) {
            if let finding = lacks(device, users, id) { return finding }
        }
        return nil
    }

    private func lacks(
        _ device: ModelDevice, _ users: [String: Member], _ id: ConversationID
    ) -> Finding? {
        guard let own = users[device.user] else {
            let isKnown = device.objects["c \(id)"] != nil
            return isKnown ? .overshared("\(device.user) a conversation of others") : nil
        }
        guard own.isPresent else { return nil }
        for (user, member) in users.sorted(by: { $0.key < $1.key }) {
            let held = device.objects["p \(id) \(user)"]
            guard case .participant(let state) = held?.body else {
                if member.isPresent { return .missed("\(device.user) participant \(user)") }
                continue
            }
            if state.removed == member.isPresent {
                return .missed("\(device.user) how \(user) takes part")
            }
        }
        return nil
    }
}
