// What is generic here is inlinable: every row of every table goes through it, and what is not
// specialised for its record costs a look at the runtime's tables of types for each column.

/// Goes through the columns of a record, once each, in the table's order: to list them, to read
/// a row or to write one.
///
/// A visitor that reads a row ignores the value that it is given and returns the column's. What
/// one returns that writes or lists is part of a record that nobody looks at.
public protocol ColumnVisitor {
    /// A column that is never null.
    mutating func column<Value: StoredValue>(
        _ name: String, _ value: Value?, isKey: Bool
    ) -> Value
    mutating func optionalColumn<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int
    ) -> Value?
    /// A column that repeats, for an index, what others say: it is written, and not read back.
    mutating func derived<Value: StoredValue>(
        _ name: String, _ value: Value?, isOptional: Bool, since: Int)
}

extension ColumnVisitor {
    /// A column of the key. All of them come before the others.
    @inlinable
    public mutating func key<Value: StoredValue>(_ name: String, _ value: Value?) -> Value {
        column(name, value, isKey: true)
    }

    @inlinable
    public mutating func value<Value: StoredValue>(_ name: String, _ value: Value?) -> Value {
        column(name, value, isKey: false)
    }

    /// An optional property's column, which may be null.
    ///
    /// - Parameter since: the number of the schema that brought the column.
    @inlinable
    public mutating func value<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int = 1
    ) -> Value? {
        optionalColumn(name, value, since: since)
    }

    /// A column of a later schema whose property always has a value.
    ///
    /// - Parameter absent: what rows have that were written before.
    @inlinable
    public mutating func value<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int, absent: Value
    ) -> Value {
        optionalColumn(name, value, since: since) ?? absent
    }

    @inlinable
    public mutating func derived<Value: StoredValue>(_ name: String, _ value: Value?) {
        derived(name, value, isOptional: false, since: 1)
    }

    @inlinable
    public mutating func derived<Value: StoredValue>(
        _ name: String, _ value: Value?, isOptional: Bool
    ) {
        derived(name, value, isOptional: isOptional, since: 1)
    }

    @inlinable
    public mutating func derived<Value: StoredValue>(
        _ name: String, _ value: Value?, isOptional: Bool, since: Int
    ) {
        if isOptional {
            _ = optionalColumn(name, value, since: since)
        } else {
            _ = column(name, value, isKey: false)
        }
    }
}

/// Reads the columns of one row. A column of another type is found out when all are read.
@usableFromInline
struct RowReader: ColumnVisitor {
    @usableFromInline let row: [ColumnValue]
    @usableFromInline var position = 0
    /// The first column that could not be read, and why.
    @usableFromInline var failure: String?

    @inlinable
    init(_ row: [ColumnValue]) { self.row = row }

    @inlinable
    mutating func column<Value: StoredValue>(
        _ name: String, _ value: Value?, isKey: Bool
    ) -> Value {
        defer { position += 1 }
        if position < row.count, let value = Value(stored: row[position]) { return value }
        fail(name, Value.self)
        return .blank
    }

    @inlinable
    mutating func optionalColumn<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int
    ) -> Value? {
        if position < row.count, case .null = row[position] {
            position += 1
            return nil
        }
        return column(name, value, isKey: false)
    }

    @inline(never)
    @usableFromInline
    mutating func fail<Value>(_ name: String, _ type: Value.Type) {
        if failure != nil { return }
        var found = position < row.count ? "something else" : "nothing"
        if position < row.count, case .integer(let number) = row[position] { found = "\(number)" }
        failure = "\(name): \(found) is no \(type)"
    }
}

/// Writes a record's columns as a row.
@usableFromInline
struct RowWriter: ColumnVisitor {
    @usableFromInline var row: [ColumnValue] = []

    @inlinable
    init(reserving count: Int) { row.reserveCapacity(count) }

    @inlinable
    mutating func column<Value: StoredValue>(
        _ name: String, _ value: Value?, isKey: Bool
    ) -> Value {
        guard let value else { preconditionFailure("\(name) is written without a value") }
        row.append(value.stored)
        return .blank
    }

    @inlinable
    mutating func optionalColumn<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int
    ) -> Value? {
        row.append(value?.stored ?? .null)
        return nil
    }
}

/// Lists a record's columns.
struct ColumnList: ColumnVisitor {
    private(set) var columns: [Column] = []
    private(set) var keyCount = 0

    mutating func column<Value: StoredValue>(
        _ name: String, _ value: Value?, isKey: Bool
    ) -> Value {
        if isKey {
            precondition(keyCount == columns.count, "\(name) belongs to a key that has ended")
            keyCount += 1
        }
        columns.append(Column(name, Value.columnType))
        return .blank
    }

    mutating func optionalColumn<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int
    ) -> Value? {
        columns.append(Column(name, Value.columnType, optional: true, since: since))
        return nil
    }
}
