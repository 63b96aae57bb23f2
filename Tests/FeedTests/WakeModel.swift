import Feed
import MemoryStore
import Model
import Wake
import Wire

/// One rule taken away, by undoing what it wrote: the checks must notice.
enum Sabotage: String, CaseIterable {
    /// A session that expires leaves no wake behind.
    case sweepWritesNoWake
    /// A publish writes no wake.
    case publishWritesNoWake
    /// The gap in `alive_at` is not seen.
    case gapIsNotSeen
    /// Spent tokens are forgotten.
    case budgetIsForgotten
    /// A claim does not look at sessions.
    case claimSeesNoSession
    /// A sent alert's row is not kept.
    case alertIsForgotten
    /// A push in flight does not hold its device.
    case flightIsForgotten
    /// A read elsewhere owes no badge.
    case badgeIsForgotten
    /// HELLO is not remembered by the wake that waits for it.
    case helloIsForgotten
}

/// Random life of two phones and their server over the real rules, in virtual time.
final class WakeModel {
    struct Phone {
        let id: DeviceID
        let token: UInt8
        var session: SessionKey?
        /// The socket is dead and the server does not know yet.
        var cutAt: Timestamp?
        var isForceQuit = false
        var applied: UInt64 = 0
        var connectAt: Timestamp?
        var wokenBy: WakeID?
        var syncAt: Timestamp?
        var sleepAt: Timestamp?
        var lastConnected = Timestamp(milliseconds: 0)
        var icon: UInt64 = 0
        var shown: Set<MessageID> = []
        var alertsAccepted: [MessageID: Int] = [:]
        var silents: [Timestamp] = []
        var inFlight: PushJobKey?
        var leaseOf: Timestamp?
    }

    struct Flight {
        let job: PushJob
        let phone: Int
        let reply: PushReply
        let isDelivered: Bool
        let at: Timestamp
    }

    let pushes: Pushes
    let sabotage: Sabotage?
    let rooms: [ConversationID]
    var random: SeededGenerator
    var phones: [Phone]
    var flights: [Flight] = []
    var outages: [(from: Timestamp, until: Timestamp)] = []
    var downUntil: Timestamp?
    var boots: UInt64 = 10
    var ids: UInt64 = 0
    var violations: [String] = []
    var counts: [String: Int] = [:]
    var position: [ConversationID: UInt64] = [:]

    static let classic = AppRecord(
        app: World.app, createdAt: Timestamp(milliseconds: 0), grace: 20_000,
        silentWindow: 600_000, silentSpacing: 20_000)
    let policy: AppRecord

    var world: World { pushes.world }
    var now: Timestamp { world.now }

    init(
        seed: UInt64, sabotage: Sabotage? = nil, adaptive: AdaptivePolicy = AdaptivePolicy()
    ) throws {
        var policy = Self.classic
        policy.adaptive = adaptive
        self.policy = policy
        pushes = try Pushes()
        self.sabotage = sabotage
        random = SeededGenerator(seed: seed)
        let world = pushes.world
        try world.expectDone(.putApp(policy))
        rooms = [try world.converse(["anna", "bob"]), try world.converse(["anna", "bob"])]
        phones = [1, 2].map { Phone(id: DeviceID(high: 2, low: UInt64($0)), token: UInt8($0)) }
        for index in phones.indices { try connect(index) }
    }

    func fail(_ text: String) { violations.append("\(now.milliseconds): \(text)") }
    func count(_ name: String) { counts[name, default: 0] += 1 }
    func chance(_ probability: Double) -> Bool { random.unit() < probability }

    // MARK: the server

    var boot: BootID { BootID(high: 9, low: boots) }

    func ask(_ request: StoreRequest) throws -> StoreAnswer {
        let before = try rows()
        if sabotage == .gapIsNotSeen, case .start = request {
            let alive = MetaRecord(name: "alive_at", number: now.milliseconds)
            try tamper { transaction throws(StoreError) in try transaction.put(alive) }
        }
        var hidden: [SessionRecord] = []
        if sabotage == .claimSeesNoSession, case .claimPushes = request {
            hidden = try world.all(SessionRecord.self)
            try tamper { transaction throws(StoreError) in
                for row in hidden {
                    try transaction.delete(
                        SessionRecord.self, Array(row.row.prefix(4)))
                }
            }
        }
        let answer = try world.ask(request)
        try tamper { transaction throws(StoreError) in
            for row in hidden { try transaction.put(row) }
        }
        try sabotage(after: request, answer, before)
        return answer
    }

