import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What becomes of a push token that the system gives the app, with the server's HELLOs as the
/// judge.
@Suite struct PushTokenTests {
    private static func token(_ byte: UInt8) -> PushRegistration {
        PushRegistration(
            token: Array(repeating: byte, count: 32), environment: .production,
            topic: "com.example.chess")
    }

    private func presented(_ stage: Stage) -> [UInt8?] {
        stage.server.feed.withLock { $0.hellos.map { $0.push?.token.first } }
    }

    @Test("one that comes while the app is connected reaches the server at once, and once")
    func whileConnected() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        // A message that waits for its answer is sent over the next connection, and is not lost.
        stage.server.feed.withLock { $0.isMute = true }
        let sent = try await rouse.send("hello", to: Stage.room)
        stage.server.feed.withLock { $0.isMute = false }
        try await LiveTests.synced(rouse) {
            await rouse.setPush(Self.token(1))
            await rouse.refresh()
        }
        #expect(presented(stage) == [nil, 1])
        #expect(stage.server.feed.withLock { $0.sent.map(\.message) } == [sent.message])
        // The system gives the same at every start of the app.
        for token in [1, 1, 2] as [UInt8] {
            try await LiveTests.synced(rouse) {
                await rouse.setPush(Self.token(token))
                await rouse.refresh()
            }
        }
        #expect(presented(stage) == [nil, 1, 2])
        // A HELLO without one would change nothing.
        try await LiveTests.synced(rouse) {
            await rouse.setPush(nil)
            await rouse.refresh()
        }
        #expect(presented(stage) == [nil, 1, 2])
    }

    @Test("the one that the server has confirmed needs no second connection at the next start")
    func nextStart() async throws {
        let stage = try Stage()
        let first = stage.process(over: FaultyStore(stage.disk))
        await first.setPush(Self.token(1))
        try await LiveTests.synced(first) { await first.scene(.active) }
        await first.close()
        #expect(presented(stage) == [1])
        // The system gives it while the server has not answered yet, and after that.
        for isEarly in [true, false] {
            let next = stage.process(user: "anna", over: FaultyStore(stage.disk))
            stage.server.feed.withLock { ($0.hellos, $0.challenges) = ([], isEarly) }
            try await LiveTests.synced(next) {
                await next.scene(.active)
                while presented(stage).isEmpty { await Task.yield() }
                if isEarly { await next.setPush(Self.token(1)) }
            }
            try await LiveTests.synced(next) {
                await next.setPush(Self.token(1))
                await next.refresh()
            }
            #expect(presented(stage) == [nil])
            await next.close()
        }
        stage.server.feed.withLock { $0.challenges = false }
        // One that the server has lost it is given again, and another one, too.
        for (token, held) in [(1, nil), (2, Self.token(1))] as [(UInt8, PushRegistration?)] {
            stage.server.feed.withLock { ($0.hellos, $0.push) = ([], held) }
            let next = stage.process(over: FaultyStore(stage.disk))
            try await LiveTests.synced(next) { await next.scene(.active) }
            try await LiveTests.synced(next) {
                await next.setPush(Self.token(token))
                await next.refresh()
            }
            #expect(presented(stage) == [nil, token])
            await next.close()
        }
    }

    @Test("one that comes to a suspended or covered app waits for its next connection")
    func whileSuspended() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        await rouse.setPush(Self.token(1))
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        #expect(presented(stage) == [1])
        await rouse.scene(.inactive)
        // By then the session knows of it.
        try await LiveTests.synced(rouse) { await rouse.refresh() }
        try await LiveTests.synced(rouse) {
            await rouse.setPush(Self.token(2))
            await rouse.refresh()
        }
        #expect(presented(stage) == [1])
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        #expect(presented(stage) == [1, 2])
        await rouse.scene(.suspending)
        await rouse.setPush(Self.token(3))
        #expect(await rouse.woken(by: nil, within: 30_000) == .noData)
        #expect(presented(stage) == [1, 2, 3])
    }
}
