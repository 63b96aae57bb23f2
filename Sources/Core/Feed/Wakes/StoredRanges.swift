import Model
import Wire

// What a device has stored of its feed above `applied` (SYN-28): told as ranges, kept as ranges in
// the device's own row, merged. So a report costs the writer the same however many entries it
// covers and however often it is repeated.
extension DeviceRecord {
    /// Further ones push the lowest out: what these held counts as missing again.
    private static let storedRangesMax = 256

    /// The entries the device has, `applied` included.
    func stored() throws(StoreError) -> PositionSet {
        guard let set = PositionSet(through: applied, rangeBytes: storedRanges) else {
            throw .corrupt("device: ranges are not pairs")
        }
        return set
    }

    /// Adds what the app says it stored, and forgets what `applied` says by now.
    mutating func store(_ ranges: [InclusiveRange]) throws(StoreError) {
        guard !ranges.isEmpty || !storedRanges.isEmpty else { return }
        var set = try stored()
        set.add(
            through: applied, ranges: ranges, limit: .halfMask, rangesMax: Self.storedRangesMax)
        storedRanges = set.rangeBytes
        // One that begins right above `applied` is no less a range: only the device raises that.
        if set.through > applied {
            let pair = Identifier<Never>(high: applied + 1, low: set.through)
            storedRanges = pair.bytes + storedRanges
        }
    }
}

extension [InclusiveRange] {
    /// The same numbers, ascending, each once.
    var merged: [InclusiveRange] {
        var set = PositionSet()
        set.add(through: 0, ranges: self, limit: .halfMask, rangesMax: count)
        return set.through > 0
            ? [InclusiveRange(first: 1, last: set.through)] + set.ranges : set.ranges
    }
}