    private func rows() throws -> [WakeRecord] {
        sabotage == nil ? [] : try world.all(WakeRecord.self)
    }

    private func tamper(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws {
        if sabotage != nil { try world.store.write(body) }
    }

    private func sabotage(
        after request: StoreRequest, _ answer: StoreAnswer, _ before: [WakeRecord]
    ) throws {
        let after = try rows()
        switch (sabotage, request) {
        case (.sweepWritesNoWake, .sweepWakes), (.publishWritesNoWake, .publish):
            for row in after where row.phase == .due {
                let old = before.first { $0.device == row.device }
                guard old.map({ $0.phase == .none }) ?? true else { continue }
                try tamper { transaction throws(StoreError) in
                    if let old {
                        try transaction.put(old)
                    } else {
                        try transaction.delete(WakeRecord.self, Array(row.row.prefix(3)))
                    }
                }
            }
        case (.budgetIsForgotten, .claimPushes):
            for var device in try world.all(DeviceRecord.self) {
                device.lastSilentAt = []
                try tamper { transaction throws(StoreError) in try transaction.put(device) }
            }
        case (.alertIsForgotten, .finishPush):
            for alert in try world.all(AlertRecord.self) where alert.phase == .sent {
                try tamper { transaction throws(StoreError) in
                    try transaction.delete(AlertRecord.self, Array(alert.row.prefix(4)))
                }
            }
        case (.flightIsForgotten, .claimPushes):
            for var row in after where row.flight != nil {
                row.flight = nil
                row.lease = nil
                row.owner = nil
                if row.phase == .sending { row.phase = .due }
                row.due = now
                row.deadline = nil
                try tamper { transaction throws(StoreError) in try transaction.put(row) }
            }
        case (.badgeIsForgotten, .acknowledge):
            for var row in after where row.badgeDue != nil {
                count("badge forgotten")
                row.badgeDue = nil
                try tamper { transaction throws(StoreError) in try transaction.put(row) }
            }
        case (.helloIsForgotten, .openSession), (.helloIsForgotten, .acknowledge):
            for var row in after where row.phase == .waiting && row.connectedAt != nil {
                let grace = row.waitingSince.map { $0 + policy.grace }
                row.connectedAt = nil
                row.graceUntil = grace
                row.deadline = grace
                try tamper { transaction throws(StoreError) in try transaction.put(row) }
            }
        default: break
        }
    }

    /// One step of the server: `alive_at`, sweep, pushes; demotions are checked as they happen.
    func serve(calm: Bool) throws {
        let reachable = try phones.map { try pushes.view($0.id).device.isUnreachable }
        _ = try ask(.keepAlive)
        _ = try ask(.sweepWakes(rows: 100))
        for (index, phone) in phones.enumerated() {
            let view = try pushes.view(phone.id)
            if view.device.isUnreachable, !reachable[index] { try checkDemotion(index) }
        }
        let streams = calm ? 10 : Int(random.below(3))
        ids += 1
        let request = ClaimPushes(
            boot: boot, streams: streams,
            ids: (0..<streams).map { WakeID(high: ids, low: UInt64($0)) })
        let answer = try ask(.claimPushes(request))
        guard case .pushes(let claimed) = answer else { return fail("claim: \(answer)") }
        for job in claimed.jobs { send(job, calm: calm) }
        try answers()
    }

    private func send(_ job: PushJob, calm: Bool) {
        guard let index = phones.firstIndex(where: { $0.id == job.key.device }) else { return }
        if phones[index].inFlight != nil, let lease = phones[index].leaseOf, now < lease {
            fail("two pushes in flight to phone \(index)")
        }
        phones[index].inFlight = job.key
        phones[index].leaseOf = job.lease
        count("\(job.kind)")
        if job.kind == .silent, phones[index].session != nil, phones[index].cutAt == nil {
            fail("silent push beside the session of phone \(index)")
        }
        var reply = PushReply.answered(status: 200, reason: "", timestamp: nil)
        var isDelivered = true
        var delay = random.below(3_000)
        if !calm {
            switch random.below(20) {
            case 0: (reply, isDelivered) = (.unanswered, true)
            case 1: (reply, isDelivered) = (.unanswered, false)
            case 2: (reply, isDelivered) = (.notSent, false)
            case 3:
                reply = .answered(status: 503, reason: "ServiceUnavailable", timestamp: nil)
                isDelivered = false
            default: break
            }
            if reply == .unanswered { delay = 10_000 }
        }
        if job.kind == .silent, reply == .unanswered || isDelivered { spend(index) }
        let flight = Flight(
            job: job, phone: index, reply: reply, isDelivered: isDelivered, at: now + delay)
        if isDelivered { deliver(flight) }
        flights.append(flight)
    }

    private func spend(_ index: Int) {
        phones[index].silents.append(now)
        let recent = phones[index].silents.filter { now.since($0) < policy.silentWindow }
        if recent.count > Int(max(policy.silentBudget, policy.adaptive.budgetMax)) {
            fail("budget of phone \(index)")
        }
        if recent.count > 1, now.since(recent[recent.count - 2]) < policy.silentSpacing {
            fail("two silent pushes at once to phone \(index)")
        }
    }

    private func answers() throws {
        for flight in flights where flight.at <= now {
            if phones[flight.phone].inFlight == flight.job.key {
                phones[flight.phone].inFlight = nil
            }
            let answer = try ask(
                .finishPush(
                    FinishPush(
                        key: flight.job.key, id: flight.job.request.id, reply: flight.reply)))
            if flight.job.kind == .alert, answer == .pushFinished(.accepted),
                let message = flight.message
            {
                phones[flight.phone].alertsAccepted[message, default: 0] += 1
                if phones[flight.phone].alertsAccepted[message] != 1 {
                    fail("phone \(flight.phone) was alerted of \(message) twice")
                }
            }
        }
        flights.removeAll { $0.at <= now }
    }

    /// A demoted device had its whole grace, we were there, and it neither came nor was synced.
    private func checkDemotion(_ index: Int) throws {
        count("demotion")
        let phone = phones[index]
        guard let wake = try pushes.wakes(phone.id).last(where: { $0.outcome == .noShow }),
            let accepted = wake.acceptedAt
        else { return fail("phone \(index) was demoted without a no-show") }
        if now < accepted + policy.grace { fail("phone \(index) was demoted early") }
        if phone.lastConnected > wake.sentAt { fail("phone \(index) came and was demoted") }
        if phone.session != nil, phone.cutAt == nil {
            fail("phone \(index) is online and was demoted")
        }
        if outages.contains(where: {
            $0.until > accepted && $0.until.since($0.from) > 8_000
        }) {
            fail("phone \(index) was demoted because we were down")
        }
    }

    func crash() {
        count("crash")
        let length = chance(0.5) ? 1_000 + random.below(2_000) : 9_000 + random.below(80_000)
        downUntil = now + length
        outages.append((now, now + length))
        flights.removeAll()
        for index in phones.indices {
            phones[index].inFlight = nil
            guard phones[index].session != nil else { continue }
            phones[index].session = nil
            phones[index].cutAt = nil
            phones[index].syncAt = nil
            phones[index].sleepAt = nil
            if chance(0.6) { phones[index].connectAt = now + length + random.below(15_000) }
        }
    }

    func restart() throws {
        downUntil = nil
        boots += 1
        _ = try ask(.start(boot: boot, epochHalf: 1))
    }
}

extension WakeModel.Flight {
    var message: MessageID? { job.request.collapseID.flatMap { MessageID(text: $0) } }
}

// MARK: phones

extension WakeModel {
    private func deliver(_ flight: Flight) {
        let index = flight.phone
        switch flight.job.kind {
        case .silent:
            guard !phones[index].isForceQuit, phones[index].session == nil, chance(0.7) else {
                return
            }
            phones[index].connectAt = now + 500 + random.below(15_000)
            phones[index].wokenBy = flight.job.request.id
        case .campaign: break
        case .alert, .badge:
            if let message = flight.message { phones[index].shown.insert(message) }
            let json = String(decoding: flight.job.request.payload, as: UTF8.self)
            guard let start = json.firstRange(of: "\"badge\":")?.upperBound,
                let badge = UInt64(json[start...].prefix { $0.isNumber })
            else { return fail("a push without a badge: \(json)") }
            phones[index].icon = badge
        }
    }

