public import Model
public import Wire

/// What a device keeps of its user's feed, its outbox and its credential: the durable half of the
/// client. One object serves one `ClientSession`; calls are synchronous and come from one thread.
///
/// Every function is one transaction: it returns when everything is on disk, and an error means
/// that nothing of it was written (`.unavailable`: unknown; the caller opens the store anew).
///
/// Rows and what makes them the same object (SYN-3): a conversation by its id; a participant and
/// a receipt by conversation and user; a message by its id; a read mark by its conversation. A
/// tombstone is a version of what it names.
public protocol LocalStore: AnyObject {
    /// Everything a `ClientSession` needs to begin.
    func load() throws(LocalStoreError) -> LocalState

    /// Makes `change` and its cursor durable in one transaction, in this order:
    /// 1. `marksStale`: every row of the feed is marked stale; it stays readable. If `to` is of
    ///    another epoch than the cursor, or without one than the snapshot, that is stored, the
    ///    pending read receipts of conversations go (SYN-32).
    /// 2. Each entry, in order: inserted, or replacing the row of the same object if its version
    ///    is higher or that row is stale. A row that is met at all, also by an equal version, is
    ///    not stale any more. An entry with an unknown body changes nothing.
    ///    A conversation's tombstone that changed a row, or is met for the first time in this
    ///    round, removes the conversation's messages up to its position, and those that come later
    ///    in the round are left out (MSG-36); or everything of it but itself (MSG-37).
    /// 3. A read mark at or above a pending read receipt of its conversation removes that receipt
    ///    (both `through`, and every range lies at or below the mark or in the mark's ranges).
    /// 4. `sweeps`: rows still stale are deleted.
    /// 5. `historyThrough`, if it is there, is kept for `load`.
    /// 6. The cursor becomes `change.to`, and `isResetting` is `!sweeps` if `marksStale` was set
    ///    now or in an earlier change whose sweep has not come.
    ///
    /// Returns the entries that changed a row, in order: each is new to this device.
    func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry]

    /// Keeps the credential of a WELCOME. If `user` is not the one stored (and there is one),
    /// everything of the former user is deleted in the same transaction: rows, cursor, mutations,
    /// results, pending reads.
    func saveSession(token: [UInt8], user: String) throws(LocalStoreError)

    /// Deletes everything of the user, the credential too. Mutation numbers go on, for they are the
    /// device's.
    ///
    /// - Parameter keepsLogout: a logout that waits stays, with the credential that it is said with
    ///   and whose it is, and `load` says that the user is leaving.
    func erase(keepsLogout: Bool) throws(LocalStoreError)

    /// Drops the credential: the next connection logs in anew. All else stays.
    func forgetSession() throws(LocalStoreError)

    /// Keeps the push registration that the server has confirmed last; `nil`: it has none. It goes
    /// with the user.
    func savePush(_ push: PushRegistration?) throws(LocalStoreError)

    /// Puts an operation at the end of the outbox and gives it the next number: above every
    /// number given before, also to mutations that are gone. Returns the number.
    ///
    /// - Parameter leaves: it may leave at once, as after `markSent` with its number.
    func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp, leaves: Bool
    ) throws(LocalStoreError) -> UInt64

    /// Notes that mutations up to this number are about to be sent: none of them can be withdrawn
    /// from then on.
    func markSent(through number: UInt64) throws(LocalStoreError)

    /// Takes a message that waits in the outbox and has surely never left out of it, and with it
    /// the edits of it that wait: it was deleted before anybody had it. Its deletion gets a number
    /// and a result, and is not sent.
    ///
    /// Returns the results, stored as by `saveResults`, of the deletion (0) last; of the others
    /// 4005. `nil`: it does not wait, or may have left, and nothing was changed.
    func withdraw(_ message: MessageID) throws(LocalStoreError) -> [MutationResult]?

    /// The first `limit` mutations without a result whose number is above `number`, ascending.
    /// `delayMs` is filled in from the time of `enqueue` to `now`, 0 if the clock went back.
    func mutations(
        after number: UInt64, limit: Int, now: Timestamp
    ) throws(LocalStoreError) -> [Mutation]

    /// Notes that a logout is about to be sent: from then on, and until its result is stored,
    /// `load` says so. It stays with the mutation when that gets another number. A number that is
    /// not in the outbox changes nothing.
    func markLogoutSent(_ number: UInt64) throws(LocalStoreError)

    /// Stores final results: each removes its mutation from the outbox and is kept by number
    /// (at least the last 1,024). A result of a number that is not in the outbox changes nothing.
    func saveResults(_ results: [MutationResult]) throws(LocalStoreError)

    /// The stored result of a mutation; `nil`: none yet, or too old.
    func result(of number: UInt64) throws(LocalStoreError) -> MutationResult?

    /// From here on `enqueue` gives numbers above `floor`: the server has taken those below from
    /// an older life of this device.
    func raiseMutationNumbers(above floor: UInt64) throws(LocalStoreError)

    /// As `raiseMutationNumbers`, and the mutations in the outbox from number `first` on get new
    /// numbers above every other, in the order they have: another life of this device has taken
    /// numbers of theirs, and none may overtake one that stood before it.
    func renumberMutations(from first: UInt64, above floor: UInt64) throws(LocalStoreError)

    /// Keeps a read receipt until the own read mark comes back at least as far; merges with the
    /// conversation's pending one by maximum and union. One that says no more than the pending one,
    /// or than the read mark or the announcement that is here and not stale, changes nothing: no
    /// entry would come back for it.
    ///
    /// Returns whether there is something to say.
    @discardableResult
    func addRead(_ receipt: ReadReceipt) throws(LocalStoreError) -> Bool

    /// The server has answered a SYNC with these receipts: what it has not taken of them it never
    /// takes. Of those that are pending as they were sent, these are dropped: of announcements
    /// (MSG-52), which count as read here from now on, and of conversations of which nothing is
    /// here, that were deleted, or that the user is in no more, and those that the read mark says
    /// already (MSG-19). The others wait for their read mark.
    ///
    /// Returns those that were dropped.
    func endReads(_ answered: [ReadReceipt]) throws(LocalStoreError) -> [ReadReceipt]

    // Beside the feed: history, snapshots and digests (history.md).

    /// Stores each entry, as `apply` does in its second and third step; then stale
    /// messages within `complete` that the change does not hold are deleted. The cursor stays.
    ///
    /// Returns the entries that changed a row, in order.
    func applyHistory(_ change: HistoryChange) throws(LocalStoreError) -> [Entry]

    /// Makes a page of a snapshot durable in one transaction, in this order:
    /// 1. `isFirst`: every row of the feed is marked stale, the cursor is forgotten, and
    ///    `historyThrough` becomes that of `start`.
    /// 2. The page's entries are stored as in `applyHistory`.
    /// 3. `isFirst`: stale announcements go, all with `announcementsComplete` or if the page holds
    ///    none, else those whose ids are not below the lowest of the page (HIS-19).
    ///    Of each conversation of the page are deleted, if they are stale: its state, metadata,
    ///    settings and read mark; with `participantsComplete` participants and receipts; messages
    ///    from `completeFrom` on.
    /// 4. `isLast`: stale blocks are deleted, and each conversation whose state is stale, with
    ///    everything of it; the cursor becomes `start`. Else `start` and the continuation are
    ///    kept for `load`.
    ///
    /// With `resendSince`, what a restored server has lost of this user's since then is made again
    /// (HIS-21): put into the outbox, as `enqueue` does at `time`, before the mutations above
    /// `mutationFloor` that wait there: these get new numbers behind it, in order. That is:
    /// - blocks that the first page lacks;
    /// - conversations that this user made, where step 4 deletes them and holds everybody who took
    ///   part in them;
    /// - messages that this user sent, where step 3 or 4 deletes them, where they are stale below
    ///   `completeFrom`, or where they were accepted and the feed did not tell of them. Left out
    ///   are those of conversations that this user has left, and those at or below the user's
    ///   `joinedPosition`, the lower one of before the page and of after it.
    ///
    /// A message goes into the outbox only if everybody who takes part after the page saw it as of
    /// before it. Else, or where either is not known, it is kept as refused with
    /// `Refusal.audienceChanged`. Messages of a conversation that step 4 deletes, and that is not
    /// made again here, wait for `sendAwaited`. So do those in the outbox above `mutationFloor`
    /// that were never sent; of a conversation of which it is known that others take part in it now
    /// they are kept as refused, too.
    ///
    /// Returns the entries that changed a row, and the highest mutation number given.
    func applySnapshot(
        _ change: SnapshotChange, at time: Timestamp
    ) throws(LocalStoreError) -> (applied: [Entry], lastMutation: UInt64)

    /// Puts the messages into the outbox that waited for a conversation in which the user takes
    /// part again, as far as everybody who takes part saw them; the others are kept as refused, as
    /// are those that have waited for 7 days at `time`. It is asked for when this device has
    /// everything up to the head, so that everybody who takes part is here.
    ///
    /// Returns the highest mutation number given; `nil`: nothing has changed.
    func sendAwaited(at time: Timestamp) throws(LocalStoreError) -> UInt64?

    /// Conversations of which rows are here but not their state, at most `limit`.
    func orphans(limit: Int) throws(LocalStoreError) -> [ConversationID]

    /// Sums up what a digest does (HIS-30), over as many positions, at most 50, as every
    /// conversation is whole for.
    func digest() throws(LocalStoreError) -> LocalDigest
}

