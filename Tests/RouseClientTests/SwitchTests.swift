import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What the server is told of the phone's settings.
@Suite struct SwitchTests {
    private func lowPower(_ stage: Stage) -> [Setting] {
        stage.server.feed.withLock { $0.states.map(\.lowPower) }
    }

    @Test("they go with each state of the app, and at once when they change")
    func switches() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        await rouse.setSwitches(notifications: true, backgroundRefresh: true, lowPower: nil)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        let first = stage.server.feed.withLock { $0.hellos.first?.appState }
        #expect(
            first
                == AppState(phase: .foreground, notifications: .on, backgroundRefresh: .on))
        // The same again says nothing.
        for _ in 0..<2 {
            await rouse.setSwitches(notifications: true, backgroundRefresh: true, lowPower: true)
        }
        #expect(lowPower(stage) == [.on])
        await rouse.scene(.inactive)
        await rouse.scene(.suspending)
        #expect(lowPower(stage) == [.on, .on])
        #expect(await rouse.woken(by: nil, within: 30_000) == .noData)
        #expect(stage.server.feed.withLock { $0.hellos.last?.appState?.lowPower } == .on)
    }
}
