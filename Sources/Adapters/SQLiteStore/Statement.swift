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
        let bytes = connection.boundBytes
        bytes.begin(values)
        var position: Int32 = 0
        for value in values {
            position += 1
            let code = bind(value, at: position, of: handle, keptIn: bytes)
            if code != SQLITE_OK { throw connection.note(code) }
        }
    }

    private func bind(
        _ value: ColumnValue, at position: Int32, of handle: OpaquePointer,
        keptIn kept: BoundBytes
    ) -> Int32 {
        switch value {
        case .null:
            return sqlite3_bind_null(handle, position)
        case .integer(let number):
            return sqlite3_bind_int64(handle, position, number)
        case .text(var text):
            let bytes = text.withUTF8 { kept.keep(UnsafeRawBufferPointer($0)) }
            guard let length = Int32(exactly: bytes.count) else { return SQLITE_TOOBIG }
            return rouse_sqlite_bind_text(
                handle, position, bytes.assumingMemoryBound(to: CChar.self).baseAddress, length)
        case .blob(let blob):
            let bytes = blob.withUnsafeBytes { kept.keep($0) }
            guard let length = Int32(exactly: bytes.count) else { return SQLITE_TOOBIG }
            return rouse_sqlite_bind_blob(handle, position, bytes.baseAddress, length)
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

/// The texts and blobs that are bound to a connection's running statement, in one piece of memory:
/// SQLite would take a piece for each. They stay where they are until the statement is reset.
///
/// Invariant: a connection runs one statement at a time, and resets it before the next.
final class BoundBytes {
    /// More is not kept for the next statement.
    private static let keptMax = 256 << 10
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
    private var used = 0

    deinit { memory.deallocate() }

    /// Makes room for these values. What was kept before is gone.
    func begin(_ values: [ColumnValue]) {
        var count = 0
        for value in values {
            switch value {
            case .null, .integer: break
            case .text(let text): count += text.utf8.count
            case .blob(let blob): count += blob.count
            }
        }
        used = 0
        if count > memory.count || (memory.count > Self.keptMax && count <= Self.keptMax) {
            memory.deallocate()
            memory = .allocate(byteCount: max(count, 4_096), alignment: 16)
        }
    }

    func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let end = used + bytes.count
        precondition(end <= memory.count, "a value was bound for which no room was made")
        let place = UnsafeMutableRawBufferPointer(rebasing: memory[used..<end])
        place.copyMemory(from: bytes)
        used = end
        return UnsafeRawBufferPointer(place)
    }
}

/// A column of a statement's rows that always equals the value of one of its places.
struct EqualColumn {
    let column: Int
    let value: Int
}
