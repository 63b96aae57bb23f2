import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What a view learns that begins to listen when it has been told already.
@Suite(.timeLimit(.minutes(60))) struct HoldingTests {
    private func first(_ rouse: Rouse) async -> RouseChange? {
        var changes = await rouse.changes().makeAsyncIterator()
        return await changes.next()
    }

    @Test("a store that did not open says so to who comes later, until it does")
    func locked() async throws {
        let stage = try Stage()
        let rouse = stage.process(isLocked: true)
        await rouse.scene(.active)
        let failure = LocalStoreError.unavailable("not unlocked")
        #expect(await first(rouse) == .storeFailed(failure))
        stage.phone.wasUnlocked.withLock { $0 = true }
        try await LiveTests.synced(rouse) { await rouse.unlocked() }
        let changes = await rouse.changes()
        await rouse.refresh()
        for await change in changes {
            #expect(change != .storeFailed(failure))
            if change == .inSync { break }
        }
    }

    @Test("so does a device that the server does not let in")
    func refused() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.closing = .suspended }
        let rouse = stage.process()
        let refusal = Refusal(code: Code.suspended.rawValue)
        await rouse.scene(.active)
        for await state in await rouse.connectionStates() where state == .refused(refusal) { break }
        #expect(await first(rouse) == .refused(refusal))
    }

    @Test("and a push token that is dead, until there is another")
    func token() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        let before = await rouse.changes()
        stage.server.refuseToken()
        for await change in before where change == .pushTokenRefused { break }
        #expect(await first(rouse) == .pushTokenRefused)
        try await LiveTests.synced(rouse) {
            await rouse.setPush(PushRegistration(token: [1], environment: .production))
            await rouse.refresh()
        }
        let after = await rouse.changes()
        await rouse.refresh()
        for await change in after {
            #expect(change != .pushTokenRefused)
            if change == .inSync { break }
        }
    }

    @Test("the logout that an earlier process began is told after its end, too")
    func loggedOut() async throws {
        let stage = try Stage()
        let store = TableLocalStore(store: stage.disk)
        _ = try store.enqueue(.forgetDevice(ForgetDevice()), at: stage.clock.wall)
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        let states = await rouse.connectionStates()
        for await _ in states {}
        var told: [RouseChange] = []
        for await change in await rouse.changes() { told.append(change) }
        #expect(told == [.loggedOut])
    }
}
