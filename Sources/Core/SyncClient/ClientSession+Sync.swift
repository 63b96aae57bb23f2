public import Model
public import Wire

// Frames of the server, and what the local store answers.
extension ClientSession {
    /// One whole frame came.
    public mutating func received(_ frame: Frame, now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        switch phase {
        case .idle, .waiting, .connecting: return []
        case .opening, .authenticating, .open: break
        }
        (pingedAt, isOnNewNetwork) = (nil, false)
        quietSince = now
        switch frame.body {
        case .challenge(let challenge): receivedChallenge(challenge, now: now, &actions)
        case .welcome(let welcome): receivedWelcome(welcome, now: now, &actions)
        case .delta(let delta):
            receivedDelta(delta, request: frame.request, now: now, &actions)
        case .syncRequest(let request): receivedSyncRequest(request, now: now, &actions)
        case .mutationResult(let result): take([result], now: now, &actions)
        case .ping:
            send(
                .pong(Pong(nextMs: UInt32(clamping: keepalive))), request: frame.request,
                now: now, &actions)
        case .pong: break
        case .drain(let drain):
            slotAt = now + slot(of: drain, now: now)
            actions.append(.report(.drained(slot: asked(drain.slotMs))))
        case .error(let error):
            receivedError(error, request: frame.request, now: now, &actions)
        case .close(let close):
            // The socket's end follows.
            closeFrame = close
        case .signal(let signal): receivedSignal(signal, now: now, &actions)
        case .page(let page):
            receivedPage(page, request: frame.request, now: now, &actions)
        case .snapshotPage(let page):
            receivedSnapshotPage(page, request: frame.request, now: now, &actions)
        case .digestResult(let result):
            receivedDigest(result, request: frame.request, now: now, &actions)
        case .hello, .authenticate, .sync, .ack, .mutate, .appState, .fetch, .snapshot, .digest:
            // Of a client.
            breakOff(.protocolViolation, now: now, &actions)
        }
        return actions
    }

    /// The bytes that came are no frames.
    public mutating func decodingFailed(_ error: WireError, now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        breakOff(error.code, now: now, &actions)
        return actions
    }

    mutating func breakOff(
        _ code: Code, now: Instant, _ actions: inout [ClientAction]
    ) {
        let close = Close(
            code: code.rawValue, retry: code.retryClass, applied: sharedCursor?.seq ?? 0)
        send(.close(close), now: now, &actions)
        giveUp(now: now, &actions)
    }

    // MARK: - Login

    mutating func sayHello(now: Instant, _ actions: inout [ClientAction]) {
        if configuration.role == .extension { return sayExtensionHello(now: now, &actions) }
        if isLeaving { return sayLeavingHello(now: now, &actions) }
        var bytes = 0
        var inline: [Mutation] = []
        for index in outbox.indices where !holdsMutations {
            bytes += outbox[index].mutation.contentBytes
            // A logout goes alone: of a HELLO that is not answered nobody knows whether it was read
            // (SES-8), and so whether a challenge is what the logout came to.
            guard bytes <= limits.helloMutationBytes, !outbox[index].mutation.isLogout else {
                break
            }
            outbox[index].isSent = true
            inline.append(mutation(at: index, now: now))
        }
        markSent(through: inline.last?.number, &actions)
        var sync = SyncFrame(
            cursor: cursor, applied: cursor?.seq ?? 0, mode: .advance,
            reads: first(of: reads, limits.helloReads, bytes: limits.helloReadBytes),
            mutations: inline, reason: syncReason,
            resetHead: cursor == nil ? 0 : resetHead)
        // With little time the newest first; the rest follows.
        isPeeking =
            configuration.peeksOnWake && syncReason == .wake && appState.phase == .background
            && cursor != nil && sync.reads.isEmpty && inline.isEmpty
        if isPeeking { sync = peekFrame }
        unsentReads = Array(reads.dropFirst(sync.reads.count))
        syncReads = sync.reads
        let hello = Hello(
            versionMin: 1, versionMax: 1, app: configuration.app, device: configuration.device,
            role: .app, clientName: configuration.clientName,
            clientVersion: configuration.clientVersion,
            features: (configuration.wantsLive ? ["live"] : [])
                + (configuration.wantsSnapshots ? ["snapshot"] : [])
                + (configuration.wantsSignals ? ["signal"] : []), sessionToken: sessionToken,
            appState: appState, push: configuration.push, sync: sync, wake: wake,
            locale: configuration.place.locale, timeZone: configuration.place.timeZone,
            utcOffset: configuration.place.utcOffset)
        (presentedPush, presentedPlace) = (configuration.push, configuration.place)
        helloState = appState
        let request = nextRequest()
        quietSince = now
        openSync = request
        send(.hello(hello), request: request, now: now, &actions)
    }

