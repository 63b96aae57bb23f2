import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct ReauthenticationTests {
    static let entropy = SessionEntropy(
        sessionToken: Array(repeating: 7, count: 32), nonce: Array(repeating: 8, count: 32),
        seed: 9)

    /// 32 bytes of 8 in base64url.
    static func claims(_ change: (inout IdentityClaims) -> Void = { _ in }) -> IdentityClaims {
        LoginTests.claims {
            $0.nonce = "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
            change(&$0)
        }
    }

    /// An open session whose user's tokens were revoked.
    static func challenged(_ desk: Desk = Desk.open()) -> Desk {
        var desk = desk
        desk.run { $0.challenged(now: $1) }
        desk.answer(.done)
        desk.run { $0.entropyDrawn(entropy, now: $1) }
        return desk
    }

    static func verified(
        _ desk: inout Desk, _ claims: IdentityClaims = claims()
    ) -> [String] {
        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
        let tag = desk.tag
        return desk.run {
            $0.identityVerified(tag, claims, now: $1, wall: Timestamp(milliseconds: 4_000_000))
        }
    }

    @Test("SES-21: CHALLENGE on the open session; the wake path sees no socket; then all goes on")
    func revoked() {
        var desk = Desk.open()
        #expect(desk.run { $0.challenged(now: $1) } == ["draw", "store state dormant 0"])
        desk.answer(.done)
        #expect(desk.run { $0.entropyDrawn(Self.entropy, now: $1) } == ["send CHALLENGE revoked"])
        // A change meanwhile: nothing is told.
        #expect(desk.move(to: 12, .message) == [])
        #expect(Self.verified(&desk) == ["store reauthenticate dormant never"])
        #expect(
            desk.answer(Desk.opened(Desk.position(head: 12, applied: 10))) == [
                "send WELCOME anna", "read above 10, 16384 bytes",
            ])
        #expect(desk.give(Desk.page(10, [11, 12])) == ["send DELTA 10>12/12"])
        // The new token's nonce is used up.
        #expect(
            desk.receive(.authenticate(Authenticate(identityToken: "jwt"))).first
                == "send CLOSE 5004 applied 10")
    }

    @Test("SES-18: a token that APNs calls dead is told at once, and the session goes on")
    func tokenDied() {
        var desk = Desk.open()
        #expect(
            desk.run { $0.tokenDied(now: $1) }.first?.hasPrefix("send ERROR 2010") ?? false)
        #expect(desk.move(to: 12, .message) != [])
        // Before the login there is nobody to tell.
        var early = LoginTests.challenged()
        #expect(early.run { $0.tokenDied(now: $1) } == [])
    }

    @Test("SES-21: the end of the session token's lifetime challenges by itself, again and again")
    func expired() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello(sync: nil)), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 10, applied: 10), lifetime: 50_000))
        desk.give(Desk.page(10, []))
        #expect(desk.pass(49_999) == [])
        #expect(desk.pass(1) == ["draw", "store state dormant 0"])
        desk.answer(.done)
        desk.run { $0.entropyDrawn(Self.entropy, now: $1) }
        #expect(Self.verified(&desk) == ["store reauthenticate dormant never"])
        desk.answer(Desk.opened(Desk.position(head: 10, applied: 10), lifetime: 50_000))
        #expect(desk.pass(50_000).first == "draw")
    }

    @Test("SES-22: mutations and SYNCs wait, in order, and are answered afterwards")
    func paused() {
        var desk = Self.challenged()
        #expect(desk.receive(.mutate(Mutation(number: 4)), request: 2) == [])
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        #expect(desk.receive(.sync(sync), request: 3) == [])
        #expect(desk.receive(.sync(sync), request: 4) == ["send ERROR 4006 @4"])
        #expect(desk.receive(.ping(Ping()), request: 5) == ["send PONG @5"])
        #expect(Self.verified(&desk) == ["store reauthenticate dormant never"])
        #expect(
            desk.answer(Desk.opened(Desk.position(head: 10, applied: 10))) == [
                "send WELCOME anna", "store mutate 4",
            ])
        #expect(
            desk.answer(.mutated(MutationResult(number: 4), floor: 4)) == [
                "send RESULT 4=0 @2", "store sync applied 10",
            ])
    }

    @Test("a SYNC whose page is being read, or whose write is under way, is answered afterwards")
    func pausedInTheMiddle() {
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        var reading = Desk.open()
        reading.receive(.sync(sync), request: 3)
        let old = reading.tag
        reading = Self.challenged(reading)
        #expect(reading.give(Desk.page(10, [11]), to: old) == [])
        _ = Self.verified(&reading)
        #expect(
            reading.answer(Desk.opened(Desk.position(head: 10, applied: 10))) == [
                "send WELCOME anna", "read above 10, 16384 bytes",
            ])
        #expect(reading.give(Desk.page(10, [11])) == ["send DELTA 10>11/11 @3"])

        var writing = Desk.open()
        var carrying = sync
        carrying.mutations = [Mutation(number: 4)]
        writing.receive(.sync(carrying), request: 3)
        let written = writing.tag
        writing.run { $0.challenged(now: $1) }
        writing.run { $0.entropyDrawn(Self.entropy, now: $1) }
        #expect(
            writing.answer(
                .synced(Desk.position(head: 10, applied: 10, results: [])), to: written)
                == ["store state dormant 0"])
        writing.answer(.done)
        _ = Self.verified(&writing)
        #expect(
            writing.answer(Desk.opened(Desk.position(head: 10, applied: 10))) == [
                "send WELCOME anna", "read above 10, 16384 bytes",
            ])
    }

    @Test("SES-22: a token that is refused may be sent again, three times; another user is closed")
    func refused() {
        var desk = Self.challenged()
        #expect(Self.verified(&desk, Self.claims { $0.nonce = "x" }) == ["send ERROR 2003"])
        #expect(Self.verified(&desk, Self.claims { $0.expiresAt = 1 }) == ["send ERROR 2002"])
        #expect(
            Self.verified(&desk, Self.claims { $0.audience = [] }) == [
                "send CLOSE 2001 applied 10", "leave anna", "close 2001", "store end 10 within 0",
            ])
        var other = Self.challenged()
        #expect(
            Self.verified(&other, Self.claims { $0.subject = "bob" }).first
                == "send CLOSE 2006 applied 10")
        var suspended = Self.challenged()
        _ = Self.verified(&suspended)
        #expect(
            suspended.answer(.refused(.suspended, detail: "")).first
                == "send CLOSE 2005 applied 10")
    }

    @Test("SES-22: 60 s, absolute")
    func deadline() {
        var desk = Self.challenged()
        #expect(desk.pass(59_999) == [])
        desk.receive(.pong(Pong()))
        #expect(
            desk.pass(1) == [
                "send CLOSE 2000 applied 10", "leave anna", "close 2000", "store end 10 within 0",
            ])
    }

    // MARK: The client half

    @Test("a client answers, keeps what is open, and goes on")
    func client() throws {
        var phone = try Phone(mutations: 1)
        phone.run { $0.start(appState: AppState(phase: .foreground), now: $1) }
        phone.run { $0.connected(now: $1) }
        phone.run {
            $0.received(
                Frame(.welcome(Welcome(version: 1, sessionToken: [1], user: "anna")), request: 1),
                now: $1)
        }
        #expect(
            phone.run {
                $0.received(Frame(.challenge(Challenge(nonce: [1], lifetimeMs: 60_000))), now: $1)
            } == ["need identity token"])
        #expect(phone.run { $0.userRefresh(now: $1) } == [])
        #expect(
            phone.run { $0.identityToken("jwt", now: $1) } == ["send AUTHENTICATE jwt"])
        let lines = phone.run {
            $0.received(
                Frame(.welcome(Welcome(version: 1, sessionToken: [2], user: "anna"))), now: $1)
        }
        // The SYNC of HELLO is still open, and its mutation with it: neither is sent again.
        #expect(lines == ["send APP_STATE foreground", "send ACK 10"])
        #expect(phone.store.state.sessionToken == [2])
        #expect(phone.session.isOpen)
    }
}
