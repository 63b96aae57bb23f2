import Model
import Wake
import Wire

// What a commit hands over of the feeds, so that it is not read back (`FeedTail`).
//
// Four kinds of entries go that way when they are new in the feed, for what they show follows from
// what the rule holds in its hands:
// - a message, and an announcement that was not read: it has just come, so that no device was
//   alerted of it yet, and nothing of it is deleted or out of reach;
// - a receipt: its entry itself says what is told;
// - a read mark.
// Everything else is read. An edited or deleted message keeps what devices were alerted of, and
// depends on who takes part; conversations, participants, metadata, settings and blocks are rare,
// and who may see them is decided when a page is read (`Reach`). A feed is read, too, whose entry
// was replaced in the same commit, and a message whose alert expires: whether the device itself
// tells of it depends on the time. So is one whose push has texts in several languages: which of
// them is shown depends on the device.

/// What an entry shows that no read is needed for.
enum ShownObject {
    case message(MessageRecord)
    case announcement(AnnouncementRecord)
    case receipt(ReceiptRecord)
    case readMark(ReadMarkRecord)
}

extension Work {
    /// What `close` hands over of the feed.
    func tail(of feed: OpenFeed, after head: UInt64) -> FeedTail? {
        guard let entries = feed.tail else { return nil }
        let tail = FeedTail(
            after: head, entries, epochHalf: feed.user.epochHalf, at: now)
        guard let tail, tail.through == feed.user.head, feed.replacedThrough <= head,
            tail.isWithin(limits.tail)
        else { return nil }
        return tail
    }

    /// The entry was appended: it goes on the tail, or nothing does.
    func addToTail(_ object: FeedObject, at entry: EntryRecord, of feed: inout OpenFeed) {
        guard feed.tail != nil else { return }
        guard let state = state(of: object, isQuiet: !entry.isVisible, in: feed),
            feed.tail?.count ?? 0 < limits.tail.entries
        else {
            feed.tail = nil
            return
        }
        feed.tail?.append(
            FeedTail.Element(state: state, seq: entry.seq, isVisible: entry.isVisible))
    }

    /// One state is told to many: those who get it come one after the other.
    ///
    /// - Parameter isQuiet: nobody of this feed is alerted of it, as where the user has muted its
    ///   conversation: a message of others says so (PSH-9).
    private func state(of object: FeedObject, isQuiet: Bool, in feed: OpenFeed) -> TailState? {
        guard let shown = object.shown else { return nil }
        var marks = false
        if isQuiet, case .message(let message) = shown {
            marks = !message.sender.isExactly(feed.user.user.name)
        }
        let identity = TailIdentity(object, feed.user)
        let known = marks ? quietTailState : tailState
        if let known, known.object == identity { return known.state }
        var sized = sized(shown)
        if marks, case .message(let message)? = sized?.entry.body, message.push != nil {
            sized?.entry.alerted = true
        }
        let state = sized.map(TailState.init)
        if marks { quietTailState = (identity, state) } else { tailState = (identity, state) }
        return state
    }

    /// `nil`: it cannot be told without the time or the device, or not at all.
    private func sized(_ shown: ShownObject) -> SizedEntry? {
        let reader = PageReader(snapshot: transaction, now: now) { _ in }
        switch shown {
        case .message(let message):
            guard !PushOptions.hasTexts(message.pushOptions) else { return nil }
            return timed(try? reader.entry(of: message), message.timing)
        case .announcement(let announcement):
            guard !PushOptions.hasTexts(announcement.pushOptions) else { return nil }
            return timed(
                try? reader.entry(of: announcement, version: 1), announcement.timing)
        case .receipt(let receipt): return reader.entry(of: receipt)
        case .readMark(let mark): return try? reader.entry(of: mark)
        }
    }

    /// With a moment of its own the device tells nobody of it, now or later (PSH-9).
    private func timed(_ sized: SizedEntry?, _ timing: AlertTiming) -> SizedEntry? {
        guard var sized else { return nil }
        if timing.moment != nil {
            sized.entry.alerted = true
        } else if timing.expires != nil || timing.lifetime != nil {
            return nil
        }
        return sized
    }
}

extension TailIdentity {
    fileprivate init(_ object: FeedObject, _ user: UserRecord) {
        app = user.app
        if case .readMark = object.shown { self.user = user.user }
        kind = object.kind
        conversation = object.conversation
        self.object = object.object
        version = object.version
        position = object.position
    }
}
