public import Feed
public import Model
public import Wake

/// What a report is about.
public struct PushPlace: Equatable, Sendable {
    public var credential: CredentialKey
    public var host: String
    public var port: UInt64
    /// `nil`: the credential as a whole.
    public var lane: PushClass?
}

/// What people should know: for the log and the metrics.
public enum PushReport: Equatable, Sendable {
    case credential(CredentialReport)
    /// Of a connection, by its number.
    case connection(UInt64, ConnectionReport)
    case push(HeldPush, PushNews)
}

/// How it goes with a credential.
public enum CredentialReport: Equatable, Sendable {
    /// Told with the place that it has from now on, or had last.
    case changed(isRemoved: Bool)
    /// Nothing is sent for so long; `nil`: until it is changed.
    case paused(reason: String, Milliseconds?)
    case resumed
    case topicPaused(String, reason: String, Milliseconds)
    case topicResumed(String)
    case breakerTripped(reason: String)
    case breakerReset
    /// APNs calls a provider token expired that was just made.
    case tokenRefusedYoung
    case clockWrong(minutesAhead: Int64)
    /// A class gets a connection more for its load; there will be so many.
    case connectionAdded(Int)
}

/// How it goes with a connection.
public enum ConnectionReport: Equatable, Sendable {
    case connected
    /// Another one is to take its place.
    case replaced(reason: String)
    case goAway(reason: String, code: UInt32, open: Int)
    /// APNs did nothing with so many pushes, and the connection goes on. Nothing is sent on it for
    /// so long, if that is longer than before.
    case refused(streams: Int, wait: Milliseconds?)
    /// It never came about; another may be tried after so long.
    case notMade(ConnectionLoss, retry: Milliseconds)
    /// It took pushes, and is over; another may be made after so long.
    case lost(ConnectionLoss, hasAnswered: Bool, retry: Milliseconds)
    /// It is over, and took no more pushes anyway.
    case left(ConnectionLoss)
}

/// What came of a push.
public enum PushNews: Equatable, Sendable {
    case answered(PushResponse, PushAnswer, isLate: Bool)
    /// It was written on this connection, and nothing came.
    case unanswered(connection: UInt64)
    /// It never left.
    case unsent
    /// It cannot be sent: our bug.
    case impossible(String)
}
