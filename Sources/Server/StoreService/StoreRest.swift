import Model

/// Whether the writer's duties have anything to do.
///
/// What they do follows from what is written and from times that come. So once each of them has
/// found nothing since the last change, none finds anything before the next due time: the writer
/// rests until then, or until it is asked something. Of a store that has one writer; what others
/// write rings nobody for certain.
struct StoreRest {
    /// How often it looks whether somebody has set the clock, or the machine slept: milliseconds.
    static let look: UInt64 = 5_000
    /// Duties with turns further apart than this are not waited for: retention, whose rows may lie
    /// a while longer.
    static let turnsMax: UInt64 = 2_000
    /// After so long every duty has a turn, in milliseconds.
    static let longest: UInt64 = 600_000

    /// Duties that found nothing since the last change.
    private var quiet: Set<Int> = []
    /// How often something was written.
    private(set) var changes: UInt64 = 0
    /// The end of the rest, on the loop's clock; `nil`: the writer is awake.
    private(set) var until: UInt64?
    /// When the rest began.
    private var began: (now: UInt64, wall: Timestamp) = (0, Timestamp(milliseconds: 0))
    /// When `alive_at` was last written, on a clock that nobody sets.
    var aliveAt: UInt64
    /// When the writer was last asked something, on the loop's clock.
    var askedAt: UInt64 = 0
    /// Who has just asked may ask again: a rest that is over at once costs a transaction more.
    static let patience: UInt64 = 2_000

    init(aliveAt: UInt64) { self.aliveAt = aliveAt }

    mutating func changed() {
        changes += 1
        quiet = []
    }

    mutating func foundNothing(_ duty: Int) { quiet.insert(duty) }

    func areQuiet(_ duties: [StoreDuty]) -> Bool {
        duties.indices.allSatisfy { duties[$0].interval > Self.turnsMax || quiet.contains($0) }
    }

    /// - Parameters:
    ///   - now: By the loop's clock, which nobody sets.
    ///   - wall: By the clock of due times.
    mutating func begin(at now: UInt64, wall: Timestamp, until end: UInt64) {
        until = end
        began = (now, wall)
    }

    /// Whether the clock of due times has not gone on as the loop's since the rest began.
    func hasClockMoved(_ now: UInt64, wall: Timestamp) -> Bool {
        let expected = began.wall + (now - began.now)
        return max(expected, wall).since(min(expected, wall)) > Self.look
    }

    mutating func end() {
        until = nil
        quiet = []
    }
}
