import Feed
import Model
import Wire

// Requests of an open session: what each asks of the store, and what it says of the device.
extension Session {
    mutating func receivedRequest(
        _ frame: Frame, now: Instant, _ actions: inout [SessionAction]
    ) {
        switch frame.body {
        case .sync(let sync): receivedSync(sync, request: frame.request, now: now, &actions)
        case .ack(let ack): receivedAck(ack, request: frame.request, now: now, &actions)
        case .mutate(let mutation):
            guard role == .app else {
                return refuse(.mutate, .forbidden, request: frame.request, &actions)
            }
            enqueue(.mutation(request: frame.request, mutation), now: now, &actions)
        case .appState(let state):
            guard role == .app else {
                return refuse(.appState, .forbidden, request: frame.request, &actions)
            }
            takePhase(state, now: now)
            if appState == nil { appState = PendingAppState() }
            appState?.merge(state)
        case .fetch, .snapshot, .digest:
            // SES-22: it crossed the CHALLENGE.
            guard reauthentication == nil else {
                return refuse(
                    frame.body.type, .unavailable, request: frame.request, detail: "challenged",
                    &actions)
            }
            receivedHistory(frame, now: now, &actions)
        case .signal(let signal):
            receivedSignal(signal, request: frame.request, now: now, &actions)
        default:
            preconditionFailure("\(frame.body.type) is no request of an open session")
        }
    }

    func sendError(
        _ code: Code, request: UInt16, detail: String, retryAfter: Milliseconds? = nil,
        _ actions: inout [SessionAction]
    ) {
        // Nothing follows a CLOSE.
        guard !phase.isEnded else { return }
        let retry = code.retryClass
        let body = ErrorFrame(
            code: code.rawValue, name: code.name, retry: retry,
            retryAfterMs: retry == .retryAfter
                ? UInt32(clamping: retryAfter ?? limits.retryAfter) : 0,
            detail: detail)
        actions.append(.send(Frame(.error(body), request: request)))
    }

    mutating func refuse(
        _ type: FrameType, _ code: Code, request: UInt16, detail: String = "",
        retryAfter: Milliseconds? = nil, _ actions: inout [SessionAction]
    ) {
        sendError(code, request: request, detail: detail, retryAfter: retryAfter, &actions)
        actions.append(.log(.refused(type, code)))
        countError()
    }

    // MARK: - SYNC

    /// Why this session may not send that SYNC; `nil`: it may.
    func refusal(of sync: SyncFrame) -> Code? {
        // A peek only looks: what it told would be written before it.
        if sync.mode == .peek {
            return sync.mutations.isEmpty && sync.reads.isEmpty ? nil : .forbidden
        }
        guard role == .app else { return .forbidden }
        return areTooMany(sync.reads) ? .limit : nil
    }

    /// MSG-17.
    func areTooMany(_ reads: [ReadReceipt]) -> Bool {
        reads.count > limits.receiptsPerWrite
            || reads.contains { $0.ranges.count > limits.receiptsPerWrite }
    }

    /// A SYNC waits for the store, is there, or its page is being read.
    var hasOpenSync: Bool {
        switch page?.purpose {
        case .answer, .peek: return true
        case .push, .look, nil: break
        }
        switch reauthentication?.held?.purpose {
        case .answer, .peek: return true
        case .push, .look, nil: break
        }
        if case .sync = write?.subject { return true }
        return queue.contains {
            if case .sync = $0 { return true }
            return false
        }
    }

    mutating func receivedSync(
        _ sync: SyncFrame, request: UInt16, now: Instant, _ actions: inout [SessionAction]
    ) {
        if let code = refusal(of: sync) {
            return refuse(.sync, code, request: request, detail: "mode or role", &actions)
        }
        guard !hasOpenSync else {
            return refuse(.sync, .limit, request: request, detail: "one SYNC at a time", &actions)
        }
        // A page pushed to the cursor this SYNC replaces is of no use.
        if page?.purpose == .push { page = nil }
        if sync.mode == .peek { return startPeek(sync, request: request, &actions) }
        // One from where a page was sent already goes to the store, which counts such (SYN-31).
        guard isContinued, sync.mutations.isEmpty, sync.reads.isEmpty, reauthentication == nil,
            window.unacknowledgedCount == 0 || sync.applied > applied, let cursor = sync.cursor,
            cursor.epoch == epoch, cursor.seq == sync.applied, cursor.seq >= applied,
            cursor.seq <= head
        else {
            // Its `applied` may stand for the ACK of the last page (SYN-14).
            if let cursor = sync.cursor, cursor.epoch == epoch {
                let told = min(cursor.seq, sync.applied)
                if told <= head { takeApplied(told, now: now, &actions) }
            }
            return enqueue(
                .sync(request: request, setAsideReads(of: sync)), now: now, &actions)
        }
        // Nothing the store must decide: an ACK and a page.
        renewal = .none
        takeApplied(sync.applied, now: now, &actions)
        let position = SyncedSession(
            epoch: epoch, head: head, applied: applied, mutationFloor: mutationFloor)
        answerSync(sync, request: request, position, refused: [], now: now, &actions)
    }

