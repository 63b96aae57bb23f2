import EventLoop
import Model
import Testing
import Wake
import Wire

@testable import Feed
@testable import StoreService
@testable import SyncService

/// How the loops hear of a commit.
@Suite struct HubTests {
    private static let app = AppID("chat")

    /// Two loops whose messages are kept.
    private final class Loops: @unchecked Sendable {
        // @unchecked: `received` is used under `lock`.
        let hub = Hub()
        private let lock = Lock()
        private var received: [[HubMessage]] = [[], []]
        private(set) var threads: [LoopThread] = []

        init() throws {
            for index in 0..<2 {
                threads.append(
                    try LoopThread.start(name: "loop") { loop in
                        let mailbox = Mailbox<HubMessage>(loop: loop, limit: nil) { messages in
                            self.lock.withLock { self.received[index] += messages }
                        }
                        _ = self.hub.add(mailbox)
                    })
            }
        }

        func enter(_ user: String, _ number: UInt64, on loop: Int) -> SessionKey {
            let key = SessionKey(
                app: HubTests.app, user: UserID(user), device: DeviceID(high: 1, low: number),
                role: .app, generation: 7)
            hub.enter(key, at: ConnectionPlace(loop: loop, number: number))
            return key
        }

        /// What came, when all that was posted has.
        func news() -> [[LoopNews]] {
            for thread in threads {
                let done = Latch()
                thread.perform { _ in done.arrive() }
                done.wait()
                let again = Latch()
                thread.perform { _ in again.arrive() }
                again.wait()
            }
            return lock.withLock { received }.map { messages in
                messages.compactMap { if case .committed(let news) = $0 { news } else { nil } }
            }
        }

        func stop() {
            for thread in threads {
                thread.stop()
                thread.join()
            }
        }
    }

    private func committed(_ users: [String], ended: [SessionKey] = []) -> Effects {
        var effects = Effects()
        for user in users {
            effects.changes.note(
                FeedChange(app: Self.app, user: UserID(user), head: 5, kinds: 4))
        }
        effects.ended = ended.map { EndedSession(session: $0, code: .revoked) }
        effects.changes.tailBytes = 1 << 20
        return effects
    }

    @Test("a commit is one message to each loop concerned, however many users it is about")
    func oneMessage() throws {
        let loops = try Loops()
        defer { loops.stop() }
        for number in 1...300 as ClosedRange<UInt64> {
            _ = loops.enter("user \(number)", number, on: 0)
        }
        let anna = loops.enter("anna", 1, on: 1)
        loops.hub.committed(committed((1...300).map { "user \($0)" }))
        loops.hub.committed(committed(["anna", "nobody"], ended: [anna]))
        loops.hub.committed(committed(["nobody"]))
        let news = loops.news()
        #expect(news.map(\.count) == [1, 1])
        #expect(news[0].first?.moved.map(\.connection) == Array(1...300))
        #expect(news[1].first?.moved.map(\.change) == [0])
        #expect(news[1].first?.ended.map(\.code) == [.revoked])
    }

    @Test("entries wait for a loop up to their limit; more of them is read")
    func tailBytes() throws {
        let loops = try Loops()
        defer { loops.stop() }
        _ = loops.enter("anna", 1, on: 0)
        let fit = Hub.tailBytesMax >> 20
        for _ in 0..<fit + 2 { loops.hub.committed(committed(["anna"])) }
        let news = loops.news()[0]
        #expect(news.map(\.tailBytes) == Array(repeating: 1 << 20, count: fit) + [0, 0])
        loops.hub.took(news[0], on: 0)
        loops.hub.committed(committed(["anna"]))
        #expect(loops.news()[0].last?.tailBytes == 1 << 20)
    }

    @Test("hints that find no room are lost, and the next one says so")
    func lost() throws {
        let loops = try Loops()
        defer { loops.stop() }
        let some = 1 << 10
        for number in 0..<UInt64(some) { _ = loops.enter("anna", number, on: 0) }
        for _ in 0..<Hub.mailboxLimit / some + 2 { loops.hub.committed(committed(["anna"])) }
        let news = loops.news()[0]
        #expect(news.count == Hub.mailboxLimit / some)
        #expect(!news.contains { $0.followsLoss })
        loops.hub.took(news[0], on: 0)
        for _ in 0..<2 { loops.hub.committed(committed(["anna"])) }
        #expect(loops.news()[0].last?.followsLoss == true)
    }
}
