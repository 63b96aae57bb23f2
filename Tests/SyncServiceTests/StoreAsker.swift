import EventLoop
import Feed
import Model
import Wire

@testable import StoreService

/// One loop that asks a store service, for a test on another thread.
final class StoreAsker: Sendable {
    private let thread: LoopThread
    private let box: Box

    private final class Box: @unchecked Sendable {
        // @unchecked: `client` is used on its loop only; the rest under `lock`.
        let lock = Lock()
        var client: StoreClient?
        var replies: [StoreReply] = []
        var awaited: (count: Int, latch: Latch)?

        func answered(_ reply: StoreReply) {
            let latch: Latch? = lock.withLock {
                replies.append(reply)
                return awaited.flatMap { replies.count >= $0.count ? $0.latch : nil }
            }
            latch?.arrive()
        }
    }

    init(_ service: StoreService) throws {
        let box = Box()
        self.box = box
        thread = try LoopThread.start(name: "asker") { loop in
            box.client = service.client(on: loop) { box.answered($0) }
        }
    }

    /// Asks all in one turn of the loop.
    func ask(_ body: @escaping @Sendable (StoreClient) -> Void) {
        let done = Latch()
        thread.perform { _ in
            if let client = self.box.client { body(client) }
            done.arrive()
        }
        done.wait()
    }

    /// The answers in the order in which they came, as soon as there are so many, and at most after
    /// half a minute.
    func answers(_ count: Int) -> [StoreReply] {
        let latch = Latch()
        box.lock.withLock {
            box.awaited = (count, latch)
            if box.replies.count >= count { latch.arrive() }
        }
        _ = latch.wait(seconds: 30)
        return box.lock.withLock { box.replies }
    }

    func stop() {
        thread.stop()
        thread.join()
    }
}

extension StoreRequest {
    /// Makes a conversation of Ann's and Bob's in the app `chat`.
    static func makeConversation(_ number: UInt64) -> StoreRequest {
        .createConversation(
            app: AppID("chat"),
            CreateConversation(
                conversation: ConversationID(high: 1, low: number), participants: ["ann", "bob"]),
            idempotency: nil)
    }

    static func makeApp(_ name: String) -> StoreRequest {
        .administer(
            .putApp(AppRecord(app: AppID(name), createdAt: Timestamp(milliseconds: 1))))
    }
}
