public import Feed
public import Model
public import Wake

/// When an input came, by every clock that a decision goes by.
public struct PushMoment: Equatable, Sendable {
    /// Of connections, streams and pauses: monotonic.
    public var now: Instant
    /// Of provider tokens: monotonic too, and apart from `now` so that a test can let an hour
    /// pass for a token and no time for a connection.
    public var uptime: Instant
    /// Milliseconds since 1970 as this host has it: right or wrong.
    public var wall: UInt64
    /// Another number after each change of what may be claimed; `nil`: that is not known.
    public var changes: UInt64?

    public init(now: Instant, uptime: Instant, wall: UInt64, changes: UInt64? = nil) {
        self.now = now
        self.uptime = uptime
        self.wall = wall
        self.changes = changes
    }
}

/// Names a connection for as long as the pool lives.
public struct ConnectionID: Hashable, Sendable {
    /// Counts the credentials that the pool has had.
    let pool: UInt64
    public let lane: PushClass
    /// Counts the connections of a credential; for the log.
    public let number: UInt64
}

/// What happens to the pool.
public enum PushInput: Sendable {
    /// The credentials in force from now on.
    case credentials([PushCredentialRecord])
    /// Something may have become due in the store.
    case ring
    /// These devices have lost their push token: another user may have it by now.
    case detached([DetachedDevice])
    /// The time of the last `.wait` is over.
    case tick
    /// What came of a `.claim`.
    case claimed(PushClaim, Result<ClaimedPushes, StoreError>)
    /// What came of a `.finish`; `nil`: it is written down.
    case finished(PushFinish, StoreError?)
    /// What came of a `.keepToken`.
    case token(ProviderKey, TokenAnswer)
    /// What happened on a connection, in order.
    case connection(ConnectionID, [ConnectionEvent])
    /// Nothing more is to be sent.
    case stop
}

/// What happens on one connection.
public enum ConnectionEvent: Equatable, Sendable {
    /// The TLS handshake is over.
    case up
    /// Bytes came, whatever they meant.
    case heard
    /// APNs allows so many streams.
    case allows(streams: Int)
    /// The answer to a push is whole; `nil`: it has no status.
    case answered(tag: UInt64, PushResponse?)
    /// The stream ended without an answer; APNs may or may not have taken the push.
    case reset(tag: UInt64)
    /// APNs did nothing with these, in the order in which they were sent: a refused stream, or
    /// those above the last stream of a GOAWAY.
    case refused(tags: [UInt64])
    /// APNs takes no new streams here.
    case goAway(reason: String, code: UInt32)
    case pingAnswered
    /// A push could not be put on the connection now; nothing of it was sent.
    case notTaken(tag: UInt64)
    /// A push cannot be sent at all: our bug.
    case impossible(tag: UInt64, String)
    /// The socket holds more than it should, until it has caught up.
    case behind
    case caughtUp
    /// It is over. In good order: its last stream has ended, after APNs or we had asked for it.
    case ended(ConnectionLoss, inOrder: Bool)
    /// It could not be begun: with this credential no connection can be made.
    case unusable(String)
    /// It could not be begun: the credential's certificate is good at another time than this
    /// host's clock shows, which may be put right.
    case untimely(String)
}

/// Why a connection is over, for people.
public struct ConnectionLoss: Equatable, Sendable {
    /// For the metrics: one of a closed set.
    public var label: String
    /// For the log: what happened and, where somebody can do something, what.
    public var explanation: String

    public init(label: String, explanation: String) {
        self.label = label
        self.explanation = explanation
    }

    static let connectTimeout = Self(
        label: "connect-timeout", explanation: "no connection in time")
    static let shut = Self(label: "no-streams", explanation: "APNs allows no streams")
    static let silent = Self(label: "silent", explanation: "no answer to a PING")
}

/// What is to be done, in this order.
public enum PushAction: Sendable {
    /// Ask the store for pushes; `.claimed` tells. One at a time.
    case claim(PushClaim)
    /// Have the store write down what came of a push; `.finished` tells.
    case finish(PushFinish)
    /// Sign a provider token and have the store say which one is to be sent; `.token` tells. One
    /// at a time for each key.
    case keepToken(TokenRequest)
    /// Begin to connect, and tell what happens.
    case dial(ConnectionID, PushCredentialRecord)
    /// Put a push on a stream, with its provider token. What is put on a connection is sent when
    /// all actions are done.
    case send(ConnectionID, tag: UInt64, HeldPush)
    /// Give a stream up.
    case cancel(ConnectionID, tag: UInt64)
    case ping(ConnectionID)
    /// Close a connection; nothing more is to be told of it. With goodbye if it is up and all is
    /// well.
    case close(ConnectionID, saysGoodbye: Bool)
    /// Call `.tick` after so long, instead of when it was said before.
    case wait(Milliseconds)
    case tell(PushPlace, PushReport)
    /// The pool has stopped and does nothing any more: close all connections. So many pushes have
    /// no answer.
    case ended(leftToLease: Int)
}

/// A claim for the store.
public struct PushClaim: Equatable, Sendable {
    public let asked: Instant
    /// The most pushes that can be sent.
    public let streams: Int
    public let rooms: [PushRoom]
    /// Whether the store is to say how much is due.
    public let countsQueues: Bool
    /// `PushMoment.changes` when it was asked.
    let changes: UInt64?
}

/// What came of a push, for the store.
public struct PushFinish: Equatable, Sendable {
    public let push: HeldPush
    public let reply: PushReply
    /// The token is called wrong, and is not: the credential is.
    public let keepsToken: Bool

    /// The same as the store wants it.
    public var request: FinishPush {
        FinishPush(
            key: push.job.key, id: push.job.request.id, reply: reply, keepsToken: keepsToken,
            answeredID: push.answeredID)
    }
}
