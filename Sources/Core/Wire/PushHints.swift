/// What a backend said of a push beside its text (message `PushHints`): how the notification shows
/// itself, and what it is about in the app's own words.
public struct PushHints: WireMessage {
    /// Between title and body.
    public var subtitle: String
    /// In place of the title, from the app's own string table.
    public var titleKey: LocalizedText?
    /// In place of the subtitle.
    public var subtitleKey: LocalizedText?
    /// In place of the body.
    public var bodyKey: LocalizedText?
    /// `nil`: the system's.
    public var sound: PushSound?
    /// With which other notifications it stands together; empty: those of the conversation.
    public var thread: String
    /// Which actions it offers.
    public var category: String
    /// How much it may disturb.
    public var interruptionLevel: InterruptionLevel
    /// In thousandths, plus 1; 0: not said.
    public var relevance: UInt32
    /// Which of the app's windows a tap brings to the front.
    public var targetContent: String
    /// What it is about: a type of the app's own.
    public var event: String
    /// Which one of that type.
    public var object: String
    /// The app's own data, the text of a JSON object; empty: none.
    public var data: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        subtitle: String = "", titleKey: LocalizedText? = nil,
        subtitleKey: LocalizedText? = nil, bodyKey: LocalizedText? = nil,
        sound: PushSound? = nil, thread: String = "", category: String = "",
        interruptionLevel: InterruptionLevel = .unspecified, relevance: UInt32 = 0,
        targetContent: String = "", event: String = "", object: String = "", data: String = ""
    ) {
        self.subtitle = subtitle
        self.titleKey = titleKey
        self.subtitleKey = subtitleKey
        self.bodyKey = bodyKey
        self.sound = sound
        self.thread = thread
        self.category = category
        self.interruptionLevel = interruptionLevel
        self.relevance = relevance
        self.targetContent = targetContent
        self.event = event
        self.object = object
        self.data = data
    }

    public static var empty: PushHints { PushHints() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "subtitle", &subtitle)
        try visitor.message(2, "title_key", &titleKey)
        try visitor.message(3, "subtitle_key", &subtitleKey)
        try visitor.message(4, "body_key", &bodyKey)
        try visitor.message(5, "sound", &sound)
        try visitor.string(6, "thread", &thread)
        try visitor.string(7, "category", &category)
        try visitor.enumeration(8, "interruption_level", &interruptionLevel)
        try visitor.uint32(9, "relevance", &relevance)
        try visitor.string(10, "target_content", &targetContent)
        try visitor.string(11, "event", &event)
        try visitor.string(12, "object", &object)
        try visitor.string(13, "data", &data)
    }
}

/// A text of the app's own string table.
public struct LocalizedText: WireMessage {
    /// Its name there.
    public var key: String
    /// What is put into it, in order.
    public var arguments: [String]

    /// A body with these fields; those left out keep their proto3 default.
    public init(key: String = "", arguments: [String] = []) {
        self.key = key
        self.arguments = arguments
    }

    public static var empty: LocalizedText { LocalizedText() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "key", &key)
        try visitor.strings(2, "arguments", &arguments)
    }
}

/// What a notification is heard as.
public struct PushSound: WireMessage {
    /// Where it is from; unspecified: the system's.
    public var kind: SoundKind
    /// A file of the app.
    public var name: String
    /// Of a critical one, in hundredths of the loudest.
    public var volume: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(kind: SoundKind = .unspecified, name: String = "", volume: UInt32 = 0) {
        self.kind = kind
        self.name = name
        self.volume = volume
    }

    public static var empty: PushSound { PushSound() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "kind", &kind)
        try visitor.string(2, "name", &name)
        try visitor.uint32(3, "volume", &volume)
    }
}
