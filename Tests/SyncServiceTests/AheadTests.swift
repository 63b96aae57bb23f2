import EventLoop
import Feed
import Foundation
import MemoryStore
import Model
import Testing
import Wire

@testable import StoreService

/// A lane that does not wait for its commits.
@Suite struct AheadTests {
    @Test("every request is answered when it is committed, and in its order")
    func answers() throws {
        let bench = try Bench()
        defer { bench.stop() }
        let asked = 1...UInt64(200)
        for number in asked {
            bench.ask { _ = $0.commit(.makeConversation(number)) }
            // Alone, and together with others.
            if number.isMultiple(of: 50) { _ = bench.answers(Int(number)) }
        }
        let answers = bench.answers(200)
        #expect(answers.map(\.ticket) == asked.map { $0 + 1 })
        #expect(answers.filter(\.isCommitted).count == answers.count)
        #expect(bench.stores.areAllTold)
        #expect(bench.service.health.counts.requests == 201)
    }

    @Test(
        "what could not be committed is carried out once more, before what came after it",
        arguments: [StoreError.conflict("another's"), .full("no space, for a moment")])
    func again(_ reason: StoreError) throws {
        let bench = try Bench()
        defer { bench.stop() }
        bench.stores.holdNext(failingWith: reason)
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        bench.stores.gate.reached.wait()
        for number in 2...UInt64(20) { bench.ask { _ = $0.commit(.makeConversation(number)) } }
        bench.stores.gate.opened.arrive()
        let answers = bench.answers(20)
        #expect(answers.map(\.ticket) == (2...21).map { $0 })
        #expect(answers.filter(\.isCommitted).count == answers.count)
        #expect(try bench.stores.conversations() == 20)
    }

    @Test("what may be committed is answered so and not carried out again; others go on")
    func unknown() throws {
        let bench = try Bench()
        defer { bench.stop() }
        let reason = StoreError.unavailable("the connection was lost")
        bench.stores.holdNext(failingWith: reason)
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        bench.stores.gate.reached.wait()
        bench.ask { _ = $0.commit(.makeConversation(2)) }
        bench.stores.gate.opened.arrive()
        let answers = bench.answers(2)
        #expect(answers.map(\.ticket) == [2, 3])
        guard case .failed(reason)? = answers.first?.result else {
            Issue.record("\(answers)")
            return
        }
        #expect(answers.last?.isCommitted == true)
        #expect(try bench.stores.conversations() == 1)
    }

    @Test("what another writer commits meanwhile is told and answered behind it")
    func order() throws {
        let bench = try Bench()
        defer { bench.stop() }
        bench.stores.holdNext(failingWith: nil)
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        bench.stores.gate.reached.wait()
        let before = bench.stores.waitedFor
        bench.ask { _ = $0.commit(.makeApp("other")) }
        while bench.stores.waitedFor == before { usleep(1_000) }
        // Enough for the first writer to tell of it, if it did not wait.
        usleep(50_000)
        bench.stores.gate.opened.arrive()
        #expect(bench.answers(2).map(\.ticket) == [2, 3])
    }

    @Test("the end waits for the commit that is on its way, and tells of it")
    func end() throws {
        let bench = try Bench()
        // Behind a transaction of one request the next one has eight at most.
        bench.ask { _ = $0.commit(.makeConversation(1)) }
        _ = bench.answers(1)
        bench.stores.holdNext(failingWith: nil)
        bench.ask { for number in 2...UInt64(400) { _ = $0.commit(.makeConversation(number)) } }
        bench.stores.gate.reached.wait()
        let stopped = Latch()
        Thread.detachNewThread {
            bench.service.stop()
            stopped.arrive()
        }
        // Enough for the lane to be asked to end.
        usleep(100_000)
        bench.stores.gate.opened.arrive()
        stopped.wait()
        let made = try bench.stores.conversations()
        #expect(made > 1 && made < 400, "\(made): the end came too early, or too late")
        #expect(bench.answers(made).count == made)
        #expect(bench.stores.areAllTold)
        bench.stopAsking()
    }

