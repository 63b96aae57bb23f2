import Feed
public import Model
import Wire

/// An open session that was challenged (SES-21): what it waits for, and what it holds back.
struct Reauthentication: Equatable, Sendable {
    enum Step: Equatable, Sendable {
        /// The shell draws nonce and token.
        case drawing
        case challenged
        case verifying(RequestTag)
        /// The identity token is good; the store is asked as soon as it is free.
        case verified
        case writing
    }

    /// An answer to a SYNC that waits.
    struct HeldPage: Equatable, Sendable {
        var purpose: PageInFlight.Purpose
        var after: UInt64
        var bytes: Int
    }

    var reason: ChallengeReason
    var step = Step.drawing
    var nonce: [UInt8] = []
    var sessionToken: [UInt8] = []
    /// The end of the nonce's lifetime, and of the connection if nothing was accepted by then.
    var deadline: Instant
    var refusals = 0
    var held: HeldPage?
}

/// Keeps what is rarely there out of the size of every session.
indirect enum Rare<Value: Equatable & Sendable>: Equatable, Sendable {
    case none
    case some(Value)

    var value: Value? {
        get { if case .some(let value) = self { value } else { nil } }
        set { self = newValue.map { .some($0) } ?? .none }
    }
}

// CHALLENGE on an open session (session.md): mutations and deltas pause, the socket stays, and
// for the wake path there is none.
extension Session {
    /// The backend has revoked this user's tokens and wants them to log in anew.
    public mutating func challenged(now: Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        challengeAgain(.revoked, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    /// APNs calls the device's push token dead: the app registers for another (SES-18).
    public mutating func tokenDied(now: Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        if phase == .open {
            sendError(.pushTokenRefused, request: 0, detail: "APNs: token is dead", &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    mutating func challengeAgain(
        _ reason: ChallengeReason, now: Instant, _ actions: inout [SessionAction]
    ) {
        guard phase == .open, reauthentication == nil else { return }
        tokenExpiresAt = nil
        var reauthentication = Reauthentication(
            reason: reason, deadline: now + limits.loginDeadline)
        // A page under way is read again: what it held may be older than the pause is long.
        if let page {
            switch page.purpose {
            case .push: break
            case .look, .answer, .peek:
                reauthentication.held = Reauthentication.HeldPage(
                    purpose: page.purpose, after: page.after, bytes: page.bytes)
            }
            self.page = nil
        }
        self.reauthentication = reauthentication
        if role == .app, appState == nil { appState = PendingAppState() }
        actions.append(.drawEntropy)
    }

    /// What `drawEntropy` asked for.
    public mutating func entropyDrawn(
        _ entropy: SessionEntropy, now: Instant
    ) -> [SessionAction] {
        guard phase == .open, let reason = reauthentication?.reason,
            reauthentication?.step == .drawing
        else { return [] }
        reauthentication?.step = .challenged
        reauthentication?.nonce = entropy.nonce
        reauthentication?.sessionToken = entropy.sessionToken
        let left = (reauthentication?.deadline ?? now).since(now)
        let body = Challenge(
            nonce: entropy.nonce, lifetimeMs: UInt32(clamping: left), reason: reason)
        return [.send(Frame(.challenge(body))), .log(.challenged(reason))]
    }

    /// AUTHENTICATE while the session is open.
    mutating func receivedReauthentication(
        _ body: Authenticate, now: Instant, _ actions: inout [SessionAction]
    ) {
        guard reauthentication?.step == .challenged, let key else {
            return close(.protocolViolation, now: now, &actions)
        }
        guard body.identityToken.utf8.count <= limits.identityTokenBytes else {
            return refuseReauthentication(.tokenInvalid, now: now, &actions)
        }
        let tag = nextTag()
        reauthentication?.step = .verifying(tag)
        actions.append(.verify(tag, identityToken: body.identityToken, app: key.app))
    }

    mutating func reauthenticationVerified(
        _ claims: IdentityClaims, now: Instant, wall: Timestamp,
        _ actions: inout [SessionAction]
    ) {
        guard let key, let reauthentication else { return }
        let refusal = check(
            claims, app: key.app.name, nonce: reauthentication.nonce,
            expiresAt: reauthentication.deadline, now: now, wall: wall)
        if let refusal { return refuseReauthentication(refusal, now: now, &actions) }
        // Another user logs in on a connection of his own (SES-14).
        guard UserID(claims.subject) == key.user else {
            actions.append(.log(.loginRefused(.deviceMismatch)))
            return close(.deviceMismatch, now: now, &actions)
        }
        self.reauthentication?.step = .verified
    }

    mutating func refuseReauthentication(
        _ code: Code, now: Instant, _ actions: inout [SessionAction]
    ) {
        actions.append(.log(.loginRefused(code)))
        let refusals = (reauthentication?.refusals ?? 0) + 1
        guard refusals < limits.loginRefusals else {
            return close(.tokenInvalid, now: now, &actions)
        }
        reauthentication?.refusals = refusals
        reauthentication?.step = .challenged
        sendError(code, request: 0, detail: "identity token refused", &actions)
    }

    /// Asks the store to accept it, when it is its turn.
    ///
    /// - Returns: whether it asked.
    mutating func writeReauthentication(
        _ key: SessionKey, now: Instant, _ actions: inout [SessionAction]
    ) -> Bool {
        guard phase == .open, let pending = reauthentication, pending.step == .verified else {
            return false
        }
        reauthentication?.step = .writing
        let request = Reauthenticate(
            session: key, newTokenHash: configuration.sha256(pending.sessionToken),
            dormantAfter: dormantAfter(now: now, isPaused: false))
        ask(.reauthenticate(request), .reauthenticate, &actions)
        return true
    }

    /// The new token is committed: a second WELCOME, and everything goes on.
    mutating func reauthenticated(
        _ answer: OpenedSession, now: Instant, wall: Timestamp,
        _ actions: inout [SessionAction]
    ) {
        guard phase == .open, let accepted = reauthentication else { return }
        reauthentication = nil
        tokenExpiresAt = now + answer.tokenLifetime
        mutationFloor = max(mutationFloor, answer.sync.mutationFloor)
        head = max(head, answer.sync.head)
        let body = welcome(answer, token: accepted.sessionToken, wall: wall)
        actions.append(.send(Frame(.welcome(body))))
        actions.append(.log(.reauthenticated))
        if let held = accepted.held {
            startPage(held.purpose, after: held.after, bytes: held.bytes, &actions)
        }
    }
}
