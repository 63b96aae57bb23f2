import Feed
import Model
import Wire

/// What an app or extension acknowledged and the store does not know yet. ACKs merge by maximum
/// and union while one is being written, so that a flood of them costs one write at a time.
struct PendingAck: Equatable, Sendable {
    /// An `applied` above the head this session knows: the store decides (SYN-15).
    var claim: UInt64?
    /// The ACK that a refusal answers (FRM-10): the claim's, else the newest one with ranges.
    var claimRequest: UInt16 = 0
    var ranges: [InclusiveRange] = []
    var reads: [ReadReceipt] = []
    var completesSync = false
    /// Written as soon as the store is free; else with the next write or after `lazyPersist`.
    var isUrgent = false

    /// Elements held, for the limit.
    var count: Int { ranges.count + reads.reduce(0) { $0 + 1 + $1.ranges.count } }

    /// A receipt that would become too large for one write stays beside the older one.
    mutating func merge(_ more: [ReadReceipt], rangesMax: Int) {
        for read in more {
            let index = reads.lastIndex {
                $0.conversation == read.conversation && $0.announcement == read.announcement
            }
            if let index, reads[index].ranges.count + read.ranges.count <= rangesMax {
                reads[index].merge(read)
            } else {
                reads.append(read)
            }
        }
    }

    /// What fits one write; the rest stays.
    mutating func takeBatch(_ countMax: Int, reads readsMax: Int) -> PendingAck {
        var batch = self
        batch.reads = Array(reads.prefix(readsMax))
        batch.ranges = Array(ranges.prefix(countMax))
        self = PendingAck(
            claimRequest: claimRequest, ranges: Array(ranges.dropFirst(countMax)),
            reads: Array(reads.dropFirst(readsMax)))
        isUrgent = count > 0
        return batch
    }

    /// Sorted and apart, so that many small ranges cost one write; of more than `rangesMax` the
    /// highest stay (SYN-28). One that is none stays as it is: the store refuses it.
    mutating func merge(_ more: [InclusiveRange], request: UInt16, rangesMax: Int) {
        guard !more.isEmpty else { return }
        let all = ranges + more
        let malformed = all.first { $0.first > $0.last }.map { [$0] } ?? []
        ranges = malformed + all.joined.suffix(rangesMax - malformed.count)
        if claim == nil { claimRequest = request }
    }

    /// Puts back what could not be written.
    mutating func restore(_ older: PendingAck, rangesMax: Int) {
        if let claim = older.claim, claim > self.claim ?? 0 {
            self.claim = claim
            claimRequest = older.claimRequest
        }
        merge(older.ranges, request: older.claimRequest, rangesMax: rangesMax)
        merge(older.reads, rangesMax: rangesMax)
        completesSync = completesSync || older.completesSync
        isUrgent = true
    }
}

/// An APP_STATE, or a change of whether the session counts, that the store does not know yet.
struct PendingAppState: Equatable, Sendable {
    var switches: AppState?

    /// The newer state; a switch it leaves unspecified stays as it was.
    mutating func merge(_ newer: AppState?) {
        guard var merged = newer else { return }
        if let older = switches {
            if merged.notifications == .unspecified { merged.notifications = older.notifications }
            if merged.backgroundRefresh == .unspecified {
                merged.backgroundRefresh = older.backgroundRefresh
            }
            if merged.lowPower == .unspecified { merged.lowPower = older.lowPower }
        }
        switches = merged
    }
}

/// A client request that waits for its turn at the store.
enum QueuedRequest: Equatable, Sendable {
    case sync(request: UInt16, SyncFrame)
    case mutation(request: UInt16, Mutation)

    var mutations: [Mutation] {
        switch self {
        case .sync(_, let sync): sync.mutations
        case .mutation(_, let mutation): [mutation]
        }
    }
}

/// The one write a session may have at the store.
struct WriteInFlight: Equatable, Sendable {
    /// Indirect: most of the time nothing is written, and the place for it is in every session.
    indirect enum Subject: Equatable, Sendable {
        /// What gives the session up again, should the store not be able to say whether it is.
        case open(AbandonSession)
        case sync(request: UInt16, SyncFrame, refused: [MutationResult], appliedBefore: UInt64)
        case mutation(request: UInt16, Mutation)
        case acknowledge(PendingAck, applied: UInt64)
        case appState(PendingAppState)
        case reauthenticate
        case end(EndSession)
        case abandon(AbandonSession)
    }

    var tag: RequestTag
    var subject: Subject
}

/// The page read a session may have under way.
struct PageInFlight: Equatable, Sendable {
    /// What the DELTA that answers a SYNC carries beside the page.
    struct Answer: Equatable, Sendable {
        var request: UInt16
        var results: [MutationResult]
        var floor: UInt64
        var reset: ResetReason?
        /// Before the first page.
        var resetAfter: Milliseconds = 0
        /// The store has counted it as sent (SYN-31).
        var isCounted = false
    }

    enum Purpose: Equatable, Sendable {
        indirect case answer(Answer)
        /// Newest first, for a SYNC whose cursor stays.
        case peek(request: UInt16)
        case push
        /// Only the head is of interest.
        case look
    }

    var tag: RequestTag
    var purpose: Purpose
    var after: UInt64
    var bytes: Int
    /// The session's head when it was asked for.
    var head: UInt64

    var isCounted: Bool {
        if case .answer(let answer) = purpose { answer.isCounted } else { false }
    }
}
