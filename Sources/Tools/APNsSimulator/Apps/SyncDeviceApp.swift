internal import Client
internal import Crypto
internal import EventLoop
internal import Model
internal import SQLiteStore
internal import SyncClient
internal import Wire

/// An app with the real client: it syncs over real sockets into a file of its own.
/// Loop-confined.
final class SyncDeviceApp: DeviceApp {
    /// Who it is and where it connects to.
    struct Configuration {
        var user: String
        var client: ClientConfiguration
        var endpoint: SyncEndpoint
        var tls: TLSContext
        var issuer: IdentityIssuer
        /// The file of the local store.
        var path: String
    }

    private static let textMax = 200

    private let loop: Loop
    private let configuration: Configuration
    private let hooks: DeviceAppHooks
    private var file: SQLiteStore?
    private var store: TableLocalStore?
    private var client: SyncClient?
    /// Whether the system lets it run.
    private var isRunning = false
    private var hasNetwork = true
    private var isHeld = false
    private var state = AppState(phase: .inactive)
    /// It runs because of a push and stops when it has synced.
    private var wasWoken = false
    private var lastEnd = ""
    /// Notifications that stood before the connection was made, by identifier: what they are about
    /// came into the feed before the sync over that connection.
    private var stood: Set<String> = []

    init(loop: Loop, configuration: Configuration, hooks: DeviceAppHooks) {
        self.loop = loop
        self.configuration = configuration
        self.hooks = hooks
    }

    // MARK: Life

    func run(wake: WakeID?, remainingMilliseconds: Milliseconds) {
        wasWoken = true
        state = AppState(
            phase: .background, remainingMs: UInt32(clamping: remainingMilliseconds))
        if isRunning { client?.pushReceived(wake: wake, state: state) } else { start(wake: wake) }
    }

    func notify(wake: WakeID?) { client?.pushReceived(wake: wake, state: state) }

    func enterForeground() {
        wasWoken = false
        state = AppState(phase: .foreground)
        if isRunning { client?.appStateChanged(state) } else { start(wake: nil) }
    }

    func enterBackground(remainingMilliseconds: Milliseconds) {
        state = AppState(
            phase: .background, remainingMs: UInt32(clamping: remainingMilliseconds))
        client?.appStateChanged(state)
    }

    func suspend() {
        isRunning = false
        wasWoken = false
        let wasOnline = client?.isOpen ?? false
        client?.sleep()
        if wasOnline { tellOffline("asleep") }
    }

    func terminate() {
        isRunning = false
        wasWoken = false
        dropClient("terminated")
        store = nil
        file?.close()
        file = nil
    }

    func networkChanged(isUp: Bool) {
        hasNetwork = isUp
        guard !isUp else {
            if isRunning { start(wake: nil) }
            return
        }
        dropClient("no coverage")
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        client?.isHeld = isHeld
    }

    /// The phone's sockets are gone without a word to anybody.
    private func dropClient(_ why: String) {
        let wasOnline = client?.isOpen ?? false
        client?.terminate()
        client = nil
        if wasOnline { tellOffline(why) }
    }

    private func tellOffline(_ why: String, code: UInt32? = nil) {
        var event = SimulatorEvent(.offline)
        event.code = code
        event.text = why
        hooks.tell(event)
    }

    private func start(wake: WakeID?) {
        isRunning = true
        noteWhatStands()
        guard hasNetwork else { return }
        do {
            try makeClient().start(state, wake: wake)
        } catch {
            fail("start: \(error)")
        }
    }

    private func openStore() throws -> TableLocalStore {
        if let store { return store }
        var options = SQLiteOptions()
        // Many devices share this process.
        options.cacheSize = 256
        options.readerCacheSize = 256
        options.journalStep = 1 << 20
        // What the system was given survives the end of this process, which is what a phone's
        // app has to survive here; hundreds of devices share one disk.
        options.syncs = false
        options.check = .never
        let file = try SQLiteStore(
            path: configuration.path, tables: LocalSchema.tables, options: options)
        let store = TableLocalStore(store: file)
        self.file = file
        self.store = store
        return store
    }

    private func makeClient() throws -> SyncClient {
        if let client { return client }
        var events = SyncClientEvents { [weak self] nonce, answer in
            guard let self else { return answer(nil) }
            let now = SystemClock.wallMilliseconds() / 1_000
            let user = self.configuration.user
            answer(self.configuration.issuer.token(for: user, nonce: nonce, now: now))
        }
        events.reported = { [weak self] in self?.reported($0) }
        events.applied = { [weak self] in self?.applied($0) }
        events.news = { [weak self] in self?.notify($0) }
        events.results = { [weak self] in self?.answered($0) }
        events.connectionEnded = { [weak self] in self?.lastEnd = $0 }
        var seed: UInt64 = 0
        for byte in Random.bytes(8) { seed = seed << 8 | UInt64(byte) }
        let made = try SyncClient(
            loop: loop, endpoint: configuration.endpoint, tls: configuration.tls,
            store: try openStore(), configuration: configuration.client, seed: seed,
            events: events)
        made.isHeld = isHeld
        client = made
        return made
    }

