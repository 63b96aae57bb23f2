import Feed
public import FoundationEssentials
import Glibc
public import Model
import PostgresStore
import SQLiteStore

/// Takes a whole store from one engine to the other: `rouse import` and `rouse export`. Cursors,
/// numbers of mutations and session tokens stay what they are, so that clients go on where they
/// were.
public enum StoreCopy {
    /// What was copied.
    public struct Copied: Codable, Equatable, Sendable {
        public var tables: Int
        public var rows: UInt64
    }

    /// Why nothing was copied.
    public struct Refusal: Error, Equatable, CustomStringConvertible, Sendable {
        public let description: String

        init(_ description: String) { self.description = description }
    }

    /// Rows read, and written, at a time.
    private static let step = 1_000

    /// Tables of the processes that serve, not of what they serve.
    private static let left: Set<ExactText> = [ExactText(NodeRecord.table.name)]

    /// Copies everything in one transaction: what is read of the target afterwards is all or
    /// nothing. No server has either of them open meanwhile.
    ///
    /// - Parameters:
    ///   - upgrades: What is done about a source of an older schema.
    ///   - progress: The table, and the rows copied so far.
    /// - Throws: `Refusal`: a server may have one of them open, the source is not there, or the
    ///   target holds something.
    public static func run(
        from source: StorePlace, to target: StorePlace,
        upgrades: StoreUpgrades = StoreUpgrades(),
        progress: (_ table: String, _ rows: UInt64) -> Void = { _, _ in }
    ) throws(Refusal) -> Copied {
        if case .file(let path) = source, !FileManager.default.fileExists(atPath: path) {
            throw Refusal("there is no store at \(path)")
        }
        if case .file(let path) = source,
            let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int,
            size == 0
        {
            throw Refusal("\(path) is empty: there is no store in it")
        }
        if case .file(let path) = target {
            if FileManager.default.fileExists(atPath: path) {
                throw Refusal("\(path) exists: it is not written over")
            }
            for part in ["\(path)-wal", "\(path)-shm", "\(path)-journal"]
            where FileManager.default.fileExists(atPath: part) {
                throw Refusal(
                    "\(part) belongs to a database that was at \(path), and would be taken for "
                        + "a part of the new one: move it away, or name another file")
            }
        }
        guard case .file(let path) = target else {
            return try copy(from: source, to: target, upgrades, progress)
        }
        // It gets its name when it is whole.
        let part = "\(path).part-\(ProcessInfo.processInfo.processIdentifier)"
        defer { removeStore(part) }
        let copied = try copy(from: source, to: .file(part), upgrades, progress)
        guard link(part, path) == 0 else {
            throw Refusal("\(path): \(String(cString: strerror(errno)))")
        }
        return copied
    }

    private static func copy(
        from source: StorePlace, to target: StorePlace, _ upgrades: StoreUpgrades,
        _ progress: (String, UInt64) -> Void
    ) throws(Refusal) -> Copied {
        do throws(StoreError) {
            // The target first: opening a source of an older schema changes it for good.
            let to = try target.open(isPatient: true)
            defer { to.close() }
            try refuseNodes(of: to, target)
            try refuseRows(of: to, target)
            let from = try source.open(isPatient: true, upgrades: upgrades)
            defer { from.close() }
            return try copy(from, to, source, target, progress)
        } catch {
            throw Refusal(error.words)
        }
    }

    private static func copy(
        _ from: any Store, _ to: any Store, _ source: StorePlace, _ target: StorePlace,
        _ progress: (String, UInt64) -> Void
    ) throws(StoreError) -> Copied {
        try refuseNodes(of: from, source)
        try refuseNodes(of: to, target)
        var copied = Copied(tables: 0, rows: 0)
        try from.read { snapshot throws(StoreError) in
            try to.write { transaction throws(StoreError) in
                // Whoever has looked at an empty store has left these there, and no more.
                for row in try transaction.rows(MetaRecord.table, Scan(limit: Self.step)) {
                    try transaction.delete(MetaRecord.table, key: Array(row.prefix(1)))
                }
                for table in Schema.tables where !left.contains(ExactText(table.name)) {
                    try refuseRows(of: table, in: transaction, target)
                    let rows = try copy(table, snapshot, transaction) { rows in
                        progress(table.name, copied.rows + rows)
                    }
                    copied.rows += rows
                    copied.tables += 1
                }
            }
        }
        return copied
    }

    private static func refuseRows(
        of store: any Store, _ target: StorePlace
    ) throws(StoreError) {
        try store.read { snapshot throws(StoreError) in
            for table in Schema.tables
            where !left.contains(ExactText(table.name)) && table.name != MetaRecord.table.name {
                try refuseRows(of: table, in: snapshot, target)
            }
        }
    }

    private static func refuseRows(
        of table: Table, in snapshot: any StoreSnapshot, _ target: StorePlace
    ) throws(StoreError) {
        guard try snapshot.rows(table, Scan(limit: 1)).isEmpty else {
            throw .unavailable(
                "\(target.name) holds rows of \(table.name): only an empty store is imported into")
        }
    }

    private static func copy(
        _ table: Table, _ snapshot: any StoreSnapshot, _ transaction: any StoreTransaction,
        _ progress: (UInt64) -> Void
    ) throws(StoreError) -> UInt64 {
        var count: UInt64 = 0
        var after: [ColumnValue]?
        while true {
            let rows = try snapshot.rows(table, Scan(after: after, limit: step))
            for row in rows { try transaction.insert(table, row) }
            count += UInt64(rows.count)
            progress(count)
            guard rows.count == step, let last = rows.last else { return count }
            after = Array(last[..<table.keyCount])
            // What was written is sent with a read: it does not pile up here.
            _ = try transaction.row(table, key: Array(last[..<table.keyCount]), lock: .none)
        }
    }

    /// A file is locked by its server; of a database the nodes say that they are there.
    static func refuseNodes(
        of store: any Store, _ place: StorePlace
    ) throws(StoreError) {
        let now = store.now()
        var nodes: [String] = []
        try store.read { snapshot throws(StoreError) in
            nodes = try snapshot.records(NodeRecord.self, Scan(limit: 100))
                .filter { $0.until > now }.map(\.name)
        }
        guard !nodes.isEmpty else { return }
        throw .unavailable(
            "\(place.name) is served by \(nodes.joined(separator: ", ")): stop the nodes first, "
                + "and wait 10 s after one that was killed")
    }

    /// What was begun of a file.
    private static func removeStore(_ path: String) {
        for suffix in ["", "-wal", "-shm", ".lock"] {
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
    }
}

/// Brings a store to this program's schema: `rouse migrate`.
public enum StoreMigration {
    /// - Returns: what there was to do; `nil`: nothing.
    /// - Throws: `StoreCopy.Refusal`: why it could not be done.
    public static func run(_ place: StorePlace) throws(StoreCopy.Refusal) -> StoreUpgrade? {
        if case .file(let path) = place, !FileManager.default.fileExists(atPath: path) {
            throw StoreCopy.Refusal("there is no store at \(path)")
        }
        let upgrades = StoreUpgrades()
        do throws(StoreError) {
            try place.open(upgrades: upgrades).close()
            return upgrades.met
        } catch {
            throw StoreCopy.Refusal(error.words)
        }
    }
}
