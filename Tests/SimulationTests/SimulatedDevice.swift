import MemoryStore
import Model
import SyncClient
import Wake
import Wire

/// A phone with the app: the client half of the protocol, a store that outlives the app, and the
/// life an app leads on it.
final class SimulatedDevice {
    enum App: Equatable {
        case open
        /// Runs for some seconds after a push.
        case woken
        case suspended
        /// Swiped away: no silent push starts it.
        case forceQuit
    }

    let id: DeviceID
    let user: String
    let pushToken: [UInt8]
    private unowned let simulation: Simulation
    private var disk: MemoryStore
    private var backup: Backup?
    private var store: TableLocalStore
    private var session: ClientSession?
    private(set) var app = App.forceQuit
    /// The app's process: events of an earlier one do nothing.
    private var life: UInt64 = 0
    private var link: SimulatedLink?
    private var decoder = FrameDecoder()
    private var timer: Instant?
    private var isOnline = true
    private var wokenUntil: Instant?
    /// It outlives the app.
    private(set) var screen = SimulatedScreen()
    /// Notifications that stood before the connection was made, by identifier.
    private var stood: Set<String> = []
    /// Since when its user does not see the app.
    private(set) var leftFrontAt = Timestamp(milliseconds: 0)
    /// How far each conversation was shown, by position: messages arrive in order.
    private var shown: [ConversationID: UInt64] = [:]
    /// What was new to this device: object and version.
    private var fresh: Set<String> = []
    private var resets = 0
    /// A reset floods nobody (PSH-8): what came while it was out of sight is not shown.
    private(set) var wasResetBehindTheFront = false
    private var waiting: [ClientAction] = []
    private var isRunning = false
    private var attempt = 0
    /// Who types where, as far as this app was told.
    private(set) var typing: Set<String> = []
    /// The last comparison with the server, and over how many objects.
    private(set) var digest: (isEqual: Bool, objects: UInt64)?

    /// What is stored here, and what had been new until then.
    private struct Backup {
        let disk: MemoryStore
        let fresh: Set<String>
        let shown: [ConversationID: UInt64]
    }

    init(_ id: DeviceID, of user: String, _ simulation: Simulation) {
        self.id = id
        self.user = user
        self.simulation = simulation
        pushToken = id.bytes + id.bytes
        disk = MemoryStore(tables: LocalSchema.tables, clock: simulation.clock.wall)
        store = TableLocalStore(store: disk)
    }

    private var clock: Clockwork { simulation.clock }

    var isInSync: Bool { session.map { $0.isInSync && !$0.hasUnanswered } ?? false }

    /// For a violation's text.
    var state: String {
        guard let session else { return "no process" }
        return Mirror(reflecting: session).children.compactMap { child in
            guard let label = child.label, label != "configuration", label != "random" else {
                return nil
            }
            let value = "\(child.value)"
            return value == "nil" || value == "[]" ? nil : "\(label) \(value.prefix(120))"
        }.joined(separator: ", ")
    }

    // MARK: The app's life

    func open() throws {
        switch app {
        case .open: return
        case .woken:
            app = .open
            wokenUntil = nil
            try run { $0.appStateChanged(AppState(phase: .foreground), now: $1) }
        case .suspended, .forceQuit:
            try launch()
            app = .open
            try run { $0.start(appState: AppState(phase: .foreground), now: $1) }
        }
    }

    /// To the background; iOS suspends it a little later, its socket goes.
    func sleep() throws {
        guard app == .open || app == .woken else { return }
        try run { $0.sleep(now: $1) }
        leaveFront()
        app = .suspended
        endProcess()
    }

    /// Swiped away, or crashed: nothing is said to anybody.
    func quit() {
        guard app != .forceQuit else { return }
        if app != .suspended { simulation.reached.count("an app killed while it runs") }
        leaveFront()
        app = .forceQuit
        endProcess()
    }

