import Model
import Wake
import Wire

/// Reads of one snapshot.
struct PageReader {
    let snapshot: any StoreSnapshot
    let now: Timestamp
    /// Told of each row that cannot be read and is left out.
    let passingOver: (UnreadableRow) -> Void
    private let blocks = BlockList()
    private let objects: PageObjects

    init(
        snapshot: any StoreSnapshot, now: Timestamp,
        passingOver: @escaping (UnreadableRow) -> Void
    ) {
        self.snapshot = snapshot
        objects = PageObjects(snapshot)
        self.now = now
        self.passingOver = passingOver
    }

    /// Users whom this one blocks: read once a query.
    func blocked(by user: UserID, of app: AppID) throws(StoreError) -> BlockedNames {
        try blocks.names(app, user, in: snapshot)
    }

    /// Entries read at a time.
    static let chunk = 64
    /// Messages read at first, where few may be asked for; each further time twice as many, up to
    /// a chunk.
    static let firstChunk = 8

    /// Entries after the cursor, each with its object's present state: as both come from one
    /// snapshot, an entry never shows less than its version.
    func page(_ query: PageQuery, _ limits: RuleLimits) throws(StoreError) -> Page? {
        guard let user = try snapshot.record(UserRecord.self, [.app(query.app), .user(query.user)])
        else { return nil }
        let half = try snapshot.record(MetaRecord.self, [.text(MetaRecord.epochName)])?.number
        var page = Page(
            entries: [], epoch: Epoch(high: half ?? 0, low: user.epochHalf), from: query.after,
            to: max(user.head, query.after), head: user.head, more: false, firstVisible: nil)
        if let session = query.session {
            page.standing = try standing(of: session, user)
            // Nothing of the feed is for who has to hear that first.
            guard page.standing == .current else { return page }
        }
        if query.newestFirst { return try peek(query, page, of: user, limits) }
        let alerted = try AlertedMessages(query.app, query.user, query.device, in: snapshot)
        var reach = Reach(user: user, snapshot: snapshot)
        let language = DeviceLanguage(query, in: snapshot)
        var bytes = 0
        var elements = 0
        var budget = ReadBudget(limits)
        var after = query.after
        while true {
            let rows = try places(
                query,
                Scan(
                    prefix: [.app(query.app), .user(query.user)], after: [.unsigned(after)],
                    limit: Self.chunk))
            var known = 0
            for (index, place) in rows.enumerated() {
                if index == known {
                    known += try objects.lookAhead(
                        rows[index...].lazy.map(\.entry), room: query.bytes - bytes,
                        taken: (page.entries.count, bytes))
                }
                after = place.seq
                guard let row = place.entry, let sized = try shown(row, &reach, language) else {
                    budget.passOver()
                    continue
                }
                var entry = sized.entry
                if !entry.alerted { entry.alerted = try isToldOf(row, entry, alerted, &reach) }
                bytes += sized.bytes
                elements += entry.elements
                if bytes > query.bytes || elements > Page.elementsMax,
                    let last = page.entries.last
                {
                    page.to = last.seq
                    page.more = true
                    return page
                }
                page.entries.append(entry)
                if row.isVisible && page.firstVisible == nil { page.firstVisible = row.seq }
            }
            if rows.count < Self.chunk {
                let unread = try snapshot.unreadShown(query.app, query.user, now: now)
                page.unread = unread.count
                page.unreadTime = unread.time
                return page
            }
            if budget.isSpent, after < user.head {
                page.to = after
                page.more = true
                return page
            }
        }
    }

