import EventLoop
public import Feed
public import Model

/// The apps as of the last commit that changed one: what every shell needs at each login, request
/// and push, without asking the store. From any thread.
///
/// The writer refreshes it after committing an administration and before answering it, so that
/// whoever was told "done" finds the new state in force.
public final class AppDirectory: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var configurations: [AppID: AppConfiguration] = [:]
    /// By their hashes: each request of a backend looks for one.
    private nonisolated(unsafe) var apiKeys: [[UInt8]: APIKeyRecord] = [:]
    private nonisolated(unsafe) var changeCount: UInt64 = 0

    public init() {}

    public subscript(app: AppID) -> AppConfiguration? {
        lock.withLock { configurations[app] }
    }

    /// All apps, by id.
    public var all: [AppConfiguration] {
        lock.withLock { configurations.values.sorted { $0.app.app < $1.app.app } }
    }

    /// Rises with every refresh: whoever keeps something derived looks here.
    public var generation: UInt64 { lock.withLock { changeCount } }

    /// The app and the key with this SHA-256, if it is live.
    public func apiKey(hash: [UInt8]) -> APIKeyRecord? {
        lock.withLock { apiKeys[hash] }
    }

    func replace(_ all: [AppConfiguration]) {
        var fresh: [AppID: AppConfiguration] = [:]
        var keys: [[UInt8]: APIKeyRecord] = [:]
        for configuration in all {
            fresh[configuration.app.app] = configuration
            for key in configuration.apiKeys { keys[key.hash] = key }
        }
        lock.withLock {
            configurations = fresh
            apiKeys = keys
            changeCount += 1
        }
    }
}
