public import Model
public import Wire

/// A notification that an app shows of its own: what an alert of the same message would have
/// shown (PSH-12).
public struct AppNotice: Equatable, Sendable {
    /// The message or announcement. Its text is the notification's identifier, as it is the
    /// collapse id of an alert about it (PSH-4): either takes the other's place.
    public var object: MessageID
    /// `nil`: an announcement.
    public var conversation: ConversationID?
    /// Empty, or with a key among the hints that takes its place: none is shown.
    public var title: String
    public var body: String
    /// What else the backend said of the push.
    public var hints: PushHints
    /// It takes the place of one that stands: without sound, and in front without banner.
    public var isQuiet: Bool

    public init(
        object: MessageID, conversation: ConversationID?, title: String, body: String,
        hints: PushHints = PushHints(), isQuiet: Bool = false
    ) {
        self.object = object
        self.conversation = conversation
        self.title = title
        self.body = body
        self.hints = hints
        self.isQuiet = isQuiet
    }

    public var identifier: String { object.description }

    /// With which others it stands together; `nil`: with none.
    public var thread: String? {
        hints.thread.isEmpty ? conversation?.description : hints.thread
    }

    /// `nil`: it is not heard.
    public var sound: NoticeSound? {
        guard !isQuiet else { return nil }
        guard let sound = hints.sound else { return .standard }
        switch sound.kind {
        case .unspecified: return .standard
        case .none: return nil
        case .named: return .named(sound.name)
        case .critical:
            return .critical(name: sound.name, volume: Double(min(sound.volume, 100)) / 100)
        }
    }

    /// From 0 to 1; `nil`: nothing was said.
    public var relevance: Double? {
        hints.relevance == 0 ? nil : Double(min(hints.relevance - 1, 1_000)) / 1_000
    }
}

/// What a notification is heard as.
public enum NoticeSound: Equatable, Sendable {
    /// The system's.
    case standard
    /// A file of the app.
    case named(String)
    /// A file of the app, heard although the device is muted; `volume` from 0 to 1.
    case critical(name: String, volume: Double)
}

/// What the system does with a notification that comes while the app is in front.
public enum Presentation: Equatable, Sendable {
    /// Neither shown nor put into the list.
    case nothing
    /// It goes into the list, where it takes the place of the one with its identifier; there is no
    /// banner and no sound.
    case list
    /// As behind the front: banner, list and sound.
    case all
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
        /// The server alerted of it, or the app showed it before: if that does not stand, the
        /// person has done with it.
        public var wasTold: Bool

        public init(
            _ notice: AppNotice, standing: NotificationStanding, isEdited: Bool = false,
            wasTold: Bool = false
        ) {
            self.notice = notice
            self.standing = standing
            self.isEdited = isEdited
            self.wasTold = wasTold
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
