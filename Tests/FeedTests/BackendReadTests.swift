import Feed
import Model
import Testing
import Wire

/// What backends change and read, and how lists are cut into pieces.
struct BackendReadTests {
    let world: World

    init() throws { world = try World() }

    private func read(_ query: BackendQuery, _ app: AppID = World.app) throws -> BackendReading? {
        switch try world.read(.backend(app, query)) {
        case .backend(let reading): return reading
        case .nothing: return nil
        default: throw Unexpected(answer: .done)
        }
    }

    private func create(
        _ request: CreateConversation, _ key: Idempotency? = nil
    ) throws -> ConversationRecord {
        let answer = try world.ask(
            .createConversation(app: World.app, request, idempotency: key))
        guard case .conversation(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    private func key(_ name: String) -> Idempotency {
        Idempotency(key: name, requestHash: [1])
    }

    // MARK: changes

    @Test func aRepeatedCreationGivesTheConversationAsItWas() throws {
        let request = CreateConversation(
            conversation: world.fresh(), participants: ["anna", "bert"], distinct: true,
            receiptsOff: true)
        let first = try create(request, key("a"))
        #expect(first.receiptsOff)
        #expect(first.distinctKey == "anna\nbert")
        try world.publish("hello", to: first.conversation)
        #expect(try create(request, key("a")) == first)
    }

    @Test func aRepeatedChangeOfMetadataGivesTheStateItCameTo() throws {
        let id = try world.converse(["anna"])
        func change(_ value: String, base: UInt64 = 0, _ key: Idempotency?) throws -> StoreAnswer {
            try world.ask(
                .changeMetadata(
                    app: World.app,
                    ChangeMetadata(
                        conversation: id,
                        changes: [MetadataChange(path: ["colour"], value: value)],
                        baseVersion: base), idempotency: key))
        }
        let first = try change("green", key("a"))
        guard case .metadata(let record) = first else { throw Unexpected(answer: first) }
        #expect(record.version == 1)
        #expect(try change("red", base: 7, nil).refusal == .versionConflict)
        _ = try change("red", base: 1, nil)
        #expect(try change("green", key("a")) == first)
        guard case .conversation(_, let metadata) = try read(.conversation(id)) else {
            throw Unexpected(answer: .done)
        }
        #expect(metadata.version == 2, "the repetition changed nothing")
    }

    @Test func aBackendReachesNoOtherAppsConversation() throws {
        let id = try world.converse(["anna"])
        let other = AppID("other")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        let message = try world.publish("hello", to: id)
        for query in [
            BackendQuery.conversation(id), .participants(id, after: nil, limit: 9),
            .messages(id, range()), .message(message.message),
            .receipts(id, after: nil, limit: 9), .user(UserID("anna")),
            .conversations(UserID("anna"), after: nil, limit: 9, bytes: 1 << 20),
        ] {
            #expect(try read(query, other) == nil)
            #expect(try read(query) != nil)
        }
    }

    // MARK: lists

    private func range(
        _ descending: Bool = true, beside: UInt64? = nil, limit: Int = 100,
        bytes: Int = 1 << 20
    ) -> MessageRange {
        MessageRange(descending: descending, beside: beside, limit: limit, bytes: bytes)
    }

    /// The whole list of positions, with the lengths of its pieces.
    private func walk(
        _ id: ConversationID, _ descending: Bool, limit: Int, bytes: Int = 1 << 20
    ) throws -> (positions: [UInt64], pieces: [Int]) {
        var positions: [UInt64] = []
        var pieces: [Int] = []
        var beside: UInt64?
        while true {
            let reading = try read(
                .messages(
                    id,
                    range(descending, beside: beside, limit: limit, bytes: bytes)))
            guard case .messages(let records, let next) = reading else {
                throw Unexpected(answer: .done)
            }
            positions += records.map(\.position)
            pieces.append(records.count)
            if next == nil { return (positions, pieces) }
            beside = next
        }
    }

    @Test(arguments: [1, 15, 16, 17, 39, 40, 41, 1000])
    func messagesAreListedOnceInEitherOrder(_ limit: Int) throws {
        let id = try world.converse(["anna"])
        for number in 1...40 { try world.publish("\(number)", to: id) }
        for descending in [true, false] {
            let (positions, pieces) = try walk(id, descending, limit: limit)
            #expect(positions == (descending ? Array((1...40).reversed()) : Array(1...40)))
            #expect(pieces.allSatisfy { $0 <= limit })
            #expect(pieces.allSatisfy { $0 > 0 }, "no piece is promised and empty")
        }
    }

    @Test func aPieceIsCutByItsBytesAndHoldsOneMessageAtLeast() throws {
        let id = try world.converse(["anna"])
        for _ in 1...5 { try world.publish(String(repeating: "x", count: 1000), to: id) }
        // Parts and push text.
        #expect(try walk(id, true, limit: 100, bytes: 4500).pieces == [2, 2, 1])
        #expect(try walk(id, true, limit: 100, bytes: 1).pieces == [1, 1, 1, 1, 1])
    }

    @Test func anEmptyConversationHasAnEmptyList() throws {
        let id = try world.converse(["anna"])
        #expect(try walk(id, true, limit: 5).pieces == [0])
        #expect(try walk(id, false, limit: 5).pieces == [0])
    }

    @Test func participantsAndTheirProgressAreListedByName() throws {
        let id = try world.converse(["anna", "bert", "carl"])
        let anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        try world.publish("one", to: id, from: "bert")
        try world.publish("two", to: id, from: "bert")
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: anna, applied: try world.head("anna"),
                    reads: [ReadReceipt(conversation: id, through: 1)], completesSync: true)))
        _ = try world.ask(.coalesceReceipts(users: 10))
        _ = try world.add(["dora"], to: id)
        guard
            case .receipts(let first, let next?) = try read(.receipts(id, after: nil, limit: 2)),
            case .receipts(let rest, nil) = try read(.receipts(id, after: next, limit: 2))
        else { throw Unexpected(answer: .done) }
        #expect(
            first + rest == [
                ParticipantProgress(user: UserID("anna"), delivered: 2, read: 1),
                ParticipantProgress(user: UserID("bert"), delivered: 0, read: 0),
                ParticipantProgress(user: UserID("carl"), delivered: 0, read: 0),
                // What was before a newcomer is neither delivered nor read.
                ParticipantProgress(user: UserID("dora"), delivered: 0, read: 0),
            ])
        guard
            case .participants(let participants, nil) = try read(
                .participants(id, after: UserID("bert"), limit: 2))
        else { throw Unexpected(answer: .done) }
        #expect(participants.map(\.user.name) == ["carl", "dora"])
    }

    @Test func aUserIsShownWithDevicesAndUnread() throws {
        #expect(try read(.user(UserID("anna"))) == nil)
        let id = try world.converse(["anna", "bert"])
        var session: SessionKey?
        for low in 1...3 {
            session = try world.login("anna", DeviceID(high: 5, low: UInt64(low))).session
        }
        _ = try world.mutate(try #require(session), 1, .forgetDevice(ForgetDevice()))
        try world.publish("one", to: id)
        guard case .user(let view) = try read(.user(UserID("anna"))) else {
            throw Unexpected(answer: .done)
        }
        #expect(view.devices == 2, "one is logged out")
        #expect(view.unread == 1)
        #expect(view.user.head == (try world.head("anna")))
    }

    @Test func aUsersConversationsAreListedByID() throws {
        let ids = try (0..<5).map { _ in try world.converse(["anna"]) }.sorted()
        _ = try world.converse(["bert"])
        var found: [ConversationID] = []
        var after: ConversationID?
        repeat {
            guard
                case .conversations(let piece, let next) = try read(
                    .conversations(UserID("anna"), after: after, limit: 2, bytes: 1 << 20))
            else { throw Unexpected(answer: .done) }
            found += piece.map(\.conversation.conversation)
            after = next
        } while after != nil
        #expect(found == ids)
    }

    /// How many messages of a conversation are unread for a user, and the newest one's text.
    private struct Row: Equatable {
        var unread: UInt64
        var newest: String?
    }

    private func inbox(
        _ user: String, limit: Int = 100, bytes: Int = 1 << 20
    ) throws -> (rows: [ConversationID: Row], pieces: [Int]) {
        var rows: [ConversationID: Row] = [:]
        var pieces: [Int] = []
        var after: ConversationID?
        repeat {
            let query = BackendQuery.conversations(
                UserID(user), after: after, limit: limit, bytes: bytes)
            guard case .conversations(let piece, let next) = try read(query) else {
                throw Unexpected(answer: .done)
            }
            for row in piece {
                let isNew = rows.updateValue(
                    Row(unread: row.participant.unread, newest: row.newest?.pushBody),
                    forKey: row.conversation.conversation)
                #expect(isNew == nil, "no conversation is listed twice")
            }
            pieces.append(piece.count)
            after = next
        } while after != nil
        return (rows, pieces)
    }

    @Test func aUsersListSaysWhatIsUnreadAndWhatCameLast() throws {
        let id = try world.converse(["anna", "bert"])
        let empty = try world.converse(["anna"])
        let anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        try world.publish("one", to: id, from: "bert")
        let second = try world.publish("two", to: id, from: "bert")
        var rows = try inbox("anna").rows
        #expect(rows[id] == Row(unread: 2, newest: "two"))
        #expect(rows[empty] == Row(unread: 0, newest: nil))
        #expect(try inbox("bert").rows[id]?.unread == 0, "one's own are read")
        // Gone for anna alone: bert's list still has it.
        _ = try world.mutate(
            anna, 1, .deleteMessage(DeleteMessage(message: second.message)))
        rows = try inbox("anna").rows
        #expect(rows[id] == Row(unread: 1, newest: "one"))
        #expect(try inbox("bert").rows[id]?.newest == "two")
        // What a block keeps away is not shown either.
        _ = try world.mutate(anna, 2, .blockUser(BlockUser(user: "bert", blocked: true)))
        try world.publish("three", to: id, from: "bert")
        #expect(try inbox("anna").rows[id]?.newest == "one")
        try world.publish("four", to: id)
        #expect(try inbox("anna").rows[id]?.newest == "four")
        // Who comes later sees nothing of before.
        _ = try world.add(["carl"], to: id)
        #expect(try inbox("carl").rows[id] == Row(unread: 0, newest: nil))
    }

    @Test func aListOfConversationsLooksAtFewMessagesAndIsCutByItsBytes() throws {
        let id = try world.converse(["anna", "bert"])
        let anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        for number in 1...18 {
            let message = try world.publish("\(number)", to: id, from: "bert")
            guard number > 2 else { continue }
            _ = try world.mutate(
                anna, UInt64(number - 2), .deleteMessage(DeleteMessage(message: message.message)))
        }
        #expect(try inbox("anna").rows[id] == Row(unread: 2, newest: nil), "the newest 16 are gone")
        try world.publish(String(repeating: "x", count: 1_000), to: id, from: "bert")
        for _ in 1...4 {
            let other = try world.converse(["anna"])
            try world.publish(String(repeating: "x", count: 1_000), to: other)
        }
        // Parts and push text: 2,000 bytes and a little each.
        #expect(try inbox("anna").pieces == [5])
        #expect(try inbox("anna", bytes: 4_500).pieces == [2, 2, 1])
        #expect(try inbox("anna", bytes: 1).pieces == [1, 1, 1, 1, 1])
        #expect(try inbox("anna", limit: 3, bytes: 4_500).rows.count == 5)
    }

    @Test func whatIsGoneIsNotListed() throws {
        let id = try world.converse(["anna", "bert", "carl"])
        let gone = try world.converse(["bert"])
        let text = try world.publish("one", to: gone)
        _ = try world.ask(.deleteConversation(app: World.app, gone, idempotency: nil))
        for query in [
            BackendQuery.conversation(gone), .messages(gone, range()), .message(text.message),
            .participants(gone, after: nil, limit: 9), .receipts(gone, after: nil, limit: 9),
        ] { #expect(try read(query) == nil) }
        _ = try world.ask(
            .removeParticipants(
                app: World.app, RemoveParticipants(conversation: id, users: ["anna", "bert"]),
                idempotency: nil))
        #expect(
            try read(.conversations(UserID("bert"), after: nil, limit: 9, bytes: 1 << 20))
                == .conversations([], next: nil))
        // Those who left take no room of a list.
        for after in [nil, UserID("anna"), UserID("bert")] {
            #expect(
                try read(.receipts(id, after: after, limit: 1))
                    == .receipts(
                        [ParticipantProgress(user: UserID("carl"), delivered: 0, read: 0)],
                        next: nil))
        }
    }

    @Test func aConversationIsFoundUnderTheIDThatWasMergedIntoIt() throws {
        func request() -> CreateConversation {
            CreateConversation(
                conversation: world.fresh(), participants: ["anna", "bert"], distinct: true)
        }
        let first = try create(request())
        let second = request()
        #expect(try create(second).conversation == first.conversation)
        let asked = try #require(second.conversation)
        #expect(asked != first.conversation)
        guard case .conversation(let record, _) = try read(.conversation(asked)) else {
            throw Unexpected(answer: .done)
        }
        #expect(record.conversation == first.conversation)
    }
}
