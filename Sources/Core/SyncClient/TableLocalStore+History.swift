public import Model
public import Wire

// History, snapshots and digests on the rows of a `TableLocalStore`.
extension TableLocalStore {
    public func applyHistory(_ change: HistoryChange) throws(LocalStoreError) -> [Entry] {
        let applied = try write { transaction throws(StoreError) in
            let round = try Self.fact(Fact.round, transaction)?.number ?? 0
            let told = keepsOwed ? try Self.told(change.entries, transaction) : []
            let applied = try Self.keep(change.entries, round, transaction)
            if keepsOwed { try Self.owe(applied, told: told, above: nil, transaction) }
            if let complete = change.complete {
                let stale = try Self.staleMessages(
                    of: complete.conversation, from: complete.first, through: complete.last,
                    round, transaction)
                for row in stale { try transaction.delete(LocalEntryRecord.self, row.key) }
                try Self.widen(complete, transaction)
            }
            return applied
        }
        answered.told(applied)
        return applied
    }

    public func applySnapshot(
        _ change: SnapshotChange, at time: Timestamp
    ) throws(LocalStoreError) -> (applied: [Entry], lastMutation: UInt64) {
        course = nil
        answered = AnsweredChanges()
        mayAwait = true
        return try write { transaction throws(StoreError) in
            var round = try Self.fact(Fact.round, transaction)?.number ?? 0
            if change.isFirst {
                try Self.dropReads(unlessOf: change.start.epoch, transaction)
                round += 1
                try transaction.put(LocalStateRecord(name: Fact.round, number: round))
                try transaction.put(LocalStateRecord(name: Fact.resetting, number: 0))
                try transaction.put(
                    LocalStateRecord(name: Fact.history, number: change.start.seq))
                try transaction.delete(LocalStateRecord.self, [.text(Fact.cursor)])
            }
            var lost = try Lost(since: change.resendSince, transaction)
            let blocks = change.isFirst ? try lost.heldBlocks(transaction) : []
            var applied = try Self.keep(change.page.entries, round, transaction)
            if change.isFirst {
                try Self.dropAnnouncements(unlessOn: change.page, round, transaction)
                try lost.take(blocks, unlessOf: round, transaction)
            }
            for conversation in change.page.conversations {
                applied += try Self.keep(conversation, round, &lost, transaction)
            }
            if change.isLast {
                try Self.end(change.start, round, &lost, transaction)
            } else {
                try Self.save(change, transaction)
            }
            try lost.enqueue(at: time, above: change.mutationFloor, transaction)
            return (applied, try Self.fact(Fact.lastMutation, transaction)?.number ?? 0)
        }
    }

    /// From which position on every message of the conversation within the user's reach is stored,
    /// as far as this device has synced. Below it some may be missing, and what is there may be
    /// outdated (HIS-19); FETCH gives the rest. 1: all are here.
    public func wholeFrom(_ conversation: ConversationID) throws(LocalStoreError) -> UInt64 {
        try read { snapshot throws(StoreError) in
            let window = try snapshot.record(LocalWindowRecord.self, [.blob(conversation.bytes)])
            return max(1, window?.from ?? 1)
        }
    }

    public func orphans(limit: Int) throws(LocalStoreError) -> [ConversationID] {
        try read { snapshot throws(StoreError) in
            try snapshot.records(LocalOrphanRecord.self, Scan(limit: limit)).compactMap {
                ConversationID($0.conversation)
            }
        }
    }

    public func digest() throws(LocalStoreError) -> LocalDigest {
        try read { snapshot throws(StoreError) in
            let user = try Self.fact(Fact.user, snapshot)?.bytes ?? []
            var rows: [(row: LocalEntryRecord, above: UInt64)] = []
            for row in try snapshot.records(LocalEntryRecord.self, Scan(.conversation)) {
                if let above = try Self.reach(row, user, snapshot) { rows.append((row, above)) }
            }
            var digest = LocalDigest()
            for (row, _) in rows {
                let held = try Self.wholePositions(row.conversation, snapshot)
                digest.positions = min(digest.positions, held)
            }
            for (row, above) in rows { try Self.add(row, above, to: &digest, snapshot) }
            return digest
        }
    }

