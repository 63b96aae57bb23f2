import Model
import SyncClient
import Testing
import Wire

/// What a device keeps of changes that the server refused, on both engines.
@Suite struct LocalRefusedTests {
    private let room = ConversationID(high: 1, low: 1)
    private let message = MessageID(high: 2, low: 1)
    private let now = Timestamp(milliseconds: 7)

    private func refuse(
        _ operation: Mutation.Operation, _ code: Code = .forbidden, in local: TableLocalStore
    ) throws {
        let number = try local.enqueue(operation, at: now)
        try local.saveResults([MutationResult(number: number, code: code.rawValue)])
    }

    private func rename(_ paths: [String]) -> Mutation.Operation {
        .changeMetadata(
            ChangeMetadata(
                conversation: room, changes: paths.map { MetadataChange(path: [$0], value: "x") }))
    }

    @Test("they are kept until the same is changed anew", arguments: engines)
    func replaced(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            let edit = Mutation.Operation.editMessage(EditMessage(message: message, parts: []))
            let deletion = Mutation.Operation.deleteMessage(DeleteMessage(message: message))
            for operation in [edit, rename(["title"]), rename(["theme"])] {
                try refuse(operation, in: local)
            }
            let changes = try local.refusedChanges()
            #expect(changes.map(\.operation) == [edit, rename(["title"]), rename(["theme"])])
            #expect(changes.allSatisfy { $0.madeAt == now })
            #expect(changes.first?.refusal == Refusal(code: Code.forbidden.rawValue))
            try refuse(rename(["title", "colour"]), in: local)
            #expect(try local.refusedChanges().map(\.number) == [1, 3, 4])
            try refuse(deletion, in: local)
            #expect(try local.refusedChanges().map(\.number) == [3, 4, 5])
            // Gone it is in any case.
            try refuse(deletion, .gone, in: local)
            #expect(try local.refusedChanges().map(\.number) == [3, 4])
            try local.erase()
            #expect(try local.refusedChanges().isEmpty)
        }
    }

    @Test("of more than are kept the oldest go, and a logout is none", arguments: engines)
    func bounded(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            try refuse(.forgetDevice(ForgetDevice()), .resultGone, in: local)
            for number in 0..<260 { try refuse(rename(["\(number)"]), in: local) }
            let numbers = try local.refusedChanges().map(\.number)
            #expect(numbers.count == 256 && numbers.first == 6 && numbers.last == 261)
        }
    }

    @Test("a conversation that is there already was not refused", arguments: engines)
    func madeBefore(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            let creation = Mutation.Operation.createConversation(
                CreateConversation(conversation: room, participants: ["ben"]))
            try refuse(creation, .idInUse, in: local)
            #expect(try local.refusedChanges().isEmpty, "another device was earlier")
            try refuse(creation, .limit, in: local)
            #expect(try local.refusedChanges().map(\.operation) == [creation])
        }
    }

    @Test("that one user could not be blocked is told also when another is", arguments: engines)
    func blocks(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            func block(_ user: String) -> Mutation.Operation {
                .blockUser(BlockUser(user: user, blocked: true))
            }
            for user in ["kim", "leo"] { try refuse(block(user), in: local) }
            #expect(try local.refusedChanges().map(\.operation) == ["kim", "leo"].map(block))
            _ = try local.enqueue(block("kim"), at: now)
            #expect(try local.refusedChanges().map(\.operation) == [block("leo")])
        }
    }
}
