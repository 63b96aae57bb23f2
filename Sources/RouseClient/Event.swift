/// The kinds of event that an app knows: an enum with strings, as
/// `enum Kind: String, EventKind { case order, refund }`. What its backend names in `push.event` is
/// one of them.
public protocol EventKind: RawRepresentable, CaseIterable, Hashable, Sendable
where RawValue == String {}

/// What happened in the app's own words: a kind and the id of what it is about. A push and a deep
/// link say it by the same two strings, so that both lead to the same place.
public struct Event<Kind: EventKind>: Hashable, Sendable {
    public var kind: Kind
    public var object: String

    public init(_ kind: Kind, object: String) {
        self.kind = kind
        self.object = object
    }

    /// `nil`: the app knows no such kind.
    public init?(kind: String, object: String) {
        guard let known = Kind(rawValue: kind) else { return nil }
        self.init(known, object: object)
    }

    /// What a deep link leads to: `shop://order/42`, and of a web page's link the first two steps
    /// of its path, `https://shop.example/order/42`. What a query or fragment says is not part of
    /// it.
    public init?(url: String) {
        guard let words = EventWords(url: url) else { return nil }
        self.init(kind: words.kind, object: words.object)
    }

    /// The deep link that leads to it.
    public func url(scheme: String) -> String {
        "\(scheme)://\(EventWords.escaped(kind.rawValue))/\(EventWords.escaped(object))"
    }
}

/// The two strings, before it is known whether the app knows the kind.
struct EventWords: Equatable {
    var kind: String
    var object: String

    init(kind: String, object: String) {
        self.kind = kind
        self.object = object
    }

    /// `t` and `i` of a payload's `rouse`, or of the `userInfo` of a notification that the app has
    /// shown itself (PSH-12). `nil`: it names no event.
    init?(userInfo: [AnyHashable: Any]) {
        guard let subject = userInfo["rouse"] as? [AnyHashable: Any],
            let kind = subject["t"] as? String, !kind.isEmpty
        else { return nil }
        self.init(kind: kind, object: subject["i"] as? String ?? "")
    }

    init?(url: String) {
        guard let mark = url.firstRange(of: "://") else { return nil }
        let scheme = url[..<mark.lowerBound].lowercased()
        guard !scheme.isEmpty else { return nil }
        let end = url[mark.upperBound...].firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
        var steps = url[mark.upperBound..<end].split(
            separator: "/", omittingEmptySubsequences: false)
        if scheme == "https" || scheme == "http", !steps.isEmpty { steps.removeFirst() }
        // A slash at the end says nothing.
        if steps.last?.isEmpty ?? false { steps.removeLast() }
        guard (1...2).contains(steps.count), !steps[0].isEmpty,
            let kind = Self.unescaped(steps[0]),
            let object = steps.count > 1 ? Self.unescaped(steps[1]) : ""
        else { return nil }
        self.init(kind: kind, object: object)
    }

    static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                escaped.append(byte)
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                escaped += "%\(digits.count < 2 ? "0" : "")\(digits)".utf8
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// A step of a path with its escapes undone (RFC 3986 section 2.1). `nil`: a percent sign
    /// without two digits, or what is no UTF-8.
    static func unescaped(_ step: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(step.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.elementsEqual(bytes) ? text : nil
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(Unicode.Scalar($0)).hexDigitValue }.map(UInt8.init)
    }
}
