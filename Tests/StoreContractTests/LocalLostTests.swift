import Model
import Testing
import Wire

@testable import SyncClient

/// HIS-21: what a device sends again to a server that was restored, and what comes of it.
@Suite struct LocalLostTests {
    private let one = LocalHistoryTests()
    private let room = LocalHistoryTests.room
    private let time = Timestamp(milliseconds: 5_000)

    private func mine(
        _ position: UInt64, sent: UInt64 = 2_000, room: ConversationID = LocalHistoryTests.room
    ) -> Entry {
        one.message(position, sender: "anna", sent: sent, room: room)
    }

    private func send(_ id: UInt64, to room: ConversationID) -> SendMessage {
        SendMessage(
            conversation: room, message: MessageID(high: room.low, low: id),
            parts: [Part(mimeType: "a/b", content: [UInt8(id)])])
    }

    private func answer(
        _ send: SendMessage, at moment: UInt64, code: Code? = nil, position: UInt64 = 0,
        _ local: TableLocalStore
    ) throws {
        let number = try local.enqueue(
            .sendMessage(send), at: Timestamp(milliseconds: moment))
        try local.saveResults([
            MutationResult(number: number, code: code?.rawValue ?? 0, position: position)
        ])
    }

    private func waiting(_ local: TableLocalStore) throws -> [[UInt8]] {
        try local.mutations(after: 0, limit: .max, now: time).map(\.object)
    }

    private func ids(_ positions: [UInt64], _ room: ConversationID) -> [[UInt8]] {
        positions.map { MessageID(high: room.low, low: $0).bytes }
    }

    @Test("messages of one commit go in the order they stood in", arguments: engines)
    func order(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state()] + [3, 4, 5].map { mine($0) }, local)
            // Accepted together, and with ids that do not rise.
            for (id, position) in [(29, 7), (21, 8), (25, 6)] as [(UInt64, UInt64)] {
                try answer(send(id, to: room), at: 2_001, position: position, local)
            }
            let held = [one.state(), one.message(12, id: 32)]
            _ = try local.applySnapshot(one.snapshot(held, from: 12, since: 1_000), at: time)
            #expect(try waiting(local) == ids([3, 4, 5, 25, 29, 21], room))
        }
    }
}
