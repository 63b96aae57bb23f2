import Foundation
import Model
import Testing

/// The same random operations on all engines, compared row for row. The engines have nothing in
/// common but the contract: one sorts by keys of its own making, one is SQLite, and others know
/// rows from one transaction to the next.
@Suite struct EngineComparisonTests {
    @Test("all engines agree on random operations", arguments: UInt64(1)...12)
    func agreement(_ seed: UInt64) throws {
        var random = SeededRandom(seed)
        try withFolder { folder throws in
            let stores = try engines.map { engine in
                let own = "\(folder)/\(engine)"
                try FileManager.default.createDirectory(
                    atPath: own, withIntermediateDirectories: false)
                return try engine.make(tables: Sample.tables, in: own)
            }
            let readers = try stores.map { try $0.reader() }
            defer {
                for reader in readers { reader.close() }
                for store in stores { store.close() }
            }
            for round in 0..<60 {
                let script = Script(&random)
                let outcomes = try stores.map { try outcome(of: script, on: $0) }
                for (engine, outcome) in zip(engines, outcomes) {
                    try #require(
                        outcome == outcomes[0], "\(engine): seed \(seed), round \(round)")
                }
                for table in Sample.tables {
                    for index in [nil] + table.scanned.map(\.name) {
                        let scan = Scan(index: index, limit: .max)
                        let all = try readers.map { exact(try $0.rows(table, scan)) }
                        for (engine, rows) in zip(engines, all) {
                            try #require(
                                rows == all[0], "\(engine): seed \(seed), round \(round)")
                        }
                    }
                }
                if random.below(5) == 0 { for store in stores { try store.checkpoint() } }
            }
            let count = try stores[0].rows(Sample.thing).count
            #expect(count > 20, "the script deletes more than it writes: it proves little")
        }
    }

    /// What every read gave, and how the transaction ended.
    private func outcome(of script: Script, on store: any Store) throws -> [String] {
        var seen: [String] = []
        do {
            try store.write { transaction throws(StoreError) in
                try run(script.steps, in: transaction, &seen)
            }
            seen.append("committed")
        } catch {
            seen.append("\(error)")
        }
        return seen
    }

    private func run(
        _ steps: [Step], in transaction: any StoreTransaction, _ seen: inout [String]
    ) throws(StoreError) {
        for step in steps {
            switch step {
            case .put(let table, let row):
                try transaction.put(table, row)
            case .delete(let table, let key):
                try transaction.delete(table, key: key)
            case .row(let table, let key):
                let row = try transaction.row(table, key: key, lock: .wait)
                seen.append("row \(exact(row.map { [$0] } ?? []))")
            case .scan(let table, let scan):
                seen.append("scan \(exact(try transaction.rows(table, scan)))")
            case .savepoint(let inner):
                do {
                    try transaction.savepoint { () throws(StoreError) in
                        try run(inner, in: transaction, &seen)
                    }
                    seen.append("kept")
                } catch {
                    seen.append("undone \(error)")
                    if case .full = error { throw error }
                }
            case .fail(let error):
                throw error
            }
        }
    }
}

/// One operation of a transaction.
private indirect enum Step {
    case put(Table, [ColumnValue])
    case delete(Table, key: [ColumnValue])
    case row(Table, key: [ColumnValue])
    case scan(Table, Scan)
    case savepoint([Step])
    case fail(StoreError)
}

/// One transaction.
private struct Script {
    let steps: [Step]

    init(_ random: inout SeededRandom) {
        var steps = (0..<(1 + random.below(14))).map { _ in Self.step(&random, depth: 0) }
        if random.below(10) == 0 { steps.append(.fail(.conflict("whole"))) }
        self.steps = steps
    }

    private static func step(_ random: inout SeededRandom, depth: Int) -> Step {
        let table = random.below(5) == 0 ? Sample.order : Sample.thing
        switch random.below(20) {
        case 0..<9: return .put(table, table.columns.map { value(&random, $0) })
        case 9..<11: return .delete(table, key: key(&random, table))
        case 11..<13: return .row(table, key: key(&random, table))
        case 13..<18 where depth < 3:
            if random.below(3) != 0 { return .scan(table, scan(&random, table)) }
            var inner = (0..<random.below(6)).map { _ in step(&random, depth: depth + 1) }
            switch random.below(12) {
            case 0..<4: inner.append(.fail(.conflict("inner")))
            case 4: inner.append(.fail(.full("inner")))
            default: break
            }
            return .savepoint(inner)
        default: return .scan(table, scan(&random, table))
        }
    }

    private static func key(_ random: inout SeededRandom, _ table: Table) -> [ColumnValue] {
        table.columns[..<table.keyCount].map { value(&random, $0) }
    }

    private static func scan(_ random: inout SeededRandom, _ table: Table) -> Scan {
        let choices = [nil] + table.scanned.map(\.name)
        let index = choices[random.below(choices.count)]
        let order = table.order(of: index).map { table.columns[$0] }
        let present = table.indexes.first { $0.name == index }?.presentColumn
        let prefix = order[..<random.below(order.count + 1)].map { value(&random, $0) }
        let bounded = order[prefix.count...].prefix { column in
            !column.isOptional || present.map { table.columns[$0] == column } ?? false
        }
        func bound(_ random: inout SeededRandom) -> [ColumnValue]? {
            guard !bounded.isEmpty, random.below(2) == 0 else { return nil }
            return bounded.prefix(1 + random.below(bounded.count)).map { column in
                value(&random, Column(column.name, column.type))
            }
        }
        return Scan(
            index: index, prefix: prefix, after: bound(&random), through: bound(&random),
            descending: random.below(2) == 0,
            limit: random.below(3) == 0 ? random.below(4) : 1000)
    }

    /// Few values, so that keys meet and indexes have ties; the ugly ones among them.
    private static func value(_ random: inout SeededRandom, _ column: Column) -> ColumnValue {
        if column.isOptional && random.below(3) == 0 { return .null }
        switch column.type {
        case .integer:
            let values: [Int64] = [.min, -1, 0, 1, 2, 3, 255, 256, .max]
            return .integer(values[random.below(values.count)])
        case .text:
            let values = ["", "a", "a\u{0}", "a\u{0}b", "ab", "\u{e9}", "e\u{301}", "\u{10000}"]
            return .text(values[random.below(values.count)])
        case .blob:
            let bytes: [UInt8] = [0, 1, 0xfe, 0xff]
            return .blob((0..<random.below(3)).map { _ in bytes[random.below(bytes.count)] })
        }
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededRandom {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// 0 to `bound` - 1.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
