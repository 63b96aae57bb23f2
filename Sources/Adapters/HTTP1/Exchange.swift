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
    /// Since when its answer has not moved on by `HTTPLimits.progressBytes`, as far as was looked.
    private var standstill: (taken: Int, since: UInt64)?

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

    var isAnswering: Bool {
        if case .answering = exchange?.phase { true } else { false }
    }

    /// Since when its client has taken next to nothing of the answer that is under way.
    func standsStill(now: UInt64) -> UInt64 {
        // What the kernel still holds is not taken.
        let taken = (exchange?.sending?.handedOver ?? 0) - ListeningSocket.unsentBytes(descriptor)
        if let standstill, taken < standstill.taken + HTTPLimits.progressBytes {
            return standstill.since
        }
        standstill = (taken, now)
        return now
    }

    /// Its request is over, and what the next one's answer does is another matter.
    func endExchange() {
        exchange?.end()
        exchange = nil
        standstill = nil
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
    private(set) var isAnswered = false
    /// Here until the library has it.
    private var answer: HTTPResponse?
    /// What the library sends.
    var sending: SentBody?
    /// What to do when the answer comes later than the handler's return; nil while the handler
    /// runs, and after the connection or the server has gone.
    var onLateAnswer: (() -> Void)?
    private var onTaken: (() -> Void)?
    private var isOver = false

    init(target: [UInt8]) {
        self.target = target
    }

    func respond(_ response: HTTPResponse, taken: (() -> Void)? = nil) {
        isAnswered = true
        if isOver {
            taken?()
            return
        }
        answer = response
        onTaken = taken
        let wake = onLateAnswer
        onLateAnswer = nil
        wake?()
    }

    func takeAnswer() -> HTTPResponse? {
        defer { answer = nil }
        return answer
    }

    /// The answer was sent, or nobody takes it any more. Again does nothing.
    func end() {
        isOver = true
        onLateAnswer = nil
        answer = nil
        sending = nil
        let taken = onTaken
        onTaken = nil
        taken?()
    }
}

/// The body of an answer, which the library asks for a part at a time: there is one copy of it, and
/// it is known how far it got.
final class SentBody {
    private let bytes: [UInt8]
    /// Bytes that the library was given.
    private(set) var handedOver = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Bytes given from `position` on.
    func hand(from position: Int, to room: UnsafeMutableRawBufferPointer) -> Int {
        guard bytes.indices.contains(position) else { return 0 }
        let count = min(room.count, bytes.count - position)
        bytes.withUnsafeBytes { all in
            room.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: all[position..<position + count]))
        }
        handedOver = position + count
        return count
    }
}
