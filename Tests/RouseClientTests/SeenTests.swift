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
}
