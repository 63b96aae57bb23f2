public import Model

/// A notification that an app shows of its own.
public struct AppNotice: Equatable, Sendable {
    /// The message or announcement. Its text is the notification's identifier, as it is the
    /// collapse id of an alert about it (PSH-4): either takes the other's place.
    public var object: MessageID
    /// `nil`: an announcement.
    public var conversation: ConversationID?
    public var title: String
    public var body: String
    /// It takes the place of one that stands, and adds no sound.
    public var isQuiet: Bool

    public init(
        object: MessageID, conversation: ConversationID?, title: String, body: String,
        isQuiet: Bool = false
    ) {
        self.object = object
        self.conversation = conversation
        self.title = title
        self.body = body
        self.isQuiet = isQuiet
    }

    public var identifier: String { object.description }
}

/// What an app sees when it looks at the system's list of its notifications and into its store.
public struct AppScreen: Equatable, Sendable {
    /// A notification that stands, whoever has shown it.
    public struct Delivered: Equatable, Sendable {
        public var identifier: String
        /// Of what it is about; `.unknown` if it is about no message or announcement.
        public var standing: NotificationStanding

        public init(identifier: String, standing: NotificationStanding) {
            self.identifier = identifier
            self.standing = standing
        }
    }

    /// What the store has had since it was applied and nobody was told of.
    public struct Owed: Equatable, Sendable {
        public var notice: AppNotice
        public var standing: NotificationStanding
        /// Its text is not the one that it came with.
        public var isEdited: Bool

        public init(
            _ notice: AppNotice, standing: NotificationStanding, isEdited: Bool = false
        ) {
            self.notice = notice
            self.standing = standing
            self.isEdited = isEdited
        }
    }

    /// Oldest first.
    public var delivered: [Delivered]
    /// Oldest first.
    public var owed: [Owed]

    public init(delivered: [Delivered] = [], owed: [Owed] = []) {
        self.delivered = delivered
        self.owed = owed
    }
}
