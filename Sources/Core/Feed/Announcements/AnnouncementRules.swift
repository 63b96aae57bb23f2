import Model
import Wake
import Wire

// What a backend tells listed users (MSG-50 to MSG-52). An announcement belongs to no
// conversation: its entries have the zero id there, which nobody may choose (MSG-1).
extension Work {
    /// - Parameter isDue: it was asked for earlier, and taken.
    func announce(
        _ app: AppID, _ request: Announcement, isDue: Bool = false
    ) throws(RuleFailure) -> AnnouncementRecord {
        guard request.announcement != MessageID(high: 0, low: 0) else {
            throw .refused(.malformed, "an id of zeros")
        }
        try checkContent(request.parts, request.push, request.options)
        let users = try recipients(request.users)
        let key: [ColumnValue] = [.app(app), .identifier(request.announcement)]
        // One alert row a device and id: messages and announcements share their ids, and whoever
        // takes one holds the message's key.
        let message = try record(MessageRecord.self, key, lock: .wait)
        if try record(AnnouncementRecord.self, key, lock: .wait) != nil {
            throw .refused(.idInUse, "the announcement exists")
        }
        if message != nil { throw .refused(.idInUse, "a message has this id") }
        try checkKind(of: request.options, in: app)
        if !isDue { try checkEnd(of: request.options) }
        let made = AnnouncementRecord(
            app: app, announcement: request.announcement, sentAt: now,
            parts: AnnouncementState(parts: request.parts).encoded,
            pushTitle: request.push?.title ?? "", pushBody: request.push?.body ?? "",
            recipients: UInt64(users.count), pushOptions: request.options.encoded)
        try put(made)
        var rest = users[...]
        if users.count <= limits.directRecipients {
            rest = try serve(made, to: rest) { self.isSpent }
        }
        if !rest.isEmpty { try queue(made, for: rest) }
        return made
    }

    /// Sorted, each once: the lock order.
    func recipients(_ names: [String]) throws(RuleFailure) -> [UserID] {
        guard !names.isEmpty else { throw .refused(.missingField, "no users") }
        guard names.count <= limits.announcementRecipients else {
            throw .refused(.limit, "more than \(limits.announcementRecipients) users")
        }
        var users: [UserID] = []
        for user in names.map({ UserID($0) }).sorted() where users.last != user {
            guard user.isValid else { throw .refused(.malformed, "not a user name") }
            users.append(user)
        }
        return users
    }

    /// - Returns: those who are left for the next turn; one is served in any case.
    private func serve(
        _ announcement: AnnouncementRecord, to users: ArraySlice<UserID>,
        until isSpent: () -> Bool
    ) throws(RuleFailure) -> ArraySlice<UserID> {
        var rest = users
        while let user = rest.popFirst() {
            try serve(announcement, to: user)
            if isSpent() { break }
        }
        return rest
    }

    private func serve(
        _ announcement: AnnouncementRecord, to user: UserID
    ) throws(RuleFailure) {
        var feed = try openFeed(announcement.app, user)
        try append(
            .announcement(announcement, isRead: false), to: &feed,
            attention: announcement.attention)
        try close(feed)
    }

    // MARK: many recipients

    private func queue(
        _ announcement: AnnouncementRecord, for users: ArraySlice<UserID>
    ) throws(RuleFailure) {
        let app: [ColumnValue] = [.app(announcement.app)]
        // Numbers go on when all batches are served: the deletion of a user waits for the batches
        // up to one number, and for none that is decided later.
        let name = MetaRecord.batchesPrefix + announcement.app.name
        let last = try record(MetaRecord.self, [.text(name)], lock: .wait)?.number ?? 0
        let newest = try records(
            AnnouncementBatchRecord.self, Scan(prefix: app, descending: true, limit: 1)
        ).first?.number
        let oldest = try records(
            AnnouncementBatchRecord.self, Scan(prefix: app, limit: 1)
        ).first?.number
        var number = max(newest ?? 0, last)
        if let oldest, number - oldest >= limits.announcementQueue {
            throw .refused(.rateLimited, "too many announcements wait")
        }
        var rest = users
        while !rest.isEmpty {
            number += 1
            try insert(
                AnnouncementBatchRecord(
                    app: announcement.app, number: number,
                    announcement: announcement.announcement,
                    users: Array(rest.prefix(limits.directRecipients))))
            rest = rest.dropFirst(limits.directRecipients)
        }
        try put(MetaRecord(name: name, number: number))
        effects.background.insert(.fanOut)
    }

