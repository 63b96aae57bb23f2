import EventLoop
import Foundation
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// Texts between processes, over a connection that is lost, or stands and says nothing.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresHintsTests {
    /// One process' end, and what it hears.
    private final class End: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var waiting: [String] = []
        private nonisolated(unsafe) var heard: [String] = []
        private nonisolated(unsafe) var hints: PostgresHints?
        private let ended = Latch()

        init(_ schema: String, at address: String) {
            var options = PostgresOptions(address: address)
            options.schema = schema
            options.statementTimeout = 500
            let hints = PostgresHints(
                options, next: { [weak self] in self?.take() ?? [] },
                received: { [weak self] in self?.hear($0) },
                onNews: { [weak self] news in
                    switch news {
                    case .lost(let error): self?.hear("lost: \(error.words)")
                    case .back: self?.hear("back")
                    }
                })
            self.hints = hints
            let ended = ended
            Thread.detachNewThread {
                hints.run()
                ended.arrive()
            }
        }

        private func take() -> [String] {
            lock.withLock {
                defer { waiting = [] }
                return waiting
            }
        }

        private func hear(_ text: String) { lock.withLock { heard.append(text) } }

        var losses: UInt64 { hints?.losses ?? 0 }

        func tell(_ text: String) {
            lock.withLock { waiting.append(text) }
            hints?.ring()
        }

        /// The first thing heard that begins like this, taken away with what came before it.
        func hears(_ beginning: String) -> String? {
            for _ in 0..<3_000 {
                let found: String? = lock.withLock {
                    guard let place = heard.firstIndex(where: { $0.hasPrefix(beginning) })
                    else { return nil }
                    defer { heard.removeFirst(place + 1) }
                    return heard[place]
                }
                if let found { return found }
                usleep(10_000)
            }
            return nil
        }

        func stop() {
            hints?.stop()
            ended.wait()
        }
    }

    /// Tells until it is heard: whoever has just come may not listen yet.
    private func meet(_ one: End, _ other: End) {
        let isHeard = Latch()
        Thread.detachNewThread {
            while !isHeard.wait(seconds: 0) {
                one.tell("here")
                usleep(10_000)
            }
        }
        #expect(other.hears("here") != nil)
        isHeard.arrive()
    }

    @Test("a connection that stands and says nothing is given up, told once, and made anew")
    func silent() throws {
        let peer = try PostgresPeer.shared()
        let relay = try PostgresRelay(to: peer)
        defer { relay.stop() }
        let near = End("hints_silent", at: peer.address)
        let far = End("hints_silent", at: relay.address)
        defer {
            near.stop()
            far.stop()
        }
        meet(near, far)
        // Nobody tells anything, and nobody is rung.
        relay.isMute = true
        let lost = try #require(far.hears("lost"))
        #expect(lost.contains("it has said nothing for 1 s"), "\(lost)")
        #expect(far.losses == 1)
        relay.isMute = false
        // Nothing else was told before: attempts to connect that fail are no news.
        #expect(far.hears("") == "back")
        meet(near, far)
        meet(far, near)
    }

    @Test("one that cannot be made is told once, and is back when it can")
    func refused() throws {
        let peer = try PostgresPeer.shared()
        let relay = try PostgresRelay(to: peer)
        defer { relay.stop() }
        let role = "hints_refused"
        #expect(try peer.psql("CREATE ROLE \(role) LOGIN CONNECTION LIMIT 0") == "")
        let end = End("hints_refused", at: relay.address(of: role))
        defer { end.stop() }
        #expect(try #require(end.hears("lost")).contains("too many connections"))
        // Further attempts fail, and are no news.
        for _ in 0..<3_000 where relay.connections < 4 { usleep(10_000) }
        #expect(relay.connections >= 4)
        #expect(try peer.psql("ALTER ROLE \(role) CONNECTION LIMIT -1") == "")
        #expect(end.hears("") == "back")
        #expect(end.losses == 0)
    }
}
