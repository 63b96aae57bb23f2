import EventLoop
import FoundationEssentials
import Glibc

/// The program that stands for the client under test, told by lines on its standard input
/// (Protocol/conformance.md). Of one thread.
final class ClientDriver {
    /// What a driver answers a command with: one line of JSON.
    struct Answer: Decodable {
        struct Place: Decodable, Equatable {
            let epoch: String
            let seq: UInt64
        }

        struct Message: Decodable {
            let id: String
            let position: UInt64
            let text: String
            let deleted: Bool?
            let notice: Notice?
        }

        /// The notification that the client would show of a message.
        struct Notice: Decodable, Equatable {
            var title: String?
            var subtitle: String?
            var body: String?
            var sound: String?
            var thread: String?
            var category: String?
            var event: String?
            var object: String?
            var data: String?
        }

        struct Conversation: Decodable {
            let id: String
            /// Whether the conversation's own entry is held.
            let known: Bool
            let messages: [Message]
        }

        struct Signal: Decodable {
            let conversation: String
            let user: String
            let kind: String
        }

        struct Result: Decodable {
            let number: UInt64
            let code: UInt32
        }

        let error: String?
        let unsupported: String?
        let number: UInt64?
        let connected: Bool?
        let user: String?
        let cursor: Place?
        let pending: [UInt64]?
        let results: [Result]?
        let conversations: [Conversation]?
        let signals: [Signal]?
    }

    private let process: ChildProcess
    private var received: [UInt8] = []
    private var hasEnded = false

    /// Starts the program: words, with `{name}` replaced.
    init(_ words: [String], replacing values: [String: String], log: URL) throws {
        // A driver that ends must not end the harness with it.
        signal(SIGPIPE, SIG_IGN)
        let filled = words.map { word in
            values.reduce(word) { $0.replacing("{\($1.key)}", with: $1.value) }
        }
        process = try ChildProcess(
            filled, input: .pipe, output: .pipe, errors: .file(log.path))
    }

    deinit { kill() }

    /// Ends it as a phone's system ends an app: at once, without a word.
    func kill() { process.kill() }

    /// Sends a line and gives the answer.
    ///
    /// - Throws: a skip if the driver cannot do it.
    func tell(_ line: String, deadline: Moment) throws -> Answer {
        guard process.write(Array("\(line)\n".utf8)) else {
            throw CaseEnd.inconclusive("the driver has ended before `\(line)`")
        }
        let text = try answerLine(to: line, deadline: deadline)
        let answer: Answer
        do {
            answer = try JSONDecoder().decode(Answer.self, from: Data(text))
        } catch {
            let shown = String(decoding: text.prefix(200), as: UTF8.self)
            throw CaseEnd.inconclusive("the driver answered `\(line)` with `\(shown)`: \(error)")
        }
        if let reason = answer.unsupported { throw CaseEnd.skipped(reason) }
        if let error = answer.error {
            throw CaseEnd.inconclusive("the driver answered `\(line)` with an error: \(error)")
        }
        return answer
    }

    private func answerLine(to line: String, deadline: Moment) throws -> [UInt8] {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeSubrange(...end) }
                return Array(received[..<end])
            }
            guard !hasEnded else {
                throw CaseEnd.inconclusive("the driver ended without an answer to `\(line)`")
            }
            do {
                try BlockingSocket.wait(process.output, for: Int16(POLLIN), deadline: deadline)
            } catch {
                throw CaseEnd.inconclusive("the driver does not answer `\(line)`")
            }
            let some = process.read()
            received += some
            hasEnded = some.isEmpty
        }
    }
}
