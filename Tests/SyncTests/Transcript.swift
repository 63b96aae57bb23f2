import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// A `Session` with its clock; what it wants is written down as one line an action.
struct Desk {
    static let app = AppID("chess")
    static let device = DeviceID(high: 1, low: 2)
    static let epoch = Epoch(high: 7, low: 8)
    static let boot = BootID(high: 3, low: 4)

    static func key(_ role: RoleKind = .app) -> SessionKey {
        SessionKey(
            app: app, user: UserID("anna"), device: device, role: role, generation: 1)
    }

    var session: Session
    var now = Instant(milliseconds: 1_000_000)
    /// The last actions.
    var actions: [SessionAction] = []

    init(limits: SessionLimits = SessionLimits(), seed: UInt64 = 1) {
        let configuration = SessionConfiguration(
            limits: limits, boot: Self.boot, node: "n1", sha256: { $0.reversed() })
        session = Session(
            configuration: configuration,
            entropy: SessionEntropy(
                sessionToken: Array(repeating: 5, count: 32),
                nonce: Array(repeating: 6, count: 32), seed: seed), now: now)
    }

    /// Runs an input and gives the actions as lines. Log events are left out unless asked for.
    @discardableResult
    mutating func run(
        log: Bool = false, _ input: (inout Session, Instant) -> [SessionAction]
    ) -> [String] {
        actions = input(&session, now)
        for action in actions {
            switch action {
            case .store(let asked, _), .read(let asked, _), .verify(let asked, _, _),
                .readHistory(let asked, _), .findAudience(let asked, _, _, _):
                tag = asked
            default: continue
            }
        }
        return actions.compactMap { line($0, log: log) }
    }

    @discardableResult
    mutating func receive(_ body: FrameBody, request: UInt16 = 0) -> [String] {
        run { $0.received(Frame(body, request: request), now: $1) }
    }

    /// The tag of the last question asked.
    private(set) var tag = RequestTag(number: 0)

    @discardableResult
    mutating func answer(_ answer: StoreAnswer, to tag: RequestTag? = nil) -> [String] {
        let tag = tag ?? self.tag
        return run {
            $0.storeAnswered(tag, answer, now: $1, wall: Timestamp(milliseconds: 5_000_000))
        }
    }

    @discardableResult
    mutating func give(_ page: Page, to tag: RequestTag? = nil) -> [String] {
        let tag = tag ?? self.tag
        return run { $0.pageRead(tag, page, now: $1) }
    }

    @discardableResult
    mutating func tell(_ reading: HistoryReading, to tag: RequestTag? = nil) -> [String] {
        let tag = tag ?? self.tag
        return run { $0.historyRead(tag, reading, now: $1) }
    }

    /// The DELTA among the last actions.
    var delta: Delta? {
        for case .send(let frame) in actions {
            if case .delta(let delta) = frame.body { return delta }
        }
        return nil
    }

    /// Lets time pass to each deadline in turn, at most until `duration` is over.
    @discardableResult
    mutating func pass(_ duration: Milliseconds) -> [String] {
        let end = now + duration
        var lines: [String] = []
        while let next = session.nextDeadline, next <= end {
            now = max(next, now)
            lines += run { $0.deadlineReached(now: $1) }
        }
        now = end
        return lines
    }

    @discardableResult
    mutating func move(
        to head: UInt64, _ kinds: EntryKind..., isUrgent: Bool = false
    ) -> [String] {
        let bits = kinds.reduce(UInt32(0)) { $0 | 1 << UInt32($1.rawValue) }
        return run { $0.headMoved(to: head, kinds: bits, isUrgent: isUrgent, now: $1) }
    }

    static func hello(
        token: [UInt8] = [9], role: Role = .app, features: [String] = ["live"],
        state: AppState? = nil,
        sync: SyncFrame? = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 0), applied: 0, mode: .advance)
    ) -> Hello {
        Hello(
            versionMin: 1, versionMax: 3, app: app.name, device: device, role: role,
            features: features, sessionToken: token, appState: state, sync: sync)
    }

    static func position(
        head: UInt64, applied: UInt64, results: [MutationResult] = [], reset: ResetReason? = nil,
        hadPushRows: Bool = false, epoch: Epoch = Desk.epoch
    ) -> SyncedSession {
        SyncedSession(
            epoch: epoch, head: head, applied: applied, mutationFloor: 0, results: results,
            reset: reset, hadPushRows: hadPushRows)
    }

    static func opened(
        _ position: SyncedSession, role: RoleKind = .app, lifetime: Milliseconds = 1 << 40
    ) -> StoreAnswer {
        .opened(
            OpenedSession(
                session: key(role), sync: position, tokenLifetime: lifetime,
                isPushTokenHeld: false, isPushRefused: false))
    }

    /// A page of one entry for each seq.
    static func page(
        _ from: UInt64, _ seqs: [UInt64], to: UInt64? = nil, head: UInt64? = nil,
        visible: UInt64? = nil, epoch: Epoch = Desk.epoch
    ) -> Page {
        let to = to ?? seqs.last ?? from
        let head = head ?? to
        return Page(
            entries: seqs.map { Entry(seq: $0) }, epoch: epoch, from: from, to: to, head: head,
            more: to < head, firstVisible: visible)
    }

    /// An open session at `head`, everything applied, the feature live granted or not.
    static func open(
        live: Bool = true, state: AppState? = nil, at head: UInt64 = 10,
        hadPushRows: Bool = false, limits: SessionLimits = SessionLimits()
    ) -> Desk {
        var desk = Desk(limits: limits)
        let sync = SyncFrame(
            cursor: Cursor(epoch: epoch, seq: head), applied: head, mode: .advance)
        desk.receive(
            .hello(hello(features: live ? ["live"] : [], state: state, sync: sync)), request: 1)
        desk.answer(opened(position(head: head, applied: head, hadPushRows: hadPushRows)))
        desk.give(page(head, []))
        // The first completed sync is persisted at once.
        desk.receive(.ack(Ack(applied: head)))
        desk.answer(.acknowledged(head: head))
        return desk
    }
}

