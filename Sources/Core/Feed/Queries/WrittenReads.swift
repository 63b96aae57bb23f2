import Model

// What a user wrote, for who asks what a server holds of them. There is no index by sender, whose
// cost every publish would bear: the user's conversations are looked through, and a piece ends
// where enough was looked at, whatever was found.
extension PageReader {
    /// Content of others that is read and passed over for one piece, in pieces' bytes.
    private static let lookedAtMost = 8

    func written(
        by user: UserID, _ app: AppID, after: WrittenPlace?, _ limit: Int, bytes: Int,
        _ limits: RuleLimits
    ) throws(StoreError) -> BackendReading? {
        let known = try snapshot.record(UserRecord.self, [.app(app), .user(user)])
        guard let known, known.deletingSince == nil else { return nil }
        var search = WrittenSearch(
            since: known.createdAt, limit: limit, bytes: bytes, rows: limits.listRows,
            lookedBytes: Self.lookedAtMost * bytes)
        var place = after
        if place == nil { place = try conversationOf(user, app, after: nil) }
        while let current = place {
            if try conversation(app, current.conversation) != nil,
                let next = try look(through: current, by: user, app, &search)
            {
                return .written(search.found, next: next)
            }
            place = try conversationOf(user, app, after: current.conversation)
            search.rows -= 1
            if search.rows <= 0, let place { return .written(search.found, next: place) }
        }
        return .written(search.found, next: nil)
    }

    /// The next one that the user takes part in or took part in, from its newest message on.
    private func conversationOf(
        _ user: UserID, _ app: AppID, after: ConversationID?
    ) throws(StoreError) -> WrittenPlace? {
        let rows = try snapshot.records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_user", prefix: [.app(app), .user(user)],
                after: after.map { [.identifier($0)] }, limit: 1))
        return rows.first.map {
            WrittenPlace(conversation: $0.conversation, position: .max >> 1)
        }
    }

    /// - Returns: where the next piece goes on; `nil`: the conversation is looked through.
    private func look(
        through place: WrittenPlace, by user: UserID, _ app: AppID, _ search: inout WrittenSearch
    ) throws(StoreError) -> WrittenPlace? {
        var place = place
        // Positions begin at 1.
        while place.position > 1 {
            let rows = try snapshot.records(
                MessageRecord.self,
                Scan(
                    index: "message_by_position",
                    prefix: [.app(app), .identifier(place.conversation)],
                    through: [.unsigned(place.position - 1)], descending: true,
                    limit: Self.messagesChunk))
            for message in rows {
                if search.isOver { return place }
                if UserID(message.sender) == user, search.concerns(message),
                    try isReadable(message)
                {
                    guard search.take(message) else { return place }
                }
                search.look(at: message)
                place.position = message.position
            }
            if rows.count < Self.messagesChunk { return nil }
        }
        return nil
    }

    private func isReadable(_ message: MessageRecord) throws(StoreError) -> Bool {
        try readable(message.app, UserID(""), message.conversation) {
            () throws(StoreError) in try self.entry(of: message)
        } != nil
    }
}

/// A piece while it is made, and what may still be looked at for it.
private struct WrittenSearch {
    private(set) var found: [MessageRecord] = []
    /// When the user was first known.
    private let since: Timestamp
    private let limit: Int
    private var bytes: Int
    var rows: Int
    private var lookedBytes: Int

    init(since: Timestamp, limit: Int, bytes: Int, rows: Int, lookedBytes: Int) {
        self.since = since
        self.limit = limit
        self.bytes = bytes
        self.rows = rows
        self.lookedBytes = lookedBytes
    }

    var isOver: Bool { rows <= 0 || lookedBytes <= 0 }

    /// What stands of a deleted user, whose name this one has, is none of this one's (MSG-53). Of
    /// that user there are only messages that were deleted.
    func concerns(_ message: MessageRecord) -> Bool {
        message.deletedAt == nil || message.sentAt >= since
    }

    mutating func look(at message: MessageRecord) {
        rows -= 1
        lookedBytes -= message.contentBytes
    }

    /// - Returns: whether there was room.
    mutating func take(_ message: MessageRecord) -> Bool {
        bytes -= message.contentBytes
        if found.count == limit || bytes < 0 && !found.isEmpty { return false }
        found.append(message)
        return true
    }
}
