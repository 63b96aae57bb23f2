import MemoryStore
import Model
import SyncServer
import Wake
import Wire

@testable import Feed

/// What a `SimulatedServer` and its links stand in: time, chance, the push service, and who looks
/// on.
protocol SimulatedWorld: AnyObject {
    /// The only app.
    var app: AppID { get }
    var clock: Clockwork { get }
    var chance: Chance { get set }
    var reached: Reached { get set }
    var violations: [String] { get set }
    /// Nothing fails, nothing is slow.
    var isCalm: Bool { get }
    var defect: Defect? { get }
    /// When the server's duties are done next; `nil`: each at its own pace.
    var nextDuties: Milliseconds? { get }
    var server: SimulatedServer! { get }
    var limits: RuleLimits { get }
    var sessionLimits: SessionLimits { get }
    /// Whose feeds are read whole after each commit.
    var watched: [String] { get }

    func others(than user: UserID) -> [UserID]
    func committed(_ outcomes: [Result<StoreOutcome, StoreError>]) throws
    func serverSends(_ frame: Frame, on link: UInt64) throws
    /// Takes one push. `answer` is called at most once.
    func push(_ request: PushRequest, _ answer: @escaping (PushReply) -> Void)
}

extension SimulatedWorld {
    func rows<R: Record>(_ type: R.Type) throws -> [R] {
        var found: [R] = []
        try server.store.read { snapshot throws(StoreError) in
            found = try snapshot.records(type, Scan(limit: 1_000_000))
        }
        return found
    }

    /// `unread` of a DELTA.
    func shown(to user: UserID) throws -> UInt64 {
        var reading = StoreReading.nothing
        let query = PageQuery(
            app: app, user: user, device: DeviceID(high: 0, low: 0), after: .max >> 1,
            bytes: 1_000)
        try server.store.read { snapshot throws(StoreError) in
            reading = try Rules.read(
                .page(query), in: snapshot, now: self.clock.wall, limits: self.limits)
        }
        guard case .page(let page) = reading else { return 0 }
        return page.unread
    }
}
