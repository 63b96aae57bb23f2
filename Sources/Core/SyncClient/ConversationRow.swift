public import Model
public import Wire

/// A conversation as an app lists it.
public struct ConversationRow: Equatable, Sendable, Identifiable {
    /// As the icon's number (SYN-27): this, and more.
    public static let unreadMax = 999
    /// Names listed; only of a large conversation there are more participants (MSG-38).
    public static let participantsMax = 256

    public var id: ConversationID
    public var created: Timestamp
    public var creator: String
    /// In rising order of their paths.
    public var metadata: [MetadataValue] = []
    /// Who takes part, by name; of a large conversation only the user.
    public var participants: [String] = []
    public var participantCount: Int = 0
    /// Whether the user takes part still.
    public var isMember = true
    public var mute = Mute.off
    /// Messages that the user has not read, of those on this device.
    public var unread = 0
    /// Messages that are not on this device may be unread too.
    public var hasOlderUnread = false
    /// The newest message that is not deleted, or that is about to be sent; `nil`: there is none.
    public var last: MessageRow?

    /// Whether messages of it alert.
    public enum Mute: Equatable, Sendable {
        case off
        case on
        case until(Timestamp)
    }

    /// For a preview; the store gives the others.
    public init(id: ConversationID, created: Timestamp, creator: String) {
        self.id = id
        self.created = created
        self.creator = creator
    }

    /// A value of its metadata.
    public func value(at path: String...) -> String? {
        metadata.first { value in
            value.path.count == path.count
                && zip(value.path, path).allSatisfy { $0.isExactly($1) }
        }?.value
    }

    /// What the metadata says under `title`; `nil`: nothing.
    public var title: String? { value(at: "title") }

    /// When something happened in it last.
    public var lastActivity: Timestamp { max(created, last?.sentAt ?? created) }
}
