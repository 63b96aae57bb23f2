import FoundationEssentials
import Model
import Wake
import Wire

/// What an alert shows, and how: the `push` of a message or an announcement. The keys are
/// Apple's, in snake case.
struct NewPush: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case title, subtitle, body, more, sound, thread, category, relevance, event, object, data
        case texts
        case titleKey = "title_loc_key"
        case titleArguments = "title_loc_args"
        case subtitleKey = "subtitle_loc_key"
        case subtitleArguments = "subtitle_loc_args"
        case bodyKey = "loc_key"
        case bodyArguments = "loc_args"
        case moreKey = "more_loc_key"
        case interruptionLevel = "interruption_level"
        case targetContent = "target_content_id"
        case mutableContent = "mutable_content"
        case at, local, zone
        case expiresAt = "expires_at"
        case lifetime = "ttl_seconds"
    }

    let text: PushText
    let options: PushOptions

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        text = PushText(
            title: try fields.optional(.title) ?? "", body: try fields.optional(.body) ?? "")
        var options = PushOptions()
        options.subtitle = try fields.optional(.subtitle) ?? ""
        options.titleKey = try Self.key(fields, .titleKey, .titleArguments)
        options.subtitleKey = try Self.key(fields, .subtitleKey, .subtitleArguments)
        options.bodyKey = try Self.key(fields, .bodyKey, .bodyArguments)
        options.more = try fields.optional(.more) ?? ""
        let moreKey = try fields.optional(.moreKey, String.self)
        // In a row an empty key is none.
        if moreKey?.isEmpty == true { throw fields.refusal(.moreKey, "must not be empty") }
        options.moreKey = moreKey ?? ""
        options.sound = try fields.optional(.sound, NewSound.self)?.sound ?? .standard
        if case .named(let name) = options.sound { try Self.checkName(name, fields, .sound) }
        options.thread = try Self.name(fields, .thread)
        options.category = try Self.name(fields, .category)
        if let name = try fields.optional(.interruptionLevel, String.self) {
            let levels = PushOptions.InterruptionLevel.allCases
            options.interruption = levels.first { $0.name == name }
            guard options.interruption != nil else {
                throw fields.refusal(
                    .interruptionLevel,
                    "must be one of " + levels.map(\.name).joined(separator: ", "))
            }
        }
        if let relevance = try fields.optional(.relevance, Double.self) {
            guard (0...1).contains(relevance) else {
                throw fields.refusal(.relevance, "must be a number from 0 to 1")
            }
            options.relevance = UInt64((relevance * 1_000).rounded())
        }
        options.targetContent = try Self.name(fields, .targetContent)
        options.isMutable = try fields.optional(.mutableContent) ?? true
        options.event = try Self.name(fields, .event)
        options.object = try Self.name(fields, .object)
        if let data = try fields.optional(.data, AppData.self) {
            do throws(PushProblem) {
                options.custom = try CustomData(data.members)
            } catch {
                throw fields.refusal(.data, "cannot be taken: \(error.reason)", error.code)
            }
        }
        let texts = try fields.optional(.texts, [String: NewLocalText].self) ?? [:]
        options.texts = texts.sorted { $0.key < $1.key }.map { $1.text(locale: $0) }
        options.timing.moment = try Self.moment(fields)
        options.timing.expires = try fields.time(.expiresAt)
        options.timing.lifetime = try fields.number(.lifetime, in: 1...31_622_400).map {
            $0 * 1_000
        }
        self.options = options
    }

    private static func name(_ fields: Fields<Key>, _ key: Key) throws -> String {
        let name = try fields.optional(key) ?? ""
        try checkName(name, fields, key)
        return name
    }

    private static func checkName(_ name: String, _ fields: Fields<Key>, _ key: Key) throws {
        guard name.utf8.count <= PushOptions.nameBytesMax else {
            throw fields.refusal(
                key, "must have at most \(PushOptions.nameBytesMax) bytes in UTF-8", .tooLarge)
        }
    }

    /// When it is shown: `at`, or `local` on the wall of each device.
    private static func moment(_ fields: Fields<Key>) throws -> AlertTiming.Moment? {
        let at = try fields.time(.at)
        let zone = try fields.text(.zone, bytes: 1...64)
        guard let text = try fields.optional(.local, String.self) else {
            if zone != nil { throw fields.refusal(.zone, "must not stand without local") }
            return at.map { .at($0) }
        }
        if at != nil { throw fields.refusal(.at, "must not stand beside local") }
        // A time of day is one of the first of January 1970.
        let isDaily = !text.contains("T")
        let minutesCount = isDaily ? "09:00".count : "2026-11-24T09:00".count
        let seconds = text + (text.utf8.count == minutesCount ? ":00" : "")
        let whole = isDaily ? "1970-01-01T" + seconds : seconds
        // Timestamps have fractions of a second, and clocks on walls have none.
        guard seconds.utf8.count == minutesCount + ":00".count,
            let wall = Timestamp(text: whole + "Z")
        else {
            throw fields.refusal(.local, "must be like 09:00 or 2026-11-24T09:00")
        }
        return .local(
            LocalMoment(wall: wall.milliseconds, isDaily: isDaily, zone: zone ?? ""))
    }

    private static func key(
        _ fields: Fields<Key>, _ key: Key, _ arguments: Key
    ) throws -> PushOptions.LocalKey? {
        let values = try fields.optional(arguments, [String].self)
        guard let name = try fields.optional(key, String.self) else {
            if values != nil {
                throw fields.refusal(arguments, "must not stand without \(key.rawValue)")
            }
            return nil
        }
        return PushOptions.LocalKey(name, values ?? [])
    }
}

