public import Feed
public import Model

/// Pages that were pushed: made of what a commit handed over, or read. They may begin anew at 0.
public struct PushedCounts: Equatable, Sendable {
    public var byTail: UInt32 = 0
    public var byRead: UInt32 = 0

    public init(byTail: UInt32 = 0, byRead: UInt32 = 0) {
        self.byTail = byTail
        self.byRead = byRead
    }
}

/// How far the device has come in its user's feed.
public struct FeedProgress: Equatable, Sendable {
    /// The feed's, as far as the session knows.
    public var head: UInt64
    /// The highest seq it was asked to fetch, or sent.
    public var told: UInt64
    /// The highest it has acknowledged.
    public var applied: UInt64
}

/// What the last DELTA without `more` told of unread messages; forgotten when something else is
/// sent. Small, for every session has one.
struct ToldUnread: Equatable, Sendable {
    private var from = Timestamp(milliseconds: 0)
    /// For how long from then it holds if nothing is committed, at least.
    private var lasts: UInt32 = 0
    private var number: UInt16 = 0
    private var isKnown = false
    /// Something was done to the number while a page is read, which may not hold that.
    var isDoubted = false

    var value: (count: UInt64, time: UnreadTime)? {
        guard isKnown else { return nil }
        return (UInt64(number), UnreadTime(from: from, until: from + Milliseconds(lasts)))
    }

    mutating func forget() { isKnown = false }

    mutating func take(_ page: Page) {
        guard !page.more, !isDoubted, let time = page.unreadTime else { return forget() }
        from = time.from
        lasts = time.until.map { UInt32(clamping: $0.since(from)) } ?? .max
        number = UInt16(clamping: page.unread)
        isKnown = true
    }
}

// What a commit appended is pushed without a read, where a read would give the same: the session
// is live, and lacks nothing but that (`FeedTail`). A change that comes while a page is read, out
// of its order or twice does not follow what was sent, and one that got lost is followed by
// nothing: all of that is read.
extension Session {
    /// What the hub tells of one commit.
    public mutating func feedChanged(_ change: FeedChange, now: Instant) -> [SessionAction] {
        if change.kinds == 0 {
            unreadMoved()
            return []
        }
        return headMoved(
            to: change.head, kinds: change.kinds, isUrgent: change.isUrgent, change: change,
            now: now)
    }

    /// The number of unread messages may have changed without an entry: the next page tells.
    public mutating func unreadMoved() {
        unread.forget()
        unread.isDoubted = page != nil
    }

    /// Pages that were pushed so far, for the metrics.
    public var pushed: PushedCounts {
        PushedCounts(byTail: pushedByTail, byRead: pushedByRead)
    }

    public var progress: FeedProgress { FeedProgress(head: head, told: told, applied: applied) }

    /// The page that is sent at once; `nil`: the feed is read.
    func tailPage(of change: FeedChange) -> Page? {
        guard let tail = change.tail, tail.after == sent, head == sent, mode == .live,
            role == .app, page == nil, !mustLearnStanding, let told = unread.value, !hasOpenSync,
            let room = pageRoom
        else { return nil }
        return tail.page(
            epoch: epoch, bytes: room, unread: told.count, at: told.time, changed: change.unread)
    }
}