    /// The service with one lane, and one loop that asks it.
    private final class Bench: Sendable {
        let stores = AheadStores()
        let service: StoreService
        private let asker: StoreAsker

        init() throws {
            let stores = stores
            let service = try StoreService.start(
                duties: [], boot: BootID(high: 1, low: 1), epochHalf: 1,
                open: { stores.open(isAhead: false) }, openLane: { stores.open(isAhead: true) },
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

        func stopAsking() { asker.stop() }

        func stop() {
            asker.stop()
            service.stop()
        }
    }
}

extension StoreReply {
    fileprivate var isCommitted: Bool {
        guard case .committed(let outcome) = result else { return false }
        if case .refused = outcome.answer { return false }
        return true
    }
}

/// What the stores of a service have in common: the rows, and what the test wants of a commit.
private final class AheadStores: @unchecked Sendable {
    // @unchecked: everything is used while holding `lock`.
    let lock = Lock()
    let memory = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)
    /// Commits of the lane that were not waited for, and those of them that were told of.
    var (begun, ended) = (0, 0)
    /// Commits that were waited for.
    private var others = 0
    /// What the next of them comes to.
    var failure: StoreError?
    /// Where the lane stands with a commit on its way.
    let gate = GatedStore.Gate()

    func open(isAhead: Bool) -> AheadStore { AheadStore(self, isAhead: isAhead) }

    var waitedFor: Int { lock.withLock { others } }
    /// With the lock.
    func countWaitedFor() { others += 1 }

    var areAllTold: Bool { lock.withLock { begun == ended } }

    /// The next commit that is not waited for stands at the gate.
    func holdNext(failingWith failure: StoreError?) {
        lock.withLock { self.failure = failure }
        gate.isArmed.value = true
    }

    func conversations() throws -> Int {
        try lock.withLock {
            var count = 0
            try memory.read { snapshot throws(StoreError) in
                count = try snapshot.rows(ConversationRecord.table, Scan(limit: 1_000)).count
            }
            return count
        }
    }
}

/// One writer's store. What comes of a commit is told as late as may be.
private final class AheadStore: DistantStore {
    private let stores: AheadStores
    private let engine: DistantEngine
    private let isAhead: Bool
    private var pending: (error: StoreError?, ended: (StoreError?) -> Void)?

    init(_ stores: AheadStores, isAhead: Bool) {
        self.stores = stores
        engine = DistantEngine(stores.memory, lockRanks: Schema.lockRanks)
        self.isAhead = isAhead
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try writeFetching { transaction throws(StoreError) in try body(transaction) }
    }

    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        settle()
        try stores.lock.withLock { () throws(StoreError) in
            try engine.writeFetching(body)
            stores.countWaitedFor()
        }
    }

    func writeAhead(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void,
        ended: @escaping (StoreError?) -> Void
    ) throws(StoreError) {
        precondition(isAhead, "the first writer waits for its commits")
        let hasFailed = pending?.error != nil
        let failure = try stores.lock.withLock { () throws(StoreError) -> StoreError? in
            let failure = stores.failure
            stores.failure = nil
            do throws(StoreError) {
                try engine.writeFetching { transaction throws(StoreError) in
                    try body(transaction)
                    if hasFailed { throw .unavailable("behind one that failed") }
                    if let failure { throw failure }
                }
            } catch {
                guard error == failure else { throw error }
            }
            return failure
        }
        settle()
        stores.lock.withLock { stores.begun += 1 }
        pending = (failure, ended)
        stores.gate.pass()
        stores.gate.isArmed.value = false
    }

    func settle() {
        guard let (error, ended) = pending else { return }
        pending = nil
        stores.lock.withLock { stores.ended += 1 }
        ended(error)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        settle()
        try stores.lock.withLock { () throws(StoreError) in try engine.read(body) }
    }

    func reader() throws(StoreError) -> any StoreReader { try engine.reader() }
    func now() -> Timestamp { engine.now() }
    func checkpoint() throws(StoreError) {}
    func close() { settle() }
}
