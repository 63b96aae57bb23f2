import AppLife
import MemoryStore
import Model
import RouseClient
import SyncClient
import Synchronization
import Wire

/// A clock that moves when the test says so.
final class ManualClock: RouseClock {
    private struct State {
        var now = Instant(milliseconds: 1_000_000)
        var sleepers: [UInt64: (until: Instant, wake: CheckedContinuation<Void, any Error>)] = [:]
        var last: UInt64 = 0
    }

    private let state = Mutex(State())
    /// Moments that somebody sleeps until, in the order asked.
    let asked: AsyncStream<Instant>
    private let asking: AsyncStream<Instant>.Continuation

    init() { (asked, asking) = AsyncStream.makeStream() }

    var now: Instant { state.withLock { $0.now } }
    var wall: Timestamp { Timestamp(milliseconds: now.milliseconds + 1_700_000_000_000) }

    func sleep(until moment: Instant) async throws {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isLate = Task.isCancelled
                let isDue = state.withLock { state in
                    if isLate || state.now >= moment { return true }
                    state.sleepers[number] = (moment, continuation)
                    return false
                }
                if isLate {
                    continuation.resume(throwing: CancellationError())
                } else if isDue {
                    continuation.resume()
                }
                asking.yield(moment)
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.wake.resume(throwing: CancellationError())
        }
    }

    /// Advances to each as soon as somebody sleeps until then.
    func pass(_ moments: [Instant]) async {
        var left = moments[...]
        for await moment in asked where moment == left.first {
            advance(to: moment)
            left.removeFirst()
            if left.isEmpty { return }
        }
    }

    func advance(to moment: Instant) {
        let due = state.withLock { state in
            state.now = max(state.now, moment)
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.wake)
        }
        for sleeper in due { sleeper.resume() }
    }
}

/// The screen of a phone, and what happens to it and to the server, in one order.
final class FakePhone: RousePhone {
    private struct State {
        var screen: [DeliveredNotification] = []
        var icon: UInt32 = 0
        var log: [String] = []
        var notices: [AppNotice] = []
        /// Looks at the screen that the system still answers at once.
        var looks: Int
        /// The app that is in front.
        var front: Rouse?
        var banners: [String] = []
    }

    private let state: Mutex<State>
    /// Of a process that began before it.
    let wasUnlocked = Mutex(false)
    /// What the system does not answer before `gate`.
    enum Call { case show, delivered }

    let gate: AsyncStream<Void>?
    let gated: Call
    let isAtGate: AsyncStream<Void>
    private let atGate: AsyncStream<Void>.Continuation

    init(gate: AsyncStream<Void>? = nil, at gated: Call = .show, after looks: Int = 0) {
        state = Mutex(State(looks: looks))
        self.gate = gate
        self.gated = gated
        (isAtGate, atGate) = AsyncStream.makeStream()
    }

    var screen: [UInt64] { state.withLock { $0.screen.map { $0.object?.low ?? 0 } } }
    var icon: UInt32 { state.withLock { $0.icon } }
    var log: [String] { state.withLock { $0.log } }
    /// Everything that was shown.
    var notices: [AppNotice] { state.withLock { $0.notices } }

    /// The bodies of what was shown in front with banner and sound.
    var banners: [String] { state.withLock { $0.banners } }

    /// From now on this app is asked what to show.
    func isInFront(_ rouse: Rouse?) { state.withLock { $0.front = rouse } }

    /// The server has alerted of it.
    func alert(_ entry: Entry) {
        guard let object = MessageID(entry.object) else { return }
        state.withLock {
            $0.screen.append(
                DeliveredNotification(
                    identifier: object.description, object: object,
                    conversation: entry.conversation))
        }
    }

    func note(_ words: String) { state.withLock { $0.log.append(words) } }

    func delivered() async -> [DeliveredNotification] {
        let isPassed = state.withLock { state in
            state.looks -= 1
            return state.looks >= 0
        }
        if let gate, gated == .delivered, !isPassed {
            atGate.yield()
            for await _ in gate {}
        }
        return state.withLock { $0.screen }
    }

    func show(_ notice: AppNotice) async {
        if let gate, gated == .show {
            atGate.yield()
            for await _ in gate {}
            return
        }
        let shown = DeliveredNotification(notice)
        let presentation = await state.withLock(\.front)?.presents(shown) ?? .all
        state.withLock { state in
            state.screen.removeAll { $0.identifier == shown.identifier }
            guard presentation != .nothing else { return }
            state.screen.append(shown)
            if presentation == .all, state.front != nil { state.banners.append(notice.body) }
            state.log.append("show \(notice.title): \(notice.body)")
            state.notices.append(notice)
        }
    }

