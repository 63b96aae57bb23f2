import AppLife
import DeviceModel
import MemoryStore
import Model
import SyncClient
import Synchronization
import Wire

@testable import RouseClient

/// A process of the app on a device.
final class WeekProcess {
    /// Run time that the system gave it.
    struct Turn: Sendable {
        let began: Instant
        let deadline: Instant
        /// Where the user's feed ended then.
        let head: UInt64
    }

    struct Ended: Sendable {
        let turn: Turn
        let result: FetchResult
        let at: Instant
    }

    /// What it tells outside its actor.
    final class Told: Sendable {
        let ended = Mutex<[Ended]>([])
        /// What its lists show.
        let list = Mutex<[ConversationRow]>([])
        let window = Mutex<(ConversationID, MessageWindow)?>(nil)
    }

    let rouse: Rouse
    let lifeline: Lifeline
    let transport: WeekTransport
    var links: [(connection: WeekConnection, link: SimulatedLink)] = []
    var turns = 0
    let told = Told()
    var taken = 0
    var open: ConversationID?
    var watching: [Task<Void, Never>] = []

    init(_ rouse: Rouse, _ lifeline: Lifeline, _ transport: WeekTransport) {
        self.rouse = rouse
        self.lifeline = lifeline
        self.transport = transport
    }

    /// Nothing of it goes on before something else happens.
    func isQuiet(_ clock: WeekClock) async -> Bool {
        let before = transport.activity.withLock { $0 }
        let over = told.ended.withLock { $0.count }
        guard await rouse.rests(clock, turns: turns - over), transport.isIdle,
            await rouse.rests(clock, turns: turns - over)
        else { return false }
        return before == transport.activity.withLock { $0 }
            && over == told.ended.withLock { $0.count }
    }

    func hasBegun() async -> Bool {
        let over = told.ended.withLock { $0.count }
        return await rouse.waiting.count + over >= turns
    }

    func close() {
        for task in watching { task.cancel() }
        watching = []
    }
}

extension Rouse {
    fileprivate func rests(_ clock: WeekClock, turns: Int) -> Bool {
        guard !isCarryingOut, steps.isEmpty, waiting.count == turns else { return false }
        guard let timer else { return true }
        return clock.isSlept(until: timer.moment)
    }

    func unreadRows(of conversation: ConversationID) throws -> [MessageRow] {
        try store?.messageWindow(of: conversation, newest: 30, sent: []).rows
            .filter { $0.isUnread } ?? []
    }

    var sleepsSoundly: Bool { timer == nil && connection == nil }
    var isInSync: Bool { connectionState == .inSync }
    func register(_ version: String) { configuration.clientVersion = version }
}

/// A phone or a tablet with the app: it outlives the app's processes.
final class WeekDevice {
    /// What its owner sees of the app.
    enum View: Equatable {
        case behind
        case front(OnScreen)

        func sees(_ conversation: ConversationID) -> Bool {
            switch self {
            case .behind, .front(.nothing): false
            case .front(.everything): true
            case .front(.conversation(let place)): place == conversation
            }
        }
    }

    let id: DeviceID
    let name: String
    unowned let week: Week
    let phone: WeekPhone
    /// Of the process there is, or was last.
    private(set) var clock: WeekClock
    private let memory: MemoryStore
    private let disk: WeekDisk
    private(set) var process: WeekProcess?
    var token: [UInt8]
    var version = 1
    var isOnline = true
    /// Restarted, and not unlocked since.
    private(set) var isLocked = false
    var onScreen = OnScreen.nothing
    private var leavesUntil = Instant(milliseconds: 0)
    private var views: [(since: Instant, view: View)] = []
    /// The calendar of this device is wrong by so much, in milliseconds.
    var skew: Int64 = 0 { didSet { slowest = min(slowest, skew) } }
    /// How far it was behind at most.
    private(set) var slowest: Int64 = 0
    /// How far the feed was here when the app was last done with all of it; its screen is right
    /// for that.
    private(set) var tidyHead: UInt64?
    private(set) var tidyAt = Instant(milliseconds: 0)
    private var killNext: Int?
    private var expires: Timestamp?
    /// When the app's next timer is looked at.
    private var alarm: Instant?
    var isDirty = false
    var oracle = WeekOracle()

