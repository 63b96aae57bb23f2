import EventLoop
import FoundationEssentials
import Model

/// An app's backend in a replay: asks each thing until it is answered, with the same bytes under
/// the same key, of another node where one does not answer. Loop-confined.
final class ReplayBackend {
    /// Milliseconds after which another node is asked.
    private static let patience: UInt64 = 3_000
    /// Milliseconds from one attempt to the next.
    private static let pause: UInt64 = 100

    private let loop: Loop
    private let places: [HTTPCall.Place]
    private let apiKey: String
    private let answered: (MessageID, Result<UInt64, ScenarioError>) -> Void
    /// The place that answered last.
    private var current = 0
    /// By sender: each one's lines leave one after the other, for their order is judged.
    private var waiting: [String: [OutgoingLine]] = [:]
    /// Attempts beyond the first.
    private(set) var repetitions = 0

    /// - Parameter answered: Told the position of each message that was published.
    init(
        loop: Loop, places: [HTTPCall.Place], apiKey: String,
        answered: @escaping (MessageID, Result<UInt64, ScenarioError>) -> Void
    ) {
        self.loop = loop
        self.places = places
        self.apiKey = apiKey
        self.answered = answered
    }

    /// Publishes behind what `sender` has published before.
    func publish(_ line: OutgoingLine, from sender: String) {
        let isFirst = waiting[sender] == nil
        waiting[sender, default: []].append(line)
        if isFirst { publishNext(from: sender) }
    }

    private func publishNext(from sender: String) {
        guard let line = waiting[sender]?.first else {
            waiting[sender] = nil
            return
        }
        struct New: Encodable {
            let id, sender: String
            let parts: [[String: String]]
            let push: [String: String]
        }
        let message = New(
            id: line.message.description, sender: sender,
            parts: [["mime_type": "text/plain", "text": line.text]],
            push: ["title": line.title, "body": line.text])
        call(
            "/v1/conversations/\(line.conversation)/messages", message,
            key: "publish-\(line.message)"
        ) { [weak self] answer in
            guard let self else { return }
            self.answered(line.message, Self.position(in: answer))
            self.waiting[sender]?.removeFirst()
            self.publishNext(from: sender)
        }
    }

    private static func position(in answer: HTTPCall.Answer) -> Result<UInt64, ScenarioError> {
        guard answer.status < 300,
            let message = try? JSONDecoder().decode(
                PublishedMessage.self, from: Data(answer.body))
        else {
            let said = String(decoding: answer.body, as: UTF8.self)
            return .failure(ScenarioError("\(answer.status) \(said)"))
        }
        return .success(message.position)
    }

    /// `then` is called once, with an answer that another attempt would not change.
    func call(
        _ path: String, _ body: some Encodable, key: String,
        then: @escaping (HTTPCall.Answer) -> Void
    ) {
        let bytes = (try? JSONEncoder().encode(body)).map { Array($0) } ?? []
        attempt(path, bytes, key: key, then: then)
    }

    private func attempt(
        _ path: String, _ body: [UInt8], key: String,
        then: @escaping (HTTPCall.Answer) -> Void
    ) {
        let place = current
        HTTPCall(
            loop: loop, place: places[place], method: "POST", path: path,
            headers: [("authorization", "Bearer \(apiKey)"), ("idempotency-key", key)],
            body: body, milliseconds: places.count > 1 ? Self.patience : 30_000
        ) { [weak self] result in
            guard let self else { return }
            if case .success(let answer) = result, answer.status < 500, answer.status != 429 {
                return then(answer)
            }
            // Several calls may fail on one place: only the first of them goes on to the next.
            if self.current == place { self.current = (place + 1) % self.places.count }
            self.repetitions += 1
            let again = self.loop.timer { [weak self] in
                self?.attempt(path, body, key: key, then: then)
            }
            again.start(afterMilliseconds: Self.pause)
        }
    }
}
