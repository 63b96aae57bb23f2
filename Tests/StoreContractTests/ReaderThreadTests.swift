import Foundation
import Model
import SQLiteStore
import Testing

/// Readers on threads of their own beside the writer: what they see is always a whole.
@Suite struct ReaderThreadTests {
    /// Handed to one thread and used by nothing else until that ends.
    private struct Handed: @unchecked Sendable {
        let reader: any StoreReader
        let id: Int
    }

    /// What a reader's thread found.
    private final class Findings: @unchecked Sendable {
        private let lock = NSLock()
        private var problems: [String] = []
        private var reads = 0

        func add(_ problem: String?) {
            lock.withLock {
                if let problem { problems.append(problem) } else { reads += 1 }
            }
        }
        var all: (problems: [String], reads: Int) { lock.withLock { (problems, reads) } }
    }

    @Test("amounts move between rows, their sum never changes")
    func transfers() throws {
        try withFolder { folder throws in
            var options = SQLiteOptions()
            options.journalStep = 32 << 10
            options.journalLimit = 128 << 10
            let store = try SQLiteStore(
                path: "\(folder)/store.db", tables: Sample.tables, options: options)
            defer { store.close() }
            try store.write { transaction throws(StoreError) in
                for id in UInt8(0)..<10 {
                    try transaction.put(Sample.thing, Sample.row("a", [id], number: 100))
                }
            }
            let findings = Findings()
            let finished = DispatchGroup()
            for id in 0..<3 {
                let handed = Handed(reader: try store.reader(), id: id)
                let thread = Thread {
                    Self.watch(handed, findings)
                    finished.leave()
                }
                finished.enter()
                thread.start()
            }
            var random = SeededRandom(3)
            for _ in 0..<1_000 {
                let (from, to) = (UInt8(random.below(10)), UInt8(random.below(10)))
                if from == to { continue }
                try store.write { transaction throws(StoreError) in
                    try Self.change(from, by: -7, in: transaction)
                    try Self.change(to, by: 7, in: transaction)
                }
            }
            finished.wait()
            #expect(findings.all.problems.isEmpty, "\(findings.all.problems.prefix(3))")
            #expect(findings.all.reads == 3 * 500)
        }
    }

    private static func change(
        _ id: UInt8, by amount: Int64, in transaction: any StoreTransaction
    ) throws(StoreError) {
        let key: [ColumnValue] = [.text("a"), .blob([id])]
        guard let row = try transaction.row(Sample.thing, key: key, lock: .wait),
            case .integer(let number) = row[2]
        else { throw .corrupt("no row \(id)") }
        try transaction.put(Sample.thing, Sample.row("a", [id], number: number + amount))
    }

    /// Reads every row by two statements of one snapshot, which must agree.
    private static func watch(_ handed: Handed, _ findings: Findings) {
        for _ in 0..<500 {
            do {
                var sums: [Int64] = []
                try handed.reader.read { snapshot throws(StoreError) in
                    for index in [nil, "thing_by_number"] {
                        let scan = Scan(index: index, limit: .max)
                        let numbers = try snapshot.rows(Sample.thing, scan).map { row in
                            if case .integer(let number) = row[2] { number } else { Int64(0) }
                        }
                        sums.append(numbers.reduce(0, +))
                    }
                }
                findings.add(sums == [1000, 1000] ? nil : "reader \(handed.id) saw \(sums)")
            } catch {
                findings.add("reader \(handed.id): \(error)")
            }
        }
        handed.reader.close()
    }
}
