public import EventLoop
internal import Foundation

/// The control socket for a program with a loop: answers and events come by closures.
/// Loop-confined. Use one for commands and another one for events.
public final class SimulatorConnection {
    /// Bytes that wait to be sent, at most.
    private static let unsentMax = 16 << 20
    private static let lineBytesMax = 64 << 20

    /// Called once when the connection is gone; commands without an answer get none.
    public var onEnd: (String) -> Void = { _ in }
    /// An event of a subscription, and how many before it are no longer kept.
    public var onEvent: (SimulatorEvent, UInt64) -> Void = { _, _ in }

    private let stream: EventLoop.Stream
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()
    private var waiting: [UInt64: (ControlResponse) -> Void] = [:]
    private var lastID: UInt64 = 0
    private var pending: [UInt8] = []
    private var searched = 0
    private var isClosed = false

    /// Connects; `completion` is called once, in a later turn.
    public static func connect(
        loop: Loop, path: String,
        completion: @escaping (Result<SimulatorConnection, StreamError>) -> Void
    ) {
        EventLoop.Stream.connect(loop: loop, path: path) { result in
            completion(result.map { SimulatorConnection(stream: $0) })
        }
    }

    private init(stream: EventLoop.Stream) {
        self.stream = stream
        stream.onBytes = { [weak self] bytes in self?.received(bytes) }
        stream.onEnd = { [weak self] in self?.end("the simulator has closed the connection") }
        stream.onFailure = { [weak self] error in self?.end("\(error)") }
        stream.startReading()
    }

    deinit { if !isClosed { stream.close() } }

    /// Commands whose answers are awaited.
    public var unanswered: Int { waiting.count }

    /// Sends a command; `answered` gets its answer, also a refusal.
    ///
    /// - Returns: false: the connection is gone, or the simulator takes nothing more.
    @discardableResult
    public func call(
        _ request: ControlRequest, answered: @escaping (ControlResponse) -> Void = { _ in }
    ) -> Bool {
        guard !isClosed, stream.unsentBytes < Self.unsentMax else { return false }
        var request = request
        lastID += 1
        request.id = lastID
        guard var line = try? encoder.encode(request) else { return false }
        line.append(UInt8(ascii: "\n"))
        waiting[lastID] = answered
        return line.withUnsafeBytes { stream.write($0) }
    }

    /// Turns the connection into a stream of events above `after`.
    @discardableResult
    public func subscribe(after: UInt64 = 0) -> Bool {
        var request = ControlRequest(.events)
        request.after = after
        return call(request)
    }

    /// Ends it without `onEnd`.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        waiting = [:]
        stream.close()
    }

    private func end(_ text: String) {
        guard !isClosed else { return }
        close()
        onEnd(text)
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        pending += bytes
        var start = 0
        var from = searched
        while !isClosed, let end = pending[from...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = Data(pending[start..<end])
            start = end + 1
            from = start
            take(line)
        }
        guard !isClosed else { return }
        pending.removeFirst(start)
        searched = pending.count
        if pending.count > Self.lineBytesMax { end("a line without end") }
    }

    private func take(_ line: Data) {
        let response: ControlResponse
        do {
            response = try decoder.decode(ControlResponse.self, from: line)
        } catch {
            return end("an answer that cannot be read: \(error)")
        }
        if let event = response.event {
            onEvent(event, response.lost ?? 0)
        } else if let id = response.id, let answered = waiting.removeValue(forKey: id) {
            answered(response)
        }
    }
}
