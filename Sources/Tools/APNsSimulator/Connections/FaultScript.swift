/// What goes wrong on purpose, in the order in which it was asked for. A plain value.
public struct FaultScript: Equatable, Sendable {
    /// What happens to one push instead of, or beside, the usual.
    public enum Fault: Equatable, Sendable {
        /// This answer; the push is not looked at.
        case answer(status: Int, reason: String)
        /// 503 Shutdown, then GOAWAY; the push is not looked at.
        case shutdown
        /// No answer ever; the stream stays open. `delivers`: APNs took the push all the same.
        case silence(delivers: Bool)
        /// The usual answer, so much later.
        case slow(milliseconds: UInt64)
        /// RST_STREAM with this code of HTTP/2; the push is not looked at.
        case reset(code: UInt32)
        /// GOAWAY on the push's connection, leaving the newest `unprocessed` open streams out, the
        /// push's own first among them; those before are answered. With 0 the push is answered.
        case goAway(unprocessed: Int, code: UInt32, reason: String?)
        /// The connection is closed without a word, whatever was taken from it.
        case cut
        /// Nothing more is sent on the connection: its sending half is closed, the push never
        /// answered.
        case halfClose
    }

    /// Which pushes a fault is for; `nil`: any.
    public struct Match: Equatable, Sendable {
        public var token: String?
        /// The `apns-topic` as sent.
        public var topic: String?
        public var environment: APNsEnvironment?
        /// The provider's connection, by its number in the log.
        public var connection: UInt64?
        /// So many that match are let through before.
        public var skip = 0

        public init(
            token: String? = nil, topic: String? = nil, environment: APNsEnvironment? = nil,
            connection: UInt64? = nil, skip: Int = 0
        ) {
            self.token = token?.lowercased()
            self.topic = topic
            self.environment = environment
            self.connection = connection
            self.skip = skip
        }

        func fits(_ other: Match) -> Bool {
            (token == nil || token == other.token) && (topic == nil || topic == other.topic)
                && (environment == nil || environment == other.environment)
                && (connection == nil || connection == other.connection)
        }
    }

    /// What new connections meet.
    public enum Door: String, Codable, Sendable, CaseIterable {
        case open
        /// Closed as soon as they are accepted.
        case refused
        /// Accepted, and nothing said: TLS never begins.
        case silent
        /// TLS is refused.
        case broken
    }

    private struct Entry: Equatable, Sendable {
        var fault: Fault
        var count: Int
        var match: Match
    }

    static let entriesMax = 1_000
    static let delayMax: UInt64 = 600_000

    private var entries: [Entry] = []
    /// Milliseconds between a push and its answer.
    public private(set) var delayMilliseconds: UInt64 = 0
    public var door = Door.open
    /// SETTINGS_HEADER_TABLE_SIZE of new connections; `nil`: HTTP/2's own.
    public var headerTableBytes: UInt32?
    /// Answers carry a date: the simulator's clock, off by so many milliseconds; `nil`: none.
    public var dateSkewMilliseconds: Int64?
    /// Faults that wait for their pushes.
    public var waiting: Int { entries.count }

    public init() {}

    /// The next `count` pushes that match suffer `fault`, after what was asked for before. False:
    /// too many are waiting, or a number is negative.
    public mutating func add(_ fault: Fault, count: Int, match: Match = Match()) -> Bool {
        guard count > 0, match.skip >= 0, entries.count < Self.entriesMax else { return false }
        entries.append(Entry(fault: fault, count: count, match: match))
        return true
    }

    /// Delays every answer from now on; 0 ends it.
    public mutating func delay(milliseconds: UInt64) {
        delayMilliseconds = min(milliseconds, Self.delayMax)
    }

    /// Takes the fault for one push.
    public mutating func next(_ push: Match) -> Fault? {
        for index in entries.indices where entries[index].match.fits(push) {
            if entries[index].match.skip > 0 {
                entries[index].match.skip -= 1
                continue
            }
            let fault = entries[index].fault
            entries[index].count -= 1
            if entries[index].count == 0 { entries.remove(at: index) }
            return fault
        }
        return nil
    }

    /// All is well again.
    public mutating func clear() { self = FaultScript() }
}

extension ReceivedPush {
    /// As a fault looks at it.
    func match(_ environment: APNsEnvironment, _ connection: UInt64) -> FaultScript.Match {
        FaultScript.Match(
            token: path.split(separator: "/").last.map { String($0) }, topic: self["apns-topic"],
            environment: environment, connection: connection)
    }
}
