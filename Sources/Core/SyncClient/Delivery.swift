public import Model
internal import Wire

/// A message, as one names it that this device has sent or is about to.
public struct MessageReference: Hashable, Sendable {
    public var conversation: ConversationID
    public var message: MessageID

    public init(conversation: ConversationID, message: MessageID) {
        self.conversation = conversation
        self.message = message
    }
}

/// How far a message of this user got.
public enum Delivery: Equatable, Sendable {
    /// Durable on this device; it leaves with the next connection.
    case queued
    /// On its way: the server has not answered yet.
    case sent
    /// The server has it for good.
    case accepted
    /// So many others have it on a device.
    case delivered(to: Int)
    /// So many others have read it; `deliveredTo` counts these too.
    case read(by: Int, deliveredTo: Int)
    /// The server does not take it. It stays on this device until it is sent anew or discarded.
    case refused(Refusal)
}

/// Why the server does not take something, for good; or lets nobody in.
public struct Refusal: Hashable, Sendable, CustomStringConvertible {
    /// Of the registry (`Code`), or one that this side does not know.
    public var code: UInt32

    public init(code: UInt32) { self.code = code }

    /// No server says so: one that was restored has lost the message, and it is not sent again by
    /// itself, because somebody takes part in its conversation now who did not see it, or because
    /// who takes part is not known here (HIS-38).
    public static let audienceChanged = Refusal(code: 9_000)

    /// For people.
    public var description: String {
        if self == .audienceChanged {
            return "the server has lost it, and others may take part in the conversation now"
        }
        return switch Code(rawValue: code) {
        case .malformed: "the server could not read it"
        case .tooLarge: "it is larger than the server takes"
        case .missingField: "something that it needs is missing"
        case .forbidden: "this user may not do that"
        case .notFound: "there is no such conversation within this user's reach"
        case .gone: "what it is about was deleted"
        case .limit: "it holds more than the server takes"
        case .idInUse: "its id belongs to something else"
        case .versionConflict: "it was changed by somebody else meanwhile"
        case .resultGone: "the server does not know any more whether it took it"
        case .conflict: "it contradicts what was done before"
        case .suspended: "the user or the app is suspended"
        case .tokenInvalid: "it does not know the key, or the token is not for this app and user"
        case .expired: "the token is too old, or a clock is wrong"
        case .nonceExpired: "the token was made too late"
        case .revoked: "the session was ended"
        case .deviceMismatch: "the token belongs to another device"
        case .superseded: "another installation with this device's id has taken its place"
        case .upgradeRequired: "the server wants a newer app"
        case .goingAway, .drainDeadline: "the server ends, or another one takes its place"
        case .tooManyConnections: "the server has as many connections as it takes"
        case .some(let code): "the server refused it: \(code.name) (\(code.rawValue))"
        case nil: "the server refused it: \(code)"
        }
    }
}

/// What the others of a conversation have of this user's messages.
struct Reach {
    /// Receipts looked at; in larger conversations none are written (MSG-21).
    static let receiptsMax = 256

    private struct Other {
        var joined: UInt64 = 0
        var delivered: UInt64 = 0
        var read: UInt64 = 0
    }

    private var others: [Other] = []

    init(
        in conversation: [UInt8], without user: String, _ snapshot: any StoreSnapshot
    ) throws(StoreError) {
        let receipts = Scan(.receipt, of: conversation, limit: Self.receiptsMax)
        for entry in try snapshot.entries(receipts) {
            guard case .receipt(let state) = entry.body, !state.user.isExactly(user) else {
                continue
            }
            var other = Other(delivered: state.deliveredThrough, read: state.readThrough)
            let member = try snapshot.entry(
                .participant, of: conversation, Array(state.user.utf8))
            if case .participant(let state) = member?.body { other.joined = state.joinedPosition }
            others.append(other)
        }
    }

    /// A receipt tells of positions above where its user joined.
    func delivery(of position: UInt64) -> Delivery {
        let (delivered, read) = others.reduce(into: (0, 0)) { counts, other in
            guard position > other.joined else { return }
            if position <= max(other.delivered, other.read) { counts.0 += 1 }
            if position <= other.read { counts.1 += 1 }
        }
        if read > 0 { return .read(by: read, deliveredTo: delivered) }
        return delivered > 0 ? .delivered(to: delivered) : .accepted
    }
}
