public import Model
internal import Wire

/// A conversation's row with what `ConversationList` goes on from.
struct ReadConversation: Sendable {
    var row: ConversationRow
    /// The highest position that `row` accounts for.
    var newest: UInt64 = 0
    /// `row.last` is a message of this device that the feed has not told of, or is as this device
    /// has changed it.
    var hasPending = false
    var reading: Reading
}

// Conversations and messages as an app shows them: the feed's rows, and what this device has
// said and the feed has not yet.
extension TableLocalStore {
    /// Rows looked at for one conversation, however many of them are deleted.
    static let lookedMax = 4_096
    /// By how many messages a window grows at a time, at most.
    public static let windowStepMax = 1_024

    /// The newest messages of a conversation.
    ///
    /// - Parameter sent: the numbers of the mutations that are on their way.
    public func messageWindow(
        of conversation: ConversationID, newest: Int, sent: Set<UInt64>
    ) throws(LocalStoreError) -> MessageWindow {
        try read { snapshot throws(StoreError) in
            let id = conversation.bytes
            let user = try Self.user(in: snapshot)
            let reading = try Reading(of: id, by: user, snapshot)
            let from = try snapshot.record(LocalWindowRecord.self, [.blob(id)])?.from ?? 1
            var window = MessageWindow()
            window.mayFetchOlder = from > reading.joined.addingClamped(1)
            let reach = try Reach(in: id, without: user, snapshot)
            let untold = try untold(snapshot)
            let floor = max(reading.joined, from > 0 ? from - 1 : 0)
            // However large the window is: as many deleted ones in between as in a small one.
            let looked = Self.lookedMax + min(newest, Int.max >> 1)
            try Self.look(at: id, above: floor, atMost: looked, snapshot) {
                stored throws(StoreError) in
                let entry: Entry = try Self.decoded(stored.entry)
                guard var row = MessageRow(entry, reading).flatMap(untold.shown) else {
                    return true
                }
                guard window.rows.count < newest else {
                    window.hasOlder = true
                    return false
                }
                if row.isOwn, let position = row.position {
                    row.delivery = reach.delivery(of: position)
                }
                window.rows.append(row)
                return true
            }
            window.rows.reverse()
            for pending in untold.messages
            where pending.reference.conversation == conversation {
                let row = MessageRow(pending, sender: user, delivery: pending.delivery(sent))
                if let row = untold.shown(row) { window.rows.append(row) }
            }
            return window
        }
    }

    /// How far a message of this user got; `nil`: it is not there.
    ///
    /// - Parameter sent: the numbers of the mutations that are on their way.
    public func delivery(
        of message: MessageReference, sent: Set<UInt64>
    ) throws(LocalStoreError) -> Delivery? {
        try read { snapshot throws(StoreError) in
            let id = message.conversation.bytes
            if let entry = try snapshot.entry(.message, of: id, message.message.bytes) {
                let user = try Self.user(in: snapshot)
                guard case .message(let state) = entry.body, state.sender.isExactly(user) else {
                    return nil
                }
                return try Reach(in: id, without: user, snapshot).delivery(of: state.position)
            }
            return try untold(snapshot).messages.first { $0.reference == message }?
                .delivery(sent)
        }
    }

    func readConversations(
        sent: Set<UInt64>
    ) throws(LocalStoreError) -> [ReadConversation] {
        try read { snapshot throws(StoreError) in
            let user = try Self.user(in: snapshot)
            let untold = try untold(snapshot)
            var found: [ReadConversation] = []
            for entry in try snapshot.entries(Scan(.conversation)) {
                if let one = try Self.conversation(entry, user, untold, sent, snapshot) {
                    found.append(one)
                }
            }
            return found
        }
    }

    func readConversation(
        _ id: ConversationID, sent: Set<UInt64>
    ) throws(LocalStoreError) -> ReadConversation? {
        try read { snapshot throws(StoreError) in
            guard let entry = try snapshot.entry(.conversation, of: id.bytes) else { return nil }
            return try Self.conversation(
                entry, try Self.user(in: snapshot), try untold(snapshot), sent, snapshot)
        }
    }

    static func user(in snapshot: any StoreSnapshot) throws(StoreError) -> String {
        String(decoding: try fact(Fact.user, snapshot)?.bytes ?? [], as: UTF8.self)
    }
}

