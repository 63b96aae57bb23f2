public import Model

// The form in a row: fields of a tag, four bytes of length and so many bytes; what is as usual
// is left out, so that a push without options takes no byte. Unknown tags are passed over.

extension PushOptions {
    fileprivate enum Tag: UInt8 {
        case urgency = 1
        case subtitle, title, titleArgument, subtitleKey, subtitleArgument, body, bodyArgument
        case more, moreKey, sound, thread, category, interruption, relevance, targetContent
        case immutable, event, object, custom, text
        case moment, wall, timeOfDay, zone, expires, lifetime
        case trace
    }

    private enum TextTag: UInt8 {
        case locale = 1
        case title, subtitle, body, more
    }

    /// The form in a row; empty: nothing but the usual.
    public var encoded: [UInt8] {
        var fields = FieldBytes()
        if urgency != .normal { fields.add(Tag.urgency.rawValue, number: urgency.rawValue) }
        fields.add(Tag.subtitle.rawValue, text: subtitle)
        for (key, tag, argument) in [
            (titleKey, Tag.title, Tag.titleArgument),
            (subtitleKey, .subtitleKey, .subtitleArgument), (bodyKey, .body, .bodyArgument),
        ] {
            guard let key else { continue }
            fields.add(tag.rawValue, Array(key.key.utf8))
            for value in key.arguments { fields.add(argument.rawValue, Array(value.utf8)) }
        }
        fields.add(Tag.more.rawValue, text: more)
        fields.add(Tag.moreKey.rawValue, text: moreKey)
        switch sound {
        case .standard: break
        case .none: fields.add(Tag.sound.rawValue, [0])
        case .named(let name): fields.add(Tag.sound.rawValue, [1] + name.utf8)
        case .critical(let name, let volume):
            fields.add(Tag.sound.rawValue, [2, UInt8(min(volume, 100))] + name.utf8)
        }
        fields.add(Tag.thread.rawValue, text: thread)
        fields.add(Tag.category.rawValue, text: category)
        if let interruption {
            fields.add(Tag.interruption.rawValue, number: interruption.rawValue)
        }
        if let relevance { fields.add(Tag.relevance.rawValue, number: relevance) }
        fields.add(Tag.targetContent.rawValue, text: targetContent)
        if !isMutable { fields.add(Tag.immutable.rawValue, []) }
        fields.add(Tag.event.rawValue, text: event)
        fields.add(Tag.object.rawValue, text: object)
        if !custom.members.isEmpty { fields.add(Tag.custom.rawValue, custom.members) }
        for text in texts { fields.add(Tag.text.rawValue, Self.encoded(text)) }
        switch timing.moment {
        case nil: break
        case .at(let time): fields.add(Tag.moment.rawValue, number: time.milliseconds)
        case .local(let local):
            let tag = local.isDaily ? Tag.timeOfDay : Tag.wall
            fields.add(tag.rawValue, number: local.wall)
            fields.add(Tag.zone.rawValue, text: local.zone)
        }
        if let time = timing.expires {
            fields.add(Tag.expires.rawValue, number: time.milliseconds)
        }
        if let lifetime = timing.lifetime { fields.add(Tag.lifetime.rawValue, number: lifetime) }
        if let trace { fields.add(Tag.trace.rawValue, trace.encoded) }
        return fields.bytes
    }

    private static func encoded(_ text: LocalText) -> [UInt8] {
        var fields = FieldBytes()
        fields.add(TextTag.locale.rawValue, text: text.locale)
        fields.add(TextTag.title.rawValue, text: text.title)
        fields.add(TextTag.subtitle.rawValue, text: text.subtitle)
        fields.add(TextTag.body.rawValue, text: text.body)
        fields.add(TextTag.more.rawValue, text: text.more)
        return fields.bytes
    }

    /// `nil`: the bytes are cut off or name what there is not.
    public init?(encoded: [UInt8]) {
        self.init()
        guard let fields = FieldBytes.fields(of: encoded[...]) else { return nil }
        for (number, bytes) in fields {
            guard let tag = Tag(rawValue: number) else { continue }
            guard take(tag, bytes) else { return nil }
        }
    }

    /// Of a row, without reading the rest.
    public static func urgency(of encoded: [UInt8]) -> Urgency {
        // It stands first where it stands at all.
        guard encoded.count >= 6, encoded[0] == Tag.urgency.rawValue else { return .normal }
        return Urgency(rawValue: UInt64(encoded[5])) ?? .normal
    }

    /// Of a row, without reading the rest.
    public static func timing(of encoded: [UInt8]) -> AlertTiming {
        guard !encoded.isEmpty, let fields = FieldBytes.fields(of: encoded[...]) else {
            return AlertTiming()
        }
        var timing = AlertTiming()
        for (number, bytes) in fields {
            if let tag = Tag(rawValue: number) { timing.take(tag, bytes) }
        }
        return timing
    }

    /// Of a row, without reading the rest: whether there are texts for devices of one language.
    public static func hasTexts(_ encoded: [UInt8]) -> Bool {
        guard !encoded.isEmpty, let fields = FieldBytes.fields(of: encoded[...]) else {
            return false
        }
        return fields.contains { $0.0 == Tag.text.rawValue }
    }

