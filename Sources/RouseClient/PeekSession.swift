import AppLife
import Model
import SyncClient
import Wire

/// One peek of an extension, from its HELLO to its CLOSE.
actor PeekSession {
    /// Entries that are kept for alerts that came together; with more all go.
    private static let keptMax = 512

    private let setup: RouseExtension
    private let object: MessageID
    private let conversation: ConversationID?
    private let words: AlertWords?
    private var store: TableLocalStore?
    private var replica: ClientReplica?
    private var connection: (any RouseConnection)?
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    private var result = Peek()
    /// Up to where the feed was looked at: the next peek looks above it.
    private var head: Cursor?
    private var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    init(
        _ setup: RouseExtension, _ object: MessageID, _ conversation: ConversationID?,
        _ words: AlertWords?
    ) {
        self.setup = setup
        self.object = object
        self.conversation = conversation
        self.words = words
    }

    func run(until end: Instant) async -> Peek {
        guard open() else { return result }
        defer { store?.close() }
        let timer = Task { [clock = setup.clock] in
            do { try await clock.sleep(until: end) } catch { return }
            self.finish()
        }
        hear {
            let state = AppState(
                phase: .background, remainingMs: UInt32(clamping: end.since($1)))
            return $0.start(appState: state, now: $1)
        }
        if !isOver { await withCheckedContinuation { waiting = $0 } }
        timer.cancel()
        connection?.close()
        // Nothing of any conversation is unread, so this message is not.
        if conversation != nil, result.badge == 0 { result.isOver = true }
        if let head { _ = try? store?.apply(LocalChange(entries: [], to: head)) }
        return result
    }

    private func finish() {
        isOver = true
        waiting?.resume()
        waiting = nil
    }

    // MARK: - The store

    private func open() -> Bool {
        do {
            var configuration = setup.configuration
            if let device = setup.device { configuration.device = try device() }
            let store = try setup.openStore()
            self.store = store
            try store.belong(to: configuration.device)
            try eraseOther(in: store)
            try borrow(for: store)
            if try !holds(store), let cursor = try store.load().cursor {
                // What the last push was about is kept no longer.
                _ = try store.apply(
                    LocalChange(entries: [], to: cursor, marksStale: true, sweeps: true))
            }
            replica = try ClientReplica(
                store: store, configuration: configuration, seed: setup.seed)
            return true
        } catch {
            store?.close()
            return false
        }
    }

    /// What is of another user than the one who is logged in goes before it is looked at.
    private func eraseOther(in store: TableLocalStore) throws(LocalStoreError) {
        let kept = try store.load().user
        guard let user = setup.configuration.user, !kept.isEmpty, !kept.isExactly(user) else {
            return
        }
        try store.erase()
    }

    /// Whether an earlier peek has brought what this push is about, as the first of two alerts that
    /// came together: the feed does not tell of it again.
    private func holds(_ store: TableLocalStore) throws(LocalStoreError) -> Bool {
        guard let known = try store.entry(of: object, in: conversation) else { return false }
        result.notice = notice(known)
        look()
        return try store.counts().entries <= Self.keptMax
    }

    /// SES-12: the first session is opened with the app's token; what comes of it lets only an
    /// extension in. Without it the app's backend is asked who this is.
    private func borrow(for store: TableLocalStore) throws(LocalStoreError) {
        guard try store.load().sessionToken.isEmpty, let app = try? setup.openAppStore() else {
            return
        }
        defer { app.close() }
        guard let state = try? app.load(), !state.sessionToken.isEmpty, !state.isLeaving,
            setup.configuration.user.map({ state.user.isExactly($0) }) ?? true
        else { return }
        try store.saveSession(token: state.sessionToken, user: state.user)
    }

    // MARK: - The session

    private func hear(_ input: (inout ClientSession, Instant) -> [ClientAction]) {
        let (now, wall) = (setup.clock.now, setup.clock.wall)
        perform(replica?.on(now: now, wall: wall, input) ?? [])
    }

    private func perform(_ effects: [ClientReplica.Effect]) {
        for effect in effects where !isOver {
            switch effect {
            case .connect: connect()
            case .send(let frame): connection?.send(frame.encoded)
            case .raiseLimits(let limits): decoder.limits = limits
            case .needIdentityToken(let nonce):
                Task { [weak self, identity = setup.identity] in
                    let token = await identity(nonce)
                    await self?.signed(token)
                }
            case .applied: look()
            // It has closed after its peek, or there is no time for another attempt.
            case .disconnect, .report(.retrying), .report(.parked), .report(.storeFailed),
                .report(.upgradeRequired):
                finish()
            case .results, .report: break
            }
        }
    }

    private func signed(_ token: String?) {
        guard !isOver else { return }
        hear { $0.identityToken(token, now: $1) }
    }

    private func notice(_ entry: Entry) -> AppNotice? {
        guard let notice = AppNotice(entry) else { return nil }
        guard let words else { return notice }
        return entry.isEdited && !words.tells(notice) ? notice : nil
    }

    private func look() {
        let standing = try? store?.standing(
            of: object, in: conversation, at: setup.clock.wall)
        result.isOver = standing == .over
    }

    private func connect() {
        let made = setup.transport.connect()
        connection = made
        Task { [weak self] in
            for await event in made.events { await self?.heard(event) }
        }
    }

    private func heard(_ event: TransportEvent) {
        guard !isOver else { return }
        switch event {
        case .connected: hear { $0.connected(now: $1) }
        case .received(let bytes): received(bytes)
        case .closed: hear { $0.closed(now: $1) }
        }
    }

    private func received(_ bytes: [UInt8]) {
        decoder.append(bytes)
        let (now, wall) = (setup.clock.now, setup.clock.wall)
        do {
            while !isOver, let frame = try decoder.next() {
                note(frame)
                perform(replica?.received(frame, now: now, wall: wall) ?? [])
            }
            perform(replica?.framesEnded(now: now, wall: wall) ?? [])
        } catch {
            hear { $0.decodingFailed(error, now: $1) }
        }
    }

    private func note(_ frame: Frame) {
        guard case .delta(let delta) = frame.body, let epoch = delta.to?.epoch else { return }
        // Of the page, not of what is new to the store: a process that ended in the middle may
        // have left it there. A page may hold more than one version of it, the newest last.
        if let entry = delta.entries.last(where: { $0.object == object.bytes }) {
            result.notice = notice(entry)
        }
        head = Cursor(epoch: epoch, seq: delta.head)
        // Only a page without `more` says it (SYN-27).
        if !delta.more { result.badge = delta.unread }
    }
}
