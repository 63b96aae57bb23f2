import Model
import Wire

/// What the server has made of this user's edits and deletions, until the feed tells of it. For a
/// moment only, so that it is not kept.
///
/// The feed may tell before the answer comes: of an edit whose answer was lost with its connection,
/// and of what others made of the message since. An entry counts as newer by its version.
struct AnsweredChanges: Equatable {
    private(set) var changes = MessageChanges()
    /// The version that the last edit of a message made, or a lower one that was not there before
    /// it; `.max`: nothing is known of it, and the next entry counts as newer.
    private var versions: [MessageID: UInt64] = [:]
    /// Whether the feed has told of a message since this process queued an edit of it that names
    /// no version.
    private var toldSince: [MessageID: Bool] = [:]

    /// Versions are kept beside the edits that the feed has told of, for a second edit.
    mutating func makeRoom(for limit: Int) {
        if toldSince.count >= limit { toldSince = [:] }
        if versions.count + changes.deleted.count < limit { return }
        versions = versions.filter { changes.edits[$0.key] != nil }
        if versions.count + changes.deleted.count >= limit { self = AnsweredChanges() }
    }

    /// It was put into the outbox.
    mutating func queued(_ operation: Mutation.Operation) {
        guard case .editMessage(let edit) = operation, edit.baseVersion == 0,
            let message = edit.message, toldSince[message] == nil
        else { return }
        toldSince[message] = false
    }

    /// The server has done it.
    mutating func answered(_ operation: Mutation.Operation?) {
        changes.note(operation)
        guard case .editMessage(let edit) = operation, let message = edit.message else { return }
        versions[message] = version(of: edit, message)
        // What is told from now on is nothing to the next edit, before that is queued.
        toldSince[message] = nil
    }

    private func version(of edit: EditMessage, _ message: MessageID) -> UInt64 {
        // MSG-33: it was made from this version, and has the next.
        if edit.baseVersion > 0 { return edit.baseVersion.addingClamped(1) }
        if let before = versions[message] { return before.addingClamped(1) }
        // The first one is no edit's. Of what was queued by another process it is not known what
        // came meanwhile; it is better to show an old text for a moment than for ever.
        return toldSince[message] == false ? .max : 2
    }

    /// These were applied: what is shown of them is the feed's, unless it is older.
    mutating func told(_ entries: [Entry]) {
        guard !versions.isEmpty || !toldSince.isEmpty || !changes.deleted.isEmpty else { return }
        for entry in entries {
            guard let message = MessageID(entry.object) else { continue }
            changes.deleted.remove(message)
            if toldSince[message] != nil { toldSince[message] = true }
            guard let version = versions[message] else { continue }
            if version == .max { versions[message] = nil }
            if entry.version >= version || version == .max { changes.edits[message] = nil }
        }
    }

    /// The last edit of a message, if what the feed has told of it is older.
    func edit(of message: MessageID, since version: UInt64) -> EditMessage? {
        guard let made = versions[message], version < made else { return nil }
        return changes.edits[message]
    }
}