    private func leaveFront() {
        guard app == .open else { return }
        leftFrontAt = clock.wall
        wasResetBehindTheFront = false
    }

    private func endProcess() {
        life += 1
        waiting = []
        typing = []
        session = nil
        timer = nil
        link?.abandon(.device)
        link = nil
    }

    func backUp() throws {
        let copy = try disk.copied(LocalSchema.tables, clock: disk.clock)
        backup = Backup(disk: copy, fresh: fresh, shown: shown)
    }

    /// The phone is set up anew from its backup. Before it has connected its user writes.
    func restore(writing operations: ([ConversationID]) -> [Mutation.Operation]) throws {
        guard let backup else { return }
        simulation.reached.count("a phone restored")
        quit()
        disk = try backup.disk.copied(LocalSchema.tables, clock: disk.clock)
        store = TableLocalStore(store: disk)
        fresh = backup.fresh
        shown = backup.shown
        for operation in operations(conversations) {
            _ = try store.enqueue(operation, at: clock.wall)
        }
        try open()
    }

    private func launch() throws {
        life += 1
        disk.clock = clock.wall
        store = TableLocalStore(store: disk)
        let state = try store.load()
        // One half takes snapshots, whole ones, so that all can be compared.
        let isModern = id.high % 2 == 0
        var limits = ClientLimits()
        limits.snapshotMessages = 10_000
        session = ClientSession(
            configuration: ClientConfiguration(
                app: Simulation.app.name, device: id, clientName: "simulated",
                clientVersion: "1", wantsSignals: true, wantsSnapshots: isModern,
                peeksOnWake: isModern,
                push: PushRegistration(
                    token: pushToken, environment: .development, topic: "org.example"),
                limits: limits),
            state: state, seed: simulation.chance.next())
    }

    func receivePush(_ request: PushRequest) throws {
        try screen.receive(request, isInFront: app == .open)
        if request.pushType == .alert, request.collapseID != "badge" {
            simulation.reached.count("an alert shown")
        }
        // Every push asks for the app; one swiped away is not started.
        let background = AppState(phase: .background, remainingMs: 25_000)
        switch app {
        case .open, .forceQuit: return
        case .woken:
            try run { $0.pushReceived(wake: request.id, appState: background, now: $1) }
        case .suspended:
            simulation.reached.count("an app woken")
            try launch()
            app = .woken
            let until = clock.now + 25_000
            wokenUntil = until
            clock.at(until) { [weak self] in
                guard let self, self.wokenUntil == until, self.app == .woken else { return }
                self.wokenUntil = nil
                try self.sleep()
            }
            try run { $0.start(appState: background, wake: request.id, now: $1) }
        }
    }

    func loseNetwork(for duration: Milliseconds) {
        guard isOnline else { return }
        simulation.reached.count("a phone without network")
        isOnline = false
        link?.cut()
        clock.after(duration) { [weak self] in
            guard let self else { return }
            self.isOnline = true
            try self.run { $0.networkChanged(now: $1) }
        }
    }

    func cutLink(silently: Bool) {
        if silently { link?.fallSilent() } else { link?.cut() }
    }

    func checkDigest() throws {
        digest = nil
        try run { $0.checkDigest(now: $1) }
    }

    // MARK: What the user does

    var conversations: [ConversationID] {
        ((try? store.conversations()) ?? []).compactMap(\.conversation)
    }

    func mutate(_ operation: Mutation.Operation) throws {
        guard session != nil else { return }
        disk.clock = clock.wall
        let number = try store.enqueue(operation, at: clock.wall)
        try run { $0.mutationQueued(number, now: $1) }
    }

    /// Shows the others that the user writes here.
    func showTyping(in conversation: ConversationID) throws {
        let kind: SignalKind = simulation.chance.once(in: 4) ? .typingEnded : .typing
        try run { $0.signal(kind, in: conversation, now: $1) }
    }

    /// The user goes away and comes back: an app that was told to stay away tries again.
    func reopen() throws {
        try sleep()
        try open()
    }

