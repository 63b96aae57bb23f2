public import Model
public import Wire

/// An announcement as an app shows it.
public struct AnnouncementRow: Equatable, Sendable, Identifiable {
    /// Rows of a list, at most: the newest.
    public static let rowsMax = 1_000

    public var id: MessageID
    /// By the server's clock.
    public var sentAt: Timestamp
    public var parts: [Part]
    public var push: PushText?
    /// By this device, also where the server has not heard of it yet, or by another of the user's.
    public var isRead: Bool

    /// For a preview; the store gives the others.
    public init(
        id: MessageID, sentAt: Timestamp, parts: [Part], push: PushText? = nil,
        isRead: Bool = false
    ) {
        self.id = id
        self.sentAt = sentAt
        self.parts = parts
        self.push = push
        self.isRead = isRead
    }

    /// Its parts of the type `text/plain`, a line each.
    public var text: String { parts.text }
}

extension TableLocalStore {
    /// The announcements that are here, the newest first.
    public func announcements() throws(LocalStoreError) -> [AnnouncementRow] {
        try read { snapshot throws(StoreError) in
            var scan = Scan(.announcement, of: [], limit: AnnouncementRow.rowsMax)
            scan.descending = true
            var rows: [AnnouncementRow] = []
            for entry in try snapshot.entries(scan) {
                guard case .announcement(let state) = entry.body, let id = MessageID(entry.object)
                else { continue }
                let isReadHere = try Self.isReadHere(id, snapshot)
                rows.append(
                    AnnouncementRow(
                        id: id, sentAt: Timestamp(milliseconds: state.sentMs), parts: state.parts,
                        push: state.push, isRead: state.read || isReadHere))
            }
            return rows.sorted { $0.sentAt > $1.sentAt }
        }
    }

    /// Whether this device has said that an announcement is read, and the server has not heard of
    /// it yet.
    static func isReadHere(
        _ announcement: MessageID, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        let subject = ReadReceipt(announcement: announcement).subject
        return try snapshot.record(LocalReadRecord.self, [.blob(subject)]) != nil
    }
}
