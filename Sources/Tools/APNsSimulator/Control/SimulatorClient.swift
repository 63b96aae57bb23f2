internal import FoundationEssentials

/// Why a command of the control socket failed.
public enum SimulatorClientError: Error, Equatable, CustomStringConvertible {
    /// There is no simulator, or it went away.
    case socket(String)
    /// No answer in time.
    case timeout
    /// The simulator says why it does not do it.
    case refused(String)
    /// What it said is no answer.
    case malformed(String)

    public var description: String {
        switch self {
        case .socket(let text): "simulator: \(text)"
        case .timeout: "the simulator does not answer"
        case .refused(let text): "the simulator refuses: \(text)"
        case .malformed(let text): "the simulator's answer cannot be read: \(text)"
        }
    }
}

/// The control socket from another process (or thread): calls block until the answer is there.
/// One thread at a time.
public final class SimulatorClient {
    /// Commands sent before their answers are read: so few that neither side ever waits for the
    /// other to read.
    private static let window = 32
    private let socket: LineSocket
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()
    private var lastID: UInt64 = 0
    /// How long to wait for one answer.
    public var timeoutMilliseconds: Int32 = 30_000

    /// Connects to the control socket at a path.
    public init(path: String) throws(SimulatorClientError) {
        socket = try LineSocket(path: path)
    }

    /// Does one command.
    @discardableResult
    public func call(_ request: ControlRequest) throws(SimulatorClientError) -> ControlResponse {
        let response = try calls([request])[0]
        guard response.ok else { throw .refused(response.error ?? "") }
        return response
    }

    /// Does many commands in order, without waiting for each. A refused one is `ok` false in its
    /// place; the others are done all the same.
    public func calls(
        _ requests: [ControlRequest]
    ) throws(SimulatorClientError) -> [ControlResponse] {
        var responses: [ControlResponse] = []
        responses.reserveCapacity(requests.count)
        var sent = 0
        while responses.count < requests.count {
            while sent < requests.count, sent - responses.count < Self.window {
                try send(requests[sent])
                sent += 1
            }
            responses.append(try receive())
        }
        return responses
    }

    private func send(_ request: ControlRequest) throws(SimulatorClientError) {
        var request = request
        lastID += 1
        request.id = lastID
        guard let data = try? encoder.encode(request) else { throw .malformed("request") }
        try socket.write(Array(data))
    }

    fileprivate func receive() throws(SimulatorClientError) -> ControlResponse {
        guard let response = try next(timeoutMilliseconds: timeoutMilliseconds) else {
            throw .timeout
        }
        return response
    }

    private func next(
        timeoutMilliseconds: Int32
    ) throws(SimulatorClientError) -> ControlResponse? {
        guard let line = try socket.line(timeoutMilliseconds: timeoutMilliseconds) else {
            return nil
        }
        do {
            return try decoder.decode(ControlResponse.self, from: Data(line))
        } catch {
            throw .malformed(ErrorWords.of(error))
        }
    }

    /// Sends a line as it is and gives its answer: for people and shells.
    public func exchange(line: String) throws(SimulatorClientError) -> String {
        try socket.write(Array(line.utf8.filter { $0 != UInt8(ascii: "\n") }))
        guard let answer = try nextLine(timeoutMilliseconds: timeoutMilliseconds) else {
            throw .timeout
        }
        return answer
    }

    /// The next line as it is: after `exchange` has asked for events. `nil`: none came in time.
    public func nextLine(timeoutMilliseconds: Int32) throws(SimulatorClientError) -> String? {
        try socket.line(timeoutMilliseconds: timeoutMilliseconds).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Turns this connection into a stream of events above `after`; no more commands on it.
    ///
    /// - Parameters:
    ///   - kinds: only these; `nil`: all.
    ///   - isLossless: the simulated devices wait for this reader rather than that it misses one;
    ///     if that does not help, the stream ends.
    public func subscribe(
        after: UInt64 = 0, kinds: [SimulatorEvent.Kind]? = nil, isLossless: Bool = false
    ) throws(SimulatorClientError) {
        var request = ControlRequest(.events)
        request.after = after
        request.kinds = kinds
        request.lossless = isLossless
        try call(request)
    }

    /// The next event of a subscription; `nil`: none came in time.
    ///
    /// - Returns: also how many events before it are no longer kept by the simulator.
    public func event(
        timeoutMilliseconds: Int32
    ) throws(SimulatorClientError) -> (event: SimulatorEvent, lost: UInt64)? {
        guard let response = try next(timeoutMilliseconds: timeoutMilliseconds) else { return nil }
        guard let event = response.event else { throw .malformed("no event") }
        return (event, response.lost ?? 0)
    }
}
