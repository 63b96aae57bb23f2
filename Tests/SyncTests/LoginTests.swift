import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct LoginTests {
    @Test func oneRoundTripWithASessionToken() {
        var desk = Desk()
        #expect(
            desk.receive(.hello(Desk.hello()), request: 1) == [
                "store open token [9] dormant never with SYNC"
            ])
        #expect(
            desk.answer(Desk.opened(Desk.position(head: 3, applied: 0))) == [
                "enter anna", "send WELCOME anna @1", "limit 262144", "read above 0, 16384 bytes",
            ])
        #expect(desk.give(Desk.page(0, [1, 3])) == ["send DELTA 0>3/3 @1"])
        #expect(desk.receive(.ack(Ack(applied: 3))) == ["store ack 3 completes"])
        #expect(desk.answer(.acknowledged(head: 3)) == [])
    }

    static func claims(_ change: (inout IdentityClaims) -> Void = { _ in }) -> IdentityClaims {
        // 32 bytes of 6 in base64url.
        var claims = IdentityClaims(
            issuer: "backend", subject: "anna", audience: ["chess"],
            nonce: "BgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgY", expiresAt: 5_000)
        change(&claims)
        return claims
    }

    static func challenged() -> Desk {
        var desk = Desk()
        desk.receive(.hello(Desk.hello(token: [])), request: 1)
        return desk
    }

    @Test func firstLoginIsChallenged() {
        var desk = Desk()
        #expect(
            desk.receive(.hello(Desk.hello(token: [])), request: 1) == ["send CHALLENGE first @1"])
        #expect(
            desk.receive(.authenticate(Authenticate(identityToken: "jwt"))) == [
                "verify jwt of chess"
            ])
        let tag = desk.tag
        #expect(
            desk.run {
                $0.identityVerified(
                    tag, Self.claims(), now: $1, wall: Timestamp(milliseconds: 4_000_000))
            } == ["store open identity anna dormant never"])
        // The inline SYNC was dropped unread: only the head is looked at.
        #expect(
            desk.answer(Desk.opened(Desk.position(head: 3, applied: 0))) == [
                "enter anna", "send WELCOME anna @1", "limit 262144", "read above 3, 1 bytes",
            ])
        #expect(desk.give(Desk.page(3, [], head: 3)) == ["send SYNC_REQUEST 3 kinds 0"])
    }

    /// What is wrong with a value, and what comes of it.
    struct Fault<Value>: Sendable {
        let code: Code
        let change: @Sendable (inout Value) -> Void

        init(_ code: Code, _ change: @escaping @Sendable (inout Value) -> Void) {
            self.code = code
            self.change = change
        }
    }

    static let claimFaults: [Fault<IdentityClaims>] = [
        Fault(.tokenInvalid) { $0.audience = ["go"] },
        Fault(.tokenInvalid) { $0.issuer = "" },
        Fault(.tokenInvalid) { $0.subject = "" },
        Fault(.tokenInvalid) { $0.notBefore = 5_001 },
        Fault(.tokenInvalid) { $0.issuedAt = .max },
        Fault(.nonceExpired) { $0.nonce = "BgYG" },
        Fault(.nonceExpired) { $0.nonce = "BgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgc" },
        Fault(.expired) { $0.expiresAt = 4_880 },
        Fault(.expired) { $0.expiresAt = .min },
    ]

    @Test(arguments: claimFaults.indices)
    func aClaimThatDoesNotFit(_ index: Int) {
        let fault = Self.claimFaults[index]
        var desk = Self.challenged()
        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
        let tag = desk.tag
        let lines = desk.run {
            $0.identityVerified(
                tag, Self.claims(fault.change), now: $1, wall: Timestamp(milliseconds: 4_940_000))
        }
        #expect(lines == ["send ERROR \(fault.code.rawValue)"])
    }

    @Test func skewIsAllowed() {
        var desk = Self.challenged()
        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
        let tag = desk.tag
        let lines = desk.run {
            $0.identityVerified(
                tag,
                Self.claims {
                    $0.expiresAt = 4_881
                    $0.issuedAt = 5_000
                    $0.notBefore = 5_000
                }, now: $1, wall: Timestamp(milliseconds: 4_940_000))
        }
        #expect(lines == ["store open identity anna dormant never"])
    }

    @Test func threeRefusalsEndIt() {
        var desk = Self.challenged()
        for expected in [["send ERROR 2002"], ["send ERROR 2002"]] {
            desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
            let tag = desk.tag
            #expect(desk.run { $0.identityRefused(tag, .expired, now: $1) } == expected)
        }
        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
        let tag = desk.tag
        #expect(
            desk.run { $0.identityRefused(tag, .expired, now: $1) } == [
                "send CLOSE 2001 applied 0", "close 2001",
            ])
    }

    @Test func anOversizedTokenIsNotVerified() {
        var desk = Self.challenged()
        let token = String(repeating: "x", count: 8193)
        #expect(
            desk.receive(.authenticate(Authenticate(identityToken: token))) == ["send ERROR 2001"])
    }

    @Test(arguments: [
        (Code.expired, "expired"), (.tokenInvalid, "revoked"), (.revoked, "revoked"),
        (.deviceMismatch, "revoked"),
    ])
    func aBadSessionTokenIsChallenged(_ code: Code, _ reason: String) {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        #expect(
            desk.answer(.refused(code, detail: "")) == ["send CHALLENGE \(reason) @1"])
    }

    @Test func aRefusedIdentityEndsIt() {
        var desk = Self.challenged()
        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
        let tag = desk.tag
        desk.run {
            $0.identityVerified(
                tag, Self.claims(), now: $1, wall: Timestamp(milliseconds: 4_000_000))
        }
        #expect(
            desk.answer(.refused(.suspended, detail: "")) == [
                "send CLOSE 2005 applied 0", "close 2005",
            ])
    }

    @Test func deadlinesAreAbsolute() {
        var silent = Desk()
        #expect(silent.pass(9_999) == [])
        #expect(silent.pass(1) == ["send CLOSE 5007 applied 0", "close 5007"])

        var slow = Self.challenged()
        slow.pass(59_000)
        // Frames do not extend it.
        #expect(slow.receive(.ping(Ping()), request: 2) == ["send PONG @2"])
        #expect(slow.pass(999) == [])
        #expect(slow.pass(1) == ["send CLOSE 2000 applied 0", "close 2000"])
    }

    static let helloFaults: [Fault<Hello>] = [
        Fault(.upgradeRequired) { $0.versionMin = 2 },
        Fault(.upgradeRequired) { $0.versionMax = 0 },
        Fault(.missingField) { $0.app = "" },
        Fault(.missingField) { $0.device = nil },
        Fault(.missingField) { $0.role = .unspecified },
        Fault(.malformed) { $0.app = "a\nb" },
        Fault(.limit) { $0.sync?.mutations = Array(repeating: Mutation(), count: 33) },
    ]

    @Test(arguments: helloFaults.indices)
    func aHelloThatIsRefused(_ index: Int) {
        let fault = Self.helloFaults[index]
        let code = fault.code
        var hello = Desk.hello()
        fault.change(&hello)
        var desk = Desk()
        #expect(
            desk.receive(.hello(hello), request: 1) == [
                "send CLOSE \(code.rawValue) applied 0", "close \(code.rawValue)",
            ])
        #expect(desk.session.nextDeadline == nil)
    }

    @Test("an opening whose outcome is unknown is given up in the store, until it says so")
    func anUnknownOpeningIsAbandoned() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        let opening = desk.tag
        #expect(
            desk.run { $0.storeFailed(opening, .unavailable(""), now: $1) } == [
                "send CLOSE 1001 applied 0", "close 1001", "store abandon within 10000",
            ])
        desk.run { $0.closed(now: $1) }
        let abandoning = desk.tag
        desk.run { $0.storeFailed(abandoning, .unavailable(""), now: $1) }
        #expect(!desk.session.isFinished)
        #expect(desk.pass(1_000) == ["store abandon within 10000"])
        desk.answer(.done)
        #expect(desk.session.isFinished)
    }

    /// The session row was written; a step behind it met a conflict, or what cannot be read.
    @Test(arguments: [
        (StoreError.conflict(""), Code.storageBusy), (StoreError.corrupt(""), Code.internal),
    ])
    func anOpeningThatFailsBehindItsRowIsAbandoned(error: StoreError, code: Code) {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        #expect(
            desk.answer(.failed(error)) == [
                "send CLOSE \(code.rawValue) applied 0", "close \(code.rawValue)",
                "store abandon within 10000",
            ])
        desk.run { $0.closed(now: $1) }
        #expect(!desk.session.isFinished)
        desk.answer(.done)
        #expect(desk.session.isFinished)
    }

    @Test func aFailingStoreClosesTheOpening() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        let tag = desk.tag
        #expect(
            desk.run { $0.storeFailed(tag, .full(""), now: $1) } == [
                "send CLOSE 1004 applied 0", "close 1004",
            ])
        #expect(!desk.session.isFinished)
        desk.run { $0.closed(now: $1) }
        #expect(desk.session.isFinished)
    }

    /// The row that was committed for a socket that is gone is ended.
    @Test func theSocketGoesWhileTheStoreOpens() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        let tag = desk.tag
        desk.run { $0.closed(now: $1) }
        #expect(!desk.session.isFinished)
        #expect(
            desk.answer(Desk.opened(Desk.position(head: 3, applied: 2)), to: tag) == [
                "store end 2 within 10000"
            ])
        desk.answer(.done)
        #expect(desk.session.isFinished)
    }
}
