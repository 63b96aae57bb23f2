import Foundation
import MemoryStore
import Model
import PostgresPeer
import PostgresStore
import SQLiteStore
import Synchronization
import Testing
import WorkingSet

/// Every engine that keeps the `Store` contract. A test that takes one as its argument says
/// something about the contract and not about an engine.
enum EngineFactory: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory
    case sqlite
    /// Through what is known of rows, as everything that is written by rules.
    case knownMemory
    case knownSQLite
    /// The same where others may write too: nothing is known but what is held.
    case heldMemory
    /// A round trip away: each read that is not known is fetched.
    case fetchedMemory
    /// The same, where the transaction begins anew with each read that was not known.
    case missingMemory
    /// A real server, as everything that is written by rules.
    case postgres
    case heldPostgres
    /// The same in one round trip for many reads.
    case fetchedPostgres
    case missingPostgres

    var testDescription: String { rawValue }

    /// An empty store; `folder` is the caller's, who removes it.
    func make(
        tables: [Table], lockRanks: [String: Int] = [:], in folder: String
    ) throws -> any Store {
        switch self {
        case .memory: MemoryStore(tables: tables, lockRanks: lockRanks)
        case .sqlite: try SQLiteStore(path: "\(folder)/store.db", tables: tables)
        case .knownMemory:
            KnownStore(
                {
                    let store = MemoryStore(tables: tables, lockRanks: lockRanks)
                    store.isSoleWriter = true
                    return store
                }(), isSoleWriter: true)
        case .knownSQLite:
            KnownStore(
                try SQLiteStore(path: "\(folder)/store.db", tables: tables), isSoleWriter: true)
        case .heldMemory:
            KnownStore(MemoryStore(tables: tables, lockRanks: lockRanks), isSoleWriter: false)
        case .fetchedMemory, .missingMemory:
            FetchedStore(
                DistantEngine(
                    MemoryStore(tables: tables, lockRanks: lockRanks), lockRanks: lockRanks),
                beginsAnew: self == .missingMemory)
        case .postgres: try Self.postgres(tables, lockRanks)
        case .heldPostgres: KnownStore(try Self.postgres(tables, lockRanks), isSoleWriter: false)
        case .fetchedPostgres, .missingPostgres:
            FetchedStore(
                try Self.postgres(tables, lockRanks), beginsAnew: self == .missingPostgres)
        }
    }

    private static let schemas = Mutex(0)

    /// A store in a schema of its own.
    private static func postgres(
        _ tables: [Table], _ lockRanks: [String: Int]
    ) throws -> PostgresStore {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        let number = schemas.withLock { number in
            number += 1
            return number
        }
        options.schema = "store_\(number)"
        return try PostgresStore(tables: tables, lockRanks: lockRanks, options: options)
    }

    /// Whether what it needs is on this machine.
    var isThere: Bool {
        switch self {
        case .postgres, .heldPostgres, .fetchedPostgres, .missingPostgres:
            PostgresPeer.isInstalled
        default: true
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

let engines = EngineFactory.allCases.filter(\.isThere)

/// A store whose transactions are those of a working set, with too little room for everything.
final class KnownStore: Store {
    private let base: any Store
    private let known: WorkingSet
    let isSoleWriter: Bool
    private var isWriting = false

    init(_ base: any Store, isSoleWriter: Bool) {
        self.base = base
        self.isSoleWriter = isSoleWriter
        known = WorkingSet(carrying: 8 * 1024, verifiedEvery: 3)
    }

    var effort: WorkingSet.Effort { known.effort }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        precondition(!isWriting, "write or read inside a body of the same store")
        isWriting = true
        defer { isWriting = false }
        try known.write(in: Base(self), body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try base.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    func now() -> Timestamp { base.now() }
    func checkpoint() throws(StoreError) { try base.checkpoint() }
    var isCheckpointDue: Bool { base.isCheckpointDue }
    var isJournalFull: Bool { base.isJournalFull }
    func close() { base.close() }

    /// The engine, which says what this store says of other writers.
    private final class Base: Store {
        let store: KnownStore

        init(_ store: KnownStore) { self.store = store }

        var isSoleWriter: Bool { store.isSoleWriter }
        func write(
            _ body: (any StoreTransaction) throws(StoreError) -> Void
        ) throws(StoreError) { try store.base.write(body) }
        func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
            try store.base.read(body)
        }
        func reader() throws(StoreError) -> any StoreReader { try store.base.reader() }
        func now() -> Timestamp { store.base.now() }
        func checkpoint() throws(StoreError) { try store.base.checkpoint() }
        func close() { store.base.close() }
    }
}

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
