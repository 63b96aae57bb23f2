import MemoryStore
import Model
import Wire

@testable import SyncClient

/// The client half over its local store, against a server that says anything.
struct ClientRun {
    private var choices: Choices
    private let disk = MemoryStore(tables: LocalSchema.tables)
    private let store: TableLocalStore
    private var session: ClientSession
    private var now = Instant(milliseconds: 1_000_000)
    private var wall: Timestamp { Timestamp(milliseconds: 1_700_000_000_000 + now.milliseconds) }

    // The shell's part.
    private var isConnecting = false
    private var isConnected = false
    private var frameLimits = FrameLimits.beforeWelcome
    private var waiting: [ClientAction] = []
    private var isRunning = false
    private var needsToken = false
    private var lastRequest: UInt16 = 0
    private var epoch: Epoch?

    init(_ bytes: [UInt8]) throws(Violation) {
        var choices = Choices(bytes)
        var limits = ClientLimits()
        limits.mutationsUnanswered = 3
        limits.fetchesPending = 4
        limits.fetchesOpen = 2
        limits.liveSignals = 2
        store = TableLocalStore(store: disk)
        let configuration = ClientConfiguration(
            app: "chess", device: DeviceID(high: 1, low: 2), clientName: "fuzz",
            clientVersion: "1", wantsLive: choices.flag(), wantsSignals: choices.flag(),
            wantsSnapshots: choices.flag(), peeksOnWake: choices.flag(),
            role: choices.below(8) == 7 ? .extension : .app, limits: limits)
        do throws(LocalStoreError) {
            session = ClientSession(
                configuration: configuration, state: try store.load(), seed: 1)
        } catch {
            throw Violation("an empty store cannot be read: \(error)")
        }
        self.choices = choices
    }

    mutating func run() throws(Violation) {
        try with { $0.start(appState: AppState(phase: .foreground), now: $1) }
        var steps = 0
        while !choices.isOver, steps < 300 {
            steps += 1
            try step()
        }
    }

    private mutating func step() throws(Violation) {
        switch choices.below(16) {
        case 0, 1, 2, 3, 4, 5:
            let request = choices.below(4) < 3 ? lastRequest : UInt16(choices.byte())
            try receive(Frame(body(), request: request, more: choices.flag()))
        case 6: try receiveBytes()
        case 7, 8: try connect()
        case 9:
            let ahead: Milliseconds = choices.one(of: [1, 500, 2_000, 16_000, 61_000, 1 << 42])
            try pass(ahead)
        case 10:
            if let due = session.nextDeadline, due > now { try pass(due.since(now)) }
        case 11: try appActs()
        case 12: try userActs()
        case 13:
            if isConnected || isConnecting {
                (isConnected, isConnecting) = (false, false)
                try with { $0.closed(now: $1) }
            }
        case 14: try welcome()
        default:
            disk.faults = choices.list {
                $0.one(of: [.full, .conflict, .lostBeforeCommit, .lostAfterCommit, nil])
            }
        }
    }

    private mutating func connect() throws(Violation) {
        guard isConnecting else { return }
        isConnecting = false
        isConnected = true
        frameLimits = .beforeWelcome
        try with { $0.connected(now: $1) }
    }

    /// All the way to an open session.
    private mutating func welcome() throws(Violation) {
        try connect()
        try receive(Frame(soundWelcome(), request: lastRequest))
    }

    private mutating func receive(_ frame: Frame) throws(Violation) {
        guard isConnected else { return }
        if needsToken {
            needsToken = false
            let token: String? = choices.flag() ? choices.text() : nil
            try with { $0.identityToken(token, now: $1) }
            guard isConnected else { return }
        }
        try with { $0.received(frame, now: $1) }
    }

    private mutating func receiveBytes() throws(Violation) {
        let types = FrameType.allCases
        let type = types[choices.below(types.count)]
        let bytes = choices.bytes()
        var decoder = FrameDecoder(limits: frameLimits)
        decoder.append([0, 0, UInt8(bytes.count), type.rawValue, 0, 0, 0, choices.byte()])
        decoder.append(bytes)
        let next = Result { () throws(WireError) in try decoder.next() }
        switch next {
        case .success(let frame?): try receive(frame)
        case .success(nil): break
        case .failure(let error):
            guard isConnected else { return }
            try with { $0.decodingFailed(error, now: $1) }
        }
    }

