import EventLoop
import Foundation

/// True once for each name.
final class FirstOnly: @unchecked Sendable {
    // @unchecked: under `lock`.
    private let lock = Lock()
    private var known: Set<String> = []

    func isFirst(_ name: String) -> Bool { lock.withLock { known.insert(name).inserted } }
}

/// Lets 10 ms pass where a test needs time itself to do something.
func shortly() { usleep(10_000) }
