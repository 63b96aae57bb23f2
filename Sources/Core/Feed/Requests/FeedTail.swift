public import Model
import Wake
import Wire

/// An object as an entry shows it, with what the limits of a page count of it: made once for all
/// feeds into which a commit brings it.
public final class TailState: Equatable, Sendable {
    /// `seq` is each feed's own. The rest is encoded already.
    let entry: Entry
    let bytes: Int
    let elements: Int

    init(_ sized: SizedEntry) {
        var entry = sized.entry
        entry.shareEncoding()
        self.entry = entry
        bytes = sized.bytes
        elements = entry.elements
    }

    public static func == (one: TailState, other: TailState) -> Bool {
        one === other || one.entry == other.entry && one.bytes == other.bytes
    }
}

/// The end of a user's feed: all that one commit appended to it, as the commit left it. A session
/// that lacks nothing else is sent it without a read.
///
/// Invariant: `entries` are all entries of the feed above `after`, ascending and without a gap.
public struct FeedTail: Equatable, Sendable {
    public struct Element: Equatable, Sendable {
        public var state: TailState
        public var seq: UInt64
        public var isVisible: Bool
    }

    /// The feed's head before.
    public private(set) var after: UInt64
    public private(set) var entries: [Element]
    /// The user's half of the epoch: with another half it is another history.
    private var epochHalf: UInt64
    /// When it was written.
    private var at: Timestamp

    init?(after: UInt64, _ entries: [Element], epochHalf: UInt64, at: Timestamp) {
        guard !entries.isEmpty else { return nil }
        self.after = after
        self.entries = entries
        self.epochHalf = epochHalf
        self.at = at
    }

    /// The last of its entries.
    var through: UInt64 { after + UInt64(entries.count) }

    /// What the next request of the same commit appended.
    ///
    /// - Returns: whether it follows.
    fileprivate mutating func append(_ later: FeedTail) -> Bool {
        guard later.after == through else { return false }
        entries += later.entries
        epochHalf = later.epochHalf
        at = max(at, later.at)
        return true
    }

    /// The page that a read of the feed above `after` gives right after the commit; `nil`: that
    /// cannot be told from here.
    ///
    /// - Parameters:
    ///   - epoch: the session's.
    ///   - bytes: the page's, as in `PageQuery`.
    ///   - unread: the number that a page ending at `after` told, with its time.
    ///   - change: what the commit did to that number.
    public func page(
        epoch: Epoch, bytes: Int, unread: UInt64, at time: UnreadTime, changed change: UnreadChange
    ) -> Page? {
        guard epoch.low == epochHalf else { return nil }
        var size = 0
        var elements = 0
        for entry in entries {
            size += entry.state.bytes
            elements += entry.state.elements
        }
        // A page gives one entry in any case.
        guard entries.count == 1 || size <= bytes && elements <= Page.elementsMax,
            let moved = time.moved(to: at, by: change),
            let count = change.applied(to: unread)
        else { return nil }
        var page = Page(
            entries: entries.map { entry in
                var shown = entry.state.entry
                shown.seq = entry.seq
                return shown
            }, epoch: epoch, from: after, to: through, head: through, more: false,
            firstVisible: entries.first { $0.isVisible }?.seq, unread: count)
        page.unreadTime = moved
        return page
    }
}

/// For which time a number of unread messages holds, if nothing is committed.
public struct UnreadTime: Equatable, Sendable {
    /// When it was counted.
    public var from: Timestamp
    /// When more is counted because a mute is over; `nil`: never.
    public var until: Timestamp?

    public init(from: Timestamp, until: Timestamp?) {
        self.from = from
        self.until = until
    }

    /// - Returns: `nil`: a mute ended meanwhile.
    fileprivate func moved(to moment: Timestamp, by change: UnreadChange) -> UnreadTime? {
        let now = max(from, moment)
        let end = [until, change.muteEnds].compactMap { $0 }.min()
        if let end, end <= now { return nil }
        return UnreadTime(from: now, until: end)
    }
}

/// What requests did to the number of unread messages that a user's icon shows.
public struct UnreadChange: Equatable, Sendable {
    var by = 0
    /// The first end of a mute among the conversations concerned: up to then it holds.
    var muteEnds: Timestamp?

    public init() {}

    public var isNothing: Bool { by == 0 && muteEnds == nil }

    static func += (change: inout UnreadChange, more: UnreadChange) {
        change.by += more.by
        change.muteEnds = [change.muteEnds, more.muteEnds].compactMap { $0 }.min()
    }

