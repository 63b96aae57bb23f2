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
        public var body: String
        /// How many older messages are not seen yet; the text names the number.
        public var others: UInt64

        public init(title: String, body: String, others: UInt64 = 0) {
            self.title = title
            self.body = body
            self.others = others
        }
    }

    /// Wakes the app and shows nothing: `aps` holds nothing but `content-available`.
    public static func silent(_ subject: Subject) -> [UInt8] {
        var json = Array(#"{"aps":{"content-available":1},"#.utf8)
        append(subject, to: &json)
        json.append(UInt8(ascii: "}"))
        return json
    }

    /// Shows `text`, sets the badge, sounds, and still asks for the app to be woken.
    public static func alert(_ text: AlertText, badge: UInt64, subject: Subject) -> [UInt8] {
        var rest = Array(#","badge":"#.utf8)
        rest += Array(String(badge).utf8)
        rest += Array(#","sound":"default""#.utf8)
        if let conversation = subject.conversation {
            rest += Array(#","thread-id":"\#(conversation)""#.utf8)
        }
        rest += Array(#","content-available":1,"mutable-content":1},"#.utf8)
        append(subject, to: &rest)
        rest.append(UInt8(ascii: "}"))
        return join(text, rest: rest)
    }

    /// Sets the badge (0 clears). With `text` it takes the place of a stored alert, so it shows
    /// the newest message again, without sound.
    public static func badge(_ badge: UInt64, text: AlertText?, subject: Subject) -> [UInt8] {
        var rest = Array(#""badge":\#(badge),"content-available":1},"#.utf8)
        append(subject, to: &rest)
        rest.append(UInt8(ascii: "}"))
        guard let text else { return Array(#"{"aps":{"#.utf8) + rest }
        return join(text, rest: [UInt8(ascii: ",")] + rest)
    }

    /// `{"aps":{"alert":{...}` + `rest`, the text cut so that the whole fits.
    private static func join(_ text: AlertText, rest: [UInt8]) -> [UInt8] {
        let open = Array(#"{"aps":{"alert":{"#.utf8)
        let titleName = Array(#""title":""#.utf8)
        let bodyName = Array(#""body":""#.utf8)
        let title = fit(text.title, suffix: "", bytes: titleBytesMax)
        var json = open
        if !title.isEmpty {
            json += titleName + title
            json += Array(#"","#.utf8)
        }
        json += bodyName
        let end = Array(#""}"#.utf8)
        let suffix = text.others == 0 ? "" : " (and \(text.others) more)"
        let left = bytesMax - json.count - end.count - rest.count
        json += fit(text.body, suffix: suffix, bytes: max(0, left))
        return json + end + rest
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
        json += Array(#"","w":"\#(subject.wake)"}"#.utf8)
    }
}
