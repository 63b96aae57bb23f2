import Model
import Wire

// Entries of what conversations and users have set.
extension PageReader {
    func joinState(
        _ row: EntryRecord, _ entry: inout Entry, _ size: inout Int
    ) throws(StoreError) {
        switch row.kind {
        case .metadata:
            let record = try found(
                MetadataRecord.self, [.app(row.app), .identifier(row.conversation)])
            entry.version = record.version
            do throws(WireError) {
                entry.body = .metadata(try MetadataState(encoded: record.state))
            } catch {
                throw .corrupt("metadata: \(error)")
            }
            size += record.state.count
        case .conversationSettings:
            let record = try found(
                SettingsRecord.self,
                [.app(row.app), .user(row.user), .identifier(row.conversation)])
            entry.version = record.version
            entry.body = .conversationSettings(
                ConversationSettings(
                    muted: record.isMuted(now: now),
                    mutedUntilMs: record.mutedUntil?.milliseconds ?? 0))
        case .block:
            let other = String(decoding: row.object, as: UTF8.self)
            let record = try found(
                BlockRecord.self, [.app(row.app), .user(row.user), .text(other)])
            entry.conversation = nil
            entry.version = record.version
            entry.body = .block(BlockState(user: other, blocked: record.isBlocked))
            size += other.utf8.count
        default: preconditionFailure("\(row.kind) is no state")
        }
    }
}
