import Model

/// What stands under keys, in parts that grow one by one: a dictionary that grows moves all that it
/// holds at once, which for the rows that a busy server keeps took 20 milliseconds of one
/// transaction.
struct PartedMap<Value> {
    /// As one dictionary it holds so many; then it is divided, once.
    static var wholeCount: Int { 1_024 }
    private static var partBits: UInt64 { 6 }

    /// One, or 64 by the spread of their keys. Keys can be chosen so that one part gets them all:
    /// it then grows as one dictionary would.
    private var parts: [[SortKey: Value]] = [[:]]
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private func part(of key: SortKey) -> Int {
        parts.count == 1 ? 0 : Int(truncatingIfNeeded: key.spread >> (64 - Self.partBits))
    }

    subscript(key: SortKey) -> Value? { parts[part(of: key)][key] }

    /// - Returns: what stood there.
    @discardableResult
    mutating func set(_ value: Value, at key: SortKey) -> Value? {
        let before = parts[part(of: key)].updateValue(value, forKey: key)
        if before == nil {
            count += 1
            if parts.count == 1, count > Self.wholeCount { divide() }
        }
        return before
    }

    /// - Returns: what stood there.
    @discardableResult
    mutating func remove(_ key: SortKey) -> Value? {
        let before = parts[part(of: key)].removeValue(forKey: key)
        if before != nil { count -= 1 }
        return before
    }

    private mutating func divide() {
        let whole = parts[0]
        parts = Array(repeating: [:], count: 1 << Int(Self.partBits))
        for (key, value) in whole { parts[part(of: key)][key] = value }
    }
}
