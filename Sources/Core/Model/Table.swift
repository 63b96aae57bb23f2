/// One value of a row.
public enum ColumnValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    /// As engines compare: a text by its bytes.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.text(let left), .text(let right)): left.isExactly(right)
        case (.blob(let left), .blob(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let number):
            hasher.combine(1)
            hasher.combine(number)
        case .text(let text):
            hasher.combine(2)
            hasher.combine(ExactText(text))
        case .blob(let bytes):
            hasher.combine(3)
            hasher.combine(bytes)
        }
    }
}

/// The type of a column. Every engine maps these to its own.
public enum ColumnType: Hashable, Sendable {
    case integer
    case text
    case blob
}

/// A column of a table.
public struct Column: Hashable, Sendable {
    public let name: String
    public let type: ColumnType
    public let isOptional: Bool
    /// The number of the schema that brought the column; 1: it came with its table.
    public let since: Int

    /// - Parameter since: above 1, the column is optional, for rows written before have no value,
    ///   and stands behind all columns of older schemas.
    public init(_ name: String, _ type: ColumnType, optional: Bool = false, since: Int = 1) {
        self.name = name
        self.type = type
        self.isOptional = optional
        self.since = since
    }
}

/// An order in which a table's rows can be scanned, beside that of its key; or what no two of its
/// rows may have in common, which is not scanned.
///
/// The values of a row in the columns of an index, or of the key, take at most 2,000 bytes
/// together: PostgreSQL refuses rows with larger ones.
public struct TableIndex: Hashable, Sendable {
    public let name: String
    /// The columns by which it sorts. The key's columns that are missing here are appended, so
    /// that every scan has one total order.
    public let columnNames: [String]
    /// Rows whose value in this column is null are left out of the index; `nil`: none is.
    public let presentName: String?
    /// Rows with a value in this column are left out of it; `nil`: none is. Only of one that is
    /// unique.
    public let absentName: String?
    /// The number of the schema that brought the index, where it is not that of its columns.
    public let since: Int
    /// No two rows of the index have the same values in its columns: an engine throws `.conflict`
    /// where a second one would come.
    public let isUnique: Bool
    /// The positions of all in `Table.columns`, found out by the table; those of unknown names
    /// are missing, and `Table.problem()` tells of them.
    public private(set) var columns: [Int] = []
    public private(set) var presentColumn: Int?
    public private(set) var absentColumn: Int?

    public init(
        _ name: String, on columns: String..., present: String? = nil, absent: String? = nil,
        unique: Bool = false, since: Int = 1
    ) {
        self.name = name
        columnNames = columns
        presentName = present
        absentName = absent
        isUnique = unique
        self.since = since
    }

    func resolved(in table: [Column]) -> TableIndex {
        func position(_ name: String) -> Int? { table.firstIndex { $0.name == name } }
        var index = self
        index.columns = columnNames.compactMap(position)
        index.presentColumn = presentName.flatMap(position)
        index.absentColumn = absentName.flatMap(position)
        return index
    }

    /// Whether the row stands in it.
    public func holds(_ row: [ColumnValue]) -> Bool {
        if let presentColumn, row[presentColumn] == .null { return false }
        if let absentColumn, row[absentColumn] != .null { return false }
        return true
    }
}

/// How long rows of a table are kept; enforced in the background.
public enum Retention: Hashable, Sendable {
    /// Until a rule deletes them.
    case untilDeleted
    /// Until the moment in this column (milliseconds since 1970) has passed; null: until deleted.
    case until(column: String, index: String)
}

/// What a store of an older schema needs besides new columns and indexes to come to a newer one.
/// What has been released is never changed or removed.
public struct SchemaStep: Sendable {
    /// The number of the schema that it belongs to.
    public let schema: Int
    /// In SQL that every engine understands; run when that schema's columns are there and its
    /// indexes are not.
    public let sql: String

    public init(_ schema: Int, _ sql: String) {
        self.schema = schema
        self.sql = sql
    }
}

