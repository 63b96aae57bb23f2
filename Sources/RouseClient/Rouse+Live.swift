public import Model
public import SyncClient
import Wire

// What an app shows, as sequences that follow the store: each element is what is durable, and
// comes before `inSync` tells that everything is here. Before the store is open nothing comes.
extension Rouse {
    /// All conversations, the one in which something happened last first. Of lists that were not
    /// taken only the newest is kept.
    public func conversations() -> AsyncStream<[ConversationRow]> {
        followed { live.add($0, as: $1) }
    }

    /// The announcements that are here, the newest first. Of lists that were not taken only the
    /// newest is kept.
    public func announcements() -> AsyncStream<[AnnouncementRow]> {
        followed { live.add($0, as: $1) }
    }

    /// A list that begins with what is here and goes on with each change.
    private func followed<Row: Sendable>(
        _ add: (AsyncStream<[Row]>.Continuation, UInt64) -> Void
    ) -> AsyncStream<[Row]> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [Row].self, bufferingPolicy: .bufferingNewest(1))
        let number = nextListener()
        continuation.onTermination = forgetting(number)
        add(continuation, number)
        follow(.entries([]))
        if isClosed { live.finish() }
        return stream
    }

    /// The newest messages of a conversation, and with them those that this device has sent and
    /// the server has not answered. Of windows that were not taken only the newest is kept.
    public func messages(
        in conversation: ConversationID, newest: Int
    ) -> AsyncStream<MessageWindow> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MessageWindow.self, bufferingPolicy: .bufferingNewest(1))
        let number = nextListener()
        continuation.onTermination = forgetting(number)
        live.add(continuation, as: number, of: conversation, newest: newest)
        follow(.entries([]))
        if isClosed { live.finish() }
        return stream
    }

    /// How far a message of this user gets, from now on; also one that an earlier process sent. It
    /// ends when the message is gone. Of more than 16 states that were not taken the oldest go.
    public func delivery(of message: MessageReference) -> AsyncStream<Delivery> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Delivery.self, bufferingPolicy: .bufferingNewest(16))
        let number = nextListener()
        continuation.onTermination = forgetting(number)
        live.add(continuation, as: number, of: message)
        follow(.entries([]))
        if isClosed { live.finish() }
        return stream
    }

    /// Whether the server is reached, now and from now on.
    public func connectionStates() -> AsyncStream<ConnectionState> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ConnectionState.self, bufferingPolicy: .bufferingNewest(1))
        let number = nextListener()
        continuation.onTermination = forgetting(number)
        continuation.yield(connectionState)
        if isClosed { continuation.finish() } else { stateListeners[number] = continuation }
        return stream
    }

    /// Shows older messages of a conversation too, in the largest of its windows: so many more of
    /// those on this device, or, where there are none, of the server's. These come into the window
    /// when they are durable; then `RouseChange.olderFetched` tells, or `olderRefused`.
    ///
    /// - Returns: whether there is anything older.
    @discardableResult
    public func showOlder(
        in conversation: ConversationID, by count: Int = 50
    ) throws(LocalStoreError) -> Bool {
        let store = try usableStore()
        guard count > 0, let newest = live.newest(of: conversation) else { return false }
        let shown = try store.messageWindow(of: conversation, newest: newest, sent: [])
        guard shown.hasOlder || shown.mayFetchOlder else { return false }
        live.widen(
            conversation, to: shown.rows.count + min(count, TableLocalStore.windowStepMax))
        if shown.hasOlder {
            follow(.conversation(conversation))
        } else {
            try fetchOlder(in: conversation, limit: count)
        }
        return true
    }

    /// Asks the server for older messages than those on this device; windows of the conversation
    /// have them when they are durable, as far as they are large enough (`showOlder`), and
    /// `RouseChange.olderFetched` or `olderRefused` tells. Without a connection it is asked when
    /// there is one; while it is asked, another call asks for nothing more.
    public func fetchOlder(
        in conversation: ConversationID, limit: Int = 50
    ) throws(LocalStoreError) {
        let store = try usableStore()
        guard !fetching.values.contains(conversation) else { return }
        lastFetch += 1
        let ticket = lastFetch
        fetching[ticket] = conversation
        let fetch = Fetch(
            conversation: conversation, below: try store.wholeFrom(conversation),
            limit: UInt32(clamping: limit))
        hear { $0.fetch(fetch, ticket: ticket, now: $1) }
    }

    private func forgetting<Element: Sendable>(
        _ number: UInt64
    ) -> @Sendable (AsyncStream<Element>.Continuation.Termination) -> Void {
        { [weak self] _ in
            guard let self else { return }
            Task { await self.forget(number) }
        }
    }

    // MARK: - Following

    func follow(_ change: LiveChange) {
        guard let store else { return }
        do {
            try live.follow(change, in: store, sent: replica?.session.mutationsSent ?? [])
        } catch {
            storeTrouble(error)
        }
    }

    /// A frame left, or the connection is gone.
    func followSent() {
        let sent = replica?.session.mutationsSent ?? []
        guard sent != lastSent else { return }
        lastSent = sent
        follow(.pending)
    }

    func followEvent(_ event: ClientEvent) {
        switch event {
        case .opened(let user, _):
            disconnectReason = nil
            state(.syncing)
            // The rows of another one are gone.
            if user != liveUser {
                if hasFormerScreen { steps.insert(.clearScreen, at: 0) }
                follow(.everything)
                // The session has forgotten them.
                fetching = [:]
            }
            liveUser = user
            noteLogin()
        case .reset: isResetting = true
        case .snapshot(_, _, let isLast): if isLast { follow(.everything) }
        case .synced:
            // What was stale went without an entry.
            if isResetting { follow(.everything) }
            isResetting = false
            state(.inSync)
        case .syncRequested: state(.syncing)
        case .fetched(let ticket, _, _, let more):
            guard let conversation = fetching.removeValue(forKey: ticket) else { break }
            follow(.conversation(conversation))
            tell(.olderFetched(in: conversation, more: more))
        case .fetchFailed(let ticket, let code):
            guard let conversation = fetching.removeValue(forKey: ticket) else { break }
            tell(.olderRefused(in: conversation, Refusal(code: code)))
        case .closed(let code):
            lastClose = code
            let why = code.map { "\(Refusal(code: $0))" } ?? lostWhy
            disconnectReason = why ?? "the server did not answer, or not as agreed"
            lostWhy = nil
            state(.offline)
        case .parked, .upgradeRequired: state(.refused(lastRefusal))
        case .retrying, .loggedOut: state(.offline)
        default: break
        }
        followSent()
    }

    func state(_ state: ConnectionState) {
        guard state != connectionState else { return }
        connectionState = state
        for listener in stateListeners.values { listener.yield(state) }
    }
}