    /// The name under which the app is kept whose batch was served last.
    static let announcementTurn = "announcement_turn"

    /// The part of a turn that is announcements': the rest is for what happens in conversations.
    private var isHalfSpent: Bool { transaction.hasSpent(1, of: 2) }

    /// Serves batches, each in a step of its own, until `budget` users are served or half of the
    /// turn is spent: apps take turns. Every call serves one user at least, if there is one.
    ///
    /// - Returns: how many steps it took.
    func continueAnnouncements(_ budget: inout Int) throws(RuleFailure) -> Int {
        var steps = 0
        var held: Set<SortKey> = []
        while budget > 0, steps == 0 || !isHalfSpent, held.count < Self.heldMax,
            let batch = try nextBatch(besides: held)
        {
            guard let work = try advance(batch) else {
                held.insert(SortKey(batch.rowKey))
                continue
            }
            budget -= work
            steps += 1
        }
        return steps
    }

    /// The most batches that one turn passes over because other transactions hold all that is left
    /// of them.
    private static let heldMax = 64

    /// One batch. If something of it cannot be read, or another transaction holds something of it,
    /// its users are served one by one, and whom that concerns is passed over.
    ///
    /// - Returns: how much was done; `nil`: nothing, because of what others hold.
    private func advance(_ batch: AnnouncementBatchRecord) throws(RuleFailure) -> Int? {
        do throws(RuleFailure) {
            return try step { () throws(RuleFailure) in try self.serve(batch) }
        } catch {
            if case .store(.conflict) = error { return try serveFree(batch) }
            guard case .store(.corrupt(let detail)) = error else { throw error }
            return try step { () throws(RuleFailure) in
                try self.serveReadable(batch, detail)
            }
        }
    }

    /// Users whom others hold stay in the batch.
    private func serveFree(_ next: AnnouncementBatchRecord) throws(RuleFailure) -> Int? {
        let served = try stepPassingOver { () throws(RuleFailure) -> Int in
            let id: [ColumnValue] = [.app(next.app), .identifier(next.announcement)]
            guard let announcement = try self.record(AnnouncementRecord.self, id, lock: .wait),
                let batch = try self.record(AnnouncementBatchRecord.self, next.rowKey)
            else { return 0 }
            try self.noteTurn(Self.announcementTurn, of: batch.app)
            let users = batch.listed
            var held: [UserID] = []
            var rest = users[...]
            while let user = rest.popFirst() {
                do throws(RuleFailure) {
                    try self.savepoint { () throws(RuleFailure) in
                        try self.serve(announcement, to: user)
                    }
                } catch {
                    guard case .store(.conflict) = error else { throw error }
                    held.append(user)
                }
                if self.isHalfSpent { break }
            }
            try self.keep((held + rest)[...], of: batch)
            return users.count - rest.count - held.count
        }
        return served.flatMap { $0 > 0 ? $0 : nil }
    }

    private func serveReadable(
        _ batch: AnnouncementBatchRecord, _ detail: String
    ) throws(RuleFailure) -> Int {
        let id: [ColumnValue] = [.app(batch.app), .identifier(batch.announcement)]
        let found = try readable { () throws(RuleFailure) in
            try self.record(AnnouncementRecord.self, id, lock: .wait)
        }
        guard let batch = try record(AnnouncementBatchRecord.self, batch.rowKey) else { return 1 }
        try noteTurn(Self.announcementTurn, of: batch.app)
        guard let announcement = found ?? nil else {
            noteUnreadable(batch, UserID(""), detail)
            try keep([], of: batch)
            return 1
        }
        let users = batch.listed
        var rest = users[...]
        while let user = rest.popFirst() {
            let served: Void? = try readable { () throws(RuleFailure) in
                try self.savepoint { () throws(RuleFailure) in
                    try self.serve(announcement, to: user)
                }
            }
            if served == nil { noteUnreadable(batch, user, detail) }
            if isSpent { break }
        }
        try keep(rest, of: batch)
        return max(1, 2 * (users.count - rest.count))
    }

