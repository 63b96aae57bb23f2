import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// What a server said falsely of the history does not stay: a comparison follows, a head that is
/// none counts no longer than the reset lasts, and lists of participants come to an end.
@Suite struct FaultyHistoryTests {
    private let room = ConversationID(high: 1, low: 1)

    // MARK: - Digests

    @Test(
        "HIS-23: after a reset by the feed a digest is asked for, also in the same history",
        arguments: [true, false])
    func digestAfterAReset(sameEpoch: Bool) throws {
        var phone = try Phone.inSync()
        let epoch = sameEpoch ? Phone.epoch : Epoch(high: 7, low: 9)
        let first = phone.receive(
            Phone.delta(0, [2], head: 5, epoch: epoch, reset: .cursorTooOld))
        #expect(!first.contains { $0.hasPrefix("send DIGEST") }, "not in the middle: \(first)")
        #expect(
            phone.receive(Phone.delta(2, [5], epoch: epoch)) == [
                "apply [5] to 5 sweep", "send ACK 5", "synced 5", "send DIGEST @2",
            ])
        #expect(phone.receive(.digestResult(DigestResult()), request: 2) == ["digest says nothing"])
        #expect(phone.receive(Phone.delta(5, [6], epoch: epoch)).last == "synced 6", "once")
    }

    /// A copy of the device from before: its cursor goes on, so that nothing else compares it.
    @Test("a device that the server knows with higher numbers is compared as soon as it is in sync")
    func digestAfterARestore() throws {
        var phone = try Phone(mutations: 2)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(floor: 7), request: 1)
        let results = [1, 2].map { MutationResult(number: $0) }
        let lines = phone.receive(Phone.delta(10, [], results: results), request: 1)
        #expect(lines.suffix(2) == ["synced 10", "send DIGEST @2"], "\(lines)")
    }

    // MARK: - The head of a reset

    @Test("a head that no feed has leaves nothing behind when the reset is over")
    func aHeadThatIsNone() throws {
        var phone = try Phone.inSync()
        phone.receive(Phone.delta(0, [2], head: 1 << 60, reset: .cursorTooOld))
        phone.receive(Phone.delta(2, [3, 5]))
        #expect(phone.news.isEmpty, "what was there before is no news")
        #expect(phone.store.state.historyThrough == 5)
        phone.receive(Phone.delta(5, [6]))
        #expect(phone.news.map(\.seq) == [6])
        #expect(resetHead(&phone) == 5)
    }

    @Test("nor does one that an older version of this client has kept")
    func aHeadThatWasKept() throws {
        var phone = try Phone.inSync()
        phone.store.state.historyThrough = 1 << 60
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(10, [11]), request: 1)
        phone.receive(Phone.delta(11, [12]))
        #expect(phone.news.map(\.seq) == [12])
        #expect(phone.store.state.historyThrough == 11)
    }

    /// As the next HELLO names it (SYN-34).
    private func resetHead(_ phone: inout Phone) -> UInt64? {
        phone.close()
        phone.pass(6_000)
        phone.connect()
        guard case .hello(let hello) = phone.frames.last?.body else { return nil }
        return hello.sync?.resetHead
    }

    // MARK: - Participants

    /// The session asks for a conversation of which only an entry has come.
    private func asking(_ limits: ClientLimits = ClientLimits()) throws -> Phone {
        var phone = try Phone(limits: limits)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(10, []), request: 1)
        #expect(phone.run { $0.orphansLoaded([self.room], now: $1) } == ["send FETCH @2"])
        return phone
    }

    private func page(_ names: [String]) -> FrameBody {
        let entries = names.map { name in
            Entry(
                conversation: room, version: 1,
                body: .participant(ParticipantState(user: name, joinedPosition: 0)))
        }
        return .page(PageFrame(entries: entries, more: true))
    }

    @Test("HIS-8: a list that does not go on is not asked for again", arguments: ["ben", "anna"])
    func namesThatDoNotRise(next: String) throws {
        var phone = try asking()
        #expect(phone.receive(page(["anna", "ben"]), request: 2).last == "send FETCH @3")
        #expect(phone.receive(page([next]), request: 3).allSatisfy { $0.hasPrefix("history") })
    }

    @Test("a list without an end is left where no conversation has so many")
    func namesWithoutEnd() throws {
        var limits = ClientLimits()
        limits.participantsListed = 6
        var phone = try asking(limits)
        #expect(phone.receive(page(["a", "b"]), request: 2).last == "send FETCH @3")
        #expect(phone.receive(page(["c", "d"]), request: 3).last == "send FETCH @4")
        #expect(phone.receive(page(["e", "f"]), request: 4).allSatisfy { $0.hasPrefix("history") })
    }
}
