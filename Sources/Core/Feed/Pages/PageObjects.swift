import Model

/// The objects of a page's next entries, read by one scan where they lie together: messages of a
/// conversation by their positions, participants and receipts of one by their users.
///
/// It only saves statements. An object it does not hold is read by its key when its entry's turn
/// comes, and a row that cannot be read is nobody's trouble before that: it may lie behind the end
/// of the page.
final class PageObjects {
    private struct Member: Hashable {
        let conversation: ConversationID
        let user: [UInt8]
    }

    private let snapshot: any StoreSnapshot
    private var messages: [MessageID: [ColumnValue]] = [:]
    private var participants: [Member: [ColumnValue]] = [:]
    private var receipts: [Member: [ColumnValue]] = [:]
    private var size = PageObjects.firstSize

    /// Entries whose objects are looked for at first; each further time twice as many, up to
    /// `sizeMax`: of a page that ends early, few objects are read for nothing.
    private static let firstSize = 8
    private static let sizeMax = 64
    /// The least a page counts for an entry, in bytes.
    private static let entryBytes = 128
    /// With fewer of one conversation, their users' names may be too far apart for a scan.
    private static let membersMin = 4

    init(_ snapshot: any StoreSnapshot) { self.snapshot = snapshot }

    /// Reads objects of the first of these entries, of no more than are likely to fit.
    ///
    /// At most two rows of messages are read for each message that is needed, and two rows of
    /// participants or receipts for each of these.
    ///
    /// - Parameters:
    ///   - room: the bytes that the page has left.
    ///   - taken: the entries it has, and their bytes.
    /// - Returns: of how many of the entries.
    func lookAhead(
        _ entries: some Sequence<EntryRecord?>, room: Int, taken: (entries: Int, bytes: Int)
    ) throws(StoreError) -> Int {
        let usual = max(Self.entryBytes, taken.bytes / max(1, taken.entries))
        let count = min(size, max(0, room) / usual + 1)
        size = min(Self.sizeMax, size * 2)
        messages.removeAll(keepingCapacity: true)
        participants.removeAll(keepingCapacity: true)
        receipts.removeAll(keepingCapacity: true)
        guard count > 1 else { return count }
        var positions: [ConversationID: [UInt64]] = [:]
        var members: [ConversationID: [[UInt8]]] = [:]
        var readers: [ConversationID: [[UInt8]]] = [:]
        var place: (app: AppID, user: UserID)?
        for case let entry? in entries.prefix(count) {
            place = (entry.app, entry.user)
            switch entry.kind {
            case .message: positions[entry.conversation, default: []].append(entry.position)
            case .participant: members[entry.conversation, default: []].append(entry.object)
            case .receipt: readers[entry.conversation, default: []].append(entry.object)
            default: break
            }
        }
        guard let app = place?.app else { return count }
        for (conversation, found) in positions where found.count > 1 {
            try readMessages(app, conversation, found.sorted())
        }
        for (conversation, users) in members where users.count >= Self.membersMin {
            for (user, row) in try rows(ParticipantRecord.table, app, conversation, users) {
                participants[Member(conversation: conversation, user: user)] = row
            }
        }
        for (conversation, users) in readers where users.count >= Self.membersMin {
            for (user, row) in try rows(ReceiptRecord.table, app, conversation, users) {
                receipts[Member(conversation: conversation, user: user)] = row
            }
        }
        return count
    }

    /// Of positions that rise: those with at most one other between them are read together.
    private func readMessages(
        _ app: AppID, _ conversation: ConversationID, _ positions: [UInt64]
    ) throws(StoreError) {
        var start = 0
        for index in positions.indices {
            let next = index + 1
            if next < positions.count, positions[next] - positions[index] <= 2 { continue }
            let (first, last) = (positions[start], positions[index])
            let isAlone = start == index
            start = next
            guard !isAlone, first > 0 else { continue }
            let rows = try scan(
                MessageRecord.table,
                Scan(
                    index: "message_by_position",
                    prefix: [.app(app), .identifier(conversation)],
                    after: [.unsigned(first - 1)], through: [.unsigned(last)],
                    limit: 2 * Self.sizeMax))
            for row in rows {
                if case .blob(let bytes) = row[1], let id = MessageID(bytes) { messages[id] = row }
            }
        }
    }

    /// Rows of a conversation by their users, above the first of these names and up to the last.
    private func rows(
        _ table: Table, _ app: AppID, _ conversation: ConversationID, _ users: [[UInt8]]
    ) throws(StoreError) -> [(user: [UInt8], row: [ColumnValue])] {
        let names = users.sorted { $0.lexicographicallyPrecedes($1) }
        guard let first = names.first, let last = names.last, first != last else { return [] }
        let rows = try scan(
            table,
            Scan(
                prefix: [.app(app), .identifier(conversation)],
                after: [.text(String(decoding: first, as: UTF8.self))],
                through: [.text(String(decoding: last, as: UTF8.self))],
                limit: 2 * names.count))
        var found: [(user: [UInt8], row: [ColumnValue])] = []
        for row in rows {
            if case .text(let user) = row[2] { found.append((Array(user.utf8), row)) }
        }
        return found
    }

    private func scan(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        do throws(StoreError) {
            return try snapshot.rows(table, scan)
        } catch {
            // Whose row it is shows when each is read by its key.
            guard case .corrupt = error else { throw error }
            return []
        }
    }

    // MARK: What an entry points to

    func message(_ entry: EntryRecord) throws(StoreError) -> MessageRecord? {
        if let id = MessageID(entry.object), let row = messages[id] {
            return try MessageRecord(row: row)
        }
        return try snapshot.record(MessageRecord.self, [.app(entry.app), .blob(entry.object)])
    }

    func participant(_ entry: EntryRecord) throws(StoreError) -> ParticipantRecord? {
        let member = Member(conversation: entry.conversation, user: entry.object)
        if let row = participants[member] { return try ParticipantRecord(row: row) }
        return try snapshot.record(ParticipantRecord.self, key(of: entry))
    }

    func receipt(_ entry: EntryRecord) throws(StoreError) -> ReceiptRecord? {
        let member = Member(conversation: entry.conversation, user: entry.object)
        if let row = receipts[member] { return try ReceiptRecord(row: row) }
        return try snapshot.record(ReceiptRecord.self, key(of: entry))
    }

    private func key(of entry: EntryRecord) -> [ColumnValue] {
        [
            .app(entry.app), .identifier(entry.conversation),
            .text(String(decoding: entry.object, as: UTF8.self)),
        ]
    }
}
