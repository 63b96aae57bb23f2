import Model

// What a deletion leaves behind goes in the background, at most `limit` rows a step.
extension Work {
    /// Purges looked at to find one that can go on, and participants looked at in one step.
    private static let purgesMax = 64

    /// The name under which the conversation is kept behind which the next purge is looked for.
    private static let purgeTurn = "purge_turn"

    /// One step of one purge. Conversations whose purges have to wait are passed over, however
    /// many purges they have.
    ///
    /// - Returns: rows deleted, and whether there may be more at once.
    func purge(_ limit: Int) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        var after = try turnPlace(Self.purgeTurn).flatMap { place -> [ColumnValue]? in
            ConversationID(text: place[1].words).map { [place[0], .identifier($0)] }
        }
        var isWrapped = after == nil
        for _ in 0..<Self.purgesMax {
            guard
                let found = try rows(PurgeRecord.table, Scan(after: after, limit: 1)).first
            else {
                if isWrapped { break }
                isWrapped = true
                after = nil
                continue
            }
            let done = try stepPassingOver { () throws(RuleFailure) in
                try self.purge(found, limit)
            } unreadable: { detail in
                self.notePassedOver(AppID(found[0].words), "purge: \(detail)")
            }
            if let deleted = done ?? nil { return (deleted, true) }
            after = Array(found.prefix(2))
        }
        // The next look begins behind those that were passed over.
        if let after, case .blob(let bytes) = after[1], let id = ConversationID(bytes) {
            _ = try stepPassingOver { () throws(RuleFailure) in
                try self.noteTurn(Self.purgeTurn, at: [after[0], .text(id.description)])
            }
        }
        return (0, false)
    }

    /// - Returns: `nil`: a change on its way still looks at what it is about.
    private func purge(_ found: [ColumnValue], _ limit: Int) throws(RuleFailure) -> Int? {
        let known = try stored(try PurgeRecord(row: found))
        let conversation = try lockConversation(known.app, known.conversation)
        // Another node may have worked on it before this lock was taken.
        guard let purge = try record(PurgeRecord.self, known.rowKey) else { return 0 }
        guard conversation != nil else {
            try delete(purge)
            return 1
        }
        if try oldestJob(purge.app, purge.conversation) != nil { return nil }
        return purge.user.isEmpty ? try purgeAll(purge, limit) : try purgeCleared(purge, limit)
    }

    private func delete(_ purge: PurgeRecord) throws(RuleFailure) {
        try delete(PurgeRecord.self, Array(purge.row.prefix(PurgeRecord.table.keyCount)))
    }

    private func purgeAll(_ purge: PurgeRecord, _ limit: Int) throws(RuleFailure) -> Int {
        let key: [ColumnValue] = [.app(purge.app), .identifier(purge.conversation)]
        let members = try records(
            ParticipantRecord.self,
            Scan(
                prefix: key, after: purge.cursor.isEmpty ? nil : [.text(purge.cursor)],
                limit: Self.purgesMax))
        if !members.isEmpty {
            var purge = purge
            var deleted = 0
            for member in members {
                deleted += try purgeFeed(of: member, limit - deleted)
                guard deleted < limit else { break }
                purge.cursor = member.user.name
                if isSpent { break }
            }
            try put(purge)
            return deleted
        }
        let messages = try records(
            MessageRecord.self, Scan(index: "message_by_position", prefix: key, limit: limit))
        for message in messages {
            try delete(MessageRecord.self, [.app(message.app), .identifier(message.message)])
        }
        if messages.count < limit {
            try delete(MetadataRecord.self, key)
            try delete(purge)
        }
        return messages.count
    }

    /// What stays in the feed of one who left before the end, beside the tombstones of messages: a
    /// device that was away since learns by it that the membership ended. Everything else goes
    /// with what it points to.
    private static let keptOfLeavers: Set<EntryKind> = [.conversation, .participant, .tombstone]

    /// Everything of the conversation in the member's feed but its tombstone; of one who left
    /// before the end what can no longer be shown.
    private func purgeFeed(
        of member: ParticipantRecord, _ limit: Int
    ) throws(RuleFailure) -> Int {
        _ = try record(UserRecord.self, [.app(member.app), .user(member.user)], lock: .wait)
        var deleted = 0
        for kind in EntryKind.allCases {
            if member.leftRevision != nil, Self.keptOfLeavers.contains(kind) { continue }
            // The conversation's own tombstone is the one with the empty object.
            let entries = try entries(
                of: kind, in: member, after: kind == .tombstone ? [] : nil,
                limit: limit - deleted)
            for entry in entries { try delete(entry) }
            deleted += entries.count
            if deleted >= limit { return limit }
        }
        if member.leftRevision != nil {
            deleted += try letOthersExpire(in: member, limit - deleted)
            if deleted >= limit { return limit }
        }
        let own: [ColumnValue] = [
            .app(member.app), .user(member.user), .identifier(member.conversation),
        ]
        let hidden = try records(
            HiddenRecord.self, Scan(prefix: own, limit: limit - deleted))
        for row in hidden { try delete(HiddenRecord.self, own + [.unsigned(row.position)]) }
        deleted += hidden.count
        guard deleted < limit else { return limit }
        try delete(ReadMarkRecord.self, own)
        try delete(SettingsRecord.self, own)
        try delete(
            ReceiptRecord.self,
            [.app(member.app), .identifier(member.conversation), .user(member.user)])
        return deleted
    }

    /// The other participants of an ended conversation, in the feed of a user who left it before:
    /// no device needs them for longer than a tombstone.
    ///
    /// - Returns: the number of entries that were given an end; `limit` where there may be more.
    private func letOthersExpire(
        in member: ParticipantRecord, _ limit: Int
    ) throws(RuleFailure) -> Int {
        var count = 0
        var after: [UInt8]?
        while count < limit {
            let found = try entries(
                of: .participant, in: member, after: after, limit: limit - count)
            for entry in found
            where entry.expiresAt == nil && !entry.object.elementsEqual(member.user.name.utf8) {
                var entry = entry
                entry.expiresAt = now + limits.tombstoneLifetime
                try put(entry)
                count += 1
            }
            guard let last = found.last else { return count }
            after = last.object
            if isSpent { break }
        }
        return limit
    }

    private func entries(
        of kind: EntryKind, in member: ParticipantRecord, after object: [UInt8]? = nil,
        limit: Int
    ) throws(RuleFailure) -> [EntryRecord] {
        if kind == .message { return try messages(in: member, limit: limit) }
        return try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(member.app), .user(member.user), .unsigned(kind.rawValue),
                    .identifier(member.conversation),
                ],
                after: object.map { [.blob($0)] }, limit: limit))
    }

    private func messages(
        in member: ParticipantRecord, through: UInt64? = nil, limit: Int
    ) throws(RuleFailure) -> [EntryRecord] {
        try stored(
            try transaction.messageEntries(
                member.app, member.user, member.conversation, through: through, limit: limit))
    }

    private func delete(_ entry: EntryRecord) throws(RuleFailure) {
        try delete(
            EntryRecord.self, [.app(entry.app), .user(entry.user), .unsigned(entry.seq)])
    }

    /// What a user deleted for the own devices: the messages, then their tombstones. The cursor is
    /// the last of these that was looked at: later ones stay, and are passed over.
    private func purgeCleared(_ purge: PurgeRecord, _ limit: Int) throws(RuleFailure) -> Int {
        let user = UserID(purge.user)
        _ = try record(UserRecord.self, [.app(purge.app), .user(user)], lock: .wait)
        guard let member = try membership(purge.app, purge.conversation, user) else {
            try delete(purge)
            return 0
        }
        let messages = try messages(
            in: member, through: member.clearedPosition, limit: limit)
        for entry in messages { try delete(entry) }
        if messages.count == limit { return messages.count }
        let word = "tombstone "
        let last =
            purge.cursor.hasPrefix(word)
            ? MessageID(text: String(purge.cursor.dropFirst(word.count))) : nil
        // The conversation's own tombstone has the empty object: it comes first, and stays.
        let tombstones = try entries(
            of: .tombstone, in: member, after: last?.bytes ?? [], limit: limit)
        for entry in tombstones where entry.position <= member.clearedPosition {
            try delete(entry)
        }
        if tombstones.count == limit, let object = tombstones.last?.object,
            let message = MessageID(object)
        {
            var purge = purge
            purge.cursor = word + message.description
            try put(purge)
            return tombstones.count
        }
        let own: [ColumnValue] = [
            .app(member.app), .user(member.user), .identifier(member.conversation),
        ]
        let hidden = try records(
            HiddenRecord.self,
            Scan(prefix: own, through: [.unsigned(member.clearedPosition)], limit: limit))
        for row in hidden { try delete(HiddenRecord.self, own + [.unsigned(row.position)]) }
        if hidden.count < limit { try delete(purge) }
        return hidden.count
    }
}

