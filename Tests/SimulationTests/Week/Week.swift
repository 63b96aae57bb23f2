import AppLife
import DeviceModel
import Foundation
import MemoryStore
import Model
import RouseClient
import SyncServer
import Wake
import Wire

@testable import Feed

/// A week of one person's life with an app on this library, in virtual time: a phone and a tablet,
/// the real core of a server, an APNs that loses, delays and doubles. What happens is drawn from
/// a seed; after every few events comes a pause, and then both screens are judged.
final class Week: SimulatedWorld {
    let seed: UInt64
    let app = AppID("chat")
    let user = "anna"
    static let friends = ["ben", "clara"]
    var chance: Chance
    let clock = Clockwork()
    var reached = Reached()
    var violations: [String] = []
    let isCalm = true
    let defect: Defect? = nil
    let watched: [String] = []
    let limits = RuleLimits()
    let sessionLimits = SessionLimits()
    private(set) var server: SimulatedServer!
    private(set) var devices: [WeekDevice] = []
    private(set) var conversations: [ConversationID] = []
    /// What happened, in words, for whoever looks at a failure.
    private(set) var log: [String] = []
    /// Events so far.
    private(set) var events = 0
    private(set) var judged = 0
    struct Published {
        let at: Instant
        let conversation: ConversationID
        /// Without, nobody is alerted of it, whatever an edit gives it later.
        let hasText: Bool
    }

    var published: [MessageID: Published] = [:]
    /// When something was counted on the icon that wakes and alerts nobody: a text that an edit
    /// gave to a message without one (MSG-33), a mute that was taken back.
    var raised: Instant?
    /// When each conversation was last muted, or not; left, or joined.
    private(set) var changed: [ConversationID: Instant] = [:]
    private var calls: [() async throws -> Void] = []
    private var links: UInt64 = 0
    private var ids: UInt64 = 0
    private var touched = Instant(milliseconds: 0)

    init(seed: UInt64) throws {
        self.seed = seed
        chance = Chance(seed: seed)
        server = SimulatedServer(self)
        try server.start()
        for request in [
            Administration.putApp(AppRecord(app: app, createdAt: clock.wall)),
            .putPushCredential(
                PushCredentialRecord(
                    app: app, environment: .development, keyID: "K", team: "T",
                    privateKeyPEM: "", topics: "org.example", host: "h", port: 1,
                    changedAt: clock.wall)),
        ] {
            let outcomes = try server.store.commit(
                [.administer(request)], through: server.known)
            guard try outcomes.first?.get().answer == .done else { throw Violation("no app") }
        }
        let rules: DeviceRules = seed % 2 == 0 ? .unlimited : .everyday
        devices = [
            WeekDevice(DeviceID(high: 1, low: 1), "the phone", self, rules),
            WeekDevice(DeviceID(high: 2, low: 2), "the tablet", self, rules),
        ]
        for _ in 0..<4 {
            let id: ConversationID = fresh()
            conversations.append(id)
            server.ask(
                .createConversation(
                    app: app,
                    CreateConversation(conversation: id, participants: [user] + Self.friends),
                    idempotency: nil)
            ) { _ in }
        }
    }

    // MARK: The world

    /// Often while something happens, seldom while nothing does.
    var nextDuties: Milliseconds? {
        min(max(clock.now.since(touched) / 4, 500), 600_000)
    }

    func others(than user: UserID) -> [UserID] { [] }
    func committed(_ outcomes: [Result<StoreOutcome, StoreError>]) throws {}

    func serverSends(_ frame: Frame, on link: UInt64) throws {
        if case .close(let close) = frame.body,
            close.code == 5004 || (4_000..<5_000).contains(close.code)
        {
            throw Violation("the server closes with \(close.code)")
        }
    }

    func touch() { touched = clock.now }

    func makeLink() -> SimulatedLink {
        links += 1
        return SimulatedLink(links, self)
    }

    func fresh<Noun>() -> Identifier<Noun> {
        ids += 1
        return Identifier(high: 0xAB, low: ids)
    }

    /// To be done at this moment, by what runs beside the clockwork.
    func call(_ call: @escaping () async throws -> Void) { calls.append(call) }

    /// What the server's calendar said then.
    func wall(at moment: Instant) -> Timestamp { clock.wall - clock.now.since(moment) }

    func isMuted(_ message: MessageID, _ mutes: WeekMutes) -> Bool {
        published[message].map { mutes.lasts(in: $0.conversation) } ?? false
    }

    func head() throws -> UInt64 {
        try rows(UserRecord.self).first { $0.user.name == user }?.head ?? 0
    }

    // MARK: APNs

    func push(_ request: PushRequest, _ answer: @escaping (PushReply) -> Void) {
        touch()
        guard let device = devices.first(where: { $0.token == request.token }) else {
            reached.count("a push to an old token")
            clock.after(50) { [unowned self] in
                answer(
                    .answered(status: 410, reason: "Unregistered", timestamp: self.clock.wall))
            }
            return
        }
        reached.count("a push: \(request.pushType.rawValue)")
        clock.after(50) { answer(.answered(status: 200, reason: "", timestamp: nil)) }
        let badge = hasBadge(request)
        note("the server pushes \(request.pushType) \(request.collapseID ?? "") to \(device.name)")
        noteSummary(request, device)
        switch Int.random(in: 0..<40, using: &chance) {
        case 0, 1:
            reached.count("a push lost")
            note("  it is lost")
            device.oracle.lost(request, hasBadge: badge)
        case 2, 3:
            reached.count("a push delayed")
            deliver(request, badge, to: device, after: chance.upTo(20 * 60_000))
        case 4:
            reached.count("a push doubled")
            deliver(request, badge, to: device, after: 100)
            deliver(request, badge, to: device, after: chance.upTo(60_000))
        default: deliver(request, badge, to: device, after: 20 + chance.upTo(800))
        }
    }

