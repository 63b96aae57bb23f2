import Feed
import Model
import Testing
import Wire

/// A random schedule of everything that writes feeds, with devices paging at every commit point.
final class Schedule {
    private let world: World
    private let store: BrokenStore
    private let fault: Break?
    private var generator: SeededGenerator
    private var devices: [ModelDevice]
    private var sessions: [String: SessionKey] = [:]
    private var conversations: [ConversationID] = []
    /// The truth, kept beside the store.
    private var truth = Truth()
    private(set) var finding: Finding?
    private(set) var pages = 0
    /// How often someone came back, or had to wait for it.
    private(set) var returns = 0
    private(set) var waited = 0

    private static let users = (0..<7).map { "u\($0)" }

    init(seed: UInt64, fault: Break?) throws {
        var limits = RuleLimits()
        limits.directRecipients = 5
        limits.directEntries = 12
        limits.fanOutStep = 3
        limits.receiptStep = 3
        world = try World(limits: limits)
        store = BrokenStore(world.store, fault)
        self.fault = fault
        generator = SeededGenerator(seed: seed)
        devices = (Self.users + Self.users).map { ModelDevice(user: $0) }
        for (number, user) in Self.users.enumerated() {
            let device = DeviceID(high: 1, low: UInt64(number))
            sessions[user] = try world.login(user, device).session
        }
        world.engine = store
        store.between = { [unowned self] in try readSomething() }
    }

    func run(steps: Int) throws {
        for _ in 0..<steps where finding == nil {
            try change()
            for _ in 0..<Int.random(in: 0...2, using: &generator) { try readSomething() }
        }
        try comeToRest()
    }

    // MARK: changes

    private func change() throws {
        world.pass(Milliseconds.random(in: 0...900, using: &generator))
        switch Int.random(in: 0..<18, using: &generator) {
        case 0: try create()
        case 1, 2: try join()
        case 3...6: try send()
        case 7, 8: try readOn()
        case 9, 10: try edit()
        case 11: try delete()
        case 12: try leave()
        case 13: try ask(.coalesceReceipts(users: 2))
        default:
            try ask(.continueFanOut(recipients: Int.random(in: 1...6, using: &generator)))
        }
    }

    @discardableResult
    private func ask(_ request: StoreRequest) throws -> StoreAnswer {
        if case .continueFanOut = request {
            store.isPublishing = false
        } else {
            store.isPublishing = true
        }
        let answer = try world.ask(request)
        if let refusal = answer.refusal { throw Unexpected(answer: .refused(refusal, detail: "")) }
        return answer
    }

    private func some(_ users: [String], _ count: ClosedRange<Int>) -> [String] {
        let count = Int.random(in: count, using: &generator)
        return Array(users.shuffled(using: &generator).prefix(count))
    }

    private func create() throws {
        guard conversations.count < 3 else { return }
        let id: ConversationID = world.fresh()
        let users = some(Self.users, 1...5)
        try ask(
            .createConversation(
                app: World.app, CreateConversation(conversation: id, participants: users),
                idempotency: nil))
        conversations.append(id)
        truth.join(users, id)
    }

    private func join() throws {
        guard let id = conversations.randomElement(using: &generator) else { return }
        let users = some(Self.users.filter { !truth.isPresent($0, id) }, 1...2)
        guard !users.isEmpty else { return }
        store.isPublishing = true
        let answer = try world.add(users, to: id)
        if answer.refusal == .rateLimited, users.contains(where: { truth.wasPresent($0, id) }) {
            waited += 1
            return
        }
        if let refusal = answer.refusal { throw Unexpected(answer: .refused(refusal, detail: "")) }
        for user in users where truth.wasPresent(user, id) {
            returns += 1
            for number in devices.indices where devices[number].user == user {
                devices[number].returned.insert(id)
            }
        }
        truth.join(users, id)
    }

    private func leave() throws {
        guard let id = conversations.randomElement(using: &generator) else { return }
        let users = some(truth.present(id), 1...2)
        guard !users.isEmpty else { return }
        try ask(
            .removeParticipants(
                app: World.app, RemoveParticipants(conversation: id, users: users),
                idempotency: nil))
        truth.leave(users, id)
    }

    private func edit() throws {
        guard let id = truth.messages.filter({ !$0.isDeleted }).randomElement(using: &generator)?.id
        else { return }
        let text = "edit \(world.fresh() as MessageID)"
        store.isPublishing = true
        if let refusal = try world.edit(id, text).refusal {
            throw Unexpected(answer: .refused(refusal, detail: ""))
        }
        truth.edit(id, text)
    }

