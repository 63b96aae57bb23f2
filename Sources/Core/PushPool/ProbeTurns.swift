import Model

/// Whose new tokens pushes went to last, so that those of other users go first: the tokens of one
/// user, however many and however bad, do not hold up everybody else's. Pure.
struct ProbeTurns: Equatable {
    /// The latest last.
    private(set) var users: [UserID] = []

    /// Users remembered; of more, the oldest have their turn again.
    private static let usersMax = 64

    mutating func sent(to user: UserID) {
        users.removeAll { $0 == user }
        users.append(user)
        if users.count > Self.usersMax { users.removeFirst() }
    }
}
