public import Feed
public import Model
public import Wake

/// How it stands with one credential, for people.
public struct PushCredentialStatus: Equatable, Sendable {
    public var credential: CredentialKey
    /// A client certificate, or else a signing key.
    public var isCertificate: Bool
    /// Milliseconds until it is tried again; `nil`: it is not paused.
    public var pausedFor: Milliseconds?
    /// What APNs said, or why it cannot be used.
    public var pauseReason: String
    /// Tokens that APNs accepted before are called wrong: none is dropped.
    public var isTripped: Bool
    /// Connections of a class in a row that came to nothing, of the class with the most.
    public var failures: Int
    /// APNs' reason in the last GOAWAY; empty: none was given.
    public var lastGoAway: String
    /// Topics that APNs does not take from it.
    public var topics: [PushTopicStatus]
    /// One for each class, in their order.
    public var lanes: [PushLaneStatus]
}

/// A topic that rests.
public struct PushTopicStatus: Equatable, Sendable {
    public var topic: String
    /// Milliseconds until it is tried again.
    public var pausedFor: Milliseconds
    /// What APNs said.
    public var reason: String
}

/// How it stands with one class of pushes of a credential.
public struct PushLaneStatus: Equatable, Sendable {
    public var lane: PushClass
    public var connections: Int
    /// Streams in use, and allowed.
    public var open: Int
    public var allowed: Int
    /// Pushes that wait for a stream.
    public var waiting: Int
    /// Milliseconds of the stream that waits longest for its answer.
    public var oldestStream: Milliseconds
    /// Connections in a row that came to nothing.
    public var failures: Int
    /// Why nothing can be sent: how the last connection ended that never had an answer. Empty: a
    /// connection has had one since, or none was wanted.
    public var failure: String
    /// Milliseconds until another connection may be begun; `nil`: none is needed.
    public var nextTry: Milliseconds?
}
