import Feed

/// An operation that was carried out on an object, and the next one on it.
struct OperationPair: Hashable, CustomStringConvertible {
    enum Relation {
        case sameUser, otherUser
        /// One of the two operations is not asked for by a user.
        case none
    }

    var kind: ObjectKind
    var first: Operation
    var second: Operation
    var relation: Relation

    var description: String { "\(kind): \(first), \(second) (\(relation))" }

    /// Every pair there is by the roles of operations.
    static let all: [OperationPair] = ObjectKind.allCases.flatMap { kind in
        let operations = Operation.allCases.filter { $0.roles[kind] != nil }
        return operations.flatMap { first in
            operations.flatMap { second in
                relations(first.roles[kind] ?? .nobody, second.roles[kind] ?? .nobody).map {
                    OperationPair(kind: kind, first: first, second: second, relation: $0)
                }
            }
        }
    }

    private static func relations(_ first: Party, _ second: Party) -> [Relation] {
        switch (first, second) {
        case (.nobody, _), (_, .nobody): [.none]
        case (.own, .own): [.sameUser]
        case (.own, .other), (.other, .own): [.otherUser]
        default: [.sameUser, .otherUser]
        }
    }
}

/// Which pairs were carried out, of all objects.
struct PairCount {
    private(set) var done: Set<OperationPair> = []
    /// The second was asked for, and refused.
    private(set) var refused: Set<OperationPair> = []
    /// Operations after which the server's own turns came, and which.
    private(set) var turns: Set<OperationTurn> = []

    /// Bits of the kinds of entries that came into feeds.
    private(set) var entries: UInt32 = 0
    /// The kinds of fan-out that were on their way into the feeds.
    private(set) var moving: Set<FanOutKind> = []

    mutating func note(_ pair: OperationPair, isDone: Bool) {
        if isDone { done.insert(pair) } else { refused.insert(pair) }
    }

    mutating func note(_ turn: OperationTurn) { turns.insert(turn) }

    mutating func note(_ changes: [FeedChange], moving kinds: Set<FanOutKind>) {
        for change in changes { entries |= change.kinds }
        moving.formUnion(kinds)
    }

    mutating func add(_ other: PairCount) {
        entries |= other.entries
        moving.formUnion(other.moving)
        done.formUnion(other.done)
        refused.formUnion(other.refused)
        turns.formUnion(other.turns)
    }
}

/// A turn of the server's own that follows an operation on some object.
struct OperationTurn: Hashable, CustomStringConvertible {
    var first: Operation
    var turn: Operation

    var description: String { "\(first), \(turn)" }

    static let all: [OperationTurn] = Operation.allCases.flatMap { first in
        Operation.turns.compactMap { turn in
            first.roles[.store] == nil ? OperationTurn(first: first, turn: turn) : nil
        }
    }
}