// Tombstones are kept for a while, and longer if a device needs them (SYN-30).
extension Work {
    /// Removes entries that are old enough; what goes raises the user's `compactedThrough`.
    func compact(_ limit: Int) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        let old = try records(
            EntryRecord.self,
            Scan(index: "entry_by_expiry", through: [.timestamp(now)], limit: limit))
        let sorted = old.sorted { left, right in
            if left.app != right.app {
                return left.app.name.utf8.lexicographicallyPrecedes(right.app.name.utf8)
            }
            return left.user == right.user ? left.seq < right.seq : left.user < right.user
        }
        let ended = try lockEnded(toldOfBy: sorted)
        var feed: OpenFeed?
        var needed: UInt64 = 0
        var looked = 0
        for entry in sorted where looked == 0 || !isSpent {
            looked += 1
            if feed?.user.app != entry.app || feed?.user.user != entry.user {
                if let feed { try close(feed) }
                feed = try openFeed(entry.app, entry.user)
                needed = try slowestApplied(entry.app, entry.user)
            }
            let key: [ColumnValue] = [.app(entry.app), .user(entry.user), .unsigned(entry.seq)]
            guard var current = try record(EntryRecord.self, key) else { continue }
            if current.seq <= needed, try !isBeingCleared(current) {
                try delete(EntryRecord.self, key)
                if let before = feed?.user.compactedThrough {
                    feed?.user.compactedThrough = max(before, current.seq)
                }
                try forgetMembership(toldOfBy: current, in: ended)
            } else {
                current.expiresAt = now + limits.tombstoneDelay
                try put(current)
            }
        }
        if let feed { try close(feed) }
        return (looked, looked < old.count || old.count == limit)
    }

    /// Entries of which something cannot be read wait for another day, and with them those that are
    /// due with them in the same feed.
    func putOffCompaction(_ limit: Int) throws(RuleFailure) {
        let table = EntryRecord.table
        let due = try rows(
            table, Scan(index: "entry_by_expiry", through: [.timestamp(now)], limit: limit))
        let later = ColumnValue.timestamp(now + limits.tombstoneDelay)
        let feeds = due.sorted {
            SortKey(Array($0.prefix(3))) < SortKey(Array($1.prefix(3)))
        }
        for found in feeds {
            try lockUser(AppID(found[0].words), UserID(found[1].words))
            let key = Array(found.prefix(table.keyCount))
            let held = try stored(try transaction.row(table, key: key, lock: .none))
            if var row = held { try put(later, as: "expires_at", of: &row, in: table) }
        }
    }

    /// It says that a conversation is deleted, and the feed still holds some of that.
    private func isBeingCleared(_ entry: EntryRecord) throws(RuleFailure) -> Bool {
        guard entry.tellsOfConversation else { return false }
        let key: [ColumnValue] = [.app(entry.app), .identifier(entry.conversation)]
        for user in ["", entry.user.name]
        where try record(PurgeRecord.self, key + [.text(user)]) != nil {
            return true
        }
        return false
    }

    /// The lowest `applied` of the devices seen lately.
    private func slowestApplied(_ app: AppID, _ user: UserID) throws(RuleFailure) -> UInt64 {
        let devices = try devices(app, user)
        return devices.filter {
            $0.expiresAt == nil && now < $0.lastSeenAt + limits.deviceMemory
        }.map(\.applied).min() ?? .max
    }
}
