import AppLife
import MemoryStore
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What the phone itself has a say in: its id, its networks, and an app that forgets its client.
@Suite(.timeLimit(.minutes(60))) struct PhoneTests {
    /// Whether the phone was unlocked since its restart, and the id that it then has.
    private final class Keychain: Sendable {
        let device = Mutex<DeviceID?>(nil)
    }

    private func client(
        _ stage: Stage, transport: (any RouseTransport)? = nil, keychain: Keychain
    ) -> Rouse {
        let disk = stage.disk
        return Rouse(
            configuration: ClientConfiguration(
                app: "chess", clientName: "test", clientVersion: "1"),
            transport: transport ?? stage.server, phone: stage.phone, clock: stage.clock, seed: 1,
            device: {
                guard let device = keychain.device.withLock({ $0 }) else {
                    throw LocalStoreError.unavailable("the phone is locked")
                }
                return device
            },
            openStore: { TableLocalStore(store: disk, keepsOwed: true) }, identity: { _ in nil })
    }

    @Test("the device's id is asked when the store opens, and again where it could not be read")
    func lockedId() async throws {
        let stage = try Stage()
        let keychain = Keychain()
        let rouse = client(stage, keychain: keychain)
        #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
        #expect(stage.server.feed.withLock { $0.hellos }.isEmpty)
        keychain.device.withLock { $0 = DeviceID(high: 7, low: 7) }
        _ = await rouse.woken(by: nil, within: 30_000)
        let devices = stage.server.feed.withLock { $0.hellos.map(\.device) }
        #expect(devices == [DeviceID(high: 7, low: 7)])
    }

    @Test("a store that came from another device, as in a backup, is not gone on with")
    func anotherDevice() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.isSilent = true }
        let keychain = Keychain()
        keychain.device.withLock { $0 = DeviceID(high: 7, low: 7) }
        let old = client(stage, keychain: keychain)
        try await old.send("of the old phone", to: Stage.room)
        keychain.device.withLock { $0 = DeviceID(high: 8, low: 8) }
        stage.server.feed.withLock { ($0.isSilent, $0.hellos, $0.sent) = (false, [], []) }
        let new = client(stage, keychain: keychain)
        await new.scene(.active)
        while stage.server.feed.withLock({ $0.hellos.isEmpty }) { await Task.yield() }
        let hello = try #require(stage.server.feed.withLock { $0.hellos.first })
        #expect(hello.device == DeviceID(high: 8, low: 8))
        #expect(hello.sessionToken.isEmpty && hello.sync?.mutations.isEmpty != false)
        #expect(hello.sync?.cursor == nil)
        await old.close()
    }

    /// Notes what becomes of connections.
    private final class WatchedTransport: RouseTransport {
        struct Connection: RouseConnection {
            let inner: any RouseConnection
            let owner: WatchedTransport
            var events: AsyncStream<TransportEvent> { inner.events }
            func send(_ bytes: [UInt8]) { inner.send(bytes) }
            func close() {
                owner.closed.withLock { $0 += 1 }
                inner.close()
            }
        }

        let server: ScriptedServer
        let closed = Mutex(0)

        init(_ server: ScriptedServer) { self.server = server }

        func connect() -> any RouseConnection {
            Connection(inner: server.connect(), owner: self)
        }
    }

    @Test("the connection of a client that the app has let go of is closed")
    func forgotten() async throws {
        let stage = try Stage()
        let transport = WatchedTransport(stage.server)
        weak var client: Rouse?
        do {
            let keychain = Keychain()
            keychain.device.withLock { $0 = DeviceID(high: 7, low: 7) }
            let rouse = self.client(stage, transport: transport, keychain: keychain)
            client = rouse
            await rouse.scene(.active)
            for await state in await rouse.connectionStates() where state == .inSync { break }
            #expect(transport.closed.withLock { $0 } == 0)
        }
        while client != nil, !Task.isCancelled { await Task.yield() }
        #expect(client == nil)
        #expect(transport.closed.withLock { $0 } == 1)
    }

    @Test("a refresh whose time the system takes back is answered at once, with a good-bye")
    func expired() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        stage.server.feed.withLock { $0.isMute = true }
        let rouse = stage.process()
        // Its answer does not come, so that the refresh would wait for its deadline.
        try await rouse.send("hello", to: Stage.room)
        let refresh = Task { await rouse.refreshTask(within: 30_000) }
        while stage.server.feed.withLock({ $0.acks.isEmpty }) { await Task.yield() }
        refresh.cancel()
        #expect(await refresh.value == .newData)
        while stage.server.feed.withLock({ $0.heard.last }) != .close { await Task.yield() }
        // One that was taken back before it began.
        let early = Task {
            while !Task.isCancelled { await Task.yield() }
            return await rouse.refreshTask(within: 30_000)
        }
        early.cancel()
        _ = await early.value
    }

    @Test("an app in the background has done its part when all is in sync, and nothing waits")
    func settled() async throws {
        let stage = try Stage()
        let rouse = stage.process(over: FaultyStore(stage.disk))
        let began = stage.clock.now
        stage.server.feed.withLock { $0.isMute = true }
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        #expect(await rouse.settled(within: 25_000))
        try await rouse.send("hello", to: Stage.room)
        await rouse.scene(.background(remaining: 25_000))
        async let isDone = rouse.settled(within: 20_000)
        await stage.clock.pass([began + 20_000])
        #expect(await isDone == false)
        // The answer comes, though over another connection.
        stage.server.feed.withLock { $0.isMute = false }
        async let isDoneNow = rouse.settled(within: 25_000)
        await rouse.scene(.suspending)
        await rouse.scene(.active)
        #expect(await isDoneNow)
        await rouse.close()
        #expect(await rouse.settled(within: 25_000) == false)
    }

    @Test("of the network's news a client is told what may have changed its way to the server")
    func network() {
        var watch = NetworkWatch()
        func tells(_ isUp: Bool, _ interface: String) -> Bool {
            watch.changed(isUp: isUp, interface: interface)
        }
        // What holds at the beginning is no change.
        #expect(!tells(true, "en0"))
        #expect(!tells(true, "en0"))
        // Out of the Wi-Fi, with the cellular network at hand.
        #expect(tells(true, "pdp_ip0"))
        // Into a tunnel, and out of it.
        #expect(!tells(false, ""))
        #expect(tells(true, "pdp_ip0"))
        // An app that begins in airplane mode.
        watch = NetworkWatch()
        #expect(!tells(false, ""))
        #expect(tells(true, "en0"))
    }
}
