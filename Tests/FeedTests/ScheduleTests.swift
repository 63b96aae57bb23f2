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
    /// Devices from this one on began with a snapshot.
    private let firstNew: Int
    private var numbers: [String: UInt64] = [:]
    private var sessions: [String: SessionKey] = [:]
    private var conversations: [ConversationID] = []
    /// The truth, kept beside the store.
    private var truth = Truth()
    private(set) var finding: Finding?
    private(set) var pages = 0
    /// How often someone came back, or had to wait for it.
    private(set) var returns = 0
    private(set) var waited = 0
    /// How many conversations ended, or came back after their user deleted them.
    private(set) var ends = 0
    private(set) var clears = 0
    private var hasCleared = false

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
        firstNew = devices.count
        for (number, user) in Self.users.enumerated() {
            let device = DeviceID(high: 1, low: UInt64(number))
            sessions[user] = try world.login(user, device).session
        }
        world.engine = store
        store.between = { [unowned self] in try readSomething() }
    }

    func run(steps: Int) throws {
        for _ in 0..<steps where finding == nil {
            hasCleared = false
            try change()
            // What is cleared away behind a feed is told to nobody.
            try checkFeeds(of: hasCleared ? Self.users : world.changes.map(\.user.name))
            for _ in 0..<Int.random(in: 0...2, using: &generator) { try readSomething() }
        }
        try comeToRest()
    }

    // MARK: changes

    private func change() throws {
        world.pass(Milliseconds.random(in: 0...900, using: &generator))
        switch Int.random(in: 0..<25, using: &generator) {
        case 0: try create()
        case 1, 2: try join()
        case 3...6: try send()
        case 7, 8: try readOn()
        case 9, 10: try edit()
        case 11: try delete()
        case 12: try leave()
        case 13: try ask(.coalesceReceipts(users: 2))
        case 14: try end()
        case 15: try clear()
        case 16: try setTheme()
        case 17: try mute()
        case 18:
            hasCleared = true
            try ask(.enforceRetention(rows: Int.random(in: 1...9, using: &generator)))
        case 19: try beginAnew()
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
        guard let id = truth.changeable.randomElement(using: &generator)?.id
        else { return }
        let text = "edit \(world.fresh() as MessageID)"
        store.isPublishing = true
        if let refusal = try world.edit(id, text).refusal {
            throw Unexpected(answer: .refused(refusal, detail: ""))
        }
        truth.edit(id, text)
    }

    private func delete() throws {
        guard let id = truth.changeable.randomElement(using: &generator)?.id
        else { return }
        try ask(.deleteMessage(app: World.app, id, idempotency: nil))
        truth.delete(id)
    }

    private func end() throws {
        guard Int.random(in: 0..<3, using: &generator) == 0,
            let id = conversations.randomElement(using: &generator)
        else { return }
        try ask(.deleteConversation(app: World.app, id, idempotency: nil))
        truth.end(id)
        for number in devices.indices { devices[number].returned.insert(id) }
        conversations.removeAll { $0 == id }
        ends += 1
    }

    /// A user takes part, deletes the conversation for himself, and may be on his way into it.
    private func clear() throws {
        guard let (user, id) = member() else { return }
        let result = try mutate(
            user, .deleteConversation(DeleteConversation(conversation: id, forEveryone: false)))
        guard result == 0 else { return }
        truth.clear(id, of: user)
        for number in devices.indices where devices[number].user == user {
            devices[number].returned.insert(id)
        }
        clears += 1
    }

    private func mute() throws {
        guard let (user, id) = member() else { return }
        let isMuted = Bool.random(using: &generator)
        _ = try mutate(
            user, .muteConversation(MuteConversation(conversation: id, muted: isMuted)))
    }

    private func setTheme() throws {
        guard let id = conversations.randomElement(using: &generator) else { return }
        let change = MetadataChange(path: ["theme"], value: "\(world.fresh() as MessageID)")
        try ask(
            .changeMetadata(
                app: World.app, ChangeMetadata(conversation: id, changes: [change]),
                idempotency: nil))
    }

    private func member() -> (user: String, ConversationID)? {
        guard let id = conversations.randomElement(using: &generator),
            let user = truth.present(id).randomElement(using: &generator)
        else { return nil }
        return (user, id)
    }

    private func mutate(_ user: String, _ operation: Mutation.Operation) throws -> UInt32 {
        guard let session = sessions[user] else { return 0 }
        store.isPublishing = true
        numbers[user, default: 0] += 1
        let code = try world.mutate(session, numbers[user] ?? 0, operation).code
        guard code == 0 || (1000..<1100).contains(code) else {
            throw Unexpected(answer: .refused(.conflict, detail: "\(operation): \(code)"))
        }
        return code
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

    /// Every entry of every feed can be read, whatever was deleted and cleared away behind it.
    ///
    /// - Parameter users: whose feeds may have become another.
    private func checkFeeds(of users: [String]) throws {
        for user in users where finding == nil {
            do {
                var after: UInt64 = 0
                let head = try world.head(user)
                while after < head {
                    let page = try world.page(user, after: after)
                    if let row = world.unreadable.first {
                        finding = .unjoined("\(user) \(row.detail)")
                    }
                    after = page.to
                }
            } catch let error as StoreError {
                finding = .unjoined("\(user) \(error)")
            }
        }
    }

    /// A new device takes a snapshot and follows from there.
    private func beginAnew() throws {
        guard devices.count < firstNew + 8,
            let user = Self.users.randomElement(using: &generator)
        else { return }
        var pages: [SnapshotPage] = []
        var frame = SnapshotFrame()
        repeat {
            let reading = try world.history(
                .snapshot(World.app, UserID(user), frame, bytes: 1500))
            guard case .snapshotPage(let page) = reading else {
                throw Unexpected(answer: .done)
            }
            pages.append(page)
            frame.continuation = page.continuation
        } while !frame.continuation.isEmpty
        let held = Set(pages.flatMap { $0.conversations.compactMap(\.conversation) })
        var device = ModelDevice(user: user)
        device.begin(pages, unknown: truth.conversations(of: user).subtracting(held))
        devices.append(device)
    }

    /// Everything of the conversations the device holds: metadata, settings, read mark.
    private func partial(_ device: ModelDevice) throws -> Finding? {
        func lacks(_ key: String, _ version: UInt64) -> Bool {
            version > 0 && (device.objects[key]?.version ?? 0) < version
        }
        for id in conversations where truth.isPresent(device.user, id) {
            guard case .conversationState = device.objects["c \(id)"]?.body else { continue }
            let own: [ColumnValue] = [
                .app(World.app), .text(device.user), .identifier(id),
            ]
            let metadata = try world.record(
                MetadataRecord.self, [.app(World.app), .identifier(id)])
            let settings = try world.record(SettingsRecord.self, own)
            let mark = try world.record(ReadMarkRecord.self, own)
            for (key, version) in [
                ("k", metadata?.version), ("s", settings?.version), ("d", mark?.version),
            ] where lacks("\(key) \(id)", version ?? 0) {
                return .partial("\(device.user) lacks \(key) of \(id)")
            }
        }
        return nil
    }

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
            let user = devices[number].user
            let rows = try world.rows(user)
            let gone = try world.all(ParticipantRecord.self).filter {
                $0.user.name == user && $0.isGone
            }
            try finding =
                finding ?? truth.lacks(devices[number], gone: Set(gone.map(\.conversation)))
                ?? truth.untold(devices[number]) ?? truth.late(rows, user)
                ?? partial(devices[number])
        }
        try world.retain()
        try checkFeeds(of: Self.users)
    }
}

struct ScheduleTests {
    private static let schedules: UInt64 = 60
    private static let steps = 80

    @Test func noScheduleLosesOrReordersAnything() throws {
        var pages = 0
        var returns = 0
        var waited = 0
        var ends = 0
        var clears = 0
        for seed in 0..<Self.schedules {
            let schedule = try Schedule(seed: seed, fault: nil)
            try schedule.run(steps: Self.steps)
            #expect(schedule.finding == nil, "seed \(seed)")
            pages += schedule.pages
            returns += schedule.returns
            waited += schedule.waited
            ends += schedule.ends
            clears += schedule.clears
        }
        #expect(pages > 3000)
        #expect(returns > 10)
        #expect(waited > 5)
        #expect(ends > 10)
        #expect(clears > 10)
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