    func connect(_ index: Int) throws {
        let phone = phones[index]
        phones[index].connectAt = nil
        let answer = try ask(
            .openSession(
                OpenSession(
                    app: World.app, device: phone.id, role: .app,
                    credential: .identity(UserID("bob")), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: boot, push: Pushes.registration(phone.token),
                    wake: phone.wokenBy)))
        guard case .opened(let opened) = answer else { return fail("open: \(answer)") }
        phones[index].session = opened.session
        phones[index].cutAt = nil
        phones[index].lastConnected = now
        phones[index].isForceQuit = false
        if phone.wokenBy != nil {
            phones[index].syncAt = chance(0.85) ? now + random.below(5_000) : nil
            phones[index].sleepAt = now + 6_000 + random.below(20_000)
        }
        phones[index].wokenBy = nil
        count("connect")
    }

    func synchronize(_ index: Int, isComplete: Bool) throws {
        guard let session = phones[index].session, phones[index].cutAt == nil else { return }
        let head = try pushes.head("bob")
        let applied =
            isComplete
            ? head
            : phones[index].applied + random.below(head - phones[index].applied + 1)
        phones[index].applied = applied
        let answer = try ask(
            .acknowledge(
                Acknowledge(session: session, applied: applied, completesSync: isComplete)))
        if case .acknowledged = answer {} else { fail("ack: \(answer)") }
        phones[index].icon = try unread()
        if isComplete { phones[index].shown = [] }
    }