    // MARK: - What a server may say

    private mutating func soundWelcome() -> FrameBody {
        let epoch = Epoch(high: 9, low: UInt64(choices.below(2)))
        self.epoch = epoch
        return .welcome(
            Welcome(
                version: 1, sessionToken: [1, 2], sessionTokenLifetimeMs: 1_000_000,
                serverTimeMs: wall.milliseconds, epoch: epoch, keepaliveMs: 60_000,
                limits: AdvertisedLimits(
                    bodyBytes: 1 << 18, windowBytes: 1 << 18, windowDeltas: 256,
                    mutationsUnanswered: 32, messageBytes: 1 << 16, participantsPerRequest: 100),
                features: ["live", "signals", "snapshots"], node: "n", user: "anna"))
    }

    private mutating func cursor() -> Cursor? {
        choices.below(4) == 3
            ? choices.maybe { Cursor(epoch: Epoch(high: $0.number(), low: 0), seq: $0.number()) }
            : Cursor(
                epoch: epoch ?? Epoch(high: 9, low: 0),
                seq: choices.flag() ? session.cursor?.seq ?? 0 : choices.number())
    }

    private mutating func entry() -> Entry {
        let body: Entry.Body?
        switch choices.below(11) {
        case 0:
            body = .conversationState(
                ConversationState(
                    createdMs: choices.number(), creator: choices.user(),
                    distinct: choices.flag(), receiptsOff: choices.flag()))
        case 1:
            body = .participant(
                ParticipantState(
                    user: choices.user(), joinedPosition: choices.number(),
                    removed: choices.flag()))
        case 2, 3:
            body = .message(
                MessageState(
                    position: choices.number(), sender: choices.user(), sentMs: choices.number(),
                    parts: choices.list { $0.part() }, editedMs: choices.number()))
        case 4:
            body = .receipt(
                ReceiptState(
                    user: choices.user(), deliveredThrough: choices.number(),
                    readThrough: choices.number()))
        case 5:
            body = .readMark(
                ReadMarkState(through: choices.number(), ranges: choices.list { $0.range() }))
        case 6:
            body = .tombstone(
                TombstoneState(
                    position: choices.number(), conversation: choices.flag(),
                    forEveryone: choices.flag(), by: choices.user(), deletedMs: choices.number()))
        case 7:
            body = .metadata(
                MetadataState(
                    values: choices.list {
                        MetadataValue(path: $0.list { $0.text() }, value: $0.text())
                    }))
        case 8:
            body = .announcement(
                AnnouncementState(
                    sentMs: choices.number(), parts: choices.list { $0.part() },
                    read: choices.flag()))
        case 9:
            body = .conversationSettings(
                ConversationSettings(muted: choices.flag(), mutedUntilMs: choices.number()))
        default: body = choices.maybe { .block(BlockState(user: $0.user(), blocked: $0.flag())) }
        }
        let object: MessageID? = choices.id()
        return Entry(
            seq: choices.number(), conversation: choices.id(),
            object: object?.bytes ?? choices.bytes(), version: choices.number(),
            alerted: choices.flag(), body: body)
    }

    private mutating func entries() -> [Entry] {
        var entries: [Entry] = []
        for _ in 0..<choices.below(5) { entries.append(entry()) }
        return entries
    }

    private mutating func results() -> [MutationResult] {
        choices.list {
            MutationResult(
                number: $0.number(), code: $0.flag() ? 0 : ($0.some() as Code).rawValue,
                retry: $0.some(), retryAfterMs: $0.number32(), object: $0.bytes(),
                position: $0.number())
        }
    }

