/// A typed row of a table.
///
/// Its columns are declared in one place, an initialiser that makes it from them:
///
///     public init(columns c: inout some ColumnVisitor, of row: Self?) {
///         app = c.key("app", row?.app)
///         sentAt = c.value("sent_at", row?.sentAt)
///     }
///
/// Swift refuses one that forgets a property. It is marked `@inlinable` where rows are read or
/// written in another module than the record's.
public protocol Record: Sendable {
    static var table: Table { get }
    /// Goes through all columns.
    ///
    /// - Parameter row: what is written; `nil`: nothing is.
    init(columns: inout some ColumnVisitor, of row: Self?)
    /// All columns in the table's order.
    var row: [ColumnValue] { get }
    init(row: [ColumnValue]) throws(StoreError)
}

extension Record {
    @inlinable
    @inline(__always)
    public var row: [ColumnValue] {
        var writer = RowWriter(reserving: Self.table.columns.count)
        _ = Self(columns: &writer, of: self)
        return writer.row
    }

    /// The columns of the table's key.
    @inlinable
    public var rowKey: [ColumnValue] { Array(row.prefix(Self.table.keyCount)) }

    @inlinable
    @inline(__always)
    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = RowReader(row)
        self.init(columns: &reader, of: nil)
        if let failure = reader.failure { throw .corrupt("\(Self.table.name).\(failure)") }
        if reader.position != row.count {
            throw .corrupt("\(Self.table.name): \(row.count) columns, not \(reader.position)")
        }
    }
}

// A caller has a transaction of whatever engine, which keeps the compiler from specialising these
// for the record alone: they are made part of the caller, where the record is known.

extension StoreSnapshot {
    /// The record with this key.
    @inlinable
    @inline(__always)
    public func record<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none
    ) throws(StoreError) -> R? {
        guard let row = try row(R.table, key: key, lock: lock) else { return nil }
        return try R(row: row)
    }

    /// Records in the scan's order.
    @inlinable
    @inline(__always)
    public func records<R: Record>(_ type: R.Type, _ scan: Scan) throws(StoreError) -> [R] {
        var records: [R] = []
        for row in try rows(R.table, scan) { records.append(try R(row: row)) }
        return records
    }
}

extension StoreTransaction {
    @inlinable
    @inline(__always)
    public func put(_ record: some Record) throws(StoreError) {
        try put(type(of: record).table, record.row)
    }

    @inlinable
    @inline(__always)
    public func insert(_ record: some Record) throws(StoreError) {
        try insert(type(of: record).table, record.row)
    }

    @inlinable
    @inline(__always)
    public func delete<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(StoreError) {
        try delete(R.table, key: key)
    }
}
