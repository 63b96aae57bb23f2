import MemoryStore
import Model
import SyncServer
import Wake
import Wire

@testable import Feed

/// A promise broken.
struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// What a run came through, counted: a property that is never reached proves nothing.
struct Reached {
    private(set) var counts: [String: Int] = [:]

    mutating func count(_ name: String, _ more: Int = 1) { counts[name, default: 0] += more }
    mutating func add(_ other: Reached) {
        for (name, count) in other.counts { counts[name, default: 0] += count }
    }
    subscript(name: String) -> Int { counts[name] ?? 0 }
}

/// A bug put in on purpose, outside the core: the promises must be found broken.
enum Defect: CaseIterable {
    /// Some commits are answered that never were on disk.
    case answersWithoutCommit
    /// Now and then an entry is missing from a DELTA.
    case losesEntries
    /// Nobody looks whether a grace or a lease has ended.
    case neverSweeps
    /// Whoever is connected is told who types.
    case tellsStrangers
}

/// The real core under virtual time: server sessions, rules, wakes, client halves; faulty links,
/// a store that fails, a server that is killed, phones with a life of their own. First a phase of
/// faults, then calm, in which everything must come right (P1 to P7).
final class Simulation: SimulatedWorld {
    static let app = AppID("chat")
    let seed: UInt64
    let defect: Defect?
    /// How long the faults last.
    let stormy: Milliseconds
    var chance: Chance
    let clock = Clockwork()
    var reached = Reached()
    var violations: [String] = []
    private(set) var isCalm = false
    private(set) var server: SimulatedServer!
    private(set) var apns: SimulatedAPNs!
    private(set) var devices: [SimulatedDevice] = []
    let limits: RuleLimits
    let sessionLimits: SessionLimits
    private var links: UInt64 = 0
    private var deviceOfLink: [UInt64: DeviceID] = [:]
    private var ids: UInt64 = 0

    /// Final results sent to each device, by mutation number.
    private var results: [String: MutationResult] = [:]
    /// Messages whose sender was told that they are stored.
    private(set) var acknowledged: Set<MessageID> = []
    /// Where each message was sent.
    private(set) var sentTo: [MessageID: ConversationID] = [:]
    /// "blocker blocked", also of blocks that have ended: what was said meanwhile never comes.
    private(set) var blocks: Set<String> = []
    /// Out until the backend lets them in again.
    private(set) var suspended: Set<String> = []
    private var wishes: [Administration] = []
    private(set) var published: [String: MessageRecord] = [:]
    /// What restored servers have lost, and who was to see it.
    var losses = Losses()

    init(
        seed: UInt64, defect: Defect? = nil, stormy: Milliseconds = 180_000,
        disk: any SimulatedDisk = MemoryDisk()
    ) throws {
        self.seed = seed
        self.defect = defect
        self.stormy = stormy
        chance = Chance(seed: seed)
        var limits = RuleLimits()
        // Small, so that the background and its resumption are met at once.
        limits.directRecipients = 2
        limits.fanOutStep = 2
        // Short, so that a phone that was away or restored meets a cursor too old.
        limits.tombstoneLifetime = 10_000
        limits.tombstoneDelay = 2_000
        // Longer than a session stands that answers nothing: of a connected device a tombstone
        // that it has not got never goes.
        limits.deviceMemory = 90_000
        self.limits = limits
        var sessionLimits = SessionLimits()
        sessionLimits.firstPageBytes = 600
        sessionLimits.windowDeltas = 4
        self.sessionLimits = sessionLimits
        server = SimulatedServer(self, disk: disk)
        apns = SimulatedAPNs(self)
        try prepare()
    }

    /// Every third world lives by a policy beyond the classic one.
    private static var learning: AdaptivePolicy {
        var adaptive = AdaptivePolicy()
        adaptive.graceQuantile = 95
        adaptive.graceMin = 20_000
        adaptive.graceMax = 60_000
        adaptive.graceSamples = 3
        adaptive.budgetMin = 1
        adaptive.budgetMax = 6
        adaptive.demotionMisses = 2
        adaptive.demotionOf = 3
        return adaptive
    }

