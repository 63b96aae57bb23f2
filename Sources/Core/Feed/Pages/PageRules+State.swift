import Model
import Wire

// Entries of what conversations and users have set.
extension PageReader {
    func joinState(_ row: EntryRecord) throws(StoreError) -> SizedEntry {
        switch row.kind {
        case .metadata:
            return try entry(
                of: try found(
                    MetadataRecord.self, [.app(row.app), .identifier(row.conversation)]))
        case .conversationSettings:
            return entry(
                of: try found(
                    SettingsRecord.self,
                    [.app(row.app), .user(row.user), .identifier(row.conversation)]))
        case .block:
            let other = String(decoding: row.object, as: UTF8.self)
            return entry(
                of: try found(BlockRecord.self, [.app(row.app), .user(row.user), .text(other)]))
        default: preconditionFailure("\(row.kind) is no state")
        }
    }
}