/// One action as one line; `nil`: a log event.
func line(_ action: SessionAction, log: Bool = false) -> String? {
    switch action {
    case .send(let frame): "send \(line(frame))"
    case .store(_, let request): "store \(line(request))"
    case .read(_, let query):
        "read \(query.newestFirst ? "newest " : "")above \(query.after), \(query.bytes) bytes"
    case .readHistory(_, .fetch(_, _, _, let bytes)): "history FETCH \(bytes) bytes"
    case .readHistory(_, .snapshot(_, _, _, let bytes)): "history SNAPSHOT \(bytes) bytes"
    case .readHistory(_, .digest): "history DIGEST"
    case .verify(_, let token, let app): "verify \(token) of \(app)"
    case .drawEntropy: "draw"
    case .findAudience(_, _, let user, let conversation):
        "find audience of \(user) in \(conversation.low)"
    case .signal(let signal, _, let users):
        "signal \(signal.kind) \(signal.ttlMs) of \(signal.user) to "
            + users.map(\.name).joined(separator: " ")
    case .enterHub(let key): "enter \(key.user)"
    case .leaveHub(let key): "leave \(key.user)"
    case .stopReading: "stop reading"
    case .resumeReading: "resume reading"
    case .raiseLimits(let limits): "limit \(limits.bodyBytes)"
    case .close(let code): "close \(code.rawValue)"
    case .log(let event): log ? "log \(event)" : nil
    }
}

func line(_ frame: Frame) -> String {
    let request = frame.request == 0 ? "" : " @\(frame.request)"
    switch frame.body {
    case .challenge(let body): return "CHALLENGE \(body.reason)\(request)"
    case .welcome(let body): return "WELCOME \(body.user)\(request)"
    case .delta(let body):
        let reset = body.reset.map { " reset \($0.reason)" } ?? ""
        let results = body.results.map { " \($0.number)=\($0.code)" }.joined()
        let more = body.more ? " more" : ""
        return "DELTA \(body.from?.seq ?? 0)>\(body.to?.seq ?? 0)/\(body.head)"
            + "\(more)\(results)\(reset)\(request)"
    case .syncRequest(let body):
        return "SYNC_REQUEST \(body.head) kinds \(body.kinds)" + (body.urgent ? " urgent" : "")
    case .mutationResult(let body): return "RESULT \(body.number)=\(body.code)\(request)"
    case .ping: return "PING"
    case .pong: return "PONG\(request)"
    case .drain(let body): return "DRAIN \(body.deadlineMs) slot \(body.slotMs)"
    case .error(let body): return "ERROR \(body.code)\(request)"
    case .close(let body): return "CLOSE \(body.code) applied \(body.applied)"
    case .hello(let body):
        let token = body.sessionToken.isEmpty ? "no token" : "token"
        let mutations = body.sync?.mutations.map { " m\($0.number)" }.joined() ?? ""
        let reads = body.sync?.reads.map { " r\($0.through)" }.joined() ?? ""
        let at = body.sync?.cursor.map { "\($0.seq)" } ?? "-"
        return "HELLO \(token) at \(at)\(mutations)\(reads)\(body.wake == nil ? "" : " wake")"
    case .sync(let body):
        let at = body.cursor.map { "\($0.seq)" } ?? "-"
        let reads = body.reads.map { " r\($0.through)" }.joined()
        return "SYNC at \(at) \(body.reason)\(reads)"
    case .ack(let body):
        return "ACK \(body.applied)" + body.reads.map { " r\($0.through)" }.joined()
            + body.ranges.map { " \($0.first)-\($0.last)" }.joined()
    case .mutate(let body): return "MUTATE \(body.number)"
    case .authenticate(let body): return "AUTHENTICATE \(body.identityToken)"
    case .appState(let body): return "APP_STATE \(body.phase)"
    case .signal(let body): return "SIGNAL \(body.kind) \(body.ttlMs) \(body.user)"
    case .fetch, .page, .snapshot, .snapshotPage, .digest, .digestResult:
        return frame.body.type.name + request
    }
}

func line(_ request: StoreRequest) -> String {
    func within(_ time: Milliseconds?) -> String { time.map { "\($0)" } ?? "never" }
    switch request {
    case .openSession(let open):
        let credential =
            switch open.credential {
            case .sessionToken(let hash): "token \(hash)"
            case .identity(let user): "identity \(user)"
            }
        return "open \(credential) dormant \(within(open.dormantAfter))"
            + (open.sync == nil ? "" : " with SYNC")
    case .sync(let write):
        return "sync applied \(write.sync.applied)"
            + write.sync.mutations.map { " m\($0.number)" }.joined()
    case .acknowledge(let ack):
        return "ack \(ack.applied)" + (ack.completesSync ? " completes" : "")
            + ack.reads.map { " r\($0.through)" }.joined()
            + ack.ranges.map { " \($0.first)-\($0.last)" }.joined()
    case .changeAppState(let change):
        return "state dormant \(within(change.dormantAfter))"
            + (change.appState == nil ? "" : " with switches")
    case .mutate(let mutate): return "mutate \(mutate.mutation.number)"
    case .reauthenticate(let request):
        return "reauthenticate dormant \(within(request.dormantAfter))"
    case .abandonSession(let end): return "abandon within \(end.expectedWithin)"
    case .endSession(let end): return "end \(end.applied) within \(end.expectedWithin)"
    default: return "\(request)"
    }
}
