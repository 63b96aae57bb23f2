import EventLoop
public import PushPool

/// What the gateway's loop last said of itself. From any thread.
public final class PushStatusBoard: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var entries: [PushCredentialStatus] = []  // guarded by `lock`

    public init() {}

    func set(_ entries: [PushCredentialStatus]) { lock.withLock { self.entries = entries } }
    /// How it stands with each credential, a tick ago at most.
    public var current: [PushCredentialStatus] { lock.withLock { entries } }
}
