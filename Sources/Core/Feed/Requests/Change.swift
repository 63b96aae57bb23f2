public import Model
public import Wire

/// What is changed for others than its author: a backend's request and a client's mutation are
/// both one of these, and come to the same rules. The last are of a backend alone.
public enum Change: Equatable, Sendable {
    case createConversation(CreateConversation)
    case addParticipants(AddParticipants)
    case removeParticipants(RemoveParticipants)
    case publish(Publication)
    case editMessage(EditMessage)
    /// For everyone; `nil`: a client that named none.
    case deleteMessage(MessageID?)
    /// For everyone; `nil`: a client that named none.
    case deleteConversation(ConversationID?)
    case changeMetadata(ChangeMetadata)
    /// No client's mutation is one of this and those behind it.
    case announce(Announcement)
    case takeBackAnnouncement(MessageID)
    /// Decides it; `continueDeletions` carries it out.
    case deleteUser(UserID)
    /// As if one of the user's devices had asked; what is so already stays as it is.
    case mute(MuteChange)
    case block(BlockChange)
}

/// Whether a user hears of a conversation.
public struct MuteChange: Equatable, Sendable {
    public var user: UserID
    /// `nil`: a client that named none.
    public var conversation: ConversationID?
    public var isMuted: Bool
    /// When it ends by itself; `nil`: it does not.
    public var until: Timestamp?

    public init(
        _ user: UserID, _ conversation: ConversationID?, isMuted: Bool, until: Timestamp? = nil
    ) {
        self.user = user
        self.conversation = conversation
        self.isMuted = isMuted
        self.until = until
    }
}

/// Whether a user keeps another one away.
public struct BlockChange: Equatable, Sendable {
    /// Who blocks.
    public var user: UserID
    public var other: UserID
    public var isBlocked: Bool

    public init(_ user: UserID, _ other: UserID, isBlocked: Bool) {
        self.user = user
        self.other = other
        self.isBlocked = isBlocked
    }
}

/// An Idempotency-Key and the request it stands for.
public struct Idempotency: Equatable, Sendable {
    public var key: String
    /// SHA-256 of method, path and body.
    public var requestHash: [UInt8]

    public init(key: String, requestHash: [UInt8]) {
        self.key = key
        self.requestHash = requestHash
    }
}

/// A backend's changes by name.
extension StoreRequest {
    public static func createConversation(
        app: AppID, _ request: CreateConversation, idempotency: Idempotency?
    ) -> Self { .change(app: app, .createConversation(request), idempotency: idempotency) }

    public static func addParticipants(
        app: AppID, _ request: AddParticipants, idempotency: Idempotency?
    ) -> Self { .change(app: app, .addParticipants(request), idempotency: idempotency) }

    public static func removeParticipants(
        app: AppID, _ request: RemoveParticipants, idempotency: Idempotency?
    ) -> Self { .change(app: app, .removeParticipants(request), idempotency: idempotency) }

    public static func publish(
        app: AppID, _ request: Publication, idempotency: Idempotency?
    ) -> Self { .change(app: app, .publish(request), idempotency: idempotency) }

    public static func editMessage(
        app: AppID, _ request: EditMessage, idempotency: Idempotency?
    ) -> Self { .change(app: app, .editMessage(request), idempotency: idempotency) }

    /// For everyone.
    public static func deleteMessage(
        app: AppID, _ message: MessageID, idempotency: Idempotency?
    ) -> Self { .change(app: app, .deleteMessage(message), idempotency: idempotency) }

    /// For everyone.
    public static func deleteConversation(
        app: AppID, _ conversation: ConversationID, idempotency: Idempotency?
    ) -> Self { .change(app: app, .deleteConversation(conversation), idempotency: idempotency) }

    public static func changeMetadata(
        app: AppID, _ request: ChangeMetadata, idempotency: Idempotency?
    ) -> Self { .change(app: app, .changeMetadata(request), idempotency: idempotency) }

    public static func announce(
        app: AppID, _ request: Announcement, idempotency: Idempotency?
    ) -> Self { .change(app: app, .announce(request), idempotency: idempotency) }

    public static func takeBackAnnouncement(
        app: AppID, _ announcement: MessageID, idempotency: Idempotency?
    ) -> Self {
        .change(app: app, .takeBackAnnouncement(announcement), idempotency: idempotency)
    }

    public static func deleteUser(
        app: AppID, _ user: UserID, idempotency: Idempotency?
    ) -> Self { .change(app: app, .deleteUser(user), idempotency: idempotency) }

    public static func mute(app: AppID, _ mute: MuteChange, idempotency: Idempotency?) -> Self {
        .change(app: app, .mute(mute), idempotency: idempotency)
    }

    public static func block(app: AppID, _ block: BlockChange, idempotency: Idempotency?) -> Self {
        .change(app: app, .block(block), idempotency: idempotency)
    }
}

/// Who asks for a change of a conversation.
enum Actor: Equatable {
    /// The app's backend: reaches every object of its app.
    case backend
    /// A user: reaches the conversations he takes part in.
    case user(UserID)
}

extension Actor {
    /// A user's name; empty: the backend.
    var name: String {
        switch self {
        case .backend: ""
        case .user(let user): user.name
        }
    }
}
