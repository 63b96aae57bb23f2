public import Feed
public import Model
import Wire

// What a session has written, one thing at a time, and what the store answers.
extension Session {
    /// Asks the store the next thing, if it is not at work for this session.
    mutating func pumpWrites(now: Instant, _ actions: inout [SessionAction]) {
        let closing = phase.closing
        guard write == nil, key != nil || closing?.abandoned != nil else { return }
        if let storeRetryAt {
            guard now >= storeRetryAt else { return }
            self.storeRetryAt = nil
        }
        if let abandoned = closing?.abandoned {
            return ask(.abandonSession(abandoned), .abandon(abandoned), &actions)
        }
        guard let key else { return }
        if let state = appState {
            appState = nil
            let request = ChangeAppState(
                session: key, appState: state.switches, dormantAfter: dormantAfter(now: now))
            return ask(.changeAppState(request), .appState(state), &actions)
        }
        if writeReauthentication(key, now: now, &actions) { return }
        if ack.isUrgent || (closing != nil && ack.count > 0) {
            return writeAck(key, &actions)
        }
        if let end = closing?.end {
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
            return storeFailed(tag, error, mayStand: true, now: now)
        }
        self.write = nil
        var actions: [SessionAction] = []
        switch (write.subject, answer) {
        case (.open, .opened(let opened)): self.opened(opened, now: now, wall: wall, &actions)
        case (.open, .refused(let code, _)): openRefused(code, now: now, &actions)
        case (.reauthenticate, .opened(let opened)):
            reauthenticated(opened, now: now, wall: wall, &actions)
        case (.end, _): phase.closing?.end = nil
        case (.abandon, _): phase.closing?.abandoned = nil
        case (_, .ended(let code)):
            ack = PendingAck()
            appState = nil
            phase.closing?.end = nil
            close(code, rowIsGone: true, now: now, &actions)
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
        let isUnknown = if case .unavailable = error { true } else { false }
        return storeFailed(tag, error, mayStand: isUnknown, now: now)
    }

    /// - Parameter mayStand: an opening may have been written.
    private mutating func storeFailed(
        _ tag: RequestTag, _ error: StoreError, mayStand: Bool, now: Instant
    ) -> [SessionAction] {
        guard write?.tag == tag else { return [] }
        let code: Code =
            switch error {
            case .full, .conflict: .storageBusy
            case .unavailable: .unavailable
            case .corrupt: .internal
            }
        let log = [SessionAction.log(.storeFailed(error))]
        return log + failed(tag, code, retryAfter: nil, mayStand: mayStand, now: now)
    }

    /// The shell did not ask the store, for this user or app asks too much (CON-15).
    public mutating func storeLimited(
        _ tag: RequestTag, retryAfter: Milliseconds, now: Instant
    ) -> [SessionAction] {
        failed(tag, .rateLimited, retryAfter: retryAfter, mayStand: false, now: now)
    }

    private mutating func failed(
        _ tag: RequestTag, _ code: Code, retryAfter: Milliseconds?, mayStand: Bool, now: Instant
    ) -> [SessionAction] {
        guard let write, write.tag == tag else { return [] }
        self.write = nil
        var actions: [SessionAction] = []
        switch write.subject {
        case .open(let abandon):
            close(code, retryAfter: retryAfter, now: now, &actions)
            // A session row may stand that no connection has: it is given up in the store.
            if mayStand { phase.closing?.abandoned = abandon }
        case .reauthenticate: close(code, retryAfter: retryAfter, now: now, &actions)
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
            phase.closing?.end = request
            storeRetryAt = now + limits.storeRetry
        case .abandon(let request):
            phase.closing?.abandoned = request
            storeRetryAt = now + limits.storeRetry
        }
        settle(now: now, &actions)
        return actions
    }
}
