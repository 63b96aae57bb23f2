public import Model

/// Something a backend wants published at a later time.
public struct NewScheduled: Equatable, Sendable {
    public enum Content: Equatable, Sendable {
        case message(Publication)
        case announcement(Announcement)
    }

    public var content: Content
    /// By the store's clock.
    public var sendAt: Timestamp

    public init(_ content: Content, sendAt: Timestamp) {
        self.content = content
        self.sendAt = sendAt
    }
}

/// What is asked about publishing at a later time.
public enum ScheduleRequest: Equatable, Sendable {
    case add(app: AppID, NewScheduled, idempotency: Idempotency?)
    /// Takes back what waits, or takes what failed from the list. Refused with `.conflict` once it
    /// is published.
    case cancel(app: AppID, MessageID, idempotency: Idempotency?)
    /// Each second: publishes what is due, at most `rows` of it.
    case publishDue(rows: Int)

    /// Whose share of the writer it takes; `nil`: the server's own.
    public var app: AppID? {
        switch self {
        case .add(let app, _, _), .cancel(let app, _, _): app
        case .publishDue: nil
        }
    }
}

/// What is counted of publishing at a later time.
public struct ScheduleEffects: Equatable, Sendable {
    /// By how much each that was published came later than it should.
    public var published: [Milliseconds] = []
    public var failed = 0
    public var cancelled = 0
    /// After a turn of `publishDue`; `nil`: this was none.
    public var backlog: ScheduleBacklog?

    public init() {}

    public static func += (effects: inout ScheduleEffects, more: ScheduleEffects) {
        effects.published += more.published
        effects.failed += more.failed
        effects.cancelled += more.cancelled
        effects.backlog = more.backlog ?? effects.backlog
    }
}

/// What waits for its time, of all apps.
public struct ScheduleBacklog: Equatable, Sendable {
    public var pending: UInt64
    /// How long the one that is most overdue waits beyond its time; 0: none does.
    public var lateness: Milliseconds

    public init(pending: UInt64, lateness: Milliseconds) {
        self.pending = pending
        self.lateness = lateness
    }
}
