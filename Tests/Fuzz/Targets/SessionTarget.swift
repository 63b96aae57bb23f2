import MemoryStore
import Model
import Wire

@testable import Feed
@testable import SyncServer

/// One device's sessions, one after another, over the real rules in memory. The input chooses
/// what comes next: a frame, an answer or its failure, time, the rest of the world.
struct SessionRun {
    static let app = AppID("chess")
    static let device = DeviceID(high: 0xD0, low: 1)

    private var choices: Choices
    private let store: MemoryStore
    private var session: Session
    private var now = Instant(milliseconds: 1_000_000)
    private var wall: Timestamp { Timestamp(milliseconds: 1_700_000_000_000 + now.milliseconds) }
    private let limits: SessionLimits
    /// What the last request told the hub.
    private var changes: [FeedChange] = []
    private let ruleLimits: RuleLimits

    // The shell's part.
    private var isReading = true
    private var isClosing = false
    private var isClosed = false
    private var frameLimits = FrameLimits.beforeWelcome
    private var writes: [(tag: RequestTag, request: StoreRequest)] = []
    private var questions: [Question] = []
    private var lastTag: UInt64 = 0
    private var token: [UInt8] = []
    private var lastMutation: UInt64 = 0
    private var cursor: Cursor?
    private var connections = 0

    private enum Question {
        case page(RequestTag, PageQuery)
        case history(RequestTag, HistoryQuery)
        case audience(RequestTag, AppID, UserID, ConversationID)
        case identity(RequestTag)
        case entropy
    }