    /// Where a SYNC has more read receipts than one write takes, the store gets the surplus
    /// first, like an ACK's: all are taken before the page is read (SYN-9).
    private mutating func setAsideReads(of sync: SyncFrame) -> SyncFrame {
        guard sync.reads.count > limits.readsPerWrite else { return sync }
        var rest = sync
        rest.reads = Array(sync.reads.prefix(limits.readsPerWrite))
        // A position of another history may be another message's here (SYN-32).
        let isOfThisHistory = sync.cursor.map { $0.epoch == epoch && $0.seq <= head } ?? true
        ack.merge(
            sync.reads.dropFirst(limits.readsPerWrite)
                .filter { isOfThisHistory || $0.conversation == nil },
            rangesMax: limits.receiptsPerWrite)
        if !ack.reads.isEmpty { ack.isUrgent = true }
        return rest
    }

    private mutating func enqueue(
        _ request: QueuedRequest, now: Instant, _ actions: inout [SessionAction]
    ) {
        let mutations = request.mutations
        guard mutations.count <= limits.mutationsUnanswered - mutationsUnanswered else {
            return close(.limit, now: now, &actions)
        }
        mutationsUnanswered += mutations.count
        mutationBytes += mutations.reduce(0) { $0 + $1.contentBytes }
        if case .sync(_, let sync) = request {
            // Held while it waits: counts like receipts that wait for the store.
            mutationBytes += sync.reads.count * 64
        }
        queue.append(request)
    }

    mutating func answered(_ request: QueuedRequest) {
        let mutations = request.mutations
        mutationsUnanswered = max(0, mutationsUnanswered - mutations.count)
        mutationBytes = max(0, mutationBytes - mutations.reduce(0) { $0 + $1.contentBytes })
        if case .sync(_, let sync) = request {
            mutationBytes = max(0, mutationBytes - sync.reads.count * 64)
        }
    }

    /// Where the store says this device stands.
    mutating func takePosition(_ answer: SyncedSession) {
        if answer.epoch != epoch {
            epoch = answer.epoch
            head = answer.head
            headToAsk = answer.head
            askedHead = nil
            told = 0
            completeFirst = nil
            visibleFirst = nil
        }
        head = max(head, answer.head)
        headToAsk = max(headToAsk, answer.head)
        applied = answer.applied
        persisted = answer.applied
        if !ack.completesSync { persistAt = nil }
        mutationFloor = answer.mutationFloor
        hadPushRows = hadPushRows || answer.hadPushRows
        if answer.reset.isOfAnotherHistory {
            renewal = .awaited
        } else if answer.reset == nil {
            renewal = .none
        }
    }

    /// The store has taken a SYNC (or it held nothing for the store): reads the page.
    mutating func answerSync(
        _ sync: SyncFrame, request: UInt16, _ answer: SyncedSession, refused: [MutationResult],
        now: Instant, _ actions: inout [SessionAction]
    ) {
        isContinued = answer.reset == nil
        // An ACK that came since the SYNC covers more: nothing at or below it is sent again (P3).
        let base = answer.reset == nil ? max(sync.cursor?.seq ?? 0, applied) : 0
        sent = base
        window.restart()
        let told = PageInFlight.Answer(
            request: request, results: answer.results + refused, floor: answer.mutationFloor,
            reset: answer.reset, resetAfter: answer.resetAfter,
            isCounted: answer.deliveryFailures > 0)
        // SYN-26: who has to wait gets no page yet either.
        if answer.reset != nil, takesSnapshots || answer.resetAfter > 0 {
            return sendSnapshotReset(told, now: now, &actions)
        }
        hasSynced = true
        var bytes = window.room(limits) ?? window.pageBytes
        if answer.deliveryFailures > RuleLimits().deliveryTries { startSingles(&actions) }
        if singleThrough != nil { bytes = 1 }
        if sync.pageBytes > 0 { bytes = min(bytes, Int(clamping: sync.pageBytes)) }
        startPage(.answer(told), after: base, bytes: bytes, &actions)
    }