    /// Of a row, without reading the rest.
    public static func trace(of encoded: [UInt8]) -> TraceContext? {
        guard !encoded.isEmpty, let fields = FieldBytes.fields(of: encoded[...]) else {
            return nil
        }
        return fields.first { $0.0 == Tag.trace.rawValue }
            .flatMap { TraceContext(encoded: $0.1) }
    }

    private mutating func take(_ tag: Tag, _ bytes: ArraySlice<UInt8>) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        switch tag {
        case .urgency:
            guard let value = Urgency(rawValue: FieldBytes.number(bytes)) else { return false }
            urgency = value
        case .subtitle: subtitle = text
        case .title: titleKey = LocalKey(text)
        case .titleArgument: titleKey?.arguments.append(text)
        case .subtitleKey: subtitleKey = LocalKey(text)
        case .subtitleArgument: subtitleKey?.arguments.append(text)
        case .body: bodyKey = LocalKey(text)
        case .bodyArgument: bodyKey?.arguments.append(text)
        case .more: more = text
        case .moreKey: moreKey = text
        case .sound: return takeSound(bytes)
        case .thread: thread = text
        case .category: category = text
        case .interruption:
            guard let level = InterruptionLevel(rawValue: FieldBytes.number(bytes)) else {
                return false
            }
            interruption = level
        case .relevance: relevance = FieldBytes.number(bytes)
        case .targetContent: targetContent = text
        case .immutable: isMutable = false
        case .event: event = text
        case .object: object = text
        case .custom: custom = CustomData(members: Array(bytes))
        case .text: return takeText(bytes)
        case .moment, .wall, .timeOfDay, .zone, .expires, .lifetime: timing.take(tag, bytes)
        case .trace: trace = TraceContext(encoded: bytes)
        }
        return true
    }

    private mutating func takeSound(_ bytes: ArraySlice<UInt8>) -> Bool {
        switch bytes.first {
        case 0: sound = .none
        case 1: sound = .named(String(decoding: bytes.dropFirst(), as: UTF8.self))
        case 2:
            guard let volume = bytes.dropFirst().first else { return false }
            sound = .critical(
                name: String(decoding: bytes.dropFirst(2), as: UTF8.self),
                volume: UInt64(volume))
        default: return false
        }
        return true
    }

    private mutating func takeText(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let fields = FieldBytes.fields(of: bytes) else { return false }
        var found = LocalText(locale: "")
        for (number, bytes) in fields {
            let text = String(decoding: bytes, as: UTF8.self)
            switch TextTag(rawValue: number) {
            case .locale: found.locale = text
            case .title: found.title = text
            case .subtitle: found.subtitle = text
            case .body: found.body = text
            case .more: found.more = text
            case nil: break
            }
        }
        texts.append(found)
        return true
    }
}

extension AlertTiming {
    fileprivate mutating func take(_ tag: PushOptions.Tag, _ bytes: ArraySlice<UInt8>) {
        switch tag {
        case .moment: moment = .at(Timestamp(milliseconds: FieldBytes.number(bytes)))
        case .wall, .timeOfDay:
            moment = .local(
                LocalMoment(wall: FieldBytes.number(bytes), isDaily: tag == .timeOfDay))
        case .zone:
            guard case .local(var local) = moment else { return }
            local.zone = String(decoding: bytes, as: UTF8.self)
            moment = .local(local)
        case .expires: expires = Timestamp(milliseconds: FieldBytes.number(bytes))
        case .lifetime: lifetime = FieldBytes.number(bytes)
        default: break
        }
    }
}

/// Fields of a tag, four bytes of length and so many bytes.
struct FieldBytes {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ tag: UInt8, _ value: [UInt8]) {
        bytes.append(tag)
        let count = UInt32(clamping: value.count)
        for shift in stride(from: 24, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: count >> UInt32(shift)))
        }
        bytes += value
    }

    /// Left out if it is empty.
    mutating func add(_ tag: UInt8, text: String) {
        if !text.isEmpty { add(tag, Array(text.utf8)) }
    }

    /// In as few bytes as it takes, one at least.
    mutating func add(_ tag: UInt8, number: UInt64) {
        var value: [UInt8] = []
        var rest = number
        repeat {
            value.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        } while rest > 0
        add(tag, value)
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// `nil`: a field ends behind the bytes.
    static func fields(of bytes: ArraySlice<UInt8>) -> [(UInt8, ArraySlice<UInt8>)]? {
        var fields: [(UInt8, ArraySlice<UInt8>)] = []
        let isWhole = forEach(in: Array(bytes)) { tag, bytes in fields.append((tag, bytes)) }
        return isWhole ? fields : nil
    }

    /// - Returns: `false`: a field ends behind the bytes; those before it were given.
    static func forEach(
        in bytes: [UInt8], _ body: (_ tag: UInt8, _ bytes: ArraySlice<UInt8>) -> Void
    ) -> Bool {
        var position = 0
        while position < bytes.count {
            guard bytes.count - position >= 5 else { return false }
            let tag = bytes[position]
            var count = 0
            for offset in 1...4 { count = count << 8 | Int(bytes[position + offset]) }
            position += 5
            guard bytes.count - position >= count else { return false }
            body(tag, bytes[position..<(position + count)])
            position += count
        }
        return true
    }
}
