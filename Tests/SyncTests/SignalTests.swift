import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct SignalTests {
    static let conversation = ConversationID(high: 0, low: 7)

    static func signal(
        _ kind: SignalKind = .typing, _ conversation: ConversationID = conversation,
        ttl: UInt32 = 0, user: String = ""
    ) -> FrameBody {
        .signal(Signal(conversation: conversation, kind: kind, ttlMs: ttl, user: user))
    }

    /// An open session that agreed on signals.
    static func desk(live: Bool = true, limits: SessionLimits = SessionLimits()) -> Desk {
        var desk = Desk(limits: limits)
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        desk.receive(
            .hello(Desk.hello(features: live ? ["live", "signal"] : ["signal"], sync: sync)),
            request: 1)
        desk.answer(Desk.opened(Desk.position(head: 10, applied: 10)))
        desk.give(Desk.page(10, []))
        return desk
    }

    @discardableResult
    static func found(_ desk: inout Desk, _ users: String...) -> [String] {
        let tag = desk.tag
        return desk.run { $0.audienceFound(tag, users.map { UserID($0) }, now: $1) }
    }

    @Test func theFeatureIsNamedInWelcome() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello(features: ["signal", "live", "other"])), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 0, applied: 0)))
        let welcomes = desk.actions.compactMap { action -> Welcome? in
            if case .send(let frame) = action, case .welcome(let body) = frame.body { return body }
            return nil
        }
        #expect(welcomes.map(\.features) == [["live", "signal"]])
    }

    @Test(
        "SIG-1 SIG-3: one read a conversation; the server names the user, whatever the client says")
    func handedOn() {
        var desk = Self.desk()
        #expect(
            desk.receive(Self.signal(user: "zoe")) == ["find audience of anna in 7"])
        #expect(Self.found(&desk, "bob", "carl") == ["signal typing 6000 of anna to bob carl"])
        #expect(
            desk.receive(Self.signal(.typingEnded, ttl: 40_000)) == [
                "signal typingEnded 30000 of anna to bob carl"
            ])
        // The participants are looked at again when they may have changed.
        desk.now = desk.now + 10_000
        #expect(desk.receive(Self.signal(ttl: 900)) == ["find audience of anna in 7"])
    }

    @Test("SIG-5: who takes no part is told nothing, and is not looked up again and again")
    func outOfReach() {
        var desk = Self.desk()
        desk.receive(Self.signal())
        #expect(Self.found(&desk) == [])
        #expect(desk.receive(Self.signal()) == [])
    }

    @Test("SIG-5: after a block or removal the participants are looked up before anybody is told")
    func audienceChanged() {
        var desk = Self.desk()
        desk.receive(Self.signal())
        Self.found(&desk, "bob", "carl")
        #expect(desk.receive(Self.signal()) == ["signal typing 6000 of anna to bob carl"])
        let told = Signal(
            conversation: Self.conversation, kind: .typing, ttlMs: 6_000, user: "anna")
        #expect(
            desk.run { $0.audienceChanged(told, now: $1) } == ["find audience of anna in 7"])
        // Nothing is known until the answer is there.
        #expect(desk.receive(Self.signal(.typingEnded)) == [])
        #expect(Self.found(&desk, "carl") == ["signal typingEnded 6000 of anna to carl"])
    }

    @Test("a bounded number of conversations is remembered; one lookup is under way")
    func bounded() {
        var desk = Self.desk()
        for low in 1...3 as ClosedRange<UInt64> {
            let id = ConversationID(high: 0, low: low)
            #expect(desk.receive(Self.signal(.typing, id)) == ["find audience of anna in \(low)"])
            // Of another conversation meanwhile: dropped. Of the same: the newer one counts.
            if low == 1 {
                #expect(desk.receive(Self.signal()) == [])
                #expect(desk.receive(Self.signal(.typingEnded, id)) == [])
                #expect(Self.found(&desk, "bob") == ["signal typingEnded 6000 of anna to bob"])
            } else {
                Self.found(&desk, "bob")
            }
        }
        desk.now = desk.now + 3_000
        let first = ConversationID(high: 0, low: 1)
        #expect(desk.receive(Self.signal(.typing, first)) == ["find audience of anna in 1"])
        let tag = desk.tag
        desk.session.audienceFailed(tag)
        #expect(desk.receive(Self.signal(.typing, first)) == ["find audience of anna in 1"])
    }

    @Test("SIG-6: above the rate a sender's signals are dropped without a word")
    func sendingRate() {
        var desk = Self.desk()
        desk.receive(Self.signal())
        Self.found(&desk, "bob")
        let lines = (0..<20).flatMap { _ in desk.receive(Self.signal()) }
        #expect(lines.count == 5)
        desk.now = desk.now + 1_000
        #expect((0..<20).flatMap { _ in desk.receive(Self.signal()) }.count == 2)
    }

    @Test("SIG-1: refusals")
    func refused() {
        var desk = Self.desk()
        #expect(desk.receive(.signal(Signal(kind: .typing))) == ["send ERROR 4002"])
        #expect(desk.receive(Self.signal(.unspecified)) == [])
        var other = Desk.open()
        #expect(other.receive(Self.signal()) == ["send ERROR 4009"])
    }

    static func told(_ desk: inout Desk) -> [String] {
        desk.run {
            $0.signalled(
                Signal(
                    conversation: conversation, kind: .typing, ttlMs: 6_000, user: "bob"),
                now: $1)
        }
    }

    @Test("SIG-3 SIG-6: only a live session with nothing unsent is told, so many a second")
    func receiving() {
        var desk = Self.desk()
        #expect(Self.told(&desk) == ["send SIGNAL typing 6000 bob"])
        desk.run { $0.progressed(taken: 10, unsent: 1, outstanding: 1, now: $1) }
        #expect(Self.told(&desk) == [])
        desk.run { $0.progressed(taken: 11, unsent: 0, outstanding: 0, now: $1) }
        #expect((0..<50).flatMap { _ in Self.told(&desk) }.count == 19)
        desk.now = desk.now + 1_000
        #expect((0..<50).flatMap { _ in Self.told(&desk) }.count == 10)

        desk.receive(.appState(AppState(phase: .background, remainingMs: 60_000)))
        desk.now = desk.now + 1_000
        #expect(Self.told(&desk) == [])
        var hinted = Self.desk(live: false)
        #expect(Self.told(&hinted) == [])
        var without = Desk.open()
        #expect(Self.told(&without) == [])
    }

    // MARK: The client half

    private static func welcome(_ phone: inout Phone) {
        phone.run {
            $0.received(
                Frame(
                    .welcome(Welcome(version: 1, features: ["signal"], user: "anna")), request: 1),
                now: $1)
        }
    }

    static func phone() throws -> Phone {
        var phone = try Phone(signals: true)
        phone.run { $0.start(appState: AppState(phase: .foreground), now: $1) }
        phone.run { $0.connected(now: $1) }
        Self.welcome(&phone)
        return phone
    }

    @discardableResult
    static func hear(_ phone: inout Phone, _ body: FrameBody) -> [String] {
        phone.run { $0.received(Frame(body), now: $1) }
    }

    @Test("SIG-4: a signal of another user decays by itself, with or without a connection")
    func decay() throws {
        var phone = try Self.phone()
        #expect(Self.hear(&phone, Self.signal(ttl: 6_000, user: "bob")) == ["bob typing"])
        phone.now = phone.now + 4_000
        // Said again: nothing new, and it holds longer.
        #expect(Self.hear(&phone, Self.signal(ttl: 6_000, user: "bob")) == [])
        #expect(Self.hear(&phone, Self.signal(.present, ttl: 0, user: "bob")) == ["bob present"])
        phone.now = phone.now + 5_999
        #expect(phone.run { $0.deadlineReached(now: $1) } == [])
        phone.run { $0.sleep(now: $1) }
        #expect(phone.session.nextDeadline == phone.now + 1)
        phone.now = phone.now + 1
        #expect(phone.run { $0.deadlineReached(now: $1) } == ["bob typingEnded", "bob away"])
        #expect(phone.session.nextDeadline == nil)
    }

    @Test("SIG-4: whatever a server says, none holds for longer than the longest")
    func longest() throws {
        var phone = try Self.phone()
        Self.hear(&phone, Self.signal(ttl: .max, user: "bob"))
        phone.run { $0.sleep(now: $1) }
        let most = phone.session.configuration.limits.signalTimeMax
        #expect(phone.session.nextDeadline == phone.now + most)
    }

    @Test("an end is reported once; one that never began is not; the number held is bounded")
    func ends() throws {
        var limits = ClientLimits()
        limits.liveSignals = 2
        var phone = try Self.phone()
        phone.session.configuration.limits = limits
        Self.hear(&phone, Self.signal(user: "bob"))
        #expect(Self.hear(&phone, Self.signal(.typingEnded, user: "bob")) == ["bob typingEnded"])
        #expect(Self.hear(&phone, Self.signal(.typingEnded, user: "bob")) == [])
        #expect(Self.hear(&phone, Self.signal(user: "")) == [])
        for user in ["a", "b"] { Self.hear(&phone, Self.signal(user: user)) }
        #expect(Self.hear(&phone, Self.signal(user: "c")) == ["a typingEnded", "c typing"])
    }

    @Test("SIG-2: the same is said at most every 2 s, and only where it was agreed on")
    func sending() throws {
        var phone = try Self.phone()
        func say(_ kind: SignalKind) -> [String] {
            phone.run { $0.signal(kind, in: Self.conversation, now: $1) }
        }
        #expect(say(.typing) == ["send SIGNAL typing 0 "])
        #expect(say(.typing) == [])
        #expect(say(.typingEnded) == ["send SIGNAL typingEnded 0 "])
        phone.now = phone.now + 2_000
        #expect(say(.typingEnded) == ["send SIGNAL typingEnded 0 "])
        phone.run { $0.closed(now: $1) }
        #expect(say(.typing) == [])
    }

    @Test("SIG-2: who goes on looking says so again, also on the next connection, and then no more")
    func looking() throws {
        var phone = try Self.phone()
        let present = "send SIGNAL present 0 "
        func say(_ kind: SignalKind) -> [String] {
            phone.run { $0.signal(kind, in: Self.conversation, now: $1) }
        }
        func signals(after time: Milliseconds) -> [String] {
            phone.now = phone.now + time
            return phone.run { $0.deadlineReached(now: $1) }.filter { $0.contains("SIGNAL") }
        }
        #expect(say(.present) == [present])
        // What was not sent for being the same puts off nothing.
        phone.now = phone.now + 1_000
        #expect(say(.present) == [])
        #expect(phone.session.nextDeadline == phone.now + 3_000)
        #expect(signals(after: 2_999) == [])
        #expect(signals(after: 1) == [present])
        // Who types looks, too.
        #expect(say(.typing) == ["send SIGNAL typing 0 "])
        #expect(signals(after: 4_000) == [present])
        phone.run { $0.appStateChanged(AppState(phase: .background), now: $1) }
        #expect(signals(after: 4_000) == [])
        phone.run { $0.appStateChanged(AppState(phase: .foreground), now: $1) }
        #expect(signals(after: 0) == [present])
        phone.run { $0.closed(now: $1) }
        phone.run { $0.appStateChanged(AppState(phase: .inactive), now: $1) }
        phone.run { $0.appStateChanged(AppState(phase: .foreground), now: $1) }
        phone.run { $0.connected(now: $1) }
        Self.welcome(&phone)
        #expect(signals(after: 4_000) == [present])
        #expect(say(.away) == ["send SIGNAL away 0 "])
        #expect(signals(after: 4_000) == [])
    }
}