    // MARK: What the client tells

    private func reported(_ event: ClientEvent) {
        switch event {
        case .opened: hooks.tell(SimulatorEvent(.online))
        case .unread(let count): hooks.setBadge(UInt64(count))
        case .synced(let cursor):
            tidy()
            var told = SimulatorEvent(.synced)
            told.applied = cursor.seq
            hooks.tell(told)
            finishIfDone()
        case .closed(let code):
            noteWhatStands()
            tellOffline(lastEnd, code: code)
        case .syncRequested(let head):
            var told = SimulatorEvent(.syncRequest)
            told.head = head
            hooks.tell(told)
        case .delta(let entries, let more):
            var told = SimulatorEvent(.delta)
            told.entries = entries
            told.more = more
            hooks.tell(told)
        case .reset(let reason):
            var told = SimulatorEvent(.reset)
            told.reason = "\(reason)"
            hooks.tell(told)
        case .loginRefused(let code), .refused(let code, _):
            var told = SimulatorEvent(.failed)
            told.code = code
            told.text = "refused by the server"
            hooks.tell(told)
        case .pushTokenRefused: fail("push token refused")
        case .upgradeRequired: fail("client too old")
        case .storeFailed(let error): fail("store: \(error)")
        case .loggedOut: tellOffline("logged out")
        case .digest(let isComparable, let isEqual, let objects):
            compared(isComparable, isEqual, objects)
        case .drained, .retrying, .parked, .snapshot, .fetched, .fetchFailed, .peeked,
            .signalled, .reauthenticated:
            break
        }
    }

    private func compared(_ isComparable: Bool, _ isEqual: Bool, _ objects: UInt64) {
        do {
            let held = try openStore().counts()
            var told = SimulatorEvent(.digest)
            told.digest = SimulatorEvent.DigestFacts(
                isComparable: isComparable, isEqual: isEqual, objects: objects,
                entries: held.entries, conversations: held.conversations, messages: held.messages)
            hooks.tell(told)
        } catch {
            fail("counting: \(error)")
        }
    }

    private func finishIfDone() {
        guard wasWoken, let client, client.isInSync, !client.hasUnanswered else { return }
        hooks.finished()
    }

    private func answered(_ results: [MutationResult]) {
        for result in results {
            var event = SimulatorEvent(.acknowledged)
            event.code = result.code
            event.message = MessageID(result.object).map { $0.description }
            event.position = result.position
            hooks.tell(event)
        }
        finishIfDone()
    }

    private func applied(_ entries: [Entry]) {
        var messages: [SimulatorEvent.AppliedMessage] = []
        for entry in entries {
            guard let conversation = entry.conversation else { continue }
            switch entry.body {
            case .message(let message):
                let identifier = MessageID(entry.object)?.description ?? ""
                messages.append(
                    SimulatorEvent.AppliedMessage(
                        conversation: conversation.description, message: identifier,
                        position: message.position, seq: entry.seq, sender: message.sender,
                        alerted: entry.alerted))
            case .participant(let participant) where participant.user == configuration.user:
                var event = SimulatorEvent(.joined)
                event.conversation = conversation.description
                event.position = participant.joinedPosition
                hooks.tell(event)
            default: break
            }
        }
        guard !messages.isEmpty else { return }
        var event = SimulatorEvent(.applied)
        event.messages = messages
        hooks.tell(event)
    }

    /// Behind the front the app shows a notification of its own, under the identifier that an
    /// alert about the same message would have (Protocol/push.md, PSH-4).
    private func notify(_ news: [Entry]) {
        guard isRunning, state.phase != .foreground else { return }
        for entry in news {
            guard let object = MessageID(entry.object), let text = Self.notification(of: entry),
                standing(of: object, in: entry.conversation) == .shows
            else { continue }
            hooks.showNotification(
                object.description, text.title, text.body, entry.conversation?.description)
        }
    }

    private func noteWhatStands() { stood = Set(hooks.screen().map(\.identifier)) }

    /// What was read or deleted on another device goes from the screen, each by itself: by what is
    /// stored, so that a process knows it that was started after the message came. So does what
    /// the whole feed does not hold: it was deleted long ago, or the server lost it.
    private func tidy() {
        for shown in hooks.screen() {
            guard let object = shown.object.flatMap({ MessageID(text: $0) }) else { continue }
            let conversation = shown.conversation.flatMap { ConversationID(text: $0) }
            let standing = standing(of: object, in: conversation)
            if standing == .over || standing == .missing && stood.contains(shown.identifier) {
                hooks.removeNotification(shown.identifier)
            }
        }
    }

    private func standing(
        of object: MessageID, in conversation: ConversationID?
    ) -> NotificationStanding {
        do {
            return try openStore().standing(
                of: object, in: conversation,
                at: Timestamp(milliseconds: SystemClock.wallMilliseconds()))
        } catch {
            fail("screen: \(error)")
            return .unknown
        }
    }