    /// An extension peeks, beside the app's own session (SES-17).
    private mutating func sayExtensionHello(now: Instant, _ actions: inout [ClientAction]) {
        let hello = Hello(
            versionMin: 1, versionMax: 1, app: configuration.app, device: configuration.device,
            role: .extension, clientName: configuration.clientName,
            clientVersion: configuration.clientVersion, sessionToken: sessionToken,
            sync: peekFrame)
        let request = nextRequest()
        quietSince = now
        openSync = request
        isPeeking = true
        send(.hello(hello), request: request, now: now, &actions)
    }

    private mutating func receivedChallenge(
        _ challenge: Challenge, now: Instant, _ actions: inout [ClientAction]
    ) {
        if case .opening = phase, challenge.reason == .revoked, !sessionToken.isEmpty,
            let number = sentLogout
        {
            // The token is gone: the logout took effect on an earlier connection.
            return logOut(number, &actions)
        }
        if phase == .open {
            // SES-21: nothing was dropped; what is open is answered after WELCOME.
            isRechallenged = true
            pingedAt = nil
        } else if !isRechallenged {
            // The inline SYNC was dropped unread (SES-8).
            openSync = nil
            syncReads = []
            isPeeking = false
            for index in outbox.indices { outbox[index].isSent = false }
        }
        if isLeaving {
            // Nobody is here who could log in, and what the token let in is over.
            let logout = outbox.first { $0.mutation.isLogout }
            return logOut(logout?.mutation.number ?? 0, &actions)
        }
        guard mayBeChallenged(now: now) else { return giveUp(now: now, &actions) }
        phase = .authenticating(until: now + limits.syncTimeout)
        actions.append(
            .needIdentityToken(
                nonce: challenge.nonce, lifetime: Milliseconds(challenge.lifetimeMs)))
    }

