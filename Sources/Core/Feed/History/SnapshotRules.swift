import Model
import Wake
import Wire

// SNAPSHOT (history.md, HIS-13 to HIS-25).
extension PageReader {
    /// `nil`: the store does not know the user.
    func snapshotPage(
        _ frame: SnapshotFrame, _ app: AppID, _ user: UserID, bytes: Int, _ limits: RuleLimits
    ) throws(StoreError) -> HistoryReading? {
        guard let (epoch, head) = try standing(app, user) else { return nil }
        var token = SnapshotToken(epoch: epoch, start: head)
        if !frame.continuation.isEmpty {
            guard let given = SnapshotToken(frame.continuation) else {
                return .refused(.malformed, detail: "not a continuation")
            }
            guard given.epoch == epoch, given.start <= head else {
                return .refused(.epochChanged, detail: "the continuation is of another history")
            }
            token = given
        }
        var page = SnapshotPage(start: Cursor(epoch: epoch, seq: token.start))
        var room = PageRoom(bytes: bytes)
        if frame.continuation.isEmpty {
            // Half of the page is for the conversations, which are what it is for.
            let beside = try unattached(app, user, PageRoom(bytes: bytes / 2), limits)
            for sized in beside.entries {
                room.take(sized)
                page.entries.append(sized.entry)
            }
            page.announcementsComplete = beside.isComplete
            if room.bytes < 0 {
                page.continuation = token.bytes
                return .snapshotPage(page)
            }
        }
        let asked = frame.messages == 0 ? limits.snapshotMessages : Int(clamping: frame.messages)
        let messagesMax = min(asked, limits.snapshotMessagesMax)
        var budget = ReadBudget(limits)
        repeat {
            let rows = try conversations(app, user, token)
            for row in rows {
                let isFull =
                    budget.isSpent || page.conversations.count >= limits.snapshotConversations
                if isFull { return try ended(page, token, app, user, limits) }
                guard let reach = try reach(app, row.conversation, user) else {
                    budget.passOver()
                    token.bound = row.activity
                    continue
                }
                let isFirst = page.conversations.isEmpty
                guard
                    let conversation = try snapshotConversation(
                        reach, messages: messagesMax, &room, &budget, cuts: isFirst, limits)
                else { return try ended(page, token, app, user, limits) }
                page.conversations.append(conversation)
                token.bound = row.activity
            }
            if rows.count < Self.chunk {
                guard token.phase == .older else { return try last(page, app, user) }
                token.phase = .newer
                token.bound = token.start
            }
        } while true
    }

    /// The page that is full, to be continued.
    private func ended(
        _ page: SnapshotPage, _ token: SnapshotToken, _ app: AppID, _ user: UserID,
        _ limits: RuleLimits
    ) throws(StoreError) -> HistoryReading {
        var (page, token) = (page, token)
        if token.phase == .newer {
            token.newerPages = UInt8(clamping: Int(token.newerPages) + 1)
        }
        // HIS-16: what moves for ever is left to the deltas.
        guard Int(token.newerPages) < limits.snapshotNewerPages else {
            return try last(page, app, user)
        }
        page.continuation = token.bytes
        return .snapshotPage(page)
    }

    /// HIS-37: where nothing came since the snapshot began, no DELTA need ever tell the number.
    private func last(
        _ page: SnapshotPage, _ app: AppID, _ user: UserID
    ) throws(StoreError) -> HistoryReading {
        var page = page
        page.unread = UInt32(clamping: try snapshot.unread(app, user, now: now))
        return .snapshotPage(page)
    }

    /// The user's epoch and head.
    func standing(
        _ app: AppID, _ user: UserID
    ) throws(StoreError) -> (Epoch, UInt64)? {
        guard let record = try snapshot.record(UserRecord.self, [.app(app), .user(user)]) else {
            return nil
        }
        let half = try snapshot.record(MetaRecord.self, [.text(MetaRecord.epochName)])?.number
        return (Epoch(high: half ?? 0, low: record.epochHalf), record.head)
    }

