import EventLoop
import Feed
public import Model
import Wire

/// How much one peer may ask of the device port. A rate of 0 a second is no limit.
public struct DeviceRates: Equatable, Sendable {
    /// Connections from one address (IPv6: one /64). Above it they are closed before TLS.
    public var addressConnections = RateLimit(perSecond: 50, burst: 500)
    /// TLS handshakes in flight from one address; above it its oldest one ends.
    public var addressHandshakes = 32
    /// Mutations of one user, over all devices.
    public var userMutations = RateLimit(perSecond: 100, burst: 1_000)
    /// FETCH, SNAPSHOT, peeks and DIGEST of one user, over all devices. A DIGEST, which looks at
    /// everything, counts as ten.
    public var userReads = RateLimit(perSecond: 20, burst: 200)
    /// Signals of one user, over all devices.
    public var userSignals = RateLimit(perSecond: 4, burst: 12)
    /// Logins, SYNCs that must be written, and mutations of all devices of one app.
    public var appRequests = RateLimit.none
    /// Connections from this machine count against no address: a balancer's, tests' and tools'.
    public var exemptsLoopback = true
    /// Addresses, and users, remembered at most.
    public var holdersMax = 20_000

    public init() {}
}

/// The buckets of the device port, shared by its loops. From any thread.
final class RateGates: Sendable {
    private struct User: Hashable {
        let app: AppID
        let user: UserID
    }

    private let lock = Lock()
    // All guarded by `lock`.
    private nonisolated(unsafe) var current: DeviceRates
    private nonisolated(unsafe) var addresses: RateTable<[UInt8]>
    private nonisolated(unsafe) var networks: RateTable<PeerNetwork>
    private nonisolated(unsafe) var mutations: RateTable<User>
    private nonisolated(unsafe) var reads: RateTable<User>
    private nonisolated(unsafe) var signals: RateTable<User>
    private nonisolated(unsafe) var apps: RateTable<AppID>

    init(_ rates: DeviceRates) {
        current = rates
        addresses = RateTable(holdersMax: rates.holdersMax)
        networks = RateTable(holdersMax: rates.holdersMax)
        mutations = RateTable(holdersMax: rates.holdersMax)
        reads = RateTable(holdersMax: rates.holdersMax)
        signals = RateTable(holdersMax: rates.holdersMax)
        apps = RateTable(holdersMax: rates.holdersMax)
    }

    /// In force from here on; what was taken stays taken.
    var rates: DeviceRates {
        get { lock.withLock { current } }
        set { lock.withLock { current = newValue } }
    }

    /// Whose rate and places a connection from there counts against.
    func origin(_ peer: String) -> PeerOrigin {
        guard let address = PeerAddress(peer) else {
            return PeerOrigin(holder: nil, network: PeerNetwork(bytes: []))
        }
        let isExempt = rates.exemptsLoopback && address.isLoopback
        return PeerOrigin(holder: isExempt ? nil : address.holder, network: address.network)
    }

    /// A network of many addresses has ten times the rate of one.
    func mayConnect(_ origin: PeerOrigin, now: Instant) -> Bool {
        guard let holder = origin.holder else { return true }
        let rate = rates.addressConnections
        let wider = RateLimit(perSecond: rate.perSecond * 10, burst: rate.burst * 10)
        return lock.withLock {
            addresses.take(of: holder, rate, now: now) == nil
                && networks.take(of: origin.network, wider, now: now) == nil
        }
    }

    func maySignal(_ app: AppID, _ user: String, now: Instant) -> Bool {
        lock.withLock {
            signals.take(of: User(app: app, user: UserID(user)), current.userSignals, now: now)
                == nil
        }
    }

    /// After how long a session's request may be asked again; `nil`: now. What a session writes
    /// by itself (acknowledgements, its state, its end) is never refused.
    func wait(_ request: StoreRequest, now: Instant) -> Milliseconds? {
        switch request {
        case .openSession(let open):
            return wait(open.app, nil, open.sync?.mutations.count ?? 0, now)
        case .sync(let write):
            return wait(
                write.session.app, write.session.user, write.sync.mutations.count, now)
        case .mutate(let mutate): return wait(mutate.session.app, mutate.session.user, 1, now)
        default: return nil
        }
    }

    /// After how long a read beside the feed may be asked for again; `nil`: now. The feed itself
    /// is never refused: its cursor is the limit.
    func wait(_ query: StoreQuery, now: Instant) -> Milliseconds? {
        let (app, user, count): (AppID, UserID, UInt64)
        switch query {
        case .page(let page) where page.newestFirst: (app, user, count) = (page.app, page.user, 1)
        case .history(.fetch(let of, let by, _, _)), .history(.snapshot(let of, let by, _, _)):
            (app, user, count) = (of, by, 1)
        case .history(.digest(let of, let by, _, _)): (app, user, count) = (of, by, 10)
        default: return nil
        }
        return lock.withLock {
            reads.take(of: User(app: app, user: user), current.userReads, count: count, now: now)
        }
    }

    private func wait(
        _ app: AppID, _ user: UserID?, _ count: Int, _ now: Instant
    ) -> Milliseconds? {
        lock.withLock {
            if let user, count > 0,
                let wait = mutations.take(
                    of: User(app: app, user: user), current.userMutations, count: UInt64(count),
                    now: now)
            {
                return wait
            }
            return apps.take(
                of: app, current.appRequests, count: UInt64(max(count, 1)), now: now)
        }
    }
}
