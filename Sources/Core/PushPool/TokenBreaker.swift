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
    /// Refusals since the last that was none.
    private var run = 0

    private struct Answer: Equatable {
        let at: Instant
        let isRefusal: Bool
    }

    /// Answers remembered.
    private static let answersMax = 128
    /// From so many answers on a share says something. Before, as after a start, only refusals in
    /// a row do: devices of one user, or of one day, stand together in a campaign's queue.
    private static let answersMin = 64

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
        while let first = answers.first,
            answers.count >= Self.answersMax || now.since(first.at) > window
        {
            answers.removeFirst()
        }
        answers.append(Answer(at: now, isRefusal: isRefusal))
        run = isRefusal ? run + 1 : 0
        let refusals = answers.count(where: \.isRefusal)
        guard !isTripped, isRefusal, refusals >= count, refusals * share >= answers.count,
            run >= count || answers.count >= Self.answersMin
        else { return false }
        isTripped = true
        return true
    }

    /// APNs has accepted a push since.
    mutating func reset() {
        isTripped = false
        answers = []
        run = 0
    }
}
