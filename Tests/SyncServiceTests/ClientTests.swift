import Client
import Crypto
import EventLoop
import Foundation
import MemoryStore
import Model
import Scenario
import SyncClient
import SyncService
import Testing
import Wire

/// Counts the transactions of a device's store. Used on one loop, read after it has ended.
private final class CountingStore: ForwardingLocalStore {
    let forwarded: any LocalStore = TableLocalStore(
        store: MemoryStore(tables: LocalSchema.tables))
    var applies = 0

    func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry] {
        applies += 1
        return try forwarded.apply(change)
    }
}

/// Two devices of one user on one loop: one writes, line after line, the other is held meanwhile
/// and then let go.
final class HeldPair {
    static let lines = 8
    static let conversation = ConversationID(high: 5, low: 5)

    private let loop: Loop
    private let service: Service
    private let finished: () -> Void
    private var writer: SyncClient?
    private var reader: SyncClient?
    private let store = CountingStore()
    private var isWriting = false
    private var before = (applies: 0, deltas: 0)
    private var deltas = 0
    private var sent = 0
    /// What the reader applied, in order.
    private(set) var positions: [UInt64] = []
    /// Of the reader, since it was let go.
    var applied: (applies: Int, deltas: Int) {
        (store.applies - before.applies, deltas - before.deltas)
    }
    private(set) var heldPositions = 0
    /// The highest `seq` among the entries that the reader's app was handed.
    private var handed: UInt64 = 0
    /// How often the reader was told that it is in sync beyond what its app had been handed.
    private(set) var early = 0

    init(loop: Loop, service: Service, finished: @escaping () -> Void) throws {
        self.loop = loop
        self.service = service
        self.finished = finished
        reader = try client(1, store) { [unowned self] event in
            switch event {
            case .synced(let cursor):
                if cursor.seq > self.handed { self.early += 1 }
                self.write()
            case .delta: self.deltas += 1
            default: break
            }
        } applied: { [unowned self] entries in
            self.handed = max(self.handed, entries.map(\.seq).max() ?? 0)
            for case .message(let message) in entries.compactMap(\.body) {
                self.positions.append(message.position)
                if self.reader?.isHeld == true { self.heldPositions += 1 }
            }
            if self.positions.count == Self.lines { self.finished() }
        }
        reader?.start(AppState(phase: .foreground))
    }

    private func write() {
        guard !isWriting else { return }
        isWriting = true
        reader?.isHeld = true
        before = (store.applies, deltas)
        do {
            let own = TableLocalStore(store: MemoryStore(tables: LocalSchema.tables))
            let writer = try client(2, own) { _ in
            } applied: { [unowned self] entries in
                // The next line when the last has come back: each is a commit of its own.
                for case .message in entries.compactMap(\.body) { self.sendNext() }
            }
            self.writer = writer
            writer.start(AppState(phase: .foreground))
            try writer.mutate(
                .createConversation(
                    CreateConversation(conversation: Self.conversation, participants: [])))
            sendNext()
        } catch {
            finished()
        }
    }

    private func sendNext() {
        guard sent < Self.lines else {
            reader?.isHeld = false
            return
        }
        sent += 1
        _ = try? writer?.mutate(
            .sendMessage(
                SendMessage(
                    conversation: Self.conversation, message: MessageID(high: 1, low: UInt64(sent)),
                    parts: [Part(mimeType: "text/plain", content: [UInt8](repeating: 65, count: 9))]
                )))
    }

    private func client(
        _ number: UInt64, _ store: any LocalStore, reported: @escaping (ClientEvent) -> Void,
        applied: @escaping ([Entry]) -> Void
    ) throws -> SyncClient {
        let authority = try Data(
            contentsOf: service.directory.appendingPathComponent("ca.pem"))
        var events = SyncClientEvents { [service] nonce, answer in
            answer(Self.token(service.issuer, nonce: nonce))
        }
        events.reported = reported
        events.applied = applied
        return try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: service.sync.port, serverName: "localhost"),
            tls: try TLSContext.client(
                trustedCertificates: Array(authority), protocols: ["rouse/1"]),
            store: store,
            configuration: ClientConfiguration(
                app: Service.app.name, device: DeviceID(high: 9, low: number), clientName: "test",
                clientVersion: "1"),
            seed: number, events: events)
    }

    static func token(_ key: PrivateKey, user: String = "anna", nonce: [UInt8]) -> String? {
        let expires = SystemClock.wallMilliseconds() / 1_000 + 300
        let header = #"{"alg":"\#(key.kind.algorithm)","kid":"\#(Service.keyID)"}"#
        let claims =
            #"{"iss":"test","sub":"\#(user)","aud":"\#(Service.app.name)","exp":\#(expires),"#
            + #""nonce":"\#(Base64URL.encode(nonce))"}"#
        return try? CompactToken.sign(
            headerJSON: Array(header.utf8), payloadJSON: Array(claims.utf8), with: key)
    }

    func close() {
        writer?.terminate()
        reader?.terminate()
    }
}

/// What a pair came to, from its thread to the test's.
private final class Outcome: @unchecked Sendable {
    // @unchecked: written before the latch opens, read after.
    var pair: HeldPair?
    var positions: [UInt64] = []
    var heldPositions = 0
    var early = 0
    var applied = (applies: 0, deltas: 0)
}

@Suite struct ClientTests {
    @Test("a held client reads nothing; let go, it applies what came together, in order")
    func held() throws {
        let service = try Service()
        defer { service.stop() }
        let done = Latch()
        let outcome = Outcome()
        let thread = try LoopThread.start(name: "clients") { loop in
            outcome.pair = try? HeldPair(loop: loop, service: service) {
                guard let pair = outcome.pair else { return done.arrive() }
                outcome.positions = pair.positions
                outcome.heldPositions = pair.heldPositions
                outcome.early = pair.early
                outcome.applied = pair.applied
                done.arrive()
            }
            if outcome.pair == nil { done.arrive() }
        }
        done.wait()
        thread.perform { _ in
            outcome.pair?.close()
            outcome.pair = nil
        }
        thread.stop()
        thread.join()
        #expect(outcome.positions == Array(1...UInt64(HeldPair.lines)))
        #expect(outcome.heldPositions == 0)
        #expect(outcome.early == 0, "told of sync before it had the entries")
        #expect(outcome.applied.deltas > 1)
        #expect(outcome.applied.applies < outcome.applied.deltas)
    }
}
