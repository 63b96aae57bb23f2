import Feed
import Model

/// The connections of one loop that are logged in, by their users. What concerns one user meets the
/// connections of that user only, however many the loop has.
struct LoopSessions {
    private var connections: [Hub.UserKey: Set<UInt64>] = [:]

    /// Users asked for in one query.
    static let usersPerQuery = 256

    mutating func enter(_ connection: UInt64, of user: Hub.UserKey) {
        connections[user, default: []].insert(connection)
    }

    mutating func leave(_ connection: UInt64, of user: Hub.UserKey) {
        connections[user]?.remove(connection)
        if connections[user]?.isEmpty == true { connections[user] = nil }
    }

    func connections(of user: Hub.UserKey) -> Set<UInt64> { connections[user] ?? [] }

    /// What a turn over the heads asks the store: for the head of each user, and for the row of
    /// each session. Each connection is looked up once: a loop has tens of thousands.
    func queries(_ session: (UInt64) -> SessionKey?) -> [StoreQuery] {
        var users: [AppID: [UserID]] = [:]
        for key in connections.keys { users[key.app, default: []].append(key.user) }
        var queries: [StoreQuery] = []
        for (app, members) in users {
            let sorted = members.sorted()
            for start in stride(from: 0, to: sorted.count, by: Self.usersPerQuery) {
                let chunk = Array(sorted[start..<min(start + Self.usersPerQuery, sorted.count)])
                let sessions = chunk.flatMap { user in
                    connections(of: Hub.UserKey(app: app, user: user)).compactMap(session)
                }
                queries += [.heads(app, chunk), .standings(sessions)]
            }
        }
        return queries
    }
}
