import Model
import Testing
import Wire

@testable import SyncClient

/// HIS-21: what a device sends again to a server that was restored, and what comes of it.
@Suite struct LocalLostTests {
    private let one = LocalHistoryTests()
    private let room = LocalHistoryTests.room
    private let time = Timestamp(milliseconds: 5_000)

    private func own(
        _ version: UInt64, joined: UInt64 = 0, removed: Bool = false, room: ConversationID
    ) -> Entry {
        Entry(
            seq: version, conversation: room, version: version,
            body: .participant(
                ParticipantState(user: "anna", joinedPosition: joined, removed: removed)))
    }

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

    @Test("nothing goes to a conversation that its user has left", arguments: engines)
    func left(_ engine: EngineFactory) throws {
        let made = ConversationID(high: 1, low: 2)
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), one.state(made, creator: "anna", created: 1_500),
                    own(1, room: made), one.member("kim", room: made), mine(1, room: made),
                    mine(2, room: made),
                ], local)
            // The feed has not told of this one.
            try answer(send(3, to: made), at: 2_000, position: 3, local)
            try one.feed([own(2, removed: true, room: made)], local)
            _ = try local.applySnapshot(
                one.snapshot([one.state()], from: 1, since: 1_000), at: time)
            #expect(try waiting(local).isEmpty)
            #expect(try local.conversations().count == 1)
            #expect(try local.refusedMessages().isEmpty)
        }
    }

    @Test(
        "nor do messages from before the user came back, which the server has",
        arguments: engines)
    func joinedAgain(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed(
                [one.state(), mine(2), mine(3), own(5, joined: 4, room: room), mine(6), mine(7)],
                local)
            let page = [one.state(), own(5, joined: 4, room: room)]
            _ = try local.applySnapshot(one.snapshot(page, from: 7, since: 1_000), at: time)
            #expect(try waiting(local) == ids([6, 7], room), "below and from where it is whole")
        }
    }

    /// The leaving is lost with the rest: the user takes part as before.
    @Test("a server that lost the leaving is sent what it lost before that", arguments: engines)
    func leavingLost(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed(
                [
                    one.state(), own(1, room: room), mine(1), mine(2),
                    own(3, removed: true, room: room),
                ], local)
            let page = [one.state(), own(1, room: room), mine(1)]
            _ = try local.applySnapshot(one.snapshot(page, from: 1, since: 1_000), at: time)
            #expect(try waiting(local) == ids([2], room))
            var list = ConversationList()
            try list.reload(from: local, sent: [])
            #expect(list.rows.map(\.isMember) == [true])
        }
    }

    /// It lost the joining, and somebody has added the user again: above the messages that it lost.
    @Test("a server that lost the joining is sent what it lost after that", arguments: engines)
    func joiningLost(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), own(1, joined: 4, room: room), mine(5), mine(6)], local)
            let page = [one.state(), own(1, joined: 9, room: room)]
            _ = try local.applySnapshot(one.snapshot(page, from: 1, since: 1_000), at: time)
            #expect(try waiting(local) == ids([5, 6], room))
        }
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

    @Test("what the server turns out to have is not shown as refused", arguments: engines)
    func taken(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), mine(3)], local)
            try answer(send(4, to: room), at: 2_000, position: 4, local)
            try answer(send(5, to: room), at: 2_000, code: .forbidden, local)
            let held = [one.state(), one.message(30, id: 30)]
            _ = try local.applySnapshot(one.snapshot(held, from: 30, since: 1_000), at: time)
            let again = try local.mutations(after: 0, limit: 9, now: time)
            #expect(again.map(\.object) == ids([3, 4], room))
            try local.saveResults(
                again.map { MutationResult(number: $0.number, code: Code.idInUse.rawValue) })
            #expect(try local.refusedMessages().map(\.id.low) == [5])
            // One stands where it stood, the other comes by FETCH: below what is whole here.
            let rows = try local.messageWindow(of: room, newest: 9, sent: []).rows
            #expect(rows.map(\.id.low) == [30, 5])
            #expect(try one.positions(local) == [3, 30])
        }
    }
}