    private func prepare() throws {
        try server.start()
        let setup: [Administration] = [
            .putApp(
                AppRecord(
                    app: Self.app, createdAt: clock.wall, grace: 20_000, silentBudget: 3,
                    receiptParticipantsMax: 4, silentWindow: 120_000, silentSpacing: 5_000,
                    adaptive: seed % 3 == 0 ? Self.learning : AdaptivePolicy())),
            .putPushCredential(
                PushCredentialRecord(
                    app: Self.app, environment: .development, keyID: "K", team: "T",
                    privateKeyPEM: "", topics: "org.example", host: "h", port: 1,
                    changedAt: clock.wall)),
        ]
        for request in setup {
            let outcomes = try server.store.commit(
                [.administer(request)], through: server.known)
            guard try outcomes.first?.get().answer == .done else { throw Violation("no app") }
        }
        for (user, count) in [("anna", 3), ("bert", 2), ("carl", 1), ("dora", 1), ("emil", 1)] {
            for number in 1...count {
                let id = DeviceID(high: UInt64(devices.count + 1), low: UInt64(number))
                devices.append(SimulatedDevice(id, of: user, self))
            }
        }
    }

    var app: AppID { Self.app }
    var nextDuties: Milliseconds? { nil }
    var watched: [String] { devices.map(\.user) }

    func push(_ request: PushRequest, _ answer: @escaping (PushReply) -> Void) {
        apns.push(request, answer)
    }

    func others(than user: UserID) -> [UserID] {
        Set(devices.map(\.user)).subtracting([user.name]).sorted().map { UserID($0) }
    }

    func fresh<Noun>() -> Identifier<Noun> {
        ids += 1
        return Identifier(high: 0xAB, low: ids)
    }

    func makeLink(of device: SimulatedDevice) -> SimulatedLink {
        links += 1
        deviceOfLink[links] = device.id
        return SimulatedLink(links, self)
    }

    // MARK: The run

    func run() throws {
        for device in devices { try device.open() }
        converse(devices.map(\.user))
        life()
        // Neither, one of them, or both.
        if seed % 4 != 2 { phoneBackups() }
        if seed % 3 == 1 { serverBackups() }
        disaster()
        watchUnread()
        try pass(stormy)
        isCalm = true
        if !server.isUp { try server.start() }
        for user in suspended.sorted() { administer(.resumeUser(Self.app, UserID(user))) }
        suspended = []
        // Who sleeps sleeps on: wakes, demotions and alerts come to their end.
        try pass(40 * 60_000)
        try checkWakes()
        try checkTold()
        // Who was told to stay away looks again when its user does.
        for device in devices { try device.reopen() }
        try pass(120_000)
        try checkConvergence()
        try checkUnread()
        try checkScreens()
        try checkRemovals()
        try checkTyping()
        for device in devices { try device.checkDigest() }
        try pass(20_000)
        try checkDigests()
        if let violation = violations.first { throw Violation(violation) }
    }

    private func pass(_ duration: Milliseconds) throws {
        let end = clock.now + duration
        while try clock.step(until: end) {
            if let violation = violations.first { throw Violation(violation) }
        }
    }

    private func life() {
        clock.after(100 + chance.upTo(700)) { [unowned self] in
            guard !self.isCalm else { return }
            if let device = self.chance.one(of: self.devices) { try self.something(device) }
            self.life()
        }
    }

    private func disaster() {
        clock.after(5_000 + chance.upTo(40_000)) { [unowned self] in
            guard !self.isCalm, self.server.isUp else { return }
            self.server.kill()
            let pause = self.chance.once(in: 3) ? 12_000 : 800
            self.clock.after(200 + self.chance.upTo(Milliseconds(pause))) {
                if !self.server.isUp { try self.server.start() }
            }
            self.disaster()
        }
    }