    /// Counts what is stored; it reads every row.
    public func counts() throws(LocalStoreError) -> LocalCounts {
        try read { snapshot throws(StoreError) in
            var counts = LocalCounts()
            for row in try snapshot.records(LocalEntryRecord.self, Scan(limit: .max)) {
                guard row.kind != .cleared else { continue }
                counts.entries += 1
                guard row.kind == .conversation || row.kind == .message else { continue }
                let entry: Entry = try Self.decoded(row.entry)
                switch entry.body {
                case .conversationState: counts.conversations += 1
                case .message: counts.messages += 1
                default: break
                }
            }
            return counts
        }
    }
}

extension TableLocalStore {
    // MARK: - Snapshots

    private static func keep(
        _ page: SnapshotConversation, _ round: UInt64, _ lost: inout Lost,
        _ transaction: any StoreTransaction
    ) throws(StoreError) -> [Entry] {
        guard let id = page.conversation else { return [] }
        let before = try lost.reach(in: id.bytes, transaction)
        let audience = try lost.audience(of: id.bytes, transaction)
        let held = try transaction.record(
            LocalEntryRecord.self, LocalEntryRecord.key(.conversation, id.bytes))
        let applied = try keep(page.entries, round, transaction)
        let floor = try lost.floor(in: id.bytes, before: before, transaction)
        var kinds: [LocalKind] = [.conversation, .readMark, .metadata, .settings, .cleared]
        if page.participantsComplete { kinds += [.participant, .receipt] }
        for kind in kinds { try deleteStale(kind, id.bytes, round, transaction) }
        let known = try transaction.record(LocalWindowRecord.self, [.blob(id.bytes)])
        // A conversation that moved comes twice; what lies between comes by the deltas.
        let earlier = known?.round == round ? known : nil
        let from = min(earlier?.from ?? .max, page.completeFrom)
        let isWhole = page.participantsComplete || earlier?.hasParticipants == true
        try transaction.put(
            LocalWindowRecord(
                conversation: id.bytes, from: min(from, .max >> 1), round: round,
                hasParticipants: isWhole))
        let stale = try staleMessages(
            of: id, from: page.completeFrom, through: .max >> 1, round, transaction)
        // The second time nothing is left that was not looked at.
        if earlier == nil {
            let place = try lost.found(
                id.bytes, above: floor, before: audience, of: held?.round, transaction)
            for row in stale { try lost.take(row, in: place) }
            try lost.look(below: page.completeFrom, in: place, round, transaction)
            try lost.takeSent(in: place, transaction)
        }
        for row in stale { try transaction.delete(LocalEntryRecord.self, row.key) }
        return applied
    }

    private static func save(
        _ change: SnapshotChange, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        try transaction.put(
            LocalStateRecord(
                name: Fact.snapshot, number: change.start.seq, bytes: change.start.epoch.bytes))
        try transaction.put(
            LocalStateRecord(
                name: Fact.continuation, number: change.resendSince?.milliseconds ?? 0,
                bytes: change.page.continuation))
    }

    /// Conversations that no page held are none of this user's any more.
    private static func end(
        _ start: Cursor, _ round: UInt64, _ lost: inout Lost,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        try deleteStale(.block, [], round, transaction)
        for row in try transaction.records(LocalEntryRecord.self, Scan(.conversation))
        where row.round != round {
            let place = try lost.lose(row, transaction)
            let messages = try staleMessages(
                of: ConversationID(row.conversation), from: 0, through: .max >> 1, round,
                transaction)
            for message in messages { try lost.take(message, in: place) }
            try lost.takeSent(in: place, transaction)
            for kind in LocalKind.all where kind != .announcement && kind != .block {
                try deleteStale(kind, row.conversation, round, transaction)
            }
            try transaction.delete(LocalWindowRecord.self, [.blob(row.conversation)])
            try transaction.delete(LocalOrphanRecord.self, [.blob(row.conversation)])
        }
        try lost.takeSent(transaction)
        try dropSent(transaction)
        try transaction.delete(LocalStateRecord.self, [.text(Fact.snapshot)])
        try transaction.delete(LocalStateRecord.self, [.text(Fact.continuation)])
        try transaction.put(
            LocalStateRecord(name: Fact.cursor, number: start.seq, bytes: start.epoch.bytes))
    }