    private mutating func receivedWelcome(
        _ welcome: Welcome, now: Instant, _ actions: inout [ClientAction]
    ) {
        switch phase {
        case .authenticating where isRechallenged:
            return goOn(welcome, now: now, &actions)
        case .opening, .authenticating: break
        case .idle, .waiting, .connecting, .open:
            return breakOff(.protocolViolation, now: now, &actions)
        }
        guard welcome.mutationFloor <= Self.mutationFloorMax else {
            return breakOff(.protocolViolation, now: now, &actions)
        }
        guard isExpected(welcome.user, now: now, &actions) else { return }
        phase = .open
        serverEpoch = welcome.epoch
        floor = welcome.mutationFloor
        slotAt = nil
        wake = nil
        isLive = welcome.features.contains("live")
        takesSnapshots = welcome.features.contains("snapshot")
        serverTime = Timestamp(milliseconds: welcome.serverTimeMs)
        maySignal = welcome.features.contains("signal")
        if welcome.keepaliveMs > 0 { keepalive = interval(welcome.keepaliveMs) }
        bodyBytes = FrameLimits.afterWelcome.bodyBytes
        if let told = welcome.limits {
            if told.bodyBytes > 0 {
                // FRM-13: less than every server takes counts as that.
                let least = FrameLimits.beforeWelcome.bodyBytes
                bodyBytes = min(bodyBytes, max(least, Int(clamping: told.bodyBytes)))
            }
            if told.mutationsUnanswered > 0 {
                mutationsMax = min(
                    limits.mutationsUnanswered, Int(clamping: told.mutationsUnanswered))
            }
        }
        actions.append(.raiseLimits(FrameLimits.afterWelcome))
        sessionToken = welcome.sessionToken
        actions.append(.saveSession(token: welcome.sessionToken, user: welcome.user))
        if !user.isEmpty && !user.isExactly(welcome.user) { forgetUser() }
        user = welcome.user
        noteToken(isHeld: welcome.pushTokenHeld, &actions)
        if welcome.mutationFloor > queuedThrough {
            // Numbers of an older life of this device: it is a copy of itself from before.
            wantsDigest = true
            actions.append(.raiseMutationNumbers(above: welcome.mutationFloor))
        }
        actions.append(.report(.opened(user: welcome.user, node: welcome.node)))
        if appState != helloState, configuration.role == .app {
            send(.appState(appState), now: now, &actions)
        }
        if openSync == nil, configuration.role == .extension {
            actions += peek(now: now)
        } else if openSync == nil {
            wantSync(syncReason, now: now, &actions)
        } else {
            syncDeadline = now + limits.syncTimeout
        }
        syncReason = .connect
        sendMutations(now: now, &actions)
        sendFetches(now: now, &actions)
        presentPush(now: now, &actions)
    }

    /// The server has accepted who this is: the session goes on where it stopped.
    private mutating func goOn(
        _ welcome: Welcome, now: Instant, _ actions: inout [ClientAction]
    ) {
        isRechallenged = false
        guard isExpected(welcome.user, now: now, &actions) else { return }
        phase = .open
        serverEpoch = welcome.epoch
        sessionToken = welcome.sessionToken
        actions.append(.saveSession(token: welcome.sessionToken, user: welcome.user))
        actions.append(.report(.reauthenticated))
        send(.appState(appState), now: now, &actions)
        if openSync != nil { syncDeadline = now + limits.syncTimeout }
        if let cursor = sharedCursor, changesInFlight.isEmpty {
            send(.ack(Ack(applied: cursor.seq)), now: now, &actions)
        }
        if wantsSync { startSync(now: now, &actions) }
        sendReads(now: now, &actions)
        sendMutations(now: now, &actions)
        sendFetches(now: now, &actions)
    }

    /// Whether it is whom the app says. Of another user nothing comes here, and nothing of this
    /// one's goes there.
    private mutating func isExpected(
        _ name: String, now: Instant, _ actions: inout [ClientAction]
    ) -> Bool {
        guard let expected = configuration.user, !name.isExactly(expected) else { return true }
        actions.append(.report(.otherUser(name)))
        dropToken(&actions)
        wasHealthy = false
        leaveConnection(&actions)
        wait(now: now, &actions)
        return false
    }

    /// Another user logged in on this device: nothing of the former one may be sent.
    private mutating func forgetUser() {
        cursor = nil
        applying = nil
        changesInFlight = []
        isResetting = false
        historyThrough = 0
        resetHead = 0
        snapshot = nil
        fetches = []
        historyInFlight = []
        reads = []
        unsentReads = []
        outbox = []
        isLeaving = false
        confirmedPush = nil
        hasSentLogout = false
        logoutMark = .none
        takenFrom = nil
        surelyTakenFrom = nil
        loadedThrough = 0
        queuedThrough = 0
    }

    // MARK: - SYNC

    /// A SYNC now, or as soon as none is open.
    mutating func wantSync(
        _ reason: SyncReason, now: Instant, _ actions: inout [ClientAction]
    ) {
        wantsSync = true
        syncReason = reason
        startSync(now: now, &actions)
    }

