public import Model

/// Whose turn it is at a local start. Devices are looked at by the offset that they told last, and
/// the clocks in the east come first.
///
/// Each offset has two turns: its own, and one an hour before, in which those are found whose zone
/// has set its clocks forward since.
public struct CampaignTurn: StoredAs, Equatable {
    /// As `DeviceRecord.utcOffset`; 0: those that have not said theirs, who come behind UTC.
    public let offset: UInt64
    /// An hour before the offset's own.
    public let isEarly: Bool

    public init(offset: UInt64, isEarly: Bool = false) {
        self.offset = offset
        self.isEarly = isEarly
    }

    /// What the clocks are ahead of UTC, as an offset, that show the start in this turn.
    public var clock: UInt64 {
        if offset == 0 { return CampaignPlan.offsetUTC }
        return isEarly ? offset + Self.ahead : offset
    }

    /// Minutes by which zones set their clocks forward, at most.
    private static let ahead: UInt64 = 60

    /// No clock is further ahead, nor is the turn of any.
    public static let clockMax = 2 * CampaignPlan.offsetUTC + ahead

    /// Whether a device of the offset whose clock is so far ahead is told in this turn.
    public func takes(clock: UInt64) -> Bool {
        if isEarly || offset == 0 { return clock >= self.clock }
        return offset <= clock && clock < offset + Self.ahead
    }

    /// Whose turn is after `turn`; `nil`: nobody's.
    ///
    /// - Parameter highest: the highest offset in use below a bound, 0 left out; `nil`: none.
    public static func next(
        after turn: CampaignTurn?, highest: (UInt64) throws(StoreError) -> UInt64?
    ) throws(StoreError) -> CampaignTurn? {
        // At one clock an offset's own turn comes before another's early one, and both before
        // those that have not said theirs.
        let clock = turn?.clock ?? .max
        let isUnsaid = turn?.offset == 0
        let own = try highest(clock).map { CampaignTurn(offset: $0) }
        let bound =
            switch turn {
            case nil: UInt64.max
            case let turn? where turn.isEarly: turn.offset
            default: clock - min(clock, ahead) + (isUnsaid ? 0 : 1)
            }
        let early = try highest(bound).map { CampaignTurn(offset: $0, isEarly: true) }
        let next: CampaignTurn? =
            if let own, let early {
                early.clock > own.clock ? early : own
            } else {
                own ?? early
            }
        let isBeforeUnsaid = !isUnsaid && clock >= CampaignPlan.offsetUTC
        if isBeforeUnsaid, next.map({ $0.clock < CampaignPlan.offsetUTC }) ?? true {
            return CampaignTurn(offset: 0)
        }
        return next
    }

    /// The form in a row: a number above all offsets is added to an early turn's.
    public var form: UInt64 { isEarly ? offset + Self.earlyMark : offset }

    public init?(form: UInt64) {
        isEarly = form >= Self.earlyMark
        offset = isEarly ? form - Self.earlyMark : form
    }

    public static var blank: CampaignTurn { CampaignTurn(offset: 0) }

    private static let earlyMark: UInt64 = 4_096
}