    /// Announcements that were taken back, or are of another history: the page names all, or those
    /// with the highest ids, one at least if there are any (HIS-17, HIS-19). Until the next
    /// snapshot something is left of each, by which its notification is known to be over.
    private static func dropAnnouncements(
        unlessOn page: SnapshotPage, _ round: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        var lowest: [UInt8] = []
        for entry in page.entries where !page.announcementsComplete {
            guard case .announcement = entry.body else { continue }
            if lowest.isEmpty || entry.object.lexicographicallyPrecedes(lowest) {
                lowest = entry.object
            }
        }
        for row in try transaction.records(LocalEntryRecord.self, Scan(.announcement, of: []))
        where row.round != round && !row.object.lexicographicallyPrecedes(lowest) {
            let known: Entry = try decoded(row.entry)
            // Older than whatever the server may still say of it.
            let gone = Entry(
                object: row.object, version: 0, body: .tombstone(TombstoneState(forEveryone: true)))
            guard case .announcement = known.body, let left = LocalEntryRecord(gone, round: round)
            else {
                try transaction.delete(LocalEntryRecord.self, row.key)
                continue
            }
            try transaction.put(left)
        }
    }

    private static func deleteStale(
        _ kind: LocalKind, _ conversation: [UInt8], _ round: UInt64,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        for row in try transaction.records(LocalEntryRecord.self, Scan(kind, of: conversation))
        where row.round != round {
            try transaction.delete(LocalEntryRecord.self, row.key)
        }
    }

    private static func staleMessages(
        of conversation: ConversationID?, from first: UInt64, through last: UInt64,
        _ round: UInt64, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> [LocalEntryRecord] {
        guard let conversation, first <= last else { return [] }
        var scan = Scan(messagesOf: conversation.bytes, limit: .max)
        scan.after = first > 0 ? [.unsigned(first - 1)] : nil
        scan.through = [.unsigned(min(last, .max >> 1))]
        return try snapshot.records(LocalEntryRecord.self, scan).filter { $0.round != round }
    }

    /// What is whole from the newest message down reaches further.
    private static func widen(
        _ complete: CompleteRange, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let key = [ColumnValue.blob(complete.conversation.bytes)]
        guard var window = try transaction.record(LocalWindowRecord.self, key),
            complete.first < window.from, complete.last >= window.from - 1
        else { return }
        window.from = complete.first
        try transaction.put(window)
    }

    // MARK: - Digests

    /// Above which position the user sees messages of the conversation; `nil`: the user does not
    /// take part, or has deleted it.
    private static func reach(
        _ row: LocalEntryRecord, _ user: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> UInt64? {
        let conversation: Entry = try decoded(row.entry)
        guard case .conversationState = conversation.body else { return nil }
        return try reach(of: user, in: row.conversation, snapshot)
    }

    /// Above which position the user sees messages of the conversation, also of one that the user
    /// has deleted; `nil`: the user does not take part.
    static func reach(
        of user: [UInt8], in conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> UInt64? {
        let own = try snapshot.entry(.participant, of: conversation, user)
        guard case .participant(let state) = own?.body else { return 0 }
        return state.removed ? nil : state.joinedPosition
    }

    /// The messages that are not deleted, from the highest position down.
    private static func newestMessages(
        of conversation: [UInt8], positions: UInt32, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> [(position: UInt64, entry: Entry)] {
        var found: [(position: UInt64, entry: Entry)] = []
        try look(at: conversation, snapshot) { row throws(StoreError) in
            if let newest = found.first?.position, row.position + UInt64(positions) <= newest {
                return false
            }
            let entry: Entry = try decoded(row.entry)
            if case .message = entry.body { found.append((row.position, entry)) }
            return true
        }
        return found
    }

    /// How many positions, at most 50, from the newest message down are sure to be here; 0 where
    /// what is whole holds tombstones only (HIS-36): a message may lie below them.
    private static func wholePositions(
        _ conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> UInt32 {
        let all = UInt32(50)
        guard
            let window = try snapshot.record(LocalWindowRecord.self, [.blob(conversation)]),
            window.from > 1
        else { return all }
        let newest = try newestMessages(of: conversation, positions: 1, snapshot).first
        guard let newest, newest.position >= window.from else { return 0 }
        return min(all, UInt32(clamping: newest.position - window.from + 1))
    }

    private static func add(
        _ row: LocalEntryRecord, _ above: UInt64, to digest: inout LocalDigest,
        _ snapshot: any StoreSnapshot
    ) throws(StoreError) {
        let id = row.conversation
        digest.conversations.add(.conversation, id: id, version: row.version)
        if let mark = try snapshot.record(
            LocalEntryRecord.self, LocalEntryRecord.key(.readMark, id))
        {
            digest.readMarks.add(.readMark, id: id, version: mark.version)
        }
        for message in try newestMessages(of: id, positions: digest.positions, snapshot)
        where message.position > above {
            digest.messages.add(
                .message, id: message.entry.object, version: message.entry.version)
        }
    }
}
