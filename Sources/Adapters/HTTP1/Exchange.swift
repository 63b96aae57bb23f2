/// One TCP connection, known to the server from its acceptance to its close.
final class Connection {
    let descriptor: Int32
    let peerAddress: String
    /// The request being received or answered. The library has at most one at a time.
    var exchange: Exchange?
    /// Since when a whole request has been awaited of it.
    var awaitedSince: UInt64
    /// When to close it, in milliseconds of the monotonic clock; nil while the handler thinks.
    var deadline: UInt64?

    init(descriptor: Int32, peerAddress: String, now: UInt64, deadline: UInt64) {
        self.descriptor = descriptor
        self.peerAddress = peerAddress
        self.deadline = deadline
        awaitedSince = now
    }
}

extension Connection {
    /// Whether its next request is not here as a whole.
    var isAwaited: Bool {
        switch exchange?.phase {
        case nil, .head, .body, .discarding: true
        case .handling, .answering: false
        }
    }
}

/// One request, from its request line to the last byte of its answer.
final class Exchange {
    enum Phase {
        /// The request line is here, header lines are arriving.
        case head
        /// Body bytes are collected in `request`.
        case body(HTTPRequest)
        /// The body is too large: its bytes are thrown away so that the refusal can be read.
        case discarding(HTTPResponse, bytes: Int)
        /// The handler has the request.
        case handling
        /// The answer is the library's.
        case answering
    }

    let target: [UInt8]
    var phase = Phase.head
    private(set) var answer: HTTPResponse?
    /// What to do when the answer comes later than the handler's return; nil while the handler
    /// runs, and after the connection or the server has gone.
    var onLateAnswer: (() -> Void)?

    init(target: [UInt8]) {
        self.target = target
    }

    func respond(_ response: HTTPResponse) {
        answer = response
        let wake = onLateAnswer
        onLateAnswer = nil
        wake?()
    }
}
