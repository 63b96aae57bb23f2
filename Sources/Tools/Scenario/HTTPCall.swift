import EventLoop
import FoundationEssentials

/// One HTTP/1.1 request to the backend or admin API, on a connection of its own. Loop-confined.
/// Only what the scenarios need: one request, one answer with `content-length`, then the end.
final class HTTPCall {
    enum Place: Equatable, Sendable {
        case tcp(host: String, port: UInt16)
        case socket(path: String)
    }

    struct Answer: Sendable {
        let status: Int
        let body: [UInt8]
    }

    static let answerBytesMax = 4 << 20

    private let completion: (Result<Answer, ScenarioError>) -> Void
    private let request: [UInt8]
    private var received: [UInt8] = []
    private var stream: EventLoop.Stream?
    private var timer: LoopTimer?
    private var isDone = false

    /// Sends; `completion` is called once, on the loop.
    @discardableResult
    init(
        loop: Loop, place: Place, method: String, path: String, headers: [(String, String)] = [],
        body: [UInt8] = [], milliseconds: UInt64 = 30_000,
        completion: @escaping (Result<Answer, ScenarioError>) -> Void
    ) {
        var head = "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if !body.isEmpty { head += "content-type: application/json\r\n" }
        head += "content-length: \(body.count)\r\n\r\n"
        request = Array(head.utf8) + body
        self.completion = completion
        let dialled: (Result<EventLoop.Stream, StreamError>) -> Void = { result in
            switch result {
            case .success(let stream): self.connected(stream)
            case .failure(let error): self.finish(.failure(ScenarioError("\(place): \(error)")))
            }
        }
        timer = loop.timer { self.finish(.failure(ScenarioError("\(place): no answer in time"))) }
        timer?.start(afterMilliseconds: milliseconds)
        switch place {
        case .tcp(let host, let port):
            EventLoop.Stream.connect(loop: loop, host: host, port: port, completion: dialled)
        case .socket(let path):
            EventLoop.Stream.connect(loop: loop, path: path, completion: dialled)
        }
    }

    private func connected(_ stream: EventLoop.Stream) {
        guard !isDone else { return stream.close() }
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in
            self.received += bytes
            if self.received.count > Self.answerBytesMax {
                self.finish(.failure(ScenarioError("the answer is too long")))
            }
        }
        stream.onEnd = { [unowned self] in self.ended() }
        stream.onFailure = { [unowned self] error in
            self.finish(.failure(ScenarioError("\(error)")))
        }
        stream.startReading()
        stream.write(request)
    }

    private func ended() {
        let separator = Array("\r\n\r\n".utf8)
        guard
            let end = received.indices.first(where: { received[$0...].starts(with: separator) }),
            let status = Self.status(received[..<end])
        else { return finish(.failure(ScenarioError("the answer is no HTTP"))) }
        finish(.success(Answer(status: status, body: Array(received[(end + 4)...]))))
    }

    private static func status(_ head: ArraySlice<UInt8>) -> Int? {
        let words = String(decoding: head, as: UTF8.self).split(separator: " ", maxSplits: 2)
        return words.count > 1 ? Int(words[1]) : nil
    }

    private func finish(_ result: Result<Answer, ScenarioError>) {
        guard !isDone else { return }
        isDone = true
        timer?.close()
        timer = nil
        stream?.close()
        stream = nil
        completion(result)
    }
}

/// What went wrong in a scenario, in words.
public struct ScenarioError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}
