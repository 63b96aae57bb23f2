import Model
import Wake
import Wire

// A backend takes an announcement back (MSG-57). The request marks it, and all whom it was for are
// in the queue of those who are told so. Batches that still wait to bring it read the mark under
// the lock that wrote it, and bring it to nobody any more: so nobody is left with it, in whatever
// order the two queues are served.
extension Work {
    /// Names in one row.
    private static let audiencePart = 256
    /// Above the rows of any announcement.
    private static let audienceMax = 1_024

    /// - Parameter users: sorted.
    func keepAudience(
        _ users: [UserID], of announcement: AnnouncementRecord
    ) throws(RuleFailure) {
        var rest = users[...]
        var part: UInt64 = 0
        while !rest.isEmpty {
            part += 1
            let names = rest.prefix(Self.audiencePart).map(\.name)
            try insert(
                AnnouncementAudienceRecord(
                    app: announcement.app, announcement: announcement.announcement, part: part,
                    users: names.joined(separator: "\n"), expiresAt: now + limits.audienceLifetime))
            rest = rest.dropFirst(Self.audiencePart)
        }
    }

    /// Taking it back again does nothing: the wish is fulfilled.
    func takeBackAnnouncement(_ app: AppID, _ id: MessageID) throws(RuleFailure) {
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        guard var announcement = try record(AnnouncementRecord.self, key, lock: .wait) else {
            throw .refused(.notFound, "no such announcement")
        }
        guard announcement.deletedAt == nil else { return }
        let audience = try records(
            AnnouncementAudienceRecord.self, Scan(prefix: key, limit: Self.audienceMax))
        // Retention may be on its way through them.
        guard !audience.isEmpty, audience.allSatisfy({ $0.expiresAt.map { $0 > now } ?? true })
        else {
            let days = limits.audienceLifetime / 86_400_000
            throw .refused(
                .conflict,
                "nobody knows any more whom it was for: it was published more than \(days) days "
                    + "ago, or by an earlier version of the server")
        }
        announcement.pushOptions = announcement.tracesOfAlert.encoded
        announcement.parts = []
        announcement.pushTitle = ""
        announcement.pushBody = ""
        announcement.deletedAt = now
        try put(announcement)
        for var row in audience {
            row.expiresAt = nil
            row.takenBackAt = now
            try put(row)
        }
        effects.background.insert(.fanOut)
    }

    /// Puts a tombstone in its place, if it ever came. A user who is not there any more, or is on
    /// the way out, is told nothing.
    func takeBack(
        _ announcement: AnnouncementRecord, from user: UserID
    ) throws(RuleFailure) {
        var feed = try openFeed(announcement.app, user)
        let entry = try stored(
            try transaction.announcementEntry(
                announcement.app, user, announcement.announcement))
        guard let entry else { return }
        try replace(entry, with: .tombstone(of: entry), isVisible: false, in: &feed)
        try close(feed)
    }
}