extension LocalStore {
    public func erase() throws(LocalStoreError) { try erase(keepsLogout: false) }

    /// Puts an operation at the end of the outbox; it leaves when it is sent.
    public func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp
    ) throws(LocalStoreError) -> UInt64 {
        try enqueue(operation, at: time, leaves: false)
    }
}

/// What went wrong with the local store.
public enum LocalStoreError: Error, Equatable, Sendable {
    /// No space: nothing was written; the same again may succeed later.
    case full(String)
    /// Locked, closed or another's; whether the transaction was committed is unknown.
    case unavailable(String)
    /// A row or the file does not have the form it should.
    case corrupt(String)
    /// A newer version of the app has used the file, and this one cannot read it. Only that
    /// version helps, or another file.
    case newer(String)
}

extension LocalStoreError {
    /// What an engine says, in the words of a device's store.
    ///
    /// - Parameters:
    ///   - isDamage: its file is damaged.
    ///   - isNewer: its file is of a newer schema.
    public init(_ error: StoreError, isDamage: Bool = false, isNewer: Bool = false) {
        self =
            switch error {
            case .full(let why): .full(why)
            case .corrupt(let why): .corrupt(why)
            case .conflict(let why), .unavailable(let why):
                if isDamage {
                    .corrupt(why)
                } else if isNewer {
                    .newer(why)
                } else {
                    .unavailable(why)
                }
            }
    }
}

