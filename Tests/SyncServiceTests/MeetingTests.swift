import EventLoop
import Feed
import MemoryStore
import Model
import Testing
import Wire

@testable import StoreService

/// A request that meets another node's in the store is carried out again, for a while.
@Suite struct MeetingTests {
    @Test("one that meets others' again and again is carried out as soon as they are gone")
    func again() throws {
        let bench = try Bench(conflicts: 60)
        defer { bench.stop() }
        guard case .committed = bench.makeApp() else {
            Issue.record("the request was given up")
            return
        }
        #expect(bench.service.health.counts.queuedRequests == 0)
    }

    @Test("one that goes on meeting others' is answered that the store is busy")
    func givenUp() throws {
        let bench = try Bench(conflicts: .max)
        defer { bench.stop() }
        guard case .failed(.conflict) = bench.makeApp() else {
            Issue.record("no answer, or another one")
            return
        }
    }

    @Test("of a group that meets others' as a whole only the request that does so waits")
    func halves() throws {
        let bench = try Bench(conflicts: 0, badApp: "bad")
        defer { bench.stop() }
        let names = (0..<20).map { "app-\($0)" } + ["bad"] + (20..<40).map { "app-\($0)" }
        let results = bench.makeApps(names)
        #expect(results.count == names.count)
        for (name, result) in results where name != "bad" {
            guard case .committed = result else {
                Issue.record("\(name) was refused with the other: \(result)")
                continue
            }
        }
        // Nobody had to wait until the one was given up.
        #expect(results.last?.0 == "bad")
        guard case .failed(.conflict)? = results.last?.1 else {
            Issue.record("\(results.last as Any)")
            return
        }
    }

    @Test("what has met others' is carried out by itself from then on, whatever comes meanwhile")
    func alone() throws {
        let bench = try Bench(conflicts: 0, badApp: "bad")
        defer { bench.stop() }
        let results = bench.makeApps(["one", "bad", "two"], more: 200)
        #expect(results.count == 203)
        // It was found in its group once.
        let companions = bench.companions.value.drop { $0 > 0 }
        #expect(companions.count > 3 && companions.allSatisfy { $0 == 0 }, "\(companions)")
    }

    @Test("many that meet others' keep nobody waiting: after each of them the others have a turn")
    func inTurns() throws {
        let bench = try Bench(conflicts: 0, badApp: "bad", together: 8)
        defer { bench.stop() }
        // Each group of 8 begins with one, until there are no more of them.
        let names = (0..<100).flatMap { group in
            (0..<8).map { $0 == 0 && group < 24 ? "bad-\(group)" : "app-\(group)-\($0)" }
        }
        for (name, result) in bench.makeApps(names) {
            switch result {
            case .committed: #expect(!name.hasPrefix("bad"))
            case .failed(.conflict): #expect(name.hasPrefix("bad"))
            default: Issue.record("\(name): \(result)")
            }
        }
        // Until the last of the others is done, no two of them are tried one after the other.
        let all = bench.companions.all
        let busy = all[..<(all.lastIndex { $0 == nil } ?? 0)]
        let pairs = zip(busy, busy.dropFirst()).count { $0 == 0 && $1 == 0 }
        #expect(busy.count { $0 == 0 } > 24 && pairs == 0, "\(pairs) of \(busy.count)")
    }

    @Test("of a group that is divided no longer each is carried out by itself, in turns of its own")
    func divisionEnds() throws {
        // As where each conflict was a wait for a lock.
        let bench = try Bench(conflicts: 0, badApp: "bad", divisionTime: 0)
        defer { bench.stop() }
        let results = bench.makeApps(["one", "bad", "two"])
        #expect(bench.companions.value.first == 2, "the group as a whole")
        #expect(bench.companions.value.dropFirst().allSatisfy { $0 == 0 }, "no part of it")
        for (name, result) in results {
            switch result {
            case .committed: #expect(name != "bad")
            case .failed(.conflict): #expect(name == "bad")
            default: Issue.record("\(name): \(result)")
            }
        }
    }

    /// The service over a store in memory, and one loop that asks it.
    private final class Bench: Sendable {
        let service: StoreService
        private let thread: LoopThread
        /// Where the writer waits until a group is together.
        private let gate = GatedStore.Gate()
        let companions = Companions()

