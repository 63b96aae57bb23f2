import Model
import SyncClient
import Testing
import Wire

/// A server that says something wrong for a while: when it is itself again the device is, too, and
/// meanwhile it asks no faster than a person would.
@Suite struct FaultySpellTests {
    /// A phone whose HELLO carried a mutation and its SYNC, at WELCOME.
    private func opened() throws -> Phone {
        var phone = try Phone(mutations: 1)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        return phone
    }

    private func refusal(_ code: Code, retryAfter: UInt32 = 0) -> FrameBody {
        .error(
            ErrorFrame(code: code.rawValue, retry: code.retryClass, retryAfterMs: retryAfter))
    }

    @Test("what HELLO carried is sent again when its SYNC was refused for its cursor")
    func refusedForTheCursor() throws {
        var phone = try opened()
        let lines = phone.receive(refusal(.cursorTooOld), request: 1)
        #expect(lines.contains { $0.hasPrefix("send SYNC at -") })
        #expect(lines.contains("send MUTATE 1"))
        // Once on a connection: the SYNC without a cursor gives no cause for it.
        #expect(phone.receive(refusal(.cursorTooOld), request: 2).first == "disconnect")
    }

    @Test("and when nothing was said but no: on another connection")
    func refusedForGood() throws {
        var phone = try opened()
        let lines = phone.receive(refusal(.forbidden), request: 1)
        #expect(lines.first == "disconnect")
        #expect(lines.last?.hasPrefix("retry after") == true)
        #expect(phone.pass(2_000).last == "connect")
        phone.connect()
        guard case .hello(let hello)? = phone.frames.last?.body else {
            Issue.record("no HELLO")
            return
        }
        #expect(hello.sync?.mutations.map(\.number) == [1])
    }

    @Test("a wait of weeks is one of an hour")
    func askedToWaitForWeeks() throws {
        var phone = try Phone.inSync()
        #expect(phone.close(.rateLimited, retryAfter: .max) == ["retry after 3600000"])
        #expect(phone.pass(3_599_999) == [])
        #expect(phone.pass(1) == ["connect"])
        phone = try Phone.inSync()
        phone.receive(.drain(Drain(deadlineMs: 1, slotMs: .max)))
        #expect(phone.close() == ["retry after 3600000"])
    }

    @Test("a client that is too old asks again when an hour is over and the user comes")
    func tooOldForAWhile() throws {
        var phone = try Phone.inSync()
        // Of a request that was never made it says nothing.
        phone.receive(refusal(.upgradeRequired), request: 77)
        #expect(!phone.session.isStopped)
        #expect(phone.close(.upgradeRequired) == ["upgradeRequired"])
        #expect(phone.pass(3_600_000) == [])
        #expect(comesToTheFront(&phone) == ["connect"])
        phone = try Phone.inSync()
        phone.close(.upgradeRequired)
        #expect(phone.pass(3_599_999) == [])
        #expect(comesToTheFront(&phone) == [])
    }

    private func comesToTheFront(_ phone: inout Phone) -> [String] {
        phone.run { $0.appStateChanged(AppState(phase: .background), now: $1) }
            + phone.run { $0.appStateChanged(AppState(phase: .foreground), now: $1) }
    }

