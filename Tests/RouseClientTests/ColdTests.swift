import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What a process does that the system has started for one thing, and told nothing else.
@Suite struct ColdTests {
    @Test("an answer to a notification leaves a process that began with it, behind the front")
    func anAnswer() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        let state = try await rouse.send("on my way", to: Stage.room, within: 20_000)
        #expect(state == .accepted)
        #expect(stage.server.feed.withLock { $0.sent.map(\.parts) } == [[Part("on my way")]])
        #expect(stage.server.feed.withLock { $0.hellos.map(\.appState?.phase) } == [.background])
        // The run time ends with it.
        #expect(stage.phone.log.last == "close")
        // So it is when the app was in front before.
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        await rouse.scene(.suspending)
        stage.server.feed.withLock { $0.refusal = .forbidden }
        let refused = try await rouse.send("and again", to: Stage.room, within: 20_000)
        #expect(refused == .refused(Refusal(code: Code.forbidden.rawValue)))
    }

    @Test("without the server it is kept, and the system has its run time back")
    func anAnswerOffline() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.isSilent = true }
        let rouse = stage.process()
        let began = stage.clock.now
        let answer = Task {
            try await rouse.send("on my way", to: Stage.room, within: 20_000)
        }
        await stage.clock.pass([began + 18_000])
        #expect(try await answer.value == .queued)
        stage.server.feed.withLock { $0.isSilent = false }
        #expect(await stage.process().woken(by: nil, within: 30_000) == .newData)
        #expect(stage.server.feed.withLock { $0.sent }.count == 1)
    }

    @Test("of a long title an alert has as much as it can show, as of a long text")
    func longTitle() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        let (title, text) = (
            String(repeating: "T", count: 1_500), String(repeating: "x", count: 9_000)
        )
        _ = try await rouse.send(text, to: Stage.room, title: title, within: 20_000)
        let push = try #require(stage.server.feed.withLock { $0.sent.first?.push })
        #expect(push.title.utf8.count + push.body.utf8.count <= 2_048)
        #expect(push.title.hasPrefix("TTT") && push.title.hasSuffix("…"))
    }

    @Test("nothing is taken while the user logs out, for it would be erased")
    func sendWhileLoggingOut() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        stage.server.feed.withLock { $0.isMute = true }
        let began = stage.clock.now
        let logout = Task { try await rouse.logOut(within: 10_000) }
        for await moment in stage.clock.asked where moment == began + 10_000 { break }
        await #expect(throws: LocalStoreError.unavailable("the client is logging out")) {
            try await rouse.send("too late", to: Stage.room)
        }
        stage.clock.advance(to: began + 10_000)
        #expect(try await logout.value == false)
    }

    @Test("a store that did not open is tried again by a wake, by its person and by the network")
    func openedLater() async throws {
        let acts: [@Sendable (Rouse) async throws -> Void] = [
            { _ = await $0.woken(by: nil, within: 30_000) },
            { await $0.refresh() },
            { await $0.networkChanged() },
        ]
        for (number, act) in acts.enumerated() {
            let stage = try Stage()
            let rouse = stage.process(isLocked: true)
            let changes = await rouse.changes()
            if number == 0 {
                #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
            } else {
                await rouse.scene(.active)
            }
            for await change in changes {
                guard case .storeFailed(let error) = change else { continue }
                #expect(error == .unavailable("not unlocked"))
                break
            }
            #expect(stage.server.feed.withLock { $0.hellos }.isEmpty)
            // Nobody says that it is.
            stage.phone.wasUnlocked.withLock { $0 = true }
            try await LiveTests.synced(rouse) { try await act(rouse) }
        }
    }

    @Test("whatever a person does first opens the store")
    func first() async throws {
        let acts: [@Sendable (Rouse) async throws -> Void] = [
            { try await $0.send("hello", to: Stage.room) },
            { try await $0.markRead(Stage.room) },
            { try await $0.fetchOlder(in: Stage.room) },
            { _ = try await $0.refusedMessages() },
        ]
        for act in acts {
            let stage = try Stage()
            let rouse = stage.process()
            try await act(rouse)
            // As told by no scene: it is the first.
            try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        }
        let stage = try Stage()
        #expect(try await stage.process(over: FaultyStore(stage.disk)).logOut())
        #expect(try TableLocalStore(store: stage.disk).load().user.isEmpty)
    }
}
