import Feed
public import Model
public import Wire

/// A signal between the nodes of a store: what was said, by whom and where, but not yet to whom.
/// Who gets it is read by the node that hands it on, for a block or a removal may have been
/// answered there meanwhile (SIG-5).
public struct NodeSignal: Equatable, Sendable {
    public var app: AppID
    public var conversation: ConversationID
    public var sender: UserID
    public var kind: SignalKind
    public var ttlMs: UInt32
    /// To whom the sender's node handed it, so that a node without any of them need not ask the
    /// store; empty: they are more than `usersMax`.
    public var users: [UserID]

    /// What is told between nodes stays small.
    public static let usersMax = 8

    public init(
        app: AppID, conversation: ConversationID, sender: UserID, kind: SignalKind,
        ttlMs: UInt32, users: [UserID]
    ) {
        (self.app, self.conversation, self.sender) = (app, conversation, sender)
        (self.kind, self.ttlMs) = (kind, ttlMs)
        self.users = users.count <= Self.usersMax ? users : []
    }

    /// `nil`: it names no conversation.
    init?(_ signal: Signal, app: AppID, users: [UserID]) {
        guard let conversation = signal.conversation else { return nil }
        self.init(
            app: app, conversation: conversation, sender: UserID(signal.user),
            kind: signal.kind, ttlMs: signal.ttlMs, users: users)
    }

    /// As the clients are told.
    var signal: Signal {
        Signal(conversation: conversation, kind: kind, ttlMs: ttlMs, user: sender.name)
    }
}

/// Signals of other nodes on one loop whose audiences are being read.
struct DistantSignals {
    private struct Origin: Hashable {
        let app: AppID
        let conversation: ConversationID
        let sender: UserID

        init(_ signal: NodeSignal) {
            (app, conversation, sender) = (signal.app, signal.conversation, signal.sender)
        }
    }

    /// `mark`: of the audience before it is read.
    private var reading: [Origin: (signal: NodeSignal, mark: UInt64)] = [:]
    private var tickets: [UInt64: Origin] = [:]

    /// Audiences read at the same time; signals above are dropped (SIG-6).
    static let readingMax = 64

    /// - Parameters:
    ///   - mark: Of the audience now.
    ///   - read: Asks the store; `nil`: it cannot be asked.
    mutating func take(_ signal: NodeSignal, mark: UInt64, read: (StoreQuery) -> UInt64?) {
        let origin = Origin(signal)
        // Of what one user signals in one conversation the newest counts.
        if reading[origin] != nil {
            reading[origin]?.signal = signal
            return
        }
        guard reading.count < Self.readingMax,
            let ticket = read(.audience(signal.app, signal.sender, signal.conversation))
        else { return }
        reading[origin] = (signal, mark)
        tickets[ticket] = origin
    }

    /// - Returns: the signal whose audience was asked for under this ticket; `nil`: none was.
    mutating func answered(_ ticket: UInt64) -> (signal: NodeSignal, mark: UInt64)? {
        guard let origin = tickets.removeValue(forKey: ticket) else { return nil }
        return reading.removeValue(forKey: origin)
    }

    /// Being read now. For tests.
    var count: Int { reading.count }
}
