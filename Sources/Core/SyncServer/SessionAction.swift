public import Feed
public import Model
public import Wire

/// Names a question of a session; the answer brings it back. Unique within the session.
public struct RequestTag: Hashable, Sendable {
    public let number: UInt64

    public init(number: UInt64) { self.number = number }
}

/// What the shell carries out for a `Session`, in the order given.
public enum SessionAction: Equatable, Sendable {
    /// Encode the frame and write it.
    case send(Frame)
    /// Ask the store; answer with `storeAnswered` or `storeFailed`. Requests of one session are
    /// carried out in the order asked.
    indirect case store(RequestTag, StoreRequest)
    /// Read a page; answer with `pageRead` or `readFailed`.
    case read(RequestTag, PageQuery)
    /// Read history; answer with `historyRead` or `historyFailed`.
    case readHistory(RequestTag, HistoryQuery)
    /// Check signature, algorithm and key of an identity token; answer with `identityVerified` or
    /// `identityRefused`. The claims are the session's to check.
    case verify(RequestTag, identityToken: String, app: AppID)
    /// Find who gets signals of this user in this conversation; answer with `audienceFound` or
    /// `audienceFailed`.
    case findAudience(RequestTag, AppID, UserID, ConversationID)
    /// Hand it to the sessions of these users that are connected. May be dropped.
    case signal(Signal, app: AppID, to: [UserID])
    /// Draw new chance; answer with `entropyDrawn`.
    case drawEntropy
    /// Put this connection into the hub under the key, before the actions after this one.
    case enterHub(SessionKey)
    /// Take it out again, unless a newer generation has replaced it there.
    case leaveHub(SessionKey)
    /// Take no more bytes from the peer.
    case stopReading
    /// Go on reading.
    case resumeReading
    /// WELCOME was sent: the decoder's limits from here on.
    case raiseLimits(FrameLimits)
    /// Write what was sent, then close the socket, and answer with `closed`. The code is why, for
    /// the log; a CLOSE frame, where the peer gets one, was sent by an action before.
    case close(Code)
    case log(SessionEvent)
}

/// What is worth a line in the log. Never holds a token, a key or message text.
public enum SessionEvent: Equatable, Sendable {
    case challenged(ChallengeReason)
    case loginRefused(Code)
    case opened(SessionKey, clientName: String, clientVersion: String, wake: WakeID?)
    /// A challenged session was let go on.
    case reauthenticated
    /// The page after this `seq` was sent so often without an ACK that its entries are now sent
    /// one by one.
    case poisonPage(SessionKey, after: UInt64)
    /// Told and silent: the wake path sees no socket from here on.
    case suspected
    /// A suspect session covered what it was told, and counts again.
    case trusted
    /// A request was answered with ERROR.
    case refused(FrameType, Code)
    /// The store failed a request of this session.
    case storeFailed(StoreError)
    /// A client's digest met the server's at the same cursor.
    case digestCompared(own: DigestCounts, clients: DigestCounts)
    /// A frame the peer sent ended the connection.
    case closedByPeer(UInt32)
}

/// The claims of an identity token whose signature was found good (SES-9). Times are seconds
/// since 1970.
public struct IdentityClaims: Equatable, Sendable {
    public var issuer: String
    public var subject: String
    public var audience: [String]
    public var nonce: String
    public var expiresAt: Int64
    public var notBefore: Int64?
    public var issuedAt: Int64?

    public init(
        issuer: String, subject: String, audience: [String], nonce: String, expiresAt: Int64,
        notBefore: Int64? = nil, issuedAt: Int64? = nil
    ) {
        self.issuer = issuer
        self.subject = subject
        self.audience = audience
        self.nonce = nonce
        self.expiresAt = expiresAt
        self.notBefore = notBefore
        self.issuedAt = issuedAt
    }
}
