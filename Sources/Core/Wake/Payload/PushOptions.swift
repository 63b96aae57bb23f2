public import Model

/// How soon a device without a session is told of a message or announcement.
public enum Urgency: UInt64, Sendable, CaseIterable {
    /// A silent push first, an alert only where it comes to nothing.
    case normal = 0
    /// An alert at once, with no silent step before it.
    case urgent = 1
    /// Never an alert: a silent push where one can be spared.
    case passive = 2
}

/// How an alert shows itself, beside its text: what a backend may say when it publishes. The
/// keys are Apple's (Generating a remote notification).
public struct PushOptions: Equatable, Sendable {
    public enum Sound: Equatable, Sendable {
        /// The system's.
        case standard
        case none
        /// A file of the app.
        case named(String)
        /// Heard although the device is muted, if Apple has entitled the app; `volume` in
        /// hundredths of the loudest.
        case critical(name: String, volume: UInt64)
    }

    public enum InterruptionLevel: UInt64, NamedByCase, Sendable {
        case passive = 1
        case active = 2
        case timeSensitive = 3
        case critical = 4

        /// As it stands in the payload.
        public static let names = caseNames()
    }

    /// A text that the app's own string table holds.
    public struct LocalKey: Equatable, Sendable {
        public var key: String
        public var arguments: [String]

        public init(_ key: String, _ arguments: [String] = []) {
            self.key = key
            self.arguments = arguments
        }
    }

    /// The text for devices of one language.
    public struct LocalText: Equatable, Sendable {
        /// A BCP 47 tag: `de`, `zh-Hant-TW`.
        public var locale: String
        public var title: String
        public var subtitle: String
        public var body: String
        /// As `PushOptions.more`; empty: the one there.
        public var more: String

        public init(
            locale: String, title: String = "", subtitle: String = "", body: String = "",
            more: String = ""
        ) {
            self.locale = locale
            self.title = title
            self.subtitle = subtitle
            self.body = body
            self.more = more
        }
    }

    public var urgency = Urgency.normal
    public var subtitle = ""
    /// In place of title, subtitle and body.
    public var titleKey: LocalKey?
    public var subtitleKey: LocalKey?
    public var bodyKey: LocalKey?
    /// Stands behind the text while older messages are not seen; `%d` is their number. Empty:
    /// " (and %d more)".
    public var more = ""
    /// In place of `bodyKey` while older messages are not seen: its arguments, then their number.
    public var moreKey = ""
    public var sound = Sound.standard
    /// Empty: the conversation.
    public var thread = ""
    public var category = ""
    public var interruption: InterruptionLevel?
    /// In thousandths: 0 to 1,000.
    public var relevance: UInt64?
    public var targetContent = ""
    /// A notification service extension may change it before it is shown.
    public var isMutable = true
    /// The app's own words for what it is about, beside the ids: `t` and `i` of the payload.
    public var event = ""
    public var object = ""
    public var custom = CustomData()
    public var texts: [LocalText] = []
    public var timing = AlertTiming()
    /// Not shown, but kept with the rest: it goes wherever these go, and where there is none it
    /// takes no byte.
    public var trace: TraceContext?

    public init() {}

    /// Whether an alert would show something even where no text was given.
    public var hasKeyText: Bool { titleKey != nil || bodyKey != nil }
}

/// Why a push cannot be published as it is: told to the backend.
public enum PushProblem: Error, Equatable, Sendable {
    case malformed(String)
    /// It would not fit into what APNs takes, or into what is kept.
    case tooLarge(String)
}

extension PushOptions {
    /// The most bytes of thread, category, sound, target content, event and object each.
    public static let nameBytesMax = 128
    public static let argumentsMax = 16
    public static let argumentBytesMax = 256
    public static let textsMax = 64
    /// The most bytes of one locale's text.
    public static let textBytesMax = 2_048
    /// The most bytes of all that is kept beside title and body.
    public static let encodedBytesMax = 32_768
    static let localeBytesMax = 35

    /// What keeps a push with this title and body from being sent; `nil`: nothing.
    ///
    /// Text is cut to fit, all else is not: where less than `PushPayload.textBytesMin` bytes are
    /// left for a text that needs them, the push is refused.
    public func problem(title: String, body: String) -> PushProblem? {
        // The standard options leave room for every text, and most messages have no others.
        var shown = self
        shown.trace = nil
        if shown == Self.standard { return nil }
        do throws(PushProblem) {
            try checkNames()
            try checkKeys()
            try checkTexts(title: title, body: body)
            guard encoded.count <= Self.encodedBytesMax else {
                throw .tooLarge("more than \(Self.encodedBytesMax) bytes of push options")
            }
            try checkRoom(title: title, body: body)
            return nil
        } catch {
            return error
        }
    }

    static let standard = PushOptions()

