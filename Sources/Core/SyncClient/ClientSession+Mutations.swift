public import Model
public import Wire

// The outbox: what the user did and the server has not answered for good, and what was read.
extension ClientSession {
    /// The cursor, where it is of the server's history: nothing of another one is acknowledged
    /// (SYN-14).
    var sharedCursor: Cursor? {
        guard let serverEpoch, let cursor else { return cursor }
        return cursor.epoch == serverEpoch ? cursor : nil
    }

    /// HIS-21: what waits goes behind what a restored server has lost, and the snapshot tells
    /// what that is.
    var holdsMutations: Bool {
        guard let snapshot else { return false }
        return (snapshot.stored?.resendSince ?? snapshot.resendSince) != nil
    }

    /// `LocalStore.enqueue` gave this number.
    public mutating func mutationQueued(_ number: UInt64, now: Instant) -> [ClientAction] {
        queuedThrough = max(queuedThrough, number)
        var actions: [ClientAction] = []
        load(&actions)
        return actions
    }

    /// `LocalStore.addRead` took this receipt, which says something new.
    public mutating func readQueued(_ receipt: ReadReceipt, now: Instant) -> [ClientAction] {
        func merge(into list: inout [ReadReceipt]) {
            if let index = list.firstIndex(where: { $0.subject == receipt.subject }) {
                list[index].merge(receipt)
            } else {
                list.append(receipt)
            }
        }
        merge(into: &reads)
        merge(into: &unsentReads)
        var actions: [ClientAction] = []
        sendReads(now: now, &actions)
        return actions
    }

    /// Sends what came after the last HELLO or SYNC had been written. Not beside an open SYNC:
    /// its answer may tell of another epoch, in which these positions are none (SYN-32).
    mutating func sendReads(now: Instant, _ actions: inout [ClientAction]) {
        guard phase == .open, let cursor = sharedCursor, openSync == nil, changesInFlight.isEmpty
        else { return }
        while !unsentReads.isEmpty {
            let some = firstOfSync(unsentReads)
            unsentReads.removeFirst(some.count)
            send(.ack(Ack(applied: cursor.seq, reads: some)), now: now, &actions)
        }
    }

    /// `LocalStore.endReads` dropped these: they are not said again.
    public mutating func readsEnded(_ ended: [ReadReceipt], now: Instant) -> [ClientAction] {
        let dropped = Dictionary(ended.map { ($0.subject, $0) }) { $1 }
        reads.removeAll { dropped[$0.subject] == $0 }
        unsentReads.removeAll { dropped[$0.subject] == $0 }
        return []
    }

    /// SYN-32; the store does the same with what it keeps, when it takes the reset.
    mutating func dropReads(unlessOf epoch: Epoch) {
        let held = applying?.epoch ?? cursor?.epoch ?? snapshot?.stored?.start.epoch
        guard let held, held != epoch else { return }
        reads.removeAll { $0.conversation != nil }
        unsentReads.removeAll { $0.conversation != nil }
    }

    /// The receipts that fit: a frame that is too large, or has too many elements, ends the
    /// connection, and the next one would carry the same.
    func first(of reads: [ReadReceipt], _ count: Int, bytes: Int) -> [ReadReceipt] {
        var left = bytes
        return Array(
            reads.prefix(count).prefix { receipt in
                left -= receipt.approximateBytes
                return left >= 0
            })
    }

    /// Those of a SYNC or an ACK: one at least.
    func firstOfSync(_ reads: [ReadReceipt]) -> [ReadReceipt] {
        let some = first(of: reads, limits.syncReads, bytes: limits.syncReadBytes)
        return some.isEmpty ? Array(reads.prefix(1)) : some
    }

    /// Why no server takes it, whatever connection it is sent on.
    private func refusal(of mutation: Mutation) -> Code? {
        let body = mutation.encoded
        if body.count > bodyBytes { return .tooLarge }
        let isRead = (try? Mutation(encoded: body, limits: .afterWelcome)) != nil
        return isRead ? nil : .limit
    }