    private func something(_ device: SimulatedDevice) throws {
        switch Int.random(in: 0..<100, using: &chance) {
        case 0..<26: try send(device)
        case 26..<34: publish()
        case 34..<42: try device.readSome()
        case 42..<47: try change(device)
        case 47..<51: try members(device)
        case 51..<54: try settings(device)
        case 54..<58: try showTyping(device)
        case 58..<60: access(device.user)
        case 60..<72: try device.open()
        case 72..<82: try device.sleep()
        case 82..<86: device.quit()
        case 86..<90: device.loseNetwork(for: 500 + chance.upTo(20_000))
        case 90..<95: device.cutLink(silently: false)
        default: device.cutLink(silently: true)
        }
    }

    // MARK: What users and backend do

    private func content(_ text: String) -> [Part] {
        [Part(mimeType: "text/plain", content: Array(text.utf8))]
    }

    private func send(_ device: SimulatedDevice) throws {
        guard let operation = message(to: device.conversations, of: device) else { return }
        try device.mutate(operation)
    }

    func message(
        to conversations: [ConversationID], of device: SimulatedDevice
    ) -> Mutation.Operation? {
        guard let conversation = chance.one(of: conversations) else { return nil }
        let message: MessageID = fresh()
        sentTo[message] = conversation
        return .sendMessage(
            SendMessage(
                conversation: conversation, message: message, parts: content("hello"),
                push: PushText(title: device.user, body: "hello")))
    }

    private func change(_ device: SimulatedDevice) throws {
        guard let conversation = chance.one(of: device.conversations),
            let message = try device.ownMessage(in: conversation)
        else { return }
        switch Int.random(in: 0..<8, using: &chance) {
        case 0..<3:
            reached.count("an edit")
            try device.mutate(
                .editMessage(EditMessage(message: message, parts: content("better"))))
        case 3..<5:
            reached.count("a message deleted for everyone")
            try device.mutate(
                .deleteMessage(DeleteMessage(message: message, forEveryone: true)))
        case 5..<7:
            reached.count("a message deleted for oneself")
            try device.mutate(.deleteMessage(DeleteMessage(message: message, forEveryone: false)))
        default:
            let forEveryone = chance.once(in: 3)
            reached.count("a conversation deleted" + (forEveryone ? " for everyone" : ""))
            try device.mutate(
                .deleteConversation(
                    DeleteConversation(conversation: conversation, forEveryone: forEveryone)))
        }
    }

    /// What a user sets for himself, or for all.
    private func settings(_ device: SimulatedDevice) throws {
        let users = Array(Set(devices.map(\.user))).sorted().filter { $0 != device.user }
        guard let other = chance.one(of: users),
            let conversation = chance.one(of: device.conversations)
        else { return }
        switch Int.random(in: 0..<4, using: &chance) {
        case 0:
            let isBlocked = chance.once(in: 2)
            reached.count(isBlocked ? "a block" : "a block ended")
            if isBlocked { blocks.insert("\(device.user) \(other)") }
            try device.mutate(.blockUser(BlockUser(user: other, blocked: isBlocked)))
        case 1:
            reached.count("a conversation muted or not")
            try device.mutate(
                .muteConversation(
                    MuteConversation(conversation: conversation, muted: chance.once(in: 2))))
        default:
            reached.count("metadata changed")
            let value = "value \(chance.upTo(9))"
            try device.mutate(
                .changeMetadata(
                    ChangeMetadata(
                        conversation: conversation,
                        changes: [
                            MetadataChange(
                                path: ["a", "b\(chance.upTo(2))"], value: value,
                                removed: chance.once(in: 4))
                        ])))
        }
    }

    private func showTyping(_ device: SimulatedDevice) throws {
        guard let conversation = chance.one(of: device.conversations) else { return }
        try device.showTyping(in: conversation)
    }

    /// The backend takes a user's access away, for a time or for a moment.
    private func access(_ user: String) {
        switch Int.random(in: 0..<4, using: &chance) {
        case 0:
            reached.count("tokens revoked")
            administer(.revokeSessions(Self.app, UserID(user), reauthenticate: false))
        case 1, 2:
            reached.count("a user asked to log in anew")
            administer(.revokeSessions(Self.app, UserID(user), reauthenticate: true))
        default:
            guard suspended.insert(user).inserted else { return }
            reached.count("a user suspended")
            administer(.suspendUser(Self.app, UserID(user)))
            clock.after(2_000 + chance.upTo(30_000)) { [unowned self] in
                guard self.suspended.remove(user) != nil else { return }
                self.administer(.resumeUser(Self.app, UserID(user)))
            }
        }
    }

