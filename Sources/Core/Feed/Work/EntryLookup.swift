import Model

extension StoreSnapshot {
    /// The entry of the object under this kind in a user's feed.
    ///
    /// - Parameter position: a message's, by which its entry is found.
    func entry(
        of kind: EntryKind, _ app: AppID, _ user: UserID, _ conversation: ConversationID,
        object: [UInt8], position: UInt64
    ) throws(StoreError) -> EntryRecord? {
        if kind == .message {
            for isToBeRead in [true, false] {
                let found = try records(
                    EntryRecord.self,
                    Scan(
                        index: "entry_by_place",
                        prefix: [
                            .app(app), .user(user), .identifier(conversation),
                            EntryRecord.place(isToBeRead: isToBeRead), .unsigned(position),
                        ],
                        limit: 1)
                ).first
                if let found, found.object == object { return found }
            }
            return nil
        }
        return try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(app), .user(user), .unsigned(kind.rawValue), .identifier(conversation),
                    .blob(object),
                ],
                limit: 1)
        ).first
    }

    /// Entries of a conversation's messages in a user's feed.
    ///
    /// - Parameter through: the last position; `nil`: all.
    func messageEntries(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, through: UInt64? = nil,
        limit: Int
    ) throws(StoreError) -> [EntryRecord] {
        var found: [EntryRecord] = []
        for isToBeRead in [false, true] where found.count < limit {
            found += try records(
                EntryRecord.self,
                Scan(
                    index: "entry_by_place",
                    prefix: [
                        .app(app), .user(user), .identifier(conversation),
                        EntryRecord.place(isToBeRead: isToBeRead),
                    ],
                    through: through.map { [.unsigned($0)] }, limit: limit - found.count))
        }
        return found
    }
}

extension StoreSnapshot {
    /// The entry of an announcement in a user's feed; `nil`: it never came to him.
    func announcementEntry(
        _ app: AppID, _ user: UserID, _ announcement: MessageID
    ) throws(StoreError) -> EntryRecord? {
        try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(app), .user(user), .unsigned(EntryKind.announcement.rawValue),
                    .identifier(ConversationID.none), .blob(announcement.bytes),
                ],
                limit: 1)
        ).first
    }
}
