import Model

/// Objects under their places, in parts that grow one by one: a dictionary that grows moves all
/// that it holds at once, which for the rows that a busy server keeps took 20 milliseconds of one
/// transaction.
///
/// They stand under numbers that spread their places (`SortKey.spread`), here called hashes. The
/// places themselves, each as large as ten words, are kept in the objects alone.
///
/// An object, so that those who hold it need not be guarded against changing it while they look.
final class PartedMap<Value: Placed> {
    /// As one dictionary it holds so many; then it is divided, once.
    static var wholeCount: Int { 1_024 }
    private static var partBits: Int { 6 }

    /// One, or 64 by the high bits of the hashes.
    private var parts: [[Spread: Value]] = [[:]]
    /// Those whose hash another one has already: found by Swift's own hash, so that even places
    /// with equal numbers, however many, are found as quickly.
    private var others: [SortKey: Value] = [:]
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private func part(of hash: Spread) -> Int {
        parts.count == 1
            ? 0 : Int(UInt(bitPattern: hash.number) >> UInt(Int.bitWidth - Self.partBits))
    }

    subscript(place: SortKey) -> Value? {
        let hash = Spread(number: Value.spread(of: place))
        if let found = parts[part(of: hash)][hash], found.place == place { return found }
        return others.isEmpty ? nil : others[place]
    }

    /// - Returns: what stood there.
    @discardableResult
    func set(_ value: Value) -> Value? {
        let place = value.place
        let hash = Spread(number: Value.spread(of: place))
        let part = part(of: hash)
        let before: Value?
        if let found = parts[part][hash], found.place != place {
            before = others.updateValue(value, forKey: place)
        } else {
            // One of the same place may be with the others, whose hash was another one's then.
            let other = others.isEmpty ? nil : others.removeValue(forKey: place)
            before = parts[part].updateValue(value, forKey: hash) ?? other
        }
        if before == nil {
            count += 1
            if parts.count == 1, count > Self.wholeCount { divide() }
        }
        return before
    }

    /// - Returns: what stood there.
    @discardableResult
    func remove(_ place: SortKey) -> Value? {
        let hash = Spread(number: Value.spread(of: place))
        let part = part(of: hash)
        let before: Value?
        if let found = parts[part][hash], found.place == place {
            before = parts[part].removeValue(forKey: hash)
        } else {
            before = others.isEmpty ? nil : others.removeValue(forKey: place)
        }
        if before != nil { count -= 1 }
        return before
    }

    private func divide() {
        let whole = parts[0]
        parts = Array(repeating: [:], count: 1 << Self.partBits)
        for (hash, value) in whole { parts[part(of: hash)][hash] = value }
    }
}

/// A number that is spread evenly already: a dictionary need not spread it once more.
private struct Spread: Hashable {
    let number: Int

    // A dictionary asks for this one; Swift makes it of `hash(into:)` where a type has none.
    func _rawHashValue(seed: Int) -> Int { number ^ seed }
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// What stands at a place that it never leaves.
protocol Placed: AnyObject {
    var place: SortKey { get }
    /// Evenly spread; places that differ may have the same.
    static func spread(of place: SortKey) -> Int
}

extension Placed {
    static func spread(of place: SortKey) -> Int { place.spread }
}
