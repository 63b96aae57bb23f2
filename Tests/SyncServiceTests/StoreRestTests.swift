import EventLoop
import Foundation
import Model
import SQLiteStore
import Testing
import Wire

@testable import Feed
@testable import StoreService

/// The writer rests where nothing is due, and is awake when something is.
@Suite struct StoreRestTests {
    private static let app = AppID("chat")

    private static let duties = [
        StoreDuty(name: "receipts", request: .coalesceReceipts(users: 256), interval: 250),
        StoreDuty(
            name: "sessions", request: .sweepWakes(rows: 256), interval: 1_000, follows: .sessions),
        StoreDuty(name: "retention", request: .enforceRetention(rows: 100), interval: 60_000),
        StoreDuty(name: "alive", request: .keepAlive, interval: 2_000),
    ]

    /// A service over a file of its own, asked one thing after the other.
    private final class Bench {
        let service: StoreService
        private let folder: URL
        private let thread: LoopThread
        private let box = Box()
        private var isStopped = false

        private final class Box: @unchecked Sendable {
            // @unchecked: `client` is used on its loop only; the rest under `lock`.
            let lock = Lock()
            var client: StoreClient?
            var answer: (latch: Latch, result: StoreResult?)?
        }

        init() throws {
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("rouse-rest-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let path = folder.appendingPathComponent("rouse.db").path
            var limits = StoreServiceLimits()
            limits.shortestRest = 500
            let service = try StoreService.start(
                limits: limits, duties: StoreRestTests.duties, boot: BootID(high: 1, low: 1),
                epochHalf: 1, open: { try SQLiteStore(path: path, tables: Schema.tables) },
                onCommit: { _ in })
            self.service = service
            let box = self.box
            thread = try LoopThread.start(name: "bench") { loop in
                box.client = service.client(on: loop) { reply in
                    let latch = box.lock.withLock {
                        box.answer?.result = reply.result
                        return box.answer?.latch
                    }
                    latch?.arrive()
                }
            }
        }

        func stop() {
            if isStopped { return }
            isStopped = true
            thread.stop()
            thread.join()
            service.stop()
        }

        /// When the process was there last, as the file says after the service's end.
        func alive() throws -> Timestamp {
            let store = try SQLiteStore(
                path: folder.appendingPathComponent("rouse.db").path, tables: Schema.tables)
            defer { store.close() }
            var found: MetaRecord?
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.record(MetaRecord.self, [.text(MetaRecord.aliveName)])
            }
            return Timestamp(milliseconds: try #require(found).number)
        }

        deinit {
            stop()
            try? FileManager.default.removeItem(at: folder)
        }

        func ask(_ request: StoreRequest) throws -> StoreAnswer {
            let latch = Latch()
            let box = self.box
            box.lock.withLock { box.answer = (latch, nil) }
            thread.perform { _ in box.client?.commit(request) }
            latch.wait()
            guard case .committed(let outcome) = box.lock.withLock({ box.answer?.result }) else {
                throw CancellationError()
            }
            return outcome.answer
        }

        /// Waits until this holds of the counts; false: not within `seconds`.
        func wait(_ seconds: Double = 30, until holds: (StoreHealth.Counts) -> Bool) -> Bool {
            let end = ContinuousClock.now + .seconds(seconds)
            while ContinuousClock.now < end {
                if holds(service.health.counts) { return true }
                usleep(10_000)
            }
            return false
        }

        /// Waits until nothing is committed for longer than any duty but retention waits.
        func rests() -> Bool {
            for _ in 0..<20 {
                let commits = service.health.counts.commits
                if !wait(3, until: { $0.commits != commits }) { return true }
            }
            return false
        }
    }

    @Test("who stops it in a rest leaves no outage behind")
    func stopped() throws {
        let bench = try Bench()
        #expect(bench.rests())
        let stopping = UInt64(Date().timeIntervalSince1970 * 1_000)
        bench.stop()
        #expect(try bench.alive().milliseconds + 1_000 >= stopping)
    }

    @Test("a clock that is set, or a machine that slept, ends a rest")
    func clocks() {
        var rest = StoreRest(aliveAt: 0)
        rest.begin(at: 1_000, wall: Timestamp(milliseconds: 500_000), until: 90_000)
        for (now, wall, hasMoved) in [
            (61_000, 560_000, false), (61_000, 564_000, false), (61_000, 566_000, true),
            (61_000, 400_000, true),
        ] as [(UInt64, UInt64, Bool)] {
            let found = rest.hasClockMoved(now, wall: Timestamp(milliseconds: wall))
            #expect(found == hasMoved, "\(now) \(wall)")
        }
    }

    @Test("it rests until what is due, without a commit, and does that then")
    func due() throws {
        let bench = try Bench()
        #expect(bench.rests())
        let app = AppRecord(app: Self.app, createdAt: Timestamp(milliseconds: 1))
        #expect(try bench.ask(.administer(.putApp(app))) == .done)
        let opened = try bench.ask(
            .openSession(
                OpenSession(
                    app: Self.app, device: DeviceID(high: 1, low: 1), role: .app,
                    credential: .identity(UserID("anna")),
                    newTokenHash: [UInt8](repeating: 1, count: 16), freshEpochHalf: 5,
                    boot: BootID(high: 1, low: 1))))
        guard case .opened(let session) = opened else {
            Issue.record("\(opened)")
            return
        }
        #expect(bench.rests())
        let away: Milliseconds = 12_000
        _ = try bench.ask(
            .endSession(
                EndSession(session: session.session, applied: 0, expectedWithin: away)))
        let asked = ContinuousClock.now
        #expect(bench.rests())
        // It rests already while the device is waited for, and is there when that time is over.
        #expect(ContinuousClock.now < asked + .milliseconds(away))
        let before = bench.service.health.counts
        #expect(bench.wait(until: { $0.changes > before.changes }))
        let waited = ContinuousClock.now - asked
        #expect(waited > .milliseconds(away - 500), "\(waited)")
        #expect(waited < .milliseconds(away + 5_000), "\(waited)")
        #expect(bench.rests())
    }
}
