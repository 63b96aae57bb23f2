import EventLoop

/// How far something is, on standard error: on a terminal in one line that is written over, else a
/// line every few seconds, so that a log of it is read and not scrolled through.
final class Progress: Sendable {
    /// Milliseconds between two lines where no terminal is.
    private static let pause: UInt64 = 5_000

    private let lock = Lock()
    private nonisolated(unsafe) var lastShown: UInt64?  // guarded by `lock`

    /// From any thread.
    func show(_ line: String) {
        lock.withLock {
            let now = SystemClock.monotonicMilliseconds()
            if Terminal.complainsToTerminal {
                Terminal.rewrite(line)
            } else if lastShown.map({ now - $0 < Self.pause }) != true {
                Terminal.complain(line)
            } else {
                return
            }
            lastShown = now
        }
    }

    /// Leaves the last line as it is: what comes next stands below it.
    func end() {
        lock.withLock {
            if lastShown != nil, Terminal.complainsToTerminal { Terminal.complain("") }
            lastShown = nil
        }
    }
}
