import EventLoop
import Feed
import Glibc
import MemoryStore
import Model
import Testing
import Wire

@testable import StoreService

/// Several writers of one server on one store.
@Suite struct LaneTests {
    private static let app = AppID("chat")

    @Test("what one lane committed before another is told and answered before it")
    func order() throws {
        let bench = try Bench(lanes: 1)
        defer { bench.stop() }
        let late = bench.stores.gates[1]
        late.isArmed.value = true
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        // It is committed, and the lane does not know yet.
        late.reached.wait()
        bench.ask { _ = $0.commit(.makeApp("other")) }
        #expect(bench.stores.awaitCommits { $0[0] > 2 })
        // Enough for the first writer to tell of it, if it did not wait.
        usleep(50_000)
        late.opened.arrive()
        #expect(bench.answers(2).map(\.ticket) == [2, 3])
    }

    @Test("requests of one conversation are carried out in their order, in whatever lane")
    func sameLane() throws {
        let bench = try Bench(lanes: 4)
        defer { bench.stop() }
        let asked = 1...UInt64(24)
        for gate in bench.stores.begins.dropFirst() { gate.isArmed.value = true }
        bench.ask { client in
            for number in asked { _ = client.commit(.makeConversation(number)) }
            for number in asked {
                let addition = AddParticipants(
                    conversation: ConversationID(high: 1, low: number), users: ["carol"])
                _ = client.commit(
                    .addParticipants(app: Self.app, addition, idempotency: nil))
            }
        }
        // Enough for whoever does not keep to the order.
        usleep(50_000)
        for gate in bench.stores.begins { gate.opened.arrive() }
        let answers = bench.answers(48)
        for number in asked {
            let mine = answers.filter { ($0.ticket - 2) % 24 + 1 == number }
            #expect(mine.map(\.ticket) == [number + 1, number + 25])
            for answer in mine {
                guard case .committed(let outcome) = answer.result else {
                    Issue.record("\(answer)")
                    continue
                }
                if case .refused = outcome.answer { Issue.record("\(outcome.answer)") }
            }
        }
        // All writers together, and the first one's start is none of them.
        #expect(bench.service.health.counts.requests == 49)
        #expect(bench.stores.commits.dropFirst().filter { $0 > 0 }.count > 1, "one lane had all")
    }

    @Test("a lane that waits for the store keeps no other waiting")
    func beside() throws {
        let bench = try Bench(lanes: 2)
        defer { bench.stop() }
        let stuck = bench.stores.begins[1]
        stuck.isArmed.value = true
        bench.ask { client in
            for number in 1...UInt64(32) { _ = client.commit(.makeConversation(number)) }
        }
        stuck.reached.wait()
        #expect(!bench.answers(1).isEmpty)
        stuck.opened.arrive()
        #expect(bench.answers(32).count == 32)
    }

    @Test("what a lane leaves for the duties, the first writer does soon")
    func duties() throws {
        let bench = try Bench(
            lanes: 2,
            duty: StoreDuty(
                name: "deletions", request: .continueDeletions(rows: 100), interval: 3_600_000,
                follows: .deletions))
        defer { bench.stop() }
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        _ = bench.answers(1)
        // The start, the app, and the duty's first turn.
        #expect(bench.stores.awaitCommits { $0[0] == 3 })
        bench.ask { client in
            _ = client.commit(.change(app: Self.app, .deleteUser(UserID("bob")), idempotency: nil))
        }
        #expect(bench.stores.awaitCommits { $0[0] > 3 }, "the duty was not asked for")
    }

    @Test("the end closes the store of each writer, the first one's last")
    func end() throws {
        let bench = try Bench(lanes: 3)
        bench.stop()
        #expect(bench.stores.closed == [3, 2, 1, 0])
    }

    /// The service over stores that share one memory, and one loop that asks it.
    private final class Bench: Sendable {
        let stores: LaneStores
        let service: StoreService
        private let asker: StoreAsker

        init(lanes: Int, duty: StoreDuty? = nil) throws {
            var limits = StoreServiceLimits()
            limits.lanes = lanes
            let stores = LaneStores(1 + lanes)
            self.stores = stores
            let service = try StoreService.start(
                limits: limits, duties: duty.map { [$0] } ?? [], boot: BootID(high: 1, low: 1),
                epochHalf: 1, open: { stores.open() }, openLane: { stores.open() },
                onCommit: { _ in })
            self.service = service
            asker = try StoreAsker(service)
            // With ticket 1; the answers of a test come behind it.
            ask { _ = $0.commit(.makeApp("chat")) }
            _ = asker.answers(1)
        }

        func ask(_ body: @escaping @Sendable (StoreClient) -> Void) { asker.ask(body) }

        /// Without that to the app's making.
        func answers(_ count: Int) -> ArraySlice<StoreReply> {
            asker.answers(1 + count).dropFirst()
        }

        func stop() {
            asker.stop()
            service.stop()
        }
    }
}

/// What the stores of several writers have in common: the rows, and where a test holds them up.
private final class LaneStores: @unchecked Sendable {
    // @unchecked: the memory is used, and the counts are touched, while holding `lock`.
    let lock = Lock()
    let memory = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)
    /// Where a writer waits before a transaction, and behind its commit.
    let begins: [GatedStore.Gate]
    let gates: [GatedStore.Gate]
    private var opened = 0
    private var counts: [Int]
    private var ends: [Int] = []

    init(_ count: Int) {
        begins = (0..<count).map { _ in GatedStore.Gate() }
        gates = (0..<count).map { _ in GatedStore.Gate() }
        counts = Array(repeating: 0, count: count)
    }

    func open() -> LaneStore {
        lock.withLock {
            defer { opened += 1 }
            return LaneStore(self, opened)
        }
    }

    /// Transactions by writer; the first of the first is its start.
    var commits: [Int] { lock.withLock { counts } }
    var closed: [Int] { lock.withLock { ends } }

    /// - Returns: whether it came true in time.
    func awaitCommits(_ condition: ([Int]) -> Bool) -> Bool {
        for _ in 0..<20_000 where !condition(commits) { usleep(1_000) }
        return condition(commits)
    }

    func count(_ writer: Int) { counts[writer] += 1 }
    func end(_ writer: Int) { lock.withLock { ends.append(writer) } }
}

/// One writer's store.
private final class LaneStore: Store {
    private let stores: LaneStores
    private let number: Int

    init(_ stores: LaneStores, _ number: Int) {
        self.stores = stores
        self.number = number
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        stores.begins[number].pass()
        try stores.lock.withLock { () throws(StoreError) in
            try stores.memory.write(body)
            stores.count(number)
        }
        stores.gates[number].pass()
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try stores.lock.withLock { () throws(StoreError) in try stores.memory.read(body) }
    }

    func reader() throws(StoreError) -> any StoreReader { try stores.memory.reader() }
    func now() -> Timestamp { stores.memory.now() }
    func checkpoint() throws(StoreError) {}
    func close() { stores.end(number) }
}
