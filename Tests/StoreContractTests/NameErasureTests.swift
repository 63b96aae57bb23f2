import Feed
import Foundation
import Model
import SQLiteStore
import Testing
import Wire

/// A deleted user's name is erased from the file, free space included.
@Suite struct NameErasureTests {
    private static let app = AppID("chess")
    private static let name = "wilhelmine-amalie-of-nowhere"

    private final class Clock {
        var now = Timestamp(milliseconds: 1_700_000_000_000)
    }

    private func ask(
        _ request: StoreRequest, _ store: SQLiteStore, _ clock: Clock
    ) throws -> StoreAnswer {
        var answer = StoreAnswer.done
        try store.write { transaction throws(StoreError) in
            answer = try Rules.execute(request, in: transaction, now: clock.now).answer
        }
        return answer
    }

    private func isFound(in path: String) -> Bool {
        ["", "-wal"].contains { suffix in
            FileManager.default.contents(atPath: path + suffix)?
                .range(of: Data(Self.name.utf8)) != nil
        }
    }

    /// Runs a duty until it has nothing to do.
    private func drain(
        _ request: StoreRequest, _ store: SQLiteStore, _ clock: Clock
    ) throws {
        for _ in 0..<10_000 {
            guard case .progressed(let count, let more) = try ask(request, store, clock),
                more || count > 0
            else { return }
        }
        Issue.record("\(request) does not come to an end")
    }

    @Test(
        "MSG-53: 90 days after a deletion the name is nowhere in the file", arguments: [3, 1_000])
    func erased(_ rows: Int) throws {
        try withFolder { folder throws in
            let path = folder + "/store.db"
            let clock = Clock()
            let store = try SQLiteStore(path: path, tables: Schema.tables)
            _ = try ask(.start(boot: BootID(high: 1, low: 1), epochHalf: 5), store, clock)
            _ = try ask(
                .administer(.putApp(AppRecord(app: Self.app, createdAt: clock.now))), store, clock)
            let device = DeviceID(high: 2, low: 2)
            func login(_ user: String, _ device: DeviceID) throws -> SessionKey {
                let answer = try ask(
                    .openSession(
                        OpenSession(
                            app: Self.app, device: device, role: .app,
                            credential: .identity(UserID(user)), newTokenHash: device.bytes,
                            freshEpochHalf: 9, boot: BootID(high: 1, low: 1))), store, clock)
                guard case .opened(let opened) = answer else {
                    throw StoreError.corrupt("\(answer)")
                }
                return opened.session
            }
            let anna = try login("anna", device)
            let own = try login(Self.name, DeviceID(high: 2, low: 3))
            func mutate(
                _ session: SessionKey, _ number: UInt64, _ operation: Mutation.Operation
            ) throws {
                let answer = try ask(
                    .mutate(
                        Mutate(
                            session: session,
                            mutation: Mutation(number: number, operation: operation))),
                    store, clock)
                guard case .mutated(let result, _) = answer, result.code == 0 else {
                    throw StoreError.corrupt("\(answer)")
                }
            }
            for (number, isDistinct) in [(UInt64(1), false), (3, true)] {
                let id = ConversationID(high: 4, low: number)
                try mutate(
                    own, number,
                    .createConversation(
                        CreateConversation(
                            conversation: id, participants: ["anna", "ben"],
                            distinct: isDistinct)))
                try mutate(
                    own, number + 1,
                    .sendMessage(
                        SendMessage(
                            conversation: id, message: MessageID(high: 5, low: number),
                            parts: [Part(mimeType: "text/plain", content: [104, 105])])))
            }
            try mutate(anna, 1, .blockUser(BlockUser(user: Self.name, blocked: true)))
            let read = ReadReceipt(conversation: ConversationID(high: 4, low: 1), through: 1)
            _ = try ask(
                .acknowledge(
                    Acknowledge(session: own, applied: 3, reads: [read], completesSync: true)),
                store, clock)
            try drain(.coalesceReceipts(users: 10), store, clock)
            #expect(
                try ask(
                    .deleteUser(app: Self.app, UserID(Self.name), idempotency: nil), store, clock)
                    == .done)
            for _ in 0..<200 {
                try drain(.continueFanOut(recipients: 50), store, clock)
                try drain(.continueDeletions(rows: rows), store, clock)
                clock.now = clock.now + 3_000
                try drain(.coalesceReceipts(users: 10), store, clock)
            }
            clock.now = clock.now + 89 * 86_400_000
            try drain(.enforceRetention(rows: rows), store, clock)
            _ = try store.checkpoint()
            #expect(isFound(in: path), "the search finds nothing: it proves nothing")
            // Then the name stands where the end of the block was told, for as long again.
            for _ in 0..<2 {
                clock.now = clock.now + 91 * 86_400_000
                try drain(.enforceRetention(rows: rows), store, clock)
            }
            store.close()
            #expect(!isFound(in: path))
        }
    }
}