/// A table of the store, as data: every engine makes it, reads it and writes it from this.
///
/// Invariant: the first `keyCount` columns are the unique key and never optional.
///
/// It never changes. It is a class because it is handed on with every read and write of a row,
/// where copying its arrays would cost more than the look at the row.
public final class Table: Hashable, Sendable {
    public let name: String
    public let columns: [Column]
    public let keyCount: Int
    public let indexes: [TableIndex]
    public let retention: Retention
    /// The steps that bring an older store to newer schemas, in order.
    public let steps: [SchemaStep]
    /// The number of the schema that brought the table.
    public let since: Int
    /// The row whose lock a transaction holds when it writes one of this table's rows; `nil`: the
    /// table names none.
    public let rowGuard: RowGuard?
    /// Most rows are written and hardly asked for again: memory that keeps rows lets go of these
    /// first.
    public let isSeldomRead: Bool
    /// Whether an index refuses a second row with the same values.
    public let hasUniqueIndex: Bool
    private let keyOrder: [Int]
    /// The columns by which each index sorts, in the order of `indexes`.
    private let orders: [[Int]]

    public init(
        _ name: String, key: [Column], values: [Column], indexes: [TableIndex] = [],
        retention: Retention = .untilDeleted, seldomRead: Bool = false,
        steps: [SchemaStep] = [], since: Int = 1
    ) {
        let columns = key + values
        let keyOrder = Array(0..<key.count)
        let indexes = indexes.map { $0.resolved(in: columns) }
        self.name = name
        self.columns = columns
        self.keyCount = key.count
        self.indexes = indexes
        self.retention = retention
        isSeldomRead = seldomRead
        self.steps = steps
        self.since = since
        self.keyOrder = keyOrder
        rowGuard = nil
        hasUniqueIndex = indexes.contains(where: \.isUnique)
        orders = indexes.map { index in
            index.columns + keyOrder.filter { !index.columns.contains($0) }
        }
    }

    init(_ table: Table, guardedBy rowGuard: RowGuard?) {
        name = table.name
        columns = table.columns
        keyCount = table.keyCount
        indexes = table.indexes
        retention = table.retention
        isSeldomRead = table.isSeldomRead
        steps = table.steps
        since = table.since
        keyOrder = table.keyOrder
        orders = table.orders
        hasUniqueIndex = table.hasUniqueIndex
        self.rowGuard = rowGuard
    }

    /// The table of a record, with the columns that it declares.
    public convenience init<R: Record>(
        _ name: String, of record: R.Type, indexes: [TableIndex] = [],
        retention: Retention = .untilDeleted, seldomRead: Bool = false,
        steps: [SchemaStep] = [], since: Int = 1
    ) {
        var list = ColumnList()
        _ = R(columns: &list, of: nil)
        self.init(
            name, key: Array(list.columns[..<list.keyCount]),
            values: Array(list.columns[list.keyCount...]), indexes: indexes,
            retention: retention, seldomRead: seldomRead, steps: steps, since: since)
    }

    /// The table as that schema had it: without the columns and indexes that came later. Indexes
    /// that went since are not known any more.
    public func asOf(schema: Int) -> Table {
        let later = Set(columns.filter { $0.since > schema }.map(\.name))
        let indexes = indexes.filter { index in
            index.since <= schema
                && later.isDisjoint(
                    with: index.columnNames
                        + [index.presentName, index.absentName].compactMap { $0 })
        }
        return Table(
            name, key: Array(columns[..<keyCount]),
            values: columns[keyCount...].filter { $0.since <= schema }, indexes: indexes,
            retention: retention, seldomRead: isSeldomRead,
            steps: steps.filter { $0.schema <= schema }, since: since)
    }

    /// The number of the schema that last changed the table.
    public var schema: Int {
        (columns.map(\.since) + indexes.map(\.since) + steps.map(\.schema) + [since]).max() ?? 1
    }

    /// The columns, in order, by which `index` sorts; the key's if `nil` or unknown.
    public func order(of index: String?) -> [Int] {
        guard let index, let found = indexes.firstIndex(where: { $0.name == index }) else {
            return keyOrder
        }
        return orders[found]
    }

    public static func == (left: Table, right: Table) -> Bool {
        left === right || left.name == right.name
    }
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
