public import Model

/// What became of a request.
public struct StoreOutcome: Equatable, Sendable {
    public var answer: StoreAnswer
    /// What others must be told once it is committed.
    public var effects: Effects
    /// What it cost.
    public var rows: RowCount

    public init(
        answer: StoreAnswer, effects: Effects = Effects(), rows: RowCount = RowCount()
    ) {
        self.answer = answer
        self.effects = effects
        self.rows = rows
    }
}

/// Work that a commit leaves to turns which follow it: what nobody's request waits for.
public struct BackgroundWork: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Changes that are not in all feeds yet (`continueFanOut`).
    public static let fanOut = BackgroundWork(rawValue: 1)
    /// Users who are deleted (`continueDeletions`).
    public static let deletions = BackgroundWork(rawValue: 2)
    /// Sessions that are to end, or whose device is not awaited any more (`sweepWakes`).
    public static let sessions = BackgroundWork(rawValue: 4)
    /// Campaigns that begin or go on (`campaigns(.advance)`).
    public static let campaigns = BackgroundWork(rawValue: 8)
    /// Rows of apps that were removed (`enforceRetention`).
    public static let removals = BackgroundWork(rawValue: 16)
    /// Pushes that the gateway may claim (`claimPushes`).
    public static let pushes = BackgroundWork(rawValue: 32)
}

/// A row that says nothing to the rules: its object is gone, or its content does not decode. It
/// is passed over, for one row keeps nobody from all the others; whoever runs the server is told.
public struct UnreadableRow: Equatable, Sendable {
    public var app: AppID
    /// Whose it is; empty: nobody's alone.
    public var user: UserID
    public var conversation: ConversationID
    /// Which row it is and what is wrong with it; never a message's content.
    public var detail: String
}

extension UnreadableRow {
    /// What stopped a duty, whose rows may be of any app.
    public init(inDuty kind: String, detail: String) {
        self.init(
            app: AppID(""), user: UserID(""), conversation: .none, detail: "\(kind): \(detail)")
    }
}

/// Rows that were read and written: what a request costs the only writer, in whatever engine.
public struct RowCount: Equatable, Sendable {
    /// Rows found; a read that finds none counts as one.
    public var read: Int
    /// Rows put or deleted.
    public var written: Int

    public init(read: Int = 0, written: Int = 0) {
        self.read = read
        self.written = written
    }

    public var total: Int { read + written }

    public static func += (count: inout RowCount, more: RowCount) {
        count.read += more.read
        count.written += more.written
    }
}