    /// One alert for several: those that have none of their own.
    private func noteSummary(_ request: PushRequest, _ device: WeekDevice) {
        guard String(decoding: request.payload, as: UTF8.self).contains(" more)"),
            let alerts = try? rows(AlertRecord.self)
        else { return }
        reached.count("an alert for several")
        device.oracle.summed(alerts.filter { $0.device == device.id }.map(\.message))
    }

    private func hasBadge(_ request: PushRequest) -> Bool {
        String(decoding: request.payload, as: UTF8.self).contains("\"badge\"")
    }

    private func deliver(
        _ request: PushRequest, _ hasBadge: Bool, to device: WeekDevice,
        after delay: Milliseconds
    ) {
        let sentAt = clock.now
        device.oracle.sent(request, hasBadge: hasBadge, at: sentAt)
        clock.after(delay) { [unowned self] in
            self.touch()
            self.call { [unowned self] in
                self.note(
                    "\(device.name) gets a push \(request.pushType) \(request.collapseID ?? "")")
                let before = device.phone.screen
                let events = try device.phone.receive(
                    request, sentAt: sentAt, now: self.clock.now, wall: self.clock.wall)
                let mutes = try WeekMutes(self)
                device.oracle.received(
                    request, hasBadge: hasBadge, sentAt: sentAt, events, before,
                    isTidySince: device.tidyHead == nil ? nil : device.tidyAt
                ) { self.isMuted($0, mutes) }
                try await device.happen(events)
            }
        }
    }

    /// What became of a push after it had reached the phone or APNs' slot for it.
    func lose(_ handle: UInt64, on device: WeekDevice) {
        reached.count("a push dropped")
        device.oracle.lostSome(device.phone.content(of: handle)?.object)
    }

    // MARK: The run

    func note(_ words: String) {
        log.append("\(clock.now.milliseconds) \(words)")
        if log.count > 40_000 { log.removeFirst(20_000) }
    }

    /// - Parameter most: events; fewer to find where it began.
    func run(events most: Int) async throws {
        try await pass(5_000)
        for device in devices { call { try await device.open() } }
        try await pass(20_000)
        var left = 0
        while events < most {
            if left == 0 {
                try await pass(20 * 60_000)
                try await judge()
                left = Int.random(in: 2...9, using: &chance)
            }
            left -= 1
            events += 1
            touch()
            call { [unowned self] in try await self.something() }
            try await pass(pause())
        }
        try await pass(20 * 60_000)
        try await judge()
        for device in devices { call { try await device.comeBack() } }
        try await pass(20 * 60_000)
        try await judge()
    }

    /// Most follow one another at once; some nights are long.
    private func pause() -> Milliseconds {
        switch Int.random(in: 0..<12, using: &chance) {
        case 0..<5: chance.upTo(2_000)
        case 5..<9: chance.upTo(40_000)
        case 9, 10: chance.upTo(10 * 60_000)
        default: chance.upTo(8 * 3_600_000)
        }
    }

    func pass(_ duration: Milliseconds) async throws {
        let end = clock.now + duration
        try await settle()
        while try clock.step(until: end) {
            try await settle()
            if let violation = violations.first { throw Violation(violation) }
        }
        try await settle()
    }

    private func settle() async throws {
        for device in devices { device.advance() }
        repeat {
            while !calls.isEmpty {
                let call = calls.removeFirst()
                try await call()
                for device in devices { try await device.settle() }
            }
            for device in devices { try await device.settle() }
        } while !calls.isEmpty
    }

    private func judge() async throws {
        if !server.isUp { try server.start() }
        judged += 1
        for device in devices {
            await device.lookAfterFront()
            try await device.judge()
        }
    }

    // MARK: What is done elsewhere

    func publish(in conversation: ConversationID, hasText: Bool = true) {
        guard server.isUp else { return }
        let id: MessageID = fresh()
        let friend = chance.one(of: Self.friends) ?? ""
        let text = hasText ? PushText(title: friend, body: "text \(ids)") : nil
        note("\(friend) writes \(id) in \(conversation)\(hasText ? "" : ", without a text")")
        server.ask(
            .publish(
                app: app,
                Publication(
                    message: SendMessage(
                        conversation: conversation, message: id,
                        parts: [Part("text \(ids)")], push: text), sender: friend),
                idempotency: nil)
        ) { [unowned self] result in
            guard case .success(let outcome) = result, case .published = outcome.answer else {
                return
            }
            self.published[id] = Published(
                at: self.clock.now, conversation: conversation, hasText: hasText)
            self.reached.count("a message")
        }
    }

    func ask(_ words: String, _ request: StoreRequest) {
        guard server.isUp else { return }
        note(words)
        server.ask(request) { _ in }
    }

    func anyMessage() throws -> MessageRecord? {
        let all = try rows(MessageRecord.self).filter { $0.deletedAt == nil && $0.sender != user }
        return chance.one(of: all.sorted { $0.sentAt < $1.sentAt }.suffix(12).map { $0 })
    }

    func nextText() -> String {
        ids += 1
        return "edited \(ids)"
    }

    func hasChanged(_ conversation: ConversationID) { changed[conversation] = clock.now }
}
