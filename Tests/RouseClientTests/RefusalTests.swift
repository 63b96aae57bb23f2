import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What an app is told of a server that does not let it in.
@Suite struct RefusalTests {
    private func refusal(_ changes: AsyncStream<RouseChange>) async -> Refusal? {
        for await change in changes {
            if case .refused(let why) = change { return why }
        }
        return nil
    }

    private func state(_ rouse: Rouse) async -> ConnectionState? {
        for await state in await rouse.connectionStates() { return state }
        return nil
    }

    @Test(
        "whom the server lets in no more is told why, and not left to wait",
        arguments: [Code.suspended, .upgradeRequired])
    func refused(_ code: Code) async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.closing = code }
        let rouse = stage.process()
        let changes = await rouse.changes()
        await rouse.scene(.active)
        let why = Refusal(code: code.rawValue)
        #expect(await refusal(changes) == why)
        #expect(await state(rouse) == .refused(why))
        #expect(await rouse.disconnectReason == "\(why)")
        await rouse.scene(.suspending)
        #expect(await state(rouse) == .refused(why))
        // A user who is suspended no more is let in when the app is opened.
        guard code == .suspended else { return }
        stage.server.feed.withLock { $0.closing = nil }
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        #expect(await state(rouse) == .inSync)
        #expect(await rouse.disconnectReason == nil)
    }

    @Test("so is one whose place another installation has taken")
    func superseded() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.closing = .superseded }
        let rouse = stage.process()
        #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
        let why = Refusal(code: Code.superseded.rawValue)
        #expect(await state(rouse) == .refused(why))
        #expect("\(why)" == "another installation with this device's id has taken its place")
    }

    @Test("that the app's backend does not vouch is said, too")
    func unsigned() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.challenges = true }
        let (retries, retrying) = AsyncStream<Void>.makeStream()
        let rouse = stage.process(journal: { record in
            if case .event(.retrying) = record { retrying.yield() }
        })
        await rouse.scene(.active)
        for await _ in retries { break }
        let why = "the app's backend did not say who this is"
        #expect(await rouse.disconnectReason == why)
    }

    @Test("a close that is no refusal says why, too, and is tried again")
    func closed() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.closing = .tooManyConnections }
        let (retries, retrying) = AsyncStream<Void>.makeStream()
        let rouse = stage.process(journal: { record in
            if case .event(.retrying) = record { retrying.yield() }
        })
        await rouse.scene(.active)
        for await _ in retries { break }
        let why = "the server has as many connections as it takes"
        #expect(await rouse.disconnectReason == why)
    }
}
