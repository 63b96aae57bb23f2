import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// A device restored from a copy of itself, and one that meets another history.
@Suite struct AnotherLifeTests {
    /// A copy of the device from before: its numbers 2 and 3 were taken since, 4 and 5 were not.
    @Test func numbersOfAnotherLifeAreGivenAnewInOrder() throws {
        var phone = try Phone()
        let ids = (1...5).map { MessageID(high: 4, low: $0) }
        for id in ids {
            _ = try phone.store.enqueue(.sendMessage(SendMessage(message: id)), at: phone.wall)
        }
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 1)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at 10 m1 m2 m3 m4 m5"])
        phone.receive(Phone.welcome(floor: 3), request: 1)
        let taken = Code.numberTaken.rawValue
        let results = [
            MutationResult(number: 1, object: ids[0].bytes, position: 4),
            MutationResult(number: 2, code: taken),
            // A server from before hashes: another message's result.
            MutationResult(number: 3, object: ids[4].bytes, position: 5),
            MutationResult(number: 4, code: taken), MutationResult(number: 5, code: taken),
        ]
        let lines = phone.receive(Phone.delta(10, [], results: results), request: 1)
        #expect(
            lines == [
                "results [1]", "renumber from 2 above 3", "send MUTATE 6", "send MUTATE 7",
                "send MUTATE 8", "send MUTATE 9", "send ACK 10", "synced 10",
            ])
        let order = phone.store.outbox.map { queued -> MessageID? in
            guard case .sendMessage(let send) = queued.mutation.operation else { return nil }
            return send.message
        }
        #expect(order == Array(ids[1...]))
        #expect(phone.store.results.keys.sorted() == [1], "nobody is told of another's result")
    }

    /// Nothing is given a new number that may have been done under the old one.
    @Test func numbersAboveTheFloorWaitForThoseBelow() throws {
        var phone = try Phone(mutations: 4)
        phone.start()
        phone.connect()
        let challenge = Challenge(nonce: [1], lifetimeMs: 9_000, reason: .expired)
        phone.receive(.challenge(challenge), request: 1)
        phone.run { $0.identityToken("t", now: $1) }
        let welcome = phone.receive(Phone.welcome(floor: 2))
        #expect(welcome.filter { $0.contains("MUTATE") } == ["send MUTATE 1", "send MUTATE 2"])
        let taken = MutationResult(number: 1, code: Code.numberTaken.rawValue)
        #expect(phone.receive(.mutationResult(taken)) == [])
        #expect(
            phone.receive(.mutationResult(MutationResult(number: 2))) == [
                "results [2]", "renumber from 1 above 2", "send MUTATE 5", "send MUTATE 6",
                "send MUTATE 7",
            ])
    }

    /// These wait, and the server has taken nine numbers.
    private func connected(_ waiting: [Mutation.Operation]) throws -> Phone {
        var phone = try Phone()
        for operation in waiting { _ = try phone.store.enqueue(operation, at: phone.wall) }
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 1)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(floor: 9), request: 1)
        return phone
    }

    /// 3013: the id tells whether the message is there; what else it may have been is final.
    @Test func aLostResultOfACreationIsAskedAgain() throws {
        var phone = try connected([
            .sendMessage(SendMessage(message: MessageID(high: 1, low: 1))),
            .sendMessage(SendMessage(message: MessageID(high: 1, low: 2))),
            .blockUser(BlockUser(user: "kim", blocked: true)),
        ])
        let gone = Code.resultGone.rawValue
        let results = [
            MutationResult(number: 1, code: gone, position: 7),
            MutationResult(number: 2, code: gone), MutationResult(number: 3, code: gone),
        ]
        let lines = phone.receive(Phone.delta(10, [], results: results), request: 1)
        #expect(lines.prefix(2) == ["results [1, 3]", "renumber from 2 above 9"])
        #expect(lines.contains("send MUTATE 10"))
    }

    /// 3014 says that this life has sent nothing from there on: nothing behind it was done.
    @Test func whatStandsBehindATakenNumberWasNotDone() throws {
        var phone = try connected([
            .blockUser(BlockUser(user: "leo", blocked: true)),
            .sendMessage(SendMessage(message: MessageID(high: 1, low: 2))),
            .blockUser(BlockUser(user: "kim", blocked: true)),
        ])
        let gone = Code.resultGone.rawValue
        let results = [
            MutationResult(number: 1, code: gone),
            MutationResult(number: 2, code: Code.numberTaken.rawValue),
            MutationResult(number: 3, code: gone),
        ]
        let lines = phone.receive(Phone.delta(10, [], results: results), request: 1)
        #expect(lines.prefix(2) == ["results [1]", "renumber from 2 above 9"])
        #expect(lines.filter { $0.contains("MUTATE") } == ["send MUTATE 10", "send MUTATE 11"])
    }

    /// Numbers of an old history mean nothing in the new one (SYN-14).
    @Test func nothingIsAcknowledgedToAnotherEpoch() throws {
        var phone = try Phone()
        phone.start()
        phone.connect()
        var welcome = Phone.welcome()
        if case .welcome(var body) = welcome {
            body.epoch = Epoch(high: 7, low: 9)
            welcome = .welcome(body)
        }
        phone.receive(welcome, request: 1)
        #expect(phone.receive(.syncRequest(SyncRequest(head: 5))) == [])
        #expect(phone.run { $0.sleep(now: $1) } == ["send CLOSE 5000 applied 0", "disconnect"])
    }
}
