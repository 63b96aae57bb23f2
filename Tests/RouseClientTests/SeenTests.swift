import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What counts as read because its person sees it.
@Suite struct SeenTests {
    /// Up to where the server was told that the room is read, in order and each once.
    private func read(_ stage: Stage) -> [UInt64] {
        stage.server.feed.withLock { feed in
            feed.reads.map(\.through).reduce(into: []) { if $0.last != $1 { $0.append($1) } }
        }
    }

    @Test("what comes behind the front is not read before the app is in front again")
    func readWhenSeen() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        stage.server.publish(Stage.message(1), unread: 1)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        try await LiveTests.synced(rouse) {
            await rouse.onScreen(.conversation(Stage.room))
            try await rouse.seen(Stage.room)
            await rouse.refresh()
        }
        while read(stage).last != 1 { await Task.yield() }
        // As an app does that follows its window behind the front too.
        for (phase, number) in [(ScenePhase.inactive, 2), (.background(remaining: 20_000), 3)] {
            await rouse.scene(phase)
            stage.server.publish(Stage.message(UInt64(number)), unread: 1)
            try await LiveTests.synced(rouse) { stage.server.ring() }
            try await LiveTests.synced(rouse) {
                try await rouse.seen(Stage.room)
                await rouse.refresh()
            }
            #expect(read(stage) == [1])
        }
        #expect(stage.phone.screen == [2, 3])
        try await LiveTests.synced(rouse) {
            await rouse.scene(.active)
            await rouse.refresh()
        }
        while read(stage).last != 3 { await Task.yield() }
        #expect(read(stage) == [1, 3])
    }

    @Test("a window that was seen before is not said again, nor by a later process")
    func seenAgain() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        stage.server.publish(Stage.message(1), unread: 1)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        await rouse.onScreen(.conversation(Stage.room))
        // Each window that comes is seen; before the mark comes back, and after it.
        for _ in 0..<3 { try await rouse.seen(Stage.room) }
        while read(stage).last != 1 { await Task.yield() }
        stage.server.publish(Stage.readMark(through: 1, seq: 12), unread: 0)
        try await LiveTests.synced(rouse) { stage.server.ring() }
        #expect(try TableLocalStore(store: stage.disk).load().pendingReads.isEmpty)
        stage.server.feed.withLock { $0.reads = [] }
        for _ in 0..<3 { try await rouse.seen(Stage.room) }
        try await LiveTests.synced(rouse) { await rouse.refresh() }
        #expect(try TableLocalStore(store: stage.disk).load().pendingReads.isEmpty)
        await rouse.close()
        let next = stage.process(over: FaultyStore(stage.disk))
        try await LiveTests.synced(next) {
            await next.onScreen(.conversation(Stage.room))
            await next.scene(.active)
            try await next.seen(Stage.room)
        }
        #expect(stage.server.feed.withLock { $0.reads }.isEmpty)
        #expect(stage.phone.screen.isEmpty)
    }

    @Test("what is read without a connection leaves the screen and the icon at once")
    func readOffline() async throws {
        let stage = try Stage()
        let rouse = try await LiveTests.room(stage)
        await rouse.scene(.background(remaining: 20_000))
        for number in 1...3 as ClosedRange<UInt64> {
            stage.server.publish(
                LiveTests.message(number, "\(number)", seq: 20 + number), unread: UInt32(number))
        }
        try await LiveTests.synced(rouse) { stage.server.ring() }
        #expect(stage.phone.screen == [1, 2, 3] && stage.phone.icon == 3)
        stage.server.feed.withLock { $0.isSilent = true }
        await LiveTests.hungUp(rouse, stage)
        await rouse.scene(.active)
        try await rouse.read(LiveTests.room, only: 3)
        try await rouse.markRead(LiveTests.room, through: 1)
        // Says when all of it is carried out.
        await rouse.scene(.suspending)
        #expect(stage.phone.screen == [2] && stage.phone.icon == 1)
        #expect(stage.server.feed.withLock { $0.reads }.isEmpty)
    }

    @Test("nor does it count as seen where the person is elsewhere in the app")
    func elsewhere() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        stage.server.publish(Stage.message(1), unread: 1)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        try await LiveTests.synced(rouse) {
            try await rouse.seen(Stage.room)
            await rouse.onScreen(.nothing)
            await rouse.scene(.inactive)
            await rouse.scene(.active)
            await rouse.refresh()
        }
        #expect(read(stage).isEmpty)
        // What is said before the screen is known counts when it is.
        try await LiveTests.synced(rouse) {
            try await rouse.seen(Stage.room)
            await rouse.onScreen(.conversation(Stage.room))
            await rouse.refresh()
        }
        while read(stage).last != 1 { await Task.yield() }
    }

    @Test("a view that goes after the next has come takes nothing from it")
    func leftLate() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        stage.server.publish(Stage.message(1), unread: 1)
        try await LiveTests.synced(rouse) {
            await rouse.onScreen(.everything)
            await rouse.onScreen(.conversation(Stage.room))
            try await rouse.seen(Stage.room)
            await rouse.offScreen(.everything)
            stage.server.ring()
        }
        try await LiveTests.synced(rouse) {
            try await rouse.seen(Stage.room)
            await rouse.refresh()
        }
        while read(stage).last != 1 { await Task.yield() }
        #expect(stage.phone.screen.isEmpty)
        // When it is its own turn to go, nothing is on the screen any more.
        await rouse.offScreen(.conversation(Stage.room))
        stage.server.publish(Stage.message(2), unread: 1)
        try await LiveTests.synced(rouse) { stage.server.ring() }
        #expect(stage.phone.screen == [2])
    }
}
