import EventLoop
import Model
import Testing

@testable import StoreService

/// When the store is taken for one that cannot be written, by a clock of the test's own.
@Suite struct StoreHealthTests {
    /// Milliseconds.
    private final class Clock: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var milliseconds: UInt64 = 1_000

        var now: UInt64 { lock.withLock { milliseconds } }
        func pass(_ time: UInt64) { lock.withLock { milliseconds += time } }
    }

    private let clock = Clock()

    private func health() -> StoreHealth {
        let clock = clock
        return StoreHealth(clock: { clock.now })
    }

    @Test("an engine that does not come back cannot be written, until it does")
    func hangs() throws {
        let health = health()
        try health.waiting(lane: 0) { () throws(StoreError) in
            clock.pass(StoreHealth.patience - 1)
            #expect(health.isWritable)
            clock.pass(1)
            #expect(health.failure == .unavailable("it has not answered for 5 s"))
            #expect(!health.isWritable)
            // Another lane that goes on proves nothing for this one.
            try health.waiting(lane: 1) { () throws(StoreError) in }
            #expect(!health.isWritable)
        }
        #expect(health.isWritable)
        clock.pass(60_000)
        #expect(health.isWritable, "a writer that has nothing to do waits for nobody")
    }

    @Test("a clock that is not the store's is told once, and once that it is in step again")
    func clockOff() {
        let heard = Heard()
        let health = StoreHealth(onNews: { heard.add($0) })
        let store = Timestamp(milliseconds: 10_000_000)
        for ahead: Int64 in [0, 5_000, -5_000, 5_001, 4_900, 2_501, 2_500, -5_000, -9_000, 0] {
            health.note(
                clock: store,
                machine: Timestamp(milliseconds: UInt64(10_000_000 + ahead)))
            #expect(health.clockAhead == ahead)
        }
        #expect(
            heard.news == [
                .clockOff(ahead: 5_001), .clockInStep, .clockOff(ahead: -9_000), .clockInStep,
            ])
    }

    private final class Heard: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var heard: [StoreNews] = []

        var news: [StoreNews] { lock.withLock { heard } }
        func add(_ news: StoreNews) { lock.withLock { heard.append(news) } }
    }

    @Test("what a node writes by itself proves something when nothing has failed for a while")
    func recovery() {
        let health = health()
        #expect(health.hasNotFailed)
        health.noteFailure(.conflict("another node"))
        #expect(health.hasNotFailed)
        health.noteFailure(.unavailable("gone"))
        clock.pass(StoreHealth.recovery - 1)
        #expect(!health.hasNotFailed)
        health.noteFailure(.unavailable("gone"))
        clock.pass(StoreHealth.recovery - 1)
        #expect(!health.hasNotFailed)
        clock.pass(1)
        #expect(health.hasNotFailed)
    }

    @Test("a reader that fails for long, or does not come back, is told until it reads again")
    func reading() throws {
        let heard = Heard()
        let clock = clock
        let health = StoreHealth(clock: { clock.now }, onNews: { heard.add($0) })
        func read(_ error: StoreError? = nil) {
            try? health.reading { () throws(StoreError) in if let error { throw error } }
        }
        read(.unavailable("no connection"))
        clock.pass(StoreHealth.patience - 1)
        read(.unavailable("too many connections"))
        #expect(health.readingFailure == nil)
        clock.pass(1)
        let failure = StoreError.unavailable("reading: too many connections")
        #expect(health.readingFailure == failure)
        #expect(health.isWritable, "a node that can be written tells nothing of its reader")
        #expect(heard.news == [])
        for _ in 1...3 { read(.unavailable("too many connections")) }
        #expect(heard.news == [.failed(failure)])
        // What another row or request has done says nothing of the reader.
        health.record { $0.commits += 1 }
        #expect(heard.news == [.failed(failure)])
        read()
        #expect(health.readingFailure == nil)
        #expect(heard.news == [.failed(failure), .works])
        try health.reading { () throws(StoreError) in
            clock.pass(StoreHealth.patience)
            #expect(health.readingFailure == .unavailable("reading: it has not ended for 5 s"))
        }
        #expect(health.readingFailure == nil)
        // An answer, whatever it says.
        read(.unavailable("no connection"))
        read(.conflict("a statement took longer than it may"))
        clock.pass(60_000)
        #expect(health.readingFailure == nil)
    }

    @Test("a writer whose engine fails waits for it no more")
    func fails() {
        let health = health()
        try? health.waiting(lane: 0) { () throws(StoreError) in throw .unavailable("gone") }
        clock.pass(60_000)
        #expect(health.isWritable)
    }

    @Test("a shared store that had no space is doubted for a while after each refusal")
    func space() {
        let health = health()
        #expect(health.hasHadSpace)
        func refuse() {
            health.record(lane: 1) {
                $0.refusedForSpace += 1
                $0.failure = .full("no room")
            }
        }
        refuse()
        clock.pass(StoreHealth.doubt - 1)
        #expect(!health.hasHadSpace)
        refuse()
        clock.pass(StoreHealth.doubt - 1)
        // What succeeds meanwhile is no refusal.
        health.record(lane: 0) { $0.commits += 1 }
        #expect(!health.hasHadSpace)
        clock.pass(1)
        #expect(health.hasHadSpace)
    }
}
