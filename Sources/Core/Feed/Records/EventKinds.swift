public import Model

/// The kinds of events that an app is registered with: the words for `event` that its own closed
/// set has. A publish with another one is refused (MSG-56), for no device could act on it.
public struct EventKinds: Equatable, Sendable {
    public static let countMax = 256
    /// Of one, as `PushOptions.event` has it.
    public static let bytesMax = 128

    /// In the order in which they were given.
    public let names: [String]

    /// `nil`: one is empty, too long or has control characters, one stands there twice, or there
    /// are none or too many.
    public init?(_ names: [String]) {
        guard (1...Self.countMax).contains(names.count),
            names.allSatisfy(Self.isName),
            Set(names.map { ExactText($0) }).count == names.count
        else { return nil }
        self.names = names
    }

    private static func isName(_ name: String) -> Bool {
        (1...bytesMax).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    public func contains(_ event: String) -> Bool { names.contains { $0.isExactly(event) } }

    /// Why a publish with this event cannot be taken; `nil`: it can. One without an event opens
    /// the app and no more.
    public func refusal(of event: String) -> String? {
        if event.isEmpty || contains(event) { return nil }
        let shown = names.prefix(Self.namedMax).joined(separator: ", ")
        let others = names.count - Self.namedMax
        return "event: \(event) is none of the app's kinds: " + shown
            + (others > 0 ? " and \(others) more" : "")
    }

    /// Of a refusal's words.
    private static let namedMax = 32
}

extension EventKinds: StoredValue {
    public static var columnType: ColumnType { .text }
    public static var blank: EventKinds { EventKinds(unchecked: []) }

    /// One a line: no name has a line's end.
    public var stored: ColumnValue { .text(names.joined(separator: "\n")) }

    public init?(stored: ColumnValue) {
        guard case .text(let text) = stored else { return nil }
        self.init(text.split(separator: "\n").map(String.init))
    }

    private init(unchecked names: [String]) { self.names = names }
}
