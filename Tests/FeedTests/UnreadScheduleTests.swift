import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// A wrong way to count, put in beside the rules.
enum Miscount: CaseIterable {
    /// Who leaves keeps the number.
    case leaverKeeps
    /// Who comes back gets the number of the time before.
    case returnerGets
    /// A read receipt counts what a block kept away.
    case blockedCounts
    /// To mute a conversation forgets what was unread.
    case muteForgets
}

/// A random schedule of everything that changes what is unread. After each step every user's
/// numbers are those that the clause gives for the feed.
final class UnreadSchedule {
    let world: World
    private let miscount: Miscount?
    private var generator: SeededGenerator
    private var sessions: [String: SessionKey] = [:]
    private var rooms: [ConversationID] = []
    private var messages: [MessageID] = []
    private var numbers: [String: UInt64] = [:]
    private var left: [String: ParticipantRecord] = [:]
    private(set) var finding: String?
    private(set) var highest: UInt64 = 0

    private static let users = ["u0", "u1", "u2", "u3"]

    init(seed: UInt64, _ miscount: Miscount?) throws {
        var limits = RuleLimits()
        limits.directRecipients = 3
        limits.fanOutStep = 2
        world = try World(limits: limits)
        self.miscount = miscount
        generator = SeededGenerator(seed: seed)
        for (number, user) in Self.users.enumerated() {
            sessions[user] = try world.login(user, DeviceID(high: 1, low: UInt64(number))).session
        }
        for _ in 0..<2 { rooms.append(try world.converse(Self.users)) }
        rooms.append(try world.converse(["u0", "u1"]))
    }

    func run(steps: Int) throws {
        for step in 0..<steps where finding == nil {
            let before = try world.unread()
            let what = try change()
            try tamper(what, before)
            // Nothing is expected of what is on its way: often enough all of it has come.
            if Bool.random(using: &generator) { try world.finishFanOut() }
            for user in Self.users where finding == nil {
                finding = try world.unreadFinding(user).map { "step \(step), \(what): \($0)" }
            }
            highest = max(highest, try world.unread().map(\.unread).max() ?? 0)
        }
    }

    private func pick<T>(_ list: [T]) -> T? { list.randomElement(using: &generator) }

    private func mutate(_ user: String, _ operation: Mutation.Operation) throws {
        guard let session = sessions[user] else { return }
        numbers[user, default: 0] += 1
        let result = try world.mutate(session, numbers[user] ?? 0, operation)
        // A change may be on its way: the same number comes again then, which nobody here does.
        if (1_000..<2_000).contains(result.code) { numbers[user, default: 1] -= 1 }
    }

    /// - Returns: what was done.
    private func change() throws -> String {
        world.pass(Milliseconds.random(in: 0...400, using: &generator))
        guard let user = pick(Self.users), let other = pick(Self.users), let room = pick(rooms)
        else { return "nothing" }
        switch Int.random(in: 0..<22, using: &generator) {
        case 0...5: return try send(to: room, from: user)
        case 6, 7: return try read(room, user)
        case 8, 9:
            let push = Bool.random(using: &generator) ? "" : "again"
            if let message = pick(messages) { try world.edit(message, "again", push: push) }
            return "edit"
        case 10:
            if let message = pick(messages) { try world.delete(message) }
            return "delete"
        case 11:
            if let message = pick(messages) {
                try mutate(user, .deleteMessage(DeleteMessage(message: message)))
            }
            return "hide"
        case 12:
            if Int.random(in: 0..<3, using: &generator) == 0 {
                try mutate(user, .deleteConversation(DeleteConversation(conversation: room)))
            }
            return "clear"
        case 13:
            try world.remove([user], from: room)
            return "remove"
        case 14, 15:
            _ = try world.add([user], to: room)
            return "add"
        case 16: return try mute(room, user)
        case 17:
            let isBlocked = Bool.random(using: &generator)
            try mutate(user, .blockUser(BlockUser(user: other, blocked: isBlocked)))
            return "block"
        case 18:
            guard Int.random(in: 0..<12, using: &generator) == 0 else { return "nothing" }
            try world.end(room)
            rooms = try rooms.filter { $0 != room } + [world.converse(Self.users)]
            return "end"
        default:
            let recipients = Int.random(in: 1...4, using: &generator)
            try world.ask(.continueFanOut(recipients: recipients))
            return "serve"
        }
    }

