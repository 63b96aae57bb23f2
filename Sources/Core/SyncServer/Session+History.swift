public import Feed
public import Model
import Wire

/// A FETCH, SNAPSHOT or DIGEST the store is reading for.
struct HistoryInFlight: Equatable, Sendable {
    var tag: RequestTag
    var request: UInt16
    var type: FrameType
    /// What the client counted, for the log.
    var counted: DigestCounts?
}

// History, snapshots and digests (history.md): reads beside the feed. They move no cursor, and
// nothing of them waits for the session's writes.
extension Session {
    /// The feature by which a client asks to be told of a reset without the feed (HIS-13).
    public static var snapshotFeature: String { "snapshot" }

    mutating func receivedHistory(
        _ frame: Frame, now: Instant, _ actions: inout [SessionAction]
    ) {
        let type = frame.body.type
        guard let key else { return }
        guard role == .app else {
            return refuse(type, .forbidden, request: frame.request, &actions)
        }
        let isSecond = type != .fetch && history.contains { $0.type == type }
        guard history.count < limits.historyInFlight, !isSecond else {
            return refuse(
                type, .limit, request: frame.request, detail: "too many at a time", &actions)
        }
        // A body limit's worth is never reached: tags and the page's own fields stay beside it.
        let bytesMax = limits.afterWelcome.bodyBytes / 2
        var counted: DigestCounts?
        let query: HistoryQuery
        switch frame.body {
        case .fetch(let fetch):
            query = .fetch(
                key.app, key.user, fetch, bytes: min(limits.historyPageBytes, bytesMax))
        case .snapshot(let snapshot):
            let own =
                snapshot.continuation.isEmpty
                ? limits.snapshotFirstPageBytes : limits.snapshotPageBytes
            let asked = snapshot.pageBytes == 0 ? own : Int(clamping: snapshot.pageBytes)
            query = .snapshot(
                key.app, key.user, snapshot,
                bytes: min(asked, limits.snapshotPageBytes, bytesMax))
        case .digest(let digest):
            counted = DigestCounts(digest)
            query = .digest(key.app, key.user, digest)
        default: preconditionFailure("\(type) asks for no history")
        }
        let tag = nextTag()
        history.append(
            HistoryInFlight(tag: tag, request: frame.request, type: type, counted: counted))
        actions.append(.readHistory(tag, query))
    }

    /// What a `readHistory` found. If the store knows no such user any more, call
    /// `ended(.revoked)`.
    public mutating func historyRead(
        _ tag: RequestTag, _ reading: HistoryReading, now: Instant
    ) -> [SessionAction] {
        guard let index = history.firstIndex(where: { $0.tag == tag }), phase == .open else {
            return []
        }
        let asked = history.remove(at: index)
        var actions: [SessionAction] = []
        switch reading {
        case .page(let page):
            actions.append(.send(Frame(.page(page), request: asked.request)))
        case .snapshotPage(let page):
            actions.append(.send(Frame(.snapshotPage(page), request: asked.request)))
        case .digest(let result):
            actions.append(.send(Frame(.digestResult(result), request: asked.request)))
            if result.comparable, let counted = asked.counted {
                let own = DigestCounts(result)
                actions.append(.log(.digestCompared(own: own, clients: counted)))
            }
        case .refused(let code, let detail):
            refuse(asked.type, code, request: asked.request, detail: detail, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The store could not read it: this request only fails.
    public mutating func historyFailed(
        _ tag: RequestTag, _ error: StoreError, now: Instant
    ) -> [SessionAction] {
        guard let index = history.firstIndex(where: { $0.tag == tag }), phase == .open else {
            return []
        }
        let asked = history.remove(at: index)
        var actions: [SessionAction] = [.log(.storeFailed(error))]
        let code: Code = if case .corrupt = error { .internal } else { .unavailable }
        refuse(asked.type, code, request: asked.request, detail: "store", &actions)
        settle(now: now, &actions)
        return actions
    }

    /// The shell did not ask the store, for this user asks too much (CON-15): a FETCH, SNAPSHOT or
    /// DIGEST, or a SYNC that peeks.
    public mutating func readLimited(
        _ tag: RequestTag, retryAfter: Milliseconds, now: Instant
    ) -> [SessionAction] {
        guard phase == .open else { return [] }
        var actions: [SessionAction] = []
        if let index = history.firstIndex(where: { $0.tag == tag }) {
            let asked = history.remove(at: index)
            refuse(
                asked.type, .rateLimited, request: asked.request, retryAfter: retryAfter, &actions)
        } else if let page, page.tag == tag, case .peek(let request) = page.purpose {
            self.page = nil
            refuse(.sync, .rateLimited, request: request, retryAfter: retryAfter, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The cursor cannot be continued and the client takes a SNAPSHOT, or has to wait: it is told
    /// so, and sent nothing of the feed until it comes with a cursor that can be (HIS-13, SYN-26).
    mutating func sendSnapshotReset(
        _ answer: PageInFlight.Answer, now: Instant, _ actions: inout [SessionAction]
    ) {
        let start = Cursor(epoch: epoch, seq: 0)
        let delta = Delta(
            from: start, to: start, head: head, more: head > 0, results: answer.results,
            mutationFloor: answer.floor,
            reset: answer.reset.map {
                Reset(reason: $0, retryAfterMs: UInt32(clamping: answer.resetAfter))
            })
        actions.append(.send(Frame(.delta(delta), request: answer.request)))
        hasSynced = false
        told = max(told, head)
        watch.update(isCovered: applied >= told, rose: false, limits: limits, now: now)
        if answer.resetAfter > 0 { watch.excuse(until: now + answer.resetAfter) }
    }

    // MARK: - Peek

    /// SYN-12: the newest entries, newest first; nothing of it is written.
    mutating func startPeek(
        _ sync: SyncFrame, request: UInt16, _ actions: inout [SessionAction]
    ) {
        var base = applied
        if let cursor = sync.cursor, cursor.epoch == epoch, cursor.seq <= head {
            base = cursor.seq
        }
        var bytes = limits.firstPageBytes
        if sync.pageBytes > 0 { bytes = min(limits.windowBytes, Int(clamping: sync.pageBytes)) }
        startPage(.peek(request: request), after: base, bytes: bytes, &actions)
    }

    mutating func sendPeek(
        _ read: Page, request: UInt16, _ actions: inout [SessionAction]
    ) {
        let cursor = Cursor(epoch: epoch, seq: read.from)
        let delta = Delta(
            entries: read.entries, from: cursor, to: cursor, head: read.head, more: read.more,
            mutationFloor: mutationFloor, unread: UInt32(clamping: read.unread))
        actions.append(.send(Frame(.delta(delta), request: request)))
    }
}
