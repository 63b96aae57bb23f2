import Foundation
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

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var received: [UInt8] = []
    private var hasEnded = false

    /// Starts the program: words, with `{name}` replaced.
    init(_ words: [String], replacing values: [String: String], log: URL) throws {
        // A driver that ends must not end the harness with it.
        signal(SIGPIPE, SIG_IGN)
        let filled = words.map { word in
            values.reduce(word) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
        }
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = filled
        process.standardInput = input
        process.standardOutput = output
        if !FileManager.default.fileExists(atPath: log.path) {
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        }
        let errors = try FileHandle(forWritingTo: log)
        errors.seekToEndOfFile()
        process.standardError = errors
        try process.run()
    }

    deinit { kill() }

    /// Ends it as a phone's system ends an app: at once, without a word.
    func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Sends a line and gives the answer.
    ///
    /// - Throws: a skip if the driver cannot do it.
    func tell(_ line: String, deadline: Moment) throws -> Answer {
        do {
            try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
        } catch {
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
        let descriptor = output.fileHandleForReading.fileDescriptor
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeSubrange(...end) }
                return Array(received[..<end])
            }
            guard !hasEnded else {
                throw CaseEnd.inconclusive("the driver ended without an answer to `\(line)`")
            }
            do {
                try BlockingSocket.wait(descriptor, for: Int16(POLLIN), deadline: deadline)
            } catch {
                throw CaseEnd.inconclusive("the driver does not answer `\(line)`")
            }
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count > 0 { received += bytes[..<count] } else { hasEnded = true }
        }
    }
}
