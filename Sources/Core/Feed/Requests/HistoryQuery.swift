public import Model
public import Wire

/// What a client asks of history, beside its feed: read from one snapshot, nothing is written.
public enum HistoryQuery: Equatable, Sendable {
    /// A window of a conversation, or an object. `bytes` bounds the entries of the page.
    case fetch(AppID, UserID, Fetch, bytes: Int)
    /// One page of the user's whole state.
    case snapshot(AppID, UserID, SnapshotFrame, bytes: Int)
    /// The same sums as the client's, over what the server holds.
    case digest(AppID, UserID, DigestFrame, from: DigestProgress = DigestProgress())
}

/// How far a digest is made that is read in parts. Its sums hold only while the head is the
/// client's cursor, which each part checks: what changed a conversation behind it has moved the
/// head, or is still on its way and in no feed.
public struct DigestProgress: Equatable, Sendable {
    /// Activity of the last conversation summed up.
    var after: UInt64 = 0
    var conversations = DigestSum()
    var readMarks = DigestSum()
    var messages = DigestSum()
    /// Messages looked at, also such as do not count.
    var examined = 0
    /// The place inside the next conversation, if its messages were begun: the position up to
    /// which they are still to be looked at, and the one above which they count, once a message
    /// that counts was found.
    var inside: (through: UInt64, lowest: UInt64?)? {
        get { through.map { ($0, lowest) } }
        set { (through, lowest) = (newValue?.through, newValue?.lowest) }
    }
    private var through: UInt64?
    private var lowest: UInt64?

    public init() {}
}

/// What one part of a query came to.
public enum PartialReading: Equatable, Sendable {
    case whole(StoreReading)
    /// There is more to read: this query goes on.
    case rest(StoreQuery)
}

/// What a `HistoryQuery` came to.
public enum HistoryReading: Equatable, Sendable {
    case page(PageFrame)
    case snapshotPage(SnapshotPage)
    case digest(DigestResult)
    /// The peer's fault; an object out of reach and one that does not exist look the same.
    case refused(Code, detail: String)
}

/// Where a snapshot goes on (HIS-18): the client's to keep, so that any server goes on with it.
/// It selects among the user's own conversations only, so it need not be secret or signed.
struct SnapshotToken: Equatable {
    enum Phase: UInt8 {
        /// Conversations with activity at or below the start, newest first.
        case older = 1
        /// Those that had activity since, oldest first: one that moves meanwhile moves ahead.
        case newer = 2
    }

    var epoch: Epoch
    /// The cursor from which deltas go on.
    var start: UInt64
    var phase: Phase
    /// Activity of the last conversation given; nothing yet: just outside of the phase.
    var bound: UInt64
    /// Full pages of the phase `newer`: a user for whom conversations move faster than they are
    /// read must come to an end.
    var newerPages: UInt8 = 0

    private static let version: UInt8 = 2
    private static let bytesCount = 35

    init(epoch: Epoch, start: UInt64) {
        self.epoch = epoch
        self.start = start
        phase = .older
        bound = start + 1
    }

    /// `nil`: not one of this server's.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.bytesCount, bytes[0] == Self.version,
            let epoch = Epoch(bytes[1..<17]), let phase = Phase(rawValue: bytes[25])
        else { return nil }
        self.epoch = epoch
        start = Self.number(bytes[17..<25])
        self.phase = phase
        bound = Self.number(bytes[26..<34])
        newerPages = bytes[34]
    }

    var bytes: [UInt8] {
        [Self.version] + epoch.bytes + Self.bytes(start) + [phase.rawValue] + Self.bytes(bound)
            + [newerPages]
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        stride(from: UInt64(56), through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: number >> $0)
        }
    }
}