    /// The newest entries above the cursor, from the head down: what a device takes that has no
    /// time for the rest. The cursor stays (SYN-12).
    private func peek(
        _ query: PageQuery, _ empty: Page, of user: UserRecord, _ limits: RuleLimits
    ) throws(StoreError) -> Page {
        var page = empty
        page.to = page.from
        let alerted = try AlertedMessages(query.app, query.user, query.device, in: snapshot)
        var reach = Reach(user: user, snapshot: snapshot)
        let language = DeviceLanguage(query, in: snapshot)
        var room = PageRoom(bytes: query.bytes)
        var budget = ReadBudget(limits)
        var through = page.head
        while through > query.after {
            let rows = try places(
                query,
                Scan(
                    prefix: [.app(query.app), .user(query.user)],
                    after: [.unsigned(query.after)], through: [.unsigned(through)],
                    descending: true, limit: Self.chunk))
            var known = 0
            for (index, place) in rows.enumerated() {
                if index == known {
                    known += try objects.lookAhead(
                        rows[index...].lazy.map(\.entry), room: room.bytes,
                        taken: (page.entries.count, query.bytes - room.bytes))
                }
                through = place.seq - 1
                guard let row = place.entry, var sized = try shown(row, &reach, language) else {
                    budget.passOver()
                    continue
                }
                if !sized.entry.alerted {
                    sized.entry.alerted = try isToldOf(row, sized.entry, alerted, &reach)
                }
                guard room.fits(sized) || page.entries.isEmpty else {
                    page.more = true
                    return page
                }
                room.take(sized)
                page.entries.append(sized.entry)
            }
            if rows.count < Self.chunk { break }
            if budget.isSpent, through > query.after {
                page.more = true
                return page
            }
        }
        page.unread = try snapshot.unread(query.app, query.user, now: now)
        return page
    }

    /// Where a row of the feed stands, and the row, if it can be read.
    private struct Place {
        var seq: UInt64
        var entry: EntryRecord?
    }

    private func places(_ query: PageQuery, _ scan: Scan) throws(StoreError) -> [Place] {
        var places: [Place] = []
        for row in try snapshot.rows(EntryRecord.table, scan) {
            do throws(StoreError) {
                let entry = try EntryRecord(row: row)
                places.append(Place(seq: entry.seq, entry: entry))
            } catch {
                guard case .corrupt(let detail) = error, case .integer(let seq) = row[2] else {
                    throw error
                }
                let conversation: ConversationID? =
                    if case .blob(let bytes) = row[4] { ConversationID(bytes) } else { nil }
                passingOver(
                    UnreadableRow(
                        app: query.app, user: query.user, conversation: conversation ?? .none,
                        detail: "entry \(seq): \(detail)"))
                places.append(Place(seq: UInt64(clamping: seq)))
            }
        }
        return places
    }

    /// What the entry shows. One that cannot be read is passed over: it would keep everything
    /// above it from the user's devices for ever. `nil`: nothing, for this user.
    private func shown(
        _ row: EntryRecord, _ reach: inout Reach, _ language: DeviceLanguage
    ) throws(StoreError) -> SizedEntry? {
        do throws(StoreError) {
            return try join(row, &reach, language)
        } catch {
            return try passOver(error, row.app, row.user, row.conversation, "entry \(row.seq): ")
        }
    }

    /// Whether the device itself tells nobody of the entry: it was alerted of it (PSH-5), or an
    /// alert of it is refused or would be cancelled (PSH-9).
    private func isToldOf(
        _ row: EntryRecord, _ entry: Entry, _ alerted: AlertedMessages, _ reach: inout Reach
    ) throws(StoreError) -> Bool {
        try readable(row.app, row.user, row.conversation) { () throws(StoreError) in
            if try alerted.contains(row) { return true }
            guard case .message(let message) = entry.body, message.push != nil,
                !message.sender.isExactly(row.user.name)
            else { return false }
            // It woke nobody when it came.
            if !row.isVisible { return true }
            if try reach.isSilent(row, now: now) { return true }
            return try blocked(by: row.user, of: row.app).now.contains(UserID(message.sender))
        } ?? false
    }

