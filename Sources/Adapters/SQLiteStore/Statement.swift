import CSQLite
import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A compiled statement; `Connection` finalizes it.
final class Statement {
    private var handle: OpaquePointer?
    private unowned let connection: Connection

    init(_ handle: OpaquePointer, of connection: Connection) {
        self.handle = handle
        self.connection = connection
    }

    func finalize() {
        sqlite3_finalize(handle)
        handle = nil
    }

    private func running() throws(StoreError) -> OpaquePointer {
        guard let handle else { throw .unavailable("\(connection.path): statement finalized") }
        connection.statementsRun &+= 1
        return handle
    }

    /// Runs with these values and ignores rows.
    func run(_ values: [ColumnValue] = []) throws(StoreError) {
        let handle = try running()
        defer { reset(handle) }
        try bind(values, to: handle)
        var code = sqlite3_step(handle)
        while code == SQLITE_ROW { code = sqlite3_step(handle) }
        if code != SQLITE_DONE { throw connection.note(code) }
    }

    /// Runs with these values; every row has `columns`. Those that equal a value, by the statement
    /// itself, are not read from each row.
    func rows(
        _ values: [ColumnValue], columns: [Column], equal: [EqualColumn]
    ) throws(StoreError) -> [[ColumnValue]] {
        let handle = try running()
        defer { reset(handle) }
        try bind(values, to: handle)
        var rows: [[ColumnValue]] = []
        var code = sqlite3_step(handle)
        while code == SQLITE_ROW {
            rows.append(try row(of: handle, columns: columns, values, equal))
            code = sqlite3_step(handle)
        }
        if code != SQLITE_DONE { throw connection.note(code) }
        return rows
    }

    /// Runs; every column as text.
    func texts() throws(StoreError) -> [[String]] {
        let handle = try running()
        defer { reset(handle) }
        var rows: [[String]] = []
        var code = sqlite3_step(handle)
        while code == SQLITE_ROW {
            rows.append(
                (0..<sqlite3_column_count(handle)).map { position in
                    sqlite3_column_text(handle, position).map { String(cString: $0) } ?? ""
                })
            code = sqlite3_step(handle)
        }
        if code != SQLITE_DONE { throw connection.note(code) }
        return rows
    }

    /// Values are let go at once: a cached statement must not keep the last row's bytes.
    private func reset(_ handle: OpaquePointer) {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    private func bind(_ values: [ColumnValue], to handle: OpaquePointer) throws(StoreError) {
        precondition(
            Int(sqlite3_bind_parameter_count(handle)) == values.count,
            "\(values.count) values for another number of places")
        var position: Int32 = 0
        for value in values {
            position += 1
            let code = bind(value, at: position, of: handle)
            if code != SQLITE_OK { throw connection.note(code) }
        }
    }

    private func bind(_ value: ColumnValue, at position: Int32, of handle: OpaquePointer) -> Int32 {
        switch value {
        case .null:
            return sqlite3_bind_null(handle, position)
        case .integer(let number):
            return sqlite3_bind_int64(handle, position, number)
        case .text(var text):
            return text.withUTF8 { bytes in
                guard let length = Int32(exactly: bytes.count) else { return SQLITE_TOOBIG }
                return bytes.withMemoryRebound(to: CChar.self) {
                    rouse_sqlite_bind_text(handle, position, $0.baseAddress, length)
                }
            }
        case .blob(let blob):
            return blob.withUnsafeBytes { bytes in
                guard let length = Int32(exactly: bytes.count) else { return SQLITE_TOOBIG }
                return rouse_sqlite_bind_blob(handle, position, bytes.baseAddress, length)
            }
        }
    }

    private func row(
        of handle: OpaquePointer, columns: [Column], _ values: [ColumnValue],
        _ equal: [EqualColumn]
    ) throws(StoreError) -> [ColumnValue] {
        var row: [ColumnValue] = []
        row.reserveCapacity(columns.count)
        var next = 0
        for position in columns.indices {
            if next < equal.count, equal[next].column == position {
                row.append(values[equal[next].value])
                next += 1
            } else {
                row.append(
                    try value(of: handle, at: Int32(position), column: columns[position]))
            }
        }
        return row
    }

    private func value(of handle: OpaquePointer, at position: Int32, column: Column)
        throws(StoreError) -> ColumnValue
    {
        switch (sqlite3_column_type(handle, position), column.type) {
        case (SQLITE_INTEGER, .integer):
            return .integer(sqlite3_column_int64(handle, position))
        case (SQLITE_TEXT, .text):
            // Null for an empty text too, if memory ran out.
            guard let start = sqlite3_column_text(handle, position) else {
                throw connection.note(SQLITE_NOMEM)
            }
            let count = Int(sqlite3_column_bytes(handle, position))
            let bytes = UnsafeBufferPointer(start: start, count: count)
            var text = String(decoding: bytes, as: UTF8.self)
            // What is not UTF-8 was repaired, so that it has other bytes now. Validating costs
            // several times as much.
            let isExact = text.withUTF8 { utf8 in
                utf8.count == count && memcmp(utf8.baseAddress ?? start, start, count) == 0
            }
            guard isExact else { throw .corrupt("column \(column.name) is not UTF-8") }
            return .text(text)
        case (SQLITE_BLOB, .blob):
            let start = sqlite3_column_blob(handle, position)
            let count = Int(sqlite3_column_bytes(handle, position))
            guard let start else {
                if count > 0 { throw connection.note(SQLITE_NOMEM) }
                return .blob([])
            }
            return .blob(Array(UnsafeRawBufferPointer(start: start, count: count)))
        case (SQLITE_NULL, _) where column.isOptional:
            return .null
        default:
            throw .corrupt("column \(column.name) is not of type \(column.type)")
        }
    }
}

/// A column of a statement's rows that always equals the value of one of its places.
struct EqualColumn {
    let column: Int
    let value: Int
}