    init(_ bytes: [UInt8]) throws(Violation) {
        choices = Choices(bytes)
        var limits = SessionLimits()
        // Small: met by short inputs.
        limits.windowDeltas = 3
        limits.windowBytes = 2_000
        limits.firstPageBytes = 200
        limits.mutationsUnanswered = 4
        limits.mutationBytesUnanswered = 600
        limits.receiptsWaiting = 6
        limits.receiptsPerWrite = 4
        limits.historyInFlight = 2
        limits.digestSample = 2
        limits.unsentBytes = 1_000
        self.limits = limits
        var ruleLimits = RuleLimits()
        ruleLimits.directRecipients = 1
        ruleLimits.fanOutStep = 1
        self.ruleLimits = ruleLimits
        store = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)
        session = Self.session(limits, seed: 1, now: now)
        store.clock = wall
        let setup: [StoreRequest] = [
            .start(boot: BootID(high: 1, low: 1), epochHalf: 77),
            .administer(
                .putApp(
                    AppRecord(
                        app: Self.app, createdAt: wall, sessionTokenLifetime: 3_600_000,
                        receiptParticipantsMax: 2))),
            .createConversation(
                app: Self.app,
                CreateConversation(
                    conversation: ConversationID(high: 0xC0, low: 0),
                    participants: ["anna", "bert", "carl"]), idempotency: nil),
        ]
        for request in setup {
            let answer = try commit(request)
            if case .refused(let code, let detail)? = answer {
                throw Violation("set up: \(code) \(detail)")
            }
        }
    }

    private static func session(_ limits: SessionLimits, seed: UInt64, now: Instant) -> Session {
        Session(
            configuration: SessionConfiguration(
                limits: limits, boot: BootID(high: 1, low: 1), node: "n", sha256: { [1] + $0 }),
            entropy: entropy(seed), now: now)
    }

    private static func entropy(_ seed: UInt64) -> SessionEntropy {
        let byte = UInt8(truncatingIfNeeded: seed)
        return SessionEntropy(
            sessionToken: Array(repeating: byte, count: 32),
            nonce: Array(repeating: ~byte, count: 32), seed: seed)
    }

    // MARK: - The input

    mutating func run() throws(Violation) {
        var steps = 0
        while !choices.isOver, steps < 300 {
            steps += 1
            try step()
        }
        try end()
    }

    private mutating func step() throws(Violation) {
        switch choices.below(20) {
        case 0: try receiveBytes()
        case 1, 2, 3, 4, 5: try receive(Frame(body(), request: UInt16(choices.below(4))))
        case 6, 7, 8: try answer()
        case 9: try fail()
        case 10:
            let ahead: Milliseconds = choices.one(of: [
                1, 50, 1_000, 6_000, 31_000, 250_000, 1 << 42,
            ])
            try pass(ahead)
        case 11: try passToDeadline()
        case 12: try tellHead()
        case 13:
            let unsent = Int(choices.byte()) * 40
            let taken = UInt64(choices.number32())
            try with {
                $0.progressed(taken: taken, unsent: unsent, outstanding: unsent + 10, now: $1)
            }
        case 14: try close()
        case 15: try worldActs()
        case 16: try serverActs()
        case 17: try connectAgain()
        case 18: try logIn()
        default: try answerAll()
        }
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
            guard isReading, !isClosed else { return }
            try with { $0.decodingFailed(error, now: $1) }
        }
    }

    private mutating func receive(_ frame: Frame) throws(Violation) {
        guard isReading, !isClosing, !isClosed else { return }
        if case .mutate(let mutation) = frame.body {
            lastMutation = max(lastMutation, mutation.number)
        }
        try with { $0.received(frame, now: $1) }
        try hold(session.queue.count <= limits.mutationsUnanswered + 1, "P7: queued requests")
        try hold(
            session.ack.count <= limits.receiptsWaiting + 12, "P7: \(session.ack.count) receipts")
        try hold(session.history.count <= limits.historyInFlight, "P7: history in flight")
    }

    private mutating func body() -> FrameBody {
        switch choices.below(16) {
        case 0: return .hello(hello(token: choices.flag() ? token : choices.bytes()))
        case 1: return .authenticate(Authenticate(identityToken: choices.text()))
        case 2: return .sync(sync())
        case 3, 4:
            return .ack(
                Ack(
                    applied: choices.flag() ? cursor?.seq ?? 0 : choices.number(),
                    ranges: choices.list { $0.range() }, reads: choices.list { $0.read() }))
        case 5, 6, 7: return .mutate(choices.mutation(after: lastMutation))
        case 8:
            return .fetch(
                Fetch(
                    conversation: choices.id(), above: choices.number(), below: choices.number(),
                    ascending: choices.flag(), limit: choices.number32(),
                    object: choices.maybe { ($0.id() as MessageID?)?.bytes ?? $0.bytes() } ?? [],
                    receipts: choices.flag(), after: choices.user()))
        case 9:
            return .snapshot(
                SnapshotFrame(
                    messages: choices.number32(), pageBytes: choices.number32(),
                    continuation: choices.flag() ? [] : choices.bytes()))
        case 10:
            return .digest(
                DigestFrame(
                    cursor: choices.flag() ? cursor : nil,
                    conversations: choices.maybe { $0.digestSum() },
                    readMarks: choices.maybe { $0.digestSum() },
                    messages: choices.maybe { $0.digestSum() }, positions: choices.number32()))
        case 11:
            return .signal(
                Signal(
                    conversation: choices.id(), kind: choices.some(), ttlMs: choices.number32(),
                    user: choices.user()))
        case 12: return .appState(choices.appState())
        case 13: return .ping(Ping(nextMs: choices.number32()))
        case 14: return .pong(Pong(nextMs: choices.number32()))
        default:
            return .close(
                Close(code: choices.number32(), retry: choices.some(), applied: choices.number()))
        }
    }

    private mutating func hello(token: [UInt8]) -> Hello {
        Hello(
            versionMin: 1, versionMax: 1, app: choices.below(8) == 7 ? "?" : Self.app.name,
            device: choices.below(8) == 7 ? choices.id() : Self.device,
            role: choices.below(8) == 7 ? choices.some() : .app, clientName: choices.text(),
            features: choices.flag() ? ["live", "signals", "snapshots"] : [choices.text()],
            sessionToken: token, appState: choices.maybe { $0.appState() },
            push: choices.maybe {
                PushRegistration(token: $0.bytes(), environment: $0.some(), topic: $0.text())
            }, sync: choices.flag() ? sync() : nil, wake: choices.id())
    }

    private mutating func sync() -> SyncFrame {
        let isSound = choices.flag()
        return SyncFrame(
            cursor: isSound
                ? cursor
                : Cursor(epoch: cursor?.epoch ?? Epoch(high: 0, low: 0), seq: choices.number()),
            applied: isSound ? cursor?.seq ?? 0 : choices.number(),
            pageBytes: choices.flag() ? 0 : choices.number32(),
            mode: isSound ? .advance : choices.some(),
            reads: choices.list { $0.read() },
            mutations: choices.list { [lastMutation] in $0.mutation(after: lastMutation) },
            reason: choices.some())
    }

    /// HELLO without a token, a good token from the backend, and whatever the store says.
    private mutating func logIn() throws(Violation) {
        try receive(Frame(.hello(hello(token: []))))
        try receive(Frame(.authenticate(Authenticate(identityToken: "signed"))))
        try answerAll()
    }

    // MARK: - The store and the world

    private mutating func commit(_ request: StoreRequest) throws(Violation) -> StoreAnswer? {
        store.clock = wall
        do throws(StoreError) {
            switch try store.commit([request], limits: ruleLimits).first {
            case .success(let outcome)?:
                changes = outcome.effects.changes.all
                return outcome.answer
            case .failure(let error)?: throw error
            case nil: return nil
            }
        } catch {
            throw Violation("the rules fail: \(error) for \(request)")
        }
    }

    private func read(_ query: StoreQuery) throws(Violation) -> StoreReading? {
        var reading: StoreReading?
        do throws(StoreError) {
            try store.read { snapshot throws(StoreError) in
                reading = try Rules.read(
                    query, in: snapshot, now: self.wall, limits: self.ruleLimits)
            }
        } catch {
            throw Violation("the rules cannot read: \(error) for \(query)")
        }
        return reading
    }

    private mutating func answerAll() throws(Violation) {
        var rounds = 0
        while !writes.isEmpty || !questions.isEmpty {
            rounds += 1
            try hold(rounds < 500, "the session asks without end")
            try answer()
        }
    }

    private mutating func answer() throws(Violation) {
        if !writes.isEmpty {
            let (tag, request) = writes.removeFirst()
            guard let answer = try commit(request) else { return }
            try with { [wall] in $0.storeAnswered(tag, answer, now: $1, wall: wall) }
            return
        }
        guard !questions.isEmpty else { return }
        switch questions.remove(at: choices.below(questions.count)) {
        case .page(let tag, let query):
            if case .page(let page)? = try read(.page(query)) {
                try with { $0.pageRead(tag, page, now: $1) }
            } else {
                try with { $0.readFailed(tag, .unavailable("nothing"), now: $1) }
            }
        case .history(let tag, let query):
            if case .history(let reading)? = try read(.history(query)) {
                try with { $0.historyRead(tag, reading, now: $1) }
            } else {
                try with { $0.historyFailed(tag, .unavailable("nothing"), now: $1) }
            }
        case .audience(let tag, let app, let user, let conversation):
            if case .audience(let users)? = try read(.audience(app, user, conversation)) {
                try with { $0.audienceFound(tag, users, now: $1) }
            } else {
                session.audienceFailed(tag)
            }
        case .identity(let tag): try verified(tag)
        case .entropy:
            let entropy = Self.entropy(UInt64(choices.byte()) + 2)
            try with { $0.entropyDrawn(entropy, now: $1) }
        }
    }

    private mutating func verified(_ tag: RequestTag) throws(Violation) {
        let isSound = choices.below(8) != 7
        var nonce = Self.entropy(2).nonce
        if case .verifying(let login, _) = session.phase { nonce = login.entropy.nonce }
        let claims = IdentityClaims(
            issuer: choices.below(8) == 7 ? choices.text() : "backend",
            subject: isSound ? "anna" : choices.user(),
            audience: isSound ? [Self.app.name] : choices.list { $0.text() },
            nonce: isSound ? String(decoding: base64URL(nonce), as: UTF8.self) : choices.text(),
            expiresAt: isSound
                ? Int64(wall.milliseconds / 1_000) + 60
                : Int64(bitPattern: choices.number()),
            notBefore: choices.maybe { Int64(bitPattern: $0.number()) },
            issuedAt: choices.maybe { Int64(bitPattern: $0.number()) })
        try with { [wall] in $0.identityVerified(tag, claims, now: $1, wall: wall) }
    }

    private mutating func fail() throws(Violation) {
        let error: StoreError = choices.one(of: [
            .full("f"), .conflict("f"), .unavailable("f"), .corrupt("f"),
        ])
        if !writes.isEmpty {
            let (tag, request) = writes.removeFirst()
            // It may have been committed.
            if choices.flag() { _ = try commit(request) }
            let isLimited = choices.flag()
            let wait = Milliseconds(choices.number32())
            return try with {
                isLimited
                    ? $0.storeLimited(tag, retryAfter: wait, now: $1)
                    : $0.storeFailed(tag, error, now: $1)
            }
        }
        guard !questions.isEmpty else { return }
        switch questions.remove(at: choices.below(questions.count)) {
        case .page(let tag, _): try with { $0.readFailed(tag, error, now: $1) }
        case .history(let tag, _): try with { $0.historyFailed(tag, error, now: $1) }
        case .audience(let tag, _, _, _): session.audienceFailed(tag)
        case .identity(let tag): try with { $0.identityRefused(tag, .tokenInvalid, now: $1) }
        case .entropy: questions.append(.entropy)
        }
    }

    private mutating func tellHead() throws(Violation) {
        guard let key = session.key,
            case .heads(let heads)? = try read(.heads(Self.app, [key.user])),
            let head = heads.first?.head
        else { return }
        let kinds = choices.flag() ? UInt32.max : choices.number32()
        try with { $0.headMoved(to: head, kinds: kinds, now: $1) }
    }

    /// Another user or a backend.
    private mutating func worldActs() throws(Violation) {
        let app = Self.app
        let request: StoreRequest
        switch choices.below(5) {
        case 0, 1:
            let message = SendMessage(
                conversation: ConversationID(high: 0xC0, low: 0),
                message: choices.id(), parts: [Part(mimeType: "text/plain", content: [104])])
            guard message.message != nil else { return }
            request = .publish(
                app: app, Publication(message: message, sender: "bert"), idempotency: nil)
        case 2: request = .continueFanOut(recipients: 1)
        case 3: request = .coalesceReceipts(users: 2)
        default:
            guard let id: MessageID = choices.id() else { return }
            request = .deleteMessage(app: app, id, idempotency: nil)
        }
        _ = try commit(request)
        for change in changes where change.user == session.key?.user {
            try with { $0.feedChanged(change, now: $1) }
        }
        try tellHead()
    }

    private mutating func serverActs() throws(Violation) {
        switch choices.below(5) {
        case 0:
            let slot = Milliseconds(choices.number32())
            try with { $0.drain(deadline: 20_000, slot: slot, now: $1) }
        case 1:
            let code: Code = choices.some()
            try with { $0.shutDown(code, now: $1) }
        case 2:
            guard session.isOpen else { return }
            let code: Code = choices.some()
            try with { $0.ended(code, now: $1) }
        case 3: try with { $0.challenged(now: $1) }
        default:
            let signal = Signal(
                conversation: choices.id(), kind: choices.some(), ttlMs: choices.number32(),
                user: choices.user())
            try with { $0.signalled(signal, now: $1) }
        }
    }

    // MARK: - Time and ends

    private mutating func pass(_ duration: Milliseconds) throws(Violation) {
        let end = now + duration
        var moments = 0
        var stays = 0
        while let due = session.nextDeadline, due <= end, !session.isFinished {
            moments += 1
            // Its own retries come once a second.
            if moments > 200 { break }
            now = max(now, due)
            try with { $0.deadlineReached(now: $1) }
            // A back-off of nothing is due at once, but not again and again.
            stays = session.nextDeadline.map { $0 <= now } ?? false ? stays + 1 : 0
            try hold(stays < 5, "the deadline at \(now) stays, however often it is told")
        }
        now = end
    }

    private mutating func passToDeadline() throws(Violation) {
        guard let due = session.nextDeadline, due > now else { return }
        try pass(due.since(now))
    }

    private mutating func close() throws(Violation) {
        guard !isClosed else { return }
        isClosed = true
        try with { $0.closed(now: $1) }
    }

    private mutating func connectAgain() throws(Violation) {
        try end()
        connections += 1
        now = now + 10
        session = Self.session(limits, seed: UInt64(connections) + 1, now: now)
        (isReading, isClosing, isClosed, lastTag) = (true, false, false, 0)
        frameLimits = .beforeWelcome
    }

    /// The socket goes, every write is answered: then nothing may be left to do.
    private mutating func end() throws(Violation) {
        try close()
        var rounds = 0
        while !session.isFinished {
            rounds += 1
            try hold(rounds < 100, "a closed session is never finished")
            try answerAll()
            if !session.isFinished, let due = session.nextDeadline {
                now = max(now, due)
                try with { $0.deadlineReached(now: $1) }
            }
        }
    }

    // MARK: - What it wants

    private mutating func with(
        _ input: (inout Session, Instant) -> [SessionAction]
    ) throws(Violation) {
        for action in input(&session, now) { try carryOut(action) }
        try hold(
            session.unacknowledgedBytes <= limits.windowBytes + Frame.bodyBytesMax / 64,
            "P7: \(session.unacknowledgedBytes) bytes unacknowledged")
        try hold(writes.count <= 1, "two writes at once")
        try hold(
            questions.count <= 3 + limits.historyInFlight + limits.signalAudiences,
            "P7: \(questions.count) questions")
        if let key = session.key { try hold(key.app == Self.app, "P6: \(key)") }
    }

    private mutating func ask(_ tag: RequestTag) throws(Violation) {
        try hold(tag.number > lastTag, "tag \(tag.number) after \(lastTag)")
        lastTag = tag.number
    }

    private mutating func carryOut(_ action: SessionAction) throws(Violation) {
        switch action {
        case .send(let frame): try sent(frame)
        case .store(let tag, let request):
            try ask(tag)
            writes.append((tag, request))
        case .read(let tag, let query):
            try ask(tag)
            try hold(!isClosing, "a page is read after the end")
            // The session forgets a page it has no use for; its answer changes nothing.
            questions.removeAll { if case .page = $0 { true } else { false } }
            questions.append(.page(tag, query))
        case .readHistory(let tag, let query):
            try ask(tag)
            questions.append(.history(tag, query))
        case .findAudience(let tag, let app, let user, let conversation):
            try ask(tag)
            questions.append(.audience(tag, app, user, conversation))
        case .verify(let tag, let text, _):
            try ask(tag)
            try hold(text.utf8.count <= limits.identityTokenBytes, "a token too long")
            questions.append(.identity(tag))
        case .drawEntropy: questions.append(.entropy)
        case .signal(let signal, let app, let users):
            try hold(app == Self.app && !users.contains(UserID(signal.user)), "a signal to oneself")
        case .enterHub: try hold(!isClosing, "enters the hub after the end")
        case .leaveHub: break
        case .stopReading:
            try hold(isReading, "stops reading twice")
            isReading = false
        case .resumeReading:
            try hold(!isReading, "goes on reading twice")
            isReading = true
        case .raiseLimits(let raised): frameLimits = raised
        case .close:
            try hold(!isClosing, "closes twice")
            isClosing = true
        case .log: break
        }
    }

    private mutating func sent(_ frame: Frame) throws(Violation) {
        try hold(!isClosing && !isClosed, "\(frame.body.type) is sent after the end")
        try checkRoundTrip(frame)
        switch frame.body {
        case .welcome(let welcome):
            if !welcome.sessionToken.isEmpty { token = welcome.sessionToken }
        case .delta(let delta):
            if let from = delta.from, let to = delta.to, delta.reset == nil {
                try hold(
                    from.epoch != to.epoch || from.seq <= to.seq, "a DELTA backwards: \(delta)")
            }
            if delta.to != nil { cursor = delta.to }
        case .hello, .authenticate, .sync, .ack, .mutate, .fetch, .snapshot, .appState, .digest:
            throw Violation("a server sends \(frame.body.type)")
        default: break
        }
    }
}
