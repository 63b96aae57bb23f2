import Crypto
import Wire

/// How the bytes of a case get to the server: framing must not see a difference (FRM-1).
enum Delivery: String, CaseIterable {
    /// Each send is one write.
    case whole
    /// Each byte is a write and a TLS record of its own; of long sends the first and the last.
    case split
    /// Sends wait until the case reads: as many frames as possible in one write.
    case glued
}

/// What came from the server.
enum Arrival {
    case frame(ReceivedFrame)
    /// The server has ended the connection.
    case end
}

/// One connection to the server under test, as bytes and frames. Steps throw `CaseEnd`.
/// Of one thread.
final class Peer {
    /// Bytes at each end of a long send that go one by one.
    static let singleBytes = 600

    private let socket: SecureSocket
    private let delivery: Delivery
    private let clock: CaseClock
    private let transcript: Transcript
    private let name: String
    private var unsent: [UInt8] = []
    private var received: [UInt8] = []
    private(set) var hasEnded = false
    /// Whether WELCOME has come: the limits are higher from then on (FRM-13).
    private(set) var isWelcome = false
    /// What the server's frames broke of framing.md, as far as it does not keep a case from
    /// going on; one case looks at them.
    private(set) var anomalies: [String] = []
    /// Frames of the server that were longer than they need be: not canonical (FRM-30).
    private(set) var loose = 0
    private(set) var frames = 0
    /// Frames that `expect` stepped over: told by the server on its own account.
    var passed: [ReceivedFrame] = []
    private var watch: WatchedConnection?

    init(
        socket: SecureSocket, delivery: Delivery, clock: CaseClock, transcript: Transcript,
        name: String, watch: TrialWatch? = nil
    ) {
        self.socket = socket
        self.delivery = delivery
        self.clock = clock
        self.transcript = transcript
        self.name = name
        self.watch = watch.map { WatchedConnection($0, name: name) }
    }

    deinit { socket.cut() }

    // MARK: Sending

    func send(_ body: FrameBody, request: UInt16 = 0) throws {
        transcript.add(name, "-> \(body.type.name)\(request == 0 ? "" : " [request \(request)]")")
        watch?.sent(body, request: request)
        try write(Frame(body, request: request).encoded)
        if case .welcome = body { isWelcome = true }
    }

    func send(bytes given: some Sequence<UInt8>) throws {
        let bytes = Array(given)
        let shown = bytes.prefix(24).map { Hex.encode([$0]) }.joined(separator: " ")
        watch?.sentBytes()
        transcript.add(name, "-> \(bytes.count) bytes: \(shown)\(bytes.count > 24 ? " ..." : "")")
        try write(bytes)
    }

    /// Sends bytes to a server that may have ended the connection already.
    func sendAnyway(bytes: [UInt8]) throws {
        do { try send(bytes: bytes) } catch is TransportError {}
    }

    private func write(_ bytes: [UInt8]) throws {
        do {
            switch delivery {
            case .whole: try socket.write(bytes, deadline: clock.stepDeadline)
            case .split: try writeSplit(bytes)
            case .glued: unsent += bytes
            }
        } catch TransportError.broken(let reason) {
            // Why it ended is more than that it did: CLOSE may wait to be read.
            transcript.add(name, "the server takes no more: \(reason)")
        }
    }

    private func writeSplit(_ bytes: [UInt8]) throws {
        let deadline = clock.stepDeadline
        var place = 0
        while place < bytes.count {
            let isSingle = place < Self.singleBytes || place >= bytes.count - Self.singleBytes
            let end = isSingle ? place + 1 : bytes.count - Self.singleBytes
            try socket.write(bytes[place..<end], deadline: deadline)
            place = end
        }
    }

    private func flush() throws {
        guard !unsent.isEmpty else { return }
        let bytes = unsent
        unsent = []
        do {
            try socket.write(bytes, deadline: clock.stepDeadline)
        } catch TransportError.broken(let reason) {
            transcript.add(name, "the server takes no more: \(reason)")
        }
    }

    // MARK: Receiving

    /// The next frame or the end; `nil`: neither came in time.
    func next(within time: Duration? = nil) throws -> Arrival? {
        try flush()
        let deadline = try clock.deadline(within: time)
        while true {
            if let frame = try takeFrame() {
                transcript.add(name, "<- \(frame.summary)")
                return .frame(frame)
            }
            if hasEnded { return .end }
            do {
                guard let bytes = try socket.read(deadline: deadline) else {
                    hasEnded = true
                    transcript.add(name, "<- end")
                    if !received.isEmpty { anomalies.append("the stream ends inside a frame") }
                    received = []
                    return .end
                }
                received += bytes
            } catch TransportError.timedOut {
                try clock.check()
                return nil
            }
        }
    }

    private func takeFrame() throws -> ReceivedFrame? {
        guard received.count >= Frame.headerBytes else { return nil }
        let length = Int(received[0]) << 16 | Int(received[1]) << 8 | Int(received[2])
        let limits: FrameLimits = isWelcome ? .afterWelcome : .beforeWelcome
        guard received.count >= Frame.headerBytes + length else { return nil }
        let bytes = Array(received[..<(Frame.headerBytes + length)])
        received.removeFirst(bytes.count)
        let frame = ReceivedFrame(bytes, limits: limits)
        frames += 1
        judge(frame, length: length, limits: limits)
        if case .welcome = frame.body { isWelcome = true }
        watch?.came(frame)
        return frame
    }