    /// The backend's wishes, one after the other, each again until it is done.
    func administer(_ request: Administration) {
        wishes.append(request)
        if wishes.count == 1 { carryOutWish() }
    }

    private func carryOutWish() {
        guard let wish = wishes.first else { return }
        var isDone = false
        if server.isUp {
            server.ask(.administer(wish)) { result in
                if case .success = result { isDone = true }
            }
        }
        clock.after(1_000) { [unowned self] in
            if isDone { self.wishes.removeFirst() }
            self.carryOutWish()
        }
    }

    /// A user typed: only who takes part, and blocks nobody of the two, may be told.
    func signalled(
        _ kind: SignalKind, _ user: String, in conversation: ConversationID,
        on device: SimulatedDevice
    ) {
        reached.count("told: \(kind)")
        if (try? participant(conversation, device.user)) == nil {
            violations.append("P6: \(device.user) was told who types in \(conversation)")
        }
        if user == device.user { violations.append("SIG: \(user) was told of himself") }
    }

    /// SIG-4: typing ends by itself; long after the last signal nobody types.
    func checkTyping() throws {
        for device in devices where !device.typing.isEmpty {
            throw Violation("\(device.user) \(device.id) still sees typing: \(device.typing)")
        }
    }

    private func members(_ device: SimulatedDevice) throws {
        let users = Array(Set(devices.map(\.user))).sorted()
        guard let other = chance.one(of: users) else { return }
        let conversation = chance.one(of: device.conversations)
        switch Int.random(in: 0..<4, using: &chance) {
        case 0:
            try device.mutate(
                .createConversation(
                    CreateConversation(
                        conversation: fresh(), participants: [other],
                        distinct: chance.once(in: 2))))
        case 1:
            try device.mutate(
                .removeParticipants(
                    RemoveParticipants(conversation: conversation, users: [other])))
        default:
            try device.mutate(
                .addParticipants(AddParticipants(conversation: conversation, users: [other])))
        }
    }

    private func converse(_ users: [String]) {
        let request = CreateConversation(conversation: fresh(), participants: users)
        untilAnswered {
            .createConversation(app: Self.app, request, idempotency: $0)
        } then: { _, _ in
        }
    }

    private func publish() {
        guard let conversation = chance.one(of: (try? conversations()) ?? []) else { return }
        let message = SendMessage(
            conversation: conversation, message: fresh(), parts: content("news"),
            push: PushText(title: "", body: "news"))
        if let id = message.message { sentTo[id] = conversation }
        untilAnswered {
            .publish(
                app: Self.app, Publication(message: message, sender: ""), idempotency: $0)
        } then: { [unowned self] key, answer in
            guard case .published(let record) = answer else { return }
            self.acknowledged.insert(record.message)
            if let earlier = self.published[key], earlier.position != record.position {
                self.violations.append("P2: \(key) was answered twice, differently")
            }
            self.published[key] = record
        }
    }

    /// A backend's request under an idempotency key: again until there is an answer, and
    /// sometimes once more.
    private func untilAnswered(
        _ request: @escaping (Idempotency) -> StoreRequest,
        then: @escaping (String, StoreAnswer) -> Void
    ) {
        ids += 1
        let idempotency = Idempotency(key: "key \(ids)", requestHash: [UInt8(ids & 255)])
        var isAnswered = false
        func attempt(_ left: Int) {
            if server.isUp {
                server.ask(request(idempotency)) { [unowned self] result in
                    guard case .success(let outcome) = result else { return }
                    then(idempotency.key, outcome.answer)
                    let again = !isAnswered && self.chance.once(in: 5)
                    isAnswered = true
                    if again {
                        self.reached.count("a publish repeated")
                        attempt(0)
                    }
                }
            }
            clock.after(3_000) {
                if !isAnswered, left > 0 { attempt(left - 1) }
            }
        }
        attempt(100)
    }

