import MemoryStore
import Model
import Testing
import WorkingSet

/// A store whose transactions are those of `FetchedRows`, on an engine that is a round trip away.
final class FetchedStore: DistantStore {
    private let base: any DistantStore
    private let beginsAnew: Bool
    private var isWriting = false

    /// - Parameter beginsAnew: with each read that was not known everything before it in the
    ///   transaction is undone, and done again when the row is there.
    init(_ base: any DistantStore, beginsAnew: Bool) {
        self.base = base
        self.beginsAnew = beginsAnew
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        precondition(!isWriting, "write or read inside a body of the same store")
        isWriting = true
        defer { isWriting = false }
        try base.writeFetching({ transaction throws(StoreError) in
            let rows = FetchedRows(transaction)
            if self.beginsAnew {
                let replayed = ReplayedTransaction(rows)
                try body(replayed)
                try replayed.finish()
            } else {
                rows.fetchesInPlace = true
                try body(rows)
            }
            try rows.flush()
        })
    }

    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) { try base.writeFetching(body) }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        precondition(!isWriting, "write or read inside a body of the same store")
        try base.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    func now() -> Timestamp { base.now() }
    func checkpoint() throws(StoreError) { try base.checkpoint() }
    func close() { base.close() }
}

/// Remembers what its user did, and does all of it again on `FetchedRows` for each further read,
/// as a request that was unwound does. What is read again has to be what was read before.
private final class ReplayedTransaction: StoreTransaction {
    private enum Step {
        case put(Table, [ColumnValue])
        case insert(Table, [ColumnValue])
        case delete(Table, key: [ColumnValue])
        case read(Read, answer: ReadAnswer)
        case begin
        case end(isKept: Bool)
    }

    private let rows: FetchedRows
    private var steps: [Step] = []
    private var failure: StoreError?

    init(_ rows: FetchedRows) { self.rows = rows }

    func finish() throws(StoreError) {
        try check()
        try run(isKept: true) { () throws(StoreError) in }
    }

    private func check() throws(StoreError) { if let failure { throw failure } }

    /// All steps so far, in the savepoints that are still open, then `last`.
    private func run(
        isKept: Bool, _ last: () throws(StoreError) -> Void
    ) throws(StoreError) {
        while true {
            let isDone = try rows.run(isKept: isKept) { () throws(StoreError) in
                var position = 0
                try self.go(on: &position, last)
            }
            if isDone { return }
            try rows.fetchMissing()
        }
    }

    /// - Returns: how the savepoint in which it began has ended; `nil`: it is open.
    @discardableResult
    private func go(
        on position: inout Int, _ last: () throws(StoreError) -> Void
    ) throws(StoreError) -> Bool? {
        while position < steps.count {
            let step = steps[position]
            position += 1
            switch step {
            case .put(let table, let row): try rows.put(table, row)
            case .insert(let table, let row): try rows.insert(table, row)
            case .delete(let table, let key): try rows.delete(table, key: key)
            case .read(let read, let answer):
                let again = try self.answer(read)
                #expect(again == answer, "read again after a miss")
            case .begin:
                var ending: Bool?
                var reached = position
                do throws(StoreError) {
                    try rows.savepoint { () throws(StoreError) in
                        ending = try self.go(on: &reached, last)
                        if ending == false { throw .conflict("undone again") }
                    }
                } catch {
                    guard error == .conflict("undone again") else { throw error }
                }
                position = reached
                if ending == nil { return nil }
            case .end(let isKept): return isKept
            }
        }
        try last()
        return nil
    }

    private func answer(_ read: Read) throws(StoreError) -> ReadAnswer {
        switch read {
        case .row(let table, let key, let lock):
            .row(try rows.row(table, key: key, lock: lock))
        case .rows(let table, let scan): .rows(try rows.rows(table, scan))
        }
    }

    private func ask(_ read: Read) throws(StoreError) -> ReadAnswer {
        try check()
        var answer = ReadAnswer.busy
        try run(isKept: false) { () throws(StoreError) in answer = try self.answer(read) }
        steps.append(.read(read, answer: answer))
        return answer
    }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        guard case .row(let row) = try ask(.row(table, key: key, lock: lock)) else { return nil }
        return row
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        guard case .rows(let found) = try ask(.rows(table, scan)) else { return [] }
        return found
    }

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        steps.append(.put(table, row))
    }

    /// What is refused at once is no step.
    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        try run(isKept: false) { () throws(StoreError) in try self.rows.insert(table, row) }
        steps.append(.insert(table, row))
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        steps.append(.delete(table, key: key))
    }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        steps.append(.begin)
        do throws(StoreError) {
            try body()
        } catch {
            steps.append(.end(isKept: false))
            switch error {
            case .full, .unavailable: failure = failure ?? error
            case .conflict, .corrupt: break
            }
            throw error
        }
        steps.append(.end(isKept: true))
        try check()
    }

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }
}
