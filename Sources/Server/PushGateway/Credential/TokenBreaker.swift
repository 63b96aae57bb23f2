import Model

/// Tells a wrong credential from wrong tokens: when tokens that APNs has accepted before are
/// suddenly refused together, an environment or topic was mixed up, and no token may be dropped
/// for it. Pure.
struct TokenBreaker: Equatable {
    let count: Int
    let share: Int
    let window: Milliseconds
    /// Until APNs accepts a push again.
    private(set) var isTripped = false
    private var answers: [Answer] = []

    private struct Answer: Equatable {
        let at: Instant
        let isRefusal: Bool
    }

    /// Answers remembered.
    private static let answersMax = 512

    init(count: Int, share: Int, window: Milliseconds) {
        self.count = count
        self.share = share
        self.window = window
    }

    /// APNs answered a push to a token that it has accepted before.
    ///
    /// - Parameter isRefusal: it calls the token wrong.
    /// - Returns: whether this one has tripped it.
    mutating func answered(isRefusal: Bool, now: Instant) -> Bool {
        answers.removeAll { now.since($0.at) > window }
        if answers.count >= Self.answersMax { answers.removeFirst() }
        answers.append(Answer(at: now, isRefusal: isRefusal))
        let refusals = answers.count(where: \.isRefusal)
        guard !isTripped, isRefusal, refusals >= count, refusals * share >= answers.count else {
            return false
        }
        isTripped = true
        return true
    }

    /// APNs has accepted a push since.
    mutating func reset() {
        isTripped = false
        answers = []
    }
}