    /// The user's objects that belong to no conversation: all blocks, and of the announcements
    /// those with the highest ids, as far as they fit, one at least (HIS-17).
    ///
    /// - Returns: also whether all announcements are there.
    private func unattached(
        _ app: AppID, _ user: UserID, _ room: PageRoom, _ limits: RuleLimits
    ) throws(StoreError) -> (entries: [SizedEntry], isComplete: Bool) {
        var found = try snapshot.records(
            BlockRecord.self,
            Scan(prefix: [.app(app), .user(user)], limit: limits.blocks)
        ).map { entry(of: $0) }
        var room = room
        for sized in found { room.take(sized) }
        // Behind those that were taken back, and are not in the feed as such yet, others may be.
        let lookedMax = limits.snapshotAnnouncements * Self.announcementLook
        let rows = try snapshot.records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(app), .user(user), .unsigned(EntryKind.announcement.rawValue),
                    .identifier(ConversationID.none),
                ],
                descending: true, limit: lookedMax))
        var isComplete = rows.count < lookedMax
        var left = limits.snapshotAnnouncements
        for row in rows {
            let announcement = try readable(app, user, .none) { () throws(StoreError) in
                let record = try self.found(
                    AnnouncementRecord.self, [.app(app), .blob(row.object)])
                // Taken back: whoever holds it removes it, for it is not on the page (HIS-19).
                guard record.deletedAt == nil else { return SizedEntry?.none }
                return try self.entry(of: record, version: row.version)
            }
            guard let announcement else {
                isComplete = false
                continue
            }
            guard let sized = announcement else { continue }
            guard left > 0, room.fits(sized) || left == limits.snapshotAnnouncements else {
                isComplete = false
                break
            }
            left -= 1
            room.take(sized)
            found.append(sized)
        }
        return (found, isComplete)
    }

    /// Entries looked at for each announcement that a page may hold.
    private static let announcementLook = 4

    /// The next conversations in the order of the phase; none that is not in the feed yet.
    private func conversations(
        _ app: AppID, _ user: UserID, _ token: SnapshotToken
    ) throws(StoreError) -> [ParticipantRecord] {
        var scan = Scan(
            index: "participant_by_activity", prefix: [.app(app), .user(user)], limit: Self.chunk)
        switch token.phase {
        case .older:
            guard token.bound > 1 else { return [] }
            scan.after = [.unsigned(0)]
            scan.through = [.unsigned(token.bound - 1)]
            scan.descending = true
        case .newer:
            scan.after = [.unsigned(max(token.bound, token.start))]
        }
        return try snapshot.records(ParticipantRecord.self, scan)
    }

    /// One conversation with its newest messages.
    ///
    /// - Parameter cuts: it is the page's first: what does not fit is left out, down to one
    ///   message.
    /// - Returns: `nil` if it does not fit whole and is not to be cut.
    private func snapshotConversation(
        _ reach: HistoryReach, messages countMax: Int, _ room: inout PageRoom,
        _ budget: inout ReadBudget, cuts: Bool, _ limits: RuleLimits
    ) throws(StoreError) -> SnapshotConversation? {
        var left = room
        var entries: [Entry] = []
        func add(_ sized: SizedEntry) {
            left.take(sized)
            entries.append(sized.entry)
        }
        for sized in try state(of: reach) { add(sized) }
        let newest = try newestMessages(reach, countMax: countMax, left, &budget, cuts: cuts)
        guard let newest else { return nil }
        let (members, isComplete) = try snapshotParticipants(
            reach, senders: newest.senders, limits)
        for member in members { add(entry(of: member)) }
        for receipt in try receipts(in: reach, limits) { add(receipt) }
        for sized in newest.entries { add(sized) }
        // One conversation alone always fits: the page's limit keeps that much below a frame's.
        guard cuts || (left.bytes >= 0 && left.elements >= 0) else { return nil }
        left.elements -= 1
        room = left
        return SnapshotConversation(
            conversation: reach.conversation.conversation, entries: entries,
            completeFrom: newest.completeFrom, unread: UInt32(clamping: reach.participant.unread),
            participantsComplete: isComplete)
    }

    private struct NewestMessages {
        /// Ascending.
        var entries: [SizedEntry] = []
        var senders: [UserID] = []
        var completeFrom: UInt64
    }

    private func newestMessages(
        _ reach: HistoryReach, countMax: Int, _ room: PageRoom, _ budget: inout ReadBudget,
        cuts: Bool
    ) throws(StoreError) -> NewestMessages? {
        var room = room
        var found = NewestMessages(completeFrom: reach.through + 1)
        var senders: Set<UserID> = []
        var through = reach.through
        var size = min(Self.firstChunk, countMax + 1)
        search: while through > reach.above {
            let messages = try self.messages(
                of: reach, above: reach.above, through: through, ascending: false, limit: size)
            let shown = try self.shown(messages, in: reach)
            for (message, isShown) in zip(messages, shown) {
                if found.entries.count == countMax { break search }
                guard isShown, let sized = try readableEntry(of: message, in: reach) else {
                    budget.passOver()
                    through = message.position - 1
                    continue
                }
                if !room.fits(sized) {
                    guard cuts else { return nil }
                    if !found.entries.isEmpty { break search }
                }
                room.take(sized)
                found.entries.append(sized)
                if !message.sender.isEmpty { senders.insert(UserID(message.sender)) }
                found.completeFrom = message.position
                through = message.position - 1
            }
            if messages.count < size {
                found.completeFrom = 1
                break
            }
            if budget.isSpent {
                // Others of the page may have spent it: alone on the next one it gets all of it.
                guard cuts else { return nil }
                // What lies below is left to FETCH.
                found.completeFrom = through + 1
                break
            }
            size = min(Self.chunk, size * 2)
        }
        if through <= reach.above { found.completeFrom = 1 }
        found.entries.reverse()
        found.senders = senders.sorted()
        return found
    }

    /// All participants where they are few; of more the user and the senders of the messages given
    /// (HIS-17), of a large conversation's the user alone (MSG-38).
    private func snapshotParticipants(
        _ reach: HistoryReach, senders: [UserID], _ limits: RuleLimits
    ) throws(StoreError) -> ([ParticipantRecord], isComplete: Bool) {
        if reach.conversation.largeRevision != nil { return ([reach.participant], false) }
        if reach.conversation.participants <= UInt64(limits.snapshotParticipants) {
            let all = try participants(
                of: reach, after: "", limit: limits.snapshotParticipants + 1)
            if all.count <= limits.snapshotParticipants { return (all, true) }
        }
        var members: [ParticipantRecord] = []
        for user in Set(senders + [reach.participant.user]).sorted() {
            let member = try snapshot.record(
                ParticipantRecord.self,
                [
                    .app(reach.conversation.app),
                    .identifier(reach.conversation.conversation), .user(user),
                ])
            if let member { members.append(member) }
        }
        return (members, false)
    }

    /// The receipts this user was told of: those in the feed.
    private func receipts(
        in reach: HistoryReach, _ limits: RuleLimits
    ) throws(StoreError) -> [SizedEntry] {
        let participant = reach.participant
        let rows = try snapshot.records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(participant.app), .user(participant.user),
                    .unsigned(EntryKind.receipt.rawValue), .identifier(participant.conversation),
                ],
                limit: limits.snapshotReceipts))
        var told: [SizedEntry] = []
        for row in rows { if let receipt = try receipt(row) { told.append(receipt) } }
        return told
    }
}
