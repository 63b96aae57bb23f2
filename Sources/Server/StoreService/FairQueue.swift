import Feed
import Model

/// Items of several owners, taken in turns: one of each, as long as there are any. Within an
/// owner they keep their order. So whoever asks for much waits for himself.
public struct FairQueue<Owner: Hashable, Item> {
    private struct Line {
        var items: [Item] = []
        /// Those before it are taken.
        var start = 0
    }

    private var lines: [Owner: Line] = [:]
    /// Owners with items, in the order of their turns.
    private var turns: [Owner] = []
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    public mutating func append(_ item: Item, of owner: Owner) {
        if lines[owner] == nil { turns.append(owner) }
        lines[owner, default: Line()].items.append(item)
        count += 1
    }

    /// The next `limit` items.
    public mutating func take(_ limit: Int) -> [Item] {
        if turns.count == 1, count <= limit, let line = lines[turns[0]] {
            self = FairQueue()
            return line.start == 0 ? line.items : Array(line.items[line.start...])
        }
        var taken: [Item] = []
        taken.reserveCapacity(min(limit, count))
        var turn = 0
        while taken.count < limit, turn < turns.count {
            let owner = turns[turn]
            turn += 1
            guard var line = lines.removeValue(forKey: owner) else { continue }
            taken.append(line.items[line.start])
            line.start += 1
            guard line.start < line.items.count else { continue }
            if line.start > 1024 {
                line.items.removeFirst(line.start)
                line.start = 0
            }
            lines[owner] = line
            turns.append(owner)
        }
        turns.removeFirst(turn)
        count -= taken.count
        return taken
    }
}

extension StoreRequest {
    /// Whose share of the writer it takes; `nil`: the server's own.
    var app: AppID? {
        switch self {
        case .openSession(let request): request.app
        case .sync(let request): request.session.app
        case .acknowledge(let request): request.session.app
        case .changeAppState(let request): request.session.app
        case .mutate(let request): request.session.app
        case .endSession(let request): request.session.app
        case .abandonSession(let request): request.app
        case .reauthenticate(let request): request.session.app
        case .createConversation(let app, _, _): app
        case .addParticipants(let app, _, _): app
        case .publish(let app, _, _): app
        case .removeParticipants(let app, _, _): app
        case .editMessage(let app, _, _): app
        case .deleteMessage(let app, _, _): app
        case .deleteConversation(let app, _, _): app
        case .changeMetadata(let app, _, _): app
        case .announce(let app, _, _): app
        case .deleteUser(let app, _, _): app
        case .webhooks(let request): request.app
        case .schedules(let request): request.app
        case .campaigns(let request): request.app
        default: nil
        }
    }
}
