/// A time zone as its file tells it (RFC 8536): the moments at which its clocks were or will be
/// changed, and the rule that holds after the last of them.
public struct ZoneFile: Equatable, Sendable {
    /// The longest file read, in bytes; those of 2026 are below 4 KiB.
    public static let bytesMax = 65_536

    private let changes: [Int64]
    /// Seconds east of UTC from each change on.
    private let offsets: [Int32]
    private let first: Int32
    private let rule: ZoneRule?

    /// - Parameter bytes: of a file of version 2 or later. `nil`: they are none, or one that
    ///   counts leap seconds, which no clock of this world does.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax else { return nil }
        var reader = Reader(bytes)
        guard let old = Header(&reader), old.version >= UInt8(ascii: "2"),
            reader.skip(old.length(ofTime: 4)), let header = Header(&reader), header.leaps == 0,
            header.types > 0
        else { return nil }
        var changes: [Int64] = []
        for _ in 0..<header.times {
            guard let change = reader.number(8), changes.last.map({ $0 < change }) ?? true
            else { return nil }
            changes.append(change)
        }
        guard let indices = reader.take(header.times) else { return nil }
        var types: [Int32] = []
        for _ in 0..<header.types {
            guard let offset = reader.number(4), reader.skip(2) else { return nil }
            types.append(Int32(truncatingIfNeeded: offset))
        }
        guard indices.allSatisfy({ Int($0) < types.count }),
            reader.skip(header.characters + header.standards + header.universals),
            reader.take(1) == [UInt8(ascii: "\n")]
        else { return nil }
        let footer = reader.rest.prefix { $0 != UInt8(ascii: "\n") }
        rule = ZoneRule(Array(footer))
        guard footer.isEmpty || rule != nil else { return nil }
        self.changes = changes
        offsets = indices.map { types[Int($0)] }
        first = types[0]
    }

    /// Seconds east of UTC at a moment.
    public func offset(at seconds: Int64) -> Int64 {
        guard let last = changes.last else { return rule?.offset(at: seconds) ?? Int64(first) }
        if seconds >= last, let rule { return rule.offset(at: seconds) }
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle] <= seconds { low = middle + 1 } else { high = middle }
        }
        return Int64(low == 0 ? first : offsets[low - 1])
    }

    /// Section 3.1.
    private struct Header {
        let version: UInt8
        let universals, standards, leaps, times, types, characters: Int

        init?(_ reader: inout Reader) {
            guard reader.take(4) == Array("TZif".utf8), let version = reader.take(1)?.first,
                reader.skip(15)
            else { return nil }
            var counts: [Int] = []
            for _ in 0..<6 {
                guard let count = reader.number(4), (0...Int64(ZoneFile.bytesMax)).contains(count)
                else { return nil }
                counts.append(Int(count))
            }
            self.version = version
            (universals, standards, leaps) = (counts[0], counts[1], counts[2])
            (times, types, characters) = (counts[3], counts[4], counts[5])
        }

        func length(ofTime time: Int) -> Int {
            times * (time + 1) + types * 6 + characters + leaps * (time + 4) + standards
                + universals
        }
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        init(_ bytes: [UInt8]) { rest = bytes[...] }

        mutating func take(_ count: Int) -> [UInt8]? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }

        mutating func skip(_ count: Int) -> Bool { take(count) != nil }

        /// Two's complement, the high byte first.
        mutating func number(_ width: Int) -> Int64? {
            guard let bytes = take(width) else { return nil }
            let value = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return width == 4
                ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
        }
    }
}
