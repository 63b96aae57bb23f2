public import Feed
public import Model
import Wire

// What the client is told of a feed that got longer (protocol: delivery modes), and time.
extension Session {
    /// Live: pushed. Hint: asked to sync. Dormant: as hint, and the wake path sees no socket.
    var mode: DeliveryMode {
        if reauthentication != nil { return .dormant }
        return switch appPhase {
        case .unspecified, .foreground: mayPush && hasSynced ? .live : .hint
        case .background: backgroundUntil == nil ? .dormant : .hint
        case .inactive: .dormant
        }
    }

    /// HELLO's or APP_STATE's phase; unspecified leaves it as it is.
    mutating func takePhase(_ state: AppState?, now: Instant) {
        guard let state, state.phase != .unspecified else { return }
        appPhase = state.phase
        backgroundUntil =
            state.phase == .background
            ? now + Milliseconds(state.remainingMs) + limits.backgroundSlack : nil
    }

    /// For the session row: when the wake path stops seeing a socket; `nil`: never.
    func dormantAfter(now: Instant) -> Milliseconds? {
        dormantAfter(now: now, isPaused: reauthentication != nil)
    }

    func dormantAfter(now: Instant, isPaused: Bool) -> Milliseconds? {
        if watch.isSuspect || isPaused { return 0 }
        return switch appPhase {
        case .unspecified, .foreground: nil
        case .background: (backgroundUntil ?? now).since(now)
        case .inactive: 0
        }
    }

    /// Sends or asks what the mode calls for. Called after every input: head is looked at again
    /// on each page read, ACK and change of mode.
    mutating func deliver(now: Instant, _ actions: inout [SessionAction]) {
        guard phase == .open, role == .app, page == nil, !hasOpenSync, reauthentication == nil
        else { return }
        if mode == .live {
            guard sent < head, let room = pageRoom else { return }
            startPage(.push, after: sent, bytes: room, &actions)
            return
        }
        guard askedHead == nil, headToAsk > max(told, applied) else { return }
        askedHead = head
        told = max(told, head)
        let request = SyncRequest(head: head, kinds: kindsToAsk, urgent: isAskUrgent)
        actions.append(.send(Frame(.syncRequest(request))))
        kindsToAsk = 0
        isAskUrgent = false
        watch.update(isCovered: applied >= told, rose: false, limits: limits, now: now)
    }

    /// Bytes the next pushed page may have; `nil`: it has to wait.
    var pageRoom: Int? {
        guard singleThrough != nil else { return window.room(limits) }
        // Entry by entry, each acknowledged before the next.
        return window.unacknowledgedCount == 0 ? 1 : nil
    }

    mutating func startPage(
        _ purpose: PageInFlight.Purpose, after: UInt64, bytes: Int,
        _ actions: inout [SessionAction]
    ) {
        guard let key else { return }
        if reauthentication != nil {
            reauthentication?.held = Reauthentication.HeldPage(
                purpose: purpose, after: after, bytes: bytes)
            return
        }
        let tag = nextTag()
        unread.isDoubted = false
        page = PageInFlight(tag: tag, purpose: purpose, after: after, bytes: bytes, head: head)
        let isPeek = if case .peek = purpose { true } else { false }
        actions.append(
            .read(
                tag,
                PageQuery(
                    app: key.app, user: key.user, device: key.device, after: after, bytes: bytes,
                    newestFirst: isPeek, session: mustLearnStanding ? key : nil)))
    }

    /// After entering the hub without a SYNC: what was committed between the session row and the
    /// hub is only seen by looking at the head again (protocol: connect and publish).
    mutating func startLook(_ actions: inout [SessionAction]) {
        startPage(.look, after: head, bytes: 1, &actions)
    }

    /// The turn over connected users found that this session's row is not what it takes it for:
    /// the next page decides, for it is read after everything the session was told meanwhile.
    public mutating func standingDoubted(now: Instant) -> [SessionAction] {
        guard phase == .open, reauthentication == nil, page == nil, !hasOpenSync else { return [] }
        mustLearnStanding = true
        var actions: [SessionAction] = []
        startLook(&actions)
        return actions
    }

