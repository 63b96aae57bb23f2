public import Model

/// The JSON of a push, built by hand: UTF-8 throughout, never `\uXXXX` for printable text, so
/// that Apple's limit of 4,096 bytes holds as much text as it can.
public enum PushPayload {
    /// Apple's limit for the push types sent here.
    public static let bytesMax = 4_096
    /// The most bytes of a title as JSON; the body gets what is left.
    static let titleBytesMax = 1_024

    /// What a push is about: the event's type and object, the same two strings a deep link has.
    public struct Subject: Equatable, Sendable {
        public var event: String
        public var message: MessageID?
        public var conversation: ConversationID?
        public var wake: WakeID
        /// The app's own words for what it is about.
        fileprivate var kind = ""
        fileprivate var thing = ""

        public init(
            event: String, message: MessageID? = nil, conversation: ConversationID? = nil,
            wake: WakeID
        ) {
            self.event = event
            self.message = message
            self.conversation = conversation
            self.wake = wake
        }
    }

    /// What is shown.
    public struct AlertText: Equatable, Sendable {
        public var title: String
        public var subtitle: String
        public var body: String
        /// How many older messages are not seen yet; the text names the number.
        public var others: UInt64
        /// How it does: `%d` is the number. Empty: " (and %d more)".
        public var more: String
        /// Chosen for the device's language: it stands in place of localization keys.
        public var isLocal: Bool

        public init(
            title: String, subtitle: String = "", body: String, others: UInt64 = 0,
            more: String = "", isLocal: Bool = false
        ) {
            self.title = title
            self.subtitle = subtitle
            self.body = body
            self.others = others
            self.more = more
            self.isLocal = isLocal
        }

        /// Behind the body.
        fileprivate var ending: String {
            if others == 0 { return "" }
            let pattern = more.isEmpty ? PushPayload.plainMore : more
            guard let place = pattern.firstRange(of: "%d") else { return pattern }
            return String(pattern[..<place.lowerBound]) + String(others)
                + pattern[place.upperBound...]
        }
    }

