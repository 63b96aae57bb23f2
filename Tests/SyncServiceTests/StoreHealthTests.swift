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