    init(_ id: DeviceID, _ name: String, _ week: Week, _ rules: DeviceRules) {
        self.id = id
        self.name = name
        self.week = week
        phone = WeekPhone(rules)
        clock = WeekClock(now: week.clock.now, wall: week.clock.wall)
        memory = MemoryStore(tables: LocalSchema.tables, clock: week.clock.wall)
        disk = WeekDisk(memory)
        token = id.bytes + id.bytes
    }

    var wall: Timestamp {
        Timestamp(milliseconds: UInt64(Int64(week.clock.wall.milliseconds) + skew))
    }

    var view: View { phone.appState == .foreground ? .front(onScreen) : .behind }

    func noteView() {
        guard views.last?.view != view else { return }
        views.append((week.clock.now, view))
        let view = view
        phone.use { $0.view = view }
    }

    /// All that its owner has seen since then.
    func views(since moment: Instant) -> [View] {
        let first = views.lastIndex { $0.since <= moment } ?? 0
        return views[first...].map(\.view)
    }

    /// What the disk holds; while no process writes.
    var stored: TableLocalStore { TableLocalStore(store: memory, keepsOwed: true) }
    var cursor: UInt64 { (try? stored.load().cursor?.seq) ?? 0 }

    // MARK: The process

    private func launched() -> WeekProcess {
        if let process { return process }
        clock = WeekClock(now: week.clock.now, wall: wall)
        let lifeline = Lifeline()
        lifeline.die(after: killNext)
        killNext = nil
        let transport = WeekTransport(lifeline)
        let (disk, box) = (disk, LockBox(isLocked))
        lock = box
        let (user, seed) = (week.user, week.chance.next())
        let rouse = Rouse(
            configuration: ClientConfiguration(
                app: week.app.name, device: id, clientName: name, clientVersion: "\(version)",
                wantsSnapshots: week.seed % 3 == 0,
                push: PushRegistration(
                    token: token, environment: .development, topic: "org.example")),
            transport: transport,
            phone: MortalPhone(phone: phone, lifeline: lifeline, clock: clock), clock: clock,
            seed: seed, told: MortalRecord(phone: phone, lifeline: lifeline),
            openStore: {
                if box.isLocked { throw LocalStoreError.unavailable("not unlocked") }
                return TableLocalStore(
                    store: MortalStore(disk.store, lifeline), keepsOwed: true)
            },
            identity: { nonce in "\(user) \(base64URL(nonce))" })
        let made = WeekProcess(rouse, lifeline, transport)
        process = made
        isDirty = true
        return made
    }

    private var lock: LockBox?

    /// The next process is killed at this call of what it has of the phone; one that runs behind
    /// the front, from now on.
    func kill(after calls: Int) {
        killNext = calls
        if phone.appState == .background { process?.lifeline.die(after: calls) }
    }

    private func bury() async throws {
        guard let dead = process else { return }
        process = nil
        if !dead.lifeline.isDead { dead.lifeline.die() }
        dead.close()
        for (_, link) in dead.links { link.abandon(.device) }
        // What waits in it is let go; nothing it does has an effect any more.
        await dead.rouse.scene(.suspending)
        clock.stop()
        tidyHead = nil
    }

    private func turn(
        for time: Milliseconds, _ call: @escaping @Sendable (Rouse) async -> FetchResult
    ) async throws {
        let process = launched()
        process.turns += 1
        let (now, clock) = (week.clock.now, clock)
        let turn = WeekProcess.Turn(
            began: now, deadline: now + time, head: try week.head())
        let rouse = process.rouse
        let told = process.told
        Task {
            let result = await call(rouse)
            told.ended.withLock {
                $0.append(WeekProcess.Ended(turn: turn, result: result, at: clock.now))
            }
        }
        // Before anything else is said to the app: a seed is one life.
        while await !process.hasBegun() { await Task.yield() }
    }

    // MARK: What happens on the phone

    func happen(_ events: [PhoneEvent]) async throws {
        for event in events { week.note("  \(name): \(event)") }
        try takeCleared()
        for event in events { try await happen(event) }
        noteView()
        isDirty = true
        guard let next = phone.use({ $0.model.nextDeadline }), next != expires else { return }
        expires = next
        let left = next.since(week.clock.wall)
        week.clock.after(left) { [unowned self] in
            guard self.expires == next else { return }
            self.expires = nil
            self.week.call { [unowned self] in
                let (rules, now) = (self.phone.rules, self.week.clock.wall)
                try await self.happen(
                    self.phone.does { $0.expire(rules: rules, now: now, into: &$1) })
            }
        }
    }

