import Feed
import Foundation
import Model
import Testing
import Wake

@testable import PushPool

/// The pool against a store and an APNs that do everything they may do, in virtual time.
@Suite struct SimulationTests {
    @Test("whatever APNs and the store do, each push gets one outcome, and no rule is broken")
    func seeds() {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["ROUSE_SEED"].flatMap({ UInt64($0) }) {
            return run(seed: seed)
        }
        let count = environment["ROUSE_SIMULATIONS"].flatMap { UInt64($0) } ?? 12
        for seed in 1...count { run(seed: seed) }
    }

    private func run(seed: UInt64) {
        var world = World(seed: seed)
        world.trouble()
        world.peace()
        world.stop()
        if !world.broken.isEmpty {
            Issue.record("seed \(seed): \(world.broken.prefix(5).joined(separator: "; "))")
        }
    }
}

/// A store, APNs, and a judge who knows what may be sent when.
struct World {
    /// Broken rules.
    private(set) var broken: [String] = []
    private var chance: SplitMix64
    private var pool: PushPool
    private let configuration: PushGatewayConfiguration
    private var now: UInt64 = 100_000_000
    private var tickAt: UInt64 = 100_000_000
    /// All is well: the store answers, APNs takes everything.
    private var isPeaceful = false
    private var hasEnded = false

    // The store.
    private var due: [PushJob] = []
    private var lastNumber: UInt64 = 0
    /// Claimed and not written down, by device.
    private var claimed: [UInt64: Claimed] = [:]
    private var accepted: Set<UInt64> = []
    private var claim: PushClaim?
    private var writes: [PushFinish] = []
    private var asked: [TokenRequest] = []
    private var tokens: [ProviderKey: String] = [:]
    private var tokensMade = 0

    private struct Claimed {
        let job: PushJob
        let at: UInt64
        /// The stream it is on.
        var stream: ConnectionID?
        /// APNs has said what it says, or may have: it must not be sent again.
        var isOver = false
        var finishes = 0
        /// The store failed to take what came of it.
        var hasFailed = false
    }

    // APNs.
    private var connections: [ConnectionID: Peer] = [:]
    /// What the pool has said of pauses.
    private var paused: Set<CredentialKey> = []

    private struct Peer {
        let credential: PushCredentialRecord
        var isUp = false
        var allowed = 1
        var isTrusted = false
        var isLeaving = false
        var isPinged = false
        var streams: [UInt64: HeldPush] = [:]
        var lastTag: UInt64 = 0
    }

    init(seed: UInt64) {
        chance = SplitMix64(seed: seed)
        var configuration = PushGatewayConfiguration()
        configuration.waitingMax = 8
        configuration.claimMax = 16
        configuration.connectionsMax = 3
        configuration.streamsMax = 12
        configuration.verdictDelay = seed % 2 == 0 ? 0 : 2_000
        self.configuration = configuration
        pool = PushPool(configuration: configuration, seed: seed)
        handle(.credentials(Self.credentials))
    }

    private static let credentials = ["chat", "chat/b", "cert"].map { Stage.credential($0) }

    // MARK: - The course of things

    mutating func trouble() {
        for _ in 0..<400 {
            let count = 1 + chance.upTo(9)
            if chance.upTo(3) == 0 { add(count) }
            step()
        }
    }

    /// From now on all goes well: everything that is due is taken in the end.
    mutating func peace() {
        isPeaceful = true
        for _ in 0..<8_000 where accepted.count < lastNumber { step() }
        let left = lastNumber - UInt64(accepted.count)
        hold(left == 0, "\(left) never taken")
    }

    mutating func stop() {
        add(5)
        step()
        isPeaceful = false
        handle(.stop)
        for _ in 0..<400 where !hasEnded { step() }
        hold(hasEnded, "it does not stop")
        let open = connections.count
        hold(open == 0, "\(open) connections are left")
    }

    private mutating func add(_ count: UInt64) {
        for _ in 0..<count {
            lastNumber += 1
            let app = ["chat", "chat/b", "cert"][Int(chance.upTo(2))]
            let kind = PushKind.allCases[Int(chance.upTo(3))]
            due.append(job(lastNumber, app: app, kind: kind))
        }
        handle(.ring)
    }

    private mutating func step() {
        let passed = chance.upTo(900)
        now += passed
        if now >= tickAt {
            tickAt = now + configuration.tick
            handle(.tick)
        }
        answerClaim()
        writeDown()
        answerToken()
        for id in connections.keys.sorted(by: { $0.number < $1.number }) { turn(id) }
        judgeBounds()
        if !isPeaceful, !hasEnded, chance.upTo(150) == 0 { changeCredentials() }
    }

