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
    var events: [WebhookEventRecord] = []
    /// The object that was last appended to a feed, as its entries show it; `nil` there: not
    /// without a read.
    var tailState: (object: TailIdentity, state: TailState?)?
    /// The same for those who are not to be told of it (PSH-9).
    var quietTailState: (object: TailIdentity, state: TailState?)?
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
        try stored(try transaction.record(type, key, lock: lock))
    }

    /// The app as it was when the step first asked for it, without a lock.
    func app(_ app: AppID) throws(RuleFailure) -> AppRecord? {
        if let knownApp, knownApp.app == app { return knownApp }
        knownApp = try record(AppRecord.self, [.app(app)])
        return knownApp
    }

    func records<R: Record>(_ type: R.Type, _ scan: Scan) throws(RuleFailure) -> [R] {
        try stored(try transaction.records(type, scan))
    }

    /// As they are stored: for what cannot be read otherwise.
    func rows(_ table: Table, _ scan: Scan) throws(RuleFailure) -> [[ColumnValue]] {
        try stored(try transaction.rows(table, scan))
    }

    func put(_ record: some Record) throws(RuleFailure) {
        try stored(try transaction.put(record))
    }

    /// Writes a row that cannot be there yet; if one is, another transaction was first
    /// (`.conflict`).
    func insert(_ record: some Record) throws(RuleFailure) {
        try stored(try transaction.insert(record))
    }

    func delete<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(RuleFailure) {
        try stored(try transaction.delete(type, key))
    }

    func lockUser(_ app: AppID, _ user: UserID) throws(RuleFailure) {
        try stored(try transaction.lockUser(app, user))
    }

    /// Keeps a row that only says where the next turn begins. While another transaction holds the
    /// row, that one's value stands, so that nobody waits for it.
    func noteTurn(_ name: String, of app: AppID) throws(RuleFailure) {
        try stored(
            try transaction.keepHint(
                MetaRecord(name: name, bytes: Array(app.name.utf8))))
    }

    /// The same of a place in the order of a table whose key begins with two texts.
    func noteTurn(_ name: String, at place: [ColumnValue]) throws(RuleFailure) {
        // Neither of them holds a zero byte.
        let bytes = Array(place[0].words.utf8) + [0] + Array(place[1].words.utf8)
        try stored(try transaction.keepHint(MetaRecord(name: name, bytes: bytes)))
    }

    /// The next turn begins at the start.
    func forgetTurn(_ name: String) throws(RuleFailure) {
        let key: [ColumnValue] = [.text(name)]
        guard try record(MetaRecord.self, key) != nil,
            try record(MetaRecord.self, key, lock: .skip) != nil
        else { return }
        try delete(MetaRecord.self, key)
    }

    /// `nil`: from the start.
    func turnPlace(_ name: String) throws(RuleFailure) -> [ColumnValue]? {
        let bytes = try record(MetaRecord.self, [.text(name)])?.bytes ?? []
        let parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return parts.map { .text(String(decoding: $0, as: UTF8.self)) }
    }

    /// What the store fails at, a rule fails at: the one place where that is said.
    func stored<Value>(
        _ value: @autoclosure () throws(StoreError) -> Value
    ) throws(RuleFailure) -> Value {
        do throws(StoreError) {
            return try value()
        } catch {
            throw .store(error)
        }
    }

    /// What is asked is refused unless this holds.
    func require(
        _ holds: Bool, _ code: Code, _ detail: @autoclosure () -> String
    ) throws(RuleFailure) {
        guard holds else { throw .refused(code, detail()) }
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

    /// A step that is one of many in a turn. `nil`: another transaction holds something of it, and
    /// a later turn does it: it keeps none behind it from their turn.
    func stepPassingOver<Value>(
        _ body: () throws(RuleFailure) -> Value
    ) throws(RuleFailure) -> Value? {
        do throws(RuleFailure) {
            return try step(body)
        } catch {
            guard case .store(.conflict) = error else { throw error }
            return nil
        }
    }

    /// The same where a row may be met that cannot be read: then nothing of the step is done.
    ///
    /// - Parameter unreadable: told what is wrong with such a row, behind the step.
    func stepPassingOver<Value>(
        _ body: () throws(RuleFailure) -> Value,
        unreadable: (String) throws(RuleFailure) -> Void
    ) throws(RuleFailure) -> Value? {
        do throws(RuleFailure) {
            return try stepPassingOver(body)
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            try unreadable(detail)
            return nil
        }
    }

    /// Whoever runs the server is told of it, once for each request.
    func notePassedOver(_ app: AppID, of user: UserID = UserID(""), _ detail: String) {
        let row = UnreadableRow(app: app, user: user, conversation: .none, detail: detail)
        if !effects.unreadable.contains(row) { effects.unreadable.append(row) }
    }

    /// The same of a row as it is stored, whose key begins with these two.
    func notePassedOver(_ row: [ColumnValue], _ detail: String) {
        notePassedOver(
            AppID(row.first?.words ?? ""), of: UserID(row.dropFirst().first?.words ?? ""), detail)
    }

    /// A row that cannot be read is looked at again after so long: it seldom mends itself.
    static let unreadablePause: Milliseconds = 60_000

    /// Writes one column of a row of which the others cannot be read. The caller holds its lock.
    func put(
        _ value: ColumnValue, as column: String, of row: inout [ColumnValue], in table: Table
    ) throws(RuleFailure) {
        guard let place = table.columns.firstIndex(where: { $0.name.isExactly(column) }) else {
            preconditionFailure("\(table.name) has no \(column)")
        }
        row[place] = value
        try stored(try transaction.put(table, row))
    }

    /// The caller holds the locks that protect the rows.
    func deleteRows(of table: Table, _ scan: Scan) throws(RuleFailure) -> Int {
        let rows = try rows(table, scan)
        for row in rows {
            try stored(try transaction.delete(table, key: Array(row.prefix(table.keyCount))))
        }
        return rows.count
    }
}

extension ColumnValue {
    /// Its text; empty: it is none.
    var words: String {
        if case .text(let words) = self { words } else { "" }
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
