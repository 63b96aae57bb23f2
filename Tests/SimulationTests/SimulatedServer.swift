import Feed
import MemoryStore
import Model
import SyncServer
import Wake
import Wire
import WorkingSet

/// A server process as the real one is put together: sessions, a hub, one writer with group
/// commit, a reader, duties, a gateway. The process can be killed; the store stays.
final class SimulatedServer {
    private final class Connection {
        let number: UInt64
        let link: SimulatedLink
        var session: Session
        var decoder = FrameDecoder()
        var sent: UInt64 = 0
        var place: SessionKey?
        var timer: Instant?
        var isClosed = false

        init(_ number: UInt64, _ link: SimulatedLink, _ session: Session) {
            self.number = number
            self.link = link
            self.session = session
        }
    }

    private struct Job {
        let request: StoreRequest
        /// `nil`: nobody waits for it.
        let answer: ((Result<StoreOutcome, StoreError>) throws -> Void)?
    }

    private unowned let simulation: any SimulatedWorld
    private let disk: any SimulatedDisk
    private var backup: MemoryStore?
    private var epochs: UInt64 = 77
    private var connections: [UInt64: Connection] = [:]
    private var jobs: [Job] = []
    private var isCommitting = false
    /// What the process knows of the store from one transaction to the next, some answers
    /// compared with the store's.
    private(set) var known = SimulatedServer.nothingKnown
    private var boot = BootID(high: 0, low: 0)
    /// Events of an earlier process do nothing.
    private(set) var life: UInt64 = 0
    private(set) var isUp = false
    private var pushesInFlight = 0
    private var dutiesDue = Instant(milliseconds: 0)
    private var lastDuties: UInt64 = 0

    init(_ simulation: any SimulatedWorld, disk: any SimulatedDisk = MemoryDisk()) {
        self.simulation = simulation
        self.disk = disk
        disk.clock = simulation.clock.wall
    }

    var store: any Store { disk.store }

    /// Too little room for everything, so that rows go.
    private static var nothingKnown: WorkingSet {
        WorkingSet(carrying: 64 * 1024, verifiedEvery: 5)
    }

    private var clock: Clockwork { simulation.clock }

    private func later(_ delay: Milliseconds, _ run: @escaping () throws -> Void) {
        let life = life
        clock.after(delay) { [weak self] in
            guard let self, self.isUp, self.life == life else { return }
            try run()
        }
    }

    // MARK: The process

    func start() throws {
        isUp = true
        life += 1
        boot = BootID(high: 1, low: life)
        try disk.open()
        disk.clock = clock.wall
        known = Self.nothingKnown
        let results = try store.commit(
            [.start(boot: boot, epochHalf: epochs)], through: known, limits: simulation.limits)
        _ = try results.first?.get()
        guard simulation.nextDuties == nil else { return duties() }
        for (request, every) in [
            (StoreRequest.continueFanOut(recipients: 3), Milliseconds(100)),
            (.coalesceReceipts(users: 8), 250), (.sweepWakes(rows: 64), 1_000),
            (.enforceRetention(rows: 100), 10_000), (.keepAlive, 2_000),
        ] where !(simulation.defect == .neverSweeps && request == .sweepWakes(rows: 64)) {
            duty(request, every: every)
        }
        claim()
        lookAtHeads()
    }

    /// kill -9: what is in memory is gone, what is committed stays.
    func kill() {
        simulation.reached.count("the server killed")
        if !jobs.isEmpty { simulation.reached.count("killed with requests waiting") }
        isUp = false
        life += 1
        for connection in connections.values.sorted(by: { $0.number < $1.number }) {
            connection.link.abandon(.server)
        }
        connections = [:]
        jobs = []
        isCommitting = false
        pushesInFlight = 0
    }

    func backUp() throws { backup = try disk.backUp() }

    /// The machine is lost; another one starts with the backup (`rouse restore`).
    ///
    /// - Returns: whether there was one.
    func restore() throws -> Bool {
        guard let backup else { return false }
        if isUp { kill() }
        try disk.restore(backup)
        disk.clock = clock.wall
        epochs += 1
        let restored = try store.commit([.restore(epochHalf: epochs)], limits: simulation.limits)
        _ = try restored.first?.get()
        return true
    }

