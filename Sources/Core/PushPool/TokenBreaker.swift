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

    /// Tokens that were refused when it tripped, or while it was tripped. That APNs accepts other
    /// tokens meanwhile speaks for the credential, and against these.
    private var suspects: [[UInt8]] = []
    /// Other pushes that were accepted since the first of them.
    private var takenSince = 0

    private struct Answer: Equatable {
        let at: Instant
        /// `nil`: it was no refusal.
        let refused: [UInt8]?
    }

    /// Suspects kept. A further token that is refused is none of them.
    private static let suspectsMax = 64

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
    mutating func answered(_ token: [UInt8], isRefusal: Bool, now: Instant) -> Bool {
        if isRefusal, isTripped { suspect(token) }
        if !isRefusal, !suspects.isEmpty {
            suspects.removeAll { $0 == token }
            takenSince = suspects.isEmpty ? 0 : takenSince + 1
        }
        while let first = answers.first,
            answers.count >= Self.answersMax || now.since(first.at) > window
        {
            answers.removeFirst()
        }
        answers.append(Answer(at: now, refused: isRefusal ? token : nil))
        run = isRefusal ? run + 1 : 0
        let refusals = answers.count { $0.refused != nil }
        guard !isTripped, isRefusal, refusals >= count, refusals * share >= answers.count,
            run >= count || answers.count >= Self.answersMin
        else { return false }
        isTripped = true
        for answer in answers { if let refused = answer.refused { suspect(refused) } }
        return true
    }

    private mutating func suspect(_ token: [UInt8]) {
        guard suspects.count < Self.suspectsMax, !suspects.contains(token) else { return }
        suspects.append(token)
    }

    /// What the refusal of a token says that was refused before together with others.
    enum Judgement: Equatable {
        /// The token is no suspect: its refusal counts.
        case none
        /// The token is a suspect: its refusal says nothing of the credential, and not yet enough
        /// of the token.
        case known
        /// As many pushes to other tokens as there are suspects were accepted meanwhile: the token
        /// is wrong.
        case guilty
    }

    mutating func judge(_ token: [UInt8]) -> Judgement {
        guard let place = suspects.firstIndex(of: token) else { return .none }
        guard takenSince >= suspects.count else { return .known }
        suspects.remove(at: place)
        if suspects.isEmpty { takenSince = 0 }
        return .guilty
    }

    /// APNs has accepted a push since. The suspects stay.
    mutating func reset() {
        isTripped = false
        answers = []
        run = 0
    }
}