extension PushProblem {
    var reason: String {
        switch self {
        case .malformed(let reason), .tooLarge(let reason): reason
        }
    }

    var code: Code {
        switch self {
        case .malformed: .malformed
        case .tooLarge: .tooLarge
        }
    }
}

/// `"default"`, `"none"`, a file's name, or `{critical: true, name, volume}`.
private struct NewSound: Decodable {
    enum Key: String, CodingKey, CaseIterable { case critical, name, volume }

    let sound: PushOptions.Sound

    init(from decoder: any Decoder) throws {
        if let name = try? decoder.singleValueContainer().decode(String.self) {
            sound =
                switch name {
                case "default": .standard
                case "none": .none
                default: .named(name)
                }
            return
        }
        guard (try? (decoder as? JSONReader)?.members()) != nil else {
            throw FieldError(path: decoder.codingPath, text: "must be a name or an object")
        }
        let fields = try Fields<Key>(decoder)
        guard try fields.required(.critical, Bool.self) else {
            throw fields.refusal(.critical, "must be true; other sounds are a name alone")
        }
        let volume = try fields.optional(.volume, Double.self) ?? 1
        guard (0...1).contains(volume) else {
            throw fields.refusal(.volume, "must be a number from 0 to 1")
        }
        sound = .critical(
            name: try fields.optional(.name) ?? "default",
            volume: UInt64((volume * 100).rounded()))
    }
}

private struct NewLocalText: Decodable {
    enum Key: String, CodingKey, CaseIterable { case title, subtitle, body, more }

    private let title: String
    private let subtitle: String
    private let body: String
    private let more: String

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        title = try fields.optional(.title) ?? ""
        subtitle = try fields.optional(.subtitle) ?? ""
        body = try fields.optional(.body) ?? ""
        more = try fields.optional(.more) ?? ""
    }

    func text(locale: String) -> PushOptions.LocalText {
        PushOptions.LocalText(
            locale: locale, title: title, subtitle: subtitle, body: body, more: more)
    }
}

/// An object of any JSON, for the app alone to understand.
private struct AppData: Decodable {
    let members: [ExactText: CustomValue]

    init(from decoder: any Decoder) throws {
        guard case .object(let members)? = (decoder as? JSONReader)?.value else {
            throw FieldError(path: decoder.codingPath, text: "must be an object")
        }
        self.members = members
    }
}

extension Urgency {
    /// The name in the APIs.
    var name: String {
        switch self {
        case .normal: "normal"
        case .urgent: "urgent"
        case .passive: "passive"
        }
    }
}

extension Fields {
    /// `urgency`: normal unless it says otherwise.
    func urgency(_ key: Key) throws -> Urgency {
        guard let name = try optional(key, String.self) else { return .normal }
        guard let urgency = Urgency.allCases.first(where: { $0.name == name }) else {
            throw refusal(key, "must be urgent, normal or passive")
        }
        return urgency
    }
}