    private func checkNames() throws(PushProblem) {
        var names = [
            ("thread", thread), ("category", category), ("target content id", targetContent),
            ("event", event), ("object", object),
        ]
        switch sound {
        case .standard, .none: break
        case .named(let name), .critical(let name, _):
            guard !name.isEmpty else { throw .malformed("a sound without a name") }
            names.append(("sound", name))
        }
        for (what, name) in names {
            guard name.utf8.count <= Self.nameBytesMax else {
                throw .tooLarge("a \(what) of more than \(Self.nameBytesMax) bytes")
            }
            guard name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw .malformed("a \(what) with control characters")
            }
        }
        if case .critical(_, let volume) = sound, volume > 100 {
            throw .malformed("a volume above the loudest")
        }
        if let relevance, relevance > 1_000 { throw .malformed("a relevance above 1") }
        guard urgency != .passive || timing.moment == nil else {
            throw .malformed("a time for the alert of what never alerts")
        }
    }

    private func checkKeys() throws(PushProblem) {
        for key in [titleKey, subtitleKey, bodyKey] {
            guard let key else { continue }
            guard !key.key.isEmpty else { throw .malformed("an empty localization key") }
            guard key.arguments.count <= Self.argumentsMax else {
                throw .tooLarge("more than \(Self.argumentsMax) localization arguments")
            }
            for text in [key.key] + key.arguments
            where text.utf8.count > Self.argumentBytesMax {
                throw .tooLarge(
                    "a localization key or argument of more than "
                        + "\(Self.argumentBytesMax) bytes")
            }
        }
        guard moreKey.utf8.count <= Self.argumentBytesMax else {
            throw .tooLarge("a localization key of more than \(Self.argumentBytesMax) bytes")
        }
        guard moreKey.isEmpty || bodyKey != nil else {
            throw .malformed("a key for more messages without one for a single message")
        }
    }

    private func checkTexts(title: String, body: String) throws(PushProblem) {
        guard texts.count <= Self.textsMax else {
            throw .tooLarge("texts for more than \(Self.textsMax) locales")
        }
        // Whoever speaks none of them must see something too.
        guard texts.isEmpty || !title.isEmpty || !body.isEmpty || hasKeyText else {
            throw .malformed("texts for locales, and none for all others")
        }
        for more in [more] + texts.map(\.more) where more.utf8.count > Self.nameBytesMax {
            throw .tooLarge("a text for more messages of more than \(Self.nameBytesMax) bytes")
        }
        guard subtitle.utf8.count <= Self.textBytesMax else {
            throw .tooLarge("a subtitle of more than \(Self.textBytesMax) bytes")
        }
        var seen: Set<String> = []
        for text in texts {
            guard let tag = LocaleTag(text.locale) else {
                throw .malformed("a locale that is no language tag (BCP 47)")
            }
            guard seen.insert(tag.text).inserted else {
                throw .malformed("two texts for the locale \(tag.text)")
            }
            let bytes =
                text.title.utf8.count + text.subtitle.utf8.count + text.body.utf8.count
            guard bytes <= Self.textBytesMax else {
                throw .tooLarge(
                    "more than \(Self.textBytesMax) bytes of text for \(tag.text)")
            }
            guard !text.title.isEmpty || !text.body.isEmpty else {
                throw .malformed("no title and no body for the locale \(tag.text)")
            }
        }
    }

    private func checkRoom(title: String, body: String) throws(PushProblem) {
        for text in [shown(title: title, body: body, locale: "", otherwise: "")]
            + texts.map({ shown(title: title, body: body, locale: $0.locale, otherwise: "") })
        {
            let room = PushPayload.roomForText(text, options: self)
            let wanted = PushPayload.escaped(text.title + text.subtitle + text.body).count
            guard room >= min(wanted, PushPayload.textBytesMin) else {
                let whole = PushPayload.bytesMax - room
                throw .tooLarge(
                    "the push has \(whole) bytes beside its text, of \(PushPayload.bytesMax)")
            }
        }
    }
}

// MARK: Languages

/// A BCP 47 language tag, in lower case with hyphens: what matters for matching.
struct LocaleTag: Equatable {
    let text: String

    /// `nil`: it is none. Apple's underscores are taken for hyphens.
    init?(_ text: String) {
        let lower = text.lowercased().utf8.map {
            $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0
        }
        guard lower.count <= PushOptions.localeBytesMax else { return nil }
        let subtags = lower.split(
            separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        for subtag in subtags {
            guard (1...8).contains(subtag.count),
                subtag.allSatisfy({ (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) })
            else { return nil }
        }
        guard let language = subtags.first, language.count >= 2,
            language.allSatisfy({ $0 >= 0x61 })
        else { return nil }
        self.text = String(decoding: lower, as: UTF8.self)
    }

    /// RFC 4647 section 3.4: the tag itself, then shorter and shorter; a single character that
    /// would end one goes with what followed it.
    var fallbacks: [String] {
        var subtags = text.split(separator: "-")
        var tags: [String] = []
        while !subtags.isEmpty {
            tags.append(subtags.joined(separator: "-"))
            subtags.removeLast()
            if subtags.last?.utf8.count == 1 { subtags.removeLast() }
        }
        return tags
    }
}

extension PushOptions {
    /// The text for a device: by its language, else by the app's, else what was given for all.
    ///
    /// - Parameters:
    ///   - locale: what the device said; empty: nothing.
    ///   - otherwise: the app's own language, for devices that speak none of the texts'.
    public func shown(
        title: String, body: String, locale: String, otherwise: String, others: UInt64 = 0
    ) -> PushPayload.AlertText {
        let found = find(locale) ?? find(otherwise)
        let ending = found.map { $0.more.isEmpty ? more : $0.more } ?? more
        return PushPayload.AlertText(
            title: found?.title ?? title, subtitle: found?.subtitle ?? subtitle,
            body: found?.body ?? body, others: others, more: ending, isLocal: found != nil)
    }

    private func find(_ locale: String) -> LocalText? {
        guard !texts.isEmpty, let wanted = LocaleTag(locale) else { return nil }
        for tag in wanted.fallbacks {
            if let text = texts.first(where: { LocaleTag($0.locale)?.text == tag }) {
                return text
            }
        }
        return nil
    }
}
