/// What a user has read of a conversation.
struct ReadMarks: Equatable, Sendable {
    private var through: UInt64 = 0
    private var ones: Set<UInt64> = []

    mutating func read(through position: UInt64) {
        through = max(through, position)
        ones = ones.filter { $0 > through }
    }

    mutating func read(only position: UInt64) {
        if position > through { ones.insert(position) }
    }

    func contains(_ position: UInt64) -> Bool { position <= through || ones.contains(position) }
}
