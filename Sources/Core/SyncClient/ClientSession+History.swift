public import Model
public import Wire

/// A snapshot on its way: what the local store holds of it, and what is asked.
struct SnapshotProgress: Equatable, Sendable {
    /// `nil`: no page is stored yet.
    var stored: LocalSnapshot?
    var resendSince: Timestamp?
    /// The SNAPSHOT without a page.
    var request: UInt16?
    /// The page handed to the store.
    var inFlight: SnapshotChange?
}

/// A FETCH that is to be answered.
struct PendingFetch: Equatable, Sendable {
    /// The app's; `nil`: the session's own, for a conversation it lacks.
    var ticket: UInt64?
    var fetch: Fetch
    /// `nil`: to be sent, or sent again.
    var request: UInt16?
    /// How many participants the pages before have told of.
    var participants = 0
}

/// A page beside the feed, handed to the store.
enum PageInHand: Equatable, Sendable {
    case page(PendingFetch, PageFrame)
    case peek(Delta)
}

// History, snapshots, peeks and digests (history.md).
extension ClientSession {
    // MARK: - What the app asks

    /// Asks for history; `.fetched` or `.fetchFailed` tells of it with this ticket, over however
    /// many connections it takes. At most `fetchesPending` may wait.
    public mutating func fetch(
        _ fetch: Fetch, ticket: UInt64, now: Instant
    ) -> [ClientAction] {
        var actions: [ClientAction] = []
        guard fetches.count < limits.fetchesPending else {
            return [.report(.fetchFailed(ticket: ticket, code: Code.limit.rawValue))]
        }
        fetches.append(PendingFetch(ticket: ticket, fetch: fetch))
        sendFetches(now: now, &actions)
        return actions
    }

    /// Looks at the newest entries now; the cursor stays (SYN-12). For an app with little run time.
    public mutating func peek(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        guard phase == .open, openSync == nil, syncAt == nil, snapshot == nil,
            changesInFlight.isEmpty
        else { return actions }
        let request = nextRequest()
        if !awaitsAnswer { quietSince = now }
        openSync = request
        isPeeking = true
        syncDeadline = now + limits.syncTimeout
        send(.sync(peekFrame), request: request, now: now, &actions)
        return actions
    }

    var peekFrame: SyncFrame {
        SyncFrame(cursor: cursor, applied: 0, mode: .peek, reason: syncReason)
    }

    /// Compares this device with the server as soon as it is in sync; `.digest` tells.
    public mutating func checkDigest(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        wantsDigest = true
        startDigest(&actions)
        return actions
    }

    // MARK: - FETCH

    mutating func sendFetches(now: Instant, _ actions: inout [ClientAction]) {
        guard phase == .open, configuration.role == .app, fetchAt == nil else { return }
        // One place is left for a SNAPSHOT or a DIGEST.
        var open = fetches.count { $0.request != nil }
        for index in fetches.indices where fetches[index].request == nil {
            guard open < limits.fetchesOpen else { return }
            let request = nextRequest()
            if !awaitsAnswer { quietSince = now }
            fetches[index].request = request
            send(.fetch(fetches[index].fetch), request: request, now: now, &actions)
            open += 1
        }
    }

    mutating func receivedPage(
        _ page: PageFrame, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard let index = fetches.firstIndex(where: { $0.request == request }) else { return }
        let asked = fetches.remove(at: index)
        var complete: CompleteRange?
        if let conversation = asked.fetch.conversation, asked.fetch.object.isEmpty, page.first > 0 {
            complete = CompleteRange(
                conversation: conversation, first: page.first, last: page.last)
        }
        historyInFlight.append(.page(asked, page))
        actions.append(
            .applyHistory(HistoryChange(entries: page.entries, complete: complete)))
        sendFetches(now: now, &actions)
    }

