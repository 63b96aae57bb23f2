/// What an app may show of a message or an announcement, as its own store knows it.
public enum NotificationStanding: Equatable, Sendable {
    /// It is not stored here, and may be older than what is: the app cannot tell.
    case unknown
    /// It is not stored here, though the conversation is, whole, or nothing is of the conversation:
    /// it has not been synced yet, or it is gone.
    case missing
    /// Unread, and not in a conversation that the user has muted.
    case shows
    /// Unread, in a muted conversation: nothing new is shown, what stands may stand.
    case muted
    /// It is not unread (SYN-27): read, deleted, without its text for alerts now, or of a
    /// conversation that the user is no longer in. A notification of it is removed.
    case over
}