    private func duty(_ request: StoreRequest, every interval: Milliseconds) {
        // Less often in the calm, which is long; but a gap in `alive_at` would mean an outage.
        let isRare = simulation.isCalm && request != .keepAlive
        later(isRare ? interval * 10 : interval) { [unowned self] in
            self.ask(request) { _ in }
            self.duty(request, every: interval)
        }
    }

    /// All of them in one transaction, when the world says, and soon after others have written.
    private func duties() {
        guard let pause = simulation.nextDuties else { return }
        lastDuties += 1
        let number = lastDuties
        dutiesDue = clock.now + pause
        later(pause) { [unowned self] in
            guard number == self.lastDuties else { return }
            for request in [
                StoreRequest.continueFanOut(recipients: 8), .continueDeletions(rows: 100),
                .coalesceReceipts(users: 8), .sweepWakes(rows: 64), .keepAlive,
            ] {
                self.jobs.append(Job(request: request, answer: nil))
            }
            self.claimOnce()
            self.duties()
        }
    }

    // MARK: The store

    func ask(
        _ request: StoreRequest,
        _ answer: @escaping (Result<StoreOutcome, StoreError>) throws -> Void
    ) {
        jobs.append(Job(request: request, answer: answer))
        commitSoon()
        if let pause = simulation.nextDuties, clock.now + pause < dutiesDue { duties() }
    }

    private func commitSoon() {
        guard !isCommitting, !jobs.isEmpty else { return }
        isCommitting = true
        let isSlow = !simulation.isCalm && simulation.chance.once(in: 200)
        later(1 + simulation.chance.upTo(isSlow ? 4_000 : 15)) { [unowned self] in
            try self.commit()
        }
    }

    private func commit() throws {
        let batch = Array(jobs.prefix(16))
        jobs.removeFirst(batch.count)
        disk.clock = clock.wall
        let faults: [MemoryStore.CommitFault] = [
            .full, .conflict, .lostBeforeCommit, .lostAfterCommit,
        ]
        let fault =
            !simulation.isCalm && simulation.chance.once(in: 60)
            ? simulation.chance.one(of: faults) : nil
        disk.fault = fault
        let outcomes: [Result<StoreOutcome, StoreError>]
        do throws(StoreError) {
            if simulation.defect == .answersWithoutCommit, simulation.chance.once(in: 50) {
                outcomes = try answersWithoutCommit(batch.map(\.request))
            } else {
                outcomes = try store.commit(
                    batch.map(\.request), through: known, limits: simulation.limits)
            }
        } catch {
            outcomes = batch.map { _ in .failure(error) }
        }
        if let fault { simulation.reached.count("a commit fails: \(fault)") }
        disk.fault = nil
        try simulation.committed(outcomes)
        try checkFeeds(after: batch, outcomes)
        tellHub(outcomes)
        // Killed between the commit and the answers, now and then.
        for (job, outcome) in zip(batch, outcomes) {
            guard let answer = job.answer else { continue }
            later(simulation.chance.upTo(3)) { try answer(outcome) }
        }
        isCommitting = false
        commitSoon()
    }

    private func answersWithoutCommit(
        _ requests: [StoreRequest]
    ) throws(StoreError) -> [Result<StoreOutcome, StoreError>] {
        var outcomes: [Result<StoreOutcome, StoreError>] = []
        disk.fault = nil
        try? store.write { transaction throws(StoreError) in
            for request in requests {
                outcomes.append(
                    .success(
                        try Rules.execute(
                            request, in: transaction, now: clock.wall, limits: simulation.limits)))
            }
            throw .conflict("on purpose")
        }
        return outcomes.count == requests.count
            ? outcomes : requests.map { _ in .failure(.conflict("on purpose")) }
    }

    private func tellHub(_ outcomes: [Result<StoreOutcome, StoreError>]) {
        tellOfFeeds(outcomes)
        for case .success(let outcome) in outcomes {
            for challenged in outcome.effects.challenged {
                for connection in members(challenged.app, challenged.user)
                where connection.place == challenged {
                    simulation.reached.count("a session asked anew")
                    later(simulation.chance.upTo(5)) { [weak self, weak connection] in
                        guard let self, let connection else { return }
                        try self.run(connection) { $0.challenged(now: $1) }
                    }
                }
            }
            for ended in outcome.effects.ended {
                for connection in members(ended.session.app, ended.session.user)
                where connection.place == ended.session {
                    simulation.reached.count("a session ended: \(ended.code)")
                    later(simulation.chance.upTo(5)) { [weak self, weak connection] in
                        guard let self, let connection else { return }
                        try self.run(connection) { $0.ended(ended.code, now: $1) }
                    }
                }
            }
        }
    }

