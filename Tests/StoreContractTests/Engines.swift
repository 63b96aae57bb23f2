import Foundation
import MemoryStore
import Model
import SQLiteStore
import Testing

/// Every engine that keeps the `Store` contract. A test that takes one as its argument says
/// something about the contract and not about an engine.
enum EngineFactory: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory
    case sqlite

    var testDescription: String { rawValue }

    /// An empty store; `folder` is the caller's, who removes it.
    func make(
        tables: [Table], lockRanks: [String: Int] = [:], in folder: String
    ) throws -> any Store {
        switch self {
        case .memory: MemoryStore(tables: tables, lockRanks: lockRanks)
        case .sqlite: try SQLiteStore(path: "\(folder)/store.db", tables: tables)
        }
    }

    /// Runs `body` on an empty store and cleans up after it.
    func withStore<Result>(
        tables: [Table], lockRanks: [String: Int] = [:],
        _ body: (any Store) throws -> Result
    ) throws -> Result {
        try withFolder { folder in
            let store = try make(tables: tables, lockRanks: lockRanks, in: folder)
            defer { store.close() }
            return try body(store)
        }
    }
}

let engines = EngineFactory.allCases

/// Runs `body` with the path of a new folder, and removes it.
func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = try newFolder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
}

/// As above, for bodies that wait for other processes.
func inFolder(_ body: (String) async throws -> Void) async throws {
    let folder = try newFolder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder)
}

private func newFolder() throws -> String {
    let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("rouse-store-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true)
    return folder
}

/// Rows as comparable text. `ColumnValue` compares texts as Swift does, by Unicode equivalence;
/// stores keep bytes.
func exact(_ rows: [[ColumnValue]]) -> [String] {
    rows.map { row in
        row.map { value in
            switch value {
            case .null: "null"
            case .integer(let number): "\(number)"
            case .text(let text): "t" + hex(Array(text.utf8))
            case .blob(let blob): "b" + hex(blob)
            }
        }.joined(separator: " ")
    }
}

private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}

extension Store {
    func write<Result>(returning body: (any StoreTransaction) throws(StoreError) -> Result)
        throws(StoreError) -> Result
    {
        var result: Result?
        try write { (transaction: any StoreTransaction) throws(StoreError) in
            result = try body(transaction)
        }
        guard let result else { throw .unavailable("write did not run its body") }
        return result
    }

    /// The rows of a scan in a read of its own.
    func rows(_ table: Table, _ scan: Scan = Scan(limit: .max)) throws(StoreError)
        -> [[ColumnValue]]
    {
        var rows: [[ColumnValue]] = []
        try read { (snapshot: any StoreSnapshot) throws(StoreError) in
            rows = try snapshot.rows(table, scan)
        }
        return rows
    }

    func row(_ table: Table, _ key: [ColumnValue]) throws(StoreError) -> [ColumnValue]? {
        var row: [ColumnValue]?
        try read { (snapshot: any StoreSnapshot) throws(StoreError) in
            row = try snapshot.row(table, key: key, lock: .none)
        }
        return row
    }

    func put(_ table: Table, _ rows: [ColumnValue]...) throws(StoreError) {
        try write { (transaction: any StoreTransaction) throws(StoreError) in
            for row in rows { try transaction.put(table, row) }
        }
    }
}

extension StoreReader {
    func rows(_ table: Table, _ scan: Scan = Scan(limit: .max)) throws(StoreError)
        -> [[ColumnValue]]
    {
        var rows: [[ColumnValue]] = []
        try read { (snapshot: any StoreSnapshot) throws(StoreError) in
            rows = try snapshot.rows(table, scan)
        }
        return rows
    }
}
