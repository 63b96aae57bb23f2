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
    /// Since which fetch the transaction holds it for itself, and since which it shares it; 0: it
    /// does not.
    private var ownSince = 0
    private var sharedSince = 0
    /// Another transaction holds it, and to wait for it could be a deadlock.
    var isBusy = false
    /// A read with `RowLock.skip` found no row that was free.
    var isPassedOver = false
    /// The fetch that gave `stored`.
    var fetched = 0
    /// The fetch that is going to read it, and how: a bit for each lock that it takes.
    private var noted = (fetch: 0, locks: 0 as UInt8)

    init(_ key: [ColumnValue], at place: SortKey, in table: FetchedTable) {
        self.key = key
        self.place = place
        self.table = table
    }

    var isDirty: Bool { intent != .nothing }
    var isHeld: Bool { ownSince > 0 || sharedSince > 0 }

    func hold(_ lock: RowLock, since fetch: Int) {
        switch lock {
        case .none: break
        case .wait, .skip: if ownSince == 0 { ownSince = fetch }
        case .share: if sharedSince == 0 { sharedSince = fetch }
        }
    }

    /// - Returns: whether that fetch was not going to read it so.
    func note(_ lock: RowLock, for fetch: Int) -> Bool {
        if noted.fetch != fetch { noted = (fetch, 0) }
        let bit: UInt8 =
            switch lock {
            case .none: 1
            case .wait: 2
            case .skip: 4
            case .share: 8
            }
        if noted.locks & bit != 0 { return false }
        noted.locks |= bit
        return true
    }

    /// Since which fetch it is held at least as firmly; `nil`: it is not.
    func held(_ lock: RowLock) -> Int? {
        let isShared = lock == .share && sharedSince > 0
        if ownSince > 0 { return isShared ? min(ownSince, sharedSince) : ownSince }
        return isShared ? sharedSince : nil
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
