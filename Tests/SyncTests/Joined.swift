import Feed
import MemoryStore
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// A server of one store and two phones of one user, over links that are cut at random: real
/// rules, real sessions, real clients; virtual time.
///
/// Frames and store answers wait in queues; the seed decides which moves next. Checked all the
/// way: a client applies its feed in order, never an entry twice with the same version; never two
/// unanswered SYNC_REQUESTs; never more pushed than the window. And at the end, when the links
/// hold: every phone has everything, and every mutation took effect exactly once.
final class Joined {
    static let app = AppID("chess")
    static let user = UserID("anna")

    /// The server's end of one connection, and the phone's.
    final class Link {
        var session: Session
        var toServer: [[UInt8]] = []
        var toClient: [[UInt8]] = []
        var serverDecoder = FrameDecoder()
        var clientDecoder = FrameDecoder()
        var questions: [SessionAction] = []
        var key: SessionKey?
        var isCut = false
        /// What the phone's frames and the server's say of the rules.
        var asked: UInt64?
        var acknowledged: UInt64 = 0
        var pushed: [(to: UInt64, bytes: Int)] = []

        init(session: Session) { self.session = session }
    }

    final class Device {
        let id: DeviceID
        var local = MemoryLocalStore()
        var client: ClientSession
        /// Of the last comparison with the server.
        var digest: ClientEvent?
        var link: Link?
        var isConnecting = false
        var token: [UInt8]?
        /// Every entry it applied since its last reset, by seq.
        var seen: [UInt64] = []

        init(id: DeviceID, live: Bool, snapshots: Bool, seed: UInt64) throws {
            self.id = id
            client = ClientSession(
                configuration: Device.configuration(id, live: live, snapshots: snapshots),
                state: try local.load(),
                seed: seed)
        }

        static func configuration(
            _ id: DeviceID, live: Bool, snapshots: Bool
        ) -> ClientConfiguration {
            var limits = ClientLimits()
            limits.snapshotMessages = 50
            return ClientConfiguration(
                app: Joined.app.name, device: id, clientName: "t", clientVersion: "1",
                wantsLive: live, wantsSnapshots: snapshots, limits: limits)
        }
    }

    let store: MemoryStore
    var random: SplitMix64
    var now = Instant(milliseconds: 1_000_000)
    var devices: [Device] = []
    var links: [Link] = []
    var configuration: SessionConfiguration
    var conversation = ConversationID(high: 1, low: 1)
    var nextID: UInt64 = 100
    private var commits = 0
    var cuts = 0
    var crashes = 0
    var pushes = 0
    var sentTexts: [MessageID] = []
    /// Failures of the store are left out towards the end.
    var mayFail = true

    /// Snapshots begun by devices that lost everything.
    var amnesias = 0
    let takesSnapshots: Bool

