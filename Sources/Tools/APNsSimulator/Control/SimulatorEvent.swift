public import DeviceModel

/// One thing that happened, as the log keeps it and the control socket tells it. Which fields are
/// there depends on `kind`; the README beside this file has the list.
public struct SimulatorEvent: Codable, Equatable, Sendable {
    /// One message that an app has stored.
    public struct AppliedMessage: Codable, Equatable, Sendable {
        public var conversation: String
        public var message: String
        public var position: UInt64
        public var seq: UInt64
        public var sender: String
        /// The server said that this device was alerted of it before.
        public var alerted: Bool

        public init(
            conversation: String, message: String, position: UInt64, seq: UInt64, sender: String,
            alerted: Bool
        ) {
            self.conversation = conversation
            self.message = message
            self.position = position
            self.seq = seq
            self.sender = sender
            self.alerted = alerted
        }
    }

    /// The kinds of event.
    public enum Kind: String, Codable, Sendable {
        case connection, push, goaway, received, wake, state, shown, removed, cleared, badge
        case tapped, acted, dismissed
        case stored, held, dropped, coverage, clock, online, offline, synced, applied, acknowledged,
            failed
        case syncRequest = "sync_request"
        case delta, reset, joined, digest, completed
    }

    /// How a comparison with the server ended, and what the device holds.
    public struct DigestFacts: Codable, Equatable, Sendable {
        /// `false`: one of both was still moving; the comparison says nothing.
        public var isComparable: Bool
        public var isEqual: Bool
        /// Objects that were summed up.
        public var objects: UInt64
        /// Stored here: objects of every kind, and of these conversations and messages.
        public var entries: Int
        public var conversations: Int
        public var messages: Int

        public init(
            isComparable: Bool, isEqual: Bool, objects: UInt64, entries: Int, conversations: Int,
            messages: Int
        ) {
            self.isComparable = isComparable
            self.isEqual = isEqual
            self.objects = objects
            self.entries = entries
            self.conversations = conversations
            self.messages = messages
        }
    }

    /// Rising by one, from 1.
    public var n: UInt64 = 0
    /// Milliseconds since 1970.
    public var at: UInt64 = 0
    /// Milliseconds of the machine's monotonic clock, the same in all its processes.
    public var uptime: UInt64 = 0
    public var kind: Kind
    public var device: String?
    public var connection: UInt64?
    public var environment: APNsEnvironment?
    public var apnsId: String?
    public var token: String?
    public var topic: String?
    public var pushType: String?
    public var priority: Int?
    public var expiration: UInt64?
    public var collapseId: String?
    public var bytes: Int?
    public var status: Int?
    public var reason: String?
    /// The check that failed.
    public var check: Check?
    /// The rule of connections that was applied.
    public var rule: ConnectionRule?
    public var fault: String?
    public var lints: [Lint]?
    public var wake: String?
    /// A push as it came.
    public var payload: String?
    public var userInfo: String?
    public var callback: String?
    /// The delegate's methods, in the order in which the system calls them.
    public var calls: [String]?
    /// The button that its user has pressed.
    public var action: String?
    public var obstacle: WakeObstacle?
    public var state: String?
    public var identifier: String?
    public var title: String?
    public var body: String?
    public var local: Bool?
    /// It was shown without a sound; `nil`: with one.
    public var quiet: Bool?
    public var badge: UInt64?
    public var applied: UInt64?
    public var head: UInt64?
    public var entries: Int?
    public var more: Bool?
    public var message: String?
    public var conversation: String?
    public var position: UInt64?
    public var code: UInt32?
    public var messages: [AppliedMessage]?
    public var text: String?
    public var digest: DigestFacts?
    /// Tasks for whose end the system waits still; `nil`: for none.
    public var open: Int?

    public init(_ kind: Kind, device: String? = nil) {
        self.kind = kind
        self.device = device
    }
}

/// Messages of many `applied` events in the order applied, a column for each field: a line of it
/// costs its reader a small part of what a line for each event does.
public struct AppliedBatch: Codable, Equatable, Sendable {
    /// All its messages are of this conversation.
    public var conversation: String
    public private(set) var devices: [String] = []
    /// When the message was durable on the device: milliseconds of the machine's monotonic clock.
    public private(set) var uptimes: [UInt64] = []
    public private(set) var positions: [UInt64] = []
    public private(set) var messages: [String] = []
    /// The server said that the device was alerted of it before.
    public private(set) var alerted: [Bool] = []

    /// One message on one device.
    public struct Row: Equatable, Sendable {
        public var device: String
        public var uptime: UInt64
        public var position: UInt64
        public var message: String
        public var alerted: Bool
    }

    public init(conversation: String) { self.conversation = conversation }

    /// How many messages.
    public var count: Int { messages.count }

    mutating func append(_ message: SimulatorEvent.AppliedMessage, _ event: SimulatorEvent) {
        devices.append(event.device ?? "")
        uptimes.append(event.uptime)
        positions.append(message.position)
        messages.append(message.message)
        alerted.append(message.alerted)
    }

    /// Row by row; `nil`: the columns differ in length, so it is none of a simulator's.
    public var rows: [Row]? {
        guard devices.count == count, uptimes.count == count, positions.count == count,
            alerted.count == count
        else { return nil }
        return messages.indices.map { index in
            Row(
                device: devices[index], uptime: uptimes[index], position: positions[index],
                message: messages[index], alerted: alerted[index])
        }
    }
}

/// The last events, in order. A plain value of bounded size.
public struct EventLog: Sendable {
    private var events: [SimulatorEvent] = []
    private var next: UInt64 = 1
    /// Events of each kind since the beginning, also those no longer kept.
    public private(set) var counts: [SimulatorEvent.Kind: UInt64] = [:]
    public let limit: Int

    public init(limit: Int = 65_536) {
        precondition(limit > 0, "a log of \(limit) events")
        self.limit = limit
    }

    /// The number of the newest event; 0: none yet.
    public var head: UInt64 { next - 1 }

    public mutating func append(
        _ event: SimulatorEvent, at milliseconds: UInt64, uptime: UInt64 = 0
    ) {
        var event = event
        event.n = next
        event.at = milliseconds
        event.uptime = uptime
        next += 1
        counts[event.kind, default: 0] += 1
        // A quarter at once: removing from the front moves all that stay.
        if events.count >= limit { events.removeFirst(max(1, limit / 4)) }
        events.append(event)
    }

    /// Up to `limit` events above `after`, and how many of those wanted are gone.
    public func events(after: UInt64, limit: Int) -> (
        events: ArraySlice<SimulatorEvent>, lost: UInt64
    ) {
        guard let first = events.first?.n, after < head else { return ([], 0) }
        let lost = after + 1 < first ? first - after - 1 : 0
        let start = after < first ? 0 : Int(after - first) + 1
        return (events[start...].prefix(max(0, limit)), lost)
    }
}
