import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct ClientTests {
    @Test func oneRoundTrip() throws {
        var phone = try Phone()
        #expect(phone.start() == ["connect"])
        #expect(phone.connect() == ["send HELLO token at 10"])
        #expect(phone.receive(Phone.welcome(), request: 1) == [])
        #expect(phone.store.state.sessionToken == [8])
        #expect(
            phone.receive(Phone.delta(10, [12, 13]), request: 1) == [
                "apply [12, 13] to 13", "send ACK 13", "synced 13",
            ])
    }

    @Test func loginSendsTheSyncAgain() throws {
        var phone = try Phone(at: nil, token: [], mutations: 1)
        phone.start()
        #expect(phone.connect() == ["send HELLO no token at - m1"])
        #expect(phone.receive(.challenge(Challenge()), request: 1) == ["need identity token"])
        #expect(
            phone.run { $0.identityToken("jwt", now: $1) } == ["send AUTHENTICATE jwt"])
        #expect(
            phone.receive(Phone.welcome(), request: 1) == [
                "send SYNC at - connect", "send MUTATE 1",
            ])
        #expect(
            phone.receive(Phone.delta(0, [3], reset: .noCursor), request: 2) == [
                "apply [3] to 3", "send ACK 3", "synced 3",
            ])
    }

    @Test func aRefusedLoginBacksOff() throws {
        var phone = try Phone(token: [])
        phone.start()
        phone.connect()
        phone.receive(.challenge(Challenge()), request: 1)
        phone.run { $0.identityToken("jwt", now: $1) }
        let lines = phone.receive(.error(ErrorFrame(code: 2001)))
        #expect(lines.first == "disconnect")
        #expect(lines.last?.hasPrefix("retry after") == true)
    }

    // MARK: - The gap rules (SYN-13)

    @Test func aPushedDeltaIsAppliedAndAcknowledged() throws {
        var phone = try Phone.inSync()
        #expect(
            phone.receive(Phone.delta(10, [12], head: 20)) == ["apply [12] to 12", "send ACK 12"])
        #expect(
            phone.receive(Phone.delta(12, [20])) == [
                "apply [20] to 20", "send ACK 20", "synced 20",
            ])
    }

    @Test func whatIsThereIsDropped() throws {
        var phone = try Phone.inSync()
        #expect(phone.receive(Phone.delta(5, [7])) == ["send ACK 10", "synced 10"])
        // Nothing is written for a page that ends where this device stands.
        #expect(phone.receive(Phone.delta(10, [])) == ["send ACK 10", "synced 10"])
        // Overlap is harmless.
        #expect(
            phone.receive(Phone.delta(5, [7, 12])).first == "apply [7, 12] to 12")
    }

    @Test func aGapIsFetched() throws {
        var phone = try Phone.inSync()
        #expect(phone.receive(Phone.delta(12, [13])) == ["send SYNC at 10 timer"])
        #expect(
            phone.receive(Phone.delta(12, [14], epoch: Epoch(high: 1, low: 1))) == [])
        #expect(phone.receive(Phone.delta(10, [13]), request: 2).first == "apply [13] to 13")
    }

    // MARK: - SYNC_REQUEST

    @Test func aSyncRequestIsAnswered() throws {
        var phone = try Phone.inSync(live: false)
        #expect(
            phone.receive(.syncRequest(SyncRequest(head: 12))) == ["send SYNC at 10 syncRequest"])
        // Told of more meanwhile: remembered.
        #expect(phone.receive(.syncRequest(SyncRequest(head: 15))) == [])
        #expect(
            phone.receive(Phone.delta(10, [12]), request: 2) == [
                "apply [12] to 12", "send SYNC at 12 syncRequest",
            ])
        #expect(
            phone.receive(Phone.delta(12, [15]), request: 3) == [
                "apply [15] to 15", "send ACK 15", "synced 15",
            ])
        #expect(phone.receive(.syncRequest(SyncRequest(head: 15))) == ["send ACK 15"])
    }

    @Test func withoutLiveThePagesArePulled() throws {
        var phone = try Phone.inSync(live: false)
        phone.receive(.syncRequest(SyncRequest(head: 30)))
        #expect(
            phone.receive(Phone.delta(10, [20], head: 30), request: 2) == [
                "apply [20] to 20", "send SYNC at 20 syncRequest",
            ])
    }

    // MARK: - Resets

    @Test func aResetMarksAppliesAndSweeps() throws {
        var phone = try Phone.inSync()
        phone.receive(Phone.delta(10, [12]))
        let epoch = Epoch(high: 7, low: 9)
        #expect(
            phone.receive(Phone.delta(0, [2], head: 5, epoch: epoch, reset: .epochChanged)) == [
                "apply [2] to 2 stale", "send ACK 2",
            ])
        // Nothing is discarded before the end.
        #expect(phone.store.rows.count == 2)
        #expect(
            phone.receive(Phone.delta(2, [5], epoch: epoch)) == [
                "apply [5] to 5 sweep", "send ACK 5", "synced 5", "send DIGEST @2",
            ])
        #expect(phone.store.rows.values.map(\.entry.seq).sorted() == [2, 5])
    }

    @Test func aResetOutlivesTheProcess() throws {
        var phone = try Phone.inSync()
        phone.receive(Phone.delta(10, [12]))
        let epoch = Epoch(high: 7, low: 9)
        phone.receive(Phone.delta(0, [2], head: 5, epoch: epoch, reset: .epochChanged))
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at 2"])
        phone.receive(Phone.welcome(), request: 1)
        #expect(
            phone.receive(Phone.delta(2, [5], epoch: epoch), request: 1).first
                == "apply [5] to 5 sweep")
    }

    /// What waits keeps its numbers: the server tells operations apart by themselves (MSG-10).
    @Test func aLostHistoryKeepsNumbers() throws {
        var phone = try Phone.inSync(mutations: 2)
        let other = Epoch(high: 7, low: 9)
        let refused = [1, 2].map {
            MutationResult(number: $0, code: Code.unavailable.rawValue, retryAfterMs: 900)
        }
        #expect(
            phone.receive(
                Phone.delta(0, [2], epoch: other, reset: .cursorAhead, results: refused, floor: 7))
                == ["apply [2] to 2 stale sweep", "send ACK 2", "synced 2", "send DIGEST @2"])
        #expect(phone.pass(1_500) == ["send MUTATE 1", "send MUTATE 2"])
    }

    @Test func aFloorWithoutNumbersAboveItIsRefused() throws {
        var phone = try Phone.inSync(mutations: 2)
        let said = phone.receive(
            Phone.delta(0, [2], epoch: Epoch(high: 7, low: 9), reset: .cursorAhead, floor: .max))
        #expect(!said.contains { $0.hasPrefix("renumber") }, "\(said)")
        #expect(!phone.session.isOpen)
    }

    // MARK: - Mutations

    @Test func unansweredOnesAreSentAgainInOrder() throws {
        var phone = try Phone(mutations: 3)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at 10 m1 m2 m3"])
        phone.receive(Phone.welcome(), request: 1)
        #expect(
            phone.receive(
                Phone.delta(10, [], results: [MutationResult(number: 1)]), request: 1
            ).first == "results [1]")
        phone.close()
        phone.pass(5_000)
        #expect(phone.connect() == ["send HELLO token at 10 m2 m3"])
    }

    @Test func helloIsBounded() throws {
        var phone = try Phone()
        let part = Part(mimeType: "", content: Array(repeating: 0, count: 4_000))
        for _ in 0..<5 {
            _ = try phone.store.enqueue(
                .sendMessage(SendMessage(parts: [part])), at: phone.wall)
        }
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at 10 m1 m2"])
        #expect(
            phone.receive(Phone.welcome(), request: 1) == [
                "send MUTATE 3", "send MUTATE 4", "send MUTATE 5",
            ])
        // All again on the next connection.
        phone.close()
        phone.pass(5_000)
        #expect(phone.connect() == ["send HELLO token at 10 m1 m2"])
        #expect(
            phone.receive(Phone.welcome(), request: 1) == [
                "send MUTATE 3", "send MUTATE 4", "send MUTATE 5",
            ])
    }

    @Test func thirtyTwoAtATime() throws {
        var phone = try Phone(mutations: 40)
        phone.start()
        phone.connect()
        let lines = phone.receive(Phone.welcome(), request: 1)
        #expect(lines == [])
        #expect(
            phone.receive(.mutationResult(MutationResult(number: 1))) == [
                "results [1]", "send MUTATE 33",
            ])
    }

    @Test func aTemporaryRefusalIsSentAgainWithAllBehindIt() throws {
        var phone = try Phone.inSync(mutations: 3)
        phone.receive(.mutationResult(MutationResult(number: 1)))
        #expect(
            phone.receive(
                .mutationResult(
                    MutationResult(number: 2, code: 1004, retry: .retryAfter, retryAfterMs: 5_000))
            ) == [])
        phone.receive(
            .mutationResult(MutationResult(number: 3, code: 1001, retry: .retryAfter)))
        #expect(phone.pass(4_999) == [])
        #expect(phone.pass(1) == ["send MUTATE 2", "send MUTATE 3"])
    }

    @Test func whatIsBehindATemporaryRefusalIsSentAgainUnanswered() throws {
        var phone = try Phone.inSync(mutations: 3)
        phone.receive(
            .mutationResult(
                MutationResult(number: 1, code: 1004, retry: .retryAfter, retryAfterMs: 5_000)))
        #expect(phone.pass(5_000) == ["send MUTATE 1", "send MUTATE 2", "send MUTATE 3"])
    }

    @Test func anOversizedMutationIsRefusedHere() throws {
        var phone = try Phone.inSync()
        let part = Part(mimeType: "", content: Array(repeating: 0, count: 300_000))
        let number = try phone.store.enqueue(
            .sendMessage(SendMessage(parts: [part])), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == ["results [1]"])
        #expect(try phone.store.result(of: 1)?.code == 4001)
    }

    @Test func anotherUserGetsNothingOfTheFormer() throws {
        var phone = try Phone.inSync(mutations: 1)
        phone.close(.revoked)
        phone.pass(5_000)
        phone.connect()
        phone.receive(.challenge(Challenge()), request: 1)
        phone.run { $0.identityToken("jwt", now: $1) }
        #expect(
            phone.receive(Phone.welcome(user: "bob"), request: 1) == ["send SYNC at - connect"])
        #expect(phone.store.outbox.isEmpty)
    }

    // MARK: - Read receipts

    @Test func readsAreRepeatedUntilTheMarkComesBack() throws {
        var phone = try Phone.inSync()
        let id = ConversationID(high: 1, low: 1)
        phone.receive(Phone.delta(10, [11]))
        let read = ReadReceipt(conversation: id, through: 4)
        try phone.store.addRead(read)
        #expect(phone.run { $0.readQueued(read, now: $1) } == ["send ACK 11 r4"])
        #expect(phone.run { $0.userRefresh(now: $1) } == ["send SYNC at 11 user r4"])
        func mark(_ seq: UInt64, _ through: UInt64) -> FrameBody {
            .delta(
                Delta(
                    entries: [
                        Entry(
                            seq: seq, conversation: id, version: seq,
                            body: .readMark(ReadMarkState(through: through)))
                    ], from: Cursor(epoch: Phone.epoch, seq: seq - 1),
                    to: Cursor(epoch: Phone.epoch, seq: seq), head: seq))
        }
        phone.receive(mark(12, 3), request: 2)
        #expect(phone.run { $0.userRefresh(now: $1) } == ["send SYNC at 12 user r4"])
        phone.receive(mark(13, 4), request: 3)
        #expect(phone.run { $0.userRefresh(now: $1) } == ["send SYNC at 13 user"])
        #expect(phone.store.state.pendingReads.isEmpty)
    }

    @Test func aReadWhileItConnectsFollowsTheAnswer() throws {
        var phone = try Phone()
        phone.start()
        phone.connect()
        let receipt = ReadReceipt(conversation: ConversationID(high: 1, low: 1), through: 4)
        try phone.store.addRead(receipt)
        // The HELLO is on its way without it, and its SYNC may yet be answered with a reset.
        #expect(phone.run { $0.readQueued(receipt, now: $1) } == [])
        #expect(phone.receive(Phone.welcome(), request: 1) == [])
        #expect(
            phone.receive(Phone.delta(10, [12]), request: 1) == [
                "apply [12] to 12", "send ACK 12", "send ACK 12 r4", "synced 12",
            ])
        // Once a connection.
        #expect(
            phone.receive(Phone.delta(12, [13])) == [
                "apply [13] to 13", "send ACK 13", "synced 13",
            ])
    }

    /// SYN-32: positions of the lost history may be other messages' now.
    @Test func readsOfAnotherEpochAreForgotten() throws {
        var phone = try Phone.inSync()
        let room = ConversationID(high: 1, low: 1)
        let told = MessageID(high: 2, low: 2)
        for receipt in [
            ReadReceipt(conversation: room, through: 5), ReadReceipt(announcement: told),
        ] {
            try phone.store.addRead(receipt)
            phone.run { $0.readQueued(receipt, now: $1) }
        }
        #expect(phone.run { $0.userRefresh(now: $1) } == ["send SYNC at 10 user r5 r0"])
        let epoch = Epoch(high: 9, low: 9)
        phone.receive(
            Phone.delta(0, [2], head: 2, epoch: epoch, reset: .epochChanged), request: 2)
        #expect(phone.store.state.pendingReads.map(\.announcement) == [told])
        #expect(phone.run { $0.userRefresh(now: $1) } == ["send SYNC at 2 user r0"])
    }

    // MARK: - Staying and coming back

    @Test func backoffDoublesToItsCap() throws {
        func delays(_ phase: AppPhase) throws -> [Milliseconds] {
            var highest = [Milliseconds](repeating: 0, count: 12)
            for seed in 0..<100 as Range<UInt64> {
                var phone = try Phone(seed: seed)
                phone.start(phase)
                for index in highest.indices {
                    let lines = phone.close()
                    let text = try #require(lines.last?.split(separator: " ").last)
                    let delay = try #require(Milliseconds(text))
                    highest[index] = max(highest[index], delay)
                    #expect(phone.pass(delay) == ["connect"])
                }
            }
            return highest
        }
        for (phase, cap) in [(AppPhase.foreground, 30_000), (.background, 300_000)] {
            for (index, highest) in try delays(phase).enumerated() {
                let bound = min(Milliseconds(1_000) << UInt64(index), Milliseconds(cap))
                #expect((bound * 8 / 10...bound).contains(highest))
            }
        }
    }

    @Test func afterAHealthySessionWithinFiveSeconds() throws {
        var phone = try Phone.inSync()
        let delay = try #require(phone.close().last?.split(separator: " ").last)
        #expect(try #require(Milliseconds(delay)) <= 5_000)
    }

    @Test func aDrainSlotOverrides() throws {
        var phone = try Phone.inSync()
        phone.receive(.drain(Drain(deadlineMs: 20_000, slotMs: 30_000)))
        phone.pass(1_000)
        #expect(phone.close(.drainDeadline) == ["retry after 29000"])
        #expect(phone.pass(29_000) == ["connect"])

        var early = try Phone.inSync()
        early.receive(.drain(Drain(deadlineMs: 60_000, slotMs: 30_000)))
        #expect(early.pass(29_999) == [])
        #expect(early.pass(1) == ["disconnect", "connect"])
    }

    @Test func supersededStaysDown() throws {
        var phone = try Phone.inSync()
        // Once it looks again: it may have been its own older connection.
        #expect(phone.close(.superseded).first?.hasPrefix("retry") == true)
        #expect(phone.pass(4_999) == [])
        #expect(phone.pass(5_001).first == "connect")
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        #expect(phone.close(.superseded) == ["parked"])
        #expect(phone.session.nextDeadline == nil)
        #expect(phone.run { $0.networkChanged(now: $1) } == [])
        #expect(phone.run { $0.userRefresh(now: $1) } == ["connect"])
    }

    @Test func supersededTooOftenLogsInAnew() throws {
        var phone = try Phone.inSync()
        for count in 1...6 {
            let lines = phone.close(.superseded)
            if count > 1 {
                #expect(lines == (count == 6 ? ["forget session", "parked"] : ["parked"]))
            }
            phone.run { $0.userRefresh(now: $1) }
            phone.connect()
            phone.receive(Phone.welcome(), request: 1)
        }
    }

    @Test(arguments: [
        (Code.protocolViolation, "parked"), (.suspended, "parked"), (.revoked, "forget session"),
        (.upgradeRequired, "upgradeRequired"), (.slow, "retry"), (.epochChanged, "retry"),
    ])
    func retryClassesAreObeyed(_ code: Code, _ first: String) throws {
        var phone = try Phone.inSync()
        #expect(phone.close(code).first?.hasPrefix(first) == true)
    }

    @Test func retryAfterIsWaitedFor() throws {
        var phone = try Phone.inSync()
        #expect(phone.close(.tooManyConnections, retryAfter: 60_000) == ["retry after 60000"])
        // Not even a refresh comes before it.
        #expect(phone.run { $0.userRefresh(now: $1) } == [])
        #expect(phone.pass(60_000) == ["connect"])
    }

    @Test func anUnknownCodeCountsByItsClass() throws {
        var phone = try Phone.inSync()
        phone.receive(.close(Close(code: 5999, retry: .upgrade)))
        #expect(phone.run { $0.closed(now: $1) } == ["upgradeRequired"])
        #expect(phone.run { $0.userRefresh(now: $1) } == [])
    }

    @Test func keepsAliveAndNoticesADeadPeer() throws {
        var phone = try Phone.inSync()
        #expect(phone.pass(162_000) == ["send PING"])
        #expect(phone.receive(.pong(Pong())) == [])
        #expect(phone.pass(162_000) == ["send PING"])
        #expect(phone.pass(30_000).first == "disconnect")
    }

    @Test func aDeadLinkDoesNotHoldAMessage() throws {
        var phone = try Phone.inSync(mutations: 1)
        #expect(phone.session.hasUnanswered)
        #expect(phone.pass(14_999) == [])
        #expect(phone.pass(1) == ["send PING"])
        #expect(phone.pass(30_000).first == "disconnect")
    }

    @Test func goesToSleepAndIsWoken() throws {
        var phone = try Phone.inSync()
        #expect(
            phone.run { $0.sleep(now: $1) } == ["send CLOSE 5000 applied 10", "disconnect"])
        #expect(phone.session.nextDeadline == nil)
        #expect(phone.run { $0.networkChanged(now: $1) } == [])
        let background = AppState(phase: .background, remainingMs: 30_000)
        #expect(
            phone.run {
                $0.pushReceived(wake: WakeID(high: 1, low: 1), appState: background, now: $1)
            } == ["connect"])
        #expect(phone.connect() == ["send HELLO token at 10 wake"])
    }

    @Test func aSilentServerIsGivenUp() throws {
        var phone = try Phone()
        phone.start()
        phone.connect()
        #expect(phone.pass(30_000).first == "disconnect")
    }

    // MARK: - The store

    @Test func aStoreThatFailsLosesNothing() throws {
        var phone = try Phone.inSync()
        phone.store.fault = .full("disk")
        let lines = phone.receive(Phone.delta(10, [12]))
        #expect(lines.prefix(2) == ["store failed", "disconnect"])
        phone.pass(5_000)
        #expect(phone.connect() == ["send HELLO token at 10"])
    }

    @Test func aResultThatCouldNotBeStoredIsAskedForAgain() throws {
        var phone = try Phone.inSync(mutations: 1)
        phone.store.fault = .full("disk")
        let lines = phone.receive(.mutationResult(MutationResult(number: 1)))
        #expect(lines.prefix(2) == ["store failed", "disconnect"])
        phone.pass(5_000)
        #expect(phone.connect() == ["send HELLO token at 10 m1"])
    }

    @Test(arguments: FrameType.allCases)
    func everyFrameWhileOpen(_ type: FrameType) throws {
        let body = try #require(StateTableTests.bodies[type])
        for var phone in [try Phone(), try Phone.inSync()] {
            phone.start()
            phone.connect()
            phone.receive(body, request: 7)
            phone.close()
        }
    }
}
