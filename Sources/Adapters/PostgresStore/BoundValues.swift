import Model

/// The values of one statement's places as PostgreSQL takes them in binary, one behind the other.
struct BoundValues {
    /// The type numbers of `bigint` and `bytea` (pg_type.dat); text is bytes here.
    private static func type(_ type: ColumnType) -> UInt32 { type == .integer ? 20 : 17 }

    private(set) var storage: [UInt8] = []
    /// Where each value begins and its length; `nil`: null.
    private(set) var places: [(start: Int, length: Int)?] = []

    init() {}

    init(_ values: some Sequence<ColumnValue>) {
        for value in values { append(value) }
    }

    var count: Int { places.count }

    mutating func append(_ value: ColumnValue) {
        guard value != .null else { return places.append(nil) }
        let start = storage.count
        write(value)
        places.append((start, storage.count - start))
    }

    /// An array of one dimension: its head, then each element with its length.
    mutating func append(array values: [ColumnValue], of type: ColumnType) {
        let start = storage.count
        let hasNull = values.contains(.null)
        for word in [1, hasNull ? 1 : 0, Self.type(type), UInt32(values.count), 1] { write(word) }
        for value in values {
            guard value != .null else {
                write(UInt32.max)
                continue
            }
            let head = storage.count
            write(UInt32(0))
            write(value)
            let length = UInt32(storage.count - head - 4)
            for byte in 0..<4 {
                storage[head + byte] = UInt8(truncatingIfNeeded: length >> (24 - 8 * byte))
            }
        }
        places.append((start, storage.count - start))
    }

    private mutating func write(_ word: UInt32) {
        withUnsafeBytes(of: word.bigEndian) { storage.append(contentsOf: $0) }
    }

    private mutating func write(_ value: ColumnValue) {
        switch value {
        case .null: break
        case .integer(let number):
            withUnsafeBytes(of: number.bigEndian) { storage.append(contentsOf: $0) }
        case .text(let text): storage.append(contentsOf: text.utf8)
        case .blob(let blob): storage.append(contentsOf: blob)
        }
    }
}
