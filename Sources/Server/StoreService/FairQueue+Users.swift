import Feed
import Model

/// Items of apps, which take turns, and within an app of its users, which take turns too: neither
/// an app with many users nor a user who asks for much takes more than its share.
struct FairQueueOfUsers<Item> {
    private var apps: [AppID?: FairQueue<UserID?, Item>] = [:]
    /// Apps with items, in the order of their turns.
    private var turns = Line<AppID?>()
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ item: Item, of owner: QueryOwner) {
        if apps[owner.app] == nil { turns.append(owner.app) }
        apps[owner.app, default: FairQueue()].append(item, of: owner.user)
        count += 1
    }

    /// The next `limit` items.
    mutating func take(_ limit: Int) -> [Item] {
        var taken: [Item] = []
        while taken.count < limit, let app = turns.takeFirst() {
            guard var users = apps.removeValue(forKey: app) else { continue }
            taken += users.take(turns.isEmpty ? limit - taken.count : 1)
            guard !users.isEmpty else { continue }
            apps[app] = users
            turns.append(app)
        }
        count -= taken.count
        return taken
    }
}

/// Whose share of the reader a query takes; without an app: the server's own; without a user:
/// that of the app's backend.
struct QueryOwner: Hashable {
    var app: AppID?
    var user: UserID?
}

extension StoreQuery {
    var owner: QueryOwner {
        switch self {
        case .page(let page): QueryOwner(app: page.app, user: page.user)
        case .history(let query): query.owner
        case .audience(let app, let user, _): QueryOwner(app: app, user: user)
        case .heads(let app, _), .devices(let app, _), .device(let app, _),
            .conversation(let app, _), .wakes(let app, _, _), .backend(let app, _),
            .explain(let app, _), .campaigns(let app, _):
            QueryOwner(app: app)
        case .apps, .apiKey, .standings, .webhookBacklog, .operators: QueryOwner()
        }
    }
}

extension HistoryQuery {
    fileprivate var owner: QueryOwner {
        switch self {
        case .fetch(let app, let user, _, _), .snapshot(let app, let user, _, _),
            .digest(let app, let user, _, _):
            QueryOwner(app: app, user: user)
        }
    }
}