    init(seed: UInt64, snapshots: Bool = false) throws {
        takesSnapshots = snapshots
        random = SplitMix64(seed: seed)
        store = MemoryStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks,
            clock: Timestamp(milliseconds: 5_000_000))
        var limits = SessionLimits()
        limits.windowBytes = 4_096
        limits.windowDeltas = 4
        limits.firstPageBytes = 600
        limits.loginDeadline = 3_600_000
        limits.snapshotFirstPageBytes = 1_500
        limits.snapshotPageBytes = 3_000
        configuration = SessionConfiguration(
            limits: limits, boot: BootID(high: 3, low: 3), node: "n1", sha256: { $0 })
        _ = try commit(.start(boot: BootID(high: 3, low: 3), epochHalf: 5))
        _ = try commit(
            .administer(.putApp(AppRecord(app: Self.app, createdAt: store.now()))))
        _ = try commit(
            .createConversation(
                app: Self.app,
                CreateConversation(
                    conversation: conversation, participants: [Self.user.name, "bob"]),
                idempotency: nil))
        for index in 0..<2 as Range<UInt64> {
            let device = try Device(
                id: DeviceID(high: 9, low: index), live: index == 0, snapshots: snapshots,
                seed: seed &+ index)
            devices.append(device)
            run(device) { $0.start(appState: AppState(phase: .foreground), now: $1) }
        }
    }

    func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

    func fresh<Noun>() -> Identifier<Noun> {
        nextID += 1
        return Identifier(high: 2, low: nextID)
    }

    // MARK: - The store

    /// The store; every other time as if it were a round trip away.
    private var writer: any Store {
        commits += 1
        return commits.isMultiple(of: 2)
            ? DistantEngine(store, lockRanks: Schema.lockRanks) : store
    }

    func commit(_ request: StoreRequest) throws -> StoreAnswer {
        let outcome = try #require(try writer.commit([request]).first).get()
        tell(outcome)
        return outcome.answer
    }

    /// What the hub does.
    func tell(_ outcome: StoreOutcome) {
        for change in outcome.effects.changes.all where change.user == Self.user {
            for link in links where link.key != nil {
                run(link) { $0.feedChanged(change, now: $1) }
            }
        }
        for ended in outcome.effects.ended {
            for link in links where link.key == ended.session {
                run(link) { $0.ended(ended.code, now: $1) }
            }
        }
    }

    func answer(_ link: Link) {
        let wall = store.now()
        switch link.questions.removeFirst() {
        case .store(let tag, let request):
            if mayFail && chance(5) { store.faults = [.full] }
            do throws(StoreError) {
                let results = try writer.commit([request])
                switch results[0] {
                case .success(let outcome):
                    run(link) { $0.storeAnswered(tag, outcome.answer, now: $1, wall: wall) }
                    tell(outcome)
                case .failure(let error):
                    run(link) { $0.storeFailed(tag, error, now: $1) }
                }
            } catch {
                run(link) { $0.storeFailed(tag, error, now: $1) }
            }
        case .read(let tag, let query):
            var reading = StoreReading.nothing
            do throws(StoreError) {
                try store.read { snapshot throws(StoreError) in
                    reading = try Rules.read(.page(query), in: snapshot, now: wall)
                }
            } catch {
                Issue.record("\(error)")
            }
            if case .page(let page) = reading {
                run(link) { $0.pageRead(tag, page, now: $1) }
            } else {
                Issue.record("\(query) gave \(reading)")
            }
        case .readHistory(let tag, let query):
            var reading = StoreReading.nothing
            do throws(StoreError) {
                try store.read { snapshot throws(StoreError) in
                    reading = try Rules.read(.history(query), in: snapshot, now: wall)
                }
            } catch {
                Issue.record("\(error)")
            }
            if case .history(let history) = reading {
                run(link) { $0.historyRead(tag, history, now: $1) }
            } else {
                Issue.record("\(query) gave \(reading)")
            }
        case .verify(let tag, let token, _):
            let claims = IdentityClaims(
                issuer: "t", subject: Self.user.name, audience: [Self.app.name], nonce: token,
                expiresAt: 1 << 40)
            run(link) { $0.identityVerified(tag, claims, now: $1, wall: wall) }
        default: Issue.record("no question")
        }
    }

    // MARK: - The server's shell

    func run(_ link: Link, _ input: (inout Session, Instant) -> [SessionAction]) {
        for action in input(&link.session, now) {
            switch action {
            case .send(let frame):
                watch(frame, link)
                link.toClient.append(frame.encoded)
            case .store, .read, .readHistory, .verify: link.questions.append(action)
            case .enterHub(let key): link.key = key
            case .findAudience, .signal, .drawEntropy: break
            case .leaveHub: link.key = nil
            case .raiseLimits(let limits): link.serverDecoder.limits = limits
            case .close: link.toClient.append([])
            case .stopReading, .resumeReading, .log: break
            }
        }
    }

    /// The promises of one connection, seen from outside.
    private func watch(_ frame: Frame, _ link: Link) {
        let limits = configuration.limits
        switch frame.body {
        case .syncRequest(let request):
            #expect(link.asked == nil, "a second SYNC_REQUEST is unanswered")
            link.asked = request.head
        case .delta(let delta) where frame.request == 0:
            #expect(delta.to?.seq ?? 0 > link.acknowledged, "sent again after its ACK")
            let bytes = link.pushed.reduce(0) { $0 + $1.bytes }
            #expect(bytes < limits.windowBytes && link.pushed.count < limits.windowDeltas)
            #expect(delta.from?.seq ?? 0 < delta.to?.seq ?? 0)
            link.pushed.append((delta.to?.seq ?? 0, frame.encoded.count))
        case .delta(let delta):
            // A SYNC that waited behind a write may name a cursor below what was acknowledged
            // behind it: it is answered from there, and what follows overlaps (SYN-13, SYN-16).
            link.acknowledged = min(link.acknowledged, delta.from?.seq ?? .max)
        default: break
        }
    }

    private func watchApplied(_ applied: UInt64, _ link: Link) {
        link.acknowledged = max(link.acknowledged, applied)
        if let asked = link.asked, applied >= asked { link.asked = nil }
        link.pushed.removeAll { $0.to <= applied }
    }

    // MARK: - The client's shell

    func run(_ device: Device, _ input: (inout ClientSession, Instant) -> [ClientAction]) {
        var actions = input(&device.client, now)
        while !actions.isEmpty {
            let action = actions.removeFirst()
            do throws(LocalStoreError) {
                actions = try carryOut(action, device) + actions
            } catch {
                actions = device.client.storeFailed(error, now: now)
            }
        }
    }

    private func carryOut(
        _ action: ClientAction, _ device: Device
    ) throws(LocalStoreError) -> [ClientAction] {
        switch action {
        case .connect: device.isConnecting = true
        case .send(let frame): device.link?.toServer.append(frame.encoded)
        case .raiseLimits(let limits): device.link?.clientDecoder.limits = limits
        case .disconnect:
            device.isConnecting = false
            if let link = device.link {
                device.link = nil
                // What was sent may still arrive, then the end.
                link.toServer.append([])
            }
        case .apply(let change):
            if mayFail && chance(3) { device.local.fault = .full("") }
            check(change, device, try device.local.apply(change))
            return device.client.committed(now: now)
        case .applyHistory(let change):
            _ = try device.local.applyHistory(change)
            return device.client.historyCommitted(now: now)
        case .applySnapshot(let change):
            if mayFail && chance(3) { device.local.fault = .full("") }
            let (_, last) = try device.local.applySnapshot(change, at: store.now())
            device.seen = []
            return device.client.snapshotCommitted(lastMutation: last, now: now)
        case .sumUp:
            return device.client.digestComputed(try device.local.digest(), now: now)
        case .loadOrphans(let limit):
            return device.client.orphansLoaded(
                try device.local.orphans(limit: limit), now: now)
        case .saveResults(let results): try device.local.saveResults(results)
        case .endReads(let reads):
            return device.client.readsEnded(try device.local.endReads(reads), now: now)
        case .saveSession(let token, let user):
            try device.local.saveSession(token: token, user: user)
        case .forgetSession: try device.local.forgetSession()
        case .loadMutations(let after, let limit):
            return device.client.mutationsLoaded(
                try device.local.mutations(after: after, limit: limit, now: store.now()), now: now)
        case .savePush(let push): try device.local.savePush(push)
        case .markSent(let number): try device.local.markSent(through: number)
        case .markLogoutSent(let number):
            try device.local.markLogoutSent(number)
            return device.client.logoutMarked(now: now)
        case .raiseMutationNumbers(let floor):
            try device.local.raiseMutationNumbers(above: floor)
        case .renumberMutations(let first, let floor):
            try device.local.renumberMutations(from: first, above: floor)
            return device.client.mutationsRenumbered(
                last: device.local.state.lastMutation, now: now)
        case .needIdentityToken(let nonce, _): device.token = nonce
        case .report(let event): if case .digest = event { device.digest = event }
        }
        return []
    }

    private func check(_ change: LocalChange, _ device: Device, _ fresh: [Entry]) {
        if change.marksStale { device.seen = [] }
        #expect(change.entries.map(\.seq) == change.entries.map(\.seq).sorted())
        for entry in fresh {
            #expect(entry.seq > device.seen.last ?? 0, "out of order or twice: \(entry.seq)")
            device.seen.append(entry.seq)
        }
    }

    // MARK: - Steps

    func connect(_ device: Device) {
        device.isConnecting = false
        let entropy = SessionEntropy(
            sessionToken: (0..<4).flatMap { _ in
                (0..<8).map { UInt8(truncatingIfNeeded: random.next() >> $0) }
            }, nonce: Array(repeating: 1, count: 32), seed: random.next())
        let link = Link(
            session: Session(configuration: configuration, entropy: entropy, now: now))
        links.append(link)
        device.link = link
        run(device) { $0.connected(now: $1) }
    }

    /// One chunk of bytes to the server; empty: the end.
    func deliverToServer(_ link: Link) {
        let chunk = link.toServer.removeFirst()
        guard !chunk.isEmpty else { return endServer(link) }
        link.serverDecoder.append(chunk)
        do throws(WireError) {
            while let frame = try link.serverDecoder.next() {
                switch frame.body {
                case .ack(let ack): watchApplied(ack.applied, link)
                case .sync(let sync):
                    watchApplied(sync.applied, link)
                    // A SYNC says anew where the client stands.
                    link.pushed = []
                default: break
                }
                run(link) { $0.received(frame, now: $1) }
            }
        } catch {
            Issue.record("\(error)")
        }
    }

    func endServer(_ link: Link) {
        guard !link.isCut else { return }
        link.isCut = true
        link.toServer = []
        run(link) { $0.closed(now: $1) }
    }

    func deliverToClient(_ device: Device, _ link: Link) {
        let chunk = link.toClient.removeFirst()
        guard !chunk.isEmpty else {
            device.link = nil
            endServer(link)
            return run(device) { $0.closed(now: $1) }
        }
        link.clientDecoder.append(chunk)
        do throws(WireError) {
            while let frame = try link.clientDecoder.next() {
                guard device.link === link else { return }
                run(device) { $0.received(frame, now: $1) }
            }
        } catch {
            Issue.record("\(error)")
        }
    }

    /// Cuts a link: both directions lose what is under way.
    func cut(_ device: Device) {
        guard let link = device.link else { return }
        cuts += 1
        device.link = nil
        // Some of what the phone sent may have arrived.
        while !link.toServer.isEmpty, chance(50) { deliverToServer(link) }
        endServer(link)
        run(device) { $0.closed(now: $1) }
    }

    /// The phone's process dies: only its store is left.
    func crash(_ device: Device) throws {
        crashes += 1
        if let link = device.link { endServer(link) }
        device.link = nil
        device.isConnecting = false
        device.token = nil
        device.client = ClientSession(
            configuration: device.client.configuration, state: try device.local.load(),
            seed: random.next())
        run(device) { $0.start(appState: AppState(phase: .foreground), now: $1) }
    }

    /// The app is installed anew: nothing is left, and its mutations were answered.
    func forget(_ device: Device) throws {
        guard device.local.outbox.isEmpty else { return }
        amnesias += 1
        let numbers = device.local.state.lastMutation
        device.local = MemoryLocalStore()
        try device.local.raiseMutationNumbers(above: numbers)
        try crash(device)
    }

    func publish() throws {
        _ = try commit(
            .publish(
                app: Self.app,
                Publication(
                    message: SendMessage(
                        conversation: conversation, message: fresh(),
                        parts: [Part(mimeType: "t/p", content: [1, 2, 3])],
                        push: PushText(title: "", body: "x")), sender: "bob"), idempotency: nil))
    }

    func act(_ device: Device) throws {
        switch random.next() % 4 {
        case 0:
            let id: MessageID = fresh()
            sentTexts.append(id)
            let number = try device.local.enqueue(
                .sendMessage(
                    SendMessage(
                        conversation: conversation, message: id,
                        parts: [Part(mimeType: "t/p", content: [4])])), at: store.now())
            run(device) { $0.mutationQueued(number, now: $1) }
        case 1:
            let highest = device.local.rows.values.reduce(UInt64(0)) { highest, row in
                if case .message(let state) = row.entry.body {
                    max(highest, state.position)
                } else {
                    highest
                }
            }
            guard highest > 0 else { return }
            let read = ReadReceipt(conversation: conversation, through: highest)
            guard try device.local.addRead(read) else { return }
            run(device) { $0.readQueued(read, now: $1) }
        case 2:
            let phases: [AppPhase] = [.foreground, .background]
            let phase = phases[Int(random.next() % 2)]
            run(device) {
                $0.appStateChanged(AppState(phase: phase, remainingMs: 20_000), now: $1)
            }
        default: run(device) { $0.userRefresh(now: $1) }
        }
    }

    /// One thing that can happen now, or time passes.
    func step(isCalm: Bool) throws {
        links.removeAll {
            $0.isCut && $0.session.isFinished && $0.questions.isEmpty && $0.toServer.isEmpty
        }
        var moves: [() throws -> Void] = []
        for device in devices {
            if device.isConnecting { moves.append { self.connect(device) } }
            if let nonce = device.token {
                moves.append {
                    device.token = nil
                    // The nonce as the fake signer puts it into the token.
                    _ = nonce
                    self.run(device) {
                        $0.identityToken(
                            "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE", now: $1)
                    }
                }
            }
            if let link = device.link, !link.toClient.isEmpty {
                moves.append { self.deliverToClient(device, link) }
            }
        }
        for link in links {
            if !link.toServer.isEmpty { moves.append { self.deliverToServer(link) } }
            if !link.questions.isEmpty { moves.append { self.answer(link) } }
        }
        // A HELLO of a killed process that is processed late supersedes the living one, which then
        // stays down (SES-16) until the server's push wakes it: here is that push.
        for device in devices where device.client.isIdle && chance(5) {
            pushes += 1
            run(device) {
                $0.pushReceived(wake: nil, appState: AppState(phase: .foreground), now: $1)
            }
        }
        if !isCalm {
            if chance(12) { return try publish() }
            for device in devices {
                if chance(8) { return try act(device) }
                if chance(2) { return cut(device) }
                if chance(1) { return try crash(device) }
                if takesSnapshots, random.next() % 400 == 0 { return try forget(device) }
            }
        }
        if moves.isEmpty || chance(5) { return pass() }
        try moves[Int(random.next() % UInt64(moves.count))]()
    }

    private func pass() {
        let deadlines =
            links.compactMap(\.session.nextDeadline) + devices.compactMap(\.client.nextDeadline)
        let next = min(deadlines.min() ?? now, now + 500)
        let passed = max(next, now).since(now) + 1
        now = now + passed
        store.clock = store.clock + passed
        for link in links where link.session.nextDeadline.map({ $0 <= now }) == true {
            run(link) { $0.deadlineReached(now: $1) }
        }
        for device in devices where device.client.nextDeadline.map({ $0 <= now }) == true {
            run(device) { $0.deadlineReached(now: $1) }
        }
    }

    var isSettled: Bool {
        devices.allSatisfy { device in
            device.client.isOpen && device.client.isInSync && !device.client.hasUnanswered
                && device.link?.toClient.isEmpty == true
        } && links.allSatisfy { $0.toServer.isEmpty && $0.questions.isEmpty }
    }

    func feed() throws -> Page {
        var reading = StoreReading.nothing
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(
                .page(
                    PageQuery(
                        app: Self.app, user: Self.user, device: DeviceID(high: 0, low: 0),
                        after: 0, bytes: 1 << 30)), in: snapshot, now: Timestamp(milliseconds: 0))
        }
        guard case .page(let page) = reading else { throw LocalStoreError.corrupt("no page") }
        return page
    }
}

extension ClientEvent {
    var isEqualDigest: Bool {
        if case .digest(let isComparable, let isEqual, _) = self {
            isComparable && isEqual
        } else {
            false
        }
    }
}