    private mutating func changeCredentials() {
        var changed = Self.credentials
        if chance.upTo(1) == 0 {
            changed[0].changedAt = Timestamp(milliseconds: now)
        } else {
            changed.remove(at: Int(chance.upTo(2)))
        }
        handle(.credentials(changed))
        handle(.credentials(Self.credentials))
    }

    // MARK: - The store

    private mutating func answerClaim() {
        guard let claim, isPeaceful || chance.upTo(2) > 0 else { return }
        self.claim = nil
        if !isPeaceful, chance.upTo(9) == 0 {
            return handle(.claimed(claim, .failure(.unavailable("test"))))
        }
        var rooms: [CredentialKey: PushRoom] = [:]
        for room in claim.rooms { rooms[room.credential] = room }
        var jobs: [PushJob] = []
        var blocked: Set<PushLane> = []
        var left: [PushJob] = []
        for job in due {
            let free = rooms[job.credential]?.free(job.lane, job.request.topic) ?? 0
            if jobs.count < claim.streams, free > 0 {
                rooms[job.credential]?.take(1, job.lane, job.request.topic)
                jobs.append(job)
            } else {
                left.append(job)
                if free == 0 { blocked.insert(PushLane(job.credential, job.lane)) }
            }
        }
        due = left
        for job in jobs {
            claimed[job.key.device.low] = Claimed(job: job, at: now)
        }
        let answer = ClaimedPushes(
            jobs: jobs, more: jobs.count == claim.streams, blocked: blocked.sorted(),
            nextDue: nil)
        handle(.claimed(claim, .success(answer)))
    }

    private mutating func writeDown() {
        let batch = writes
        writes = []
        for finish in batch {
            let number = finish.push.number
            if !isPeaceful, chance.upTo(9) == 0 {
                claimed[number]?.finishes -= 1
                claimed[number]?.hasFailed = true
                handle(.finished(finish, .unavailable("test")))
                continue
            }
            if let held = claimed.removeValue(forKey: number) {
                settle(held.job, finish.reply)
            }
            handle(.finished(finish, nil))
        }
        reclaim()
    }

    private mutating func settle(_ job: PushJob, _ reply: PushReply) {
        switch reply {
        case .answered: accepted.insert(job.key.device.low)
        case .unanswered, .notSent, .lost: again(job)
        }
    }

    /// What was claimed is due again when its lease has ended.
    private mutating func reclaim() {
        for (number, held) in claimed where now > held.at + WakePolicy.lease + 5_000 {
            hold(held.isOver || held.hasFailed, "push \(number) was claimed and forgotten")
            claimed[number] = nil
            again(held.job)
        }
    }

    private mutating func again(_ job: PushJob) {
        var job = job
        job.key.attempt += 1
        due.append(job)
    }

    private mutating func answerToken() {
        guard !asked.isEmpty, isPeaceful || chance.upTo(3) > 0 else { return }
        let request = asked.removeFirst()
        if !isPeaceful, chance.upTo(5) == 0 {
            return handle(.token(request.key, .failed))
        }
        if tokens[request.key] == nil || request.refused != nil {
            tokensMade += 1
            tokens[request.key] = "t\(tokensMade)"
        }
        let kept = KeptProviderToken(token: tokens[request.key] ?? "", age: 0)
        handle(.token(request.key, .kept(kept, issuedAt: request.issuedAt)))
    }

    // MARK: - APNs

    /// One of the things a connection may do.
    private mutating func turn(_ id: ConnectionID) {
        guard let peer = connections[id] else { return }
        if !peer.isUp { return begin(id) }
        if peer.isPinged, isPeaceful || chance.upTo(2) > 0 {
            connections[id]?.isPinged = false
            tell(id, [.heard, .pingAnswered])
        }
        let tags = peer.streams.keys.sorted()
        if peer.isLeaving, tags.isEmpty { return endInOrder(id) }
        if isPeaceful {
            let all = tags.map { taken($0, id) }
            return tell(id, [.heard, .caughtUp] + all)
        }
        switch chance.upTo(39) {
        case 0: end(id)
        case 1: goAway(id)
        case 2:
            // What it allows may shrink: what is open then goes on.
            connections[id]?.allowed = Int(1 + chance.upTo(9))
            tell(id, [.heard, .allows(streams: connections[id]?.allowed ?? 1)])
        case 3: tell(id, [.behind])
        case 4...8: tell(id, [.heard, .caughtUp])
        case 9...20: break  // It is slow.
        default:
            let some = tags.filter { _ in chance.upTo(1) == 0 }
            if !some.isEmpty { tell(id, [.heard] + some.map { answer($0, id) }) }
        }
    }

