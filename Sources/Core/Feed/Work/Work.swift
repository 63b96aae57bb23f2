import Model
import Wake
import Wire

/// How a step of a rule ended early: what it wrote is undone.
enum RuleFailure: Error {
    /// The request is answered so.
    case answer(StoreAnswer)
    case store(StoreError)

    static func refused(_ code: Code, _ detail: String) -> RuleFailure {
        .answer(.refused(code, detail: detail))
    }
}

/// One request on an open transaction. The extensions of this class are the rules, by concern.
///
/// A rule checks before it writes; where a later check fails, the step's savepoint undoes it.
final class Work {
    let transaction: MeteredTransaction
    let now: Timestamp
    let limits: RuleLimits
    let zones: any ZoneClock
    var effects: Effects
    /// For webhooks, until the step writes them down.
    var events: [(event: WebhookEvent, app: AppID)] = []
    /// The object that was last appended to a feed, as its entries show it; `nil` there: not
    /// without a read.
    var tailState: (object: TailIdentity, state: TailState?)?
    /// The message that is being sent, as it was just written.
    var sent: MessageRecord?
    /// The app, once a rule has asked for it in this step.
    private var knownApp: AppRecord?
    /// Steps whose writes stand, whatever becomes of those behind them.
    private(set) var finishedSteps = 0

    init(
        _ transaction: MeteredTransaction, now: Timestamp, limits: RuleLimits,
        zones: any ZoneClock
    ) {
        self.transaction = transaction
        self.now = now
        self.limits = limits
        self.zones = zones
        effects = Effects(limits: limits.tail)
    }

    /// Whether the request has used up what one turn may take: what is left of it waits for the
    /// next.
    var isSpent: Bool { transaction.isSpent }

    func record<R: Record>(
        _ type: R.Type, _ key: [ColumnValue], lock: RowLock = .none
    ) throws(RuleFailure) -> R? {
        do throws(StoreError) {
            return try transaction.record(type, key, lock: lock)
        } catch {
            throw .store(error)
        }
    }

    /// The app as it was when the step first asked for it, without a lock.
    func app(_ app: AppID) throws(RuleFailure) -> AppRecord? {
        if let knownApp, knownApp.app == app { return knownApp }
        knownApp = try record(AppRecord.self, [.app(app)])
        return knownApp
    }

    func records<R: Record>(_ type: R.Type, _ scan: Scan) throws(RuleFailure) -> [R] {
        do throws(StoreError) {
            return try transaction.records(type, scan)
        } catch {
            throw .store(error)
        }
    }

    /// As they are stored: for what cannot be read otherwise.
    func rows(_ table: Table, _ scan: Scan) throws(RuleFailure) -> [[ColumnValue]] {
        do throws(StoreError) {
            return try transaction.rows(table, scan)
        } catch {
            throw .store(error)
        }
    }

    func put(_ record: some Record) throws(RuleFailure) {
        do throws(StoreError) {
            try transaction.put(record)
        } catch {
            throw .store(error)
        }
    }

    /// Writes a row that cannot be there yet; if one is, another transaction was first
    /// (`.conflict`).
    func insert(_ record: some Record) throws(RuleFailure) {
        do throws(StoreError) {
            try transaction.insert(record)
        } catch {
            throw .store(error)
        }
    }

    func delete<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(RuleFailure) {
        do throws(StoreError) {
            try transaction.delete(type, key)
        } catch {
            throw .store(error)
        }
    }

    func lockUser(_ app: AppID, _ user: UserID) throws(RuleFailure) {
        do throws(StoreError) {
            try transaction.lockUser(app, user)
        } catch {
            throw .store(error)
        }
    }

    /// Keeps a row that only says where the next turn begins. While another transaction holds the
    /// row, that one's value stands, so that nobody waits for it.
    func noteTurn(_ name: String, of app: AppID) throws(RuleFailure) {
        try waking { () throws(StoreError) in
            try self.transaction.keepHint(
                MetaRecord(name: name, bytes: Array(app.name.utf8)))
        }
    }

    /// Runs a rule of waking, whose failures are only the store's.
    func waking<Value>(_ body: () throws(StoreError) -> Value) throws(RuleFailure) -> Value {
        do throws(StoreError) {
            return try body()
        } catch {
            throw .store(error)
        }
    }

    /// Runs `body`; if it fails, what it wrote and noted is undone.
    func savepoint<Value>(
        _ body: () throws(RuleFailure) -> Value
    ) throws(RuleFailure) -> Value {
        let before = (effects, events)
        var ending: Result<Value, RuleFailure>?
        do throws(StoreError) {
            try transaction.savepoint { () throws(StoreError) in
                do throws(RuleFailure) {
                    ending = .success(try body())
                } catch {
                    ending = .failure(error)
                    if case .store(let error) = error { throw error }
                    throw .conflict("undone by a rule")
                }
            }
        } catch {
            (effects, events) = before
            if case .failure(let failure) = ending { throw failure }
            throw .store(error)
        }
        guard case .success(let value) = ending else {
            preconditionFailure("a savepoint returned without running its body")
        }
        return value
    }

    /// One step of a request: an outermost savepoint, so that its locks are a sequence of their
    /// own. A conflict is tried again; each try starts from nothing.
    func step<Value>(_ body: () throws(RuleFailure) -> Value) throws(RuleFailure) -> Value {
        var attempt = 1
        while true {
            knownApp = nil
            do throws(RuleFailure) {
                let value = try savepoint { () throws(RuleFailure) in
                    let value = try body()
                    try self.writeEvents()
                    return value
                }
                finishedSteps += 1
                return value
            } catch {
                guard case .store(.conflict) = error, attempt < limits.attempts else { throw error }
                attempt += 1
            }
        }
    }

    /// The caller holds the locks that protect the rows.
    func deleteRows(of table: Table, _ scan: Scan) throws(RuleFailure) -> Int {
        do throws(StoreError) {
            let rows = try transaction.rows(table, scan)
            for row in rows {
                try transaction.delete(table, key: Array(row.prefix(table.keyCount)))
            }
            return rows.count
        } catch {
            throw .store(error)
        }
    }
}

/// What tells a state from every other of the same request.
struct TailIdentity: Equatable {
    var app: AppID
    /// Whose own it is; `nil`: all see the same.
    var user: UserID?
    var kind: EntryKind
    var conversation: ConversationID
    var object: [UInt8]
    var version: UInt64
    var position: UInt64
}