    func readSome() throws {
        guard session != nil, let conversation = simulation.chance.one(of: conversations),
            let last = try store.messages(of: conversation, limit: 1_000).last,
            case .message(let message) = last.body
        else { return }
        let receipt = ReadReceipt(
            conversation: conversation,
            through: UInt64.random(in: 1...message.position, using: &simulation.chance))
        guard try store.addRead(receipt) else { return }
        try run { $0.readQueued(receipt, now: $1) }
    }

    /// A message this user sent, if there is one.
    func ownMessage(in conversation: ConversationID) throws -> MessageID? {
        let own = try store.messages(of: conversation, limit: 1_000).filter {
            if case .message(let message) = $0.body { message.sender == user } else { false }
        }
        return simulation.chance.one(of: own).flatMap { MessageID($0.object) }
    }

    /// Messages held, by conversation: id, position and version; tombstones too.
    func held() throws -> [ConversationID: [String]] {
        var all: [ConversationID: [String]] = [:]
        for conversation in conversations {
            all[conversation] = try store.messages(of: conversation, limit: 100_000).map {
                Self.word($0)
            }
        }
        return all
    }

    func wholeFrom(_ conversation: ConversationID) throws -> UInt64 {
        try store.wholeFrom(conversation)
    }

    static func word(_ entry: Entry) -> String {
        let id = MessageID(entry.object)?.description ?? "?"
        return switch entry.body {
        case .message(let state): "\(state.position) \(id) v\(entry.version)"
        case .tombstone(let state): "\(state.position) \(id) deleted"
        default: "? \(id)"
        }
    }

    // MARK: The machine

    /// What an action leads to comes after the actions before it.
    private func run(_ input: (inout ClientSession, Instant) -> [ClientAction]) throws {
        guard var session else { return }
        waiting += input(&session, clock.now)
        self.session = session
        guard !isRunning else { return }
        isRunning = true
        defer { isRunning = false }
        while !waiting.isEmpty { try carryOut(waiting.removeFirst()) }
        setTimer()
    }

    private func setTimer() {
        guard let due = session?.nextDeadline, due != timer else { return }
        timer = due
        let life = life
        clock.at(due) { [weak self] in
            guard let self, self.life == life, self.timer == due else { return }
            self.timer = nil
            try self.run { $0.deadlineReached(now: $1) }
        }
    }

    private func soon(_ delay: Milliseconds, _ run: @escaping () throws -> Void) {
        let life = life
        clock.after(delay) { [weak self] in
            guard let self, self.life == life else { return }
            try run()
        }
    }

    private func carryOut(_ action: ClientAction) throws {
        disk.clock = clock.wall
        switch action {
        case .connect: connect()
        case .send(let frame): link?.send(frame.encoded, to: .server)
        case .raiseLimits(let limits): decoder.limits = limits
        case .disconnect:
            attempt += 1
            link?.close(from: .device)
            link = nil
        case .apply(let change):
            try tell(try store.apply(change), inOrder: true) { $0.committed(now: $1) }
        case .applyHistory(let change):
            simulation.reached.count("history applied")
            try tell(try store.applyHistory(change), inOrder: false) {
                $0.historyCommitted(now: $1)
            }
        case .applySnapshot(let change):
            simulation.reached.count("a page of a snapshot")
            let (applied, last) = try store.applySnapshot(change, at: clock.wall)
            try tell(applied, inOrder: false) { $0.snapshotCommitted(lastMutation: last, now: $1) }
        case .sumUp:
            let sums = try store.digest()
            try run { $0.digestComputed(sums, now: $1) }
        case .loadOrphans(let limit):
            let orphans = try store.orphans(limit: limit)
            if !orphans.isEmpty { try run { $0.orphansLoaded(orphans, now: $1) } }
        case .saveResults(let results):
            for result in results { try heard(result) }
            try store.saveResults(results)
        case .endReads(let reads):
            let ended = try store.endReads(reads)
            try run { $0.readsEnded(ended, now: $1) }
        case .saveSession(let token, let user): try store.saveSession(token: token, user: user)
        case .forgetSession: try store.forgetSession()
        case .loadMutations(let number, let limit):
            let found = try store.mutations(after: number, limit: limit, now: clock.wall)
            try run { $0.mutationsLoaded(found, now: $1) }
        case .savePush(let push): try store.savePush(push)
        case .markSent(let number): try store.markSent(through: number)
        case .markLogoutSent(let number):
            try store.markLogoutSent(number)
            try run { $0.logoutMarked(now: $1) }
        case .raiseMutationNumbers(let floor): try store.raiseMutationNumbers(above: floor)
        case .renumberMutations(let first, let floor):
            try store.renumberMutations(from: first, above: floor)
            let last = try store.load().lastMutation
            try run { $0.mutationsRenumbered(last: last, now: $1) }
        case .needIdentityToken(let nonce, _):
            soon(50) { [unowned self] in
                let token = "\(self.user) \(base64URL(nonce))"
                try self.run { $0.identityToken(token, now: $1) }
            }
        case .report(let event): try reported(event)
        }
    }