    private mutating func begin(_ id: ConnectionID) {
        if !isPeaceful {
            let luck = chance.upTo(9)
            if luck == 0 { return end(id) }
            if luck < 5 { return }
        }
        connections[id]?.isUp = true
        connections[id]?.allowed = isPeaceful ? 100 : Int(1 + chance.upTo(19))
        tell(id, [.up, .heard, .allows(streams: connections[id]?.allowed ?? 1)])
    }

    private mutating func end(_ id: ConnectionID) {
        for push in (connections.removeValue(forKey: id)?.streams ?? [:]).values {
            claimed[push.number]?.isOver = true
            claimed[push.number]?.stream = nil
        }
        handle(.connection(id, [.ended(.cut, inOrder: false)]))
    }

    private mutating func goAway(_ id: ConnectionID) {
        let tags = connections[id]?.streams.keys.sorted() ?? []
        let last = tags.isEmpty ? 0 : tags[Int(chance.upTo(UInt64(tags.count - 1)))]
        let above = tags.filter { $0 > last }
        connections[id]?.isLeaving = true
        for tag in above { takeBack(tag, id) }
        let reasons = ["", "", "Shutdown", "BadCertificateEnvironment"]
        tell(
            id,
            [.heard, .goAway(reason: reasons[Int(chance.upTo(3))], code: 0), .refused(tags: above)])
        if connections[id]?.streams.isEmpty ?? false { endInOrder(id) }
    }

    private mutating func endInOrder(_ id: ConnectionID) {
        connections[id] = nil
        handle(.connection(id, [.ended(.cut, inOrder: true)]))
    }

    private mutating func takeBack(_ tag: UInt64, _ id: ConnectionID) {
        let push = connections[id]?.streams.removeValue(forKey: tag)
        if let push { claimed[push.number]?.stream = nil }
    }

    private mutating func over(_ tag: UInt64, _ id: ConnectionID) {
        if let push = connections[id]?.streams[tag] { claimed[push.number]?.isOver = true }
        takeBack(tag, id)
    }

    private mutating func taken(_ tag: UInt64, _ id: ConnectionID) -> ConnectionEvent {
        over(tag, id)
        connections[id]?.isTrusted = true
        return .answered(tag: tag, PushResponse(status: 200))
    }

    private mutating func answer(_ tag: UInt64, _ id: ConnectionID) -> ConnectionEvent {
        let luck = chance.upTo(29)
        if luck == 0 {
            takeBack(tag, id)
            return .refused(tags: [tag])
        }
        if luck == 1 {
            takeBack(tag, id)
            return .notTaken(tag: tag)
        }
        over(tag, id)
        if luck == 2 { return .reset(tag: tag) }
        if luck == 3 { return .answered(tag: tag, nil) }
        let refusals: [(UInt64, String)] = [
            (400, "BadDeviceToken"), (400, "BadTopic"), (403, "ExpiredProviderToken"),
            (403, "InvalidProviderToken"), (410, "Unregistered"), (429, "TooManyRequests"),
            (429, "TooManyProviderTokenUpdates"), (500, "InternalServerError"),
            (503, "Shutdown"), (403, "UnrelatedKeyIdInToken"), (413, "PayloadTooLarge"),
        ]
        var response = PushResponse(status: 200)
        if luck < 10 {
            let (status, reason) = refusals[Int(chance.upTo(UInt64(refusals.count - 1)))]
            response = PushResponse(status: status, reason: reason)
        }
        if response.status != 403, response.status != 429 { connections[id]?.isTrusted = true }
        return .answered(tag: tag, response)
    }

    private mutating func tell(_ id: ConnectionID, _ events: [ConnectionEvent]) {
        handle(.connection(id, events))
    }

    // MARK: - The judge

    private mutating func hold(_ isKept: Bool, _ rule: @autoclosure () -> String) {
        if !isKept { broken.append("\(rule()) at \(now)") }
    }

    private mutating func handle(_ input: PushInput) {
        let moment = PushMoment(
            now: Instant(milliseconds: now), uptime: Instant(milliseconds: now),
            wall: 1_700_000_000_000 + now)
        for action in pool.handle(input, at: moment) { judge(action) }
    }

