import EventLoop
import Feed
import Foundation
import Model
import SQLiteStore
import Testing
import Wire

@testable import StoreService

/// The store behind its two threads: what is answered when something fails.
@Suite struct StoreServiceTests {
    private static let app = AppID("chat")

    /// The service over a file, and one loop that asks it.
    private final class Bench: Sendable {
        let folder: URL
        let gates: GatedStore.Gates
        let service: StoreService
        private let thread: LoopThread
        private let box: Box

        private final class Box: @unchecked Sendable {
            // @unchecked: `client` is used on its loop only; the rest under `lock`.
            let lock = Lock()
            var client: StoreClient?
            var replies: [(ticket: UInt64, result: StoreResult)] = []
            var awaited: (count: Int, latch: Latch)?

            func answered(_ reply: StoreReply) {
                let latch: Latch? = lock.withLock {
                    replies.append((reply.ticket, reply.result))
                    return awaited.flatMap { replies.count >= $0.count ? $0.latch : nil }
                }
                latch?.arrive()
            }
        }

        init(
            onCommit: @escaping @Sendable (Committed) -> Void = { _ in }
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
                duties: [], boot: BootID(high: 1, low: 1), epochHalf: 1,
                open: {
                    GatedStore(
                        try SQLiteStore(path: path, tables: Schema.tables), gates
                    )
                }, onCommit: onCommit)
            self.service = service
            let box = Box()
            self.box = box
            thread = try LoopThread.start(name: "bench") { loop in
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

        /// The first so many answers, in the order in which they came.
        func answers(_ count: Int) -> [(ticket: UInt64, result: StoreResult)] {
            let latch = Latch()
            box.lock.withLock {
                box.awaited = (count, latch)
                if box.replies.count >= count { latch.arrive() }
            }
            latch.wait()
            return box.lock.withLock { box.replies }
        }

        func stop() {
            thread.stop()
            thread.join()
            service.stop()
            try? FileManager.default.removeItem(at: folder)
        }
    }

    @Test("a refresh of the apps that fails fails only who changed them, and is made up for")
    func refresh() throws {
        let told = Latch()
        let bench = try Bench(onCommit: { committed in
            if !committed.changes.isEmpty { told.arrive() }
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
