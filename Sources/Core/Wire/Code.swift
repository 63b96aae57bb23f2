internal import Model

/// Codes of ERROR, CLOSE and MUTATION_RESULT; Protocol/registry.md is checked against this.
///
/// 10xx temporary, 20xx credentials, 30xx sync, 40xx request, 50xx close. A code this side does
/// not know is handled by the retry class beside it.
public enum Code: UInt32, CaseIterable, Sendable {
    /// A fault of the server.
    case `internal` = 1000
    /// The server, or something it needs, is not available.
    case unavailable = 1001
    /// Too much in too short a time.
    case rateLimited = 1002
    /// The server gave up waiting.
    case timeout = 1003
    /// The store takes no more work now.
    case storageBusy = 1004

    /// Nothing but a login is taken now.
    case authRequired = 2000
    /// The credential is not one of this app, or not well formed.
    case tokenInvalid = 2001
    /// The credential is too old.
    case expired = 2002
    /// The nonce in the identity token is not the one asked for, or too old.
    case nonceExpired = 2003
    /// The session was ended by the user, the app's backend or the server.
    case revoked = 2004
    /// The user or app is suspended.
    case suspended = 2005
    /// The credential belongs to another device.
    case deviceMismatch = 2006
    /// The push registration is not of the app's configured topics; the session goes on.
    case pushTokenRefused = 2010

    /// The feed no longer reaches back to the cursor.
    case cursorTooOld = 3000
    /// The cursor belongs to another history.
    case epochChanged = 3001
    /// The cursor is above the feed's head.
    case cursorAhead = 3002
    /// An `applied` is above the feed's head.
    case ackAhead = 3003
    /// The object id is taken, by an object the asker holds already.
    case idInUse = 3010
    /// The object has a newer version than the one the change was based on.
    case versionConflict = 3012
    /// The mutation was answered too long ago for its result to be kept.
    case resultGone = 3013
    /// Another operation has taken the mutation's number: it needs a new one.
    case numberTaken = 3014

    /// The bytes are not a frame or body of this protocol.
    case malformed = 4000
    /// The body is larger than the limit.
    case tooLarge = 4001
    /// A field the request needs is absent.
    case missingField = 4002
    /// The user may not do this.
    case forbidden = 4003
    /// There is no such object within the user's reach.
    case notFound = 4004
    /// The object has been deleted.
    case gone = 4005
    /// A count is above its limit.
    case limit = 4006
    /// It contradicts what was done before.
    case conflict = 4007
    /// A frame type the receiver does not know, without the flag IGNORABLE.
    case unknownFrame = 4008
    /// A frame of a feature this connection did not agree on.
    case featureNotNegotiated = 4009
    /// The event is of no kind that the app is registered with.
    case unknownKind = 4010

    /// The sender ends the connection in order; from a client: it goes to sleep.
    case goingAway = 5000
    /// The drain's deadline is over.
    case drainDeadline = 5001
    /// A newer connection of the same app, user, device and role took over.
    case superseded = 5002
    /// No frame came in the promised time.
    case idle = 5003
    /// The peer broke a rule of the protocol.
    case protocolViolation = 5004
    /// No protocol version in common.
    case upgradeRequired = 5005
    /// No HELLO came in time.
    case helloTimeout = 5007
    /// The server holds as many connections as it may.
    case tooManyConnections = 5008
    /// The peer does not read.
    case slow = 5009

    /// The name sent in ERROR and used in logs: snake case.
    public var name: String { String(wordsOf: "\(self)", joinedBy: "_") }

    /// What a client may do that meets this code.
    public var retryClass: RetryClass {
        switch self {
        case .internal, .timeout: .retry
        case .unavailable, .rateLimited, .storageBusy: .retryAfter
        case .authRequired, .tokenInvalid, .expired, .nonceExpired, .revoked, .deviceMismatch:
            .reauthenticate
        case .suspended, .pushTokenRefused: .none
        case .cursorTooOld, .epochChanged, .cursorAhead, .ackAhead: .resync
        // The same mutation never succeeds; an ordinary sync shows what the server has instead.
        case .idInUse, .versionConflict, .resultGone, .numberTaken: .none
        case .malformed, .tooLarge, .missingField, .forbidden, .notFound, .gone, .limit,
            .conflict, .unknownFrame, .featureNotNegotiated, .unknownKind:
            .none
        case .goingAway, .drainDeadline, .idle, .helloTimeout, .slow: .retry
        case .superseded, .protocolViolation: .none
        case .tooManyConnections: .retryAfter
        case .upgradeRequired: .upgrade
        }
    }
}