extension LocalStoreError: CustomStringConvertible {
    /// For a log: with the words of the engine, which may be those of a server.
    public var description: String {
        let (what, why) =
            switch self {
            case .full(let why): ("the device's store cannot be written", why)
            case .unavailable(let why): ("the device's store cannot be used", why)
            case .corrupt(let why): ("the device's store holds what cannot be read", why)
            case .newer(let why): ("the device's store is of a newer version of the app", why)
            }
        return why.isEmpty ? what : "\(what): \(why)"
    }

    /// For the person who holds the phone, in English: what is the matter, and what helps.
    public var forPeople: String {
        switch self {
        case .full: "There is no room left on this device."
        case .unavailable: "What is kept on this device cannot be opened just now."
        case .corrupt: "What is kept on this device is damaged, and has to be loaded again."
        case .newer:
            "A newer version of this app has been used on this device. Install it again, or load "
                + "everything anew."
        }
    }
}

/// What a `ClientSession` starts from.
public struct LocalState: Equatable, Sendable {
    /// `nil`: this device has nothing yet.
    public var cursor: Cursor?
    /// Stale rows wait for their sweep.
    public var isResetting: Bool
    /// What the feed holds up to here came with a first sync or a reset (PSH-8).
    public var historyThrough: UInt64
    /// A snapshot was begun and is not whole yet; then there is no cursor.
    public var snapshot: LocalSnapshot?
    /// Empty: log in.
    public var sessionToken: [UInt8]
    /// The user the rows belong to; empty: nobody yet.
    public var user: String
    /// What the server has confirmed last.
    public var push: PushRegistration?
    /// The highest mutation number given; 0: none.
    public var lastMutation: UInt64
    /// The lowest number without a result; `nil`: none is left.
    public var firstUnanswered: UInt64?
    /// A logout without a result was, or may have been, sent.
    public var hasSentLogout: Bool
    /// The user has logged out, and nothing is here but what tells the server so.
    public var isLeaving = false
    /// Read receipts whose read mark has not come back.
    public var pendingReads: [ReadReceipt]

