/// Column values as one number of many words whose order is the contract's (`Scan`): comparing
/// two keys is comparing words, whatever the columns are.
///
/// Each value is a tag and its bytes; texts and blobs escape a zero byte as 00 FF and end with
/// 00 00, so that no value is the beginning of another. Bytes fill words from the high end.
public struct SortKey: Hashable, Comparable, Sendable {
    private(set) var words: [UInt64]

    /// What follows the last value.
    public enum End: Sendable {
        /// Nothing: the key of a row, and at the same time the lowest of all keys that begin so.
        case low
        /// Above every key that begins with the values.
        case high
    }

    /// - Parameter values: The values in the order in which they are compared.
    public init(_ values: [ColumnValue], end: End = .low) { self.init(values[...], end: end) }

    /// - Parameter values: The values in the order in which they are compared.
    public init(_ values: ArraySlice<ColumnValue>, end: End = .low) {
        var packer = WordPacker()
        packer.reserve()
        for value in values { packer.append(value) }
        words = packer.finish(with: end == .low ? 0x00 : 0xff)
    }

    /// The values that these columns of a row have, in this order.
    public init(_ columns: ArraySlice<Int>, of row: [ColumnValue]) {
        var packer = WordPacker()
        packer.reserve()
        for column in columns { packer.append(row[column]) }
        words = packer.finish(with: 0x00)
    }

    public static func < (left: SortKey, right: SortKey) -> Bool {
        let count = min(left.words.count, right.words.count)
        var position = 0
        while position < count {
            let (a, b) = (left.words[position], right.words[position])
            if a != b { return a < b }
            position += 1
        }
        return left.words.count < right.words.count
    }
}

private struct WordPacker {
    private var words: [UInt64] = []
    private var pending: UInt64 = 0
    private var pendingCount = 0

    /// Room for most keys.
    mutating func reserve() { words.reserveCapacity(8) }

    mutating func append(_ value: ColumnValue) {
        switch value {
        case .null:
            append(byte: 0x01)
        case .integer(let number):
            append(byte: 0x02)
            append(word: UInt64(bitPattern: number) ^ (1 << 63))
        case .text(let text):
            append(byte: 0x03)
            append(escaped: text.utf8.span)
        case .blob(let blob):
            append(byte: 0x04)
            append(escaped: blob.span)
        }
    }

    /// Eight bytes at once as long as none of them is zero.
    private mutating func append(escaped bytes: Span<UInt8>) {
        var position = 0
        while position + 8 <= bytes.count {
            var word: UInt64 = 0
            for offset in position..<(position + 8) { word = word << 8 | UInt64(bytes[offset]) }
            // A byte of zero borrows from the one above it.
            let lowest: UInt64 = 0x0101_0101_0101_0101
            guard (word &- lowest) & ~word & (lowest << 7) == 0 else { break }
            append(word: word)
            position += 8
        }
        while position < bytes.count {
            append(byte: bytes[position])
            if bytes[position] == 0 { append(byte: 0xff) }
            position += 1
        }
        append(byte: 0)
        append(byte: 0)
    }

    /// Eight bytes, the highest first.
    private mutating func append(word: UInt64) {
        let free = 64 - 8 * UInt64(pendingCount)
        words.append(pending << free | word >> (64 - free))
        pending = word
    }

    private mutating func append(byte: UInt8) {
        pending = pending << 8 | UInt64(byte)
        pendingCount += 1
        if pendingCount == 8 {
            words.append(pending)
            pending = 0
            pendingCount = 0
        }
    }

    /// At least one filling byte follows, so that a high end is above what begins with the
    /// values even where these end with a word.
    mutating func finish(with filling: UInt8) -> [UInt64] {
        repeat { append(byte: filling) } while pendingCount != 0
        return words
    }
}
