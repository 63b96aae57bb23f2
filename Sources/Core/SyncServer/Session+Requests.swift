public import Feed
public import Model
import Wire

// Requests of an open session and their way through the store.
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
        guard phase != .ended else { return }
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

    private mutating func answered(_ request: QueuedRequest) {
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
            reset: answer.reset, resetAfter: answer.resetAfter)
        // SYN-26: who has to wait gets no page yet either.
        if answer.reset != nil, takesSnapshots || answer.resetAfter > 0 {
            return sendSnapshotReset(told, now: now, &actions)
        }
        hasSynced = true
        var bytes = window.room ?? window.pageBytes
        if answer.deliveryFailures > RuleLimits().deliveryTries { startSingles(&actions) }
        if singleThrough != nil { bytes = 1 }
        if sync.pageBytes > 0 { bytes = min(bytes, Int(clamping: sync.pageBytes)) }
        startPage(.answer(told), after: base, bytes: bytes, &actions)
    }

    /// MSG-7: the last thing a device is told that has logged out in a SYNC. Nothing of the feed
    /// is read for it any more.
    private func sendResults(
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
        window.acknowledged(newApplied, now: now)
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

    // MARK: - The one write at a time

    /// Asks the store the next thing, if it is not at work for this session.
    mutating func pumpWrites(now: Instant, _ actions: inout [SessionAction]) {
        guard write == nil, key != nil || abandoned != nil else { return }
        if let storeRetryAt {
            guard now >= storeRetryAt else { return }
            self.storeRetryAt = nil
        }
        if let abandoned { return ask(.abandonSession(abandoned), .abandon(abandoned), &actions) }
        guard let key else { return }
        if let state = appState {
            appState = nil
            let request = ChangeAppState(
                session: key, appState: state.switches, dormantAfter: dormantAfter(now: now))
            return ask(.changeAppState(request), .appState(state), &actions)
        }
        if writeReauthentication(key, now: now, &actions) { return }
        if ack.isUrgent || (phase == .ended && ack.count > 0) {
            return writeAck(key, &actions)
        }
        if let end {
            return ask(.endSession(end), .end(end), &actions)
        }
        while phase == .open, reauthentication == nil, !queue.isEmpty {
            switch queue.removeFirst() {
            case .sync(let request, let sync):
                let (allowed, refused) = withHeldRefused(sync)
                return ask(
                    .sync(
                        SyncWrite(session: key, sync: allowed, freshEpochHalf: freshEpochHalf())),
                    .sync(request: request, sync, refused: refused, appliedBefore: applied),
                    &actions)
            case .mutation(let request, let mutation):
                if renewal != .none || mutation.number > heldAt ?? .max {
                    answered(.mutation(request: request, mutation))
                    actions.append(
                        .send(Frame(.mutationResult(refusedForNow(mutation)), request: request)))
                    continue
                }
                return ask(
                    .mutate(Mutate(session: key, mutation: mutation)),
                    .mutation(request: request, mutation), &actions)
            }
        }
    }

    mutating func ask(
        _ request: StoreRequest, _ subject: WriteInFlight.Subject,
        _ actions: inout [SessionAction]
    ) {
        let tag = nextTag()
        write = WriteInFlight(tag: tag, subject: subject)
        actions.append(.store(tag, request))
    }

    private mutating func writeAck(_ key: SessionKey, _ actions: inout [SessionAction]) {
        let pending = ack.takeBatch(
            limits.receiptsPerWrite, reads: min(limits.readsPerWrite, limits.receiptsPerWrite))
        persistAt = nil
        // An extension's `applied` is the app's to tell (SES-17).
        let asked = role == .app ? max(pending.claim ?? 0, applied) : 0
        let request = Acknowledge(
            session: key, applied: asked, ranges: pending.ranges, reads: pending.reads,
            completesSync: pending.completesSync)
        self.ask(.acknowledge(request), .acknowledge(pending, applied: asked), &actions)
    }

    /// MSG-11: what is behind a refused one is refused here, so that nothing overtakes it.
    private func withHeldRefused(_ sync: SyncFrame) -> (SyncFrame, [MutationResult]) {
        guard let heldAt else { return (sync, []) }
        var allowed = sync
        let isBack = sync.mutations.contains { $0.number == heldAt }
        allowed.mutations = sync.mutations.filter { isBack || $0.number <= heldAt }
        let refused = sync.mutations.filter { !isBack && $0.number > heldAt }
        return (allowed, refused.map { refusedForNow($0) })
    }

    private func refusedForNow(
        _ mutation: Mutation, _ code: Code = .unavailable, retryAfter: Milliseconds? = nil
    ) -> MutationResult {
        MutationResult(
            number: mutation.number, code: code.rawValue, retry: code.retryClass,
            retryAfterMs: UInt32(clamping: retryAfter ?? limits.retryAfter))
    }

    /// Remembers the first mutation refused for a time, and forgets it when it is answered.
    private mutating func note(_ results: [MutationResult]) {
        for result in results {
            if (1000..<1100).contains(result.code) {
                heldAt = min(heldAt ?? result.number, result.number)
            } else if result.number == heldAt {
                heldAt = nil
            }
        }
    }

    // MARK: - The store's answers

    /// The store carried a request out. `wall` is the store's clock.
    public mutating func storeAnswered(
        _ tag: RequestTag, _ answer: StoreAnswer, now: Instant, wall: Timestamp
    ) -> [SessionAction] {
        guard let write, write.tag == tag else { return [] }
        if case .failed(let error) = answer {
            // The opening itself stands, a mutation behind it does not.
            if write.subject == .open { abandonOpening() }
            return storeFailed(tag, error, now: now)
        }
        self.write = nil
        var actions: [SessionAction] = []
        switch (write.subject, answer) {
        case (.open, .opened(let opened)): self.opened(opened, now: now, wall: wall, &actions)
        case (.open, .refused(let code, _)): openRefused(code, now: now, &actions)
        case (.reauthenticate, .opened(let opened)):
            reauthenticated(opened, now: now, wall: wall, &actions)
        case (.end, _): end = nil
        case (.abandon, _): abandoned = nil
        case (_, .superseded):
            ack = PendingAck()
            appState = nil
            end = nil
            close(.superseded, rowIsGone: true, now: now, &actions)
        case (.sync(let request, let sync, let refused, let before), .synced(let synced)):
            answered(.sync(request: request, sync))
            if !synced.reset.isOfAnotherHistory { note(synced.results) }
            guard phase == .open else { break }
            if synced.reset == .epochChanged, sync.cursor?.epoch == epoch {
                // SYN-24: another device made the store draw a new epoch since this one was told
                // its own.
                close(.epochChanged, now: now, &actions)
                break
            }
            // The store lowers `applied` when the device came with an older cursor; an ACK that
            // came since the SYNC is newer than that.
            let newer = applied > before ? applied : 0
            takePosition(synced)
            if newer > applied, newer <= head { takeApplied(newer, now: now, &actions) }
            if endAfterLogout != nil {
                sendResults(
                    synced.results + refused, of: sync, request: request, synced, &actions)
                break
            }
            answerSync(
                sync, request: request, synced, refused: refused, now: now, &actions)
        case (.sync(let request, let sync, _, _), .refused(let code, let detail)):
            answered(.sync(request: request, sync))
            refuse(.sync, code, request: request, detail: detail, &actions)
        case (.mutation(let request, let mutation), .mutated(let result, let floor)):
            answered(.mutation(request: request, mutation))
            note([result])
            mutationFloor = max(mutationFloor, floor)
            guard phase == .open else { break }
            actions.append(.send(Frame(.mutationResult(result), request: request)))
        case (.mutation(let request, let mutation), .refused(let code, _)):
            answered(.mutation(request: request, mutation))
            let result = MutationResult(
                number: mutation.number, code: code.rawValue, retry: code.retryClass)
            note([result])
            guard phase == .open else { break }
            actions.append(.send(Frame(.mutationResult(result), request: request)))
        case (.acknowledge(let pending, let asked), .acknowledged(let newHead)):
            head = max(head, newHead)
            if pending.claim != nil, asked <= head { takeApplied(asked, now: now, &actions) }
            persisted = max(persisted, asked)
            if persisted >= applied { persistAt = nil }
        case (.acknowledge(var pending, _), .refused(let code, let detail)):
            refuse(.ack, code, request: pending.claimRequest, detail: detail, &actions)
            if pending.claim != nil {
                // Only the claim was wrong: the rest is written without it.
                pending.claim = nil
                ack.restore(pending, rangesMax: limits.receiptsPerWrite)
            } else if persisted < applied {
                persistAt = now + limits.lazyPersist
            }
        case (.appState, .done): break
        case (_, .refused(let code, _)): close(code, now: now, &actions)
        default: close(.internal, now: now, &actions)
        }
        if let endAfterLogout {
            close(endAfterLogout, rowIsGone: true, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The store could not carry a request out; nothing was written, a part of it, or it is
    /// unknown whether.
    public mutating func storeFailed(
        _ tag: RequestTag, _ error: StoreError, now: Instant
    ) -> [SessionAction] {
        guard write?.tag == tag else { return [] }
        let code: Code =
            switch error {
            case .full, .conflict: .storageBusy
            case .unavailable: .unavailable
            case .corrupt: .internal
            }
        let log = [SessionAction.log(.storeFailed(error))]
        if case .unavailable = error, write?.subject == .open { abandonOpening() }
        return log + failed(tag, code, retryAfter: nil, now: now)
    }

    /// A session row may stand that no connection has: it is given up in the store.
    private mutating func abandonOpening() {
        guard let device = hello.device else { return }
        abandoned = AbandonSession(
            app: AppID(hello.app), device: device, role: role, boot: configuration.boot,
            connectedAt: connectedAt.milliseconds, expectedWithin: limits.returnTime)
    }

    /// The shell did not ask the store, for this user or app asks too much (CON-15).
    public mutating func storeLimited(
        _ tag: RequestTag, retryAfter: Milliseconds, now: Instant
    ) -> [SessionAction] {
        failed(tag, .rateLimited, retryAfter: retryAfter, now: now)
    }

    private mutating func failed(
        _ tag: RequestTag, _ code: Code, retryAfter: Milliseconds?, now: Instant
    ) -> [SessionAction] {
        guard let write, write.tag == tag else { return [] }
        self.write = nil
        var actions: [SessionAction] = []
        switch write.subject {
        case .open, .reauthenticate:
            close(code, retryAfter: retryAfter, now: now, &actions)
        case .sync(let request, let sync, _, _):
            answered(.sync(request: request, sync))
            if let first = sync.mutations.first {
                heldAt = min(heldAt ?? first.number, first.number)
            }
            if phase == .open {
                refuse(
                    .sync, code, request: request, detail: "store", retryAfter: retryAfter,
                    &actions)
            }
        case .mutation(let request, let mutation):
            answered(.mutation(request: request, mutation))
            let result = refusedForNow(
                mutation, code == .internal ? .unavailable : code, retryAfter: retryAfter)
            note([result])
            if phase == .open {
                actions.append(.send(Frame(.mutationResult(result), request: request)))
            }
        case .acknowledge(let pending, _):
            ack.restore(pending, rangesMax: limits.receiptsPerWrite)
            storeRetryAt = now + limits.storeRetry
        case .appState(let state):
            var older = state
            older.merge(appState?.switches)
            appState = older
            storeRetryAt = now + limits.storeRetry
        case .end(let request):
            end = request
            storeRetryAt = now + limits.storeRetry
        case .abandon(let request):
            abandoned = request
            storeRetryAt = now + limits.storeRetry
        }
        settle(now: now, &actions)
        return actions
    }
}