    private func send(to room: ConversationID, from user: String) throws -> String {
        let id: MessageID = world.fresh()
        let push = Int.random(in: 0..<4, using: &generator) == 0 ? "" : "x"
        let sender = Int.random(in: 0..<6, using: &generator) == 0 ? "" : user
        let answer = try world.ask(
            .publish(
                app: World.app,
                Publication(message: world.message0("x", to: room, id, push: push), sender: sender),
                idempotency: nil))
        if answer.refusal == nil { messages.append(id) }
        return "send"
    }

    private func read(_ room: ConversationID, _ user: String) throws -> String {
        guard let session = sessions[user] else { return "nothing" }
        let through = UInt64.random(in: 0...6, using: &generator)
        let first = UInt64.random(in: 1...30, using: &generator)
        let range = InclusiveRange(first: first, last: first + UInt64(through % 3))
        let last = try world.all(ReadMarkRecord.self).first {
            $0.user.name == user && $0.conversation == room
        }
        let receipt = ReadReceipt(
            conversation: room, through: (last?.through ?? 0) + through,
            ranges: Bool.random(using: &generator) ? [range] : [])
        _ = try world.ask(
            .acknowledge(
                Acknowledge(session: session, applied: 0, reads: [receipt], completesSync: false)))
        return "read"
    }

    private func mute(_ room: ConversationID, _ user: String) throws -> String {
        let isMuted = Bool.random(using: &generator)
        let duration = pick([0, 0, 2_000] as [UInt64]) ?? 0
        try mutate(
            user,
            .muteConversation(
                MuteConversation(conversation: room, muted: isMuted, forMs: duration)))
        return "mute"
    }

    // MARK: wrong counts

    private func tamper(_ what: String, _ before: [ParticipantRecord]) throws {
        let after = try world.unread()
        func key(_ row: ParticipantRecord) -> String { "\(row.user.name) \(row.conversation)" }
        let kept = Set(after.map(key))
        switch miscount {
        case nil: break
        case .leaverKeeps, .returnerGets:
            for row in before where !kept.contains(key(row)) {
                if try member(row)?.leftRevision != nil { left[key(row)] = row }
            }
            for row in left.values {
                let isBack = try member(row)?.leftRevision == nil
                if isBack == (miscount == .returnerGets) {
                    try put(row, unread: row.unread)
                    left[key(row)] = nil
                }
            }
        case .blockedCounts:
            guard what == "read" else { return }
            for row in after where !before.contains(row) {
                try put(row, unread: row.unread + keptAway(row))
            }
        case .muteForgets:
            guard what == "mute" else { return }
            for row in after where !before.contains(row) && row.mutedUntil > world.now {
                try put(row, unread: 0)
            }
        }
    }

    private func put(_ row: ParticipantRecord, unread: UInt64) throws {
        guard var member = try member(row) else { return }
        member.unread = unread
        try world.tamper { transaction throws(StoreError) in try transaction.put(member) }
    }

    private func member(_ row: ParticipantRecord) throws -> ParticipantRecord? {
        try world.record(
            ParticipantRecord.self,
            [.app(World.app), .identifier(row.conversation), .user(row.user)])
    }

    private func keptAway(_ row: ParticipantRecord) throws -> UInt64 {
        let came = Set(try world.rows(row.user.name).map(\.object))
        let joined = try member(row)?.joinedPosition ?? 0
        return UInt64(
            try world.all(MessageRecord.self).count {
                $0.conversation == row.conversation && $0.position > joined
                    && !came.contains($0.message.bytes)
            })
    }
}

/// SYN-27, whatever happens in whatever order.
struct UnreadScheduleTests {
    private static let seeds: UInt64 = 24
    private static let steps = 120

    @Test func everyNumberIsWhatTheFeedSays() throws {
        var highest: UInt64 = 0
        for seed in 0..<Self.seeds {
            let schedule = try UnreadSchedule(seed: seed, nil)
            try schedule.run(steps: Self.steps)
            #expect(schedule.finding == nil, "seed \(seed)")
            highest = max(highest, schedule.highest)
        }
        #expect(highest > 5)
    }

    /// The checker can fail: each wrong way to count is found.
    @Test(arguments: Miscount.allCases)
    func aWrongCountIsFound(_ miscount: Miscount) throws {
        for seed in 0..<Self.seeds {
            let schedule = try UnreadSchedule(seed: seed, miscount)
            try schedule.run(steps: Self.steps)
            if let finding = schedule.finding {
                print("\(miscount) found by seed \(seed): \(finding)")
                return
            }
        }
        Issue.record("no seed finds \(miscount)")
    }
}
