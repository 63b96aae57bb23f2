import Feed
import Model
import SyncServer
import Testing
import Wire

/// A live session over one user's feed, at the side of the store: what it asks to be read is read
/// at once, what it asks to be written is taken as written.
struct LiveMirror {
    private let user: UserID
    private let device: DeviceID
    private var session: Session
    private var now = Instant(milliseconds: 1_000_000)
    /// The frames since they were last taken, as they leave.
    private var frames: [[UInt8]] = []
    /// The highest `to` of a DELTA.
    private(set) var sent: UInt64 = 0
    private(set) var isClosed = false

    var pushed: PushedCounts { session.pushed }

    /// `nil`: the store does not know the user.
    init?(_ user: UserID, _ device: DeviceID, _ world: World) throws {
        let query = PageQuery(
            app: World.app, user: user, device: device, after: .max >> 1, bytes: 1)
        guard case .page(let page) = try world.read(.page(query)) else { return nil }
        self.user = user
        self.device = device
        var limits = SessionLimits()
        limits.windowDeltas = 3
        limits.firstPageBytes = 1_000
        limits.digestSample = 0
        session = Session(
            configuration: SessionConfiguration(
                limits: limits, boot: BootID(high: 1, low: 1), node: "n", sha256: { $0 }),
            entropy: SessionEntropy(
                sessionToken: Array(repeating: 5, count: 32),
                nonce: Array(repeating: 6, count: 32), seed: 1), now: now)
        sent = page.head
        let sync = SyncFrame(
            cursor: Cursor(epoch: page.epoch, seq: page.head), applied: page.head, mode: .advance)
        let hello = Hello(
            versionMin: 1, versionMax: 1, app: World.app.name, device: device, role: .app,
            features: ["live"], sessionToken: [9], sync: sync)
        opening = OpenedSession(
            session: SessionKey(
                app: World.app, user: user, device: device, role: .app, generation: 1),
            sync: SyncedSession(
                epoch: page.epoch, head: page.head, applied: page.head, mutationFloor: 0,
                results: [], reset: nil, hadPushRows: false),
            tokenLifetime: 1 << 40, isPushTokenHeld: false, isPushRefused: false)
        try run(world) { $0.received(Frame(.hello(hello), request: 1), now: $1) }
        frames = []
    }

    private let opening: OpenedSession

    /// - Parameter isWhole: also what the commit handed over, not only that the feed is longer.
    mutating func tell(_ change: FeedChange, isWhole: Bool, _ world: World) throws {
        guard change.user == user, change.app == World.app else { return }
        try run(world) {
            isWhole
                ? $0.feedChanged(change, now: $1)
                : $0.headMoved(
                    to: change.head, kinds: change.kinds, isUrgent: change.isUrgent, now: $1)
        }
    }

    mutating func receive(_ body: FrameBody, _ world: World) throws {
        try run(world) { $0.received(Frame(body), now: $1) }
    }

    mutating func takeFrames() -> [[UInt8]] {
        defer { frames = [] }
        return frames
    }

    private mutating func run(
        _ world: World, _ input: (inout Session, Instant) -> [SessionAction]
    ) throws {
        now = now + 10
        var waiting = input(&session, now)
        while !waiting.isEmpty {
            let wall = world.now
            switch waiting.removeFirst() {
            case .send(let frame):
                frames.append(frame.encoded)
                if case .delta(let delta) = frame.body { sent = max(sent, delta.to?.seq ?? 0) }
            case .store(let tag, let request):
                let answer: StoreAnswer =
                    switch request {
                    case .openSession: .opened(opening)
                    case .acknowledge: .acknowledged(head: 0)
                    default: .done
                    }
                waiting += session.storeAnswered(tag, answer, now: now, wall: wall)
            case .read(let tag, let query):
                guard case .page(let page) = try world.read(.page(query)) else {
                    waiting += session.readFailed(tag, .corrupt("no user"), now: now)
                    continue
                }
                waiting += session.pageRead(tag, page, now: now)
            case .close: isClosed = true
            default: break
            }
        }
    }
}
