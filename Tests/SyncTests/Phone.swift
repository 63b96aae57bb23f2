import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// A `ClientSession` with its clock and store; every action that is the store's is carried out.
struct Phone {
    static let epoch = Desk.epoch
    var session: ClientSession
    let store: MemoryLocalStore
    var now = Instant(milliseconds: 1_000_000)
    var wall = Timestamp(milliseconds: 9_000_000)
    /// Everything sent.
    var frames: [Frame] = []
    var looksForOrphans = false
    /// What the user may be notified of, in order.
    var news: [Entry] = []
    /// What the icon was set to, in order.
    var icons: [UInt32] = []

    init(
        at seq: UInt64? = 10, token: [UInt8] = [9], mutations: Int = 0, seed: UInt64 = 1,
        limits: ClientLimits = ClientLimits(), signals: Bool = false, snapshots: Bool = false,
        peeks: Bool = false, role: Role = .app, reads: [ReadReceipt] = []
    ) throws {
        store = MemoryLocalStore()
        store.state.cursor = seq.map { Cursor(epoch: Self.epoch, seq: $0) }
        store.state.sessionToken = token
        store.state.pendingReads = reads
        for _ in 0..<mutations {
            _ = try store.enqueue(.sendMessage(SendMessage()), at: wall)
        }
        session = ClientSession(
            configuration: ClientConfiguration(
                app: "chess", device: Desk.device, clientName: "t", clientVersion: "1",
                wantsSignals: signals, wantsSnapshots: snapshots, peeksOnWake: peeks, role: role,
                limits: limits), state: try store.load(), seed: seed)
    }

    @discardableResult
    mutating func run(
        _ input: (inout ClientSession, Instant) -> [ClientAction]
    ) -> [String] {
        var lines: [String] = []
        var actions = input(&session, now)
        while !actions.isEmpty {
            let action = actions.removeFirst()
            do throws(LocalStoreError) {
                switch action {
                case .connect: lines.append("connect")
                case .send(let frame):
                    frames.append(frame)
                    lines.append("send \(line(frame))")
                case .raiseLimits: break
                case .disconnect: lines.append("disconnect")
                case .apply(let change):
                    let fresh = try store.apply(change)
                    news += session.news(among: fresh)
                    lines.append(
                        "apply \(fresh.map(\.seq)) to \(change.to.seq)"
                            + (change.marksStale ? " stale" : "") + (change.sweeps ? " sweep" : ""))
                    actions = session.committed(now: now) + actions
                case .applyHistory(let change):
                    let fresh = try store.applyHistory(change)
                    news += session.news(among: fresh)
                    lines.append("history \(fresh.map(\.seq))")
                    actions = session.historyCommitted(now: now) + actions
                case .applySnapshot(let change):
                    let (fresh, last) = try store.applySnapshot(change, at: wall)
                    news += session.news(among: fresh)
                    lines.append(
                        "snapshot \(fresh.count)" + (change.isFirst ? " first" : "")
                            + (change.isLast ? " last" : ""))
                    actions = session.snapshotCommitted(lastMutation: last, now: now) + actions
                case .sumUp:
                    actions = session.digestComputed(try store.digest(), now: now) + actions
                case .loadOrphans(let limit):
                    // Most tests have messages without their conversation.
                    let orphans = looksForOrphans ? try store.orphans(limit: limit) : []
                    actions = session.orphansLoaded(orphans, now: now) + actions
                case .saveResults(let results):
                    try store.saveResults(results)
                    lines.append("results \(results.map(\.number))")
                case .endReads(let reads):
                    actions = session.readsEnded(try store.endReads(reads), now: now) + actions
                case .saveSession(let token, let user):
                    try store.saveSession(token: token, user: user)
                case .forgetSession:
                    try store.forgetSession()
                    lines.append("forget session")
                case .loadMutations(let after, let limit):
                    let loaded = try store.mutations(after: after, limit: limit, now: wall)
                    actions = session.mutationsLoaded(loaded, now: now) + actions
                case .savePush(let push): try store.savePush(push)
                case .markSent(let number): try store.markSent(through: number)
                case .markLogoutSent(let number):
                    try store.markLogoutSent(number)
                    actions = session.logoutMarked(now: now) + actions
                case .raiseMutationNumbers(let floor):
                    try store.raiseMutationNumbers(above: floor)
                    lines.append("numbers above \(floor)")
                case .renumberMutations(let first, let floor):
                    try store.renumberMutations(from: first, above: floor)
                    lines.append("renumber from \(first) above \(floor)")
                    actions =
                        session.mutationsRenumbered(last: store.state.lastMutation, now: now)
                        + actions
                case .needIdentityToken: lines.append("need identity token")
                case .report(let event):
                    switch event {
                    case .signalled(let kind, _, let user): lines.append("\(user) \(kind)")
                    case .retrying(let delay): lines.append("retry after \(delay)")
                    case .parked, .upgradeRequired, .loggedOut: lines.append("\(event)")
                    case .synced(let cursor): lines.append("synced \(cursor.seq)")
                    case .unread(let count): icons.append(count)
                    case .fetched(let ticket, let first, let last, let more):
                        lines.append("fetched \(ticket): \(first)-\(last)\(more ? " more" : "")")
                    case .fetchFailed(let ticket, let code):
                        lines.append("fetch \(ticket) failed \(code)")
                    case .digest(let isComparable, let isEqual, let objects):
                        lines.append(
                            isComparable
                                ? "digest \(isEqual ? "equal" : "differs") of \(objects)"
                                : "digest says nothing")
                    default: break
                    }
                }
            } catch {
                actions = session.storeFailed(error, now: now)
                lines.append("store failed")
            }
        }
        return lines
    }