    private mutating func judge(_ action: PushAction) {
        hold(!hasEnded, "something after the end")
        switch action {
        case .claim(let claim):
            let (isOpen, most) = (self.claim != nil, configuration.claimMax)
            hold(!isOpen, "two claims at once")
            hold(claim.streams <= most, "a claim of \(claim.streams)")
            self.claim = claim
        case .finish(let finish): judge(finish)
        case .keepToken(let request):
            let isAsked = asked.contains { $0.key == request.key }
            hold(!isAsked, "two renewals of a token at once")
            asked.append(request)
        case .dial(let id, let credential):
            let isDialing = connections.contains {
                $0.key.pool == id.pool && $0.key.lane == id.lane && !$0.value.isUp
            }
            hold(!isDialing, "two connections of a lane begun at once")
            connections[id] = Peer(credential: credential)
        case .send(let id, let tag, let push): judge(send: push, tag, id)
        case .cancel(let id, let tag): over(tag, id)
        case .ping(let id): connections[id]?.isPinged = true
        case .close(let id, let saysGoodbye):
            let open = connections[id]?.streams.count ?? 0
            hold(!saysGoodbye || open == 0, "a goodbye with \(open) streams")
            for tag in (connections[id]?.streams.keys.sorted() ?? []) { over(tag, id) }
            connections[id] = nil
        case .wait(let wait): hold(wait >= 20 && wait <= configuration.tick, "a wait of \(wait)")
        case .tell(let place, .credential(.paused)): paused.insert(place.credential)
        case .tell(let place, .credential(.resumed)),
            .tell(let place, .credential(.changed)):
            paused.remove(place.credential)
        case .tell: break
        case .ended:
            hasEnded = true
            connections = [:]
        }
    }

    private mutating func judge(_ finish: PushFinish) {
        let number = finish.push.number
        writes.append(finish)
        guard let held = claimed[number], held.job.key == finish.push.job.key else {
            return hold(false, "push \(number) is finished without a claim")
        }
        claimed[number]?.finishes += 1
        hold(held.finishes == 0, "push \(number) is finished twice")
        hold(held.stream == nil, "push \(number) is finished on its stream")
        switch finish.reply {
        case .notSent: hold(!held.isOver, "push \(number) was sent, and is called unsent")
        case .lost: hold(false, "push \(number) is given up by who holds it")
        case .answered, .unanswered:
            hold(held.isOver || held.hasFailed, "push \(number) has had no answer")
        }
    }

    private mutating func judge(send push: HeldPush, _ tag: UInt64, _ id: ConnectionID) {
        let number = push.number
        guard let peer = connections[id] else {
            return hold(false, "push \(number) on a connection that is gone")
        }
        guard let held = claimed[number], held.job == push.job else {
            return hold(false, "push \(number) is sent without a claim")
        }
        hold(peer.isUp && !peer.isLeaving, "push \(number) on a connection that takes none")
        hold(tag > peer.lastTag, "a tag again")
        hold(peer.streams.count < peer.allowed, "more streams than APNs allows")
        let isKey = peer.credential.certificatePEM == nil
        hold(!isKey || peer.isTrusted || peer.streams.isEmpty, "a second stream without trust")
        hold(isKey == (push.providerToken != nil), "the wrong authority")
        hold(held.stream == nil && !held.isOver, "push \(number) is sent again")
        hold(held.finishes == 0, "push \(number) is sent after it was finished")
        let left = held.at + WakePolicy.lease - min(now, held.at + WakePolicy.lease)
        hold(left >= configuration.leaseReserve, "push \(number) is sent late in its lease")
        hold(now < push.claimedAt.milliseconds + configuration.waitMax, "push \(number) waited")
        hold(!paused.contains(push.job.credential), "push \(number) is sent in a pause")
        hold(push.job.credential == CredentialKey(peer.credential), "a foreign connection")
        connections[id]?.streams[tag] = push
        connections[id]?.lastTag = tag
        claimed[number]?.stream = id
    }

    private mutating func judgeBounds() {
        for status in pool.status(at: Instant(milliseconds: now)).current {
            for lane in status.lanes {
                let most = configuration.waitingMax + configuration.claimMax + 36
                hold(lane.waiting <= most, "\(lane.waiting) pushes wait")
                // One more while one takes the place of another.
                let lanesMost = 1 + (lane.lane == .probe ? 1 : configuration.connectionsMax)
                hold(lane.connections <= lanesMost, "\(lane.connections) connections")
            }
        }
    }
}
