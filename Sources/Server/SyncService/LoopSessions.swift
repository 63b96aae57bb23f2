import Feed
import Model
import StoreService

/// The connections of one loop that are logged in, by their users. What concerns one user meets the
/// connections of that user only, however many the loop has.
///
/// Each user is looked at once in a round of many turns, so that a turn over connections that do
/// nothing costs what is due in it and no more.
struct LoopSessions {
    private struct Member {
        var connections: Set<UInt64>
        /// Which of the user's places in `order` counts: one who came back has older ones.
        let place: UInt64
    }

    private var members: [Hub.UserKey: Member] = [:]
    /// Users in the order in which their turns come; also some who are gone.
    private var order = Line<(user: Hub.UserKey, place: UInt64)>()
    private var lastPlace: UInt64 = 0
    /// Turns of one round.
    private let turns: Int
    /// Looks that are due, in parts of a round: what is left of one is taken to the next turn.
    private var due = 0

    /// Users asked for in one query.
    static let usersPerQuery = 256

    init(turns: Int) {
        precondition(turns > 0)
        self.turns = turns
    }

    mutating func enter(_ connection: UInt64, of user: Hub.UserKey) {
        if members[user]?.connections.insert(connection) != nil { return }
        lastPlace += 1
        members[user] = Member(connections: [connection], place: lastPlace)
        order.append((user, lastPlace))
        if order.count > 2 * members.count + 64 { forgetThoseGone() }
    }

    mutating func leave(_ connection: UInt64, of user: Hub.UserKey) {
        members[user]?.connections.remove(connection)
        if members[user]?.connections.isEmpty == true { members[user] = nil }
    }

    /// Places in `order`. For tests.
    var waiting: Int { order.count }

    func connections(of user: Hub.UserKey) -> Set<UInt64> { members[user]?.connections ?? [] }

    /// Everybody is due in the next turn: something was not told.
    mutating func allAreDue() { due = members.count * turns }

    /// What one turn asks the store: for the head of each user who is due, and for the row of each
    /// of their sessions.
    mutating func nextTurn(_ session: (UInt64) -> SessionKey?) -> [StoreQuery] {
        due = min(due + members.count, members.count * turns)
        var users: [AppID: [UserID]] = [:]
        while due >= turns, let next = order.takeFirst() {
            guard members[next.user]?.place == next.place else { continue }
            due -= turns
            order.append(next)
            users[next.user.app, default: []].append(next.user.user)
        }
        var queries: [StoreQuery] = []
        for (app, members) in users {
            // Neighbours lie on the same pages of the store.
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

    private mutating func forgetThoseGone() {
        for _ in 0..<order.count {
            guard let next = order.takeFirst() else { return }
            if members[next.user]?.place == next.place { order.append(next) }
        }
    }
}