    mutating func startSync(now: Instant, _ actions: inout [ClientAction]) {
        // The cursor must stand for what is durable: changes on their way come first.
        guard phase == .open, !isLeaving, openSync == nil, syncAt == nil, changesInFlight.isEmpty,
            snapshot?.request == nil, snapshot?.inFlight == nil
        else { return }
        wantsSync = false
        if configuration.role == .extension {
            // All that it may do (SYN-12).
            actions += peek(now: now)
            return
        }
        let request = nextRequest()
        if !awaitsAnswer { quietSince = now }
        openSync = request
        syncDeadline = now + limits.syncTimeout
        let known = withoutCursor ? nil : cursor
        withoutCursor = false
        let sync = SyncFrame(
            cursor: known, applied: known?.seq ?? 0, mode: .advance,
            reads: firstOfSync(reads), reason: syncReason,
            resetHead: known == nil ? 0 : resetHead)
        unsentReads = Array(reads.dropFirst(sync.reads.count))
        syncReads = sync.reads
        syncReason = .timer
        send(.sync(sync), request: request, now: now, &actions)
    }

    private mutating func receivedSyncRequest(
        _ request: SyncRequest, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard phase == .open else { return breakOff(.protocolViolation, now: now, &actions) }
        actions.append(.report(.syncRequested(head: request.head)))
        askedHead = max(askedHead, request.head)
        if let cursor = sharedCursor, cursor.seq >= request.head {
            send(.ack(Ack(applied: cursor.seq)), now: now, &actions)
        } else if openSync == nil, snapshot == nil {
            wantSync(.syncRequest, now: now, &actions)
        }
    }

    /// No device comes to this number; above a higher floor there would soon be none left.
    static let mutationFloorMax: UInt64 = 1 << 62

    /// SYN-13: by comparing cursors, never by counting.
    private mutating func receivedDelta(
        _ delta: Delta, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard phase == .open, let from = delta.from, let to = delta.to, to.seq >= from.seq,
            delta.mutationFloor <= Self.mutationFloorMax
        else {
            return breakOff(.protocolViolation, now: now, &actions)
        }
        let answersSync = request != 0 && request == openSync
        if answersSync {
            openSync = nil
            syncDeadline = nil
            if delta.reset == nil, !syncReads.isEmpty { actions.append(.endReads(syncReads)) }
            syncReads = []
        }
        if answersSync, isPeeking { return receivedPeek(delta, now: now, &actions) }
        take(delta.results, now: now, &actions)
        // A result may have logged this device out.
        guard phase == .open else { return }
        // Pushed during a snapshot: it comes again from the snapshot's start (HIS-20).
        if snapshot != nil, delta.reset == nil { return }
        if delta.digestWanted { wantsDigest = true }
        var marksStale = false
        if delta.reset != nil, from.seq == 0 { historyThrough = delta.head }
        if let reset = delta.reset {
            let wait = asked(reset.retryAfterMs)
            // One that asks for a wait costs no more than the wait does.
            if wait < limits.mutationRetry { resets += 1 }
            guard resets <= limits.resetsOfConnection else {
                wasHealthy = false
                return giveUp(now: now, &actions)
            }
            guard from.seq == 0 else { return wantSync(.timer, now: now, &actions) }
            actions.append(.report(.reset(reset.reason)))
            // A cursor above the head draws a new one in the middle of a session (SYN-24).
            serverEpoch = from.epoch
            let isLost = reset.reason == .epochChanged || reset.reason == .cursorAhead
            dropReads(unlessOf: from.epoch)
            if asksForSnapshot(delta) {
                return beginSnapshot(
                    of: from.epoch, isLost: isLost, after: wait, now: now, &actions)
            }
            if wait > 0 {
                // Nothing is pushed before this client comes again, not even live.
                syncAt = now + wait
                wantsSync = true
            }
            // A snapshot that was begun has left rows behind that have no cursor.
            marksStale = applying != nil || snapshot != nil
            snapshot = nil
            isResetting = isResetting || marksStale
        } else if let applying {
            guard from.epoch == applying.epoch, to.epoch == applying.epoch,
                from.seq <= applying.seq
            else {
                if openSync == nil { wantSync(.timer, now: now, &actions) }
                return
            }
            if to.seq <= applying.seq {
                // Nothing is new but, it may be, the number: a mute ends without an entry.
                if !delta.more, changesInFlight.isEmpty, to.seq == applying.seq {
                    actions.append(.report(.unread(delta.unread)))
                }
                return afterPage(
                    isLast: !delta.more, answersSync: answersSync, isEmpty: true, now: now, &actions
                )
            }
        } else if from.seq != 0 {
            return wantSync(.timer, now: now, &actions)
        }
        apply(
            delta, to: to, marksStale: marksStale, answersSync: answersSync, &actions)
    }

