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

    private struct Device: Hashable {
        let app: AppID
        let device: DeviceID
    }

    private let lock = Lock()
    // All guarded by `lock`.
    private nonisolated(unsafe) var current: DeviceRates
    private nonisolated(unsafe) var addresses: RateTable<[UInt8]>
    private nonisolated(unsafe) var networks: RateTable<PeerNetwork>
    private nonisolated(unsafe) var mutations: RateTable<User>
    /// Who last logged in on a device: the name that a HELLO does not say.
    private nonisolated(unsafe) var owners: RecentTable<Device, UserID>
    private nonisolated(unsafe) var reads: RateTable<User>
    private nonisolated(unsafe) var signals: RateTable<User>
    private nonisolated(unsafe) var apps: RateTable<AppID>

    init(_ rates: DeviceRates) {
        current = rates
        addresses = RateTable(holdersMax: rates.holdersMax)
        networks = RateTable(holdersMax: rates.holdersMax)
        mutations = RateTable(holdersMax: rates.holdersMax)
        owners = RecentTable(holdersMax: rates.holdersMax)
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
            if open.sync?.mutations.isEmpty == false,
                let wait = waitOfOwner(open.app, open.device, now)
            {
                return wait
            }
            return wait(open.app, nil, [], now)
        case .sync(let write):
            return wait(write.session.app, write.session.user, write.sync.mutations, now)
        case .mutate(let mutate):
            return wait(mutate.session.app, mutate.session.user, [mutate.mutation], now)
        default: return nil
        }
    }

    /// A HELLO brings mutations before anybody knows whose they are: it waits while the user who
    /// last logged in on its device owes some. Nothing is taken of that user, for a peer that
    /// only names the device has proved nothing yet.
    private func waitOfOwner(_ app: AppID, _ device: DeviceID, _ now: Instant) -> Milliseconds? {
        lock.withLock {
            guard let user = owners[Device(app: app, device: device)] else { return nil }
            return mutations.wait(
                of: User(app: app, user: user), current.userMutations, count: 0, now: now)
        }
    }

    /// A HELLO was let in: its mutations are its user's and its app's now.
    func opened(_ session: SessionKey, _ mutations: [Mutation], now: Instant) {
        lock.withLock {
            owners.with(
                Device(app: session.app, device: session.device), first: session.user
            ) { $0 = session.user }
            guard !mutations.isEmpty else { return }
            self.mutations.charge(
                User(app: session.app, user: session.user), current.userMutations,
                count: mutations.cost, now: now)
            _ = take(mutations.count, of: session.app, now)
        }
    }

    /// An app's own rate is of requests: what one of them costs is its user's to bear.
    private func take(_ count: Int, of app: AppID, _ now: Instant) -> Milliseconds? {
        let count = min(UInt64(max(count, 1)), current.appRequests.burst)
        return apps.take(of: app, current.appRequests, count: count, now: now)
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
        _ app: AppID, _ user: UserID?, _ written: [Mutation], _ now: Instant
    ) -> Milliseconds? {
        let holder = written.isEmpty ? nil : user.map { User(app: app, user: $0) }
        return lock.withLock {
            // Nothing is taken of the user for what the app's rate refuses, nor of the app.
            if let holder,
                let wait = mutations.wait(
                    of: holder, current.userMutations, count: written.cost, now: now)
            {
                return wait
            }
            if let wait = take(written.count, of: app, now) { return wait }
            if let holder {
                mutations.charge(holder, current.userMutations, count: written.cost, now: now)
            }
            return nil
        }
    }
}

extension Mutation {
    /// The mutations that it counts as. The members of a conversation are told of each other
    /// (MSG-38): what it takes to make one, or to change who takes part, grows with their square,
    /// whoever they are, and a hundred entries of it count as one mutation.
    var cost: UInt64 {
        func entries(_ told: Int, of members: Int) -> UInt64 {
            UInt64(min(told, Self.toldMax)) * UInt64(min(members, Self.toldMax))
        }
        let entries =
            switch operation {
            case .createConversation(let create):
                entries(create.participants.count, of: create.participants.count)
            // How many are there already the request does not say.
            case .addParticipants(let add): entries(add.users.count, of: Self.toldMax)
            case .removeParticipants(let remove): entries(remove.users.count, of: Self.toldMax)
            default: 0 as UInt64
            }
        return 1 + entries / 100
    }

    /// Members of a larger conversation are not told of each other.
    private static let toldMax = RuleLimits().participantsTold
}

extension [Mutation] {
    var cost: UInt64 { reduce(0) { $0 + $1.cost } }
}