    /// `LocalStore.enqueue` was told that this one leaves.
    public mutating func marked(through number: UInt64) {
        markedThrough = max(markedThrough, number)
    }

    /// The store is to know before anything up to this number leaves.
    mutating func markSent(through number: UInt64?, _ actions: inout [ClientAction]) {
        guard let number, number > markedThrough else { return }
        markedThrough = number
        actions.append(.markSent(through: number))
    }

    /// `LocalStore.withdraw` took these out of the outbox; the last is of a deletion.
    public mutating func withdrawn(
        _ results: [MutationResult], now: Instant
    ) -> [ClientAction] {
        let numbers = Set(results.map(\.number))
        outbox.removeAll { numbers.contains($0.mutation.number) }
        queuedThrough = max(queuedThrough, results.last?.number ?? 0)
        var actions: [ClientAction] = []
        load(&actions)
        return actions
    }

    /// Asks the store for mutations while there is room for them.
    mutating func load(_ actions: inout [ClientAction]) {
        guard !isLoading, queuedThrough > loadedThrough, outbox.count < mutationsMax,
            configuration.role == .app
        else { return }
        isLoading = true
        actions.append(
            .loadMutations(after: loadedThrough, limit: mutationsMax - outbox.count))
    }

    /// What `LocalStore.mutations` gave.
    public mutating func mutationsLoaded(
        _ mutations: [Mutation], now: Instant
    ) -> [ClientAction] {
        var actions: [ClientAction] = []
        guard isLoading else { return actions }
        isLoading = false
        if mustReload {
            mustReload = false
            load(&actions)
            return actions
        }
        for mutation in mutations where mutation.number > loadedThrough {
            outbox.append(Outgoing(mutation: mutation, loadedAt: now))
            loadedThrough = mutation.number
        }
        // Nothing is left up to where the queue was known to go.
        if mutations.isEmpty { loadedThrough = queuedThrough }
        sendMutations(now: now, &actions)
        return actions
    }

    /// `LocalStore.renumberMutations` is done: the outbox is read anew.
    public mutating func mutationsRenumbered(
        last: UInt64, now: Instant
    ) -> [ClientAction] {
        var actions: [ClientAction] = []
        queuedThrough = max(queuedThrough, last)
        renumberings += 1
        if renumberings > 1 {
            // The numbers are fresh: no other life of this device can have taken them.
            let delay = limits.mutationRetry << min(renumberings, 16)
            outboxRetryAt = now + min(delay, limits.longestWait)
        }
        load(&actions)
        return actions
    }

    /// Reads the outbox from the store again: numbers in it have changed, or are not known.
    mutating func reloadOutbox() {
        outbox = []
        takenFrom = nil
        surelyTakenFrom = nil
        loadedThrough = 0
        outboxRetryAt = nil
        mustReload = isLoading
    }

    /// Gives what another life's numbers were taken from new ones, in order, as soon as it is
    /// known of everything at or below the floor whether it was done (MSG-12).
    private mutating func renumberTaken(_ actions: inout [ClientAction]) {
        guard let first = takenFrom else { return }
        let isSettled =
            outbox.first.map { $0.mutation.number > floor } ?? (queuedThrough <= loadedThrough)
        guard isSettled else { return load(&actions) }
        reloadOutbox()
        actions.append(.renumberMutations(from: first, above: floor))
    }