extension TableLocalStore {
    /// `nil`: it was deleted.
    private static func conversation(
        _ entry: Entry, _ user: String, _ untold: UntoldChanges,
        _ sent: Set<UInt64>, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> ReadConversation? {
        guard case .conversationState(let state) = entry.body, let id = entry.conversation else {
            return nil
        }
        var row = ConversationRow(
            id: id, created: Timestamp(milliseconds: state.createdMs), creator: state.creator)
        let key = id.bytes
        if case .metadata(let found) = try snapshot.entry(.metadata, of: key)?.body {
            row.metadata = found.values
        }
        if case .conversationSettings(let found) = try snapshot.entry(.settings, of: key)?.body,
            found.muted
        {
            let end = Timestamp(milliseconds: found.mutedUntilMs)
            row.mute = found.mutedUntilMs == 0 ? .on : .until(end)
        }
        let members = Scan(.participant, of: key, limit: ConversationRow.participantsMax)
        for entry in try snapshot.entries(members) {
            guard case .participant(let state) = entry.body, !state.removed else { continue }
            row.participants.append(state.user)
        }
        row.participantCount =
            state.participants > 0 ? Int(state.participants) : row.participants.count
        var read = ReadConversation(row: row, reading: try Reading(of: key, by: user, snapshot))
        read.row.isMember = read.reading.isMember
        try count(&read, key, untold, snapshot)
        for pending in untold.messages.reversed() where pending.reference.conversation == id {
            read.hasPending = true
            let row = MessageRow(pending, sender: user, delivery: pending.delivery(sent))
            guard let last = untold.shown(row) else { continue }
            // What was refused stays; what others say later is newer.
            let isOnItsWay = pending.position == nil && pending.refusal == nil
            if isOnItsWay || read.row.last.map({ $0.sentAt <= pending.sentAt }) ?? true {
                read.row.last = last
            }
            break
        }
        return read
    }

    /// What is unread, and the newest message.
    private static func count(
        _ read: inout ReadConversation, _ key: [UInt8], _ untold: UntoldChanges,
        _ snapshot: any StoreSnapshot
    ) throws(StoreError) {
        let reading = read.reading
        var (last, unread, newest): (MessageRow?, Int, UInt64) = (nil, 0, 0)
        var isChanged = false
        let isWhole = try look(
            at: key, above: reading.joined, atMost: lookedMax, snapshot
        ) { found throws(StoreError) in
            let entry: Entry = try decoded(found.entry)
            let position = entry.position
            newest = max(newest, position)
            if position <= reading.floor, last != nil { return false }
            guard let stored = MessageRow(entry, reading) else { return true }
            if untold.concerns(stored) { isChanged = true }
            guard let row = untold.shown(stored) else { return true }
            if last == nil { last = row }
            if row.isUnread { unread += 1 }
            return unread < ConversationRow.unreadMax
        }
        let from = try snapshot.record(LocalWindowRecord.self, [.blob(key)])?.from ?? 1
        read.row.hasOlderUnread =
            reading.isMember && (!isWhole || reading.floor.addingClamped(1) < from)
        (read.row.unread, read.newest) = (unread, newest)
        if isChanged { read.hasPending = true }
        guard var last else { return }
        if last.isOwn, let position = last.position {
            last.delivery = try Reach(in: key, without: reading.user, snapshot)
                .delivery(of: position)
        }
        read.row.last = last
    }

    /// Goes through the messages and tombstones of a conversation, from the highest position down,
    /// while `goesOn` says so; whether that took no more than `max` rows.
    ///
    /// - Parameter first: rows that are read at once at first: most want the newest message only.
    @discardableResult
    static func look(
        at conversation: [UInt8], above floor: UInt64? = nil, through top: UInt64 = .max,
        atMost max: Int = .max, first: Int = 4, _ snapshot: any StoreSnapshot,
        _ goesOn: (LocalEntryRecord) throws(StoreError) -> Bool
    ) throws(StoreError) -> Bool {
        let lowest = floor?.addingClamped(1) ?? 0
        var through = min(top, .max >> 1)
        var looked = 0
        while looked < max {
            let limit = looked == 0 ? first : 256
            var scan = Scan(messagesOf: conversation, limit: limit)
            scan.after = floor.map { [.unsigned(min($0, .max >> 1))] }
            scan.through = [.unsigned(through)]
            scan.descending = true
            let rows = try snapshot.records(LocalEntryRecord.self, scan)
            for row in rows {
                guard try goesOn(row) else { return true }
            }
            guard rows.count == limit, let last = rows.last, last.position > lowest else {
                return true
            }
            through = last.position - 1
            looked += rows.count
        }
        return false
    }
}

extension Entry {
    /// Of a message or what is left of it; else 0.
    fileprivate var position: UInt64 {
        switch body {
        case .message(let state): state.position
        case .tombstone(let state): state.position
        default: 0
        }
    }
}