    /// MSG-7: the last thing a device is told that has logged out in a SYNC. Nothing of the feed
    /// is read for it any more.
    func sendResults(
        _ results: [MutationResult], of sync: SyncFrame, request: UInt16,
        _ answer: SyncedSession, _ actions: inout [SessionAction]
    ) {
        let known = sync.cursor.flatMap { $0.epoch == answer.epoch ? $0 : nil }
        let base = answer.reset == nil ? known?.seq ?? 0 : 0
        let cursor = Cursor(epoch: answer.epoch, seq: base)
        let delta = Delta(
            from: cursor, to: cursor, head: answer.head, more: answer.head > base,
            results: results, mutationFloor: answer.mutationFloor,
            reset: answer.reset.map { Reset(reason: $0) })
        actions.append(.send(Frame(.delta(delta), request: request)))
    }

    /// SYN-31: something in this page keeps the client from acknowledging it. Entry by entry what
    /// comes before it gets through.
    private mutating func startSingles(_ actions: inout [SessionAction]) {
        singleThrough = head
        guard !isPoisonTold, let key else { return }
        isPoisonTold = true
        actions.append(.log(.poisonPage(key, after: sent)))
    }

    // MARK: - ACK

    private mutating func receivedAck(
        _ body: Ack, request: UInt16, now: Instant, _ actions: inout [SessionAction]
    ) {
        guard role == .app else {
            // Its ranges count as delivered; its `applied` is the app's to tell (SES-17).
            guard body.reads.isEmpty else {
                return refuse(.ack, .forbidden, request: request, &actions)
            }
            ack.merge(
                body.ranges, request: request, rangesMax: limits.receiptsPerWrite)
            ack.isUrgent = ack.isUrgent || !body.ranges.isEmpty
            return
        }
        guard !areTooMany(body.reads) else {
            return refuse(.ack, .limit, request: request, &actions)
        }
        switch renewal {
        case .none: break
        // Numbers of the history that the device comes from (SYN-33).
        case .awaited: return
        case .sent: renewal = .none
        }
        ack.merge(body.ranges, request: request, rangesMax: limits.receiptsPerWrite)
        ack.merge(body.reads, rangesMax: limits.receiptsPerWrite)
        if !body.ranges.isEmpty || !body.reads.isEmpty { ack.isUrgent = true }
        if body.applied <= head {
            takeApplied(body.applied, now: now, &actions)
        } else if body.applied > ack.claim ?? 0 {
            ack.claim = body.applied
            ack.claimRequest = request
            ack.isUrgent = true
        }
    }

    /// `applied`, which is at or below head: raises what it raises, and decides when it is
    /// persisted: at once if it covers something visible, if the device had push rows, or for the
    /// first completed sync of the connection (a device may have to recover); else soon.
    mutating func takeApplied(
        _ newApplied: UInt64, now: Instant, _ actions: inout [SessionAction]
    ) {
        if let first = completeFirst, newApplied >= first {
            completeFirst = completeLast > newApplied ? completeLast : nil
            ack.completesSync = true
            if !hasCompleted {
                hasCompleted = true
                ack.isUrgent = true
            }
        }
        guard newApplied > applied else { return }
        let isPushed = hadPushRows || watch.isSuspect || mode == .dormant
        raiseApplied(to: newApplied, now: now, &actions)
        if let first = visibleFirst, newApplied >= first {
            visibleFirst = newApplied < visibleLast ? newApplied + 1 : nil
            ack.isUrgent = true
        }
        // A device whose session did not count may have been pushed to meanwhile.
        if isPushed {
            hadPushRows = true
            ack.isUrgent = true
        }
        if persistAt == nil { persistAt = now + limits.lazyPersist }
    }

    mutating func raiseApplied(
        to newApplied: UInt64, now: Instant, _ actions: inout [SessionAction]
    ) {
        applied = newApplied
        if let through = singleThrough, newApplied >= through { singleThrough = nil }
        sent = max(sent, newApplied)
        window.acknowledged(newApplied, limits, now: now)
        if let asked = askedHead, asked <= newApplied { askedHead = nil }
        watch.update(isCovered: applied >= told, rose: true, limits: limits, now: now)
        trustIfCovered(&actions)
    }

    private mutating func trustIfCovered(_ actions: inout [SessionAction]) {
        guard watch.isSuspect, applied >= told else { return }
        watch.trust()
        if appState == nil { appState = PendingAppState() }
        actions.append(.log(.trusted))
    }
}