    private func delete() throws {
        guard let id = truth.messages.filter({ !$0.isDeleted }).randomElement(using: &generator)?.id
        else { return }
        try ask(.deleteMessage(app: World.app, id, idempotency: nil))
        truth.delete(id)
    }

    private func send() throws {
        guard let id = conversations.randomElement(using: &generator) else { return }
        let sender = truth.present(id).randomElement(using: &generator) ?? ""
        let message = world.message0("x", to: id, world.fresh())
        try ask(
            .publish(
                app: World.app, Publication(message: message, sender: sender), idempotency: nil))
        if let sent = message.message { truth.send(sent, "x", id) }
    }

    /// Supersedes the read mark, and sooner or later a receipt; tells how far a device got.
    private func readOn() throws {
        guard let device = devices.randomElement(using: &generator),
            let session = sessions[device.user],
            let (id, position) = device.positions.sorted(by: { $0.key < $1.key })
                .randomElement(using: &generator)
        else { return }
        let through = UInt64.random(in: 0...position, using: &generator)
        try ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: device.cursor,
                    reads: [ReadReceipt(conversation: id, through: through)],
                    completesSync: true)))
    }

    // MARK: devices

    private func readSomething() throws {
        guard finding == nil else { return }
        let number = Int.random(in: devices.indices, using: &generator)
        // One entry, a few, or everything.
        let bytes = [1, 500, 1500, 1 << 20].randomElement(using: &generator) ?? 1
        try read(number, bytes: bytes, isTorn: true)
    }

    private func read(_ number: Int, bytes: Int, isTorn: Bool) throws {
        let user = devices[number].user
        var page = try world.page(
            user, after: devices[number].cursor, bytes: bytes,
            isForgiving: fault == .presentStateForAll)
        pages += 1
        if fault == .headReadAfterEntries && isTorn && !page.more {
            try change()
            page.to = try world.head(user)
        }
        if fault == .fullPageEndsAtHead { page.to = page.head }
        finding = finding ?? devices[number].apply(page) { truth.judge($0, for: user) }
        let rows = try world.rows(user)
        finding =
            finding ?? devices[number].missing(of: rows) { truth.isShown($0, to: user) }
            ?? truth.doubled(rows)
    }

    // MARK: rest

    /// Without further changes everyone must end with the truth.
    private func comeToRest() throws {
        for _ in 0..<200 {
            let answer = try ask(.continueFanOut(recipients: 50))
            world.pass(2000)
            let receipts = try ask(.coalesceReceipts(users: 100))
            if answer == .progressed(count: 0, more: false),
                receipts == .progressed(count: 0, more: false)
            {
                break
            }
        }
        for number in devices.indices {
            let head = try world.head(devices[number].user)
            while finding == nil && devices[number].cursor < head {
                try read(number, bytes: 1000, isTorn: false)
            }
            let rows = try world.rows(devices[number].user)
            finding =
                finding ?? truth.lacks(devices[number])
                ?? truth.late(rows, devices[number].user)
        }
    }
}

struct ScheduleTests {
    private static let schedules: UInt64 = 60
    private static let steps = 60

    @Test func noScheduleLosesOrReordersAnything() throws {
        var pages = 0
        var returns = 0
        var waited = 0
        for seed in 0..<Self.schedules {
            let schedule = try Schedule(seed: seed, fault: nil)
            try schedule.run(steps: Self.steps)
            #expect(schedule.finding == nil, "seed \(seed)")
            pages += schedule.pages
            returns += schedule.returns
            waited += schedule.waited
        }
        #expect(pages > 3000)
        #expect(returns > 10)
        #expect(waited > 5)
    }

    /// Each condition is needed: without it some schedule goes wrong, in the way it must.
    @Test(arguments: [
        (Break.headReadAfterEntries, "missed"), (.fullPageEndsAtHead, "missed"),
        (.entriesCommittedLater, "missed"), (.supersedeInPlace, "missed"),
        (.jobsDoNotQueue, "orphan"), (.newestJobFirst, "positions"),
        (.recipientsOfTheMoment, "orphan"), (.leaversAreServed, "overshared"),
        (.comingBackDoesNotWait, "missed"), (.presentStateForAll, "overshared"),
        (.olderEntryStays, "doubled"),
    ])
    func aBrokenConditionIsFound(fault: Break, kind: String) throws {
        for seed in 0..<Self.schedules {
            let schedule = try Schedule(seed: seed, fault: fault)
            try schedule.run(steps: Self.steps)
            if schedule.finding?.kind == kind { return }
        }
        Issue.record("no schedule found it")
    }
}
