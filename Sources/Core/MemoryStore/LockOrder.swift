import Model

/// What one transaction has locked and read: whether it waits for rows in the agreed order,
/// without which an engine with row locks would deadlock (by the rank of their table, within a
/// rank by table name and key, ascending), and whether it may write a row.
///
/// Locks taken inside an outermost savepoint are a sequence of their own: several requests
/// share one transaction of an engine with a single writer, each in its savepoint.
struct LockOrder {
    private struct Row {
        let rank: Int
        let place: RowPlace

        func isBelow(_ other: Row) -> Bool {
            if rank != other.rank { return rank < other.rank }
            if place.table != other.place.table { return place.table < other.place.table }
            return place.key < other.place.key
        }
    }

    private let ranks: [String: Int]
    private var last: (row: Row, name: String)?
    /// Counts locks and reads, so that it is known which came first.
    private var moment = 0
    private var lockedAt: [RowPlace: Int] = [:]
    private var readAt: [RowPlace: Int] = [:]

    /// - Parameter ranks: empty: nothing is checked.
    init(ranks: [String: Int]) { self.ranks = ranks }

    var isChecked: Bool { !ranks.isEmpty }

    /// Starts a sequence; returns what `resume` needs after it.
    mutating func begin() -> LockOrder {
        let before = self
        last = nil
        return before
    }

    /// Ends the sequence that `begin` started; what it locked stays held.
    mutating func resume(_ before: LockOrder) { last = before.last }

    /// A table without a rank comes after all others, its rows in any order.
    ///
    /// - Returns: what is wrong with it; `nil`: nothing.
    mutating func lock(_ table: Table, key: [ColumnValue], _ lock: RowLock) -> String? {
        guard isChecked, lock != .none else { return nil }
        let row = Row(rank: ranks[table.name] ?? .max, place: RowPlace(table, key))
        guard lockedAt[row.place] == nil else { return nil }
        moment += 1
        // A lock that others may hold at the same time protects no row from being written.
        if lock != .share { lockedAt[row.place] = moment }
        guard lock != .skip else { return nil }
        let name = "\(table.name)\(key)"
        if let last {
            let isInOrder =
                row.rank == .max ? true : last.row.rank != .max && last.row.isBelow(row)
            if !isInOrder { return "lock order: \(name) after \(last.name)" }
        }
        last = (row, name)
        return nil
    }

    mutating func read(_ table: Table, key: some Sequence<ColumnValue>) {
        guard isChecked else { return }
        moment += 1
        readAt[RowPlace(table, key)] = moment
    }

    /// The reason why the transaction must not write the row; `nil`: it may.
    ///
    /// - Parameters:
    ///   - isKnown: The row must have been read.
    ///   - isFresh: Nothing that was read before its guard was locked may be written over.
    func problem(
        writing row: [ColumnValue], of table: Table, isKnown: Bool, isFresh: Bool
    ) -> String? {
        guard isChecked else { return nil }
        let places = table.guardPlaces(of: row)
        let key = Array(row[..<table.keyCount])
        guard let place = places.first else { return nil }
        let locks = places.compactMap { lockedAt[RowPlace($0.table, $0.key)] }
        // Where each of two guards protects columns of its own, the row may have been read between
        // them: what is written is the columns that changed.
        guard let locked = locks.min() else {
            return "\(table.name)\(key) is written, and \(place.table.name)\(place.key) not locked"
        }
        guard let read = readAt[RowPlace(table, key)] else {
            return isKnown ? "\(table.name)\(key) is written over, and was not read" : nil
        }
        return isFresh && read < locked
            ? "\(table.name)\(key) is written as it was before \(place.table.name) was locked" : nil
    }
}
