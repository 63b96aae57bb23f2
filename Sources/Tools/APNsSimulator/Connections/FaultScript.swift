/// What goes wrong on purpose, in the order in which it was asked for. A plain value.
public struct FaultScript: Equatable, Sendable {
    /// What happens to one push instead of, or beside, the usual.
    public enum Fault: Equatable, Sendable {
        /// This answer; the push is not looked at.
        case answer(status: Int, reason: String)
        /// No answer ever; the stream stays open. `delivers`: APNs took the push all the same.
        case silence(delivers: Bool)
        /// RST_STREAM with this code of HTTP/2; the push is not looked at.
        case reset(code: UInt32)
    }

    private struct Entry: Equatable, Sendable {
        var fault: Fault
        var count: Int
        /// Only pushes to this device token; `nil`: any.
        var token: String?
    }

    static let entriesMax = 1_000
    static let delayMax: UInt64 = 600_000

    private var entries: [Entry] = []
    /// Milliseconds between a push and its answer.
    public private(set) var delayMilliseconds: UInt64 = 0
    /// New connections are closed as soon as they are accepted.
    public var refusesConnections = false

    public init() {}

    /// The next `count` pushes suffer `fault`, after what was asked for before. False: too many
    /// are waiting, or the count is not positive.
    public mutating func add(_ fault: Fault, count: Int, token: String? = nil) -> Bool {
        guard count > 0, entries.count < Self.entriesMax else { return false }
        entries.append(Entry(fault: fault, count: count, token: token?.lowercased()))
        return true
    }

    /// Delays every answer from now on; 0 ends it.
    public mutating func delay(milliseconds: UInt64) {
        delayMilliseconds = min(milliseconds, Self.delayMax)
    }

    /// Takes the fault for one push.
    public mutating func next(path: String) -> Fault? {
        let token = path.split(separator: "/").last.map { $0.lowercased() }
        guard let index = entries.firstIndex(where: { $0.token == nil || $0.token == token })
        else { return nil }
        let fault = entries[index].fault
        entries[index].count -= 1
        if entries[index].count == 0 { entries.remove(at: index) }
        return fault
    }

    /// All is well again.
    public mutating func clear() { self = FaultScript() }
}
