import EventLoop
import Glibc

/// What commands say to people and machines.
enum Terminal {
    /// How it went with what was printed.
    private struct Standing {
        /// The system's reason why standard output could not be written.
        var failure: Int32?
        /// What is lost with the output, and what to do about it.
        var loss: String?
    }

    private static let lock = Lock()
    private nonisolated(unsafe) static var standing = Standing()  // guarded by `lock`

    /// Writes to standard output, at once. Whether all of it arrived is judged at the end, by
    /// `settle`; after a failure nothing more is written, for it would stand after a gap.
    static func print(_ text: String, terminator: String = "\n") {
        lock.withLock {
            if standing.failure == nil { standing.failure = write(text + terminator, to: 1) }
        }
    }

    /// The same of what is said by the way, beside the work of the command, which goes on and
    /// succeeds without it.
    static func mention(_ text: String) {
        lock.withLock { _ = write(text + "\n", to: 1) }
    }

    /// Says what is lost if what is printed does not arrive. A closed pipe is no quiet end then.
    static func expectLoss(_ words: String) {
        Signals.ignoreFailedWrites()
        lock.withLock { standing.loss = words }
    }

    /// The exit status of a command, once it is known whether all that it printed arrived. A disk
    /// may tell only when the file is closed that it did not take it. A pipe whose reader went is
    /// no failure: the reader has what it wanted.
    static func settle(_ status: Int32, of command: String) -> Int32 {
        let (failure, loss) = lock.withLock {
            // What C's streams hold goes out, too. Of a standard output that was closed from the
            // beginning nothing is expected as long as nothing was printed.
            if fflush(nil) != 0 || close(1) != 0, standing.failure == nil, errno != EBADF {
                standing.failure = errno
            }
            return (standing.failure, standing.loss)
        }
        guard let failure, failure != EPIPE || loss != nil else { return status }
        let reason = String(cString: strerror(failure))
        complain(
            "\(command): standard output cannot be written: \(reason)"
                + (loss.map { "; \($0)" } ?? ""))
        return status == ExitStatus.success ? ExitStatus.cannotCreate : status
    }

    /// Writes to standard error, at once.
    static func complain(_ text: String) { write(text + "\n", to: 2) }

    /// Writes over the line of standard error, which is a terminal.
    static func rewrite(_ line: String) { write("\r\u{1B}[K\(line)", to: 2) }

    /// Whether a person looks at what is complained of.
    static var complainsToTerminal: Bool { isatty(2) == 1 }

    /// A word as a shell takes it for one.
    static func quoted(_ word: String) -> String {
        let isBare =
            !word.isEmpty
            && word.utf8.allSatisfy { byte in
                let scalar = Unicode.Scalar(byte)
                return scalar.properties.isAlphabetic && byte < 0x80
                    || "0123456789._-/:@%+,".unicodeScalars.contains(scalar)
            }
        if isBare { return word }
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }

    /// What stands behind the name of a command: operands and options, as a shell takes them. An
    /// operand that looks like an option stands behind `--`.
    static func line(_ operands: [String], _ options: String = "") -> String {
        let words = operands.map { " " + quoted($0) }.joined()
        let isPlain = !operands.contains { $0.hasPrefix("-") }
        return isPlain ? words + options : options + " --" + words
    }

    /// What a terminal would obey, or draw in another order than it is in, is shown as its number:
    /// names come from strangers. Lines stay lines.
    static func harmless(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isObeyed =
                switch scalar.properties.generalCategory {
                case .control: scalar != "\n"
                case .lineSeparator, .paragraphSeparator: true
                default: scalar.properties.isBidiControl
                }
            if isObeyed {
                let number = String(scalar.value, radix: 16, uppercase: true)
                shown.append(contentsOf: "\\u{\(number)}".unicodeScalars)
            } else {
                shown.append(scalar)
            }
        }
        return String(shown)
    }

    /// Whether a person looks at what is printed.
    static var isTerminal: Bool { isatty(1) == 1 }

    /// Colour only where a person sees it.
    static var hasColour: Bool { isatty(1) == 1 && getenv("NO_COLOR") == nil }

    /// The system's reason why not all of it was written; `nil`: it was.
    @discardableResult
    private static func write(_ text: String, to descriptor: Int32) -> Int32? {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let written = bytes[sent...].withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress, buffer.count)
            }
            if written >= 0 {
                sent += written
            } else if errno == EAGAIN {
                // Whoever shares the descriptor has made it one that does not wait.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return nil
    }
}

/// Exit statuses, as sysexits.h names them.
enum ExitStatus {
    static let success: Int32 = 0
    static let failure: Int32 = 1
    static let usage: Int32 = 64
    /// What was given is not what it should be.
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    /// An output exists or cannot be written.
    static let cannotCreate: Int32 = 73
    static let configuration: Int32 = 78

    /// For people; a command's own help says what it means there.
    static let meanings: [(status: Int32, meaning: String)] = [
        (success, "success"), (failure, "something was found wrong, or was refused"),
        (usage, "the command line is wrong"), (badData, "a file is not what it should be"),
        (unavailable, "the store or a port cannot be had"),
        (cannotCreate, "an output exists or cannot be written"),
        (configuration, "a setting is wrong"),
    ]
}
