import Model
import SyncClient
import Wire

/// What has changed on this device, as far as what an app shows is concerned.
enum LiveChange {
    case entries([Entry])
    /// Something of this device in it.
    case conversation(ConversationID)
    /// Messages that the server has not answered, or has just answered.
    case pending
    /// This device has said that one is read.
    case announcements
    case everything
}

/// The live queries of an app: what each showed last, and who looks at it.
///
/// Each listener has a buffer of one: a list or a window that nobody took is replaced by the next.
struct LiveQueries {
    private struct Window {
        let conversation: ConversationID
        var newest: Int
        let listener: AsyncStream<MessageWindow>.Continuation
        var shown: MessageWindow?
    }

    private struct Watch {
        let message: MessageReference
        let listener: AsyncStream<Delivery>.Continuation
        var shown: Delivery?
    }

    private var list = ConversationList()
    private var shown: [ConversationRow]?
    private var lists: [UInt64: AsyncStream<[ConversationRow]>.Continuation] = [:]
    private var announcements: [UInt64: AsyncStream<[AnnouncementRow]>.Continuation] = [:]
    private var shownAnnouncements: [AnnouncementRow]?
    private var windows: [UInt64: Window] = [:]
    private var watches: [UInt64: Watch] = [:]
    /// The store could not be read: what is known may be behind it.
    private var isBehind = false

    mutating func add(
        _ listener: AsyncStream<[ConversationRow]>.Continuation, as number: UInt64
    ) {
        // As of the last who looked, who may be gone for long.
        if lists.isEmpty { shown = nil }
        lists[number] = listener
        if let shown { listener.yield(shown) }
    }

    mutating func add(
        _ listener: AsyncStream<[AnnouncementRow]>.Continuation, as number: UInt64
    ) {
        if announcements.isEmpty { shownAnnouncements = nil }
        announcements[number] = listener
        if let shownAnnouncements { listener.yield(shownAnnouncements) }
    }

    mutating func add(
        _ listener: AsyncStream<MessageWindow>.Continuation, as number: UInt64,
        of conversation: ConversationID, newest: Int
    ) {
        windows[number] = Window(
            conversation: conversation, newest: newest, listener: listener)
    }

    /// Of the largest window of a conversation; `nil`: there is none.
    func newest(of conversation: ConversationID) -> Int? {
        windows.values.lazy.filter { $0.conversation == conversation }.map(\.newest).max()
    }

    /// Has the largest window of a conversation show more: a smaller one, as of a preview, stays.
    mutating func widen(_ conversation: ConversationID, to count: Int) {
        guard let widest = newest(of: conversation), count > widest else { return }
        for (number, window) in windows
        where window.conversation == conversation && window.newest == widest {
            windows[number]?.newest = count
        }
    }

    mutating func add(
        _ listener: AsyncStream<Delivery>.Continuation, as number: UInt64,
        of message: MessageReference
    ) {
        watches[number] = Watch(message: message, listener: listener)
    }

    mutating func finish() {
        for listener in lists.values { listener.finish() }
        for listener in announcements.values { listener.finish() }
        for window in windows.values { window.listener.finish() }
        for watch in watches.values { watch.listener.finish() }
        (lists, announcements, windows, watches) = ([:], [:], [:], [:])
    }

    mutating func remove(_ number: UInt64) {
        lists[number] = nil
        announcements[number] = nil
        windows[number] = nil
        watches[number] = nil
    }

    /// - Parameter sent: the numbers of the mutations that are on their way.
    mutating func follow(
        _ change: LiveChange, in store: TableLocalStore, sent: Set<UInt64>
    ) throws(LocalStoreError) {
        let change = isBehind ? .everything : change
        isBehind = true
        try followList(change, store, sent)
        try followAnnouncements(change, store)
        try followWindows(change, store, sent)
        try followWatches(change, store, sent)
        isBehind = false
    }

    private mutating func followList(
        _ change: LiveChange, _ store: TableLocalStore, _ sent: Set<UInt64>
    ) throws(LocalStoreError) {
        guard !lists.isEmpty else {
            shown = nil
            return
        }
        switch change {
        case _ where shown == nil: try list.reload(from: store, sent: sent)
        case .entries(let entries): try list.applied(entries, in: store, sent: sent)
        case .conversation(let id): try list.read(id, from: store, sent: sent)
        case .pending: try list.readPending(from: store, sent: sent)
        case .announcements: return
        case .everything: try list.reload(from: store, sent: sent)
        }
        let rows = list.rows
        guard rows != shown else { return }
        shown = rows
        for listener in lists.values { listener.yield(rows) }
    }

    private mutating func followAnnouncements(
        _ change: LiveChange, _ store: TableLocalStore
    ) throws(LocalStoreError) {
        guard !announcements.isEmpty, shownAnnouncements == nil || change.concernsAnnouncements
        else { return }
        let rows = try store.announcements()
        guard rows != shownAnnouncements else { return }
        shownAnnouncements = rows
        for listener in announcements.values { listener.yield(rows) }
    }

    private mutating func followWindows(
        _ change: LiveChange, _ store: TableLocalStore, _ sent: Set<UInt64>
    ) throws(LocalStoreError) {
        for (number, window) in windows
        where window.shown == nil || change.concerns(window.conversation) {
            let present = try store.messageWindow(
                of: window.conversation, newest: window.newest, sent: sent)
            guard present != window.shown else { continue }
            windows[number]?.shown = present
            window.listener.yield(present)
        }
    }

    private mutating func followWatches(
        _ change: LiveChange, _ store: TableLocalStore, _ sent: Set<UInt64>
    ) throws(LocalStoreError) {
        for (number, watch) in watches
        where watch.shown == nil || change.concerns(watch.message.conversation) {
            guard let present = try store.delivery(of: watch.message, sent: sent) else {
                watches[number] = nil
                watch.listener.finish()
                continue
            }
            guard present != watch.shown else { continue }
            watches[number]?.shown = present
            watch.listener.yield(present)
        }
    }
}

extension LiveChange {
    func concerns(_ conversation: ConversationID) -> Bool {
        switch self {
        case .entries(let entries): entries.contains { $0.conversation == conversation }
        case .conversation(let changed): changed == conversation
        case .pending, .everything: true
        case .announcements: false
        }
    }

    var concernsAnnouncements: Bool {
        switch self {
        case .entries(let entries):
            entries.contains {
                switch $0.body {
                case .announcement: true
                // Of one that was taken back (MSG-57).
                case .tombstone: $0.conversation == nil
                default: false
                }
            }
        case .announcements, .everything: true
        case .conversation, .pending: false
        }
    }
}
