import Model
import Wake
import Wire
import WorkingSet

/// What requests will read, as far as it can be told before they run: an engine that is a round
/// trip away then answers it all at once.
///
/// It is only a hint. What is fetched in vain costs a read; what is forgotten costs the request a
/// second run.
struct ReadPlan: Sendable {
    /// Asked at most so often: of the request, of the participants found, of their devices. A turn
    /// in the background first looks for what is due, and what it finds leads further.
    let rounds: Int
    /// Asks for what is expected, as far as that follows from what is known.
    let hint: @Sendable (Expected, ReadHints) -> Void

    static let expected = ReadPlan(rounds: 6) { expected, hints in
        switch expected {
        case .request(let request): hints.expect(request)
        case .receipts(let app, let user): hints.receipts(of: app, user)
        case .recipients(let app, let id, let sender): hints.recipients(app, id, from: sender)
        case .feed(let member, let sender): hints.feed(of: member, from: sender)
        case .devices(let app, let user): hints.devices(app, user)
        case .delivered(let request): hints.delivered(request)
        }
    }
    /// Every request finds out for itself.
    static let none = ReadPlan(rounds: 0) { _, _ in }

    /// What is asked for, round after round as long as something that it depends on is not known.
    /// The parts of a request are asked for by themselves: most of it is known after one round.
    enum Expected {
        case request(StoreRequest)
        /// The part of the coalescer's turn that is this user's.
        case receipts(AppID, UserID)
        /// Those whom a message is told.
        case recipients(AppID, ConversationID, sender: String)
        /// The part of it that is this member's.
        case feed(ParticipantRecord, sender: String)
        case devices(AppID, UserID)
        /// What the entries that a device has applied lead to.
        case delivered(Acknowledge)
    }
}

/// Asks for rows in the way rules do; but what is not known yet is noted and passed over.
struct ReadHints {
    private let fetched: FetchedRows
    private let round = Round()
    let now: Timestamp
    let limits: RuleLimits

    /// What is asked for in one round.
    private final class Round {
        /// Apps whose rows are asked for, and how.
        var apps: [AppID: RowLock] = [:]
        /// The number of reads that lead further and were not answered.
        var unanswered = 0
        /// What to ask for in the next round.
        var waiting: [ReadPlan.Expected] = []
    }

    init(_ rows: FetchedRows, now: Timestamp, limits: RuleLimits) {
        fetched = rows
        self.now = now
        self.limits = limits
    }

    /// What was asked for is there now, and may lead further.
    ///
    /// - Returns: what waited for it.
    func beginRound() -> [ReadPlan.Expected] {
        defer { (round.apps, round.waiting) = ([:], []) }
        return round.waiting
    }

    /// Asks for this again in the next round if something that it depends on is not known.
    func following(_ expected: ReadPlan.Expected, _ body: () -> Void) {
        let before = round.unanswered
        body()
        guard round.unanswered != before else { return }
        round.unanswered = before
        round.waiting.append(expected)
    }

    /// Whether nobody has asked for the app's rows in this round: all requests of an app read them.
    func isFirst(_ app: AppID, lock: RowLock) -> Bool {
        if let known = round.apps[app], known == lock || lock == .none { return false }
        round.apps[app] = lock
        return true
    }

    func record<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none
    ) -> R? {
        answered { fetched.hint(R.table, key: key, lock: lock) }.flatMap { try? R(row: $0) }
    }

    /// Whether there is no such row, and that is known.
    func isAbsent<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none
    ) -> Bool {
        let before = fetched.misses
        return fetched.hint(R.table, key: key, lock: lock) == nil && fetched.misses == before
    }

    func records<R: Record>(_ type: R.Type, _ scan: Scan, isFresh: Bool = false) -> [R] {
        answered { fetched.hint(R.table, scan, isFresh: isFresh) }.compactMap { try? R(row: $0) }
    }

    /// Those that have something in this column; the others are not decoded.
    func records<R: Record>(_ type: R.Type, _ scan: Scan, having column: Int) -> [R] {
        answered { fetched.hint(R.table, scan) }.compactMap { row in
            row[column] == .null ? nil : try? R(row: row)
        }
    }

    private func answered<Answer>(_ read: () -> Answer) -> Answer {
        let before = fetched.misses
        defer { if fetched.misses != before { round.unanswered += 1 } }
        return read()
    }

    /// Of a row that only the rule looks at.
    func ask<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none, isFresh: Bool = false
    ) {
        _ = fetched.hint(R.table, key: key, lock: lock, isFresh: isFresh)
    }

    /// Of rows that only the rule looks at.
    func ask<R: Record>(_ type: R.Type, _ scan: Scan, isFresh: Bool = false) {
        ask(R.table, scan, isFresh: isFresh)
    }

    func ask(_ table: Table, _ scan: Scan, isFresh: Bool = false) {
        _ = fetched.hint(table, scan, isFresh: isFresh)
    }

    /// Requests of other kinds find out for themselves.
    fileprivate func expect(_ request: StoreRequest) {
        switch request {
        case .change(let app, let change, let idempotency):
            once(app, idempotency)
            expect(change, in: app)
        case .mutate(let request): mutation(request.mutation, request.session)
        case .openSession(let request): openSession(request)
        case .sync(let request):
            session(request.session)
            sync(request.sync, request.session)
        case .acknowledge(let request): acknowledge(request)
        case .endSession(let request): session(request.session)
        case .changeAppState(let request): session(request.session)
        case .continueFanOut: fanOutTurn()
        case .coalesceReceipts(let users): receiptTurn(users: users)
        case .abandonSession, .reauthenticate, .administer, .webhooks, .schedules, .campaigns,
            .continueDeletions, .enforceRetention, .start, .restore, .claimPushes, .finishPush,
            .keepProviderToken, .keepTicketKeys, .sweepWakes, .keepAlive, .rested, .beat, .order:
            break
        }
    }

    func expect(_ change: Change, in app: AppID) {
        switch change {
        case .publish(let publication):
            sending(app, publication)
        case .editMessage(let edit): messageChange(app, edit.message)
        case .deleteMessage(let id): messageChange(app, id)
        case .createConversation, .addParticipants, .removeParticipants, .deleteConversation,
            .changeMetadata, .announce, .takeBackAnnouncement, .deleteUser, .mute, .block:
            break
        }
    }
}
