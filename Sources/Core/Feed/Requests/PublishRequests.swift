public import Model
public import Wake
public import Wire

/// A message published by the backend; `sender` empty: the app itself.
public struct Publication: Equatable, Sendable {
    public var message: SendMessage
    public var sender: String
    /// How its alert shows itself.
    public var options: PushOptions
    /// The id of the message was drawn for this request alone: nothing can have it.
    public var isIDFresh: Bool

    public init(
        message: SendMessage, sender: String, options: PushOptions = PushOptions(),
        isIDFresh: Bool = false
    ) {
        self.message = message
        self.sender = sender
        self.options = options
        self.isIDFresh = isIDFresh
    }
}

/// Something the backend tells listed users.
public struct Announcement: Equatable, Sendable {
    public var announcement: MessageID
    public var users: [String]
    public var parts: [Part]
    public var push: PushText?
    /// How its alert shows itself.
    public var options: PushOptions

    public init(
        announcement: MessageID, users: [String], parts: [Part], push: PushText? = nil,
        options: PushOptions = PushOptions()
    ) {
        self.announcement = announcement
        self.users = users
        self.parts = parts
        self.push = push
        self.options = options
    }
}

/// What is counted of publishing: each once, whoever published it and whenever it was asked for.
/// The answer given again to a request that comes again counts nothing.
public struct PublishEffects: Equatable, Sendable {
    public var messages = 0
    public var announcements = 0

    public init() {}

    public static func += (effects: inout PublishEffects, more: PublishEffects) {
        effects.messages += more.messages
        effects.announcements += more.announcements
    }
}

/// The language a device speaks and the clock on its wall, as HELLO says them.
public struct DevicePlace: Equatable, Sendable {
    public var locale: String
    public var timeZone: String
    /// Minutes east of UTC, plus 1,440; 0: not said.
    public var utcOffset: UInt32

    public init(locale: String = "", timeZone: String = "", utcOffset: UInt32 = 0) {
        self.locale = locale
        self.timeZone = timeZone
        self.utcOffset = utcOffset
    }
}
