import Feed
import Model
import Testing
import Wake
import Wire

/// A schedule of every operation there is, with what must hold looked at after each of them. It
/// goes from pair to pair: those of its share that did not come by chance are brought about.
final class PairSchedule {
    let state: PairWorld
    private(set) var count = PairCount()
    private(set) var steps = 0
    var finding: String?
    /// The last operation that had its effect on each object, and whose doing it was.
    private var last: [Thing: (operation: Operation, party: Int?)] = [:]
    /// Operations whose objects no turn of the server has followed yet, by turn.
    private var fresh: [Operation: Set<Operation>] = [:]
    private var lastTurn: Operation?
    private var trace: [(operation: Operation, touches: [(thing: Thing, party: Int?)])] = []

    init(seed: UInt64) throws {
        state = try PairWorld(seed: seed)
        for _ in 0..<2 { try perform(.backendCreate) }
        for device in state.devices {
            try perform(.open, on: .device(device), by: state.owner[device])
        }
    }

    /// - Parameter share: the pairs it brings about.
    func run(_ share: [OperationPair]) throws {
        for pair in share.shuffled(using: &state.chance) where finding == nil {
            if count.done.contains(pair) { continue }
            // What cannot be is asked for once, and what can again, with other objects.
            for attempt in 0..<8 where finding == nil {
                try settle()
                if attempt == 0, state.chance.next() % 3 == 0 { try something() }
                try bringAbout(pair)
                if count.done.contains(pair) { break }
                if pair.impossible != nil, count.refused.contains(pair) { break }
            }
        }
        try comeToRest()
    }

    /// Anything, in any order.
    func run(steps: Int) throws {
        for _ in 0..<steps where finding == nil {
            if state.chance.next() % 8 == 0 { try settle() }
            try something()
        }
        try comeToRest()
    }

    // MARK: one step

    /// - Returns: whether it had its effect.
    @discardableResult
    func perform(_ operation: Operation, on thing: Thing? = nil, by party: Int? = nil) throws
        -> Bool
    {
        guard finding == nil, let plan = state.plan(operation, on: thing, by: party) else {
            return false
        }
        // To remove nobody but oneself is to leave.
        guard Operation(plan.request) == operation else { return false }
        steps += 1
        trace.append((operation, plan.touches))
        do {
            let isDone = try state.carryOut(plan)
            note(operation, plan, isDone: isDone)
            if isDone { learn(plan) }
            let changes = state.world.changes
            finding = try state.finding(after: plan)
            count.note(changes, moving: state.movingKinds)
            return isDone
        } catch {
            finding = "\(error)"
        }
        return false
    }

    /// What was found, and the steps before it.
    func report(steps last: Int) -> String? {
        finding.map { finding in
            let lines = trace.suffix(last).map { step in
                let things = step.touches.map { touch in
                    "\(touch.thing)" + (touch.party.map { " by \(PairWorld.names[$0])" } ?? "")
                }
                return "\(step.operation) " + things.joined(separator: ", ")
            }
            return "step \(steps): \(finding)\n  " + lines.joined(separator: "\n  ")
        }
    }

    /// Of one that came together with another.
    func trace(_ plan: Plan) {
        steps += 1
        trace.append((Operation(plan.request), plan.touches))
    }

    private func note(_ operation: Operation, _ plan: Plan, isDone: Bool) {
        if operation.roles[.store] != nil { note(turn: operation, isDone: isDone) }
        for (thing, party) in plan.touches {
            if let before = last[thing] {
                let pair = OperationPair(
                    kind: thing.kind, first: before.operation, second: operation,
                    relation: relation(before.party, party))
                count.note(pair, isDone: isDone)
            }
            if isDone { last[thing] = (operation, party) }
        }
        guard isDone, operation.roles[.store] == nil else { return }
        for turn in Operation.turns { fresh[turn, default: []].insert(operation) }
    }

    private func note(turn: Operation, isDone: Bool) {
        if let lastTurn {
            let pair = OperationPair(
                kind: .store, first: lastTurn, second: turn, relation: .none)
            count.note(pair, isDone: isDone)
        }
        lastTurn = turn
        for first in fresh[turn] ?? [] { count.note(OperationTurn(first: first, turn: turn)) }
        fresh[turn] = []
    }

    private func relation(_ first: Int?, _ second: Int?) -> OperationPair.Relation {
        guard let first, let second else { return .none }
        return first == second ? .sameUser : .otherUser
    }

    /// Remembers the objects that there are now.
    func learn(_ plan: Plan) {
        var room: ConversationID?
        for case .conversation(let id) in plan.touches.map(\.thing) {
            room = id
            if !state.conversations.contains(id) { state.conversations.append(id) }
        }
        for (thing, _) in plan.touches {
            switch thing {
            case .message(let id):
                guard let room else { continue }
                if state.place[id] == nil { state.messages.append(id) }
                state.place[id] = room
            case .announcement(let id):
                if !state.announcements.contains(id) { state.announcements.append(id) }
            default: break
            }
        }
        switch plan.request {
        case .webhooks(.create(let new)):
            state.webhooks[new.key.app, default: []].append(new.key)
        case .campaigns(.create(let new, _)):
            state.campaigns[new.app, default: []].append(new.campaign)
        default: break
        }
    }
}
