public import Model
public import Wire

/// One page of a feed for one device, ascending, or with `newestFirst` from the head down.
public struct PageQuery: Equatable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var after: UInt64
    /// Encoded size the page should not exceed; one entry is always given.
    public var bytes: Int
    /// A peek: the newest entries above `after`, newest first.
    public var newestFirst: Bool
    /// Whose standing the page tells; `nil`: nobody's.
    public var session: SessionKey?

    public init(
        app: AppID, user: UserID, device: DeviceID, after: UInt64, bytes: Int,
        newestFirst: Bool = false, session: SessionKey? = nil
    ) {
        self.app = app
        self.user = user
        self.device = device
        self.after = after
        self.bytes = bytes
        self.newestFirst = newestFirst
        self.session = session
    }
}

/// Entries and `to` from one snapshot: `to` is the last entry if the page is full, else that
/// snapshot's head. This is why paging ascending loses nothing (protocol: feed).
public struct Page: Equatable, Sendable {
    public var entries: [Entry]
    public var epoch: Epoch
    public var from: UInt64
    public var to: UInt64
    public var head: UInt64
    public var more: Bool
    /// The lowest `seq` of a visible entry in the page; an ACK that covers it is persisted at once.
    public var firstVisible: UInt64?
    /// Unread messages of all conversations, as a badge shows them; on a page without `more`.
    public var unread: UInt64
    /// For which time that number holds; `nil`: there is none.
    public var unreadTime: UnreadTime?
    /// Of the session that was named, from the same snapshot.
    public var standing: SessionStanding

    public init(
        entries: [Entry], epoch: Epoch, from: UInt64, to: UInt64, head: UInt64, more: Bool,
        firstVisible: UInt64?, unread: UInt64 = 0,
        standing: SessionStanding = .current
    ) {
        self.entries = entries
        self.epoch = epoch
        self.from = from
        self.to = to
        self.head = head
        self.more = more
        self.firstVisible = firstVisible
        self.unread = unread
        self.standing = standing
    }

    /// Elements a page may hold at all levels, so that its frame, with the results of a SYNC
    /// beside it, is one that every client takes (FRM-15).
    static let elementsMax = FrameLimits.afterWelcome.elements - RuleLimits().mutationsPerRequest
}

/// What the store says of a session whose connection believes that it is open: one that ended, or
/// was challenged, between the commit that opened it and its entry into the hub was not told so.
public enum SessionStanding: Equatable, Sendable {
    case current
    /// Its tokens are gone: it asks for an identity token (SES-21).
    case challenged
    case ended(Code)

    /// - Parameters:
    ///   - user: The session's user, `nil` where the store knows no such user.
    ///   - row: The newest session of its device and role.
    ///   - hasToken: Whether the device has a session token of the role.
    static func of(
        _ session: SessionKey, user: UserRecord?, app: AppRecord?, row: SessionRecord?,
        hasToken: Bool
    ) -> SessionStanding {
        guard let user, let app else { return .ended(.revoked) }
        if user.isSuspended || app.isSuspended { return .ended(.suspended) }
        // Its node was taken for gone though it is there: the device only has to come again.
        guard let row else { return .ended(hasToken ? .goingAway : .revoked) }
        guard row.generation == session.generation else { return .ended(.superseded) }
        return hasToken ? .current : .challenged
    }
}

/// An entry and a bound on its encoded size in bytes, tag and length in its page included.
struct SizedEntry {
    var entry: Entry
    var bytes: Int

    /// Tags, lengths and numbers: 7 varints of at most 11 bytes each, and two ids.
    private static let fixedBytes = 128

    init(_ entry: Entry, bytes: Int) {
        self.entry = entry
        self.bytes = Self.fixedBytes + bytes
    }
}

extension Entry {
    /// What it adds to the repeated fields of its frame, itself included.
    var elements: Int {
        switch body {
        case .message(let message): 1 + message.partCount + (message.hints?.elements ?? 0)
        case .readMark(let mark): 1 + mark.ranges.count
        case .announcement(let announcement):
            1 + announcement.parts.count + (announcement.hints?.elements ?? 0)
        case .metadata(let metadata): 1 + metadata.values.reduce(0) { $0 + 1 + $1.path.count }
        case .conversationState, .participant, .receipt, .tombstone, .conversationSettings,
            .block, nil:
            1
        }
    }
}
