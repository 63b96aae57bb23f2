import EventLoop
import PostgresStore

/// What a running server makes of other settings than those it began with.
struct ConfigurationChange: Equatable {
    /// The old settings with those of the new that can be changed while it runs.
    private(set) var live: Configuration
    /// What differs and is in force now, as `key=value`.
    private(set) var applied: [String] = []
    /// Keys of what differs and waits for a restart.
    private(set) var waiting: [String] = []

    init(from old: Configuration, to new: Configuration) {
        live = old
        for field in Configuration.fields {
            let value = field.show(new)
            if field.show(old) == value {
                // Only a password may differ that is not shown.
                if field.key == "store.postgres", old.postgres != new.postgres {
                    waiting.append(field.key)
                }
            } else if field.isLive {
                // What is shown can be read: there is no mistake here any more.
                _ = field.read(&live, value)
                applied.append("\(field.key)=\(value)")
            } else {
                waiting.append(field.key)
            }
        }
    }
}

/// The settings in force. From any thread.
final class CurrentConfiguration: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var current: Configuration  // guarded by `lock`

    init(_ configuration: Configuration) { current = configuration }

    var value: Configuration {
        get { lock.withLock { current } }
        set { lock.withLock { current = newValue } }
    }
}
