import Feed
import MemoryStore
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// What a first sync costs until the app is usable: by snapshot, and by the feed from its start.
/// The figures are printed; that one does not grow with the history is checked.
@Suite struct FirstSyncTests {
    struct Cost: Equatable {
        var frames = 0
        var bytes = 0

        mutating func add(_ frame: Frame) {
            frames += 1
            bytes += frame.encoded.count
        }
    }

    struct Costs {
        var usable = Cost()
        var snapshot = Cost()
        var feed = Cost()
    }

    private let app = AppID("chess")
    private let user = UserID("anna")

    /// `history` messages of 100 bytes in 8 conversations.
    private func costs(history: Int) throws -> Costs {
        let store = MemoryStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks,
            clock: Timestamp(milliseconds: 5_000_000))
        func commit(_ request: StoreRequest) throws -> StoreAnswer {
            try #require(try store.commit([request]).first).get().answer
        }
        _ = try commit(.start(boot: BootID(high: 3, low: 3), epochHalf: 5))
        _ = try commit(.administer(.putApp(AppRecord(app: app, createdAt: store.now()))))
        let rooms = (0..<8).map { ConversationID(high: 1, low: $0) }
        for room in rooms {
            _ = try commit(
                .createConversation(
                    app: app,
                    CreateConversation(
                        conversation: room, participants: [user.name, "ben", "kim"]),
                    idempotency: nil))
        }
        for number in 0..<history {
            let message = SendMessage(
                conversation: rooms[number % 8], message: MessageID(high: 2, low: UInt64(number)),
                parts: [
                    Part(mimeType: "text/plain", content: Array(repeating: 65, count: 100))
                ], push: PushText(title: "", body: "A message"))
            _ = try commit(
                .publish(
                    app: app, Publication(message: message, sender: "ben"), idempotency: nil))
        }
        var costs = Costs()
        var continuation: [UInt8] = []
        repeat {
            let ask = SnapshotFrame(messages: 20, continuation: continuation)
            let bytes = continuation.isEmpty ? 32 << 10 : 128 << 10
            guard
                case .history(.snapshotPage(let page)) = try read(
                    .history(.snapshot(app, user, ask, bytes: bytes)), store)
            else { throw LocalStoreError.corrupt("no page") }
            costs.snapshot.add(Frame(.snapshotPage(page), request: 1))
            if continuation.isEmpty { costs.usable = costs.snapshot }
            continuation = page.continuation
        } while !continuation.isEmpty
        var after: UInt64 = 0
        var bytes = 16 << 10
        while true {
            let query = PageQuery(
                app: app, user: user, device: DeviceID(high: 1, low: 1), after: after,
                bytes: bytes)
            guard case .page(let page) = try read(.page(query), store) else {
                throw LocalStoreError.corrupt("no page")
            }
            let delta = Delta(
                entries: page.entries, from: Cursor(epoch: page.epoch, seq: page.from),
                to: Cursor(epoch: page.epoch, seq: page.to), head: page.head, more: page.more)
            costs.feed.add(Frame(.delta(delta), request: 1))
            after = page.to
            bytes = min(bytes * 2, 240 << 10)
            if !page.more { return costs }
        }
    }

    private func read(_ query: StoreQuery, _ store: MemoryStore) throws -> StoreReading {
        var reading = StoreReading.nothing
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(query, in: snapshot, now: store.now())
        }
        return reading
    }

    @Test("HIS-15: a first sync costs what is asked for, not what is stored")
    func firstSync() throws {
        let small = try costs(history: 10)
        let large = try costs(history: 10_000)
        for (history, costs) in [(10, small), (10_000, large)] {
            print(
                "first sync of \(history) messages: usable after \(costs.usable.frames) page of "
                    + "\(costs.usable.bytes) bytes, whole snapshot \(costs.snapshot.frames) pages "
                    + "of \(costs.snapshot.bytes) bytes, the feed \(costs.feed.frames) pages of "
                    + "\(costs.feed.bytes) bytes")
        }
        #expect(large.usable.bytes < 40 << 10)
        #expect(large.snapshot.bytes < 64 << 10)
        #expect(large.feed.bytes > 20 * large.snapshot.bytes)
        // A small history costs by snapshot no more than by the feed, but for the page's own fields.
        #expect(small.snapshot.bytes < small.feed.bytes * 5 / 4)
        #expect(small.snapshot.frames == 1)
    }
}
