import Feed
import Model

/// Items of several owners, taken in turns: one of each, as long as there are any. Within an
/// owner they keep their order. So whoever asks for much waits for himself.
public struct FairQueue<Owner: Hashable, Item> {
    private var lines: [Owner: Line<Item>] = [:]
    /// Owners with items, in the order of their turns.
    private var turns = Line<Owner>()
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    public mutating func append(_ item: Item, of owner: Owner) {
        if lines[owner] == nil { turns.append(owner) }
        lines[owner, default: Line()].append(item)
        count += 1
    }

    /// Items that were taken and are not served yet come first again, in their order.
    mutating func putBack(_ items: [(item: Item, owner: Owner)]) {
        var back: [Owner: [Item]] = [:]
        var owners: [Owner] = []
        for (item, owner) in items {
            if back[owner] == nil, lines[owner] == nil { owners.append(owner) }
            back[owner, default: []].append(item)
        }
        turns.prepend(owners)
        for (owner, items) in back { lines[owner, default: Line()].prepend(items) }
        count += items.count
    }

    /// The next `limit` items.
    public mutating func take(_ limit: Int) -> [Item] {
        var taken: [Item] = []
        taken.reserveCapacity(min(limit, count))
        while taken.count < limit, let owner = turns.takeFirst() {
            guard var line = lines.removeValue(forKey: owner) else { continue }
            // An owner who is alone takes all turns.
            repeat {
                guard let item = line.takeFirst() else { break }
                taken.append(item)
            } while turns.isEmpty && taken.count < limit
            guard !line.isEmpty else { continue }
            lines[owner] = line
            turns.append(owner)
        }
        count -= taken.count
        return taken
    }
}

/// A line whose first is taken without moving all the others.
public struct Line<Element> {
    private var elements: [Element] = []
    /// Those before it are taken.
    private var start = 0

    public init() {}

    public var count: Int { elements.count - start }
    public var isEmpty: Bool { start == elements.count }

    public mutating func append(_ element: Element) { elements.append(element) }

    /// Elements that come before all others.
    mutating func prepend(_ more: [Element]) {
        // Nearly always they are what was just taken: nothing else has to move.
        guard more.count <= start else {
            elements.replaceSubrange(..<start, with: more)
            start = 0
            return
        }
        start -= more.count
        for (index, element) in more.enumerated() { elements[start + index] = element }
    }

    public mutating func takeFirst() -> Element? {
        guard start < elements.count else { return nil }
        let element = elements[start]
        start += 1
        if start == elements.count {
            elements.removeAll(keepingCapacity: start <= 64)
            start = 0
        } else if start > 1024, start > elements.count / 2 {
            elements.removeFirst(start)
            start = 0
        }
        return element
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
        case .change(let app, _, _): app
        case .webhooks(let request): request.app
        case .schedules(let request): request.app
        case .campaigns(let request): request.app
        case .continueFanOut, .continueDeletions, .coalesceReceipts, .administer, .start, .restore,
            .keepAlive, .rested, .enforceRetention, .claimPushes, .finishPush, .sweepWakes,
            .keepProviderToken, .keepTicketKeys, .beat, .order:
            nil
        }
    }
}