    /// The oldest page beside the feed is durable.
    public mutating func historyCommitted(now: Instant) -> [ClientAction] {
        guard !historyInFlight.isEmpty else { return [] }
        var actions: [ClientAction] = []
        switch historyInFlight.removeFirst() {
        case .page(let asked, let page):
            if let ticket = asked.ticket {
                actions.append(
                    .report(
                        .fetched(
                            ticket: ticket, first: page.first, last: page.last, more: page.more)))
            } else if let next = following(page, asked) {
                fetches.append(next)
            }
            sendFetches(now: now, &actions)
        case .peek(let delta): peekCommitted(delta, now: now, &actions)
        }
        return actions
    }

    /// What is asked behind a page of a conversation's participants. Names rise, and no
    /// conversation has more than `participantsListed`: a server that goes on beyond either would
    /// be asked for ever, and fill this device.
    private func following(_ page: PageFrame, _ asked: PendingFetch) -> PendingFetch? {
        guard page.more, case .participant(let last) = page.entries.last?.body,
            asked.fetch.after.utf8.lexicographicallyPrecedes(last.user.utf8)
        else { return nil }
        var next = asked
        next.fetch.after = last.user
        next.request = nil
        next.participants += page.entries.count {
            if case .participant = $0.body { true } else { false }
        }
        return next.participants < limits.participantsListed ? next : nil
    }

    /// An ERROR for a request beside the feed; `false`: it was none.
    mutating func historyRefused(
        _ error: ErrorFrame, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) -> Bool {
        let retry = Code(rawValue: error.code)?.retryClass ?? error.retry
        let isTemporary = retry == .retry || retry == .retryAfter
        if let index = fetches.firstIndex(where: { $0.request == request }) {
            if isTemporary {
                // Sent again when the time is over that the server asks for (CON-15), with all
                // that wait, or with the next connection.
                fetches[index].request = nil
                let again = now + max(limits.mutationRetry, asked(error.retryAfterMs))
                fetchAt = max(fetchAt ?? again, again)
            } else {
                let refused = fetches.remove(at: index)
                if let ticket = refused.ticket {
                    actions.append(.report(.fetchFailed(ticket: ticket, code: error.code)))
                }
            }
            return true
        }
        if request == digestRequest?.request {
            digestRequest = nil
            if isTemporary {
                wantsDigest = true
                digestAt = now + max(limits.mutationRetry, asked(error.retryAfterMs))
            }
            return true
        }
        guard snapshot?.request == request else { return false }
        snapshot?.request = nil
        syncDeadline = nil
        if isTemporary {
            syncAt = now + max(limits.mutationRetry, asked(error.retryAfterMs))
            wantsSync = true
        } else {
            // The continuation is of another history, or of another version of the server
            // (HIS-18): from the beginning, with what is to be sent again.
            let wentOn = snapshot?.stored != nil
            let resendSince = snapshot?.stored?.resendSince ?? snapshot?.resendSince
            snapshot?.resendSince = resendSince
            snapshot?.stored = nil
            guard !hasBegunAnew, wentOn || retry == .resync else {
                // There is no cursor to go on with: later, on another connection.
                giveUp(now: now, &actions)
                return true
            }
            hasBegunAnew = true
            sendSnapshot(now: now, &actions)
        }
        return true
    }

    /// What `LocalStore.orphans` gave: their conversations are fetched (HIS-9).
    public mutating func orphansLoaded(
        _ conversations: [ConversationID], now: Instant
    ) -> [ClientAction] {
        var actions: [ClientAction] = []
        for conversation in conversations {
            let fetch = Fetch(conversation: conversation, object: conversation.bytes)
            guard askedFor.insert(conversation).inserted else { continue }
            guard fetches.count < limits.fetchesPending else { break }
            fetches.append(PendingFetch(ticket: nil, fetch: fetch))
        }
        sendFetches(now: now, &actions)
        return actions
    }

    // MARK: - SNAPSHOT

