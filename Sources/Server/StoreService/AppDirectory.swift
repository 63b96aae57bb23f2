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
        lock.withLock {
            for configuration in configurations.values {
                if let key = configuration.apiKeys.first(where: { $0.hash == hash }) { return key }
            }
            return nil
        }
    }

    func replace(_ all: [AppConfiguration]) {
        var fresh: [AppID: AppConfiguration] = [:]
        for configuration in all { fresh[configuration.app.app] = configuration }
        lock.withLock {
            configurations = fresh
            changeCount += 1
        }
    }
}