    /// `nil`: it has no text for alerts, and is shown inside the app only (MSG-3).
    private static func notification(of entry: Entry) -> (title: String, body: String)? {
        switch entry.body {
        case .message(let message):
            message.push.map { ($0.title.isEmpty ? message.sender : $0.title, $0.body) }
        case .announcement(let announcement): announcement.push.map { ($0.title, $0.body) }
        default: nil
        }
    }

    private static func text(of message: MessageState) -> String {
        let part = message.parts.first { $0.mimeType.hasPrefix("text/") }
        return part.map { String(decoding: $0.content, as: UTF8.self) } ?? ""
    }

    private func fail(_ text: String) {
        var event = SimulatorEvent(.failed)
        event.text = text
        hooks.tell(event)
    }

    // MARK: What its user does

    func createConversation(
        _ conversation: ConversationID, participants: [String]
    ) throws(DeviceAppError) {
        try mutate(
            .createConversation(
                CreateConversation(conversation: conversation, participants: participants)))
    }

    func addParticipants(
        _ users: [String], to conversation: ConversationID
    ) throws(DeviceAppError) {
        try mutate(.addParticipants(AddParticipants(conversation: conversation, users: users)))
    }

    func send(
        _ text: String, title: String?, as message: MessageID, to conversation: ConversationID
    ) throws(DeviceAppError) {
        let part = Part(mimeType: "text/plain", content: Array(text.utf8))
        let push = PushText(
            title: title ?? configuration.user, body: String(text.prefix(Self.textMax)))
        try mutate(
            .sendMessage(
                SendMessage(
                    conversation: conversation, message: message, parts: [part], push: push)))
    }

    func read(
        _ conversation: ConversationID, through position: UInt64
    ) throws(DeviceAppError) {
        try with { client in try client.read(conversation, through: position) }
    }

    func change(_ change: AppChange) throws(DeviceAppError) {
        switch change {
        case .remove(let users, let conversation):
            try mutate(
                .removeParticipants(
                    RemoveParticipants(conversation: conversation, users: users)))
        case .edit(let message, let text):
            let part = Part(mimeType: "text/plain", content: Array(text.utf8))
            try mutate(.editMessage(EditMessage(message: message, parts: [part])))
        case .delete(let message, let forEveryone):
            try mutate(
                .deleteMessage(DeleteMessage(message: message, forEveryone: forEveryone)))
        case .deleteConversation(let conversation, let forEveryone):
            try mutate(
                .deleteConversation(
                    DeleteConversation(conversation: conversation, forEveryone: forEveryone)))
        case .setTitle(let title, let conversation):
            try mutate(
                .changeMetadata(
                    ChangeMetadata(
                        conversation: conversation,
                        changes: [MetadataChange(path: ["title"], value: title)])))
        case .mute(let conversation, let isMuted):
            try mutate(
                .muteConversation(
                    MuteConversation(conversation: conversation, muted: isMuted)))
        case .block(let user, let isBlocked):
            try mutate(.blockUser(BlockUser(user: user, blocked: isBlocked)))
        }
    }

    func checkDigest() throws(DeviceAppError) { try with { client in client.checkDigest() } }

    func forget() throws(DeviceAppError) { try mutate(.forgetDevice(ForgetDevice())) }

    private func mutate(_ operation: Mutation.Operation) throws(DeviceAppError) {
        try with { client in try client.mutate(operation) }
    }

    private func with(_ body: (SyncClient) throws -> Void) throws(DeviceAppError) {
        guard isRunning else { throw DeviceAppError("the app does not run: open it first") }
        guard hasNetwork else {
            throw DeviceAppError("without coverage the simulated app takes no commands")
        }
        do {
            try body(try makeClient())
        } catch {
            throw DeviceAppError("\(error)")
        }
    }

    // MARK: What it holds

    var status: DeviceAppStatus {
        var status = DeviceAppStatus()
        status.isOnline = client?.isOpen ?? false
        status.isInSync = client?.isInSync ?? false
        status.hasUnanswered = client?.hasUnanswered ?? false
        let cursor = client?.cursor ?? (try? openStore().load().cursor)
        status.epoch = cursor?.epoch.description
        status.seq = cursor?.seq
        return status
    }

    func messages(
        _ conversation: ConversationID, above position: UInt64, limit: Int
    ) throws(DeviceAppError) -> [StoredMessage] {
        let entries: [Entry]
        do {
            entries = try openStore().messages(of: conversation, after: position, limit: limit)
        } catch {
            throw DeviceAppError("\(error)")
        }
        return entries.compactMap { entry in
            guard case .message(let message) = entry.body else { return nil }
            return StoredMessage(
                conversation: conversation.description,
                message: MessageID(entry.object)?.description ?? "", position: message.position,
                seq: entry.seq, sender: message.sender, text: Self.text(of: message))
        }
    }
}