    /// - Returns: `nil`: the number at its most stands for more, of which something went.
    fileprivate func applied(to count: UInt64) -> UInt64? {
        if count >= UnreadCount.most { return by < 0 ? nil : count }
        let sum = Int(clamping: count) + by
        return sum < 0 ? nil : min(UInt64(sum), UnreadCount.most)
    }
}

/// The changes of the feeds that one commit made, each user's as one. A commit hands over so many
/// entries and bytes; what is above is read.
public struct FeedChanges: Equatable, Sendable {
    public private(set) var all: [FeedChange] = []
    /// The objects' states that are handed over, each once.
    public internal(set) var tailBytes = 0
    private var tailEntries = 0
    private var states: Set<ObjectIdentifier> = []
    /// Messages that were changed, and to which version.
    private var changed: [MessageID: UInt64] = [:]
    /// Where the change of each feed stands, once there are more than `fewMax`.
    private var places: [UserKey: Int] = [:]
    /// Of a few changes each is looked at, which is quicker than finding one by a hash: a request
    /// mostly makes two.
    private static let fewMax = 8
    private let limits: TailLimits

    private struct UserKey: Hashable {
        var app: AppID
        var user: UserID

        init(_ change: FeedChange) { (app, user) = (change.app, change.user) }
    }

    public init(limits: TailLimits = TailLimits()) { self.limits = limits }

    /// What is kept beside them follows from them.
    public static func == (left: FeedChanges, right: FeedChanges) -> Bool {
        left.all == right.all && left.changed == right.changed
    }

    /// Adds what the next request of the commit did.
    public mutating func join(_ later: FeedChanges) {
        for change in later.all { note(change) }
        changed.merge(later.changed) { _, later in later }
    }

    /// A tail shows what its commit left: of a message that was changed behind it, which comes as
    /// an entry of its own in a later turn, it would show what is gone.
    mutating func noteChanged(_ message: MessageID, version: UInt64) {
        changed[message] = version
    }

    public mutating func note(_ change: FeedChange) {
        var change = change
        if let tail = change.tail, !hasRoom(for: tail) { change.tail = nil }
        if let known = place(of: change) { return all[known].join(change, limits) }
        all.append(change)
        if all.count == Self.fewMax + 1 {
            for (place, change) in all.enumerated() { places[UserKey(change)] = place }
        } else if all.count > Self.fewMax {
            places[UserKey(change)] = all.count - 1
        }
    }

    private func place(of change: FeedChange) -> Int? {
        guard all.count <= Self.fewMax else { return places[UserKey(change)] }
        return all.firstIndex { $0.user == change.user && $0.app == change.app }
    }

    private mutating func hasRoom(for tail: FeedTail) -> Bool {
        tailEntries += tail.entries.count
        guard tailEntries <= limits.entriesPerCommit else { return false }
        for entry in tail.entries {
            guard states.insert(ObjectIdentifier(entry.state)).inserted else { continue }
            tailBytes += entry.state.bytes
        }
        return tailBytes <= limits.bytesPerCommit
    }

    /// The whole commit is noted.
    public mutating func finish() {
        guard !changed.isEmpty else { return }
        for index in all.indices {
            let isOutdated = all[index].tail?.entries.contains { entry in
                guard case .message = entry.state.entry.body,
                    let message = MessageID(entry.state.entry.object),
                    let version = changed[message]
                else { return false }
                return entry.state.entry.version < version
            }
            if isOutdated == true { all[index].tail = nil }
        }
    }
}

extension FeedChange {
    /// Takes in what came later in the same commit.
    fileprivate mutating func join(_ later: FeedChange, _ limits: TailLimits) {
        if kinds == 0 {
            tail = later.tail
        } else if later.kinds != 0 {
            let isWhole = later.tail.map { tail?.append($0) ?? false } ?? false
            if !isWhole { tail = nil }
        }
        head = max(head, later.head)
        kinds |= later.kinds
        isUrgent = isUrgent || later.isUrgent
        trace = trace ?? later.trace
        unread += later.unread
        replacedThrough = max(replacedThrough, later.replacedThrough)
        if let tail, replacedThrough > tail.after || !tail.isWithin(limits) { self.tail = nil }
    }
}

extension FeedTail {
    func isWithin(_ limits: TailLimits) -> Bool {
        entries.count <= limits.entries
            && (entries.count == 1 || entries.reduce(0) { $0 + $1.state.bytes } <= limits.bytes)
    }
}
