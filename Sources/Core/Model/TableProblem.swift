// What is wrong with data that should fit a table, in words. Every engine asks the same
// questions, so that a fault of the calling code shows on each of them and not only on the
// strictest.

extension Table {
    /// What is wrong with the table's own definition; `nil` if nothing is.
    public func problem() -> String? {
        for name in [name] + columns.map(\.name) + indexes.map(\.name) where !Self.isName(name) {
            return "\(self.name): \"\(name)\" is not a name of a-z and _"
        }
        if keyCount == 0 { return "\(name) has no key" }
        if Set(columns.map(\.name)).count != columns.count { return "\(name): a column twice" }
        if Set(indexes.map(\.name)).count != indexes.count { return "\(name): an index twice" }
        if let column = columns[..<keyCount].first(where: \.isOptional) {
            return "\(name): key column \(column.name) is optional"
        }
        let values = columns[keyCount...]
        if zip(values, values.dropFirst()).contains(where: { $0.since > $1.since }) {
            return "\(name): a column stands before an older one"
        }
        if let column = columns.first(where: { $0.since > 1 && !$0.isOptional }) {
            return "\(name): later column \(column.name) is not optional"
        }
        for index in indexes {
            let isPresentKnown = index.presentName == nil || index.presentColumn != nil
            let isAbsentKnown = index.absentName == nil || index.absentColumn != nil
            if index.columns.isEmpty || index.columns.count != index.columnNames.count
                || !isPresentKnown || !isAbsentKnown
            {
                return "\(name): index \(index.name) names no or unknown columns"
            }
            if index.absentName != nil, !index.isUnique {
                return "\(name): index \(index.name) leaves rows out and is not unique"
            }
            if Set(index.columns).count != index.columns.count {
                return "\(name): index \(index.name) names a column twice"
            }
        }
        if case .until(let column, let index) = retention {
            guard let position = columns.firstIndex(where: { $0.name == column }),
                columns[position].type == .integer, order(of: index).first == position
            else { return "\(name): its retention needs an index on its integer column" }
        }
        return nil
    }

    /// What is wrong with `row` as a whole row of this table; `nil` if nothing is.
    public func problem(row: [ColumnValue]) -> String? {
        if row.count != columns.count {
            return "\(name): a row of \(row.count) columns, not \(columns.count)"
        }
        for (value, column) in zip(row, columns) {
            if let problem = problem(value, in: column) { return problem }
        }
        return nil
    }

    /// What is wrong with `key` as a whole key of this table; `nil` if nothing is.
    public func problem(key: [ColumnValue]) -> String? {
        if key.count != keyCount {
            return "\(name): a key of \(key.count) columns, not \(keyCount)"
        }
        for (value, column) in zip(key, columns) {
            if let problem = problem(value, in: column) { return problem }
        }
        return nil
    }

    /// What is wrong with `scan` on this table; `nil` if nothing is.
    public func problem(scan: Scan) -> String? {
        let index = indexes.first { $0.name == scan.index }
        if let wanted = scan.index, index == nil { return "\(name): no index \(wanted)" }
        if let index, index.isUnique { return "\(name): index \(index.name) is no order" }
        let order = order(of: scan.index)
        if scan.prefix.count > order.count { return "\(name): a prefix longer than the order" }
        for (value, position) in zip(scan.prefix, order) {
            if let problem = problem(value, in: columns[position]) { return problem }
        }
        let rest = order[scan.prefix.count...]
        for bound in [scan.after, scan.through] {
            guard let bound else { continue }
            if bound.isEmpty || bound.count > rest.count {
                return "\(name): a bound of \(bound.count) columns on \(rest.count)"
            }
            for (value, position) in zip(bound, rest) {
                let column = columns[position]
                if column.isOptional && index?.presentColumn != position {
                    return "\(name): a bound on \(column.name), which may be null"
                }
                if value == .null { return "\(name): a bound of null on \(column.name)" }
                if let problem = problem(value, in: column) { return problem }
            }
        }
        return nil
    }

    private func problem(_ value: ColumnValue, in column: Column) -> String? {
        switch (value, column.type) {
        case (.integer, .integer), (.text, .text), (.blob, .blob): nil
        case (.null, _): column.isOptional ? nil : "\(name).\(column.name) is null"
        default: "\(name).\(column.name) is of another type than \(column.type)"
        }
    }

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { ($0 >= 0x61 && $0 <= 0x7a) || $0 == 0x5f }
    }
}