    private mutating func body() -> FrameBody {
        switch choices.below(16) {
        case 0, 1, 2, 3:
            return .delta(
                Delta(
                    entries: entries(), from: cursor(), to: cursor(), head: choices.number(),
                    more: choices.flag(), results: results(), mutationFloor: choices.number(),
                    reset: choices.below(4) == 3
                        ? Reset(reason: choices.some(), retryAfterMs: choices.number32()) : nil,
                    unread: choices.number32(), digestWanted: choices.flag()))
        case 4:
            return .challenge(
                Challenge(
                    nonce: choices.bytes(), lifetimeMs: choices.number32(), reason: choices.some()))
        case 5: return soundWelcome()
        case 6:
            return .syncRequest(
                SyncRequest(
                    head: choices.number(), kinds: choices.number32(), urgent: choices.flag()))
        case 7:
            return results().first.map { .mutationResult($0) } ?? .mutationResult(MutationResult())
        case 8:
            return .page(
                PageFrame(
                    entries: entries(), first: choices.number(), last: choices.number(),
                    more: choices.flag(), position: choices.number()))
        case 9:
            var conversations: [SnapshotConversation] = []
            for _ in 0..<choices.below(3) {
                conversations.append(
                    SnapshotConversation(
                        conversation: choices.id(), entries: entries(),
                        completeFrom: choices.number(), unread: choices.number32(),
                        participantsComplete: choices.flag()))
            }
            return .snapshotPage(
                SnapshotPage(
                    conversations: conversations, entries: entries(), start: cursor(),
                    continuation: choices.bytes()))
        case 10:
            return .signal(
                Signal(
                    conversation: choices.id(), kind: choices.some(), ttlMs: choices.number32(),
                    user: choices.user()))
        case 11:
            return .digestResult(
                DigestResult(
                    cursor: cursor(), comparable: choices.flag(),
                    conversations: choices.maybe { $0.digestSum() },
                    readMarks: choices.maybe { $0.digestSum() },
                    messages: choices.maybe { $0.digestSum() }))
        case 12:
            return choices.flag()
                ? .ping(Ping(nextMs: choices.number32())) : .pong(Pong(nextMs: choices.number32()))
        case 13:
            return .drain(
                Drain(
                    deadlineMs: choices.number32(), slotMs: choices.number32(),
                    place: choices.some()))
        case 14:
            return .error(
                ErrorFrame(
                    code: (choices.some() as Code).rawValue, name: choices.text(),
                    retry: choices.some(), retryAfterMs: choices.number32(),
                    detail: choices.text()))
        default:
            return .close(
                Close(
                    code: choices.flag()
                        ? choices.number32() : (choices.some() as Code).rawValue,
                    retry: choices.some(), applied: choices.number(),
                    retryAfterMs: choices.number32()))
        }
    }

    // MARK: - The phone

    private mutating func appActs() throws(Violation) {
        let state = choices.appState()
        let wake: WakeID? = choices.id()
        switch choices.below(6) {
        case 0: try with { $0.start(appState: state, wake: wake, now: $1) }
        case 1: try with { $0.sleep(now: $1) }
        case 2: try with { $0.appStateChanged(state, now: $1) }
        case 3: try with { $0.pushReceived(wake: wake, appState: state, now: $1) }
        case 4: try with { $0.networkChanged(now: $1) }
        default: try with { $0.userRefresh(now: $1) }
        }
    }

    private mutating func userActs() throws(Violation) {
        switch choices.below(6) {
        case 0, 1:
            guard let operation = choices.operation(),
                let number = try? store.enqueue(operation, at: wall)
            else { return }
            try with { $0.mutationQueued(number, now: $1) }
        case 2:
            let receipt = choices.read()
            guard receipt.conversation != nil || receipt.announcement != nil,
                (try? store.addRead(receipt)) == true
            else { return }
            try with { $0.readQueued(receipt, now: $1) }
        case 3: try with { $0.checkDigest(now: $1) }
        case 4: try with { $0.peek(now: $1) }
        default:
            let fetch = Fetch(
                conversation: choices.id(), above: choices.number(), below: choices.number(),
                ascending: choices.flag(), limit: choices.number32())
            try with { $0.fetch(fetch, ticket: 1, now: $1) }
        }
    }

    private mutating func pass(_ duration: Milliseconds) throws(Violation) {
        let end = now + duration
        var moments = 0
        var stays = 0
        while let due = session.nextDeadline, due <= end {
            moments += 1
            if moments > 100 { break }
            now = max(now, due)
            try with { $0.deadlineReached(now: $1) }
            // A back-off of nothing is due at once, but not again and again.
            stays = session.nextDeadline.map { $0 <= now } ?? false ? stays + 1 : 0
            try hold(stays < 5, "the deadline at \(now) stays, however often it is told")
        }
        now = end
    }