    /// Wakes the app and shows nothing: `aps` holds nothing but `content-available`.
    ///
    /// - Parameter options: of what the subject names; only the app's own words for it are told.
    public static func silent(
        _ subject: Subject, options: PushOptions = PushOptions()
    ) -> [UInt8] {
        var subject = subject
        subject.kind = options.event
        subject.thing = options.object
        var json = Array(#"{"aps":{"content-available":1},"#.utf8)
        append(subject, to: &json)
        json.append(UInt8(ascii: "}"))
        return json
    }

    /// Shows `text`, sets the badge, sounds, and still asks for the app to be woken.
    ///
    /// - Parameters:
    ///   - badge: `nil`: it stays as it is.
    ///   - wakesApp: false: there is nothing to sync.
    public static func alert(
        _ text: AlertText, options: PushOptions = PushOptions(), badge: UInt64?,
        subject: Subject, wakesApp: Bool = true
    ) -> [UInt8] {
        var rest = badge.map { Array(#","badge":\#($0)"#.utf8) } ?? []
        append(options.sound, to: &rest)
        append(options, subject, wakesApp: wakesApp, to: &rest)
        if options.isMutable { rest += Array(#","mutable-content":1"#.utf8) }
        append(shown: options, to: &rest)
        rest.append(UInt8(ascii: "}"))
        return join(text, options, subject, rest: rest)
            // What was published is checked; limits may have changed since.
            ?? alert(text, badge: badge, subject: subject, wakesApp: wakesApp)
    }

    /// Sets the badge (0 clears). With `text` it takes the place of a stored alert, so it shows
    /// the newest message again, without sound.
    public static func badge(
        _ badge: UInt64, text: AlertText?, options: PushOptions = PushOptions(),
        subject: Subject
    ) -> [UInt8] {
        guard let text else {
            var json = Array(#"{"aps":{"badge":\#(badge),"content-available":1}"#.utf8)
            json.append(UInt8(ascii: ","))
            append(subject, to: &json)
            json.append(UInt8(ascii: "}"))
            return json
        }
        var rest = Array(#","badge":\#(badge)"#.utf8)
        append(options, subject, to: &rest)
        if options.isMutable { rest += Array(#","mutable-content":1"#.utf8) }
        append(shown: options, to: &rest)
        rest.append(UInt8(ascii: "}"))
        return join(text, options, subject, rest: rest)
            ?? Self.badge(badge, text: text, subject: subject)
    }

    /// A push that has less room than this for a text that needs it is refused when published.
    static let textBytesMin = 256
    /// The usual way to name how many are not seen.
    static let plainMore = " (and %d more)"

    /// Bytes that are left for title, subtitle and body when everything else is as long as it
    /// can get; below zero: it cannot be sent.
    static func roomForText(_ text: AlertText, options: PushOptions) -> Int {
        let id = MessageID(high: .max, low: .max)
        var subject = Subject(
            event: "announcement", message: id, conversation: ConversationID(high: 0, low: 0),
            wake: WakeID(high: 0, low: 0))
        subject.kind = options.event
        subject.thing = options.object
        var empty = text
        empty.title = empty.title.isEmpty ? "" : " "
        empty.subtitle = empty.subtitle.isEmpty ? "" : " "
        empty.body = empty.body.isEmpty ? "" : " "
        var most = 0
        for others in [0, UInt64(UInt32.max)] {
            empty.others = others
            var rest = Array(#","badge":\#(UInt64.max)"#.utf8)
            append(options.sound, to: &rest)
            append(options, subject, to: &rest)
            rest += Array(#","mutable-content":1"#.utf8)
            append(shown: options, to: &rest)
            rest.append(UInt8(ascii: "}"))
            let alert = alert(of: empty, options)
            most = max(
                most,
                alert.fixed(escaped(empty.ending).count) + rest.count
                    + tail(subject, options).count)
        }
        return bytesMax - most
    }

    // MARK: Pieces

    /// The members of `alert`, those that are cut apart from those that are not.
    private struct Alert {
        /// Names of what is shown as it is.
        var names: [(name: String, text: String, isBody: Bool)] = []
        /// With localization keys; whole.
        var keys: [UInt8] = []

        /// Bytes of everything but the texts themselves.
        func fixed(_ ending: Int) -> Int {
            let quotes = names.reduce(0) { $0 + $1.name.utf8.count + 6 }
            // The first member has no comma.
            return Array(#"{"aps":{"alert":{}"#.utf8).count + quotes + keys.count + ending - 1
        }
    }

    private static func alert(of text: AlertText, _ options: PushOptions) -> Alert {
        var alert = Alert()
        func add(
            _ name: String, _ value: String, _ key: PushOptions.LocalKey?, isBody: Bool = false
        ) {
            if let key, !text.isLocal {
                let prefix = isBody ? "" : name + "-"
                member(prefix + "loc-key", quoted(key.key), to: &alert.keys)
                if !key.arguments.isEmpty {
                    let values = key.arguments.map { String(decoding: quoted($0), as: UTF8.self) }
                    let list = "[" + values.joined(separator: ",") + "]"
                    member(prefix + "loc-args", Array(list.utf8), to: &alert.keys)
                }
            } else if !value.isEmpty || isBody {
                alert.names.append((name, value, isBody))
            }
        }
        add("title", text.title, options.titleKey)
        add("subtitle", text.subtitle, options.subtitleKey)
        var key = options.bodyKey
        if text.others > 0, let known = key {
            // The number of the others is told by its own key, else by the plain text.
            if !options.moreKey.isEmpty {
                key = PushOptions.LocalKey(
                    options.moreKey, known.arguments + [String(text.others)])
            } else if !text.body.isEmpty {
                key = nil
            }
        }
        let isTold = !text.body.isEmpty || text.others > 0 || key != nil
        if isTold || alert.names.isEmpty && alert.keys.isEmpty {
            add("body", text.body, key, isBody: true)
        }
        return alert
    }

    private static func quoted(_ text: String) -> [UInt8] {
        [UInt8(ascii: "\"")] + escaped(text) + [UInt8(ascii: "\"")]
    }

    /// `,"name":value`
    private static func member(_ name: String, _ value: [UInt8], to json: inout [UInt8]) {
        json += Array(#","\#(name)":"#.utf8) + value
    }

    private static func append(_ sound: PushOptions.Sound, to json: inout [UInt8]) {
        switch sound {
        case .standard: json += Array(#","sound":"default""#.utf8)
        case .none: break
        case .named(let name): member("sound", quoted(name), to: &json)
        case .critical(let name, let volume):
            let loud = decimal(volume * 10)
            json += Array(#","sound":{"critical":1,"name":"#.utf8) + quoted(name)
            json += Array(#","volume":\#(loud)}"#.utf8)
        }
    }

    private static func append(
        _ options: PushOptions, _ subject: Subject, wakesApp: Bool = true, to json: inout [UInt8]
    ) {
        if !options.thread.isEmpty {
            member("thread-id", quoted(options.thread), to: &json)
        } else if let conversation = subject.conversation {
            json += Array(#","thread-id":"\#(conversation)""#.utf8)
        }
        if wakesApp { json += Array(#","content-available":1"#.utf8) }
    }

    private static func append(shown options: PushOptions, to json: inout [UInt8]) {
        if !options.category.isEmpty {
            member("category", quoted(options.category), to: &json)
        }
        if let level = options.interruption {
            member("interruption-level", quoted(level.name), to: &json)
        }
        if let relevance = options.relevance {
            member("relevance-score", Array(decimal(relevance).utf8), to: &json)
        }
        if !options.targetContent.isEmpty {
            member("target-content-id", quoted(options.targetContent), to: &json)
        }
    }

    /// Thousandths as a JSON number.
    private static func decimal(_ thousandths: UInt64) -> String {
        let fraction = String(thousandths % 1_000 + 1_000).dropFirst()
        let digits = String(fraction.reversed().drop { $0 == "0" }.reversed())
        return "\(thousandths / 1_000)" + (digits.isEmpty ? "" : ".\(digits)")
    }

    /// What stands behind `aps`.
    private static func tail(_ subject: Subject, _ options: PushOptions) -> [UInt8] {
        var json: [UInt8] = [UInt8(ascii: ",")]
        var subject = subject
        subject.kind = options.event
        subject.thing = options.object
        append(subject, to: &json)
        if !options.custom.members.isEmpty {
            json.append(UInt8(ascii: ","))
            json += options.custom.members
        }
        json.append(UInt8(ascii: "}"))
        return json
    }

    /// `{"aps":{"alert":{...}` + `rest` + `tail`, the texts cut so that the whole fits: subtitle
    /// and title keep a part of the room, the body gets what they leave. `nil`: it cannot fit.
    private static func join(
        _ text: AlertText, _ options: PushOptions, _ subject: Subject, rest: [UInt8]
    ) -> [UInt8]? {
        let alert = alert(of: text, options)
        let behind = rest + tail(subject, options)
        let ending = text.ending
        let room = bytesMax - alert.fixed(0) - behind.count
        guard room >= 0 else { return nil }
        var left = room
        var members: [UInt8] = []
        for (name, value, isBody) in alert.names {
            let most = isBody ? left : min(titleBytesMax, room / 4)
            let shown = fit(value, suffix: isBody ? ending : "", bytes: most)
            guard isBody || !shown.isEmpty else { continue }
            left -= shown.count
            members += Array(#","\#(name)":""#.utf8) + shown + [UInt8(ascii: "\"")]
        }
        members += alert.keys
        return Array(#"{"aps":{"alert":{"#.utf8) + members.dropFirst()
            + [UInt8(ascii: "}")] + behind
    }

    /// `text` + `suffix` as the inside of a JSON string of at most `bytes` bytes; too long a text
    /// is cut between two characters and ends in an ellipsis.
    static func fit(_ text: String, suffix: String, bytes: Int) -> [UInt8] {
        let end = escaped(suffix)
        var whole: [UInt8] = []
        let ellipsis = Array("…".utf8)
        // Where to cut, should the whole not fit: the end of the last character that leaves
        // room for the ellipsis.
        var cut = 0
        for character in text {
            whole += escaped(String(character))
            if whole.count + ellipsis.count + end.count <= bytes { cut = whole.count }
            if whole.count + end.count > bytes {
                guard ellipsis.count + end.count <= bytes else { return [] }
                return Array(whole[..<cut]) + ellipsis + end
            }
        }
        return end.count + whole.count <= bytes ? whole + end : []
    }

    /// RFC 8259 section 7: quote, backslash and control characters; all else as it is.
    static func escaped(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x08: bytes += Array(#"\b"#.utf8)
            case 0x09: bytes += Array(#"\t"#.utf8)
            case 0x0A: bytes += Array(#"\n"#.utf8)
            case 0x0C: bytes += Array(#"\f"#.utf8)
            case 0x0D: bytes += Array(#"\r"#.utf8)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                bytes += Array(#"\u00"#.utf8)
                bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    private static func append(_ subject: Subject, to json: inout [UInt8]) {
        json += Array(#""rouse":{"e":""#.utf8)
        json += escaped(subject.event)
        if let message = subject.message { json += Array(#"","o":"\#(message)"#.utf8) }
        if let conversation = subject.conversation {
            json += Array(#"","c":"\#(conversation)"#.utf8)
        }
        json += Array(#"","w":"\#(subject.wake)""#.utf8)
        if !subject.kind.isEmpty { member("t", quoted(subject.kind), to: &json) }
        if !subject.thing.isEmpty { member("i", quoted(subject.thing), to: &json) }
        json.append(UInt8(ascii: "}"))
    }
}
