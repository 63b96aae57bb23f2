import EventLoop
import Model

/// How often one app may ask. From any thread; may be changed while others ask.
final class AppRate: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var current: RateLimit  // guarded by `lock`

    init(_ limit: RateLimit) { current = limit }

    var limit: RateLimit {
        get { lock.withLock { current } }
        set { lock.withLock { current = newValue } }
    }
}
