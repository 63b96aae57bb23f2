import Model

/// The statements of all tables, made once for each shape. Used by one thread.
final class PostgresTables {
    final class Statements {
        /// The table's place in the order of locks.
        let number: UInt64
        let columns: [Column]
        /// The same, and the number of what was asked behind them.
        let numberedColumns: [Column]
        private let sql: PostgresSQL
        let put: String
        let insert: String
        let putMany: String
        let insertMany: String
        let delete: String
        let deleteMany: String
        private var rows: [RowLock: String] = [:]
        private var rowsByKey: [RowLock: String] = [:]
        private var freeRows: [RowLock: String] = [:]
        private var updates: [[Int]: String] = [:]
        private var updatesOfMany: [[Int]: String] = [:]
        private var scans: [Shape: Scans] = [:]
        private var lastShape = 0

        /// Scans that are alike but for their values and limits.
        final class Scans {
            /// Among all of the table.
            let number: Int
            let one: String
            let many: String
            /// Of the values, in their order.
            let types: [ColumnType]

            init(_ sql: PostgresSQL, _ scan: Scan, number: Int) {
                self.number = number
                one = sql.scan(scan)
                many = sql.scans(scan)
                types = sql.columns(of: scan).map { sql.table.columns[$0].type }
            }
        }

        /// What makes two scans the same statement.
        private struct Shape: Hashable {
            let index: String?
            let prefixNulls: [Bool]
            let afterCount: Int
            let throughCount: Int
            let descending: Bool
            let lock: RowLock

            init(_ scan: Scan) {
                index = scan.index
                prefixNulls = scan.prefix.map { $0 == .null }
                afterCount = scan.after?.count ?? 0
                throughCount = scan.through?.count ?? 0
                descending = scan.descending
                lock = scan.lock
            }
        }

        /// Shapes kept of one table; the code has a handful, so it is never reached.
        private static let shapesMax = 256

        init(_ table: Table, number: UInt64) {
            self.number = number
            columns = table.columns
            numberedColumns = table.columns + [Column("number", .integer)]
            sql = PostgresSQL(table: table)
            put = sql.put
            insert = sql.insert
            putMany = sql.putMany
            insertMany = sql.insertMany
            delete = sql.delete
            deleteMany = sql.deleteMany
        }

        func row(_ lock: RowLock) -> String { kept(&rows, lock) { sql.row(lock) } }
        /// The rows of many keys.
        func rows(_ lock: RowLock) -> String { kept(&rowsByKey, lock) { sql.rows(lock) } }
        /// Those of them that nobody else holds.
        func freeRows(_ lock: RowLock) -> String {
            kept(&freeRows, lock) { sql.rows(lock, skipsHeld: true) }
        }
        func update(_ columns: [Int]) -> String { kept(&updates, columns) { sql.update(columns) } }
        func updateMany(_ columns: [Int]) -> String {
            kept(&updatesOfMany, columns) { sql.updateMany(columns) }
        }
        func scans(like scan: Scan) -> Scans {
            kept(&scans, Shape(scan)) {
                lastShape += 1
                return Scans(sql, scan, number: lastShape)
            }
        }

        private func kept<Key, Statement>(
            _ statements: inout [Key: Statement], _ key: Key, _ make: () -> Statement
        ) -> Statement {
            if let known = statements[key] { return known }
            if statements.count >= Self.shapesMax { statements = [:] }
            let statement = make()
            statements[key] = statement
            return statement
        }
    }

    /// The schema that holds the tables: two stores in one database never hold each other's keys.
    private let schema: String
    private var tables = TableMap<Statements>()

    /// - Parameter ranks: The place of each table in the order of locks, by its name.
    init(_ tables: [Table], schema: String, ranks: [String: Int] = [:]) {
        self.schema = schema
        // The same on every node: tables without a rank follow the others by their names.
        let inOrder = tables.sorted { left, right in
            (ranks[left.name] ?? .max, ExactText(left.name))
                < (ranks[right.name] ?? .max, ExactText(right.name))
        }
        for (number, table) in inOrder.enumerated() {
            precondition(self.tables[table] == nil, "two tables of one name")
            self.tables[table] = Statements(table, number: UInt64(number))
        }
    }

    subscript(_ table: Table) -> Statements {
        guard let found = tables[table] else {
            preconditionFailure("the store has no table \(table.name)")
        }
        return found
    }

    /// The number by which every node holds a key that has no row: FNV-1a of 64 bits, the same in
    /// every version of the program, for nodes of two versions run side by side.
    func hash(of key: [ColumnValue], in table: Table) -> ColumnValue {
        var hash = FNV1a()
        hash.add(schema.utf8)
        hash.add(table.name.utf8)
        for value in key {
            switch value {
            case .null: hash.add(EmptyCollection())
            case .integer(let number):
                hash.add((0..<8).lazy.map { UInt8(truncatingIfNeeded: number >> (8 * $0)) })
            case .text(let text): hash.add(text.utf8)
            case .blob(let blob): hash.add(blob)
            }
        }
        return .integer(Int64(bitPattern: hash.value))
    }
}

/// www.isthe.com/chongo/tech/comp/fnv, 64 bits; each part with its length, so that two parts are
/// not one.
struct FNV1a {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Every node does it for each key that it locks: nothing is copied to be looked at.
    mutating func add(_ bytes: some Collection<UInt8>) {
        let count = UInt32(bytes.count)
        for place in 0..<4 { add(UInt8(truncatingIfNeeded: count >> (8 * UInt32(place)))) }
        for byte in bytes { add(byte) }
    }

    private mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }
}