    private func conversations() throws -> [ConversationID] {
        try rows(ConversationRecord.self).filter { $0.deletedAt == nil }.map(\.conversation)
    }

    // MARK: What is observed

    func committed(_ outcomes: [Result<StoreOutcome, StoreError>]) throws {
        for case .success(let outcome) in outcomes {
            reached.count("a demotion", outcome.effects.wakes.demotions)
            reached.count("a recovery", outcome.effects.wakes.recoveries)
            if case .pushes(let claimed) = outcome.answer {
                for job in claimed.jobs where job.kind == .alert { try checkAlert(job) }
            }
        }
    }

    /// P4: who has stored everything visible is not alerted.
    private func checkAlert(_ job: PushJob) throws {
        let user = try rows(UserRecord.self).first { $0.user == job.key.user }
        let device = try rows(DeviceRecord.self).first {
            $0.user == job.key.user && $0.device == job.key.device
        }
        guard let user, let device else { throw Violation("P4: an alert for nobody") }
        if device.applied >= user.visibleHead {
            throw Violation("P4: an alert for \(user.user), who has seen everything")
        }
    }

    func serverSends(_ frame: Frame, on link: UInt64) throws {
        // Both halves are ours: neither breaks the protocol.
        if case .close(let close) = frame.body,
            close.code == 5004 || (4000..<5000).contains(close.code)
        {
            throw Violation("the server closes with \(close.code)")
        }
        if case .mutationResult(let result) = frame.body { try sendsResult(result, on: link) }
        if case .delta(let delta) = frame.body {
            for result in delta.results { try sendsResult(result, on: link) }
            if delta.more { reached.count("a page with more behind it") }
            let numbers = delta.entries.map(\.seq)
            // A peek comes from the newest down.
            let isInOrder = numbers == numbers.sorted() || numbers == numbers.sorted(by: >)
            if !isInOrder || Set(numbers).count != numbers.count {
                throw Violation("P3: a DELTA out of order: \(numbers)")
            }
        }
    }

    /// P2: the same number, the same result.
    private func sendsResult(_ result: MutationResult, on link: UInt64) throws {
        guard let device = deviceOfLink[link], !(1_000..<2_000).contains(result.code) else {
            return
        }
        if result.code == Code.numberTaken.rawValue {
            reached.count("a number of another life")
            return
        }
        // Nothing is kept of a number that old (MSG-10): this is no result.
        if result.code == Code.resultGone.rawValue { return }
        let key = "\(device) \(result.number)"
        if let earlier = results[key] {
            reached.count("a result given again")
            if earlier != result { throw Violation("P2: \(key): \(earlier), then \(result)") }
        }
        results[key] = result
    }

    func userHears(thatIsStored id: MessageID) { acknowledged.insert(id) }

    /// The server has an earlier history again: of what came after it nobody is promised anything.
    func forget(allBut stored: Set<MessageID>) {
        acknowledged.formIntersection(stored)
        results = [:]
        published = [:]
    }

    /// P6: nobody hears of a conversation he never took part in, nor of what was not for him.
    func heard(_ entry: Entry, _ message: MessageState, on device: SimulatedDevice) {
        guard let conversation = entry.conversation else { return }
        guard let participant = try? participant(conversation, device.user) else {
            return violations.append("P6: \(device.user) heard of \(conversation)")
        }
        guard let id = MessageID(entry.object) else { return }
        if losses.isBreach(id, of: participant) {
            violations.append("P6: \(device.user) heard \(id), which was not for him")
        }
        losses.heard(id, by: device.user)
    }

    private func participant(
        _ conversation: ConversationID, _ user: String
    ) throws -> ParticipantRecord? {
        var found: ParticipantRecord?
        try server.store.read { snapshot throws(StoreError) in
            found = try snapshot.record(
                ParticipantRecord.self,
                [.app(Self.app), .identifier(conversation), .text(user)])
        }
        return found
    }
}
