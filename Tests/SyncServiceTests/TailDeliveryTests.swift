import Client
import Crypto
import EventLoop
import Feed
import Foundation
import MemoryStore
import Model
import StoreService
import SyncClient
import SyncService
import Telemetry
import Testing
import Wire

/// A device in the foreground, over TLS.
private final class LiveDevice: @unchecked Sendable {
    // @unchecked: `client` is used on its loop only, the rest under `lock`.
    private let lock = Lock()
    private var client: SyncClient?
    private var isSynced = false
    private var count = 0
    private var awaited: (count: Int, latch: Latch)?
    private var thread: LoopThread?

    init(_ service: Service) throws {
        let authority = try Data(
            contentsOf: service.directory.appendingPathComponent("ca.pem"))
        let (issuer, port) = (service.issuer, service.sync.port)
        thread = try LoopThread.start(name: "device") { loop in
            var events = SyncClientEvents { nonce, answer in
                answer(HeldPair.token(issuer, nonce: nonce))
            }
            events.reported = { event in
                if case .synced = event { self.note { self.isSynced = true } }
            }
            events.applied = { entries in self.note { self.count += entries.count } }
            let client = try SyncClient(
                loop: loop,
                endpoint: SyncEndpoint(host: "127.0.0.1", port: port, serverName: "localhost"),
                tls: TLSContext.client(
                    trustedCertificates: Array(authority), protocols: ["rouse/1"]),
                store: TableLocalStore(store: MemoryStore(tables: LocalSchema.tables)),
                configuration: ClientConfiguration(
                    app: Service.app.name, device: DeviceID(high: 9, low: 9), clientName: "test",
                    clientVersion: "1"),
                seed: 1, events: events)
            self.client = client
            client.start(AppState(phase: .foreground))
        }
    }

    private func note(_ what: () -> Void) {
        let latch: Latch? = lock.withLock {
            what()
            guard isSynced, let awaited, count >= awaited.count else { return nil }
            self.awaited = nil
            return awaited.latch
        }
        latch?.arrive()
    }

    /// Waits until it is in sync and has so many entries in all.
    func has(_ entries: Int) {
        let latch = Latch()
        lock.withLock { awaited = (entries, latch) }
        note {}
        latch.wait()
    }

    func stop() {
        thread?.perform { _ in
            self.client?.terminate()
            self.client = nil
        }
        thread?.stop()
        thread?.join()
    }
}

@Suite struct TailDeliveryTests {
    private let room = ConversationID(high: 5, low: 5)

    private func publish(_ number: UInt64, _ service: Service) throws {
        let message = SendMessage(
            conversation: room, message: MessageID(high: 6, low: number),
            parts: [Part(mimeType: "text/plain", content: Array("line \(number)".utf8))],
            push: PushText(title: "", body: "line"))
        _ = try service.commit(
            .publish(
                app: Service.app, Publication(message: message, sender: ""), idempotency: nil))
    }

