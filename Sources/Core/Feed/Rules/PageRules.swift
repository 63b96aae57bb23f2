import Model
import Wire

/// Reads of one snapshot.
struct PageReader {
    let snapshot: any StoreSnapshot
    let now: Timestamp

    /// Entries read at a time.
    private static let chunk = 64
    /// Elements a page may hold at all levels, so that its frame, with the results of a SYNC
    /// beside it, is one that every client takes (FRM-15).
    static let elementsMax = FrameLimits.afterWelcome.elements - RuleLimits().mutationsPerRequest

    /// Entries after the cursor, each with its object's present state: as both come from one
    /// snapshot, an entry never shows less than its version.
    func page(_ query: PageQuery) throws(StoreError) -> Page? {
        guard let user = try snapshot.record(UserRecord.self, [.app(query.app), .user(query.user)])
        else { return nil }
        let half = try snapshot.record(MetaRecord.self, [.text(MetaRecord.epochName)])?.number
        var page = Page(
            entries: [], epoch: Epoch(high: half ?? 0, low: user.epochHalf), from: query.after,
            to: max(user.head, query.after), head: user.head, more: false, firstVisible: nil)
        let alerted = try WakeRules.AlertedMessages(
            query.app, query.user, query.device, in: snapshot)
        var bytes = 0
        var elements = 0
        var after = query.after
        while true {
            let rows = try snapshot.records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(query.app), .user(query.user)], after: [.unsigned(after)],
                    limit: Self.chunk))
            for row in rows {
                var (entry, size) = try join(row)
                entry.alerted = try alerted.contains(row)
                bytes += size
                elements += entry.elements
                if bytes > query.bytes || elements > Self.elementsMax,
                    let last = page.entries.last
                {
                    page.to = last.seq
                    page.more = true
                    return page
                }
                page.entries.append(entry)
                if row.isVisible && page.firstVisible == nil { page.firstVisible = row.seq }
                after = row.seq
            }
            if rows.count < Self.chunk { return page }
        }
    }

    /// The entry and a bound on its encoded size, tag and length in the page included.
    private func join(_ row: EntryRecord) throws(StoreError) -> (Entry, Int) {
        var entry = Entry(
            seq: row.seq, conversation: row.conversation, version: row.version)
        // Tags, lengths and numbers: 7 varints of at most 11 bytes each, and two ids.
        var size = 128
        switch row.kind {
        case .conversation:
            let state = try conversation(row)
            entry.object = row.conversation.bytes
            entry.body = .conversationState(
                ConversationState(
                    createdMs: state.createdAt.milliseconds, creator: state.creator,
                    distinct: !state.distinctKey.isEmpty, receiptsOff: state.receiptsOff))
            size += state.creator.utf8.count
        case .participant:
            let state = try participant(row)
            entry.version = state.version
            entry.body = .participant(
                ParticipantState(
                    user: state.user.name, joinedPosition: state.joinedPosition))
            size += state.user.name.utf8.count
        case .message:
            let state = try message(row)
            entry.object = row.object
            entry.version = state.version
            entry.body = .message(try self.state(of: state))
            size +=
                state.parts.count + state.sender.utf8.count + state.pushTitle.utf8.count
                + state.pushBody.utf8.count
        case .receipt:
            let state = try receipt(row)
            entry.version = state.version
            entry.body = .receipt(
                ReceiptState(
                    user: state.user.name, deliveredThrough: state.announcedDelivered,
                    readThrough: state.announcedRead))
            size += state.user.name.utf8.count
        case .readMark:
            let (state, positions) = try readMark(row)
            entry.version = state.version
            entry.body = .readMark(
                ReadMarkState(through: positions.through, ranges: positions.ranges))
            size += positions.ranges.count * 26
        case .metadata, .conversationSettings, .block: try joinState(row, &entry, &size)
        case .tombstone, .announcement:
            throw .corrupt("entry: kind \(row.kind) is not written yet")
        }
        return (entry, size)
    }

    private func state(of message: MessageRecord) throws(StoreError) -> MessageState {
        var state: MessageState
        do throws(WireError) {
            state = try MessageState(encoded: message.parts)
        } catch {
            throw .corrupt("message: parts: \(error)")
        }
        state.position = message.position
        state.sender = message.sender
        state.sentMs = message.sentAt.milliseconds
        if !message.pushTitle.isEmpty || !message.pushBody.isEmpty {
            state.push = PushText(title: message.pushTitle, body: message.pushBody)
        }
        return state
    }

    func found<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(StoreError) -> R {
        guard let record = try snapshot.record(type, key) else {
            throw .corrupt("entry: no \(R.table.name)")
        }
        return record
    }

    private func conversation(_ row: EntryRecord) throws(StoreError) -> ConversationRecord {
        try found(ConversationRecord.self, [.app(row.app), .identifier(row.conversation)])
    }

    private func participant(_ row: EntryRecord) throws(StoreError) -> ParticipantRecord {
        let user = String(decoding: row.object, as: UTF8.self)
        return try found(
            ParticipantRecord.self, [.app(row.app), .identifier(row.conversation), .text(user)])
    }

    private func message(_ row: EntryRecord) throws(StoreError) -> MessageRecord {
        try found(MessageRecord.self, [.app(row.app), .blob(row.object)])
    }

    private func receipt(_ row: EntryRecord) throws(StoreError) -> ReceiptRecord {
        let user = String(decoding: row.object, as: UTF8.self)
        return try found(
            ReceiptRecord.self, [.app(row.app), .identifier(row.conversation), .text(user)])
    }

    private func readMark(
        _ row: EntryRecord
    ) throws(StoreError) -> (ReadMarkRecord, PositionSet) {
        let record = try found(
            ReadMarkRecord.self, [.app(row.app), .user(row.user), .identifier(row.conversation)])
        guard let set = PositionSet(through: record.through, rangeBytes: record.ranges) else {
            throw .corrupt("read_mark: ranges are not pairs")
        }
        return (record, set)
    }
}

extension Entry {
    /// What it adds to the repeated fields of its frame, itself included.
    fileprivate var elements: Int {
        switch body {
        case .message(let message): 1 + message.parts.count
        case .readMark(let mark): 1 + mark.ranges.count
        case .announcement(let announcement): 1 + announcement.parts.count
        case .metadata(let metadata): 1 + metadata.values.reduce(0) { $0 + 1 + $1.path.count }
        case .conversationState, .participant, .receipt, .tombstone, .conversationSettings,
            .block, nil:
            1
        }
    }
}
