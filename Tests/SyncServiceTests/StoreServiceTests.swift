import EventLoop
import Feed
import Foundation
import MemoryStore
import Model
import SQLiteStore
import Testing
import Wire

@testable import StoreService

/// The store behind its two threads: whose turn it is, when the journal is emptied, and what is
/// answered when something fails.
@Suite struct StoreServiceTests {
    private static let app = AppID("chat")

    /// The service over a file, and one loop that asks it.
    private final class Bench: Sendable {
        let folder: URL
        let gates: GatedStore.Gates
        let service: StoreService
        private let asker: StoreAsker

        init(
            limits: StoreServiceLimits = StoreServiceLimits(),
            options: SQLiteOptions = SQLiteOptions(),
            onCommit: @escaping @Sendable (Effects) -> Void = { _ in },
            onNews: @escaping @Sendable (StoreNews) -> Void = { _ in }
        ) throws {
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("rouse-store-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true)
            self.folder = folder
            let path = folder.appendingPathComponent("rouse.db").path
            let gates = GatedStore.Gates()
            self.gates = gates
            let service = try StoreService.start(
                limits: limits, duties: [], boot: BootID(high: 1, low: 1), epochHalf: 1,
                open: {
                    GatedStore(
                        try SQLiteStore(path: path, tables: Schema.tables, options: options), gates
                    )
                }, onCommit: onCommit, onNews: onNews)
            self.service = service
            asker = try StoreAsker(service)
        }

        func ask(_ body: @escaping @Sendable (StoreClient) -> Void) { asker.ask(body) }

        func answers(_ count: Int) -> [StoreReply] { asker.answers(count) }

        /// Conversations, each in a transaction of its own; before them one other request was made.
        func create(_ numbers: ClosedRange<UInt64>) {
            for number in numbers {
                ask { client in
                    client.commit(
                        .createConversation(
                            app: StoreServiceTests.app,
                            CreateConversation(
                                conversation: ConversationID(high: 1, low: number),
                                participants: ["anna", "ben"]),
                            idempotency: nil))
                }
                _ = answers(Int(number) + 1)
            }
        }

        func journal() -> Int {
            let path = folder.appendingPathComponent("rouse.db-wal").path
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return (attributes?[.size] as? Int) ?? 0
        }

        func stop() {
            asker.stop()
            service.stop()
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private static func digest(_ user: String, of app: AppID = app) -> StoreQuery {
        .history(.digest(app, UserID(user), DigestFrame()))
    }

    @Test("another app's query, and another user's, is answered in its turn")
    func turns() throws {
        var limits = StoreServiceLimits()
        limits.queriesPerSnapshot = 4
        let bench = try Bench(limits: limits)
        defer { bench.stop() }
        bench.gates.read.isArmed.value = true
        bench.ask { _ = $0.read(Self.digest("greedy")) }
        bench.gates.read.reached.wait()
        // The reader is in its first snapshot: all of these wait for the next.
        bench.ask { client in
            for _ in 2...500 { client.read(Self.digest("greedy")) }
            client.read(Self.digest("ben"))
            client.read(Self.digest("zoe", of: AppID("other")))
        }
        bench.gates.read.opened.arrive()
        let order = bench.answers(502).map(\.ticket)
        let place = { (ticket: UInt64) in order.firstIndex(of: ticket) ?? .max }
        // Behind the one under way: the greedy's next, and those of the others.
        #expect(place(502) <= 2, "the other app's came at \(place(502))")
        #expect(place(501) <= 4, "the other user's came at \(place(501))")
        #expect(order.filter { $0 <= 500 } == Array(1...500), "a user's own keep their order")
        #expect(bench.service.health.counts.snapshots >= 502 / 4)
    }

    @Test("a full journal begins anew though queries never cease, and no commit waits for that")
    func journal() throws {
        var options = SQLiteOptions()
        options.journalStep = 64 << 10
        options.journalLimit = 128 << 10
        var limits = StoreServiceLimits()
        limits.queriesPerSnapshot = 1
        let bench = try Bench(limits: limits, options: options)
        defer { bench.stop() }
        bench.gates.read.isArmed.value = true
        bench.ask { client in for _ in 0..<20 { client.read(Self.digest("anna")) } }
        bench.gates.read.reached.wait()
        // Each is a transaction of its own, and done while the reader holds its snapshot.
        bench.ask { $0.commit(.makeApp("chat")) }
        bench.create(1...40)
        #expect(bench.journal() > 128 << 10, "the load is too small to prove anything")
        bench.gates.read.opened.arrive()
        _ = bench.answers(61)
        #expect(bench.service.health.counts.readerRests == 1)
        // Its file is cut back with the next commits.
        bench.create(41...42)
        _ = bench.answers(63)
        #expect(bench.journal() <= 128 << 10, "\(bench.journal())")
        #expect(bench.service.health.counts.failure == nil)
    }

    @Test("requests are answered while the journal is moved, and then it begins anew")
    func movedBeside() throws {
        var options = SQLiteOptions()
        options.journalStep = 64 << 10
        let bench = try Bench(options: options)
        defer { bench.stop() }
        bench.gates.move.isArmed.value = true
        bench.ask { $0.commit(.makeApp("chat")) }
        bench.create(1...20)
        bench.gates.move.reached.wait()
        // The move stands still, and the journal goes on growing.
        let before = bench.journal()
        bench.create(21...40)
        #expect(bench.journal() > before + 64 << 10)
        bench.gates.move.opened.arrive()
        bench.gates.move.isArmed.value = false
        // Its size on the disk stays; what is written over no longer makes it grow.
        bench.create(41...60)
        let most = bench.journal()
        bench.create(61...160)
        #expect(bench.journal() <= most + 64 << 10, "\(bench.journal()), \(most)")
        #expect(bench.service.health.counts.failure == nil)
    }

    @Test("the service ends while the journal is moved")
    func stoppedBeside() throws {
        var options = SQLiteOptions()
        options.journalStep = 16 << 10
        let bench = try Bench(options: options)
        bench.gates.move.isArmed.value = true
        for count in 1...20 {
            bench.ask { $0.commit(.keepAlive) }
            _ = bench.answers(count)
        }
        bench.gates.move.reached.wait()
        let ended = Latch()
        WorkThread.start("stop") {
            bench.stop()
            ended.arrive()
        }
        #expect(!ended.wait(seconds: 1), "it did not wait for the move")
        bench.gates.move.opened.arrive()
        ended.wait()
    }

    @Test("single commits share a checkpoint: none follows each of them")
    func sharedCheckpoint() throws {
        let bench = try Bench()
        defer { bench.stop() }
        let started = SystemClock.monotonicMilliseconds()
        for count in 1...40 {
            bench.ask { $0.commit(.keepAlive) }
            _ = bench.answers(count)
        }
        let elapsed = SystemClock.monotonicMilliseconds() - started
        let most = 1 + Int(elapsed / 500)
        let count = bench.gates.checkpoints.value
        #expect(count <= most, "\(count) in \(elapsed) ms")
    }

    @Test("a transaction ends where its rows do, and what it has no room for is served next")
    func rowsPerCommit() throws {
        var limits = StoreServiceLimits()
        // Two of these requests read and write as many.
        limits.rowsPerCommit = 6
        let bench = try Bench(limits: limits)
        defer { bench.stop() }
        bench.gates.write.isArmed.value = true
        bench.ask { $0.commit(.keepAlive) }
        bench.gates.write.reached.wait()
        bench.ask { client in for _ in 2...31 { client.commit(.keepAlive) } }
        let before = bench.service.health.counts.commits
        bench.gates.write.opened.arrive()
        let order = bench.answers(31).map(\.ticket)
        #expect(order == Array(1...31))
        let counts = bench.service.health.counts
        #expect(counts.largestCommit == 2)
        #expect(counts.commits - before == 16)
    }

    private static func acknowledge(_ number: UInt64) -> StoreRequest {
        let session = SessionKey(
            app: app, user: UserID("ben"), device: DeviceID(high: 1, low: number), role: .app,
            generation: 1)
        return .acknowledge(Acknowledge(session: session, applied: 1, completesSync: false))
    }

    @Test("an ACK shares the next request's transaction, and comes before it")
    func acknowledgementWaits() throws {
        var limits = StoreServiceLimits()
        limits.acknowledgementPatience = 3_600_000
        let bench = try Bench(limits: limits)
        defer { bench.stop() }
        bench.ask { $0.commit(Self.acknowledge(1)) }
        while bench.service.health.counts.queuedRequests == 0 { sched_yield() }
        #expect(bench.service.health.counts.requests == 0)
        bench.ask { $0.commit(.keepAlive) }
        #expect(bench.answers(2).map(\.ticket) == [1, 2])
        let counts = bench.service.health.counts
        #expect(counts.commits == 1 && counts.largestCommit == 2 && counts.queuedRequests == 0)
    }

    @Test("many ACKs are company enough")
    func acknowledgementsTogether() throws {
        var limits = StoreServiceLimits()
        limits.acknowledgementPatience = 3_600_000
        let bench = try Bench(limits: limits)
        defer { bench.stop() }
        bench.ask { client in
            for number in 1...64 as ClosedRange<UInt64> { client.commit(Self.acknowledge(number)) }
        }
        #expect(bench.answers(64).count == 64)
    }

    @Test("an ACK that nothing follows is carried out by itself")
    func lonelyAcknowledgement() throws {
        let bench = try Bench()
        defer { bench.stop() }
        bench.ask { $0.commit(Self.acknowledge(1)) }
        #expect(bench.answers(1).count == 1)
        bench.ask { $0.commit(Self.acknowledge(2)) }
        #expect(bench.answers(2).count == 2)
    }

    @Test("a journal that cannot be moved is told, and that it can be again")
    func news() throws {
        let (fails, works) = (Latch(), Latch())
        let bench = try Bench(onNews: { news in
            switch news {
            case .failed(let error):
                #expect("\(error)".contains("the disk is sick"))
                fails.arrive()
            case .works: works.arrive()
            case .clockOff, .clockInStep: Issue.record("\(news)")
            }
        })
        defer { bench.stop() }
        bench.gates.checkpointFails.value = true
        // The checkpoint follows on the commit, when nothing else does.
        bench.ask { $0.commit(.keepAlive) }
        _ = bench.answers(1)
        #expect(fails.wait(seconds: 20))
        bench.gates.checkpointFails.value = false
        bench.ask { $0.commit(.keepAlive) }
        _ = bench.answers(2)
        #expect(works.wait(seconds: 20))
    }

    @Test("a reader that failed tries again though nobody asks")
    func readsAgain() throws {
        let bench = try Bench()
        defer { bench.stop() }
        bench.gates.readerFails.value = true
        bench.ask { _ = $0.read(Self.digest("anna")) }
        guard case .failed(.unavailable)? = bench.answers(1).first?.result else {
            Issue.record("read from a store that fails")
            return
        }
        let before = bench.service.health.counts.queries
        bench.gates.readTried.isArmed.value = true
        #expect(bench.gates.readTried.reached.wait(seconds: 20))
        bench.gates.readTried.opened.arrive()
        #expect(bench.service.health.counts.queries == before)
    }

    @Test("a node whose clock is not the store's says so with its beats")
    func clockOff() throws {
        let off = Latch()
        let node = NodeBeat(boot: BootID(high: 1, low: 1), name: "one")
        let service = try StoreService.start(
            duties: [StoreDuty(name: "beat", request: .beat(node), interval: 1_000)],
            boot: node.boot, epochHalf: 1,
            node: node,
            open: {
                MemoryStore(
                    tables: Schema.tables, lockRanks: Schema.lockRanks,
                    clock: Timestamp(milliseconds: SystemClock.wallMilliseconds() - 3_600_000))
            }, onCommit: { _ in },
            onNews: { news in
                guard case .clockOff(let ahead) = news, (3_600_000..<3_700_000).contains(ahead)
                else { return }
                off.arrive()
            })
        defer { service.stop() }
        #expect(off.wait(seconds: 20))
        #expect(service.health.clockAhead >= 3_600_000)
    }

    @Test("a row that somebody else holds, which other duties wait for, costs no beat")
    func beatsApart() throws {
        let beaten = Latch(count: 3)
        let node = NodeBeat(boot: BootID(high: 1, low: 1), name: "one")
        var limits = StoreServiceLimits()
        // As where each conflict was a wait for a lock.
        limits.divisionTime = 0
        let service = try StoreService.start(
            limits: limits,
            duties: [
                StoreDuty(name: "alive", request: .keepAlive, interval: 20),
                StoreDuty(name: "beat", request: .beat(node), interval: 20),
            ], boot: node.boot, epochHalf: 1, node: node, open: { HeldStore() },
            onCommit: { if $0.node != nil { beaten.arrive() } })
        defer { service.stop() }
        #expect(beaten.wait(seconds: 20))
    }

    @Test("what contradicts the store fails alone, and not all that is committed with it")
    func contradiction() throws {
        let service = try StoreService.start(
            duties: [], boot: BootID(high: 1, low: 1), epochHalf: 1,
            open: { HeldStore(isSoleWriter: true) }, onCommit: { _ in })
        defer { service.stop() }
        let asker = try StoreAsker(service)
        defer { asker.stop() }
        var asked = 1
        asker.ask { _ = $0.commit(.keepAlive) }
        // Until the clock has gone on, and it has something to write.
        while case .committed? = asker.answers(asked).last?.result {
            asker.ask { _ = $0.commit(.keepAlive) }
            asked += 1
        }
        for name in ["one", "two", "three"] {
            asker.ask {
                _ = $0.commit(.keepAlive)
                _ = $0.commit(.makeApp(name))
            }
            asked += 2
            let results = asker.answers(asked).suffix(2).map(\.result)
            guard case .failed(.conflict) = results[0], case .committed = results[1] else {
                Issue.record("\(name): \(results)")
                return
            }
        }
    }

    @Test("a database that takes what a node writes by itself, and no change, does not work")
    func takesOnlyOwnWrites() throws {
        let service = try StoreService.start(
            duties: [StoreDuty(name: "alive", request: .keepAlive, interval: 20)],
            boot: BootID(high: 1, low: 1), epochHalf: 1, open: { SickStore() },
            onCommit: { _ in })
        defer { service.stop() }
        let asker = try StoreAsker(service)
        defer { asker.stop() }
        var looks = 0
        for number in 1...5 {
            let failedAt = SystemClock.monotonicMilliseconds()
            asker.ask { _ = $0.commit(.makeApp("sick")) }
            guard case .failed(.unavailable)? = asker.answers(number).last?.result else {
                Issue.record("the change was taken")
                return
            }
            let commits = service.health.counts.commits
            while service.health.counts.commits < commits + 2 { sched_yield() }
            let isWritable = service.health.isWritable
            // On a machine that stood still meanwhile it may be trusted again.
            guard SystemClock.monotonicMilliseconds() < failedAt + StoreHealth.recovery else {
                continue
            }
            #expect(!isWritable)
            looks += 1
        }
        #expect(looks > 0)
        while !service.health.isWritable { sched_yield() }
    }

    @Test("a store that fails and works in turns is told from time to time")
    func pace() {
        var pace = StoreNews.Pace()
        let sick = StoreError.unavailable("sick")
        #expect(pace.next(nil, now: 0) == nil)
        #expect(pace.next(sick, now: 1) == .failed(sick))
        #expect(pace.next(sick, now: 20_000) == nil, "it is known")
        #expect(pace.next(nil, now: 20_001) == .works)
        #expect(pace.next(nil, now: 20_002) == nil)
        // Ten seconds after the last failure that was told.
        #expect(pace.next(.full("full"), now: 20_003) == .failed(.full("full")))
        #expect(pace.next(nil, now: 20_004) == .works)
        for now in UInt64(20_005)..<20_100 {
            #expect(pace.next(now % 2 == 0 ? sick : nil, now: now) == nil)
        }
        #expect(pace.next(sick, now: 30_002) == nil)
        #expect(pace.next(sick, now: 30_003) == .failed(sick))
        // Another reason.
        #expect(pace.next(.full("full"), now: 30_004) == nil)
        #expect(pace.next(.full("full"), now: 40_003) == .failed(.full("full")))
        #expect(pace.next(.full("full"), now: 60_000) == nil)
        #expect(pace.next(nil, now: 60_001) == .works)
    }

    @Test("a refresh of the apps that fails fails only who changed them, and is made up for")
    func refresh() throws {
        let told = Latch()
        let bench = try Bench(onCommit: { committed in
            if !committed.changes.all.isEmpty { told.arrive() }
        })
        defer { bench.stop() }
        // The first request's transaction waits; the others share the next.
        bench.gates.write.isArmed.value = true
        bench.ask { $0.commit(.keepAlive) }
        bench.gates.write.reached.wait()
        bench.gates.failing.value = true
        bench.ask { client in
            client.commit(
                .administer(
                    .putApp(AppRecord(app: Self.app, createdAt: Timestamp(milliseconds: 1)))))
            client.commit(
                .createConversation(
                    app: Self.app,
                    CreateConversation(
                        conversation: ConversationID(high: 1, low: 1),
                        participants: ["anna", "ben"]),
                    idempotency: nil))
        }
        bench.gates.write.opened.arrive()
        let answers = bench.answers(3)
        let byTicket = Dictionary(uniqueKeysWithValues: answers.map { ($0.ticket, $0.result) })
        if case .failed(.unavailable) = byTicket[2] {
        } else {
            Issue.record("told as done before it is in force: \(String(describing: byTicket[2]))")
        }
        if case .committed = byTicket[3] {
        } else {
            Issue.record("committed, and answered \(String(describing: byTicket[3]))")
        }
        told.wait()
        #expect(bench.service.apps[Self.app] == nil)
        bench.gates.failing.value = false
        bench.ask { $0.commit(.keepAlive) }
        _ = bench.answers(4)
        #expect(bench.service.apps[Self.app] != nil, "not made up for")
    }
}

/// A shared store that takes no app, as from a role that may not write to their table.
private final class SickStore: Store {
    private let inner = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try inner.write { transaction throws(StoreError) in
            try body(transaction)
            guard try transaction.rows(AppRecord.table, Scan(limit: 1)).isEmpty else {
                throw .unavailable("permission denied")
            }
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

/// A shared store in which somebody holds the row that says when it was alive.
private final class HeldStore: Store {
    let isSoleWriter: Bool
    private let inner: MemoryStore

    init(isSoleWriter: Bool = false) {
        self.isSoleWriter = isSoleWriter
        inner = MemoryStore(
            tables: Schema.tables, lockRanks: isSoleWriter ? [:] : Schema.lockRanks)
        inner.isSoleWriter = isSoleWriter
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try inner.write { transaction throws(StoreError) in
            let key: [ColumnValue] = [.text(MetaRecord.aliveName)]
            let before = try transaction.record(MetaRecord.self, key)
            try body(transaction)
            guard let before, try transaction.record(MetaRecord.self, key) != before else { return }
            throw .conflict("somebody holds it")
        }
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try inner.reader() }
    func now() -> Timestamp { Timestamp(milliseconds: SystemClock.wallMilliseconds()) }
    func checkpoint() throws(StoreError) { try inner.checkpoint() }
    func close() { inner.close() }
}
