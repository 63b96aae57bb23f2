import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// A device that one user leaves and another takes: what the second sees, and what the server hears
/// of whom.
@Suite(.timeLimit(.minutes(60))) struct UserTests {
    /// Anna's message stands on the screen, and one of hers waits.
    private func left(_ stage: Stage) async throws {
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process(over: FaultyStore(stage.disk))
        _ = await rouse.woken(by: nil, within: 30_000)
        #expect(stage.phone.screen == [1])
        try await rouse.send("of anna", to: Stage.room)
        await rouse.close()
    }

    private func rows(_ rouse: Rouse) async -> [MessageRow] {
        for await window in await rouse.messages(in: Stage.room, newest: 9) { return window.rows }
        return []
    }

    @Test("the second user sees nothing of the first, not even without a connection")
    func secondUser() async throws {
        let stage = try Stage()
        try await left(stage)
        stage.server.feed.withLock { ($0.isSilent, $0.hellos) = (true, []) }
        let rouse = stage.process(user: "ben")
        await rouse.scene(.active)
        try await rouse.send("of ben", to: Stage.room)
        #expect(await rows(rouse).map(\.text) == ["of ben"])
        while stage.phone.icon != 0 { await Task.yield() }
        #expect(stage.phone.screen.isEmpty)
        while stage.server.feed.withLock({ $0.hellos.isEmpty }) { await Task.yield() }
        // The first one's credential would let anna in, and ben's words would be hers.
        let hello = try #require(stage.server.feed.withLock { $0.hellos.first })
        #expect(hello.sessionToken.isEmpty)
        #expect(hello.sync?.cursor == nil)
    }

    @Test("the same user goes on where it was")
    func sameUser() async throws {
        let stage = try Stage()
        try await left(stage)
        stage.server.feed.withLock { ($0.isSilent, $0.hellos) = (true, []) }
        let rouse = stage.process(user: "anna")
        await rouse.scene(.active)
        #expect(await rows(rouse).map(\.text) == ["", "of anna"])
        #expect(stage.phone.screen == [1])
        while stage.server.feed.withLock({ $0.hellos.isEmpty }) { await Task.yield() }
        #expect(stage.server.feed.withLock { $0.hellos.first?.sessionToken } == [8])
    }

    @Test("of a user whom the backend names, and the app does not, nothing comes or goes")
    func otherToken() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { ($0.challenges, $0.user) = (true, "kim") }
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process(user: "ben")
        let changes = await rouse.changes()
        await rouse.scene(.active)
        try await rouse.send("of ben", to: Stage.room)
        for await change in changes {
            guard case .trouble(let why) = change else { continue }
            #expect(why == "the backend vouched for kim, and the app has another user")
            break
        }
        #expect(await rows(rouse).map(\.text) == ["of ben"])
        #expect(stage.server.feed.withLock { $0.sent }.isEmpty)
    }

    @Test("a logout sends what waits, clears the screen and erases the store")
    func loggedOut() async throws {
        let stage = try Stage()
        try await left(stage)
        let rouse = stage.process(over: FaultyStore(stage.disk))
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        // Not after the back-off, whose time never comes here.
        await LiveTests.hungUp(rouse, stage)
        #expect(try await rouse.logOut())
        #expect(stage.server.feed.withLock { $0.sent.count } == 1)
        #expect(stage.phone.screen.isEmpty)
        #expect(stage.phone.icon == 0)
        #expect(try erased(stage))
        #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
    }

    @Test("without the server a logout does its own part, and says that it was no more")
    func loggedOutAlone() async throws {
        let stage = try Stage()
        try await left(stage)
        stage.server.feed.withLock { $0.isSilent = true }
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        let began = stage.clock.now
        let leaving = Task { try await rouse.logOut(within: 7_000) }
        await stage.clock.pass([began + 7_000])
        #expect(try await leaving.value == false)
        #expect(stage.phone.screen.isEmpty)
        #expect(try waits(stage))
    }

    @Test("a logout without the server is told when it is there, and nothing comes of the feed")
    func toldLater() async throws {
        for isForgotten in [false, true] {
            let stage = try await self.isLeaving()
            stage.phone.alert(Stage.message(2))
            // Without a network it goes on waiting.
            let began = stage.clock.now
            let vain = stage.process(over: FaultyStore(stage.disk))
            let telling = Task { try await vain.tellLogOut(within: 7_000) }
            await stage.clock.pass([began + 7_000])
            #expect(try await telling.value == false)
            #expect(try waits(stage))
            stage.server.feed.withLock {
                ($0.isSilent, $0.hellos, $0.heard, $0.challenges) = (false, [], [], isForgotten)
            }
            let next = stage.process(over: FaultyStore(stage.disk))
            #expect(try await next.tellLogOut())
            let (hellos, heard) = stage.server.feed.withLock { ($0.hellos, $0.heard) }
            #expect(hellos.map(\.sessionToken) == [[8]] && hellos.allSatisfy { $0.sync == nil })
            #expect(heard.contains(.mutate) != isForgotten && !heard.contains(.sync))
            #expect(stage.phone.screen.isEmpty && stage.phone.icon == 0)
            #expect(try erased(stage))
            // Then there is nothing to tell, and nobody to connect to.
            let last = stage.process(over: FaultyStore(stage.disk))
            #expect(try await last.tellLogOut())
            #expect(stage.server.feed.withLock { $0.hellos.count } == 1)
        }
    }

    @Test("whoever logs in after it logs in anew, the same user too", arguments: ["anna", "ben"])
    func loggedInAfterwards(_ user: String) async throws {
        let stage = try await isLeaving()
        stage.server.feed.withLock {
            ($0.isSilent, $0.hellos, $0.heard, $0.user) = (false, [], [], user)
            $0.challenges = true
        }
        let rouse = stage.process(user: user, over: FaultyStore(stage.disk))
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        let (hellos, heard) = stage.server.feed.withLock { ($0.hellos, $0.heard) }
        #expect(hellos.map(\.sessionToken) == [[]])
        #expect(!heard.contains(.mutate))
        #expect(try TableLocalStore(store: stage.disk).load().user == user)
    }

    /// Anna has logged out, and the server has not heard of it.
    private func isLeaving() async throws -> Stage {
        let stage = try Stage()
        try await left(stage)
        stage.server.feed.withLock { $0.isSilent = true }
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        let began = stage.clock.now
        let leaving = Task { try await rouse.logOut(within: 7_000) }
        await stage.clock.pass([began + 7_000])
        #expect(try await leaving.value == false)
        return stage
    }

    @Test(
        "the logout of a user whom the server does not let in waits for nothing",
        arguments: [Code.suspended, .upgradeRequired])
    func loggedOutSuspended(_ code: Code) async throws {
        let stage = try Stage()
        try await left(stage)
        stage.server.feed.withLock { $0.closing = code }
        let rouse = stage.process(over: FaultyStore(stage.disk))
        let states = await rouse.connectionStates()
        await rouse.scene(.active)
        for await state in states where state == .refused(Refusal(code: code.rawValue)) { break }
        // The time does not come.
        #expect(try await rouse.logOut(within: 7_000) == false)
        #expect(stage.phone.screen.isEmpty)
        #expect(try waits(stage))
    }

    /// Anna logs out, and her process stands still before the server has heard of it.
    private func leavingUnheard(_ stage: Stage) async throws -> Task<Bool, any Error> {
        try await left(stage)
        stage.server.feed.withLock { $0.isSilent = true }
        let first = stage.process(over: FaultyStore(stage.disk))
        await first.scene(.active)
        let leaving = Task { try await first.logOut(within: 7_000) }
        while try TableLocalStore(store: stage.disk).load().lastMutation < 2 { await Task.yield() }
        return leaving
    }

    @Test("a logout whose process ended does not log out the user who logs in again")
    func loggedInAgain() async throws {
        let stage = try Stage()
        let leaving = try await leavingUnheard(stage)
        let second = stage.process(user: "anna")
        stage.server.feed.withLock { $0.isSilent = false }
        try await LiveTests.synced(second) { await second.scene(.active) }
        #expect(await rows(second).map(\.text) == ["", "of anna"])
        #expect(try TableLocalStore(store: stage.disk).load().firstUnanswered == nil)
        #expect(stage.server.feed.withLock { $0.sent.count } == 1)
        leaving.cancel()
    }

    @Test("a logout that a later process brings to its end erases as the first would have")
    func finishedLater() async throws {
        let stage = try Stage()
        let leaving = try await leavingUnheard(stage)
        stage.server.feed.withLock { $0.isSilent = false }
        // In a wake, which nobody sees.
        let second = stage.process(over: FaultyStore(stage.disk))
        var changes = await second.changes().makeAsyncIterator()
        #expect(stage.phone.screen == [1])
        let result = await second.woken(by: nil, within: 30_000)
        #expect(result != .failed)
        var told: [RouseChange] = []
        // The client's end ends the sequence.
        while let change = await changes.next() { told.append(change) }
        #expect(told.last == .loggedOut)
        while stage.phone.icon != 0 { await Task.yield() }
        #expect(stage.phone.screen.isEmpty)
        #expect(try erased(stage))
        #expect(stage.server.feed.withLock { $0.sent.count } == 1, "what waited was not sent")
        leaving.cancel()
    }

    /// For a process that ends when it asks for the `looks`th time what stands on the screen: it is
    /// never answered, and the phone that the next process finds is as it was.
    private func ending(_ stage: Stage, looks: Int) throws -> Stage {
        // It is never opened.
        let (gate, _) = AsyncStream<Void>.makeStream()
        return try stage.next(FakePhone(gate: gate, at: .delivered, after: looks - 1))
    }

    /// Whether the next process leaves it clear, and the one after it leaves it alone.
    private func isCleared(_ stage: Stage, by user: String?) async throws {
        #expect(stage.phone.screen == [1])
        let next = stage.process(user: user, over: FaultyStore(stage.disk))
        await next.scene(.active)
        await next.scene(.suspending)
        #expect(stage.phone.screen.isEmpty && stage.phone.icon == 0)
        stage.phone.alert(Stage.message(2))
        let another = stage.process(user: user, over: FaultyStore(stage.disk))
        await another.scene(.active)
        await another.scene(.suspending)
        #expect(stage.phone.screen == [2])
    }

    @Test("a process that ends before the former user's screen is clear leaves it to the next one")
    func endedBeforeClearing() async throws {
        // The app says whose the device is, or its backend does.
        for user in ["ben", nil] {
            let stage = try Stage()
            try await left(stage)
            // Of a process that is anna's until the server says otherwise, the first is for her.
            let ending = try ending(stage, looks: user == nil ? 2 : 1)
            ending.server.feed.withLock { $0.user = "ben" }
            let first = ending.process(user: user, over: FaultyStore(stage.disk))
            await first.scene(.active)
            for await _ in ending.phone.isAtGate { break }
            #expect(try TableLocalStore(store: stage.disk).load().user == "ben")
            stage.server.feed.withLock { $0.isSilent = true }
            try await isCleared(stage, by: user)
        }
    }

    @Test("a logout whose process ends after the erasing leaves the screen to the next one")
    func endedAfterErasing() async throws {
        let stage = try Stage()
        try await left(stage)
        let ending = try ending(stage, looks: 2)
        ending.server.feed.withLock { $0.isSilent = true }
        let first = ending.process(over: FaultyStore(stage.disk))
        await first.scene(.active)
        let began = ending.clock.now
        let leaving = Task { try await first.logOut(within: 7_000) }
        await ending.clock.pass([began + 7_000])
        for await _ in ending.phone.isAtGate { break }
        while try !waits(stage) {
            ending.clock.advance(to: ending.clock.now + 100)
            await Task.yield()
        }
        stage.server.feed.withLock { $0.isSilent = true }
        try await isCleared(stage, by: nil)
        leaving.cancel()
    }

    @Test("the screen is clear before a logout erases anything")
    func clearedBeforeErasing() async throws {
        let stage = try Stage()
        try await left(stage)
        let disk = FaultyStore(stage.disk)
        let rouse = stage.process(over: disk)
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        stage.server.feed.withLock { $0.isMute = true }
        let began = stage.clock.now
        let leaving = Task { try await rouse.logOut(within: 7_000) }
        while try TableLocalStore(store: stage.disk).load().lastMutation < 2 { await Task.yield() }
        // As if the process ended before the erasing: that finds no room.
        disk.isFull = true
        await stage.clock.pass([began + 7_000])
        await #expect(throws: LocalStoreError.self) { try await leaving.value }
        #expect(stage.phone.screen.isEmpty && stage.phone.icon == 0)
        #expect(try TableLocalStore(store: stage.disk).load().user == "anna")
    }

    @Test("the system is answered after the end, too")
    func suspendedAfterwards() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        await rouse.close()
        await rouse.scene(.suspending)
    }

    /// Nothing is there but what tells the server.
    private func waits(_ stage: Stage) throws -> Bool {
        let store = TableLocalStore(store: stage.disk)
        let (state, counts) = (try store.load(), try store.counts())
        let waiting = try store.mutations(after: 0, limit: 9, now: Timestamp(milliseconds: 0))
        return state.isLeaving && state.user == "anna" && !state.sessionToken.isEmpty
            && state.cursor == nil && counts.entries == 0 && waiting.count == 1
            && waiting.allSatisfy(\.isLogout)
    }

    /// But for the numbers of the device's mutations.
    private func erased(_ stage: Stage) throws -> Bool {
        let store = TableLocalStore(store: stage.disk)
        let state = try store.load()
        return try state.user.isEmpty && state.sessionToken.isEmpty && state.cursor == nil
            && state.firstUnanswered == nil && state.lastMutation > 0
            && store.counts() == LocalCounts() && store.refusedMessages().isEmpty
    }
}
