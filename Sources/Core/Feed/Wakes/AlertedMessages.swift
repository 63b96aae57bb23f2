import Model
import Wake

/// The messages a device was already sent an alert of: DELTA marks their entries. Read once a
/// page.
final class AlertedMessages {
    private let key: [ColumnValue]
    private let snapshot: any StoreSnapshot
    /// Rows of the device by their message.
    private var rows: [MessageID: [ColumnValue]] = [:]
    /// There are no others; until then each message is looked for.
    private var isWhole = false
    private var looks = 0

    /// Read at first. A page of one entry must not cost all rows of a device, and one of many
    /// entries not a statement for each: after so many looks the rest is read, too.
    private static let first = 16

    init(
        _ app: AppID, _ user: UserID, _ device: DeviceID, in snapshot: any StoreSnapshot
    ) throws(StoreError) {
        key = [.app(app), .user(user), .identifier(device)]
        self.snapshot = snapshot
        try readAhead(Self.first)
    }

    func contains(_ entry: EntryRecord) throws(StoreError) -> Bool {
        guard entry.isVisible, let message = MessageID(entry.object) else { return false }
        if looks == Self.first, !isWhole {
            looks += 1
            try readAhead(2 * AlertRoom.rows)
        }
        if let row = rows[message] { return try AlertRecord(row: row).sentAt != nil }
        if isWhole { return false }
        looks += 1
        return try snapshot.record(AlertRecord.self, key + [.identifier(message)])?.sentAt != nil
    }

    private func readAhead(_ limit: Int) throws(StoreError) {
        do throws(StoreError) {
            let found = try snapshot.rows(AlertRecord.table, Scan(prefix: key, limit: limit))
            isWhole = found.count < limit
            for row in found {
                if case .blob(let bytes) = row[3], let id = MessageID(bytes) { rows[id] = row }
            }
        } catch {
            // Whose row it is shows when it is read by its key.
            guard case .corrupt = error else { throw error }
        }
    }
}