    private func happen(_ event: PhoneEvent) async throws {
        switch event {
        case .run(let handle, let time, _):
            let wake = phone.use { $0.wakes[handle] }
            week.reached.count(wake == nil ? "a background refresh" : "a wake")
            if isLocked { week.reached.count("a wake before first unlock") }
            if let wake {
                try await turn(for: time) { await $0.woken(by: wake, within: time) }
            } else {
                try await turn(for: time) { await $0.refreshTask(within: time) }
            }
        case .notify(let handle):
            try await willPresent(handle)
            let wake = phone.use { $0.wakes[handle] }
            try await turn(for: 30_000) { await $0.woken(by: wake, within: 30_000) }
        case .enterForeground: try await comeToFront()
        case .enterBackground(let time):
            leavesUntil = week.clock.now + time
            guard let process else { break }
            await process.rouse.scene(.inactive)
            await process.rouse.scene(.background(remaining: time))
        case .suspend: try await suspend()
        case .terminate: try await bury()
        case .networkChanged(let isUp):
            isOnline = isUp
            guard let process else { break }
            for (_, link) in process.links where !isUp { link.cut() }
            if phone.appState.isRunning { await process.rouse.networkChanged() }
        case .dropped(let handle, _): week.lose(handle, on: self)
        case .stored(_, .some(let handle)): week.lose(handle, on: self)
        default: break
        }
    }

    /// A push came in front: the app says whether the person is to see it.
    private func willPresent(_ handle: UInt64) async throws {
        guard let shown = phone.content(of: handle), !shown.text.isEmpty, let process else {
            return
        }
        let presentation = await process.rouse.presents(
            DeliveredNotification(
                identifier: shown.identifier, object: shown.object,
                conversation: shown.conversation))
        switch presentation {
        case .all: week.reached.count("an alert shown in front")
        case .list: week.reached.count("an alert in front listed")
        case .nothing: week.reached.count("an alert in front not shown")
        }
        if presentation != .nothing { phone.present(handle, shown) }
    }

    private func comeToFront() async throws {
        try await unlock()
        killNext = nil
        let process = launched()
        process.lifeline.die(after: nil)
        await process.rouse.onScreen(onScreen)
        await process.rouse.scene(.active)
        try await watch(process)
    }

    private func suspend() async throws {
        guard let process else { return }
        let wasInSync = await process.rouse.isInSync
        await process.rouse.scene(.suspending)
        try await settle()
        guard let process = self.process, !process.lifeline.isDead else { return }
        guard await process.rouse.sleepsSoundly else {
            throw Violation("\(name): the app is suspended, and has not let go of its connection")
        }
        if wasInSync { isTidy() }
    }

    private func isTidy() {
        (tidyHead, tidyAt) = (cursor, week.clock.now)
        oracleIsTidy()
    }

    /// The phone restarts, and waits to be unlocked.
    func restart() async throws {
        isLocked = true
        try await happen(phone.does { $0.reboot(into: &$1) })
    }

    /// Its owner unlocks it, and opens nothing.
    func unlock() async throws {
        guard isLocked else { return }
        isLocked = false
        lock?.unlock()
        isDirty = true
        await process?.rouse.unlocked()
    }

    /// What the phone's calendar says.
    func advance() {
        memory.clock = wall
        if clock.advance(to: week.clock.now, wall: wall) { isDirty = true }
    }

    /// Follows the list, and the conversation that is open.
    private func watch(_ process: WeekProcess) async throws {
        if process.watching.isEmpty {
            let stream = await process.rouse.conversations()
            let told = process.told
            process.watching.append(
                Task { for await rows in stream { told.list.withLock { $0 = rows } } })
        }
        if case .conversation(let place) = onScreen, process.open != place {
            process.open = place
            while process.watching.count > 1 { process.watching.removeLast().cancel() }
            let stream = await process.rouse.messages(in: place, newest: 500)
            let told = process.told
            process.watching.append(
                Task {
                    for await window in stream {
                        told.window.withLock { $0 = (place, window) }
                    }
                })
        }
    }

    func look(at place: OnScreen) async throws {
        onScreen = place
        noteView()
        isDirty = true
        guard let process, phone.appState == .foreground else { return }
        await process.rouse.onScreen(place)
        try await watch(process)
    }

    // MARK: Quiet

