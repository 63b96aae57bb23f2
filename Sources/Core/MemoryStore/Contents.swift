import Model

/// All tables at one moment. Copies share what has not changed since.
struct Contents {
    private var tables: [TableContents]
    /// Positions in `tables` by name.
    private let positions: [String: Int]

    init(_ tables: [Table]) {
        for table in tables {
            if let problem = table.problem() { preconditionFailure(problem) }
        }
        self.tables = tables.map { TableContents($0) }
        positions = Dictionary(
            tables.enumerated().map { ($1.name, $0) },
            uniquingKeysWith: { _, _ in preconditionFailure("two tables of one name") })
    }

    subscript(table: Table) -> TableContents {
        get { tables[position(of: table)] }
        _modify { yield &tables[position(of: table)] }
    }

    private func position(of table: Table) -> Int {
        guard let position = positions[table.name] else {
            preconditionFailure("the store has no table \(table.name)")
        }
        return position
    }
}
