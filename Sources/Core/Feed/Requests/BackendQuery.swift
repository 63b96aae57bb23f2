public import Model

/// What an app's backend reads. Lists are given a piece at a time; each piece begins after the
/// last row of the one before it, so that rows that come or go meanwhile move no others.
///
/// A deleted conversation and what was in it is answered like one that does not exist.
public enum BackendQuery: Equatable, Sendable {
    case conversation(ConversationID)
    case participants(ConversationID, after: UserID?, limit: Int)
    case messages(ConversationID, MessageRange)
    case message(MessageID)
    /// How far each participant got, by name.
    case receipts(ConversationID, after: UserID?, limit: Int)
    case user(UserID)
    /// The app's users whose names begin with `prefix`, by name.
    case users(prefix: String, after: UserID?, limit: Int)
    /// The app's conversations, by id.
    case allConversations(after: ConversationID?, limit: Int)
    /// The conversations a user takes part in, by id; `bytes`: of content a piece should not
    /// exceed, while one conversation is always given.
    case conversations(UserID, after: ConversationID?, limit: Int, bytes: Int)
    /// Whom a user blocks, by name.
    case blocks(UserID, after: UserID?, limit: Int)
    /// What a user has muted now of the conversations the user takes part in, by id.
    case mutes(UserID, after: ConversationID?, limit: Int)
    /// What a user wrote: by conversation, newest first; `bytes`: of content a piece should not
    /// exceed, while one message is always given.
    case written(UserID, after: WrittenPlace?, limit: Int, bytes: Int)
    /// All of them, by id.
    case webhooks
    case webhook(WebhookID)
    /// Tokens that APNs called dead or wrong, in the order in which they were dropped.
    case tokenFeedback(after: UInt64, limit: Int)
    case scheduled(MessageID)
    /// By the time they are for, then by id.
    case schedule(ScheduledRecord.State, after: SchedulePlace?, limit: Int)
}

/// A piece of a conversation's messages.
public struct MessageRange: Equatable, Sendable {
    /// Newest first.
    public var descending: Bool
    /// The position the piece begins beside, itself left out; `nil`: the first or the newest.
    public var beside: UInt64?
    public var limit: Int
    /// Bytes of content the piece should not exceed; one message is always given.
    public var bytes: Int

    public init(descending: Bool, beside: UInt64?, limit: Int, bytes: Int) {
        self.descending = descending
        self.beside = beside
        self.limit = limit
        self.bytes = bytes
    }
}

/// What a backend's query found. `next`: the list goes on after it; a piece may be shorter than
/// asked for, or empty, and yet have one, where rows were passed over.
public enum BackendReading: Equatable, Sendable {
    case conversation(ConversationRecord, metadata: MetadataRecord)
    case participants([ParticipantRecord], next: UserID?)
    case messages([MessageRecord], next: UInt64?)
    case message(MessageRecord)
    case receipts([ParticipantProgress], next: UserID?)
    case user(UserView)
    case users([UserRecord], next: UserID?)
    case allConversations([ConversationRecord], next: ConversationID?)
    case conversations([UserConversation], next: ConversationID?)
    case blocks([BlockRecord], next: UserID?)
    case mutes([SettingsRecord], next: ConversationID?)
    case written([MessageRecord], next: WrittenPlace?)
    case webhooks([WebhookRecord])
    case webhook(WebhookRecord)
    /// `last`: where to go on later, when more have been dropped.
    case tokenFeedback([TokenFeedbackRecord], last: UInt64)
    case scheduled(ScheduledRecord)
    case schedule([ScheduledRecord], next: SchedulePlace?)
}

/// A place in the list of what a user wrote.
public struct WrittenPlace: Equatable, Sendable {
    public var conversation: ConversationID
    /// What stands below it is still to be looked at.
    public var position: UInt64

    public init(conversation: ConversationID, position: UInt64) {
        self.conversation = conversation
        self.position = position
    }
}

/// A place in the list of what is published at a time.
public struct SchedulePlace: Equatable, Sendable {
    public var sendAt: Timestamp
    public var message: MessageID

    public init(sendAt: Timestamp, message: MessageID) {
        self.sendAt = sendAt
        self.message = message
    }
}

/// How far a participant got. Before anything was told it is where the participant joined.
public struct ParticipantProgress: Equatable, Sendable {
    public var user: UserID
    /// Up to this position every message is durably stored on one of the user's devices.
    public var delivered: UInt64
    public var read: UInt64

    public init(user: UserID, delivered: UInt64, read: UInt64) {
        self.user = user
        self.delivered = delivered
        self.read = read
    }
}

/// A user as a backend sees them.
public struct UserView: Equatable, Sendable {
    public var user: UserRecord
    /// Those logged in.
    public var devices: Int
    /// The number on the icon.
    public var unread: UInt64
}

/// A conversation and one user's part in it.
public struct UserConversation: Equatable, Sendable {
    public var conversation: ConversationRecord
    public var participant: ParticipantRecord
    /// The newest message that the user is shown; `nil`: there is none among the newest.
    public var newest: MessageRecord?
}