    private func pushed(_ by: String, _ service: Service) -> Int {
        let name = "rouse_deltas_pushed_total{by=\"\(by)\"} "
        let line = service.metrics.text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count)) } ?? -1
    }

    @Test("what is published reaches a live device without a read; after a gap there is one")
    func messages() throws {
        let service = try Service()
        defer { service.stop() }
        let started = ContinuousClock.now
        _ = try service.commit(
            .createConversation(
                app: Service.app,
                CreateConversation(conversation: room, participants: ["anna", "ben"]),
                idempotency: nil))
        let device = try LiveDevice(service)
        defer { device.stop() }
        // The conversation and its participants.
        device.has(3)
        // The first page that is pushed, if any, is behind it.
        try publish(1, service)
        device.has(4)
        let before = (pushed("tail", service), pushed("read", service))
        let queries = service.store.health.counts.queries
        for number in 2...9 as ClosedRange<UInt64> {
            try publish(number, service)
            device.has(3 + Int(number))
        }
        #expect(pushed("tail", service) == before.0 + 8)
        #expect(pushed("read", service) == before.1)
        // The turn over the heads reads, too, a minute after the device came.
        if ContinuousClock.now - started < .seconds(50) {
            #expect(service.store.health.counts.queries == queries)
        }
        let metadata = ChangeMetadata(
            conversation: room, changes: [MetadataChange(path: ["name"], value: "new")])
        _ = try service.commit(
            .changeMetadata(app: Service.app, metadata, idempotency: nil))
        device.has(13)
        #expect(pushed("read", service) == before.1 + 1)
        try publish(10, service)
        device.has(14)
        #expect(pushed("tail", service) == before.0 + 9)
        #expect(pushed("read", service) == before.1 + 1)
    }

    /// How many times were taken.
    private func measured(_ series: String, _ service: Service) -> Int {
        let line = service.metrics.text.split(separator: "\n").first { $0.hasPrefix(series) }
        return line.flatMap { Int($0.dropFirst(series.count + 1)) } ?? 0
    }

    private func waitUntil(_ count: Int, _ series: String, _ service: Service) throws {
        for _ in 0..<60_000 {
            if measured(series, service) >= count { return }
            usleep(1_000)
        }
        Issue.record("\(series) is \(measured(series, service)), not \(count)")
        throw CancellationError()
    }

    @Test("how long a message takes until a device is told, and has it, is measured")
    func times() throws {
        let service = try Service()
        defer { service.stop() }
        _ = try service.commit(
            .createConversation(
                app: Service.app,
                CreateConversation(conversation: room, participants: ["anna", "ben"]),
                idempotency: nil))
        let device = try LiveDevice(service)
        defer { device.stop() }
        device.has(3)
        let app = Service.app.name
        let told = "rouse_publish_told_seconds_count{app=\"\(app)\",by=\"frame\"}"
        let applied = "rouse_publish_applied_seconds_count{app=\"\(app)\"}"
        #expect(measured(told, service) == 0 && measured(applied, service) == 0)
        for number in 1...3 as ClosedRange<UInt64> {
            try publish(number, service)
            device.has(3 + Int(number))
            // The device has it before its ACK is taken.
            try waitUntil(Int(number), applied, service)
            #expect(measured(told, service) == Int(number))
        }
        let metadata = ChangeMetadata(
            conversation: room, changes: [MetadataChange(path: ["name"], value: "new")])
        _ = try service.commit(
            .changeMetadata(app: Service.app, metadata, idempotency: nil))
        device.has(7)
        try publish(4, service)
        device.has(8)
        try waitUntil(4, applied, service)
        #expect(measured(told, service) == 4)
    }

    @Test("a session that its user's backend ends in the same commit is handed nothing of it")
    func revoked() throws {
        let service = try Service()
        defer { service.stop() }
        _ = try service.commit(
            .createConversation(
                app: Service.app,
                CreateConversation(conversation: room, participants: ["anna", "ben"]),
                idempotency: nil))
        let device = try LiveDevice(service)
        defer { device.stop() }
        device.has(3)
        try publish(1, service)
        device.has(4)
        let before = (pushed("tail", service), pushed("read", service))
        // Both are in one transaction: the next after one that the store makes by itself.
        let hold = service.directory.appendingPathComponent("hold-commits").path
        func until(_ line: Int = #line, _ isSo: () -> Bool) {
            let end = ContinuousClock.now + .seconds(60)
            while !isSo(), ContinuousClock.now < end { usleep(2_000) }
            #expect(isSo(), "line \(line): \(service.store.waitingRequests) wait")
        }
        _ = FileManager.default.createFile(atPath: hold, contents: nil)
        until { FileManager.default.fileExists(atPath: hold + ".on") }
        // The ACK of the first message may be among them.
        let others = service.store.waitingRequests
        let done = Latch()
        Thread.detachNewThread {
            try? self.publish(2, service)
            done.arrive()
        }
        until { service.store.waitingRequests > others }
        let revoke = Administration.revokeSessions(
            Service.app, UserID("anna"), reauthenticate: false)
        let again = Latch()
        Thread.detachNewThread {
            _ = try? service.commit(.administer(revoke))
            again.arrive()
        }
        until { service.store.waitingRequests > others + 1 }
        try FileManager.default.removeItem(atPath: hold)
        done.wait()
        again.wait()
        // It logs in anew, and asks.
        device.has(5)
        #expect(pushed("tail", service) == before.0)
        #expect(pushed("read", service) == before.1)
    }
}
