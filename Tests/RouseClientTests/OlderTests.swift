import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// Older messages come into a window that runs: those on the device, then the server's.
@Suite struct OlderTests {
    private static let room = Stage.room

    /// A device that holds the messages from 5 on, of which the server has all.
    private func begun(_ stage: Stage, through last: UInt64) throws {
        _ = try TableLocalStore(store: stage.disk).applySnapshot(
            SnapshotChange(
                page: SnapshotPage(conversations: [
                    SnapshotConversation(
                        conversation: Self.room,
                        entries: [LiveTests.conversation(1)]
                            + (5...last).map { LiveTests.message($0, "\($0)", seq: 0) },
                        completeFrom: 5, unread: 6)
                ]), start: Cursor(epoch: ScriptedServer.epoch, seq: 10), isFirst: true),
            at: stage.clock.wall)
    }

    private func page(_ numbers: ClosedRange<UInt64>, more: Bool) -> PageFrame {
        PageFrame(
            entries: numbers.map { LiveTests.message($0, "\($0)", seq: 0) },
            first: numbers.lowerBound, last: numbers.upperBound, more: more)
    }

    @Test("a window grows by what is here, then by what the server has, until there is nothing")
    func grows() async throws {
        let stage = try Stage()
        try begun(stage, through: 9)
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        var windows = await rouse.messages(in: Self.room, newest: 2).makeAsyncIterator()
        var previews = await rouse.messages(in: Self.room, newest: 1).makeAsyncIterator()
        #expect(await windows.next()?.rows.map(\.text) == ["8", "9"])
        #expect(await previews.next()?.rows.map(\.text) == ["9"])
        #expect(try await rouse.showOlder(in: Self.room, by: 2))
        #expect(await windows.next()?.rows.map(\.text) == ["6", "7", "8", "9"])
        #expect(try await rouse.showOlder(in: Self.room, by: 2))
        let all = await windows.next()
        #expect(all?.rows.map(\.text) == ["5", "6", "7", "8", "9"])
        #expect(all?.hasOlder == false && all?.mayFetchOlder == true)
        #expect(stage.server.feed.withLock { $0.fetches }.isEmpty)

        let changes = await rouse.changes()
        stage.server.feed.withLock { $0.page = page(3...4, more: true) }
        #expect(try await rouse.showOlder(in: Self.room, by: 2))
        for await change in changes {
            guard case .olderFetched = change else { continue }
            #expect(change == .olderFetched(in: Self.room, more: true))
            break
        }
        #expect(await windows.next()?.rows.map(\.text) == ["3", "4", "5", "6", "7", "8", "9"])
        stage.server.feed.withLock { $0.page = page(1...2, more: false) }
        #expect(try await rouse.showOlder(in: Self.room, by: 2))
        let whole = await windows.next()
        #expect(whole?.rows.map(\.text) == (1...9).map { "\($0)" })
        #expect(try await !rouse.showOlder(in: Self.room, by: 2))
        #expect(stage.server.feed.withLock { $0.fetches.map(\.below) } == [5, 3])
        // A preview stays as it is.
        #expect(try await !rouse.showOlder(in: ConversationID(high: 8, low: 8)))
        stage.server.publish(LiveTests.message(10, "10", seq: 20), unread: 1)
        stage.server.ring()
        while let preview = await previews.next() {
            #expect(preview.rows.count == 1)
            if preview.rows.last?.text == "10" { break }
        }
    }

    @Test("whoever asks again while it is asked asks once; a refusal is told")
    func asksOnce() async throws {
        let stage = try Stage()
        try begun(stage, through: 5)
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        await LiveTests.hungUp(rouse, stage)
        let windows = await rouse.messages(in: Self.room, newest: 9)
        for _ in 0..<100 {
            try await rouse.fetchOlder(in: Self.room)
            #expect(try await rouse.showOlder(in: Self.room))
        }
        let changes = await rouse.changes()
        stage.server.feed.withLock { $0.fetchRefusal = .notFound }
        await rouse.networkChanged()
        for await change in changes {
            guard case .olderRefused(_, let why) = change else { continue }
            #expect(why == Refusal(code: Code.notFound.rawValue))
            break
        }
        #expect(stage.server.feed.withLock { $0.fetches }.count == 1)
        // It may be asked for again.
        stage.server.feed.withLock { ($0.fetchRefusal, $0.page) = (nil, page(1...4, more: false)) }
        #expect(try await rouse.showOlder(in: Self.room))
        for await window in windows where window.rows.count == 5 { break }
    }
}
