import Client
import Crypto
import EventLoop
import Feed
import Foundation
import MemoryStore
import Model
import SyncClient
import SyncService
import Telemetry
import Testing
import Wire

/// A new device of a user with a history, over a real socket: it takes the snapshot, asks for
/// older messages, peeks, and is compared with the server. What happened is kept as lines.
private final class NewDevice {
    static let conversation = ConversationID(high: 5, low: 5)

    private let finished: () -> Void
    private var client: SyncClient?
    private let store = TableLocalStore(store: MemoryStore(tables: LocalSchema.tables))
    private(set) var lines: [String] = []
    private var isAsked = false

    init(loop: Loop, service: Service, finished: @escaping () -> Void) throws {
        self.finished = finished
        let authority = try Data(
            contentsOf: service.directory.appendingPathComponent("ca.pem"))
        var events = SyncClientEvents { nonce, answer in
            answer(HeldPair.token(service.issuer, nonce: nonce))
        }
        events.reported = { [unowned self] event in self.reported(event) }
        client = try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: service.sync.port, serverName: "localhost"),
            tls: try TLSContext.client(
                trustedCertificates: Array(authority), protocols: ["rouse/1"]),
            store: store,
            configuration: ClientConfiguration(
                app: Service.app.name, device: DeviceID(high: 9, low: 1), clientName: "test",
                clientVersion: "1", wantsSnapshots: true),
            seed: 1, events: events)
        client?.start(AppState(phase: .foreground))
    }

    private func positions() -> String {
        let entries = (try? store.messages(of: Self.conversation, limit: .max)) ?? []
        let found = entries.compactMap { entry -> UInt64? in
            if case .message(let state) = entry.body { state.position } else { nil }
        }
        return "\(found.first ?? 0)-\(found.last ?? 0) (\(found.count))"
    }

    private func reported(_ event: ClientEvent) {
        switch event {
        case .snapshot(let conversations, _, let isLast):
            lines.append("snapshot \(conversations) \(isLast) \(positions())")
        case .digest(let isComparable, let isEqual, let objects):
            lines.append("digest \(isComparable) \(isEqual) \(objects)")
            guard !isAsked else {
                client?.peek()
                return
            }
            isAsked = true
            client?.fetch(Fetch(conversation: Self.conversation, below: 41, limit: 15))
        case .fetched(_, let first, let last, let more):
            lines.append("fetched \(first)-\(last) \(more) \(positions())")
            client?.fetch(Fetch(conversation: ConversationID(high: 6, low: 6)))
        case .fetchFailed(_, let code):
            lines.append("failed \(code)")
            client?.checkDigest()
        case .peeked:
            lines.append("peeked")
            finished()
        case .closed, .refused, .loginRefused, .storeFailed:
            lines.append("\(event)")
            finished()
        default: break
        }
    }

    func close() { client?.terminate() }
}

private final class Kept: @unchecked Sendable {
    // @unchecked: written before the latch opens, read after.
    var device: NewDevice?
    var lines: [String] = []
}

@Suite struct HistoryTests {
    @Test("HIS: a first sync by snapshot, older messages, equal digests, over a real socket")
    func newDevice() throws {
        let service = try Service()
        defer { service.stop() }
        // An alert sees a rise only from a value that there was.
        func told(_ result: String, _ count: Int) -> Bool {
            service.metrics.text.contains("rouse_digests_total{result=\"\(result)\"} \(count)\n")
        }
        #expect(told("equal", 0) && told("mismatch", 0))
        _ = try service.commit(
            .createConversation(
                app: Service.app,
                CreateConversation(
                    conversation: NewDevice.conversation, participants: ["anna", "ben"]),
                idempotency: nil))
        for number in 1...60 as ClosedRange<UInt64> {
            let message = SendMessage(
                conversation: NewDevice.conversation, message: MessageID(high: 1, low: number),
                parts: [Part(mimeType: "text/plain", content: [65])])
            _ = try service.commit(
                .publish(
                    app: Service.app, Publication(message: message, sender: "ben"),
                    idempotency: nil))
        }
        let done = Latch()
        let kept = Kept()
        let thread = try LoopThread.start(name: "client") { loop in
            kept.device = try? NewDevice(loop: loop, service: service) {
                kept.lines = kept.device?.lines ?? []
                done.arrive()
            }
            if kept.device == nil { done.arrive() }
        }
        done.wait()
        thread.perform { _ in
            kept.device?.close()
            kept.device = nil
        }
        thread.stop()
        thread.join()
        #expect(
            kept.lines == [
                "snapshot 1 true 41-60 (20)", "digest true true 21",
                "fetched 26-40 true 26-60 (35)", "failed 4004", "digest true true 36", "peeked",
            ])
        #expect(told("equal", 2) && told("mismatch", 0))
    }
}