    /// Whether the answer to a SYNC sends this client to a snapshot (HIS-13).
    func asksForSnapshot(_ delta: Delta) -> Bool {
        guard takesSnapshots, delta.reset != nil, delta.entries.isEmpty else { return false }
        return delta.from?.seq == 0 && delta.to?.seq == 0
    }

    /// Begins a snapshot of this history, or goes on with the one that is stored.
    ///
    /// - Parameter isLost: the server's history changed: own objects it lacks are sent again.
    mutating func beginSnapshot(
        of epoch: Epoch, isLost: Bool, after wait: Milliseconds = 0, now: Instant,
        _ actions: inout [ClientAction]
    ) {
        dropReads(unlessOf: epoch)
        // A snapshot has no cursor before it is whole (HIS-20).
        cursor = nil
        applying = nil
        changesInFlight = []
        wantsSync = false
        var progress = snapshot ?? SnapshotProgress()
        let isOfAnother = progress.stored.map { $0.start.epoch != epoch } ?? false
        progress.resendSince = progress.stored?.resendSince ?? progress.resendSince
        if isOfAnother { progress.stored = nil }
        progress.request = nil
        progress.inFlight = nil
        if isLost || isOfAnother {
            let week: Milliseconds = 7 * 86_400_000
            let server = serverTime.milliseconds
            progress.resendSince = Timestamp(milliseconds: server > week ? server - week : 1)
        }
        snapshot = progress
        // SYN-26: others are before this one.
        if wait > 0 { snapshotAt = now + wait }
        sendSnapshot(now: now, &actions)
    }

    mutating func sendSnapshot(now: Instant, _ actions: inout [ClientAction]) {
        guard phase == .open, snapshot != nil, snapshotAt == nil else { return }
        let request = nextRequest()
        if !awaitsAnswer { quietSince = now }
        snapshot?.request = request
        syncDeadline = now + limits.syncTimeout
        let frame = SnapshotFrame(
            messages: limits.snapshotMessages, continuation: snapshot?.stored?.continuation ?? [])
        send(.snapshot(frame), request: request, now: now, &actions)
    }

    mutating func receivedSnapshotPage(
        _ page: SnapshotPage, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard var progress = snapshot, progress.request == request else { return }
        guard let start = page.start else {
            return breakOff(.protocolViolation, now: now, &actions)
        }
        syncDeadline = nil
        progress.request = nil
        let change = SnapshotChange(
            page: page, start: start, isFirst: progress.stored == nil,
            resendSince: progress.stored == nil
                ? progress.resendSince : progress.stored?.resendSince, mutationFloor: floor)
        progress.inFlight = change
        snapshot = progress
        historyThrough = start.seq
        actions.append(.applySnapshot(change))
    }

    /// The page of a snapshot is durable. `lastMutation`: as `applySnapshot` gave it.
    public mutating func snapshotCommitted(
        lastMutation: UInt64, now: Instant
    ) -> [ClientAction] {
        guard let change = snapshot?.inFlight else { return [] }
        var actions: [ClientAction] = []
        queuedThrough = max(queuedThrough, lastMutation)
        // What waits may stand behind something that was lost now.
        if change.resendSince != nil { reloadOutbox() }
        // HIS-37, before all else: whoever stops then has the icon right.
        if change.isLast, let unread = change.page.unread {
            actions.append(.report(.unread(unread)))
        }
        actions.append(
            .report(
                .snapshot(
                    conversations: change.page.conversations.count, isFirst: change.isFirst,
                    isLast: change.isLast)))
        for entry in change.page.entries + change.page.conversations.flatMap(\.entries) {
            guard let mark = ReadMark(entry) else { continue }
            reads.removeAll { mark.covers($0) }
        }
        guard change.isLast else {
            snapshot?.inFlight = nil
            snapshot?.stored = LocalSnapshot(
                start: change.start, continuation: change.page.continuation,
                resendSince: change.resendSince)
            sendSnapshot(now: now, &actions)
            return actions
        }
        snapshot = nil
        cursor = change.start
        resetHead = change.start.seq
        applying = change.start
        isResetting = false
        wantsDigest = true
        // The cursor first: with it the server knows that mutations are of its history (SYN-33).
        if phase == .open { wantSync(.connect, now: now, &actions) }
        load(&actions)
        return actions
    }

