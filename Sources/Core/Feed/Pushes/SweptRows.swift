import Model

/// How far one turn of a sweep got with the rows that it found.
///
/// A row of which another transaction holds something is passed over, and is found again in the
/// next turn. Where one turn finds nothing but such rows it looks further, so that many rows of one
/// user keep none behind them waiting.
struct SweptRows {
    /// The number of rows looked at, with those that were passed over.
    private(set) var looked = 0
    /// The number of rows of which another transaction holds something.
    private(set) var held = 0
    private var found = 0
    private let most: Int

    /// How often a turn looks further, and for how many times as many rows.
    private static let looksMax = 3
    private static let widening = 8

    init(atMost most: Int) { self.most = most }

    private var done: Int { looked - held }

    /// All that was found is done.
    var isWhole: Bool { held == 0 && looked == found }

    /// All that there was is looked at.
    var isAtEnd: Bool { looked == found && found < most }

    /// Whether there may be more to do at once. What others hold is none of it.
    var hasMore: Bool { looked > held && (looked < found || found == most) }

    /// Carries out `body` for one row and those that the turn allows, in the lock order and each in
    /// a savepoint of its own.
    ///
    /// - Parameters:
    ///   - scan: the first rows that are due; at most so many of them are looked at.
    ///   - tie: whether one of two rows of one device comes first.
    static func sweep<R: Record & DeviceOrdered>(
        _ scan: Scan, in transaction: any StoreTransaction,
        orInTie tie: (R, R) -> Bool = { _, _ in false },
        carryOut body: (R) throws(StoreError) -> WakeEffects
    ) throws(StoreError) -> (turn: SweptRows, effects: WakeEffects) {
        var effects = WakeEffects()
        var turn = SweptRows(atMost: scan.limit)
        var passedOver: Set<SortKey> = []
        var scan = scan
        for _ in 0..<looksMax {
            let rows = try transaction.rows(R.table, scan)
            let unknown = rows.filter {
                !passedOver.contains(SortKey(Array($0.prefix(R.table.keyCount))))
            }
            turn.found += unknown.count
            var fresh: [R] = []
            for row in unknown {
                do throws(StoreError) {
                    fresh.append(try R(row: row))
                } catch {
                    guard case .corrupt(let detail) = error else { throw error }
                    effects.passedOver(
                        AppID(row[0].words), UserID(row[1].words), detail)
                    turn.looked += 1
                    turn.held += 1
                    passedOver.insert(SortKey(Array(row.prefix(R.table.keyCount))))
                }
            }
            for row in fresh.sorted(by: { $0.precedes($1, orInTie: tie($0, $1)) })
            where turn.done == 0 || turn.done < turn.most && !transaction.isSpent {
                turn.looked += 1
                var done = WakeEffects()
                let isDone = try transaction.passingOver { () throws(StoreError) in
                    done = try body(row)
                } unreadable: {
                    effects.passedOver(row.app, row.user, $0)
                }
                if isDone {
                    effects += done
                } else {
                    turn.held += 1
                    passedOver.insert(SortKey(row.rowKey))
                }
            }
            guard turn.held == turn.looked, rows.count == scan.limit else { break }
            scan.limit *= widening
        }
        return (turn, effects)
    }
}
