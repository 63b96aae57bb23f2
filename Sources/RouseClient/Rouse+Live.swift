public import Model
public import SyncClient
import Wire

// What an app shows, as sequences that follow the store: each element is what is durable, and
// comes before `inSync` tells that everything is here. Before the store is open nothing comes.
extension Rouse {
    /// All conversations, the one in which something happened last first. Of lists that were not
    /// taken only the newest is kept.
    public func conversations() -> AsyncStream<[ConversationRow]> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [ConversationRow].self, bufferingPolicy: .bufferingNewest(1))
        let number = nextListener()
        continuation.onTermination = forgetting(number)
        live.add(continuation, as: number)
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

    /// Asks the server for older messages than those on this device; windows of the conversation
    /// grow when they are durable. Without a connection it is asked when there is one.
    public func fetchOlder(
        in conversation: ConversationID, limit: Int = 50
    ) throws(LocalStoreError) {
        guard let store, replica != nil else { throw isAbsent }
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
            storeTrouble("\(error)")
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
            }
            liveUser = user
        case .reset: isResetting = true
        case .snapshot(_, _, let isLast): if isLast { follow(.everything) }
        case .synced:
            // What was stale went without an entry.
            if isResetting { follow(.everything) }
            isResetting = false
            state(.inSync)
        case .syncRequested: state(.syncing)
        case .fetched(let ticket, _, _, _), .fetchFailed(let ticket, _):
            guard let conversation = fetching.removeValue(forKey: ticket) else { break }
            follow(.conversation(conversation))
        case .closed, .retrying, .loggedOut, .parked, .upgradeRequired: state(.offline)
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