    func read(_ index: Int) throws {
        guard let session = phones[index].session, phones[index].cutAt == nil else { return }
        let room = rooms[Int(random.below(2))]
        let through = random.below((position[room] ?? 0) + 1)
        var receipt = ReadReceipt(conversation: room, through: through)
        if chance(0.2) {
            receipt.through = 0
            receipt.ranges = [InclusiveRange(first: through, last: through)]
        }
        _ = try ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: phones[index].applied, reads: [receipt],
                    completesSync: false)))
        phones[index].icon = try unread()
        count("read")
    }

    func sleep(_ index: Int, cut: Bool) throws {
        guard let session = phones[index].session else { return }
        phones[index].syncAt = nil
        phones[index].sleepAt = nil
        if cut {
            phones[index].cutAt = now
            return
        }
        phones[index].session = nil
        try end(session, within: 0)
    }

    func end(_ session: SessionKey, within: Milliseconds) throws {
        _ = try ask(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: within)))
    }

    /// Counted by the test itself, from messages and read marks.
    func unread() throws -> UInt64 {
        var sum: UInt64 = 0
        for room in rooms {
            let mark = try world.record(
                ReadMarkRecord.self,
                [.app(World.app), .user(UserID("bob")), .identifier(room)])
            for message in try world.all(MessageRecord.self)
            where message.conversation == room && isVisible(message)
                && !isRead(message.position, mark)
            {
                sum += 1
            }
        }
        return sum
    }

    func isVisible(_ message: MessageRecord) -> Bool {
        message.sender != "bob" && !message.pushBody.isEmpty
            && PushOptions.urgency(of: message.pushOptions) != .passive
    }

    func isRead(_ position: UInt64, _ mark: ReadMarkRecord?) -> Bool {
        guard let mark else { return false }
        if position <= mark.through { return true }
        for start in stride(from: 0, to: mark.ranges.count, by: 16) {
            guard let pair = WakeID(mark.ranges[start..<start + 16]) else { continue }
            if pair.high <= position, position <= pair.low { return true }
        }
        return false
    }

    func publish() throws {
        let room = rooms[Int(random.below(2))]
        let isOwn = chance(0.15)
        position[room, default: 0] += 1
        let push: String? = chance(0.1) ? "" : nil
        var options = PushOptions()
        if chance(0.15) {
            options.urgency = .urgent
        } else if chance(0.15) {
            options.urgency = .passive
        }
        _ = try ask(
            .publish(
                app: World.app,
                Publication(
                    message: world.message0("text", to: room, world.fresh(), push: push),
                    sender: isOwn ? "bob" : "anna", options: options), idempotency: nil))
        count("publish")
        count("\(options.urgency)")
    }
}

