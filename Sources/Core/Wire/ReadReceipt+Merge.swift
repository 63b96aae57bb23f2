extension ReadReceipt {
    /// Maximum and union (MSG-18).
    public mutating func merge(_ other: ReadReceipt) {
        through = max(through, other.through)
        for range in other.ranges where !ranges.contains(range) { ranges.append(range) }
        ranges.removeAll { $0.last <= through }
    }
}
