import AppLife
import MemoryStore
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// The end of a client, while its app goes on.
@Suite(.timeLimit(.minutes(60))) struct CloseTests {
    private func ends<Element: Sendable>(_ stream: AsyncStream<Element>) async -> Bool {
        for await _ in stream {}
        return true
    }

    @Test("it says good-bye, answers the system, ends the sequences, and leaves the store")
    func closed() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        for await state in await rouse.connectionStates() where state == .inSync { break }
        let message = try await rouse.send("kept", to: Stage.room)
        let (changes, lists) = (await rouse.changes(), await rouse.conversations())
        let windows = await rouse.messages(in: Stage.room, newest: 5)
        let deliveries = await rouse.delivery(of: message)
        let states = await rouse.connectionStates()
        stage.server.feed.withLock { $0.isSilent = true }
        async let wake = rouse.woken(by: nil, within: 30_000)
        while !stage.server.feed.withLock({ $0.heard.contains(.sync) }) { await Task.yield() }
        await rouse.close()
        #expect(await wake == .failed)
        #expect(await ends(changes))
        #expect(await ends(lists))
        #expect(await ends(windows))
        #expect(await ends(deliveries))
        var last: ConnectionState?
        for await state in states { last = state }
        #expect(last == .offline)
        #expect(stage.server.feed.withLock { $0.heard.last } == .close)
        // What it had is there for the next.
        stage.server.feed.withLock { $0.isSilent = false }
        let next = stage.process()
        _ = await next.woken(by: nil, within: 30_000)
        let rows = try await next.messages(of: Stage.room, limit: 9)
        #expect(rows.count == 1)
    }

    @Test("then it does nothing any more, and says why")
    func afterwards() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        await rouse.scene(.active)
        await rouse.close()
        await rouse.close()
        let hellos = stage.server.feed.withLock { $0.hellos.count }
        #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
        await rouse.scene(.active)
        await rouse.networkChanged()
        await rouse.unlocked()
        #expect(stage.server.feed.withLock { $0.hellos.count } == hellos)
        await #expect(throws: LocalStoreError.unavailable("the client is closed")) {
            try await rouse.send("too late", to: Stage.room)
        }
        #expect(await ends(rouse.changes()))
        #expect(await ends(rouse.conversations()))
        #expect(await ends(rouse.connectionStates()))
    }

    @Test("a call to the system that does not return does not keep it open")
    func behindAHungCall() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        let began = stage.clock.now
        await rouse.scene(.active)
        for await _ in stage.phone.isAtGate { break }
        let closing = Task { await rouse.close() }
        for await moment in stage.clock.asked where moment == began + 2_000 {
            stage.clock.advance(to: moment)
            break
        }
        await closing.value
        #expect(stage.server.feed.withLock { $0.heard.last } == .close)
        #expect(await ends(rouse.changes()))
        opened.finish()
    }

    @Test("one that never ran is closed all the same")
    func never() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        await rouse.close()
        #expect(await rouse.refreshTask(within: 30_000) == .failed)
        #expect(stage.server.feed.withLock { $0.heard }.isEmpty)
    }

    @Test("a backend that never answers does not keep a client that the app has let go of")
    func letGo() async throws {
        let stage = try Stage(disk: SharedDisk())
        stage.server.feed.withLock { $0.challenges = true }
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let (answers, answering) = AsyncStream<Void>.makeStream()
        weak var client: Rouse?
        do {
            let rouse = Rouse(
                configuration: ClientConfiguration(
                    app: "chess", device: DeviceID(high: 5, low: 5), clientName: "test",
                    clientVersion: "1"),
                transport: stage.server, phone: stage.phone, clock: stage.clock, seed: 1,
                openStore: {
                    TableLocalStore(
                        store: MemoryStore(tables: LocalSchema.tables), keepsOwed: true)
                },
                identity: { _ in
                    asking.yield()
                    for await _ in answers {}
                    return nil
                })
            client = rouse
            await rouse.scene(.active)
            for await _ in asked { break }
        }
        while client != nil, !Task.isCancelled { await Task.yield() }
        #expect(client == nil)
        answering.finish()
    }
}
