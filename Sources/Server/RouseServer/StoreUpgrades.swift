import EventLoop
public import Model

/// What is done about a store that is new or that an older program has made, and what was met of
/// that: whoever only reads leaves it as it is, and everybody else says what becomes of it.
public final class StoreUpgrades: Sendable {
    private let refuses: Bool
    private let tell: @Sendable (String) -> Void
    private let lock = Lock()
    private nonisolated(unsafe) var upgrade: StoreUpgrade?  // guarded by `lock`

    /// - Parameters:
    ///   - refuses: The store is left as it is, and opening it fails.
    ///   - tell: Is told, in words, of an older store before it is changed.
    public init(refuses: Bool = false, tell: @escaping @Sendable (String) -> Void = { _ in }) {
        self.refuses = refuses
        self.tell = tell
    }

    /// What there was to do; `nil`: nothing, or the store was not opened.
    public var met: StoreUpgrade? { lock.withLock { upgrade } }

    /// Whether the store was left alone for it.
    public var hasRefused: Bool { refuses && met != nil }

    /// Something is about to be done to the store.
    func meet(_ upgrade: StoreUpgrade, in place: StorePlace) throws(StoreError) {
        lock.withLock { self.upgrade = upgrade }
        switch upgrade {
        case .create:
            if refuses { throw .unavailable("\(place.name) is empty: there is no store in it") }
        case .migrate(let from, let to):
            guard refuses else {
                return tell(
                    "\(place.name) is brought from schema \(from) to \(to); there is no way back "
                        + "but a backup")
            }
            throw .unavailable(
                "\(place.name) has schema \(from), this program's is \(to), and what only reads "
                    + "leaves it as it is: `rouse migrate` or the next start of the server brings "
                    + "it up to date; make a backup before")
        }
    }
}
