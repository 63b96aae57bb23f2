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
        words = packer.finish(with: end == .low ? 0 : .max)
    }

    /// The values that these columns of a row have, in this order.
    public init(_ columns: ArraySlice<Int>, of row: [ColumnValue]) {
        var packer = WordPacker()
        for column in columns { packer.append(row[column]) }
        words = packer.finish(with: 0)
    }

    /// A hash: equal for equal keys, and spread evenly over all numbers. It is quicker than
    /// `hashValue`, for maps in which every request looks for dozens of keys, and not as strong:
    /// whoever knew the process's secret could choose keys that have the same.
    public var spread: Int { words.spread }

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

    /// Drawn by each process, as Swift draws it for all hashes: without it nobody can tell which
    /// keys have the same `spread`.
    private static let secret = UInt64(bitPattern: Int64(Hasher().finalize()))

    /// Both halves of a product, so that each bit of the word reaches the whole sum.
    @inline(__always)
    private static func fold(_ sum: UInt64, _ word: UInt64) -> UInt64 {
        let product = (sum ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }

    var spread: Int {
        var sum = Self.secret
        sum = Self.fold(sum, w0)
        sum = Self.fold(sum, w1)
        sum = Self.fold(sum, w2)
        sum = Self.fold(sum, w3)
        if count > 4 {
            sum = Self.fold(sum, w4)
            sum = Self.fold(sum, w5)
        }
        if count > 6 {
            sum = Self.fold(sum, w6)
            sum = Self.fold(sum, w7)
            for word in rest { sum = Self.fold(sum, word) }
        }
        // Once more, so that what the last word changes reaches all bits.
        sum = Self.fold(sum, Self.secret)
        return Int(bitPattern: UInt(sum))
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
            append(0x01, 1)
        case .integer(let number):
            append(0x02, 1)
            append(UInt64(bitPattern: number) ^ (1 << 63), 8)
        case .text(let text):
            append(0x03, 1)
            text.withBytes { append(escaped: $0) }
        case .blob(let blob):
            append(0x04, 1)
            blob.withBytes { append(escaped: $0) }
        }
    }

    /// Eight bytes at once, and those that are left at once, as long as none of them is zero.
    private mutating func append(escaped bytes: Span<UInt8>) {
        var position = 0
        while position + 8 <= bytes.count {
            let word = bytes.word(at: position)
            guard !Self.holdsZero(word) else { break }
            append(word, 8)
            position += 8
        }
        let left = bytes.count - position
        if left > 0, left < 8 {
            // Those before it fill the word where there are some: a load in place of a loop.
            var word: UInt64 = 0
            if bytes.count >= 8 {
                word = bytes.word(at: bytes.count - 8)
            } else {
                for offset in position..<bytes.count { word = word << 8 | UInt64(bytes[offset]) }
            }
            let others = UInt64.max << UInt64(8 * left)
            if !Self.holdsZero(word | others) {
                append(word & ~others, left)
                position = bytes.count
            }
        }
        while position < bytes.count {
            append(UInt64(bytes[position]), 1)
            if bytes[position] == 0 { append(0xff, 1) }
            position += 1
        }
        append(0, 2)
    }

    /// A byte of zero borrows from the one above it; without one nothing does.
    @inline(__always)
    private static func holdsZero(_ word: UInt64) -> Bool {
        let lowest: UInt64 = 0x0101_0101_0101_0101
        return (word &- lowest) & ~word & (lowest << 7) != 0
    }

    /// The lowest bytes of a word, the highest of them first: `count` of them, 1 to 8. The others
    /// are zero.
    @inline(__always)
    private mutating func append(_ bytes: UInt64, _ count: Int) {
        // Shifts by 64 are none at all to `&<<`: only a whole word on nothing would be one.
        if count == 8, pendingCount == 0 { return words.append(bytes) }
        let free = 8 &- pendingCount
        if count < free {
            pending = pending &<< (8 &* count) | bytes
            pendingCount &+= count
        } else {
            pendingCount = count &- free
            words.append(pending &<< (8 &* free) | bytes &>> (8 &* pendingCount))
            // What of it is in the word by now is shifted out of the next one.
            pending = bytes
        }
    }

    /// At least one filling byte follows, so that a high end is above what begins with the
    /// values even where these end with a word.
    ///
    /// - Parameter filling: eight times the byte.
    mutating func finish(with filling: UInt64) -> Words {
        let free = UInt64(8 * (8 - pendingCount))
        words.append(pending << free | filling >> (64 - free))
        return words
    }
}
