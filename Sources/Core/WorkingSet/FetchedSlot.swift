import Model

/// What is known of one key of a table in a transaction that fetches.
final class FetchedSlot {
    typealias Row = [ColumnValue]?

    /// What the requests carried out so far want of the key.
    enum Intent {
        case nothing
        /// The row that stands there is changed or deleted, or one is written where it was found
        /// that there is none.
        case changed
        /// A row is written where nobody has looked: the engine refuses a second one.
        case inserted
        /// Whatever stands there goes first; nobody has looked.
        case cleared
    }

    let key: [ColumnValue]
    let place: SortKey
    unowned let table: FetchedTable
    /// As the engine has it; `nil`: not known.
    var stored: Row?
    /// What a read gives; `nil`: not known.
    var current: Row?
    var intent = Intent.nothing
    /// It is in `FetchedTable.changed`.
    var isListed = false
    /// How the transaction holds it, and since which fetch.
    private(set) var locks: [(lock: RowLock, since: Int)] = []
    /// Another transaction holds it, and to wait for it could be a deadlock.
    var isBusy = false
    /// A read with `RowLock.skip` found no row that was free.
    var isPassedOver = false
    /// The fetch that gave `stored`.
    var fetched = 0
    /// The fetch that is going to read it, and the locks that it takes.
    private var noted = (fetch: 0, locks: [RowLock]())

    init(_ key: [ColumnValue], at place: SortKey, in table: FetchedTable) {
        self.key = key
        self.place = place
        self.table = table
    }

    var isDirty: Bool { intent != .nothing }
    var isHeld: Bool { !locks.isEmpty }

    func hold(_ lock: RowLock, since fetch: Int) {
        if !locks.contains(where: { $0.lock == lock }) { locks.append((lock, fetch)) }
    }

    /// - Returns: whether that fetch was not going to read it so.
    func note(_ lock: RowLock, for fetch: Int) -> Bool {
        if noted.fetch != fetch { noted = (fetch, []) }
        if noted.locks.contains(lock) { return false }
        noted.locks.append(lock)
        return true
    }

    /// Since which fetch it is held at least as firmly; `nil`: it is not.
    func held(_ lock: RowLock) -> Int? {
        locks.first { $0.lock == lock || $0.lock == .wait || $0.lock == .skip }?.since
    }

    /// What a change that was made to the row `base` makes of the row as it is now: another
    /// transaction may have written other columns since (`RowGuard.either`).
    static func rebased(_ changed: Row, from base: Row?, onto fresh: Row?) -> Row {
        guard let changed, let base, let base, let fresh, let fresh else { return changed }
        return changed.indices.map { changed[$0] == base[$0] ? fresh[$0] : changed[$0] }
    }
}

/// When rows of one table were locked.
final class LockFloor {
    /// The latest fetch that locked what the request at work has locked.
    var fetch = 0
    /// The latest fetch that locked any, or is going to.
    var latest = 0
}
