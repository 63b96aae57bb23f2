import Feed
import MemoryStore
import Model
import Testing
import Wire

struct MutationTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)
    let session: SessionKey

    init() throws {
        world = try World()
        session = try world.login("anna", phone).session
    }

    @Test func aMutationHasOneEffectAndOneAnswer() throws {
        let id = try world.converse(["anna", "bert"])
        let send = Mutation.Operation.sendMessage(
            world.message0("hi", to: id, MessageID(high: 3, low: 3)))
        let first = try world.mutate(session, 5, send)
        #expect(first.code == 0)
        #expect(first.position == 1)
        #expect(first.object == MessageID(high: 3, low: 3).bytes)
        #expect(try world.mutate(session, 5, send) == first)
        #expect(try world.page("bert").entries.filter { $0.word.hasPrefix("message") }.count == 1)
        // Under another number it is another mutation.
        #expect(try world.mutate(session, 7, send).code == Code.idInUse.rawValue)
        #expect(try world.mutate(session, 7, send).code == Code.idInUse.rawValue)
        // A number below the floor that was never taken.
        #expect(try world.mutate(session, 6, send).code == Code.resultGone.rawValue)
        #expect(try world.mutate(session, 6, send).position == 1)
        #expect(try world.mutate(session, 0, send).code == Code.malformed.rawValue)
        let next = try world.login("anna", phone)
        #expect(next.sync.mutationFloor == 7)
        #expect(try world.mutate(next.session, 5, send) == first)
    }

    /// MSG-1: 16 zero bytes are no id.
    @Test func aMessageWithoutAnIdIsRefused() throws {
        let id = try world.converse(["anna", "bert"])
        let zeros = world.message0("hi", to: id, MessageID(high: 0, low: 0))
        let result = try world.mutate(session, 1, .sendMessage(zeros))
        #expect(result.code == Code.malformed.rawValue && result.position == 0)
        let published = try world.ask(
            .publish(
                app: World.app, Publication(message: zeros, sender: "anna"), idempotency: nil))
        #expect(published.refusal == .malformed)
        #expect(try world.page("bert").entries.filter { $0.word.hasPrefix("message") }.isEmpty)
        #expect(try world.all(MessageRecord.self).isEmpty)
    }

    /// A restored phone gives a number again that its first life has used (MSG-10).
    @Test func aNumberIsNotTakenByTwoOperations() throws {
        let id = try world.converse(["anna", "bert"])
        func send(_ message: UInt64) -> Mutation.Operation {
            .sendMessage(world.message0("hi", to: id, MessageID(high: 3, low: message)))
        }
        let first = try world.mutate(session, 5, send(1))
        let again = try world.mutate(session, 5, send(2))
        #expect(again.code == Code.numberTaken.rawValue)
        #expect(again.object == MessageID(high: 3, low: 2).bytes)
        #expect(try world.mutate(session, 5, send(1)) == first, "the first one keeps its result")
        #expect(try world.mutate(session, 6, send(2)).code == 0)
        // A refusal takes a number, too.
        let refused = Mutation.Operation.sendMessage(
            world.message0("hi", to: world.fresh(), world.fresh()))
        #expect(try world.mutate(session, 7, refused).code == Code.notFound.rawValue)
        #expect(try world.mutate(session, 7, send(3)).code == Code.numberTaken.rawValue)
        // Its result is over, its row is still there.
        world.pass(8 * 86_400_000)
        #expect(try world.mutate(session, 5, send(3)).code == Code.numberTaken.rawValue)
        #expect(try world.mutate(session, 5, send(1)).code == Code.resultGone.rawValue)
    }

    /// So that a message does not overtake the conversation it is for.
    @Test func nothingOvertakesANumberThatWasTaken() throws {
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(
                try world.mutate(
                    session, number,
                    .createConversation(CreateConversation(conversation: world.fresh()))
                ).code == 0)
        }
        let id: ConversationID = world.fresh()
        let create = Mutation.Operation.createConversation(CreateConversation(conversation: id))
        let mutations = [
            Mutation(number: 3, operation: create),
            Mutation(
                number: 4, operation: .sendMessage(world.message0("x", to: id, world.fresh()))),
        ]
        let sync = SyncFrame(mutations: mutations)
        let opened = try world.login("anna", phone, sync: sync)
        #expect(opened.sync.results.map(\.code) == [3014, 3014])
        #expect(opened.sync.mutationFloor == 3)
        let renumbered = SyncFrame(
            mutations: mutations.map {
                Mutation(number: $0.number + 10, operation: $0.operation)
            })
        #expect(
            try world.login("anna", phone, sync: renumbered).sync.results.map(\.code) == [0, 0])
    }

    /// Rows of before hashes were kept compare with nothing.
    @Test func aResultWithoutAHashIsGivenAsItWas() throws {
        let first = try world.mutate(
            session, 1, .createConversation(CreateConversation(conversation: world.fresh())))
        try world.tamper { transaction throws(StoreError) in
            for var row in try transaction.records(MutationRecord.self, Scan(limit: 9)) {
                row.operation = nil
                try transaction.put(row)
            }
        }
        #expect(try world.mutate(session, 1, .forgetDevice(ForgetDevice())) == first)
    }

    /// What waits on a device belongs behind what a restored server has lost (SYN-33).
    @Test func mutationsWaitUntilTheDeviceKnowsTheEpoch() throws {
        let epoch = try world.login("anna", phone).sync.epoch
        let other = Epoch(high: epoch.high + 1, low: epoch.low)
        let id: ConversationID = world.fresh()
        let mutation = Mutation(
            number: 4,
            operation: .createConversation(CreateConversation(conversation: id)))
        for cursor in [Cursor(epoch: other, seq: 1), Cursor(epoch: epoch, seq: 99)] {
            let sync = SyncFrame(cursor: cursor, mutations: [mutation])
            let opened = try world.login("anna", phone, sync: sync)
            let answer = try world.ask(
                .sync(SyncWrite(session: opened.session, sync: sync, freshEpochHalf: 3)))
            guard case .synced(let synced) = answer else { throw Unexpected(answer: answer) }
            for results in [opened.sync.results, synced.results] {
                #expect(results.map(\.code) == [Code.unavailable.rawValue])
                #expect((results.first?.retryAfterMs ?? 0) > 0)
            }
            #expect(synced.mutationFloor == 0)
        }
        // The number was not refused: another one is not held back by it.
        let now = try world.login("anna", phone)
        #expect(
            try world.mutate(now.session, 5, mutation.operation ?? .forgetDevice(ForgetDevice()))
                .code == 0)
    }

    @Test func nothingIsToldOfWhatIsOutOfReach() throws {
        let hidden = try world.converse(["bert"])
        let message = try world.publish("x", to: hidden)
        let mine = try world.converse(["anna"])
        let unknown: ConversationID = world.fresh()
        func code(_ number: UInt64, _ operation: Mutation.Operation) throws -> UInt32 {
            try world.mutate(session, number, operation).code
        }
        let notFound = Code.notFound.rawValue
        for (number, id) in [(UInt64(1), hidden), (3, unknown)] {
            #expect(
                try code(number, .sendMessage(world.message0("x", to: id, world.fresh())))
                    == notFound)
            #expect(
                try code(
                    number + 1, .addParticipants(AddParticipants(conversation: id, users: ["c"])))
                    == notFound)
        }
        #expect(
            try code(10, .createConversation(CreateConversation(conversation: hidden)))
                == Code.forbidden.rawValue)
        #expect(
            try code(11, .createConversation(CreateConversation(conversation: mine)))
                == Code.idInUse.rawValue)
        #expect(
            try code(12, .sendMessage(world.message0("x", to: mine, message.message)))
                == Code.forbidden.rawValue)
        #expect(try code(13, .sendMessage(SendMessage())) == Code.missingField.rawValue)
        let gone = try world.mutate(
            session, 9, .sendMessage(world.message0("x", to: hidden, message.message)))
        #expect(gone.code == Code.resultGone.rawValue)
        #expect(gone.position == 0)
    }

    @Test func aUserConversesWithOthers() throws {
        let id: ConversationID = world.fresh()
        let created = try world.mutate(
            session, 1,
            .createConversation(CreateConversation(conversation: id, participants: ["bert"])))
        #expect(created.code == 0 && created.object == id.bytes)
        #expect(
            try world.mutate(
                session, 2, .addParticipants(AddParticipants(conversation: id, users: ["carl"]))
            ).code == 0)
        #expect(
            try world.page("carl").entries.map(\.word) == [
                "conversation", "participant anna", "participant bert", "participant carl",
            ])
        guard
            case .conversation(let record?, let members) =
                try world.read(.conversation(World.app, id))
        else {
            Issue.record("no conversation")
            return
        }
        #expect(record.creator == "anna")
        #expect(members.map(\.user.name) == ["anna", "bert", "carl"])
    }

    @Test func resultsAreKeptByCountAndTime() throws {
        let id = try world.converse(["anna"])
        world.limits.mutationResults = 3
        func send(_ number: UInt64) throws -> MutationResult {
            try world.mutate(
                session, number,
                .sendMessage(world.message0("x", to: id, MessageID(high: 8, low: number))))
        }
        // Numbers with gaps: the last three are kept all the same.
        for number in [10, 2000, 2001, 900_000, 900_001] as [UInt64] {
            #expect(try send(number).code == 0)
        }
        #expect(try world.all(MutationRecord.self).map(\.number) == [2001, 900_000, 900_001])
        let gone = try send(2000)
        #expect(gone.code == Code.resultGone.rawValue && gone.position == 2)
        #expect(try send(2001).code == 0)
        world.pass(7 * 86_400_000)
        #expect(try send(900_001).code == Code.resultGone.rawValue)
        #expect(try world.ask(.enforceRetention(rows: 2)) == .progressed(count: 2, more: true))
        #expect(try world.ask(.enforceRetention(rows: 2)) == .progressed(count: 1, more: false))
        #expect(try world.all(MutationRecord.self).isEmpty)
    }

    @Test func aRefusalForTheTimeBeingHoldsBackLaterNumbers() throws {
        world.limits.directRecipients = 1
        world.limits.fanOutQueue = 1
        let id = try world.converse(["anna", "bert"])
        func send(_ number: UInt64, _ session: SessionKey) throws -> MutationResult {
            try world.mutate(
                session, number,
                .sendMessage(world.message0("x", to: id, MessageID(high: 8, low: number))))
        }
        #expect(try send(1, session).code == 0)
        let refused = try send(2, session)
        #expect(refused.code == Code.rateLimited.rawValue)
        #expect(refused.retry == .retryAfter && refused.retryAfterMs > 0)
        try world.finishFanOut()
        let held = try send(3, session)
        #expect(held.code == Code.unavailable.rawValue)
        #expect(try send(2, session).position == 2)
        try world.finishFanOut()
        #expect(try send(3, session).position == 3)
        try world.finishFanOut()
        #expect(try send(4, session).code == 0)
        #expect(try send(5, session).code == 0)
        #expect(try send(6, session).code == Code.rateLimited.rawValue)
        // A new session sends everything again: nothing is held back for a number that may have
        // been given up.
        try world.finishFanOut()
        let next = try world.login("anna", phone).session
        #expect(try send(7, next).position == 6)
    }

    @Test func forgettingADeviceTakesEverythingFromIt() throws {
        let other = try world.login("anna", DeviceID(high: 5, low: 2)).session
        let id = try world.converse(["anna"])
        let later = world.message0("later", to: id, world.fresh())
        let frame = SyncFrame(
            mutations: [
                Mutation(number: 1, operation: .forgetDevice(ForgetDevice())),
                Mutation(number: 2, operation: .sendMessage(later)),
            ])
        let answer = try world.ask(
            .sync(SyncWrite(session: session, sync: frame, freshEpochHalf: 1)))
        guard case .synced(let synced) = answer else { throw Unexpected(answer: answer) }
        #expect(synced.results.map(\.code) == [0])
        #expect(world.ended == [EndedSession(session: session, code: .revoked)])
        #expect(try world.all(SessionRecord.self).map(\.device) == [other.device])
        #expect(try world.all(SessionTokenRecord.self).map(\.device) == [other.device])
        guard case .devices(let views) = try world.read(.devices(World.app, UserID("anna"))) else {
            Issue.record("no devices")
            return
        }
        #expect(views.map(\.device.device) == [other.device])
        // It comes back with its numbers going on.
        let again = try world.login("anna", phone)
        #expect(again.sync.mutationFloor == 1)
        #expect(again.session.generation > session.generation)
    }

    @Test("in a SYNC, whose rest stands, a conflict is a refusal for the time being")
    func aConflictIsARefusalForTheTimeBeing() throws {
        let id = try world.converse(["anna"])
        let store = ConflictingStore(world.store, conflicts: 3)
        let send = Mutation(
            number: 1, operation: .sendMessage(world.message0("x", to: id, world.fresh())))
        let sync = SyncWrite(
            session: session, sync: SyncFrame(mutations: [send]), freshEpochHalf: 1)
        let outcome = try store.commit([.sync(sync)])
        guard case .synced(let synced)? = try outcome.first?.get().answer else {
            Issue.record("not synced")
            return
        }
        #expect(synced.results.map(\.code) == [Code.storageBusy.rawValue])
        let again = try store.commit([.mutate(Mutate(session: session, mutation: send))])
        guard case .mutated(let result, 1)? = try again.first?.get().answer else {
            Issue.record("not carried out")
            return
        }
        #expect(result.code == 0 && result.position == 1)
    }

    @Test(
        "a MUTATE that meets another's lock fails as a whole, and is carried out when asked again")
    func aConflictOfAMutate() throws {
        let id = try world.converse(["anna"])
        let store = ConflictingStore(world.store, conflicts: 3)
        let request = StoreRequest.mutate(
            Mutate(
                session: session,
                mutation: Mutation(
                    number: 1,
                    operation: .sendMessage(world.message0("x", to: id, world.fresh())))))
        guard case .failure(.conflict)? = try store.commit([request]).first else {
            Issue.record("the writer does not see that it has to ask again")
            return
        }
        guard case .mutated(let result, 1)? = try store.commit([request]).first?.get().answer else {
            Issue.record("not carried out")
            return
        }
        #expect(result.code == 0 && result.position == 1)
    }
}
