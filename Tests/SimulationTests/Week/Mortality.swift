import AppLife
import Model
import RouseClient
import Synchronization

/// Whether a process lives. It is killed at a chosen call of what it has of the phone: from there
/// on nothing of it is written, shown or sent.
final class Lifeline: Sendable {
    private struct State {
        var left: Int?
        var isDead = false
    }

    private let state = Mutex(State())

    var isDead: Bool { state.withLock { $0.isDead } }

    /// One call more; `false`: it is killed instead of this one, or was before.
    func passes() -> Bool {
        state.withLock { state in
            guard !state.isDead else { return false }
            guard let left = state.left else { return true }
            state.left = left - 1
            state.isDead = left <= 0
            return !state.isDead
        }
    }

    func die() { state.withLock { $0.isDead = true } }

    /// - Parameter calls: those that it may still make; `nil`: as many as it likes.
    func die(after calls: Int?) { state.withLock { $0.left = calls } }
}

/// A process's view of its disk, which outlives it. Killed at a write, it has committed or not.
final class MortalStore: Store {
    private let disk: any Store
    private let lifeline: Lifeline

    init(_ disk: any Store, _ lifeline: Lifeline) {
        self.disk = disk
        self.lifeline = lifeline
    }

    private func live() throws(StoreError) {
        if !lifeline.passes() { throw .unavailable("the process was killed") }
    }

    func write(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try live()
        try disk.write(body)
        try live()
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        if lifeline.isDead { throw .unavailable("the process was killed") }
        try disk.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try disk.reader() }
    func now() -> Timestamp { disk.now() }
    func checkpoint() throws(StoreError) { try disk.checkpoint() }
    func close() {}
}

/// One process at a time uses it.
final class WeekDisk: @unchecked Sendable {
    // @unchecked: the week looks at it only while no process runs, and one process runs at a time.
    let store: any Store

    init(_ store: any Store) { self.store = store }
}

/// The clocks of a phone, in virtual time.
final class WeekClock: RouseClock {
    private struct State {
        var now: Instant
        var wall: Timestamp
        var sleepers: [UInt64: (until: Instant, wake: CheckedContinuation<Void, any Error>)] = [:]
        var last: UInt64 = 0
    }

    private let state: Mutex<State>

    init(now: Instant, wall: Timestamp) { state = Mutex(State(now: now, wall: wall)) }

    var now: Instant { state.withLock { $0.now } }
    var wall: Timestamp { state.withLock { $0.wall } }
    /// When the next wakes.
    var next: Instant? { state.withLock { $0.sleepers.values.map(\.until).min() } }

    func isSlept(until moment: Instant) -> Bool {
        state.withLock { $0.sleepers.values.contains { $0.until == moment } }
    }

    func sleep(until moment: Instant) async throws {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = state.withLock { state -> Result<Void, any Error>? in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.now >= moment { return .success(()) }
                    state.sleepers[number] = (moment, continuation)
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.wake.resume(throwing: CancellationError())
        }
    }

    /// Nobody waits any more.
    func stop() {
        let all = state.withLock { state in
            defer { state.sleepers = [:] }
            return state.sleepers.values.map(\.wake)
        }
        for sleeper in all { sleeper.resume(throwing: CancellationError()) }
    }

    /// Whether somebody woke.
    func advance(to moment: Instant, wall: Timestamp) -> Bool {
        let due = state.withLock { state in
            state.now = max(state.now, moment)
            state.wall = wall
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.map(\.wake)
        }
        for sleeper in due { sleeper.resume() }
        return !due.isEmpty
    }
}

/// A process's way to the server. What it does is taken from here when it is quiet.
final class WeekTransport: RouseTransport {
    private struct State {
        var fresh: [WeekConnection] = []
        var all: [WeekConnection] = []
    }

    private let state = Mutex(State())
    private let lifeline: Lifeline
    /// Counts what happens, so that quiet can be told from the moment between two things.
    let activity = Mutex<UInt64>(0)

    init(_ lifeline: Lifeline) { self.lifeline = lifeline }

    func connect() -> any RouseConnection {
        activity.withLock { $0 += 1 }
        let connection = WeekConnection(self, lifeline)
        state.withLock { state in
            state.fresh.append(connection)
            state.all.append(connection)
        }
        if !lifeline.passes() { connection.tell(.closed(why: "killed")) }
        return connection
    }

    var isIdle: Bool {
        let all = state.withLock { state in
            state.all.removeAll { $0.isOver }
            return state.all
        }
        return all.allSatisfy(\.isIdle)
    }

    func takeFresh() -> [WeekConnection] {
        state.withLock { state in
            defer { state.fresh = [] }
            return state.fresh
        }
    }
}

final class WeekConnection: RouseConnection {
    private struct State {
        var told: [TransportEvent] = []
        var waiter: CheckedContinuation<TransportEvent?, Never>?
        var sent: [UInt8] = []
        /// By the client.
        var isClosed = false
        /// `closed` was told, and is dealt with when the next is asked for.
        var isEnding = false
        var isOver = false

        /// The next of what was told; nothing comes after `closed`.
        mutating func took() -> TransportEvent {
            let event = told.removeFirst()
            if case .closed = event { isEnding = true }
            return event
        }
    }

    private let state = Mutex(State())
    private let transport: WeekTransport
    private let lifeline: Lifeline

    init(_ transport: WeekTransport, _ lifeline: Lifeline) {
        self.transport = transport
        self.lifeline = lifeline
    }

    var events: AsyncStream<TransportEvent> { AsyncStream { [self] in await next() } }
    var isClosed: Bool { state.withLock { $0.isClosed } }
    /// Nothing comes of it any more.
    var isOver: Bool { state.withLock { $0.isOver || $0.isClosed } }
    /// Everything told was dealt with.
    var isIdle: Bool { state.withLock { $0.isOver || $0.isClosed || $0.waiter != nil } }

    private func next() async -> TransportEvent? {
        transport.activity.withLock { $0 += 1 }
        return await withCheckedContinuation { continuation in
            let answer = state.withLock { state -> TransportEvent?? in
                if state.isEnding { state.isOver = true }
                if state.isClosed || state.isOver { return .some(nil) }
                if state.told.isEmpty {
                    state.waiter = continuation
                    return nil
                }
                return .some(state.took())
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    func tell(_ event: TransportEvent) {
        transport.activity.withLock { $0 += 1 }
        let (waiter, answer) = state.withLock { state in
            if !state.isClosed { state.told.append(event) }
            guard let waiter = state.waiter, !state.told.isEmpty else {
                return (nil as CheckedContinuation<TransportEvent?, Never>?, nil as TransportEvent?)
            }
            state.waiter = nil
            return (waiter, state.took())
        }
        waiter?.resume(returning: answer)
    }

    func send(_ bytes: [UInt8]) {
        guard lifeline.passes() else { return }
        state.withLock { $0.sent += bytes }
    }

    func takeSent() -> [UInt8] {
        state.withLock { state in
            defer { state.sent = [] }
            return state.sent
        }
    }

    func close() {
        transport.activity.withLock { $0 += 1 }
        let waiter = state.withLock { state in
            state.isClosed = true
            state.told = []
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }
}
