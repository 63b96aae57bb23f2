/// An IRC channel's log as traffic: who came, spoke, was renamed and left, and when.
///
/// A message is `[HH:MM] <nick> text` and nothing else. `=== nick [address] has joined #channel`
/// and `… has left #channel` are joins and parts, `=== old is now known as new` is a rename; every
/// other line is an action and only tells the time, if it has one. Nicks are compared with ASCII
/// letters folded; a rename keeps the user.
public struct IRCLog: Equatable, Sendable {
    public struct Event: Equatable, Sendable {
        public enum Kind: Equatable, Sendable {
            case message(text: String)
            case join
            case part
        }

        /// Minutes since the log's first time stamp; a clock that falls passed midnight.
        public let minute: Int
        /// The first nick this user was seen under, folded; numbered if it was another's before.
        public let user: String
        public let kind: Kind
    }

    public let events: [Event]

    public var messages: Int {
        events.count {
            if case .message = $0.kind { true } else { false }
        }
    }

    /// Whether the log tells parts. Where it does not, silence is taken for leaving.
    public var hasParts: Bool { events.contains { $0.kind == .part } }

    public init(text: String) {
        var reader = Reader()
        var events: [Event] = []
        for line in text.split(separator: "\n") {
            if let event = reader.event(in: line) { events.append(event) }
        }
        self.events = events
    }

    private struct Reader {
        private var users: [String: String] = [:]
        private var seen: [String: Int] = [:]
        private var firstMinute: Int?
        private var lastClock = 0
        private var days = 0
        private var minute = 0

        mutating func event(in line: Substring) -> Event? {
            if line.hasPrefix("=== ") { return notice(line.dropFirst(4)) }
            guard let (clock, rest) = Self.clock(in: line) else { return nil }
            advance(to: clock)
            guard rest.hasPrefix("<"), let end = rest.firstIndex(of: ">"),
                rest[rest.index(after: end)...].hasPrefix(" ")
            else { return nil }
            let nick = rest[rest.index(after: rest.startIndex)..<end]
            guard !nick.isEmpty else { return nil }
            let text = rest[rest.index(end, offsetBy: 2)...]
            return Event(minute: minute, user: user(nick), kind: .message(text: String(text)))
        }

        private mutating func notice(_ words: Substring) -> Event? {
            let parts = words.split(separator: " ", omittingEmptySubsequences: true)
            guard let nick = parts.first else { return nil }
            if parts.count == 6, parts[1...4].elementsEqual(["is", "now", "known", "as"]) {
                rename(nick, to: parts[5])
                return nil
            }
            guard parts.count >= 5, parts[1].hasPrefix("["), parts[2] == "has" else { return nil }
            switch parts[3] {
            case "joined": return Event(minute: minute, user: user(nick), kind: .join)
            case "left": return Event(minute: minute, user: user(nick), kind: .part)
            default: return nil
            }
        }

        private mutating func user(_ nick: Substring) -> String {
            let folded = Self.folded(nick)
            if let user = users[folded] { return user }
            // After a rename its old nick is free; who takes it is another user.
            seen[folded, default: 0] += 1
            let count = seen[folded] ?? 1
            let user = count == 1 ? folded : "\(folded).\(count)"
            users[folded] = user
            return user
        }

        /// The new nick is the same user from now on.
        private mutating func rename(_ old: Substring, to new: Substring) {
            let user = user(old)
            users[Self.folded(old)] = nil
            users[Self.folded(new)] = user
        }

        private mutating func advance(to clock: Int) {
            // Lines are in order but for small slips; a fall of more than half a day is midnight.
            if clock + 12 * 60 < lastClock { days += 1 }
            lastClock = clock
            let absolute = days * 24 * 60 + clock
            let first = firstMinute ?? absolute
            firstMinute = first
            minute = max(minute, absolute - first)
        }

        private static func clock(in line: Substring) -> (minutes: Int, rest: Substring)? {
            let bytes = Array(line.utf8.prefix(8))
            guard bytes.count == 8, bytes[0] == UInt8(ascii: "["), bytes[3] == UInt8(ascii: ":"),
                bytes[6] == UInt8(ascii: "]"), bytes[7] == UInt8(ascii: " "),
                let hours = Int(String(decoding: bytes[1...2], as: UTF8.self)), hours < 24,
                let minutes = Int(String(decoding: bytes[4...5], as: UTF8.self)), minutes < 60
            else { return nil }
            return (hours * 60 + minutes, line.dropFirst(8))
        }

        private static func folded(_ nick: Substring) -> String {
            let bytes = nick.utf8.map { byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
