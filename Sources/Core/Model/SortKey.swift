/// Column values as one number of many words whose order is the contract's (`Scan`): comparing
/// two keys is comparing words, whatever the columns are.
///
/// Each value is a tag and its bytes; texts and blobs escape a zero byte as 00 FF and end with
/// 00 00, so that no value is the beginning of another. Bytes fill words from the high end.
public struct SortKey: Hashable, Comparable, Sendable {
    private let words: Words

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
        for value in values { packer.append(value) }
        words = packer.finish(with: end == .low ? 0x00 : 0xff)
    }

    /// The values that these columns of a row have, in this order.
    public init(_ columns: ArraySlice<Int>, of row: [ColumnValue]) {
        var packer = WordPacker()
        for column in columns { packer.append(row[column]) }
        words = packer.finish(with: 0x00)
    }

    public static func < (left: SortKey, right: SortKey) -> Bool { left.words < right.words }
}

/// A sequence of words. The first eight stand in the value itself: most keys have no more, and take
/// no memory on the heap.
private struct Words: Hashable, Comparable {
    private static let inlineCount = 8
    // Those behind the last word are 0, which compares as if they were not there.
    private var w0: UInt64 = 0
    private var w1: UInt64 = 0
    private var w2: UInt64 = 0
    private var w3: UInt64 = 0
    private var w4: UInt64 = 0
    private var w5: UInt64 = 0
    private var w6: UInt64 = 0
    private var w7: UInt64 = 0
    private var count = 0
    /// The words from the ninth on.
    private var rest: [UInt64] = []

    mutating func append(_ word: UInt64) {
        switch count {
        case 0: w0 = word
        case 1: w1 = word
        case 2: w2 = word
        case 3: w3 = word
        case 4: w4 = word
        case 5: w5 = word
        case 6: w6 = word
        case 7: w7 = word
        default: rest.append(word)
        }
        count += 1
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(w0)
        hasher.combine(w1)
        hasher.combine(w2)
        hasher.combine(w3)
        guard count > 4 else { return }
        hasher.combine(w4)
        hasher.combine(w5)
        guard count > 6 else { return }
        hasher.combine(w6)
        hasher.combine(w7)
        for word in rest { hasher.combine(word) }
    }

    static func == (left: Words, right: Words) -> Bool {
        left.w0 == right.w0 && left.w1 == right.w1 && left.w2 == right.w2 && left.w3 == right.w3
            && left.w4 == right.w4 && left.w5 == right.w5 && left.w6 == right.w6
            && left.w7 == right.w7 && left.count == right.count
            && (left.count <= inlineCount || left.rest == right.rest)
    }

    static func < (left: Words, right: Words) -> Bool {
        if left.w0 != right.w0 { return left.w0 < right.w0 }
        if left.w1 != right.w1 { return left.w1 < right.w1 }
        if left.w2 != right.w2 { return left.w2 < right.w2 }
        if left.w3 != right.w3 { return left.w3 < right.w3 }
        if left.w4 != right.w4 { return left.w4 < right.w4 }
        if left.w5 != right.w5 { return left.w5 < right.w5 }
        if left.w6 != right.w6 { return left.w6 < right.w6 }
        if left.w7 != right.w7 { return left.w7 < right.w7 }
        for (one, other) in zip(left.rest, right.rest) where one != other { return one < other }
        return left.count < right.count
    }
}

private struct WordPacker {
    private var words = Words()
    private var pending: UInt64 = 0
    private var pendingCount = 0

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
    mutating func finish(with filling: UInt8) -> Words {
        repeat { append(byte: filling) } while pendingCount != 0
        return words
    }
}