    private mutating func apply(
        _ delta: Delta, to: Cursor, marksStale: Bool, answersSync: Bool,
        _ actions: inout [ClientAction]
    ) {
        let marks = delta.entries.compactMap { ReadMark($0) }
        let sweeps = isResetting && !delta.more
        var began = delta.reset == nil ? nil : historyThrough
        if !delta.more, historyThrough > to.seq {
            // The head is here (SYN-11): a reset that named a higher one was wrong, and what comes
            // from now on would be news to nobody.
            historyThrough = to.seq
            began = to.seq
        }
        applying = to
        changesInFlight.append(
            InFlight(
                to: to, isLast: !delta.more, answersSync: answersSync, sweeps: sweeps, marks: marks,
                unread: delta.more ? nil : delta.unread, resetHead: began))
        actions.append(.report(.delta(entries: delta.entries.count, more: delta.more)))
        actions.append(
            .apply(
                LocalChange(
                    entries: delta.entries, to: to, marksStale: marksStale, sweeps: sweeps,
                    historyThrough: began)))
    }

    /// The oldest change handed over is durable.
    public mutating func committed(now: Instant) -> [ClientAction] {
        guard !changesInFlight.isEmpty else { return [] }
        var actions: [ClientAction] = []
        let change = changesInFlight.removeFirst()
        cursor = change.to
        if let began = change.resetHead { resetHead = began }
        if change.sweeps {
            isResetting = false
            // HIS-23.
            wantsDigest = true
        }
        for mark in change.marks {
            reads.removeAll { mark.covers($0) }
        }
        // SYN-27, before `synced`: whoever stops then has the icon right.
        if changesInFlight.isEmpty, let unread = change.unread {
            actions.append(.report(.unread(unread)))
        }
        // The next one's answer acknowledges both.
        guard phase == .open, changesInFlight.isEmpty else { return actions }
        afterPage(
            isLast: change.isLast, answersSync: change.answersSync, now: now, &actions)
        return actions
    }

    /// Acknowledges where this device stands, or goes on with the next page.
    private mutating func afterPage(
        isLast: Bool, answersSync: Bool, isEmpty: Bool = false, now: Instant,
        _ actions: inout [ClientAction]
    ) {
        guard let cursor, changesInFlight.isEmpty else { return }
        let isPushed = isLive && appState.phase == .foreground
        // SYN-19: told of more during the SYNC.
        let isBehind = isLast && answersSync && cursor.seq < askedHead && !isPushed
        let isToldOfMore = isBehind || (!isLast && !isPushed)
        if !isEmpty || !isToldOfMore { emptyAnswers = 0 }
        if isEmpty, answersSync, !wantsSync, isToldOfMore {
            waitAfterEmptyAnswer(at: cursor, isLast: isLast, now: now)
        } else if openSync == nil, wantsSync || isToldOfMore {
            wantSync(wantsSync ? syncReason : .syncRequest, now: now, &actions)
            if openSync != nil { return }
        }
        send(.ack(Ack(applied: cursor.seq)), now: now, &actions)
        sendReads(now: now, &actions)
        if isLast { wasHealthy = true }
        if isLast, openSync == nil, cursor.seq >= askedHead {
            actions.append(.report(.synced(cursor)))
        }
        if isLast, answersSync { actions.append(.loadOrphans(limit: limits.fetchesPending)) }
        if isLast { startDigest(&actions) }
    }

