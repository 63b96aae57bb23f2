// What is generic here is inlinable: every row of every table goes through it, and what is not
// specialised for its record costs a look at the runtime's tables of types for each column.

/// A typed row of a table.
public protocol Record: Sendable {
    static var table: Table { get }
    /// All columns in the table's order.
    var row: [ColumnValue] { get }
    init(row: [ColumnValue]) throws(StoreError)
}

/// Reads one row's columns from left to right; a column of another type is `StoreError.corrupt`.
public struct RowReader {
    @usableFromInline let row: [ColumnValue]
    @usableFromInline var position = 0

    public init(_ row: [ColumnValue], of table: Table) throws(StoreError) {
        guard row.count == table.columns.count else {
            throw .corrupt("\(table.name): \(row.count) columns, not \(table.columns.count)")
        }
        self.row = row
    }

    @inlinable
    mutating func next() -> ColumnValue {
        precondition(position < row.count, "a record reads more columns than its table has")
        defer { position += 1 }
        return row[position]
    }

    @inlinable
    public mutating func unsigned() throws(StoreError) -> UInt64 {
        guard case .integer(let value) = next(), value >= 0 else {
            throw .corrupt("column \(position - 1) is not an unsigned integer")
        }
        return UInt64(value)
    }

    public mutating func flag() throws(StoreError) -> Bool { try unsigned() != 0 }

    public mutating func timestamp() throws(StoreError) -> Timestamp {
        Timestamp(milliseconds: try unsigned())
    }

    public mutating func text() throws(StoreError) -> String {
        guard case .text(let value) = next() else {
            throw .corrupt("column \(position - 1) is not text")
        }
        return value
    }

    @inlinable
    public mutating func blob() throws(StoreError) -> [UInt8] {
        guard case .blob(let value) = next() else {
            throw .corrupt("column \(position - 1) is not a blob")
        }
        return value
    }

    @inlinable
    public mutating func identifier<Noun>() throws(StoreError) -> Identifier<Noun> {
        guard let value = Identifier<Noun>(try blob()) else {
            throw .corrupt("column \(position - 1) is not an identifier")
        }
        return value
    }

    /// A column whose numbers are the raw values of `type`.
    @inlinable
    public mutating func value<Value: RawRepresentable>(
        _ type: Value.Type
    ) throws(StoreError) -> Value where Value.RawValue == UInt64 {
        let raw = try unsigned()
        guard let value = Value(rawValue: raw) else {
            throw .corrupt("\(raw) is no \(type)")
        }
        return value
    }

    /// `nil` for null, else what `read` makes of the column.
    @inlinable
    public mutating func optional<Value>(
        _ read: (inout RowReader) throws(StoreError) -> Value
    ) throws(StoreError) -> Value? {
        precondition(position < row.count, "a record reads more columns than its table has")
        if row[position] == .null {
            position += 1
            return nil
        }
        return try read(&self)
    }
}

extension ColumnValue {
    /// Numbers above `Int64.max` do not occur in rows: counters and milliseconds never get there.
    public static func unsigned(_ value: UInt64) -> ColumnValue {
        .integer(Int64(clamping: value))
    }
    public static func flag(_ value: Bool) -> ColumnValue { .integer(value ? 1 : 0) }
    public static func timestamp(_ value: Timestamp) -> ColumnValue {
        .unsigned(value.milliseconds)
    }
    @inlinable
    public static func identifier<Noun>(_ value: Identifier<Noun>) -> ColumnValue {
        .blob(value.bytes)
    }
    public static func app(_ value: AppID) -> ColumnValue { .text(value.name) }
    public static func user(_ value: UserID) -> ColumnValue { .text(value.name) }
    /// `.null` for `nil`.
    @inlinable
    public static func optional<Value>(
        _ value: Value?, _ make: (Value) -> ColumnValue
    ) -> ColumnValue {
        value.map(make) ?? .null
    }
}

extension StoreSnapshot {
    /// The record with this key.
    @inlinable
    public func record<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none
    ) throws(StoreError) -> R? {
        guard let row = try row(R.table, key: key, lock: lock) else { return nil }
        return try R(row: row)
    }

    /// Records in the scan's order.
    @inlinable
    public func records<R: Record>(_ type: R.Type, _ scan: Scan) throws(StoreError) -> [R] {
        var records: [R] = []
        for row in try rows(R.table, scan) { records.append(try R(row: row)) }
        return records
    }
}

extension StoreTransaction {
    @inlinable
    public func put(_ record: some Record) throws(StoreError) {
        try put(type(of: record).table, record.row)
    }

    @inlinable
    public func delete<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(StoreError) {
        try delete(R.table, key: key)
    }
}