    // MARK: - Peek

    mutating func receivedPeek(
        _ delta: Delta, now: Instant, _ actions: inout [ClientAction]
    ) {
        isPeeking = false
        if configuration.role == .app, cursor != nil, sharedCursor == nil {
            // The rows here are another history's: what came counts behind the reset.
            return wantSync(.wake, now: now, &actions)
        }
        historyInFlight.append(.peek(delta))
        actions.append(.report(.delta(entries: delta.entries.count, more: delta.more)))
        actions.append(.applyHistory(HistoryChange(entries: delta.entries)))
    }

    /// SYN-28: everything from the lowest entry to the head is stored here.
    private mutating func peekCommitted(
        _ delta: Delta, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard phase == .open else { return }
        if let lowest = delta.entries.map(\.seq).min(), lowest > 0, lowest <= delta.head {
            let range = InclusiveRange(first: lowest, last: delta.head)
            send(.ack(Ack(applied: 0, ranges: [range])), now: now, &actions)
        }
        actions.append(.report(.peeked(head: delta.head, more: delta.more)))
        guard configuration.role == .app else {
            // An extension has done what it is for.
            let close = Close(
                code: Code.goingAway.rawValue, retry: Code.goingAway.retryClass, applied: 0)
            send(.close(close), now: now, &actions)
            leaveConnection(&actions)
            phase = .idle
            return
        }
        actions.append(.loadOrphans(limit: limits.fetchesPending))
        // Also where nothing is new: only the answer to a SYNC says so, and takes what was read.
        wantSync(.wake, now: now, &actions)
    }

    // MARK: - DIGEST

    /// Sums up what is stored, if nothing is under way: the sums must be those of the cursor.
    mutating func startDigest(_ actions: inout [ClientAction]) {
        guard wantsDigest, digestAt == nil, isInSync, digestRequest == nil, cursor != nil,
            configuration.role == .app
        else { return }
        wantsDigest = false
        actions.append(.sumUp)
    }

    /// What `LocalStore.digest` gave.
    public mutating func digestComputed(
        _ digest: LocalDigest, now: Instant
    ) -> [ClientAction] {
        guard isInSync, digestRequest == nil, let cursor else { return [] }
        guard digest.positions > 0 else {
            let objects = digest.conversations.count + digest.readMarks.count
            return [.report(.digest(isComparable: false, isEqual: false, objects: objects))]
        }
        var actions: [ClientAction] = []
        let request = nextRequest()
        if !awaitsAnswer { quietSince = now }
        digestRequest = (request, digest)
        let frame = DigestFrame(
            cursor: cursor, conversations: digest.conversations, readMarks: digest.readMarks,
            messages: digest.messages, positions: digest.positions)
        send(.digest(frame), request: request, now: now, &actions)
        return actions
    }

    mutating func receivedDigest(
        _ result: DigestResult, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard let asked = digestRequest, asked.request == request else { return }
        digestRequest = nil
        hasAskedAgain = false
        let own = asked.digest
        let isEqual =
            DigestCounts(result)
            == DigestCounts(
                conversations: own.conversations, readMarks: own.readMarks, messages: own.messages)
        let objects = own.conversations.count + own.readMarks.count + own.messages.count
        actions.append(
            .report(
                .digest(
                    isComparable: result.comparable, isEqual: result.comparable && isEqual,
                    objects: objects)))
        // HIS-34: repaired once a connection, or two that never agree would go on for ever.
        guard result.comparable, !isEqual, takesSnapshots, !hasRepaired, snapshot == nil,
            let epoch = cursor?.epoch
        else { return }
        hasRepaired = true
        beginSnapshot(of: epoch, isLost: false, now: now, &actions)
    }
}