        /// - Parameter together: requests of one transaction, at most.
        init(
            conflicts: Int, badApp: String? = nil, divisionTime: UInt64 = 4_000,
            together: Int? = nil
        ) throws {
            var limits = StoreServiceLimits()
            if let together { limits.requestsPerCommit = together }
            limits.divisionTime = divisionTime
            let (gate, companions) = (gate, companions)
            service = try StoreService.start(
                limits: limits, duties: [], boot: BootID(high: 1, low: 1), epochHalf: 1,
                open: { MetStore(conflicts, badApp, gate, companions) }, onCommit: { _ in })
            thread = try LoopThread.start(name: "bench") { _ in }
        }

        /// - Returns: the answer to the first request.
        func makeApp() -> StoreResult? {
            let answered = Latch()
            let lock = Lock()
            nonisolated(unsafe) var result: StoreResult?  // guarded by `lock`
            nonisolated(unsafe) var client: StoreClient?  // the loop's
            thread.perform { loop in
                client = self.service.client(on: loop) { reply in
                    lock.withLock { result = reply.result }
                    answered.arrive()
                }
                client?.commit(Self.making("chat"))
            }
            answered.wait()
            thread.perform { _ in client?.close() }
            return lock.withLock { result }
        }

        /// Makes them in one group.
        ///
        /// - Parameter more: made one after the other meanwhile, each two when one is answered.
        /// - Returns: the answers in the order in which they came.
        func makeApps(_ names: [String], more: Int = 0) -> [(String, StoreResult)] {
            let answered = Latch(count: names.count + more)
            nonisolated(unsafe) var left = more  // the loop's
            let lock = Lock()
            nonisolated(unsafe) var results: [(String, StoreResult)] = []  // guarded by `lock`
            nonisolated(unsafe) var asked: [UInt64: String] = [:]  // the loop's
            nonisolated(unsafe) var client: StoreClient?  // the loop's
            gate.isArmed.value = true
            thread.perform { loop in
                client = self.service.client(on: loop) { reply in
                    guard let name = asked[reply.ticket] else { return }
                    lock.withLock { results.append((name, reply.result)) }
                    for _ in 0..<min(2, left) {
                        left -= 1
                        let ticket = client?.commit(Self.making("more-\(left)"))
                        if let ticket { asked[ticket] = "more-\(left)" }
                    }
                    answered.arrive()
                }
                client?.commit(Self.making("before"))
            }
            gate.reached.wait()
            thread.perform { _ in
                for name in names {
                    if let ticket = client?.commit(Self.making(name)) { asked[ticket] = name }
                }
                self.gate.opened.arrive()
            }
            answered.wait()
            thread.perform { _ in client?.close() }
            return lock.withLock { results }
        }

        private static func making(_ name: String) -> StoreRequest {
            .administer(
                .putApp(AppRecord(app: AppID(name), createdAt: Timestamp(milliseconds: 1))))
        }

        func stop() {
            thread.stop()
            thread.join()
            service.stop()
        }
    }
}

/// What transactions came to, in order.
private final class Companions: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var counts: [Int?] = []  // guarded by `lock`

    /// `nil`: it was committed; otherwise it was undone, and how many good apps were in it.
    var all: [Int?] { lock.withLock { counts } }
    var value: [Int] { all.compactMap(\.self) }
    func add(_ count: Int?) { lock.withLock { counts.append(count) } }
}

/// A store in whose first transactions after the start another node is always first.
private final class MetStore: Store {
    private let inner = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)
    private var conflicts: Int
    private var hasStarted = false
    /// A transaction that makes an app whose name begins so is undone.
    private let badApp: String?
    private let gate: GatedStore.Gate
    private let companions: Companions

    init(
        _ conflicts: Int, _ badApp: String?, _ gate: GatedStore.Gate, _ companions: Companions
    ) {
        (self.conflicts, self.badApp, self.gate) = (conflicts, badApp, gate)
        self.companions = companions
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        gate.pass()
        defer { hasStarted = true }
        if hasStarted, conflicts > 0 {
            conflicts -= 1
            throw .conflict("as the test wants it")
        }
        var before = 0
        try inner.read { snapshot throws(StoreError) in
            before = try snapshot.rows(AppRecord.table, Scan(limit: .max)).count
        }
        try inner.write { transaction throws(StoreError) in
            try body(transaction)
            let apps = try transaction.records(AppRecord.self, Scan(limit: .max))
            guard let badApp, apps.contains(where: { $0.app.name.hasPrefix(badApp) }) else {
                return companions.add(nil)
            }
            let good = apps.count { !$0.app.name.hasPrefix(badApp) }
            companions.add(good - before)
            throw .conflict("as the test wants it")
        }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try inner.reader() }
    func now() -> Timestamp { inner.now() }
    func checkpoint() throws(StoreError) { try inner.checkpoint() }
    func close() { inner.close() }
}
