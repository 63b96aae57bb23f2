import Foundation

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
        guard let mark = url.range(of: "://") else { return nil }
        let scheme = url[..<mark.lowerBound].lowercased()
        guard !scheme.isEmpty else { return nil }
        let end = url[mark.upperBound...].firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
        var steps = url[mark.upperBound..<end].split(
            separator: "/", omittingEmptySubsequences: false)
        if scheme == "https" || scheme == "http", !steps.isEmpty { steps.removeFirst() }
        // A slash at the end says nothing.
        if steps.last?.isEmpty ?? false { steps.removeLast() }
        guard (1...2).contains(steps.count), !steps[0].isEmpty,
            let kind = String(steps[0]).removingPercentEncoding,
            let object = steps.count > 1 ? String(steps[1]).removingPercentEncoding : ""
        else { return nil }
        self.init(kind: kind, object: object)
    }

    static func escaped(_ text: String) -> String {
        let plain = CharacterSet(
            charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: plain) ?? ""
    }
}