    private func judge(_ frame: ReceivedFrame, length: Int, limits: FrameLimits) {
        let allowed = FrameFlags.allowed.rawValue
        if frame.flags & ~allowed != 0 { anomalies.append("\(frame.name): flags \(frame.flags)") }
        if frame.reserved != 0 { anomalies.append("\(frame.name): the reserved byte is not 0") }
        if length > limits.bodyBytes { anomalies.append("\(frame.name): \(length) bytes") }
        if let problem = frame.problem { anomalies.append("\(frame.name): \(problem)") }
        if FrameType(rawValue: frame.type) == nil, !frame.isIgnorable {
            anomalies.append("\(frame.name) is unknown and not to be ignored")
        }
        if frame.hasMore, frame.request == 0 {
            anomalies.append("\(frame.name): MORE without a request")
        }
        if let body = frame.body, Frame(body).encoded.count != frame.bytes.count { loose += 1 }
    }

    /// Takes frames until one of the type comes, and gives its body.
    ///
    /// On the way PING is answered; what a server may tell at any time (DELTA and SIGNAL without
    /// a request, SYNC_REQUEST, DRAIN) goes to `passed`. Anything else fails the case.
    ///
    /// - Parameter request: the number it must carry; `nil`: any.
    @discardableResult
    func expect<Body>(
        _ kind: Kind<Body>, request: UInt16? = nil, within time: Duration? = nil
    ) throws -> Body {
        while true {
            guard let arrival = try next(within: time) else {
                throw CaseEnd.failed("\(kind.type.name) was expected, nothing came in time")
            }
            guard case .frame(let frame) = arrival else {
                throw CaseEnd.failed(
                    "\(kind.type.name) was expected, the server ended the connection")
            }
            if let body = frame.body.flatMap(kind.take) {
                if request == nil || frame.request == request { return body }
                if frame.request != 0 || kind.type == .mutationResult || !Self.isTold(frame) {
                    throw CaseEnd.failed(
                        "\(kind.type.name) of request \(request ?? 0) was expected, "
                            + "it came as \(frame.request)")
                }
            }
            guard try stepOver(frame) else {
                throw CaseEnd.failed("\(kind.type.name) was expected, \(frame.summary) came")
            }
        }
    }

    /// Whether the frame is one that may come at any time; it is answered or kept.
    private func stepOver(_ frame: ReceivedFrame) throws -> Bool {
        if case .ping = frame.body {
            try send(.pong(Pong(nextMs: 60_000)), request: frame.request)
            return true
        }
        if Self.isTold(frame) {
            passed.append(frame)
            return true
        }
        return frame.body == nil && frame.problem == nil && frame.isIgnorable
    }

    private static func isTold(_ frame: ReceivedFrame) -> Bool {
        switch frame.body {
        case .delta, .signal: frame.request == 0
        case .syncRequest, .drain: true
        default: false
        }
    }

    /// CLOSE with this code, nothing after it, and the end of the connection.
    @discardableResult
    func expectClose(_ code: Code, within time: Duration? = nil) throws -> Close {
        let close = try expect(.close, within: time)
        guard close.code == code.rawValue else {
            throw CaseEnd.failed(
                "CLOSE \(code.rawValue) (\(code.name)) was expected, CLOSE \(close.code) came")
        }
        try expectEnd(after: "CLOSE")
        return close
    }

    /// The connection ends and nothing comes before.
    func expectEnd(after what: String) throws {
        switch try next() {
        case .end: return
        case .frame(let frame): throw CaseEnd.failed("\(frame.summary) came after \(what)")
        case nil: throw CaseEnd.failed("the connection was not closed after \(what)")
        }
    }

    @discardableResult
    func expectError(
        _ code: Code, request: UInt16, within time: Duration? = nil
    ) throws -> ErrorFrame {
        let error = try expect(.error, request: request, within: time)
        guard error.code == code.rawValue else {
            throw CaseEnd.failed(
                "ERROR \(code.rawValue) (\(code.name)) was expected, ERROR \(error.code) came")
        }
        return error
    }

    /// What comes within the time; PING is answered and left out. The connection's end fails.
    func frames(during time: Duration) throws -> [ReceivedFrame] {
        let end = ContinuousClock.now.advanced(by: time)
        var found: [ReceivedFrame] = []
        while ContinuousClock.now < end {
            guard let arrival = try next(within: ContinuousClock.now.duration(to: end)) else {
                break
            }
            guard case .frame(let frame) = arrival else {
                throw CaseEnd.failed("the server ended the connection")
            }
            if case .ping = frame.body {
                try send(.pong(Pong(nextMs: 60_000)), request: frame.request)
            } else {
                found.append(frame)
            }
        }
        return found
    }

    /// Nothing comes within the time, beside PING.
    func expectNothing(for time: Duration) throws {
        if let frame = try frames(during: time).first {
            throw CaseEnd.failed("\(frame.summary) came, nothing was expected")
        }
    }

    /// PING and its PONG: the server has taken everything sent so far and the connection lives.
    func expectAlive() throws {
        let request: UInt16 = 60_001
        try send(.ping(Ping(nextMs: 60_000)), request: request)
        try expect(.pong, request: request)
    }

    func close() {
        try? flush()
        socket.close()
    }

    /// Ends the connection without a word.
    func cut() {
        try? flush()
        socket.cut()
    }
}