// MARK: schedules

extension WakeModel {
    /// One second of a random life.
    func chaos() throws {
        world.pass(200 + random.below(1_800))
        if let until = downUntil {
            if now >= until { try restart() }
            return
        }
        if chance(0.05) { try publish() }
        for index in phones.indices { try live(index) }
        try serve(calm: false)
        if chance(0.006) { crash() }
    }

    private func live(_ index: Int) throws {
        let phone = phones[index]
        if let cut = phone.cutAt, let session = phone.session, now.since(cut) > 15_000 {
            // The suspect rule has closed it.
            phones[index].session = nil
            phones[index].cutAt = nil
            return try end(session, within: 10_000)
        }
        if phone.session == nil || phone.cutAt != nil {
            if let at = phone.connectAt {
                guard at <= now else { return }
                // The run time is over: whoever could not connect is suspended again.
                guard now.since(at) < 25_000 else {
                    phones[index].connectAt = nil
                    phones[index].wokenBy = nil
                    return
                }
                return try connect(index)
            }
            if chance(0.015) { try connect(index) }
            if chance(0.004) { phones[index].isForceQuit = true }
            return
        }
        if let at = phone.syncAt, at <= now {
            phones[index].syncAt = nil
            try synchronize(index, isComplete: chance(0.9))
        } else if phone.sleepAt == nil, chance(0.15) {
            try synchronize(index, isComplete: chance(0.7))
        }
        if chance(0.05) { try read(index) }
        if let at = phone.sleepAt, at <= now { return try sleep(index, cut: chance(0.2)) }
        if phone.sleepAt == nil, chance(0.03) { try sleep(index, cut: chance(0.4)) }
    }

    /// Everybody falls asleep for good, pushes work, and time passes: then everything that can be
    /// told has been told.
    func calm() throws {
        if downUntil != nil {
            world.pass(90_000)
            try restart()
        }
        for index in phones.indices {
            phones[index].connectAt = nil
            phones[index].isForceQuit = true
            if let session = phones[index].session {
                phones[index].session = nil
                phones[index].cutAt = nil
                try end(session, within: 10_000)
            }
        }
        let end = now + 1_900_000
        while now < end {
            world.pass(5_000)
            try serve(calm: true)
        }
        for index in phones.indices { try checkTold(index) }
    }

    private func checkTold(_ index: Int) throws {
        let view = try pushes.view(phones[index].id)
        let phone = phones[index]
        let newest = try newestPending(after: view.device.applied)
        if let newest, !phone.shown.contains(newest) {
            fail("phone \(index) is behind and was not told")
        }
        let unread = try unread()
        if view.device.wasAlerted, phone.icon != unread {
            fail("phone \(index) shows \(phone.icon), not \(unread)")
        }
        count(newest == nil ? "in sync at the end" : "behind at the end")
    }

    private func newestPending(after applied: UInt64) throws -> MessageID? {
        let entries = try world.all(EntryRecord.self)
            .filter { $0.user == UserID("bob") && $0.isVisible && $0.seq > applied }
        for entry in entries.sorted(by: { $0.seq > $1.seq }) {
            let mark = try world.record(
                ReadMarkRecord.self,
                [.app(World.app), .user(UserID("bob")), .identifier(entry.conversation)])
            if !isRead(entry.position, mark) { return MessageID(entry.object) }
        }
        return nil
    }

    func run(steps: Int) throws {
        for _ in 0..<steps where violations.isEmpty { try chaos() }
        if violations.isEmpty { try calm() }
    }
}

extension SeededGenerator {
    mutating func below(_ bound: UInt64) -> UInt64 { next() % bound }
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }
}