    // MARK: - What it wants

    private mutating func with(
        _ input: (inout ClientSession, Instant) -> [ClientAction]
    ) throws(Violation) {
        waiting += input(&session, now)
        try hold(session.fetches.count <= session.limits.fetchesPending, "P7: FETCHes")
        try hold(session.liveSignals.count <= session.limits.liveSignals, "P7: signals")
        try hold(session.outbox.count <= 32, "P7: \(session.outbox.count) mutations")
        guard !isRunning else { return }
        isRunning = true
        defer { isRunning = false }
        var count = 0
        while !waiting.isEmpty {
            count += 1
            try hold(count < 5_000, "actions without end: \(waiting[0])")
            try carryOut(waiting.removeFirst())
        }
    }

    private mutating func carryOut(_ action: ClientAction) throws(Violation) {
        disk.clock = wall
        if try carryOutBeside(action) { return }
        switch Result(catching: { () throws(LocalStoreError) in try carryOutInStore(action) }) {
        case .success(let told): try with(told)
        case .failure(let error): try with { $0.storeFailed(error, now: $1) }
        }
    }

    /// What needs no store; `false`: it does.
    private mutating func carryOutBeside(_ action: ClientAction) throws(Violation) -> Bool {
        switch action {
        case .connect:
            try hold(!isConnected && !isConnecting, "connects while it is connected")
            isConnecting = true
        case .send(let frame):
            try hold(isConnected, "\(frame.body.type) is sent without a connection")
            if frame.request != 0 { lastRequest = frame.request }
            let bytes = frame.encoded.count - Frame.headerBytes
            try hold(bytes <= 1 << 18, "\(frame.body.type) of \(bytes) bytes")
        case .disconnect:
            (isConnected, isConnecting, needsToken) = (false, false, false)
        case .raiseLimits(let limits): frameLimits = limits
        case .needIdentityToken: needsToken = true
        case .report: break
        default: return false
        }
        return true
    }

    /// Carries it out and gives what the session is told.
    private func carryOutInStore(
        _ action: ClientAction
    ) throws(LocalStoreError) -> (inout ClientSession, Instant) -> [ClientAction] {
        switch action {
        case .apply(let change):
            _ = try store.apply(change)
            return { $0.committed(now: $1) }
        case .applyHistory(let change):
            _ = try store.applyHistory(change)
            return { $0.historyCommitted(now: $1) }
        case .applySnapshot(let change):
            let last = try store.applySnapshot(change, at: wall).lastMutation
            return { $0.snapshotCommitted(lastMutation: last, now: $1) }
        case .sumUp:
            let sums = try store.digest()
            return { $0.digestComputed(sums, now: $1) }
        case .loadOrphans(let limit):
            let orphans = try store.orphans(limit: limit)
            return { $0.orphansLoaded(orphans, now: $1) }
        case .saveResults(let results): try store.saveResults(results)
        case .endReads(let reads):
            let ended = try store.endReads(reads)
            return { $0.readsEnded(ended, now: $1) }
        case .saveSession(let token, let user): try store.saveSession(token: token, user: user)
        case .forgetSession: try store.forgetSession()
        case .loadMutations(let number, let limit):
            let found = try store.mutations(after: number, limit: limit, now: wall)
            return { $0.mutationsLoaded(found, now: $1) }
        case .savePush(let push): try store.savePush(push)
        case .markSent(let number): try store.markSent(through: number)
        case .markLogoutSent(let number):
            try store.markLogoutSent(number)
            return { $0.logoutMarked(now: $1) }
        case .raiseMutationNumbers(let floor): try store.raiseMutationNumbers(above: floor)
        case .renumberMutations(let first, let floor):
            try store.renumberMutations(from: first, above: floor)
            let last = try store.load().lastMutation
            return { $0.mutationsRenumbered(last: last, now: $1) }
        case .connect, .send, .disconnect, .raiseLimits, .needIdentityToken, .report: break
        }
        return { _, _ in [] }
    }
}
