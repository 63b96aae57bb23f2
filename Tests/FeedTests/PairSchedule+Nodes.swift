import Feed
import MemoryStore
import Model
import Testing
import Wire
import WorkingSet

// Two nodes on one PostgreSQL, whose transactions are open at once: each carries out a group of
// operations, and the store in memory takes over what came of both, so that it can be judged.
extension PairSchedule {
    /// What came of the meetings of a schedule.
    struct Meetings {
        var count = 0
        /// Both groups were at work at once.
        var overlaps = 0
        var operations = 0
        var conflicts = 0
        /// Messages that were answered as sent.
        var sent = 0

        mutating func add(_ other: Meetings) {
            count += other.count
            overlaps += other.overlaps
            operations += other.operations
            conflicts += other.conflicts
            sent += other.sent
        }
    }

    /// All but what is for a store that nobody else has open.
    private static let others = Operation.allCases.filter { $0 != .restore }
    private static let groupMax: UInt64 = 8
    /// Microseconds by which the second begins later, at most: about as long as a group takes.
    private static let pauseMax: UInt64 = 6_000

    /// - Parameter rounds: groups of operations at once, with others one by one between them.
    func runOnNodes(rounds: Int) throws -> Meetings {
        let mirror = try #require(state.world.mirror)
        let nodes = try (0..<2).map { _ in PostgresNode(try mirror.another()) }
        defer { for node in nodes { node.close() } }
        state.world.store.isSoleWriter = false
        state.world.known.forgetAll()
        var meetings = Meetings()
        for _ in 0..<rounds where finding == nil {
            if state.chance.next() % 6 == 0 { try settle() }
            if state.chance.next() % 3 == 0 { try something() }
            if finding == nil { try meet(nodes, mirror, &meetings) }
        }
        meetings.conflicts = nodes.reduce(0) { $0 + $1.conflicts }
        try comeToRest()
        return meetings
    }

    private func meet(
        _ nodes: [PostgresNode], _ mirror: PostgresMirror, _ meetings: inout Meetings
    ) throws {
        let groups = nodes.map { _ in
            (0...state.chance.next() % Self.groupMax).compactMap { _ in
                let isCommon = state.chance.next() % 4 > 0
                return state.pick(isCommon ? Self.common : Self.others)
                    .flatMap { state.plan($0) }
            }
        }
        let pauses = [0, UInt32(state.chance.next() % Self.pauseMax)]
        for (node, (group, pause)) in zip(nodes, zip(groups, pauses)) {
            node.begin(
                group.map(\.request), at: state.world.now, limits: state.world.limits,
                pause: pause)
        }
        for node in nodes { node.wait() }
        try takeOver(mirror)
        meetings.count += 1
        if nodes[0].span.overlaps(nodes[1].span) { meetings.overlaps += 1 }
        var answered: [(plan: Plan, answer: StoreAnswer)] = []
        for (node, group) in zip(nodes, groups) {
            for (plan, result) in zip(group, node.answers) {
                guard let answer = try result?.get().answer else { continue }
                answered.append((plan, answer))
                trace(plan)
                if try state.take(answer, of: plan) { learn(plan) }
            }
        }
        meetings.operations += answered.count
        let sent = sentMessages(answered)
        meetings.sent += sent.count
        let mayEnd = answered.contains { Self.endings.contains(Operation($0.plan.request)) }
        finding = try misplaced(sent, mayEnd: mayEnd) ?? state.finding()
    }

    /// The rows of the database, in memory.
    private func takeOver(_ mirror: PostgresMirror) throws {
        let store = state.world.store
        for table in Schema.tables {
            let found = try mirror.rows(table)
            let before = try store.allRows(table)
            guard found != before else { continue }
            let kept = Set(found)
            let known = Set(before)
            try store.arrange { transaction throws(StoreError) in
                for row in before where !kept.contains(row) {
                    try transaction.delete(table, key: Array(row[..<table.keyCount]))
                }
                for row in found where !known.contains(row) { try transaction.put(table, row) }
            }
        }
        state.world.known.forgetAll()
    }

    /// Operations after which a message that was answered may be gone.
    private static let endings: Set<Operation> = [
        .end, .backendEnd, .deleteUser, .removeApp, .enforceRetention, .continueDeletions,
    ]

    private struct Sent {
        let message: MessageID
        let conversation: ConversationID
        /// `nil`: the answer does not say.
        var position: UInt64?
    }

    /// What was answered as sent.
    private func sentMessages(_ answered: [(plan: Plan, answer: StoreAnswer)]) -> [Sent] {
        // Of mutations with one number the first is carried out, and its result is that of all.
        var numbers: [[UInt64]: Int] = [:]
        for case .mutate(let request) in answered.map(\.plan.request) {
            numbers[Self.place(request), default: 0] += 1
        }
        return answered.compactMap { plan, answer in
            switch (plan.request, answer) {
            case (_, .published(let record)):
                return Sent(
                    message: record.message, conversation: record.conversation,
                    position: record.position)
            case (.mutate(let request), .mutated(let result, _)):
                guard case .sendMessage(let new)? = request.mutation.operation, result.code == 0,
                    let message = new.message, numbers[Self.place(request)] == 1
                else { return nil }
                return new.conversation.map { Sent(message: message, conversation: $0) }
            default: return nil
            }
        }
    }

    private static func place(_ request: Mutate) -> [UInt64] {
        let device = request.session.device
        return [device.high, device.low, request.mutation.number]
    }

    /// P1, P2: what was answered as sent stands where the answer says, and no conversation has two
    /// messages in one place.
    ///
    /// - Parameter mayEnd: messages may have gone meanwhile.
    private func misplaced(_ sent: [Sent], mayEnd: Bool) throws -> String? {
        for message in sent {
            guard let row = state.message(message.message) else {
                if mayEnd { continue }
                return "message \(message.message.low) was answered, and is not there"
            }
            guard row.conversation == message.conversation,
                row.position == message.position ?? row.position
            else {
                return "message \(row.message.low) stands at \(row.position) of "
                    + "\(row.conversation.low), and was answered as \(message)"
            }
        }
        var places: Set<[UInt64]> = []
        for row in try state.world.all(MessageRecord.self) where row.app == World.app {
            let place = [row.conversation.high, row.conversation.low, row.position]
            guard places.insert(place).inserted else {
                return "two messages at \(row.position) of \(row.conversation.low)"
            }
        }
        return nil
    }
}