    func remove(identifier: String) async {
        state.withLock { state in
            state.screen.removeAll { $0.identifier == identifier }
            state.log.append("remove")
        }
    }

    func setBadge(_ count: UInt32) async {
        state.withLock { state in
            state.icon = count
            state.log.append("badge \(count)")
        }
    }
}

extension DeliveredNotification {
    /// As the system gives it back: what it knows is the identifier and the `userInfo`.
    init(_ notice: AppNotice) {
        let subject = notice.userInfo["rouse"] as? [String: Any]
        self.init(
            identifier: notice.identifier,
            object: (subject?["o"] as? String).flatMap { MessageID(text: $0) },
            conversation: (subject?["c"] as? String).flatMap { ConversationID(text: $0) },
            isQuiet: subject?["q"] as? Bool ?? false)
    }
}

/// A phone with one app, its server and its disk. A killed process leaves the disk and the phone.
struct Stage {
    static let room = ConversationID(high: 3, low: 3)
    let clock = ManualClock()
    let phone: FakePhone
    let server: ScriptedServer
    let disk: SharedDisk

    init(phone: FakePhone = FakePhone(), disk: SharedDisk? = nil) throws {
        self.phone = phone
        server = ScriptedServer(phone)
        if let disk {
            self.disk = disk
        } else {
            self.disk = SharedDisk()
            let store = TableLocalStore(store: self.disk, keepsOwed: true)
            try store.saveSession(token: [9], user: "anna")
            _ = try store.apply(
                LocalChange(entries: [], to: Cursor(epoch: ScriptedServer.epoch, seq: 10)))
        }
    }

    /// The same disk, under another screen.
    func next(_ phone: FakePhone) throws -> Stage { try Stage(phone: phone, disk: disk) }

    /// A process of the app.
    func process(
        isLocked: Bool = false, user: String? = nil, over engine: (any Store)? = nil,
        told: (any ToldRecord)? = nil, login: (any LoginRecord)? = nil, on seat: (any Actor)? = nil,
        journal: @escaping Rouse.Journal = { _ in }
    ) -> Rouse {
        let (disk, phone) = (Disk(engine ?? disk), phone)
        return Rouse(
            configuration: ClientConfiguration(
                app: "chess", device: DeviceID(high: 5, low: 5), user: user, clientName: "test",
                clientVersion: "1", wantsSignals: true),
            transport: server, phone: phone, clock: clock, seed: 1, told: told, login: login,
            on: seat, journal: journal,
            openStore: {
                if isLocked, !phone.wasUnlocked.withLock({ $0 }) {
                    throw LocalStoreError.unavailable("not unlocked")
                }
                return TableLocalStore(store: disk.store, keepsOwed: true)
            }, identity: { _ in user })
    }

    /// The store of one process.
    private final class Disk: @unchecked Sendable {
        // @unchecked: one actor uses it.
        let store: any Store

        init(_ store: any Store) { self.store = store }
    }

    static func message(_ number: UInt64, body: String? = nil) -> Entry {
        Entry(
            seq: 10 + number, conversation: room,
            object: MessageID(high: 0, low: number).bytes, version: number,
            body: .message(
                MessageState(
                    position: number, sender: "ben",
                    push: PushText(title: "Ben", body: body ?? "\(number)"))))
    }

    static func muted(seq: UInt64) -> Entry {
        Entry(
            seq: seq, conversation: room, object: room.bytes, version: seq,
            body: .conversationSettings(ConversationSettings(muted: true)))
    }

    static func readMark(through: UInt64, seq: UInt64) -> Entry {
        Entry(
            seq: seq, conversation: room, object: room.bytes, version: seq,
            body: .readMark(ReadMarkState(through: through)))
    }
}

/// A disk that several processes have open, as a file has it: a test that starts the next process
/// cannot stop the first one within a step, and each read and write is alone.
final class SharedDisk: Store, @unchecked Sendable {
    // @unchecked: the store is used under the lock only.
    private let store: any Store
    private let turn = Mutex(())

    init() { store = MemoryStore(tables: LocalSchema.tables) }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try turn.withLock { _ throws(StoreError) in try store.write(body) }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try turn.withLock { _ throws(StoreError) in try store.read(body) }
    }

    func reader() throws(StoreError) -> any StoreReader {
        throw .unavailable("a phone's store has no reader beside it")
    }

    func now() -> Timestamp { turn.withLock { _ in store.now() } }

    func checkpoint() throws(StoreError) {
        try turn.withLock { _ throws(StoreError) in try store.checkpoint() }
    }

    func close() { turn.withLock { _ in store.close() } }
}
