import EventLoop
import Glibc

/// Writes lines to a descriptor from a thread of its own, so that nobody waits for whoever reads
/// them: a pipe that is not read, a terminal that was stopped, a full disk.
///
/// Lines that find too many waiting are dropped, and a line says so when the next can be written.
final class LogWriter: Sendable {
    /// Lines that may wait.
    static let linesMax = 4096

    private enum Message: Sendable {
        case line([UInt8])
        /// Everything before it is written.
        case flush(Latch)
    }

    private let descriptor: Int32
    private let lock = Lock()
    /// `nil`: no line was written yet, or there can be no thread. Guarded by `lock`.
    private nonisolated(unsafe) var thread: (LoopThread, Mailbox<Message>)?
    private let dropped = Counter()
    private let render: @Sendable (LogLevel, String, [LogField]) -> [UInt8]

    /// - Parameter render: How the writer's own lines look.
    init(
        descriptor: Int32, render: @escaping @Sendable (LogLevel, String, [LogField]) -> [UInt8]
    ) {
        self.descriptor = descriptor
        self.render = render
    }

    deinit { thread?.0.stop() }

    func write(_ line: [UInt8]) {
        guard let mailbox = mailbox() else { return Self.write(line, to: descriptor) }
        if !mailbox.post(.line(line)) { dropped.add() }
    }

    /// Waits until the lines before this call are written.
    ///
    /// - Returns: false: they were not in time.
    func flush(seconds: Int) -> Bool {
        guard let mailbox = lock.withLock({ thread?.1 }) else { return true }
        let written = Latch()
        return mailbox.post(.flush(written)) && written.wait(seconds: seconds)
    }

    /// Starts the thread with the first line: most logs of tests and tools have none.
    private func mailbox() -> Mailbox<Message>? {
        lock.withLock {
            if let thread { return thread.1 }
            // A process without a descriptor or thread left says that itself.
            thread = try? LoopThread.startReturning(name: "log") {
                [descriptor, dropped, render] loop in
                var told: UInt64 = 0
                return Mailbox<Message>(loop: loop, limit: Self.linesMax) { messages in
                    for message in messages {
                        switch message {
                        case .line(let line): Self.write(line, to: descriptor)
                        case .flush(let latch): latch.arrive()
                        }
                    }
                    let now = dropped.current
                    if now > told {
                        let line = render(
                            .warning, "log.dropped",
                            [LogField("lines", now - told), LogField("why", "nobody read them")])
                        Self.write(line, to: descriptor)
                        told = now
                    }
                }
            }
            return thread?.1
        }
    }

    /// One write(2) a line where the descriptor takes it whole, so lines of several processes do
    /// not mix.
    private static func write(_ line: [UInt8], to descriptor: Int32) {
        line.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count, let start = buffer.baseAddress {
                let written = Glibc.write(descriptor, start + sent, buffer.count - sent)
                if written > 0 {
                    sent += written
                } else if errno == EAGAIN {
                    // A descriptor that whoever started us made non-blocking: only this thread
                    // waits.
                    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&wanted, 1, 1_000)
                } else if errno != EINTR {
                    return  // Nowhere to complain about a log that cannot be written.
                }
            }
        }
    }
}
