import Client
import Crypto
import EventLoop
import Feed
import Foundation
import MemoryStore
import Model
import Sync
import SyncService
import Testing
import Wire

/// Three phones on one loop: two of users whose names Unicode takes for one text, and one of a
/// user who writes to each of them alone.
final class EquivalentPhones {
    static let composed = "caf\u{e9}"
    static let decomposed = "cafe\u{301}"
    static let ofComposed = ConversationID(high: 5, low: 1)
    static let ofDecomposed = ConversationID(high: 5, low: 2)

    private let loop: Loop
    private let service: Service
    private let finished: () -> Void
    private var phones: [SyncClient] = []
    private var synced: Set<UInt64> = []
    /// What each phone was told, in order: conversations of signals, texts of messages.
    private(set) var told: [UInt64: [String]] = [:]

    init(loop: Loop, service: Service, finished: @escaping () -> Void) throws {
        self.loop = loop
        self.service = service
        self.finished = finished
        phones = [
            try phone(1, Self.composed), try phone(2, Self.decomposed), try phone(3, "ben"),
        ]
        for phone in phones { phone.start(AppState(phase: .foreground)) }
    }

    /// First to the composed name, and to the other when that has come: whoever has the second
    /// would have the first.
    private func say(_ number: UInt64, in conversation: ConversationID) {
        _ = try? phones[2].mutate(
            .sendMessage(
                SendMessage(
                    conversation: conversation, message: MessageID(high: 1, low: number),
                    parts: [Part(mimeType: "text/plain", content: [0x40 + UInt8(number)])])))
        phones[2].signal(.typing, in: conversation)
    }

    private func note(_ number: UInt64, _ text: String) {
        told[number, default: []].append(text)
        guard told[number]?.count == 2 else { return }
        if number == 1 { say(2, in: Self.ofDecomposed) } else if number == 2 { finished() }
    }

    private func phone(_ number: UInt64, _ user: String) throws -> SyncClient {
        let authority = try Data(
            contentsOf: service.directory.appendingPathComponent("ca.pem"))
        var events = SyncClientEvents { [service] nonce, answer in
            answer(HeldPair.token(service.issuer, user: user, nonce: nonce))
        }
        events.reported = { [unowned self] event in
            switch event {
            case .synced:
                let isNew = self.synced.insert(number).inserted
                if isNew, self.synced.count == 3 { self.say(1, in: Self.ofComposed) }
            case .signalled(_, let conversation, _): self.note(number, "signal \(conversation.low)")
            default: break
            }
        }
        events.applied = { [unowned self] entries in
            for case .message(let message) in entries.compactMap(\.body) {
                let content = message.parts.first?.content ?? []
                self.note(number, String(decoding: content, as: UTF8.self))
            }
        }
        return try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: service.sync.port, serverName: "localhost"),
            tls: try TLSContext.client(
                trustedCertificates: Array(authority), protocols: ["rouse/1"]),
            store: TableLocalStore(store: MemoryStore(tables: LocalSchema.tables)),
            configuration: ClientConfiguration(
                app: Service.app.name, device: DeviceID(high: 9, low: number), clientName: "test",
                clientVersion: "1"),
            seed: number, events: events)
    }

    func close() {
        for phone in phones { phone.terminate() }
    }
}

@Suite struct EquivalentNamesTests {
    private final class Outcome: @unchecked Sendable {
        // @unchecked: written before the latch opens, read after.
        var phones: EquivalentPhones?
        var told: [UInt64: [String]] = [:]
    }

    @Test("users whose names are canonically equivalent are told nothing of each other (P6)")
    func apart() throws {
        let service = try Service()
        defer { service.stop() }
        for (id, user) in [
            (EquivalentPhones.ofComposed, EquivalentPhones.composed),
            (EquivalentPhones.ofDecomposed, EquivalentPhones.decomposed),
        ] {
            _ = try service.commit(
                .createConversation(
                    app: Service.app,
                    CreateConversation(conversation: id, participants: [user, "ben"]),
                    idempotency: nil))
        }
        let done = Latch()
        let outcome = Outcome()
        let thread = try LoopThread.start(name: "phones") { loop in
            outcome.phones = try? EquivalentPhones(loop: loop, service: service) {
                outcome.told = outcome.phones?.told ?? [:]
                done.arrive()
            }
            if outcome.phones == nil { done.arrive() }
        }
        done.wait()
        thread.perform { _ in
            outcome.phones?.close()
            outcome.phones = nil
        }
        thread.stop()
        thread.join()
        #expect(outcome.told[1]?.sorted() == ["A", "signal 1"])
        #expect(outcome.told[2]?.sorted() == ["B", "signal 2"])
    }
}