    /// The server told of more, and its answer has none of it: the next SYNC comes later, each
    /// time twice as late. A head that three answers know nothing of is no longer believed.
    private mutating func waitAfterEmptyAnswer(at cursor: Cursor, isLast: Bool, now: Instant) {
        emptyAnswers += 1
        if isLast, emptyAnswers >= 3 {
            askedHead = cursor.seq
            emptyAnswers = 0
        } else {
            syncAt = now + limits.mutationRetry << min(emptyAnswers - 1, 5)
            wantsSync = true
            syncReason = .syncRequest
        }
    }

    /// The local store failed: nothing handed over since is durable. The connection is given up,
    /// and the next one starts from what is.
    public mutating func storeFailed(_ error: LocalStoreError, now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = [.report(.storeFailed(error))]
        changesInFlight = []
        applying = cursor
        markedThrough = 0
        snapshot?.inFlight = nil
        fetches += historyInFlight.compactMap { page in
            guard case .page(var asked, _) = page else { return nil }
            asked.request = nil
            return asked
        }
        historyInFlight = []
        // What is stored of the outbox counts; it is read again with the next connection.
        isLoading = false
        mustReload = false
        logoutMark = .none
        reloadOutbox()
        switch phase {
        case .idle, .waiting: break
        case .connecting, .opening, .authenticating, .open:
            wasHealthy = false
            leaveConnection(&actions)
            wait(now: now, &actions)
        }
        return actions
    }

    // MARK: - ERROR

    private mutating func receivedError(
        _ error: ErrorFrame, request: UInt16, now: Instant, _ actions: inout [ClientAction]
    ) {
        if error.code == Code.pushTokenRefused.rawValue {
            confirm(nil, &actions)
            actions.append(.report(.pushTokenRefused))
            return
        }
        if case .authenticating = phase {
            actions.append(.report(.loginRefused(error.code)))
            wasHealthy = false
            leaveConnection(&actions)
            return wait(now: now, &actions)
        }
        if request != 0, historyRefused(error, request: request, now: now, &actions) { return }
        actions.append(.report(.refused(error.code, request: request)))
        let retry = Code(rawValue: error.code)?.retryClass ?? error.retry
        let wasSync = request != 0 && request == openSync
        if wasSync {
            openSync = nil
            syncReads = []
            isPeeking = false
            syncDeadline = nil
        }
        // Mutations of the inline SYNC went with it: nothing is known of them (SYN-10).
        if wasSync { for index in outbox.indices { outbox[index].isSent = false } }
        switch retry {
        case .none:
            // A session without a SYNC brings nothing: later, on another connection.
            if wasSync { giveUp(now: now, &actions) }
        case .retry, .retryAfter:
            guard wasSync else { break }
            let delay = max(limits.mutationRetry, asked(error.retryAfterMs))
            outboxRetryAt = now + delay
            syncAt = now + delay
            wantsSync = true
        case .reauthenticate:
            dropToken(&actions)
            leaveConnection(&actions)
            wait(now: now, &actions)
        case .resync:
            guard wasSync else {
                if openSync == nil { wantSync(.timer, now: now, &actions) }
                break
            }
            // The SYNC without a cursor has no cause for it: once on a connection.
            guard !hasBegunAnew else { return giveUp(now: now, &actions) }
            hasBegunAnew = true
            withoutCursor = true
            wantSync(.timer, now: now, &actions)
            sendMutations(now: now, &actions)
        case .upgrade:
            // Of a request that this client has not made it says nothing.
            guard wasSync || request == 0 else { break }
            leaveConnection(&actions)
            stop(now: now, &actions)
        }
    }
}