    /// Lets the process do all it can do at this moment, and takes what it did.
    func settle() async throws {
        guard isDirty || process?.lifeline.isDead == true, let process else {
            isDirty = false
            return
        }
        var turns = 0
        while await !process.isQuiet(clock) {
            turns += 1
            if turns > 1_000_000 { throw Violation("\(name): the app is never quiet") }
            await Task.yield()
        }
        isDirty = false
        if process.lifeline.isDead { return try await wasKilled() }
        connect(process)
        if let next = clock.next, next != alarm {
            alarm = next
            // The step alone: the device's clock is set before it.
            week.clock.at(next) { [unowned self] in if self.alarm == next { self.alarm = nil } }
        }
        try await takeEnded(process)
        if let misdeed = phone.use({ $0.misdeeds.first }) { throw Violation("\(name): \(misdeed)") }
    }

    private func wasKilled() async throws {
        week.reached.count("killed in the middle")
        try await bury()
        let events = phone.does { phone, events in
            if phone.state == .foreground { phone.forceQuit(into: &events) }
            phone.kill(into: &events)
        }
        try await happen(events)
    }

    private func takeEnded(_ process: WeekProcess) async throws {
        let ended = process.told.ended.withLock { Array($0.dropFirst(process.taken)) }
        process.taken += ended.count
        for words in phone.use({ state in
            defer { state.words = [] }
            return state.words
        }) {
            week.note("  \(name): the app \(words)")
        }
        try takeCleared()
        for end in ended {
            week.note("  \(name): \(end.result)")
            week.reached.count("completed: \(end.result.rawValue)")
            guard end.at <= end.turn.deadline else {
                throw Violation("\(name): completed \(end.at.since(end.turn.deadline)) ms late")
            }
            guard end.result != .failed else { continue }
            let isEarly = end.at + AppLife.Limits().margin < end.turn.deadline
            let cursor = cursor
            guard cursor >= end.turn.head || !isEarly else {
                throw Violation(
                    "\(name): \(end.result) at \(cursor), and the feed went to \(end.turn.head)")
            }
            // SYN-27.1: a sync brings the number, also where it brings no entry.
            guard phone.use(\.numberAt) >= end.turn.began || !isEarly else {
                throw Violation("\(name): \(end.result) without a number for the icon")
            }
            let owed = try stored.owed()
            guard owed.isEmpty || !isEarly else {
                throw Violation("\(name): \(end.result), and \(owed.count) are still owed")
            }
            if isEarly { isTidy() }
        }
        let mayEnd = week.clock.now >= leavesUntil && phone.appState == .background
        if !ended.isEmpty, process.taken == process.turns, mayEnd {
            try await happen(phone.does { $0.finished(into: &$1) })
        }
    }

    /// In front, and in sync, all is done too.
    func lookAfterFront() async {
        guard let process, phone.appState == .foreground, await process.rouse.isInSync else {
            return
        }
        isTidy()
    }

    private func takeCleared() throws {
        let cleared = phone.use { state in
            defer { state.cleared = [] }
            return state.cleared
        }
        if !cleared.isEmpty { try oracleSawCleared(cleared) }
    }

    private func connect(_ process: WeekProcess) {
        for connection in process.transport.takeFresh() {
            week.clock.after(20 + week.chance.upTo(200)) { [unowned self] in
                self.isDirty = true
                guard self.process === process, !connection.isClosed else { return }
                guard self.isOnline, self.week.server.isUp else {
                    return connection.tell(.closed(why: "no network"))
                }
                let link = self.week.makeLink()
                process.links.append((connection, link))
                link.attach(
                    .device,
                    SimulatedLink.Handlers(
                        received: { [unowned self] bytes in
                            connection.tell(.received(bytes))
                            self.isDirty = true
                        },
                        closed: { [unowned self] in
                            connection.tell(.closed(why: "closed"))
                            self.isDirty = true
                        }))
                self.week.server.accept(link)
                connection.tell(.connected)
            }
        }
        for (connection, link) in process.links {
            let bytes = connection.takeSent()
            if !bytes.isEmpty { link.send(bytes, to: .server) }
            if connection.isClosed { link.close(from: .device) }
        }
        process.links.removeAll { $0.connection.isOver }
    }
}

/// The device's files, as a process finds them.
private final class LockBox: Sendable {
    private let state: Mutex<Bool>

    init(_ isLocked: Bool) { state = Mutex(isLocked) }

    var isLocked: Bool { state.withLock { $0 } }
    func unlock() { state.withLock { $0 = false } }
}
