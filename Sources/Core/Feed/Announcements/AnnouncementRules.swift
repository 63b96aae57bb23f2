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
        try keepAudience(users, of: made)
        var rest = users[...]
        if users.count <= limits.directRecipients {
            rest = try serve(made, to: rest) { self.isSpent }
        }
        if !rest.isEmpty { try queue(made, for: rest) }
        effects.published.announcements += 1
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
            try tell(announcement, to: user)
            if isSpent() { break }
        }
        return rest
    }

    func tell(
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
}

extension AnnouncementRecord {
    fileprivate var attention: Attention {
        if urgency == .passive { return .useful }
        return hasPushText ? Attention(timing, urgency, publishedAt: sentAt) : .none
    }
}