    /// What `read` finds; `nil` if it is a row that cannot be read, which is noted.
    func readable<Value>(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID,
        _ read: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value? {
        do throws(StoreError) {
            return try read()
        } catch {
            return try passOver(error, app, user, conversation)
        }
    }

    /// Notes a row that does not have its form; another trouble is the store's own.
    private func passOver<Value>(
        _ error: StoreError, _ app: AppID, _ user: UserID, _ conversation: ConversationID,
        _ what: String = ""
    ) throws(StoreError) -> Value? {
        guard case .corrupt(let detail) = error else { throw error }
        passingOver(
            UnreadableRow(
                app: app, user: user, conversation: conversation, detail: what + detail))
        return nil
    }

    /// `nil`: not for this user any more, or gone.
    private func join(
        _ row: EntryRecord, _ reach: inout Reach, _ language: DeviceLanguage
    ) throws(StoreError) -> SizedEntry? {
        var sized: SizedEntry
        switch row.kind {
        case .conversation:
            let record = try conversation(row)
            sized = entry(of: record, participants: try reach.participants(of: record))
            sized.entry.version = row.version
        case .participant:
            guard let record = try participant(row), try reach.includes(row, record) else {
                return nil
            }
            sized = entry(of: record)
        case .message:
            let record = try found(try objects.message(row))
            guard try reach.includes(row, record) else { return nil }
            sized = try entry(of: record, in: language)
            sized.entry.alerted = record.timing.isQuiet(record.sentAt, now: now)
        case .receipt:
            guard let receipt = try receipt(row) else { return nil }
            sized = receipt
        case .readMark: sized = try entry(of: try readMark(row))
        case .metadata, .conversationSettings, .block:
            sized = try joinState(row)
            if row.kind == .metadata, sized.entry.version > row.version,
                try !reach.isPresent(row)
            {
                return nil
            }
        case .announcement:
            let record = try found(
                AnnouncementRecord.self, [.app(row.app), .blob(row.object)])
            sized = try entry(of: record, version: row.version, in: language)
            sized.entry.alerted = record.timing.isQuiet(record.sentAt, now: now)
        case .tombstone:
            guard let found = try tombstone(row, &reach) else { return nil }
            sized = found
        }
        sized.entry.seq = row.seq
        return sized
    }

    func found<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(StoreError) -> R {
        try found(try snapshot.record(type, key))
    }

    private func found<R: Record>(_ record: R?) throws(StoreError) -> R {
        guard let record else { throw .corrupt("no \(R.table.name)") }
        return record
    }

    private func conversation(_ row: EntryRecord) throws(StoreError) -> ConversationRecord {
        try found(ConversationRecord.self, [.app(row.app), .identifier(row.conversation)])
    }

    /// `nil`: it was forgotten with the end of its conversation, which the feed of a user who left
    /// before may name for longer (MSG-37).
    private func participant(_ row: EntryRecord) throws(StoreError) -> ParticipantRecord? {
        if let record = try objects.participant(row) { return record }
        guard try conversation(row).deletedAt != nil else {
            throw .corrupt("no \(ParticipantRecord.table.name)")
        }
        return nil
    }

    /// What the entry told when it was made: others have been told of more since (SYN-2).
    /// `nil`: how far a deleted user got is gone.
    func receipt(_ row: EntryRecord) throws(StoreError) -> SizedEntry? {
        guard var told = try objects.receipt(row) else { return nil }
        told.announcedDelivered = row.position
        told.announcedRead = row.version - min(row.version, row.position)
        return entry(of: told)
    }

    private func readMark(_ row: EntryRecord) throws(StoreError) -> ReadMarkRecord {
        try found(
            ReadMarkRecord.self, [.app(row.app), .user(row.user), .identifier(row.conversation)])
    }
}

extension AlertTiming {
    /// PSH-9: the device itself tells nobody of it, for the server does at its time, or nobody
    /// does any more.
    fileprivate func isQuiet(_ publishedAt: Timestamp, now: Timestamp) -> Bool {
        moment != nil || expiry(from: publishedAt).map { $0 <= now } ?? false
    }
}

// Entries of what conversations and users have set.
extension PageReader {
    private func joinState(_ row: EntryRecord) throws(StoreError) -> SizedEntry {
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