    public init(
        cursor: Cursor? = nil, isResetting: Bool = false, historyThrough: UInt64 = 0,
        snapshot: LocalSnapshot? = nil, sessionToken: [UInt8] = [],
        user: String = "", lastMutation: UInt64 = 0, firstUnanswered: UInt64? = nil,
        hasSentLogout: Bool = false, pendingReads: [ReadReceipt] = []
    ) {
        self.cursor = cursor
        self.isResetting = isResetting
        self.historyThrough = historyThrough
        self.snapshot = snapshot
        self.sessionToken = sessionToken
        self.user = user
        self.lastMutation = lastMutation
        self.firstUnanswered = firstUnanswered
        self.hasSentLogout = hasSentLogout
        self.pendingReads = pendingReads
    }
}

/// One DELTA on its way into the local store.
public struct LocalChange: Equatable, Sendable {
    public var entries: [Entry]
    /// Where the device stands after it.
    public var to: Cursor
    /// The feed starts anew with this page.
    public var marksStale: Bool
    /// The last page of a reset: what is stale now is gone on the server.
    public var sweeps: Bool
    /// With the first page of a feed from its start: where its head was then.
    public var historyThrough: UInt64?

    public init(
        entries: [Entry], to: Cursor, marksStale: Bool = false, sweeps: Bool = false,
        historyThrough: UInt64? = nil
    ) {
        self.entries = entries
        self.to = to
        self.marksStale = marksStale
        self.sweeps = sweeps
        self.historyThrough = historyThrough
    }
}

extension ReadReceipt {
    /// What it is about, a conversation or an announcement: there is one pending receipt of each.
    public var subject: [UInt8] {
        // A byte longer, so that no announcement is taken for a conversation.
        if let announcement { return [0] + announcement.bytes }
        return conversation?.bytes ?? []
    }

    /// Encoded size, a little overestimated: each position with ten bytes.
    var approximateBytes: Int { 48 + 26 * ranges.count }

    /// Whether the user's own read mark says at least as much (MSG-19), but for what the server did
    /// not keep: of many ranges the highest (MSG-17).
    public func isCovered(by mark: ReadMarkState) -> Bool {
        guard through <= mark.through else { return false }
        let isFull = mark.ranges.count >= Self.rangesMax
        let kept = isFull ? mark.ranges.map(\.first).min() ?? 0 : 0
        return ranges.allSatisfy { range in
            range.last <= mark.through || range.last < kept
                || mark.ranges.contains {
                    $0.first <= max(range.first, mark.through.addingClamped(1))
                        && $0.last >= range.last
                }
        }
    }
}

extension UInt64 {
    func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
