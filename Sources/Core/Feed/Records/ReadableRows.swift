import Model

// Rows of a scan one by one: one that cannot be read hides none of the others.

/// What a scan found.
struct ReadableRows<R: Record> {
    private(set) var records: [R] = []
    /// Those that cannot be read, as they stand, and what is wrong with them.
    private(set) var others: [(row: [ColumnValue], detail: String)] = []

    var count: Int { records.count + others.count }

    init(_ rows: [[ColumnValue]]) {
        for row in rows {
            do throws(StoreError) {
                records.append(try R(row: row))
            } catch {
                others.append((row, error.words))
            }
        }
    }
}

extension StoreSnapshot {
    func readable<R: Record>(_ type: R.Type, _ scan: Scan) throws(StoreError) -> ReadableRows<R> {
        ReadableRows(try rows(R.table, scan))
    }

    /// The push credentials of an app in one APNs environment that can be read, and what is wrong
    /// with the first that cannot.
    func pushCredentials(
        of app: AppID, _ environment: UInt64
    ) throws(StoreError) -> (readable: [PushCredentialRecord], problem: String?) {
        let found = try readable(
            PushCredentialRecord.self,
            Scan(
                prefix: [.app(app), .unsigned(environment)],
                limit: PushCredentialRecord.countMax))
        return (found.records, found.others.first?.detail)
    }
}

extension Table {
    /// The row with another value in one column, whatever stands in the others.
    func row(_ row: [ColumnValue], with value: ColumnValue, as column: String) -> [ColumnValue] {
        var row = row
        row[place(of: column)] = value
        return row
    }

    func value(of column: String, in row: [ColumnValue]) -> ColumnValue { row[place(of: column)] }

    private func place(of column: String) -> Int {
        guard let place = columns.firstIndex(where: { $0.name.isExactly(column) }) else {
            preconditionFailure("\(name) has no \(column)")
        }
        return place
    }
}