    @discardableResult
    mutating func receive(_ body: FrameBody, request: UInt16 = 0) -> [String] {
        run { $0.received(Frame(body, request: request), now: $1) }
    }

    @discardableResult
    mutating func start(_ phase: AppPhase = .foreground) -> [String] {
        run { $0.start(appState: AppState(phase: phase), now: $1) }
    }

    @discardableResult
    mutating func connect() -> [String] { run { $0.connected(now: $1) } }

    @discardableResult
    mutating func close(_ code: Code? = nil, retryAfter: UInt32 = 0) -> [String] {
        if let code {
            receive(
                .close(
                    Close(
                        code: code.rawValue, retry: code.retryClass, retryAfterMs: retryAfter)))
        }
        return run { $0.closed(now: $1) }
    }

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

    static func welcome(
        live: Bool = true, floor: UInt64 = 0, keepalive: UInt32 = 180_000,
        limits: AdvertisedLimits? = nil, user: String = "anna"
    ) -> FrameBody {
        .welcome(
            Welcome(
                version: 1, sessionToken: [8], epoch: epoch, mutationFloor: floor,
                keepaliveMs: keepalive, limits: limits, features: live ? ["live"] : [],
                user: user))
    }

    static func delta(
        _ from: UInt64, _ seqs: [UInt64], to: UInt64? = nil, head: UInt64? = nil,
        epoch: Epoch = Phone.epoch, reset: ResetReason? = nil, results: [MutationResult] = [],
        floor: UInt64 = 0
    ) -> FrameBody {
        let to = to ?? seqs.last ?? from
        let head = head ?? to
        let entries = seqs.map { seq in
            Entry(
                seq: seq, conversation: ConversationID(high: 1, low: 1),
                object: MessageID(high: 2, low: seq).bytes, version: 1,
                body: .message(MessageState())
            )
        }
        return .delta(
            Delta(
                entries: entries, from: Cursor(epoch: epoch, seq: from),
                to: Cursor(epoch: epoch, seq: to), head: head, more: to < head, results: results,
                mutationFloor: floor, reset: reset.map { Reset(reason: $0) }))
    }

    /// In sync at 10.
    static func inSync(live: Bool = true, mutations: Int = 0) throws -> Phone {
        var phone = try Phone(mutations: mutations)
        phone.start()
        phone.connect()
        phone.receive(welcome(live: live), request: 1)
        phone.receive(delta(10, []), request: 1)
        return phone
    }
}