    @Test("a head that no answer knows of is asked for three times, ever later")
    func aHeadThatIsNone() throws {
        var phone = try Phone.inSync(live: false)
        #expect(
            phone.receive(.syncRequest(SyncRequest(head: 99))) == ["send SYNC at 10 syncRequest"])
        #expect(phone.receive(Phone.delta(10, []), request: 2) == ["send ACK 10"])
        #expect(phone.pass(999) == [])
        #expect(phone.pass(1) == ["send SYNC at 10 syncRequest"])
        #expect(phone.receive(Phone.delta(10, []), request: 3) == ["send ACK 10"])
        #expect(phone.pass(1_999) == [])
        #expect(phone.pass(1) == ["send SYNC at 10 syncRequest"])
        #expect(
            phone.receive(Phone.delta(10, []), request: 4) == ["send ACK 10", "synced 10"])
        // What is true is asked for at once.
        #expect(
            phone.receive(.syncRequest(SyncRequest(head: 11))) == ["send SYNC at 10 syncRequest"])
    }

    @Test("a page that has nothing and says more is not asked for as fast as the line carries it")
    func moreAndNothing() throws {
        var phone = try Phone.inSync(live: false)
        phone.receive(.syncRequest(SyncRequest(head: 99)))
        #expect(phone.receive(Phone.delta(10, [], head: 99), request: 2) == ["send ACK 10"])
        #expect(phone.pass(1_000) == ["send SYNC at 10 syncRequest"])
        #expect(phone.receive(Phone.delta(10, [], head: 99), request: 3) == ["send ACK 10"])
        #expect(phone.pass(2_000) == ["send SYNC at 10 syncRequest"])
        // Something came: from the beginning.
        let lines = phone.receive(Phone.delta(10, [11], head: 99), request: 4)
        #expect(lines == ["apply [11] to 11", "send SYNC at 11 syncRequest"])
    }

    @Test("a connection that brings one reset after the other is left")
    func resetsWithoutEnd() throws {
        var phone = try Phone.inSync(live: false)
        for count in 1...4 {
            let lines = phone.receive(Phone.delta(0, [1], reset: .epochChanged))
            #expect(!lines.contains("disconnect"), "reset \(count)")
        }
        let lines = phone.receive(Phone.delta(0, [1], reset: .epochChanged))
        #expect(lines.first == "disconnect")
    }

    @Test("no server takes less than 16 KiB in a body, whatever it says")
    func aBodyOfNothing() throws {
        var phone = try Phone(mutations: 0)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(limits: AdvertisedLimits(bodyBytes: 100)), request: 1)
        phone.receive(Phone.delta(10, []), request: 1)
        let part = Part(mimeType: "text/plain", content: Array(repeating: 0, count: 4_000))
        let number = try phone.store.enqueue(
            .sendMessage(SendMessage(parts: [part])), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == ["send MUTATE 1"])
    }

    @Test("a sum that was not answered is asked for on the next connection")
    func anUnansweredDigest() throws {
        var phone = try Phone.inSync(live: false)
        phone.receive(.syncRequest(SyncRequest(head: 11)))
        guard case .delta(var delta) = Phone.delta(10, [11]) else { return }
        delta.digestWanted = true
        #expect(phone.receive(.delta(delta), request: 2).contains { $0.hasPrefix("send DIGEST") })
        phone.close()
        phone.pass(5_000)
        phone.connect()
        phone.receive(Phone.welcome(live: false), request: 1)
        var lines = phone.receive(Phone.delta(11, []), request: 1)
        #expect(lines.contains { $0.hasPrefix("send DIGEST") })
        // Once: it may be what ends the connections.
        phone.close()
        phone.pass(5_000)
        phone.connect()
        phone.receive(Phone.welcome(live: false), request: 1)
        lines = phone.receive(Phone.delta(11, []), request: 1)
        #expect(!lines.contains { $0.hasPrefix("send DIGEST") })
    }

    @Test("an interval of a millisecond is one of a second")
    func anIntervalOfNothing() throws {
        var phone = try Phone(mutations: 0)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(keepalive: 1), request: 1)
        phone.receive(Phone.delta(10, []), request: 1)
        #expect(phone.pass(899) == [])
        #expect(phone.pass(1).map { $0.prefix(9) } == ["send PING"])
        phone.receive(.pong(Pong()), request: 2)
        #expect(phone.pass(899) == [])
    }

    @Test("a server that drains whoever has just come of a drain is not asked at once again")
    func drainedWithoutEnd() throws {
        var phone = try Phone.inSync()
        phone.receive(.drain(Drain(deadlineMs: 1, slotMs: 0)))
        #expect(phone.pass(0).contains("connect"))
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(10, []), request: 1)
        phone.receive(.drain(Drain(deadlineMs: 1, slotMs: 0)))
        #expect(!phone.pass(4_999).contains("connect"))
        #expect(phone.pass(1).contains("connect"))
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(10, []), request: 1)
        phone.pass(60_000)
        phone.receive(.drain(Drain(deadlineMs: 1, slotMs: 0)))
        #expect(phone.pass(0).contains("connect"), "a minute later it is another one")
    }

    @Test("a server that takes no token and challenges again is left after eight")
    func challengedWithoutEnd() throws {
        var phone = try Phone(mutations: 0)
        phone.start()
        phone.connect()
        let challenge = FrameBody.challenge(
            Challenge(nonce: [1], lifetimeMs: 60_000, reason: .revoked))
        for count in 1...8 {
            let lines = phone.receive(challenge, request: 1)
            #expect(lines.contains("need identity token"), "challenge \(count)")
            phone.run { $0.identityToken("token", now: $1) }
        }
        let lines = phone.receive(challenge, request: 1)
        #expect(lines.contains("disconnect") && !lines.contains("need identity token"))
        #expect(lines.last?.hasPrefix("retry after") == true)
        phone.pass(60_001)
        phone.connect()
        #expect(phone.receive(challenge, request: 1).contains("need identity token"))
    }

    @Test("a server that says of every number that it is taken is asked ever later")
    func numbersTakenWithoutEnd() throws {
        var phone = try opened()
        phone.receive(Phone.delta(10, []), request: 1)
        func taken(_ phone: inout Phone, _ number: UInt64) -> [String] {
            phone.receive(
                .mutationResult(
                    MutationResult(
                        number: number, code: Code.numberTaken.rawValue, retry: .none)))
        }
        // It was another life's: the next number is no one's.
        let first = taken(&phone, 1)
        #expect(first.first?.hasPrefix("renumber from 1") == true)
        #expect(first.last == "send MUTATE 2")
        #expect(taken(&phone, 2).last?.hasPrefix("renumber from 2") == true)
        #expect(phone.pass(3_999) == [])
        #expect(phone.pass(1) == ["send MUTATE 3"])
        #expect(taken(&phone, 3).last?.hasPrefix("renumber from 3") == true)
        #expect(phone.pass(7_999) == [])
        #expect(phone.pass(1) == ["send MUTATE 4"])
    }
}
