import Model
import Wire

/// Who takes part in a conversation, and above which position each of them sees messages (HIS-38).
struct Audience: Equatable {
    /// By name in UTF-8, without those who were removed.
    private(set) var joined: [[UInt8]: UInt64] = [:]

    /// As it is stored; `nil`: not everybody who takes part is known here, as in a large
    /// conversation, or after a page of a snapshot that did not hold all.
    init?(of conversation: [UInt8], _ snapshot: any StoreSnapshot) throws(StoreError) {
        guard
            case .conversationState(let state) =
                try snapshot.entry(.conversation, of: conversation)?.body,
            state.participants == 0
        else { return nil }
        let window = try snapshot.record(LocalWindowRecord.self, [.blob(conversation)])
        // Without a snapshot everybody came by the feed.
        if let window, window.hasParticipants != true { return nil }
        var scan = Scan(.participant, of: conversation, limit: TableLocalStore.step)
        while true {
            let rows = try snapshot.records(LocalEntryRecord.self, scan)
            for row in rows {
                let entry: Entry = try TableLocalStore.decoded(row.entry)
                guard case .participant(let state) = entry.body, !state.removed else { continue }
                joined[row.object] = state.joinedPosition
            }
            guard rows.count == scan.limit, let last = rows.last else { return }
            scan.after = [.blob(last.object)]
        }
    }

    /// The others, by name.
    func names(without user: [UInt8]) -> [String] {
        joined.keys.filter { $0 != user }.sorted { $0.lexicographicallyPrecedes($1) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Above which position everybody of `others` saw the messages as one of this audience; `nil`:
    /// somebody of them is none of it.
    func sawAll(_ others: Audience, without user: [UInt8]) -> UInt64? {
        var above: UInt64 = 0
        for name in others.joined.keys where name != user {
            guard let from = joined[name] else { return nil }
            above = max(above, from)
        }
        return above
    }
}

extension Audience {
    /// As it is kept beside messages that wait for their conversation.
    init(encoded bytes: [UInt8]) throws(StoreError) {
        let kept: SnapshotConversation = try TableLocalStore.decoded(bytes)
        for entry in kept.entries {
            guard case .participant(let state) = entry.body else { continue }
            joined[Array(state.user.utf8)] = state.joinedPosition
        }
    }

    var encoded: [UInt8] {
        let entries = joined.map { name, from in
            Entry(
                version: 0,
                body: .participant(
                    ParticipantState(
                        user: String(decoding: name, as: UTF8.self), joinedPosition: from)))
        }
        return SnapshotConversation(entries: entries, participantsComplete: true).encoded
    }
}