    /// Those who are left of a batch keep its place: it goes when all are served.
    private func keep(
        _ users: ArraySlice<UserID>, of batch: AnnouncementBatchRecord
    ) throws(RuleFailure) {
        guard !users.isEmpty else {
            return try delete(
                AnnouncementBatchRecord.self, [.app(batch.app), .unsigned(batch.number)])
        }
        try put(
            AnnouncementBatchRecord(
                app: batch.app, number: batch.number, announcement: batch.announcement,
                users: Array(users)))
    }

    /// `nil`: something of it cannot be read.
    private func readable<Value>(
        _ body: () throws(RuleFailure) -> Value
    ) throws(RuleFailure) -> Value? {
        do throws(RuleFailure) {
            return try body()
        } catch {
            guard case .store(.corrupt) = error else { throw error }
            return nil
        }
    }

    private func noteUnreadable(
        _ batch: AnnouncementBatchRecord, _ user: UserID, _ detail: String
    ) {
        effects.unreadable.append(
            UnreadableRow(
                app: batch.app, user: user, conversation: .none,
                detail: "announcement_batch \(batch.number): \(detail)"))
    }

    func hasAnnouncements() throws(RuleFailure) -> Bool { try nextBatch(besides: []) != nil }

    private func nextBatch(
        besides held: Set<SortKey>
    ) throws(RuleFailure) -> AnnouncementBatchRecord? {
        let last = try record(MetaRecord.self, [.text(Self.announcementTurn)])
        let name = String(decoding: last?.bytes ?? [], as: UTF8.self)
        var next = try records(
            AnnouncementBatchRecord.self, Scan(after: [.text(name)], limit: 1))
        if next.isEmpty { next = try records(AnnouncementBatchRecord.self, Scan(limit: 1)) }
        guard let first = next.first, held.contains(SortKey(first.rowKey)) else {
            return next.first
        }
        // Behind it, and from the start once more.
        for after in [first.rowKey, nil] {
            let others = try records(
                AnnouncementBatchRecord.self, Scan(after: after, limit: Self.heldMax + 1))
            if let free = others.first(where: { !held.contains(SortKey($0.rowKey)) }) {
                return free
            }
        }
        return nil
    }

    /// - Returns: how many users were served, at least 1.
    private func serve(_ next: AnnouncementBatchRecord) throws(RuleFailure) -> Int {
        let id: [ColumnValue] = [.app(next.app), .identifier(next.announcement)]
        let key: [ColumnValue] = [.app(next.app), .unsigned(next.number)]
        // Locked: another node may serve the same one.
        let announcement = try record(AnnouncementRecord.self, id, lock: .wait)
        guard let batch = try record(AnnouncementBatchRecord.self, key) else { return 1 }
        try noteTurn(Self.announcementTurn, of: next.app)
        // The app is on its way out, and this row a little behind.
        guard let announcement else {
            try keep([], of: batch)
            return 1
        }
        let users = batch.listed
        let rest = try serve(announcement, to: users[...]) { self.isHalfSpent }
        try keep(rest, of: batch)
        return max(1, users.count - rest.count)
    }
}

extension AnnouncementRecord {
    fileprivate var attention: Attention {
        if urgency == .passive { return .useful }
        return hasPushText ? Attention(timing, urgency, publishedAt: sentAt) : .none
    }
}

extension AnnouncementBatchRecord {
    fileprivate var listed: [UserID] {
        users.split(separator: "\n").map { UserID(String($0)) }
    }
}
