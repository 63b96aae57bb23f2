import Feed
import Model
import Wire

extension Session {
    /// How far a connection has come. What only one phase has is in its struct, and gone with it.
    enum Phase: Equatable, Sendable {
        indirect case awaitingHello(AwaitedHello)
        /// An identity token is awaited.
        indirect case challenged(Login)
        /// The shell checks one.
        indirect case verifying(Login, RequestTag)
        /// The store opens the session.
        indirect case opening(Opening)
        case open
        /// Nothing is received or sent any more; some of it is still to be written.
        indirect case ended(Closing)

        var isEnded: Bool { if case .ended = self { true } else { false } }

        /// HELLO, or a login, must have come before; `nil`: none is awaited.
        var loginDeadline: Instant? {
            switch self {
            case .awaitingHello(let awaited): awaited.deadline
            case .challenged(let login), .verifying(let login, _): login.deadline
            case .opening, .open, .ended: nil
            }
        }

        /// What is still to be written; `nil`: it has not ended.
        var closing: Closing? {
            get { if case .ended(let closing) = self { closing } else { nil } }
            set { if isEnded, let newValue { self = .ended(newValue) } }
        }
    }

    /// Before the first frame.
    struct AwaitedHello: Equatable, Sendable {
        /// The chance that a login takes.
        let entropy: SessionEntropy
        let deadline: Instant
    }

    /// A client that proves who its user is.
    struct Login: Equatable, Sendable {
        /// Without SYNC and session token: the client sends them again after WELCOME (SES-8).
        let hello: Hello
        /// The request number of HELLO.
        let request: UInt16
        let entropy: SessionEntropy
        /// Of the login, and of the nonce.
        let deadline: Instant
        var refusals = 0
    }

    /// A client whose session the store opens.
    struct Opening: Equatable, Sendable {
        let hello: Hello
        let request: UInt16
        let entropy: SessionEntropy
        /// It was asked for an identity token: it is not asked again.
        let isChallenged: Bool
    }

    /// What an ended session has still to have written, beside what it was writing.
    struct Closing: Equatable, Sendable {
        var end: EndSession?
        /// The store may have opened a session for this connection and could not say so.
        var abandoned: AbandonSession?

        var isWritten: Bool { end == nil && abandoned == nil }
    }
}
