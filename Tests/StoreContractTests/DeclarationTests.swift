import Feed
import Model
import Testing

@testable import SyncClient

/// Each record's one declaration of its columns: what it lists, reads and writes are the same.
@Suite struct DeclarationTests {
    @Test("every record's declaration, rows and indexes agree")
    func records() throws {
        for record in Schema.records + LocalSchema.records {
            for content in [SampleColumns.Content.full, .halfNull] { try check(record, content) }
            checkProperties(record)
        }
    }

    /// What is not an app's: a console's sign-ins, the operators' log, nodes, tokens that all apps of
    /// a team share, and facts of the store.
    private static let ofNoApp: Set = ["console_token", "audit", "node", "provider_token", "meta"]

    @Test("every table of the server begins with the app, but for those that are no app's")
    func apps() {
        for table in Schema.tables {
            let isOfApp = table.columns[0].name == "app" && table.keyCount > 0
            #expect(isOfApp != Self.ofNoApp.contains(table.name), "\(table.name)")
        }
        #expect(Self.ofNoApp.isSubset(of: Schema.tables.map(\.name)))
    }

    private func check<R: Record>(_ type: R.Type, _ content: SampleColumns.Content) throws {
        let table = R.table
        // Names, the key, the columns of indexes and of the retention.
        #expect(table.problem() == nil)
        var sample = SampleColumns(content: content)
        let record = R(columns: &sample, of: nil)
        #expect(sample.names == table.columns.map(\.name), "\(table.name)")
        let row = record.row
        #expect(table.problem(row: row) == nil, "\(table.name)")
        guard row.count == sample.row.count else {
            Issue.record("\(table.name): \(row.count) columns, not \(sample.row.count)")
            return
        }
        for (position, wanted) in sample.row.enumerated() {
            // What is null in old rows may be read as a value, and is written as that.
            let isLater = table.columns[position].since > 1
            guard let wanted, !isLater || wanted != .null else { continue }
            #expect(row[position] == wanted, "\(table.name).\(sample.names[position])")
        }
        #expect(try R(row: row).row == row, "\(table.name)")
        #expect(throws: StoreError.self) { try R(row: row + [.null]) }
        #expect(throws: StoreError.self) { try R(row: row.dropLast()) }
        try checkTypes(type, row)
    }

    /// Swift lets a declaration forget a property that has a value from the start.
    private func checkProperties<R: Record>(_ type: R.Type) {
        var full = SampleColumns(content: .full)
        var blank = SampleColumns(content: .blank)
        let filled = Mirror(reflecting: R(columns: &full, of: nil)).children
        let empty = Mirror(reflecting: R(columns: &blank, of: nil)).children
        for (filled, empty) in zip(filled, empty) where !(filled.value is any StoredBytes) {
            #expect(
                "\(filled.value)" != "\(empty.value)",
                "\(R.table.name): \(filled.label ?? "") is in no column")
        }
    }

    /// A column of another type is found out, and by its name.
    private func checkTypes<R: Record>(_ type: R.Type, _ row: [ColumnValue]) throws {
        for (position, column) in R.table.columns.enumerated() {
            var wrong = row
            wrong[position] = column.type == .text ? .blob([1]) : .text("?")
            do throws(StoreError) {
                _ = try R(row: wrong)
                Issue.record("\(R.table.name).\(column.name) may be of any type")
            } catch {
                guard case .corrupt(let words) = error else { throw error }
                #expect(words.hasPrefix("\(R.table.name).\(column.name): "), "\(words)")
            }
        }
    }
}

/// Gives each column a value that no other column of its type has, where its type has so many.
private struct SampleColumns: ColumnVisitor {
    enum Content {
        case full
        /// Optional columns are null.
        case halfNull
        case blank
    }

    let content: Content
    var names: [String] = []
    /// What the record is to write; `nil`: it says itself.
    var row: [ColumnValue?] = []

    private func value<Value: StoredValue>(_ type: Value.Type) -> Value {
        if content == .blank { return .blank }
        let number = Int64(row.count)
        let candidates: [ColumnValue] =
            switch Value.columnType {
            case .integer: (1...100).map { .integer((number + $0) % 101) }
            case .text: [.text("text \(number)")]
            case .blob: [.blob(Array(repeating: UInt8(number + 1), count: 16)), .blob([])]
            }
        for candidate in candidates where candidate != Value.blank.stored {
            if let value = Value(stored: candidate), value.stored == candidate { return value }
        }
        return .blank
    }

    mutating func column<Value: StoredValue>(
        _ name: String, _ value: Value?, isKey: Bool
    ) -> Value {
        let value = self.value(Value.self)
        names.append(name)
        row.append(value.stored)
        return value
    }

    mutating func optionalColumn<Value: StoredValue>(
        _ name: String, _ value: Value?, since: Int
    ) -> Value? {
        let value = content == .full ? self.value(Value.self) : nil
        names.append(name)
        row.append(value?.stored ?? .null)
        return value
    }

    mutating func derived<Value: StoredValue>(
        _ name: String, _ value: Value?, isOptional: Bool, since: Int
    ) {
        names.append(name)
        row.append(nil)
    }
}