    private func tellOfFeeds(_ outcomes: [Result<StoreOutcome, StoreError>]) {
        var changes = FeedChanges(limits: simulation.limits.tail)
        for case .success(let outcome) in outcomes { changes.join(outcome.effects.changes) }
        changes.finish()
        for change in changes.all {
            for connection in members(change.app, change.user) {
                // A hint may get lost: the look at the heads finds it.
                if !simulation.isCalm, simulation.chance.once(in: 30) {
                    simulation.reached.count("a hint lost")
                    connection.session.unreadMoved()
                    continue
                }
                // Hints may overtake each other, but none the news that no entry heals.
                if change.kinds == 0 { connection.session.unreadMoved() }
                later(simulation.chance.upTo(5)) { [weak self, weak connection] in
                    guard let self, let connection else { return }
                    let before = connection.session.pushed
                    try self.run(connection) { $0.feedChanged(change, now: $1) }
                    if connection.session.pushed.byTail > before.byTail {
                        self.simulation.reached.count("a tail pushed")
                    }
                }
            }
        }
    }

    private func members(_ app: AppID, _ user: UserID) -> [Connection] {
        connections.values.filter { $0.place?.app == app && $0.place?.user == user }
            .sorted { $0.number < $1.number }
    }

    private func lookAtHeads() {
        later(2_000) { [unowned self] in
            for connection in self.connections.values.sorted(by: { $0.number < $1.number }) {
                guard let place = connection.place else { continue }
                let reading = try self.read(.heads(place.app, [place.user]))
                if case .heads(let heads)? = reading, let head = heads.first?.head {
                    try self.run(connection) { $0.headMoved(to: head, kinds: .max, now: $1) }
                }
            }
            self.lookAtHeads()
        }
    }