    /// Whether the result is of an operation of another life of this device. Below the floor the
    /// server may give a result from before, and say of whose by its object only.
    private mutating func isOfAnotherLife(_ result: MutationResult, _ mutation: Mutation) -> Bool {
        guard result.code != Code.resultGone.rawValue else {
            // What stands behind a number that this life has not sent was not sent either.
            if let taken = surelyTakenFrom, taken < mutation.number { return result.position == 0 }
            // Ids make it safe to send it again; of other operations nothing is known.
            return mutation.number <= floor && mutation.isCreation && result.position == 0
        }
        let isAnothers =
            mutation.number <= floor && !mutation.isDistinct && !result.object.isEmpty
            && !mutation.object.isEmpty && result.object != mutation.object
        guard isAnothers || result.code == Code.numberTaken.rawValue else { return false }
        surelyTakenFrom = min(surelyTakenFrom ?? .max, mutation.number)
        return true
    }

    func mutation(at index: Int, now: Instant) -> Mutation {
        var mutation = outbox[index].mutation
        let waited = now.since(outbox[index].loadedAt)
        mutation.delayMs = UInt32(clamping: UInt64(mutation.delayMs).addingClamped(waited))
        return mutation
    }

    mutating func sendMutations(now: Instant, _ actions: inout [ClientAction]) {
        guard phase == .open, outboxRetryAt == nil, !holdsMutations else { return }
        // MSG-12: numbers above the floor wait for the results of those below it.
        let isSettled = takenFrom == nil && outbox.first?.mutation.number ?? .max > floor
        for index in outbox.indices where !outbox[index].isSent {
            guard isSettled || outbox[index].mutation.number <= floor else { break }
            let outgoing = mutation(at: index, now: now)
            if let code = refusal(of: outgoing) {
                // It would end every connection it is sent on.
                let refused = MutationResult(
                    number: outgoing.number, code: code.rawValue, retry: code.retryClass)
                return take([refused], now: now, &actions)
            }
            guard mayLeave(outgoing, &actions) else { break }
            markSent(through: outbox.last?.mutation.number, &actions)
            if !awaitsAnswer { quietSince = now }
            outbox[index].isSent = true
            if outgoing.isLogout { hasSentLogout = true }
            send(.mutate(outgoing), request: nextRequest(), now: now, &actions)
        }
        load(&actions)
    }

    /// Final results leave the outbox; after one that was refused for a time, everything from it
    /// on is sent again, in order (MSG-11).
    mutating func take(
        _ results: [MutationResult], now: Instant, _ actions: inout [ClientAction]
    ) {
        var final: [MutationResult] = []
        var logout: UInt64?
        for result in results {
            guard let index = outbox.firstIndex(where: { $0.mutation.number == result.number })
            else { continue }
            if result.code != 0, result.isTemporary {
                for later in index..<outbox.count { outbox[later].isSent = false }
                let delay = max(limits.mutationRetry, asked(result.retryAfterMs))
                outboxRetryAt = max(outboxRetryAt ?? now, now + delay)
            } else if isOfAnotherLife(result, outbox[index].mutation) {
                takenFrom = min(takenFrom ?? .max, outbox.remove(at: index).mutation.number)
            } else {
                let done = outbox.remove(at: index)
                if done.mutation.isLogout {
                    if result.code == 0 { logout = result.number }
                    hasSentLogout = false
                }
                final.append(result)
            }
        }
        if !final.isEmpty {
            renumberings = 0
            actions.append(.saveResults(final))
        }
        if let logout { return logOut(logout, &actions) }
        renumberTaken(&actions)
        sendMutations(now: now, &actions)
    }
}

extension MutationResult {
    /// The same number may be sent again (MSG-11).
    var isTemporary: Bool {
        switch Code(rawValue: code)?.retryClass ?? retry {
        case .retry, .retryAfter: true
        case .none, .reauthenticate, .resync, .upgrade: false
        }
    }
}

extension Mutation {
    /// It makes an object whose id is the client's.
    fileprivate var isCreation: Bool {
        switch operation {
        case .createConversation, .sendMessage: true
        default: false
        }
    }

    /// Its result may name another conversation (MSG-24).
    fileprivate var isDistinct: Bool {
        if case .createConversation(let create) = operation { create.distinct } else { false }
    }
}
