import Model

/// Column values as one number of many words whose order is the contract's (`Scan`): comparing
/// two keys is comparing words, whatever the columns are.
///
/// Each value is a tag and its bytes; texts and blobs escape a zero byte as 00 FF and end with
/// 00 00, so that no value is the beginning of another. Bytes fill words from the high end.
struct SortKey: Hashable, Comparable {
    private(set) var words: [UInt64]

    /// What follows the last value.
    enum End {
        /// Nothing: the key of a row, and at the same time the lowest of all keys that begin so.
        case low
        /// Above every key that begins with the values.
        case high
    }

    init(_ values: some Sequence<ColumnValue>, end: End = .low) {
        var packer = WordPacker()
        for value in values { packer.append(value) }
        words = packer.finish(with: end == .low ? 0x00 : 0xff)
    }

    static func < (left: SortKey, right: SortKey) -> Bool {
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

    mutating func append(_ value: ColumnValue) {
        switch value {
        case .null:
            append(byte: 0x01)
        case .integer(let number):
            append(byte: 0x02)
            let ordered = UInt64(bitPattern: number) ^ (1 << 63)
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                append(byte: UInt8(truncatingIfNeeded: ordered >> shift))
            }
        case .text(let text):
            append(byte: 0x03)
            append(bytes: text.utf8)
        case .blob(let blob):
            append(byte: 0x04)
            append(bytes: blob)
        }
    }

    private mutating func append(bytes: some Sequence<UInt8>) {
        for byte in bytes {
            append(byte: byte)
            if byte == 0 { append(byte: 0xff) }
        }
        append(byte: 0)
        append(byte: 0)
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