    func read(_ query: StoreQuery) throws -> StoreReading? {
        var reading: StoreReading?
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(
                query, in: snapshot, now: self.clock.wall, limits: self.simulation.limits
            ) { row in
                self.simulation.violations.append("P3: \(row.user): \(row.detail)")
            }
        }
        return reading
    }

    /// P3: every entry of every feed can be read, whatever was deleted and cleared away behind it.
    private func checkFeeds(after batch: [Job], _ outcomes: [Result<StoreOutcome, StoreError>])
        throws
    {
        let isClearing = batch.contains {
            if case .enforceRetention = $0.request { true } else { false }
        }
        guard !simulation.watched.isEmpty else { return }
        var users: Set<UserID> = []
        if isClearing { users = Set(simulation.watched.map { UserID($0) }) }
        for case .success(let outcome) in outcomes {
            users.formUnion(outcome.effects.changes.all.map(\.user))
        }
        for user in users.sorted() {
            _ = try wholeFeed(of: user)
            simulation.reached.count("a feed read whole")
        }
    }

    func wholeFeed(of user: UserID) throws -> [Entry] {
        var entries: [Entry] = []
        var after: UInt64 = 0
        while case .page(let page)? = try read(
            .page(
                PageQuery(
                    app: simulation.app, user: user, device: DeviceID(high: 0, low: 0),
                    after: after, bytes: 1 << 20)))
        {
            entries += page.entries
            guard page.more else { break }
            after = page.to
        }
        return entries
    }

    // MARK: Connections

    private func drawnEntropy() -> SessionEntropy {
        let seed = simulation.chance.next()
        func bytes(_ first: UInt64) -> [UInt8] {
            (0..<4).flatMap { Identifier<Noun.Push>(high: first, low: seed &+ $0).bytes.suffix(8) }
        }
        return SessionEntropy(sessionToken: bytes(1), nonce: bytes(2), seed: seed)
    }

    /// The TLS handshake is done.
    func accept(_ link: SimulatedLink) {
        let seed = simulation.chance.next()
        let configuration = SessionConfiguration(
            limits: simulation.sessionLimits, boot: boot, node: "n", sha256: { [1] + $0 })
        func bytes(_ first: UInt64) -> [UInt8] {
            (0..<4).flatMap { Identifier<Noun.Push>(high: first, low: seed &+ $0).bytes.suffix(8) }
        }
        let session = Session(
            configuration: configuration,
            entropy: drawnEntropy(), now: clock.now)
        let connection = Connection(link.number, link, session)
        connections[link.number] = connection
        let life = life
        link.attach(
            .server,
            SimulatedLink.Handlers(
                received: { [weak self, weak connection] bytes in
                    guard let self, let connection, self.life == life else { return }
                    try self.received(bytes, connection)
                },
                closed: { [weak self, weak connection] in
                    guard let self, let connection, self.life == life else { return }
                    try self.closed(connection)
                }))
        setTimer(connection)
    }

    private func received(_ bytes: [UInt8], _ connection: Connection) throws {
        guard !connection.isClosed else { return }
        connection.decoder.append(bytes)
        while !connection.isClosed {
            let next: Frame?
            do throws(WireError) {
                next = try connection.decoder.next()
            } catch {
                throw Violation("the server cannot read what a client sent: \(error)")
            }
            guard let frame = next else { return }
            try run(connection) { $0.received(frame, now: $1) }
        }
    }

    private func closed(_ connection: Connection) throws {
        guard !connection.isClosed else { return }
        connection.isClosed = true
        if connection.decoder.bufferedBytes > 0 { simulation.reached.count("cut inside a frame") }
        try run(connection) { $0.closed(now: $1) }
    }

    private func run(
        _ connection: Connection, _ input: (inout Session, Instant) -> [SessionAction]
    ) throws {
        let actions = input(&connection.session, clock.now)
        for action in actions { try carryOut(action, connection) }
        guard connection.session.unacknowledgedBytes <= simulation.sessionLimits.windowBytes * 2
        else {
            throw Violation("P7: \(connection.session.unacknowledgedBytes) bytes unacknowledged")
        }
        if connection.session.isFinished {
            connections[connection.number] = nil
        } else {
            setTimer(connection)
        }
    }

    private func setTimer(_ connection: Connection) {
        guard let due = connection.session.nextDeadline, due != connection.timer else { return }
        connection.timer = due
        let life = life
        clock.at(due) { [weak self, weak connection] in
            guard let self, let connection, self.life == life, connection.timer == due else {
                return
            }
            connection.timer = nil
            let taken = connection.link.takenByDevice
            let waiting = Int(connection.sent - min(taken, connection.sent))
            try self.run(connection) {
                $0.progressed(taken: taken, unsent: 0, outstanding: waiting, now: $1)
            }
            try self.run(connection) { $0.deadlineReached(now: $1) }
        }
    }

    private func carryOut(_ action: SessionAction, _ connection: Connection) throws {
        switch action {
        case .send(let frame):
            let frame = simulation.defect == .losesEntries ? losing(frame) : frame
            try simulation.serverSends(frame, on: connection.number)
            let bytes = frame.encoded
            connection.sent += UInt64(bytes.count)
            connection.link.send(bytes, to: .device)
        case .store(let tag, let request):
            ask(request) { [weak self, weak connection] result in
                guard let self, let connection else { return }
                switch result {
                case .success(let outcome):
                    let wall = self.clock.wall
                    try self.run(connection) {
                        $0.storeAnswered(tag, outcome.answer, now: $1, wall: wall)
                    }
                case .failure(let error):
                    try self.run(connection) { $0.storeFailed(tag, error, now: $1) }
                }
            }
        case .read(let tag, let query):
            later(1 + simulation.chance.upTo(20)) { [weak self, weak connection] in
                guard let self, let connection else { return }
                guard case .page(let page)? = try self.read(.page(query)) else {
                    return try self.run(connection) {
                        $0.readFailed(tag, .unavailable("no page"), now: $1)
                    }
                }
                try self.run(connection) { $0.pageRead(tag, page, now: $1) }
            }
        case .readHistory(let tag, let query):
            later(1 + simulation.chance.upTo(20)) { [weak self, weak connection] in
                guard let self, let connection else { return }
                guard case .history(let reading)? = try self.read(.history(query)) else {
                    return try self.run(connection) {
                        $0.historyFailed(tag, .unavailable("no history"), now: $1)
                    }
                }
                try self.run(connection) { $0.historyRead(tag, reading, now: $1) }
            }
        case .verify(let tag, let token, _):
            later(1) { [weak self, weak connection] in
                guard let self, let connection else { return }
                let words = token.split(separator: " ").map(String.init)
                let claims = IdentityClaims(
                    issuer: "backend", subject: words[0], audience: [simulation.app.name],
                    nonce: words[1],
                    expiresAt: Int64(self.clock.wall.milliseconds / 1_000) + 60)
                let wall = self.clock.wall
                try self.run(connection) {
                    $0.identityVerified(tag, claims, now: $1, wall: wall)
                }
            }
        case .drawEntropy:
            let entropy = drawnEntropy()
            later(1) { [weak self, weak connection] in
                guard let self, let connection else { return }
                try self.run(connection) { $0.entropyDrawn(entropy, now: $1) }
            }
        case .findAudience(let tag, let app, let user, let conversation):
            later(1 + simulation.chance.upTo(20)) { [weak self, weak connection] in
                guard let self, let connection else { return }
                guard
                    case .audience(let users)? = try self.read(.audience(app, user, conversation))
                else { return connection.session.audienceFailed(tag) }
                let told =
                    self.simulation.defect == .tellsStrangers
                    ? self.simulation.others(than: user) : users
                try self.run(connection) { $0.audienceFound(tag, told, now: $1) }
            }
        case .signal(let signal, let app, let users): hand(signal, app, to: users)
        case .enterHub(let key): connection.place = key
        case .leaveHub(let key): if connection.place == key { connection.place = nil }
        case .raiseLimits(let limits): connection.decoder.limits = limits
        case .close:
            guard !connection.isClosed else { return }
            connection.isClosed = true
            connection.link.close(from: .server)
            try run(connection) { $0.closed(now: $1) }
        case .stopReading: simulation.reached.count("the server stops reading")
        case .resumeReading: break
        case .log(let event):
            if case .suspected = event { simulation.reached.count("a session suspected") }
        }
    }

    /// To whoever is connected now. Some are lost, as the first to be dropped.
    private func hand(_ signal: Signal, _ app: AppID, to users: [UserID]) {
        simulation.reached.count("a signal handed on")
        for user in users {
            for connection in members(app, user) {
                if !simulation.isCalm, simulation.chance.once(in: 10) {
                    simulation.reached.count("a signal lost")
                    continue
                }
                later(simulation.chance.upTo(5)) { [weak self, weak connection] in
                    guard let self, let connection else { return }
                    try self.run(connection) { $0.signalled(signal, now: $1) }
                }
            }
        }
    }

    private func losing(_ frame: Frame) -> Frame {
        guard case .delta(var delta) = frame.body, !delta.entries.isEmpty,
            simulation.chance.once(in: 20)
        else { return frame }
        delta.entries.removeFirst()
        return Frame(.delta(delta), request: frame.request, more: frame.more)
    }

    // MARK: The gateway

    private func claim() {
        later(simulation.isCalm ? 1_000 : 200) { [unowned self] in
            self.claimOnce()
            self.claim()
        }
    }

    private func claimOnce() {
        let free = 8 - pushesInFlight
        guard free > 0 else { return }
        let ids = (0..<free).map { _ in
            WakeID(high: simulation.chance.next(), low: simulation.chance.next())
        }
        ask(.claimPushes(ClaimPushes(boot: boot, streams: free, ids: ids))) {
            [unowned self] result in
            guard case .success(let outcome) = result,
                case .pushes(let claimed) = outcome.answer
            else { return }
            for job in claimed.jobs { self.push(job) }
        }
    }

    private func push(_ job: PushJob) {
        pushesInFlight += 1
        simulation.reached.count("a \(job.kind) push")
        simulation.push(job.request) { [weak self, life] reply in
            guard let self, self.life == life else { return }
            self.later(self.simulation.chance.upTo(50)) {
                self.pushesInFlight -= 1
                self.finish(job, reply, tries: 5)
            }
        }
    }

    private func finish(_ job: PushJob, _ reply: PushReply, tries: Int) {
        ask(.finishPush(FinishPush(key: job.key, id: job.request.id, reply: reply))) {
            [weak self] result in
            // The lease bounds how long this is worth trying.
            guard let self, case .failure = result, tries > 0 else { return }
            self.later(500) { self.finish(job, reply, tries: tries - 1) }
        }
    }
}