    /// The page asked for. If the store knows no such user any more, call `ended(.revoked)`.
    public mutating func pageRead(
        _ tag: RequestTag, _ read: Page, now: Instant
    ) -> [SessionAction] {
        guard let page, page.tag == tag, phase == .open else { return [] }
        switch read.standing {
        case .current: break
        case .challenged:
            var actions: [SessionAction] = []
            challengeAgain(.revoked, now: now, &actions)
            settle(now: now, &actions)
            return actions
        case .ended(let code):
            self.page = nil
            return ended(code, now: now)
        }
        self.page = nil
        mustLearnStanding = false
        var actions: [SessionAction] = []
        guard read.epoch == epoch else {
            // Another of the user's devices made the store draw a new epoch. The numbers told
            // so far mean nothing now: the client comes again and is reset.
            close(.epochChanged, now: now, &actions)
            settle(now: now, &actions)
            return actions
        }
        if page.purpose != .push || read.to > sent { head = max(head, read.head) }
        switch page.purpose {
        case .look:
            headToAsk = max(headToAsk, read.head)
        case .push:
            if read.to > sent {
                pushedByRead &+= 1
                send(read, nil, now: now, &actions)
            } else if head == page.head {
                // Nothing is above `sent`, whatever was said of the head: asked again, the store
                // would say the same, and for ever. The next change tells of a head anew.
                head = sent
            }
        case .peek(let request): sendPeek(read, request: request, &actions)
        case .answer(let answer):
            send(read, answer, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    mutating func send(
        _ read: Page, _ answer: PageInFlight.Answer?, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        let delta = Delta(
            entries: read.entries, from: Cursor(epoch: epoch, seq: read.from),
            to: Cursor(epoch: epoch, seq: read.to), head: read.head, more: read.more,
            results: answer?.results ?? [], mutationFloor: answer?.floor ?? mutationFloor,
            reset: answer?.reset.map { Reset(reason: $0) },
            unread: UInt32(clamping: read.unread), digestWanted: wantsDigest && !read.more)
        if !read.more { wantsDigest = false }
        actions.append(.send(Frame(.delta(delta), request: answer?.request ?? 0)))
        if renewal == .awaited, answer?.reset != nil { renewal = .sent }
        sent = max(sent, read.to)
        if read.to == sent { unread.take(read) }
        if read.to > applied {
            let bytes = read.entries.reduce(128) { $0 + $1.approximateBytes }
            window.sent(to: read.to, bytes: bytes, now: now)
        }
        // A client that is not pushed to goes on by itself when there is more.
        let goesOn = answer != nil && read.more && mode != .live
        told = max(told, goesOn ? read.head : read.to)
        if !read.more {
            completeFirst = completeFirst ?? read.to
            completeLast = max(completeLast, read.to)
        }
        if let visible = read.firstVisible {
            visibleFirst = min(visibleFirst ?? visible, visible)
            visibleLast = max(visibleLast, read.to)
        }
        watch.update(isCovered: applied >= told, rose: false, limits: limits, now: now)
    }

    /// The page could not be read.
    public mutating func readFailed(
        _ tag: RequestTag, _ error: StoreError, now: Instant
    ) -> [SessionAction] {
        guard let page, page.tag == tag, phase == .open else { return [] }
        // Whoever is not told would be behind for ever: the connection ends, and the row of the
        // session is the record.
        var actions: [SessionAction] = [.log(.storeFailed(error))]
        if case .corrupt = error {
            close(.internal, now: now, &actions)
        } else {
            close(.unavailable, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    // MARK: - Time

    /// `nextDeadline` has come. The shell calls `progressed` before it.
    public mutating func deadlineReached(now: Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        if let code = overdue(now: now) {
            close(code, now: now, &actions)
        } else if phase == .open {
            lookAtPeer(now: now, &actions)
            if let until = backgroundUntil, now >= until { backgroundUntil = nil }
            if let over = tokenExpiresAt, now >= over {
                challengeAgain(.expired, now: now, &actions)
            }
            if let persistAt, now >= persistAt {
                self.persistAt = nil
                ack.isUrgent = true
            }
        }
        settle(now: now, &actions)
        return actions
    }

    /// The absolute limits.
    private func overdue(now: Instant) -> Code? {
        guard !phase.isEnded else { return nil }
        if let deadline = phase.loginDeadline, now >= deadline {
            return if case .awaitingHello = phase { .helloTimeout } else { .authRequired }
        }
        if let deadline = reauthentication?.deadline, now >= deadline { return .authRequired }
        if let drainAt, now >= drainAt { return .drainDeadline }
        if let slowSince, now.since(slowSince) >= limits.slowReader { return .slow }
        if phase == .open, isReading,
            now.since(lastFrameAt) >= promised + limits.keepaliveGrace
        {
            return .idle
        }
        return nil
    }

    private mutating func lookAtPeer(now: Instant, _ actions: inout [SessionAction]) {
        switch watch.look(limits: limits, now: now) {
        case .fine: break
        case .ping:
            let ping = Ping(nextMs: UInt32(clamping: keepalive))
            actions.append(.send(Frame(.ping(ping))))
            actions.append(.log(.suspected))
            if appState == nil { appState = PendingAppState() }
        case .close:
            // Behind so many bytes the PING cannot reach it, and nothing is read from it: a
            // transfer that stands still has the slow reader's time (SYN-23).
            if slowSince == nil {
                close(.timeout, now: now, &actions)
            } else {
                watch.wait(now: now)
            }
        }
    }
}