    /// What its user takes a result for: that of the message written under the number.
    private func heard(_ result: MutationResult) throws {
        let queued = try store.mutations(after: result.number - 1, limit: 1, now: clock.wall).first
        guard result.code == 0, let queued, queued.number == result.number,
            case .sendMessage(let send) = queued.operation, let id = send.message
        else { return }
        simulation.userHears(thatIsStored: id)
    }

    private func reported(_ event: ClientEvent) throws {
        switch event {
        case .reset(let reason):
            resets += 1
            if app != .open { wasResetBehindTheFront = true }
            // Positions and versions are another history's.
            if reason != .cursorTooOld { (fresh, shown) = ([], [:]) }
            if resets > 1 { simulation.reached.count("a reset: \(reason)") }
        case .closed(let code?): simulation.reached.count("CLOSE \(code)")
        case .syncRequested: simulation.reached.count("a SYNC_REQUEST")
        case .digest(let isComparable, let isEqual, let objects):
            simulation.reached.count(isComparable ? "a digest compared" : "a digest too early")
            if isComparable { digest = (isEqual, objects) }
            if isComparable, !isEqual { simulation.reached.count("a digest that differs") }
        case .signalled(let kind, let conversation, let user):
            simulation.signalled(kind, user, in: conversation, on: self)
            let name = "\(user) \(conversation)"
            switch kind {
            case .typing: typing.insert(name)
            case .typingEnded: typing.remove(name)
            default: break
            }
        case .reauthenticated: simulation.reached.count("a session logged in anew in place")
        case .unread(let count): screen.setIcon(UInt64(count))
        case .synced:
            try tidy()
            if let last = try store.sendAwaited(at: clock.wall) {
                simulation.reached.count("a conversation that came back")
                try run { $0.mutationQueued(last, now: $1) }
            }
        default: break
        }
    }

    // MARK: The screen

    var name: String { "\(user) \(id)" }

    /// As the client library does: the icon's number, then the entries, then what follows.
    private func tell(
        _ applied: [Entry], inOrder: Bool,
        after commit: (inout ClientSession, Instant) -> [ClientAction]
    ) throws {
        note(applied, inOrder: inOrder)
        guard var session else { return }
        var actions = commit(&session, clock.now)
        self.session = session
        if case .report(.unread(let count)) = actions.first {
            actions.removeFirst()
            screen.setIcon(UInt64(count))
        }
        waiting += actions
        try notify(applied)
    }

    /// A push to this phone was lost, or came after a newer one.
    func doubtIcon() {
        screen.doubtIcon()
    }

    /// Behind the front the app shows what is new by itself, under the identifier that an alert of
    /// the same message would have (PSH-4, PSH-8).
    private func notify(_ applied: [Entry]) throws {
        guard app == .woken, let session else { return }
        for entry in session.news(among: applied) {
            guard case .message(let message) = entry.body, message.push != nil,
                let id = MessageID(entry.object),
                try store.standing(of: id, in: entry.conversation, at: clock.wall) == .shows
            else { continue }
            simulation.reached.count("a notification of the app's own")
            screen.show(
                id.description,
                SimulatedScreen.Notification(message: id, conversation: entry.conversation))
        }
    }

    /// What was read or deleted on another device goes from the screen.
    private func tidy() throws {
        for (identifier, shown) in screen.notifications.sorted(by: { $0.key < $1.key }) {
            let standing = try store.standing(
                of: shown.message, in: shown.conversation, at: clock.wall)
            guard standing == .over || standing == .missing && stood.contains(identifier)
            else { continue }
            simulation.reached.count("a notification taken away")
            screen.remove(identifier)
        }
    }

    /// P3 and order: an object's version is new once, a conversation's messages come in rising
    /// position.
    private func note(_ entries: [Entry], inOrder: Bool) {
        for entry in entries {
            let key =
                "\(Self.word(entry)) \(entry.conversation?.description ?? "") \(entry.body.map { "\($0)".prefix(12) } ?? "")"
            guard case .message(let message) = entry.body, let conversation = entry.conversation
            else { continue }
            if !fresh.insert(key).inserted {
                simulation.violations.append("P3: \(user) was given \(key) twice as new")
            }
            simulation.heard(entry, message, on: self)
            guard inOrder, entry.version == 1 else { continue }
            if message.position <= shown[conversation] ?? 0 {
                simulation.violations.append(
                    "P3: \(user) got position \(message.position) of \(conversation) after "
                        + "\(shown[conversation] ?? 0)")
            }
            shown[conversation] = message.position
        }
    }

    private func connect() {
        attempt += 1
        let attempt = attempt
        link?.close(from: .device)
        link = nil
        let isRefused =
            !isOnline || !simulation.server.isUp
            || !simulation.isCalm && simulation.chance.once(in: 25)
        let delay = 20 + simulation.chance.upTo(simulation.isCalm ? 50 : 2_000)
        soon(delay) { [unowned self] in
            // Given up meanwhile.
            guard self.attempt == attempt else { return }
            guard !isRefused, self.isOnline, self.simulation.server.isUp else {
                return try self.run { $0.closed(now: $1) }
            }
            try self.connected()
        }
    }

    private func connected() throws {
        guard let session, !session.isIdle else { return }
        stood = Set(screen.notifications.keys)
        let link = simulation.makeLink(of: self)
        self.link = link
        decoder = FrameDecoder()
        link.attach(
            .device,
            SimulatedLink.Handlers(
                received: { [weak self, weak link] bytes in
                    guard let self, let link, self.link === link else { return }
                    try self.received(bytes, link)
                },
                closed: { [weak self, weak link] in
                    guard let self, let link, self.link === link else { return }
                    self.link = nil
                    try self.run { $0.closed(now: $1) }
                }))
        simulation.server.accept(link)
        try run { $0.connected(now: $1) }
    }

    private func received(_ bytes: [UInt8], _ link: SimulatedLink) throws {
        decoder.append(bytes)
        while self.link === link {
            let next: Frame?
            do throws(WireError) {
                next = try decoder.next()
            } catch {
                throw Violation("a client cannot read what the server sent: \(error)")
            }
            guard let frame = next else { return }
            try run { $0.received(frame, now: $1) }
        }
    }
}

func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    var bits = 0
    var value = 0
    for byte in bytes {
        value = value << 8 | Int(byte)
        bits += 8
        while bits >= 6 {
            bits -= 6
            text.append(alphabet[value >> bits & 63])
        }
        value &= (1 << bits) - 1
    }
    if bits > 0 { text.append(alphabet[value << (6 - bits) & 63]) }
    return String(decoding: text, as: UTF8.self)
}
